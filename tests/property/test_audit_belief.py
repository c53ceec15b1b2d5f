"""Belief in the audit: whole rows believed as one, decoys left out, and a bound on it as a promise."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from entropy import direct
from seated import Seated, seated
from sequester.attacks.audit import Audit, audit_histories
from sequester.attacks.belief import believe_lineages
from sequester.attacks.solvers.belief import NOISE, believe
from sequester.history.label import WHOLE_ROW, Labels, Question
from series import Series, series

often = settings(max_examples=60, deadline=None)
# Each attribute alone is deniable, and so is their combination; whole rows make everybody's s certain
# (docs/theory.md, section 9).
ROWS = ["a z1", "a z2", "b z3", "b z4", "b z7", "b z8", "a z5", "a z6"]
LINKED = [[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1, 4, 5], [2, 3, 6, 7]]]


def tables(releases: list[list[list[int]]], rows: list[str]) -> list[pa.Table]:
    def row(person: int, place: int) -> dict[str, str]:
        cells = dict(zip("sz", rows[person].split(), strict=False))
        return {"id": str(person), "age": f"[{place}0-{place}9]", **cells}

    return [
        pa.Table.from_pylist([row(person, place) for place, people in enumerate(release, 1) for person in people])
        for release in releases
    ]


def policy(**protect: Any) -> sq.Policy:
    attributes = {
        "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99], "changes": True},
        "s": {"role": "sensitive"},
        **({"z": {"role": "insensitive"}} if protect.pop("z", False) else {}),
    }
    promised = {"k": 2, "confidence": 0.5, **protect}
    return sq.Policy.model_validate(
        {"version": 1, "series": "s", "person": "id", "attributes": attributes, "protect": promised}
    )


def test_whole_rows_are_believed_as_one() -> None:
    found = sq.audit(tables(LINKED, ROWS), policy(z=True), belief=True)
    alone, whole = found.belief
    assert (alone.attribute, whole.attribute) == ("s", WHOLE_ROW)
    assert alone.spread.above == (0.0, 0.0, 0.0)
    assert whole.spread.above == (1.0, 1.0, 1.0)
    assert whole.spread.right == 1.0


def test_nothing_is_fitted_that_was_not_asked_for() -> None:
    found = sq.audit(tables(LINKED, ROWS), policy(z=True))
    assert found.belief == ()
    assert "belief" not in found.tried
    assert "belief" not in found.to_dict()


def test_a_promised_belief_is_tried_and_broken_with_a_story() -> None:
    found = sq.audit(tables(LINKED, ROWS), policy(z=True, belief=0.7))
    broken = [finding for finding in found.findings if finding.attack == "belief"]
    assert found.measures["belief"] == pytest.approx(1.0)
    assert not found.holds
    assert {person for finding in broken for person in finding.people} == set("01234567")
    for finding in broken:
        assert (finding.adversary, finding.required, finding.attribute) == ("insider", 0.7, "s")
        assert {ROWS[int(person)][0] for person in finding.people} == {finding.value}
        story = found.explain(found.findings.index(finding) + 1)
        assert "most even one" in story
    assert json.loads(found.to_json())["belief"][1]["above"]["0.9"] == 1.0


def test_what_holds_has_no_findings_of_belief() -> None:
    found = sq.audit(tables(LINKED, [row[0] for row in ROWS]), policy(belief=0.5))
    assert found.holds
    assert found.measures["belief"] == pytest.approx(0.5, abs=NOISE)
    assert found.belief[0].resilience == {}


@often
@given(series(people=(2, 6)), st.sampled_from([0.34, 0.5, 0.6, 0.75, 0.9]))
def test_findings_are_those_above_the_limit(one: Series, limit: float) -> None:
    history = one.history(k=1)
    found = audit_histories([history], policy(belief=limit), against=["insider"])
    belief = believe(history)
    exposed = {p for finding in found.findings if finding.attack == "belief" for p in finding.people}
    assert exposed == set(np.flatnonzero(belief.told & (belief.largest > limit + NOISE)).tolist())
    for finding in found.findings:
        if finding.attack == "belief":
            assert finding.observed == pytest.approx(max(belief.largest[list(finding.people)]), abs=1e-5)
            assert len({tuple(one.member[:, person].tolist()) for person in finding.people}) == 1


@often
@given(series(people=(2, 5), values=(4, 4), releases=(1, 2)))
def test_a_value_is_believed_by_all_rows_that_have_it(one: Series) -> None:
    # Labels 0 to 3 are rows (a, x), (a, y), (b, x), (b, y): asked are a and y.
    asked = (
        Question("s", "a", Fraction(1, 2), np.array([0, 1], np.int32)),
        Question("t", "y", Fraction(1, 2), np.array([1, 3], np.int32)),
    )
    labels = Labels(("row",), np.arange(4, dtype=np.int32)[None], (tuple("abcd"),), one.value, asked)
    found = believe(one.history(), labels=labels, rounds=100_000, tolerance=1e-10)
    exact = direct(one, [False] * len(one.value))
    has = np.array([[1, 0], [1, 1], [0, 0], [0, 1]])
    for person in np.flatnonzero(found.told).tolist():
        chance = exact[person] @ has
        true = chance[has[one.value[person]] > 0]
        assert found.largest[person] == pytest.approx(chance.max(), abs=2e-3)
        assert found.truth is not None
        assert found.truth[person] == pytest.approx(true.max(initial=0), abs=2e-3)


def audited(case: Seated, **more: Any) -> Audit:
    return case.audit(seats=True, belief=True, **more)


@often
@given(st.integers(0, 2**32))
def test_decoys_are_not_counted_and_pods_leave_the_share_of_the_seats(seed: int) -> None:
    case = seated(Random(seed))
    people = {person for release in case.releases for one in release for person in one} - case.decoys
    histories, rows = case.read()
    for one in audited(case).belief:
        assert one.spread.people == len(people)
        assert list(one.resilience) == [0.0, 0.05, 0.2]
        nobody = one.resilience[0.0]
        if not case.proves():
            continue
        assert nobody.lineage is not None
        assert nobody.lineage.most <= float(case.bound) + 1e-9
        history = next(history for history in histories if history.attribute in (one.attribute, histories[0].attribute))
        labels = None if rows is None or one.attribute != WHOLE_ROW else rows.labels
        counted = history if labels is None else replace(history, value=labels.of)
        exact = believe_lineages(counted, case.seats(history.people), labels=labels)
        chances = shares(case)
        for number, person in enumerate(history.people):
            if person in people and (labels is not None or len(case.columns) == 1):
                assert exact.largest[number] == pytest.approx(chances[person])


def shares(case: Seated) -> dict[str, float]:
    """Everybody's largest share of seats of her type with one bounded answer, from the definition."""
    found = {}
    for person, kind in case.type.items():
        seats = {case.seat[other]: case.label[other] for other, type_ in case.type.items() if type_ == kind}
        answers = [answer for label in seats.values() for answer in case.answers(label)]
        found[person] = max((answers.count(answer) / len(seats) for answer in answers), default=0.0)
    return found
