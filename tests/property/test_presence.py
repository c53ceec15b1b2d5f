"""Who is in a release says nothing about values: of newcomers, people who return and leavers, all move or nobody."""

from __future__ import annotations

import tempfile
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sequester as sq
from ledgers import KEY
from sequester.errors import GuaranteeError
from sequester.publish.plan import Plan

Table = dict[int, str]


def policy(method: str, infeasible: str) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 9], "levels": [2, 4]},
                "value": {"role": "sensitive"},
            },
            "protect": {"k": 2, "confidence": 0.5},
            "method": {"name": method},
            "infeasible": infeasible,
        }
    )


def table(people: Table) -> pa.Table:
    return pa.table(
        {"id": [f"p{n}" for n in people], "age": [n * 3 % 10 for n in people], "value": list(people.values())}
    )


def present(plan: Plan) -> set[int]:
    """Numbers of everybody who is published, by the publisher's own list."""
    assert plan.candidate is not None
    return set(plan.candidate.past.person.tolist())


@st.composite
def stories(draw: st.DrawFn) -> list[Table]:
    people = {n: draw(st.sampled_from("abc")) for n in range(draw(st.integers(4, 12)))}
    times = [draw(st.sets(st.sampled_from(sorted(people)), min_size=2)) for _ in range(3)]
    return [{n: people[n] for n in sorted(time)} for time in times]


@pytest.mark.parametrize("infeasible", ["hold-back", "suppress"])
@pytest.mark.parametrize("method", ["merge", "mondrian", "specialize"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_of_each_kind_all_move_or_nobody(method: str, infeasible: str, story: list[Table]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "tiny.ledger", policy(method, infeasible), key=KEY)
        for time, people in enumerate(story):
            try:
                plan = series.plan(table(people), name=f"r{time}", seed=2**63 + time, everybody_is_new=True)
            except GuaranteeError:
                continue
            made = plan.candidate
            assert made is not None
            census, here = made.census, set(made.roster.rows.tolist())
            # Whoever was published with somebody whose going cannot be hidden is left out, whatever her value.
            tied = set(census.component[census.leavers].tolist()) if len(made.roster.left_out) else set()
            back = [row for row in census.returners.tolist() if census.component[census.number[row]] not in tied]
            for kind in (census.newcomers.tolist(), back):
                assert len({row in here for row in kind}) <= 1
            assert infeasible == "suppress" or not len(made.roster.left_out)
            kept = {person in set(made.roster.retained.tolist()) for person in census.leavers.tolist()}
            assert len(kept) <= 1
            assert not kept or kept == {False} or infeasible == "hold-back"
            series.publish(plan)
        assert not series.releases() or series.audit().holds


def test_whoever_of_the_newcomers_has_the_frequent_value_the_same_people_wait(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "tiny.ledger", policy("mondrian", "hold-back"), key=KEY)
    old = {n: "abcd"[n % 4] for n in range(8)}
    series.publish(table(old), name="first", seed=2**63 + 1)
    for values, waits in (("aaab", True), ("aabc", False)):
        found = set()
        for order in sorted(set(permutations(values))):
            plan = series.plan(table({**old, **dict(enumerate(order, start=8))}), name="second", seed=2**63 + 1)
            found.add((plan.waiting.held, len(present(plan))))
        assert found == {(4, 8) if waits else (0, 12)}


def test_suppressing_leaves_all_newcomers_out_and_all_that_leavers_are_tied_to(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "tiny.ledger", policy("merge", "suppress"), key=KEY)
    old = {n: "abcd"[n % 4] for n in range(8)}
    series.publish(table(old), name="first", seed=2**63 + 1)
    tied = series.plan(table(old), name="second", seed=2**63 + 1).candidate
    assert tied is not None
    assert tied.census is not None
    component = tied.census.component
    gone = {n: value for n, value in old.items() if n != 0}
    plan = series.plan(table({**gone, 8: "a"}), name="second", seed=2**63 + 1)
    assert present(plan) == {n for n in gone if component[n] != component[0]}
    assert plan.waiting.left_out == 1 + sum(component[n] == component[0] for n in gone)
    assert "everybody they were ever published with" in plan.notes[-1]
