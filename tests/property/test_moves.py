"""Values that move by a known step: whom it links, by trying every value, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.attacks.solvers.comparison import compare
from sequester.history import History
from sequester.history.past import Past
from sequester.ledger import Key
from sequester.methods.series_guard.pair import Pair
from sequester.methods.series_guard.proposed import PastClasses, ProposedRelease
from series import Series, axis, certain_pairs, series


def reachable(history: History, first: int, second: int) -> set[tuple[int, int]]:
    """Pairs of classes that one person can be in, by trying every value; a side at the end of the domain is open."""
    one, other = history.releases[first], history.releases[second]
    steps = second - first
    found = set()
    for a, b in product(range(len(one)), range(len(other))):
        fits = True
        for place, domain in enumerate(history.domains):
            end = domain.size - 1
            beyond = [*range(-40, domain.size + 40)]
            here, there = (
                [v for v in beyond if (v >= box.lo[place, n] or box.lo[place, n] == 0) and
                 (v <= box.hi[place, n] or box.hi[place, n] == end)]
                for box, n in ((one, a), (other, b))
            )  # fmt: skip
            if history.links[place]:
                fits &= bool({v for v in here if 0 <= v <= end} & {v for v in there if 0 <= v <= end})
            elif not np.isnan(history.steps[place, 0]):
                low, high = history.steps[place] * steps
                fits &= any(low <= w - v <= high for v, w in product(here, there))
        if fits:
            found.add((a, b))
    return found


@st.composite
def moving(draw: st.DrawFn) -> History:
    """A history in the outsider's view whose attributes stay, move or change freely."""
    truth = draw(series(releases=(2, 3), people=(2, 6)))
    history = truth.history(known=False)
    steps = np.full((len(history.links), 2), np.nan)
    links = np.zeros(len(history.links), np.bool_)
    for place in range(len(links)):
        kind = draw(st.sampled_from(["stays", "moves", "moves", "changes"]))
        links[place] = kind == "stays"
        if kind == "moves":
            steps[place] = sorted(draw(st.tuples(*[st.integers(-3, 3)] * 2)))
    return replace(history, links=links, steps=steps)


@settings(max_examples=300, deadline=None)
@given(moving())
def test_two_classes_are_compatible_when_some_value_can_move_from_one_to_the_other(history: History) -> None:
    for first in range(len(history)):
        for second in range(first + 1, len(history)):
            pairs = history.compatible(first, second)
            assert set(zip(*(side.tolist() for side in pairs), strict=True)) == reachable(history, first, second)
            back = history.compatible(second, first)
            assert set(zip(*(side.tolist() for side in back[::-1]), strict=True)) == reachable(history, first, second)


@settings(max_examples=150, deadline=None)
@given(moving())
def test_somebody_is_in_two_classes_of_values_that_move_only_where_every_assignment_says_so(history: History) -> None:
    for one in compare(history):
        found = set(zip(*(side.tolist() for side in one.pairs), strict=True))
        assert found == certain_pairs(history, one.first, one.second)


@settings(max_examples=150, deadline=None)
@given(truth=series(releases=(3, 3), people=(2, 6)), step=st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
def test_the_maker_and_the_audit_agree_on_who_can_have_moved_where(truth: Series, step: tuple[int, int]) -> None:
    whole = truth.history()
    links = np.arange(len(whole.links)) > 0
    steps = np.where(links[:, None], 0.0, np.array([sorted(step)], np.float64))
    whole = replace(whole, links=links, steps=steps)
    before = replace(whole, releases=(), trajectories=None, value=None)
    for number in range(2):
        before = before.extend(truth.publication(number))
    person = np.flatnonzero(truth.member[2] >= 0)
    if not len(person):
        return
    past = Past((before,), person, (truth.value[person],), np.zeros(len(person), np.bool_))
    lo, hi = truth.boxes[2]
    block = np.zeros(len(person), np.int32)
    frame = ProposedRelease.of(
        past, PastClasses.of(before), truth.member[2][person].astype(np.int32), block, lo=lo, hi=hi
    )
    for release in range(2):
        pair = Pair.of(frame, release, np.ones(1, np.bool_))
        if pair is None or not frame.new[release].all():
            continue
        start = len(before.releases[0]) if release else 0
        near = {(int(pair.earlier[a]) - start, int(pair.later[b])) for a, b in zip(*pair.near, strict=True)}
        looked_at = {(int(a) - start, int(b)) for a in pair.earlier for b in pair.later}
        compatible = set(zip(*(side.tolist() for side in whole.compatible(release, 2)), strict=True))
        assert near == compatible & looked_at


def rules(**age: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", **age},
                "value": {"role": "sensitive"},
            },
            "protect": {"k": 2, "confidence": 0.6, "against": ["insider", "neighbor"]},
            "method": {"name": "merge"},
        }
    )


def release(*rows: tuple[str, str]) -> pa.Table:
    age, value = zip(*rows, strict=True)
    return pa.table({"age": list(age), "value": list(value)})


R1 = release(("[20-29]", "flu"), ("[20-29]", "cold"), ("[50-59]", "gout"), ("[50-59]", "flu"))
R2 = release(("[21-30]", "flu"), ("[21-30]", "cold"), ("[50-60]", "gout"), ("[50-60]", "flu"))


def test_ages_of_a_year_later_tell_who_can_be_whom() -> None:
    history = sq.audit([R1, R2], rules(changes={"by": [0, 1]})).histories[0]
    assert set(zip(*(side.tolist() for side in history.compatible(0, 1)), strict=True)) == {(0, 0), (1, 1)}
    free = sq.audit([R1, R2], rules(changes=True)).histories[0]
    assert len(free.compatible(0, 1)[0]) == 4


@pytest.mark.parametrize("changes", [False, True, {"by": [0, 1]}])
def test_the_same_file_twice_gives_no_finding(changes: Any) -> None:
    policy = rules(changes=changes)
    for against in (["neighbor"], ["all"]):
        assert not sq.audit([R1, R1], policy, against=against).findings


def test_a_value_that_may_move_is_compared_by_what_it_is_worth_not_by_its_place() -> None:
    """With leaves 1, 2, 50, 60 a step of one place is a step of 48 between the second and the third."""
    policy = rules(changes={"by": [0, 1]})
    history = sq.audit([release(*[("2", "a")] * 2, *[("60", "b")] * 2), release(*[("50", "a")] * 2, *[("1", "b")] * 2)],
                       policy).histories[0]  # fmt: skip
    assert len(history.compatible(0, 1)[0]) == 0


def test_dates_move_by_days() -> None:
    policy = sq.Policy.model_validate(
        {
            **rules().model_dump(mode="json", exclude_none=True),
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "date", "changes": {"by": [28, 31]}},
                "value": {"role": "sensitive"},
            },
        }
    )
    days = ["2019-01-01", "2020-01-15", "2020-02-14", "2020-02-20", "2022-01-01"]
    tables = [release(*[(day, "a") for day in days]), release(*[(day, "a") for day in days])]
    history = sq.audit(tables, policy).histories[0]
    pairs = set(zip(*(side.tolist() for side in history.compatible(0, 1)), strict=True))
    assert (1, 2) in pairs
    assert (1, 3) not in pairs
    assert (2, 1) not in pairs


def test_someone_who_moved_too_far_is_refused_in_the_publishers_view_and_in_a_population() -> None:
    policy = rules(changes={"by": [0, 1]})
    with_names = [table.append_column("id", pa.array(list("abcd"))) for table in (R1, R2)]
    assert sq.audit(with_names, policy).tried
    swapped = [with_names[0], R2.append_column("id", pa.array(list("cdab")))]
    with pytest.raises(sq.DataError, match=r"age.*4 people have values that moved further"):
        sq.audit(swapped, policy)
    ages = [[21, 25, 52, 58], [22, 28, 52, 58]]
    people = [pa.table({"id": list("abcd"), "age": given}) for given in ages]
    with pytest.raises(sq.DataError, match=r"age.*1 person has values that moved further"):
        sq.audit([R1, R2], policy, population=people)


def test_a_gap_between_releases_lets_a_value_move_once_for_each() -> None:
    policy = rules(changes={"by": [0, 1]})
    ages = {1: [21, 25, 52, 58], 2: [28, 29, 52, 59], 3: [23, 27, 52, 60]}
    ids = {1: "abcd", 2: "xycd", 3: "abcd"}
    people = [pa.table({"id": list(ids[n]), "age": ages[n]}) for n in ages]
    assert sq.audit([R1, R1, R2], policy, population=people).tried


def test_a_series_takes_ages_that_grow_and_refuses_those_that_jump(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    ages = random.integers(20, 60, 80)
    ids, values = [f"p{n}" for n in range(80)], [("flu", "cold", "gout", "lupus")[n % 4] for n in range(80)]
    policy = rules(range=[0, 99], changes={"by": [0, 1]})
    opened = sq.Series.open(tmp_path / "tiny.ledger", policy, key=Key.of_text("a key for tests only"))
    for year in range(3):
        opened.publish(pa.table({"id": ids, "age": ages, "value": values}), name=f"y{year}")
        ages = ages + random.integers(0, 2, 80)
    jumped = ages.copy()
    jumped[:3] = 90
    with pytest.raises(sq.DataError, match="3 people have moved further since an earlier release") as told:
        opened.plan(pa.table({"id": ids, "age": jumped, "value": values}), name="jumped")
    assert told.value.problems[0].column == "age"
    assert opened.audit().holds


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ({"kind": "category", "changes": {"by": [0, 1]}}, "only numbers and dates move by a step"),
        ({"kind": "number", "changes": {"by": [2, 1]}}, "the least change comes first"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused(attribute: dict[str, Any], message: str) -> None:
    with pytest.raises(sq.PolicyError, match=message):
        rules(**attribute)


def test_a_step_that_rounds_links_whom_it_would_link_exactly() -> None:
    domain = axis(5)
    tenths = replace(domain, leaves=np.array([-9.0, 0.1, 0.2, 0.3, 9.0]))
    truth = Series(np.zeros((1, 1), np.int32), np.zeros(1, np.int32), np.zeros((2, 1), np.int32),
                   ((np.array([[1]], np.int32),) * 2, (np.array([[3]], np.int32),) * 2), 1, (5,))  # fmt: skip
    history = replace(
        truth.history(), domains=(tenths,), links=np.zeros(1, np.bool_), steps=np.array([[0.1 + 0.1, 0.2]])
    )
    assert len(history.compatible(0, 1)[0]) == 1
