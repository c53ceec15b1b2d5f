"""Methods for a series: what stays, what is cut anew, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sequester.attacks import intersection
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.regroup import regrouped
from sequester.methods.mondrian.republish import republish
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.policy import Policy
from series import axis, of_partitions

LEAVES = 32
DOMAINS = (axis(LEAVES), axis(LEAVES))
INSIDER = ["insider"]


class Table:
    """People with two quasi-identifiers and one of six values."""

    def __init__(self, people: int, *, seed: int = 0, k: int = 3, c: float = 0.7, values: int = 6) -> None:
        random = np.random.default_rng(seed)
        self.codes = random.integers(0, LEAVES, (2, people)).astype(np.int32)
        self.value = random.integers(0, values, people).astype(np.int32)
        self.k, self.c = k, c

    def guard(self, people: np.ndarray) -> ClassGuard:
        attributes = {"q0": {"role": "quasi-identifier", "kind": "number"}, "s": {"role": "sensitive"}}
        protect = {"k": self.k, "confidence": self.c}
        policy = Policy.model_validate({"version": 1, "series": "t", "attributes": attributes, "protect": protect})
        return ClassGuard.of(
            Requirement.from_policy(policy, [from_values(list("abcdef"))]), self.value[people][None, :]
        )

    def history(self) -> History:
        return History(
            attribute="s",
            values=tuple("abcdef"),
            k=self.k,
            bounds=(Fraction(self.c).limit_denominator(100),) * 6,
            domains=DOMAINS,
            quasi_names=("q0", "q1"),
            links=np.ones(2, np.bool_),
            people=tuple(range(self.codes.shape[1])),
        )

    def past(self, history: History, people: np.ndarray, *, retained: np.ndarray | None = None) -> Past:
        kept = np.zeros(len(people), np.bool_) if retained is None else retained
        return Past((history,), people, (self.value[people],), kept)

    def release(self, method: Any, history: History, people: np.ndarray, **more: Any) -> tuple[Classes, History]:
        past = self.past(history, people, retained=more.pop("retained", None))
        classes = method(past, self.codes[:, people], DOMAINS, self.guard(people), **{"against": INSIDER, **more})
        order = np.random.default_rng(len(history)).permutation(len(people))
        return classes, past.extend(classes.member, classes.lo, classes.hi, order=order, name="r")[0]


def loss(classes: Classes) -> float:
    return float((classes.hi - classes.lo).sum(axis=0)[classes.member].sum())


def same(one: Classes, other: Classes) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("member", "lo", "hi"))


@pytest.mark.parametrize("method", [republish, merge])
def test_the_first_release_is_plain_mondrian(method: Any) -> None:
    table, people = Table(80), np.arange(80)
    classes, _ = table.release(method, table.history(), people)
    assert same(classes, mondrian(table.codes, DOMAINS, table.guard(people), regroup=method is republish))


def test_without_an_insider_or_a_neighbor_a_release_is_plain_mondrian() -> None:
    table = Table(80)
    _, history = table.release(republish, table.history(), np.arange(40))
    classes, _ = table.release(republish, history, np.arange(80), against=["outsider", "lifetime"])
    assert same(classes, mondrian(table.codes, DOMAINS, table.guard(np.arange(80)), regroup=True))


def test_merge_keeps_the_last_classes_and_adds_those_of_the_newcomers() -> None:
    table = Table(120)
    before, history = table.release(merge, table.history(), np.arange(60))
    after, _ = table.release(merge, history, np.arange(120))
    fresh = mondrian(table.codes[:, 60:], DOMAINS, table.guard(np.arange(60, 120)))
    assert len(after) == len(before) + len(fresh)
    together = after.member[:60, None] == after.member[:60]
    assert np.array_equal(together, before.member[:, None] == before.member)
    assert np.array_equal(after.lo[:, after.member[:60]], before.lo[:, before.member])
    assert loss(after) == loss(before) + loss(fresh)


@pytest.mark.parametrize("against", [["insider"], ["insider", "neighbor"]])
def test_republish_loses_less_than_merge(against: list[str]) -> None:
    table = Table(600)
    _, history = table.release(republish, table.history(), np.arange(300))
    careful, _ = table.release(republish, history, np.arange(600), against=against)
    merged, _ = table.release(merge, history, np.arange(600), against=against)
    assert loss(careful) < loss(merged)


def test_classes_are_the_same_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(500)
    _, history = table.release(republish, table.history(), np.arange(250))
    one, _ = table.release(republish, history, np.arange(500))
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    other, _ = table.release(republish, history, np.arange(500))
    assert same(one, other)


@pytest.mark.parametrize("method", [republish, merge])
def test_too_few_newcomers_are_refused(method: Any) -> None:
    table = Table(62)
    _, history = table.release(republish, table.history(), np.arange(60))
    with pytest.raises(GuaranteeError, match="hold them back") as refused:
        table.release(method, history, np.arange(62))
    assert refused.value.guarantee == "series"


@pytest.mark.parametrize("method", [republish, merge])
def test_too_few_who_leave_are_refused(method: Any) -> None:
    table = Table(60)
    _, history = table.release(republish, table.history(), np.arange(60))
    with pytest.raises(GuaranteeError, match="hold them back"):
        table.release(method, history, np.arange(1, 60))


@pytest.mark.parametrize("method", [republish, merge])
def test_many_may_leave(method: Any) -> None:
    table = Table(200)
    _, history = table.release(republish, table.history(), np.arange(150))
    classes, _ = table.release(method, history, np.arange(40, 200))
    assert (classes.member >= 0).all()


@pytest.mark.parametrize("method", [republish, merge])
def test_the_class_of_somebody_retained_goes_on_whole_in_its_box(method: Any) -> None:
    table = Table(160)
    before, history = table.release(republish, table.history(), np.arange(80))
    retained = np.zeros(160, np.bool_)
    retained[0] = True
    table.codes[:, 0] = 0  # her record is gone: whatever is here is not looked at
    after, _ = table.release(method, history, np.arange(160), retained=retained)
    old = np.flatnonzero(before.member == before.member[0])
    assert len(np.unique(after.member[old])) == 1
    assert np.array_equal(np.flatnonzero(after.member == after.member[0]), old)
    assert np.array_equal(after.lo[:, after.member[0]], before.lo[:, before.member[0]])
    assert np.array_equal(after.hi[:, after.member[0]], before.hi[:, before.member[0]])


@pytest.mark.parametrize("method", [republish, merge])
def test_where_everybody_is_retained_the_last_release_is_repeated(method: Any) -> None:
    table, people = Table(60), np.arange(60)
    before, history = table.release(republish, table.history(), people)
    after, _ = table.release(method, history, people, retained=np.ones(60, np.bool_))
    assert same(after, before)


@pytest.mark.parametrize("cuts", ["median", "relaxed"])
def test_newcomers_are_cut_as_asked_for(cuts: str) -> None:
    table = Table(160)
    _, history = table.release(republish, table.history(), np.arange(80))
    after, _ = table.release(merge, history, np.arange(160), cuts=cuts)
    fresh = mondrian(table.codes[:, 80:], DOMAINS, table.guard(np.arange(80, 160)), cuts=cuts)  # type: ignore[arg-type]
    together = after.member[80:, None] == after.member[80:]
    assert np.array_equal(together, fresh.member[:, None] == fresh.member)
    careful, _ = table.release(republish, history, np.arange(160), cuts=cuts)
    assert loss(careful) <= loss(after)


def test_with_a_known_population_nothing_is_cut_anew() -> None:
    table, people = Table(160), np.arange(160)
    _, history = table.release(republish, table.history(), people[:80])
    guard = replace(table.guard(people), population=np.ascontiguousarray(table.codes.T), known=3)
    past = table.past(history, people)
    careful = republish(past, table.codes, DOMAINS, guard, against=INSIDER)
    merged = merge(past, table.codes, DOMAINS, guard, against=INSIDER)
    assert same(careful, merged)


def test_progress_is_told() -> None:
    table = Table(200)
    _, history = table.release(republish, table.history(), np.arange(100))
    told: list[tuple[str, int, int]] = []
    table.release(republish, history, np.arange(200), progress=lambda *step: told.append(step))
    assert told
    assert told[-1][1] == told[-1][2]


def judged(partitions: list[list[list[int]]], value: str, *, against: list[str], k: int = 2) -> Answer:
    """The verdict on the last release of a series written as in the literature."""
    series = of_partitions(partitions, value)
    history = of_partitions(partitions[:-1], value).history(k=k)
    here = np.flatnonzero(series.member[-1] >= 0)
    past = Past((history,), here, (series.value[here],), np.zeros(len(here), np.bool_))
    watch = SeriesGuard.of(past, series.points[here].T, against=against)
    return watch.judge(series.member[-1][here], *series.boxes[-1])


def test_a_value_nobody_had_before_gives_a_lone_newcomer_away() -> None:
    assert judged([[[0, 1, 2]], [[0, 1, 4], [2, 3]]], "cdbda", against=INSIDER) is Answer.NO


def test_three_releases_that_are_safe_in_pairs_are_not_accepted() -> None:
    pairings = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]]
    assert judged(pairings, "abcd", against=INSIDER) is not Answer.YES


def test_an_intersection_may_be_safe_again_when_cut_further() -> None:
    old = [[0, 1, 5], [2, 3, 4]]
    coarse = [[4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 10]]
    fine = [[5, 6, 7, 8], [4, 9], [0, 2, 3], [1, 10]]
    assert intersection.find(of_partitions([old, coarse], "aabcabbcabb").history(k=1)).findings
    assert judged([old, coarse], "aabcabbcabb", against=["neighbor"], k=1) is Answer.NOT_NOW
    assert judged([old, fine], "aabcabbcabb", against=["neighbor"], k=1) is Answer.YES


def test_an_unchanged_release_is_safe() -> None:
    assert judged([[[0, 1], [2, 3]], [[0, 1], [2, 3]]], "abab", against=["insider", "neighbor"]) is Answer.YES


def test_blocks_get_a_verdict_each_and_only_those_asked_for() -> None:
    before, after = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1, 2, 8], [3, 9], [4, 5, 6, 7]]
    series = of_partitions([before, after], "abcdabcdab")
    past = Past(
        (of_partitions([before], "abcdabcdab").history(),), np.arange(10), (series.value,), np.zeros(10, np.bool_)
    )
    watch = SeriesGuard.of(past, series.points.T, against=INSIDER)
    block = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0], np.int32)
    found = watch.judge_blocks(series.member[-1], *series.boxes[-1], block)
    assert found.tolist() == [Answer.NO.value, Answer.YES.value]
    block[block == 0] = -1
    assert watch.judge_blocks(series.member[-1], *series.boxes[-1], block)[1] == Answer.YES.value


def test_a_watch_needs_a_record_for_everybody() -> None:
    table = Table(20)
    past = table.past(table.history(), np.arange(20))
    with pytest.raises(ValueError, match="records it was given people for"):
        SeriesGuard.of(past, table.codes[:, :19], against=INSIDER)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_regrouped_classes_are_safe_and_lose_less(k: int) -> None:
    table, people = Table(700, k=k), np.arange(700)
    guard = table.guard(people)
    cut = mondrian(table.codes, DOMAINS, guard)
    shared = regrouped(cut, table.codes, DOMAINS, guard)
    member = shared.member
    counts = np.zeros((int(member.max()) + 1, 6), np.int64)
    np.add.at(counts, (member, table.value), 1)
    assert counts.sum(axis=1).min() >= k
    assert (counts.max(axis=1) * 10 <= counts.sum(axis=1) * 7).all()
    lo = np.array([table.codes[:, member == one].min(axis=1) for one in range(len(counts))]).T
    hi = np.array([table.codes[:, member == one].max(axis=1) for one in range(len(counts))]).T
    assert np.array_equal(shared.lo, lo)
    assert np.array_equal(shared.hi, hi)
    assert loss(shared) < loss(cut)


def test_large_classes_are_not_regrouped() -> None:
    table, people = Table(200, k=30), np.arange(200)
    cut = mondrian(table.codes, DOMAINS, table.guard(people))
    assert regrouped(cut, table.codes, DOMAINS, table.guard(people)) is cut
