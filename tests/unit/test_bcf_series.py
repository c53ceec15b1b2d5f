"""A series by specialization from Python: options, who waits, what follows other methods, and starting over."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from policies import changed
from sequester.attacks import intersection
from sequester.attacks.solvers.comparison import compare
from sequester.ledger import Key
from sequester.methods.specialize import method as declared
from sequester.methods.specialize.refine import Gains, Offer
from ways import backward, cross, forward

KEY = Key.of_text("a key for tests only")
DRAW = np.random.default_rng(11)
COUNT = 900
AGES = DRAW.integers(0, 60, COUNT)
PLACES = DRAW.choice(["north", "south", "east", "west"], COUNT)
VALUES = DRAW.choice(["flu", "cold", "asthma", "gout"], COUNT)
DRUGS = DRAW.choice(["x", "y", "z"], COUNT)


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "clinic",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 59]},
            "place": {
                "role": "quasi-identifier",
                "hierarchy": {"all": [{"n": ["north", "east"]}, {"s": ["south", "west"]}]},
            },
            "value": {"role": "sensitive"},
            "drug": {"role": "sensitive"},
            "ward": {"role": "insensitive"},
        },
        "protect": {"k": 5, "against": ["neighbor"]},
        "method": {"name": "specialize"},
    }
    return changed(raw, **changes)


def people(*numbers: range) -> pa.Table:
    chosen = [n for part in numbers for n in part]
    return pa.table(
        {
            "id": [f"p{n}" for n in chosen],
            "age": AGES[chosen],
            "place": PLACES[chosen],
            "value": VALUES[chosen],
            "drug": DRUGS[chosen],
            "ward": [f"w{n % 3}" for n in chosen],
        }
    )


@pytest.fixture(autouse=True)
def only_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the cuts themselves, also where merge would lose less and be published."""
    monkeypatch.setattr(declared, "METHOD", replace(declared.METHOD, merges=lambda options: False))


def opened(folder: Path, **changes: Any) -> sq.Series:
    return sq.Series.open(folder / "clinic.ledger", rules(**changes), key=KEY)


def is_cut(plan: sq.Plan) -> bool:
    """Whether every attribute has one published value for every code."""
    assert plan.candidate is not None
    classes = plan.candidate.classes
    for lo, hi in zip(classes.lo, classes.hi, strict=True):
        values = sorted(set(zip(lo.tolist(), hi.tolist(), strict=True)))
        if any(one[1] >= other[0] for one, other in pairwise(values)):
            return False
    return True


OPTIONS: list[dict[str, Any]] = [
    {},
    {"score": "discernibility"},
    {"score": "loss-per-anonymity", "loss": "precision"},
    {"score": "information-gain", "label": "ward"},
    {"score": "information-gain", "label": "value"},
    {"semantics": "printed"},
    {"certificate": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())) or "default")
def test_three_releases_are_cuts_and_hold(tmp_path: Path, options: dict[str, Any]) -> None:
    series = opened(tmp_path, method={"name": "specialize", **options})
    for number, count in enumerate((300, 600, 900)):
        plan = series.plan(people(range(count)), name=f"r{number}", seed=2**63 + number)
        assert plan.holds
        assert is_cut(plan)
        assert plan.classes > 1
        assert all(note.startswith("starting over") for note in plan.notes)
        if number:
            assert {check.attack for check in plan.checks} >= {"forward", "cross", "backward"}
        series.publish(plan)
    assert series.audit(against=["neighbor", "outsider"]).holds
    if options.get("certificate"):
        assert series.audit(against=["insider"]).holds


def test_several_sensitive_attributes_are_protected_as_one_joint_value(tmp_path: Path) -> None:
    """Sen3 of the paper: rows are told apart by all of them, so fewer can be buddies."""
    loose, joint = opened(tmp_path), opened(_folder(tmp_path), protect__sensitive="joint")
    classes = []
    for series in (loose, joint):
        series.publish(people(range(450)), name="first", seed=2**63 + 1)
        plan = series.plan(people(range(900)), name="second", seed=2**63 + 1)
        assert plan.holds
        series.publish(plan)
        classes.append(plan.classes)
        assert series.audit().holds
    assert plan.candidate is not None
    (history,) = plan.candidate.past.histories
    assert len(history.values) == 12
    assert classes[1] <= classes[0]


def _folder(path: Path) -> Path:
    made = path / "other"
    made.mkdir()
    return made


def test_fewer_than_k_newcomers_wait(tmp_path: Path) -> None:
    series = opened(tmp_path)
    series.publish(people(range(300)), name="first", seed=2**63 + 1)
    plan = series.plan(people(range(304)), name="second", seed=2**63 + 1)
    assert (plan.waiting.held, plan.records, plan.holds) == (4, 300, True)
    with pytest.raises(sq.GuaranteeError, match="Nothing was published"):
        opened(_folder(tmp_path), infeasible="refuse", method={"name": "specialize"}).publish(
            people(range(3)), name="a"
        )


def test_the_same_people_can_be_published_again_for_another_purpose(tmp_path: Path) -> None:
    series = opened(tmp_path)
    series.publish(people(range(300)), name="first", seed=2**63 + 1)
    told = sq.Series.open(
        series.place, rules(method={"name": "specialize", "score": "information-gain", "label": "drug"}), key=KEY
    )
    plan = told.plan(people(range(300)), name="second", seed=2**63 + 1)
    assert plan.holds
    told.publish(plan)
    assert told.audit().holds


def test_people_who_left_and_are_published_on_keep_their_box(tmp_path: Path) -> None:
    series = opened(tmp_path)
    series.publish(people(range(300)), name="first", seed=2**63 + 1)
    plan = series.plan(people(range(2, 600)), name="second", seed=2**63 + 1)
    assert plan.holds
    assert plan.waiting.retained == 2
    assert is_cut(plan)


@pytest.mark.parametrize("first", ["mondrian", "full-domain"])
@pytest.mark.parametrize("against", [["neighbor"], ["insider", "neighbor"]])
def test_it_may_follow_releases_of_other_methods(tmp_path: Path, first: str, against: list[str]) -> None:
    series = opened(tmp_path, method={"name": first}, protect__against=against)
    series.publish(people(range(300)), name="first", seed=2**63 + 1)
    after = opened(tmp_path, protect__against=against)
    plan = after.plan(people(range(600)), name="second", seed=2**63 + 1)
    assert plan.holds
    after.publish(plan)
    assert after.audit().holds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "information-gain"}, "must name a sensitive or insensitive column"),
        ({"score": "information-gain", "label": "age"}, "must name a sensitive or insensitive column"),
        ({"label": "ward"}, "only for score information-gain"),
    ],
)
def test_a_label_is_needed_for_information_gain_and_for_nothing_else(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    first = opened(tmp_path, method={"name": "mondrian"})
    first.publish(people(range(300)), name="first", seed=2**63 + 1)
    series = opened(tmp_path, method={"name": "specialize", **options})
    with pytest.raises(sq.PolicyError, match=message):
        series.plan(people(range(600)), name="second", seed=2**63 + 1)


def test_printed_targets_need_earlier_releases_by_cuts(tmp_path: Path) -> None:
    opened(tmp_path, method={"name": "mondrian"}).publish(people(range(300)), name="first", seed=2**63 + 1)
    series = opened(tmp_path, method={"name": "specialize", "semantics": "printed"})
    with pytest.raises(sq.PolicyError, match="printed needs earlier releases by cuts"):
        series.plan(people(range(600)), name="second", seed=2**63 + 1)


def test_numbers_without_levels_are_cut_where_they_were_before(tmp_path: Path) -> None:
    series = opened(tmp_path)
    series.publish(people(range(300)), name="first", seed=2**63 + 1)
    plan = series.plan(people(range(900)), name="second", seed=2**63 + 1)
    assert plan.candidate is not None
    before, now = plan.candidate.past.first.releases[0], plan.candidate.classes
    olds = set(zip(before.lo[0].tolist(), before.hi[0].tolist(), strict=True))
    for lo, hi in zip(now.lo[0].tolist(), now.hi[0].tolist(), strict=True):
        for first, last in olds:
            inside, outside = (first <= lo and hi <= last), (lo <= first and last <= hi)
            assert inside or outside or last < lo or hi < first


def test_what_remains_after_excluding_cracked_rows_keeps_the_criteria(tmp_path: Path) -> None:
    """Section 7.2, counted by the audit: what is left of every pair of releases is diverse, too."""
    protect = {
        "k": 5, "against": ["neighbor"], "confidence": 0.6, "diversity": {"kind": "entropy", "l": 2.5}, "alpha": 0.55,
    }  # fmt: skip
    series = opened(tmp_path, protect=protect)
    for number, count in enumerate((300, 600, 900)):
        series.publish(people(range(count)), name=f"r{number}", seed=2**63 + number)
    plan = series.plan(people(range(900)), name="again", seed=2**63 + 1)
    assert plan.candidate is not None
    for history in plan.candidate.audit.histories:
        assert [attack.find(history).findings for attack in (forward, cross, backward, intersection)] == [[]] * 4
        for comparison in compare(history):
            for rows in (comparison.remaining, comparison.unforced):
                if not len(rows):
                    continue
                share = rows / rows.sum(axis=1, keepdims=True)
                assert share.max() <= 0.55
                entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
                assert (entropy >= np.log(2.5) - 1e-9).all()


def test_information_gain_is_what_the_children_tell_about_the_label() -> None:
    codes, label = np.array([0, 0, 1, 1, 2, 2], np.int32), np.array([0, 0, 1, 1, 0, 1], np.int32)
    gains = Gains.of(codes, 3, label)
    assert gains.gain(Offer(0, 0, 2, np.array([0, 1, 2]))) == pytest.approx(6 - 2)
    assert gains.gain(Offer(0, 0, 1, np.array([0, 1]))) == pytest.approx(4)
    assert gains.gain(Offer(0, 0, 2, np.array([0, 2]))) == pytest.approx(0)


def test_starting_over_is_mentioned_only_where_newcomers_would_lose_much_less(tmp_path: Path) -> None:
    series = opened(tmp_path, protect__k=40)
    series.publish(people(range(40)), name="first", seed=2**63 + 1)
    (note,) = series.plan(people(range(900)), name="second", seed=2**63 + 1).notes
    told = re.match(r"starting over: the 860 newcomers lose (\d+)% here and would lose (\d+)% in a new series", note)
    assert told is not None
    here, alone = map(int, told.groups())
    assert 0 < alone <= 0.8 * here <= 80
    few = series.plan(people(range(75)), name="other", seed=2**63 + 1).notes
    assert not any(note.startswith("starting over") for note in few), "so few cannot begin a series of their own"
