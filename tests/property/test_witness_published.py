"""Series published by pods: what the ledger keeps of them is a witness for what was published; spoiled it is none."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sequester as sq
from podded import KEY, SEED, Panel, rules, state_of
from sequester.attacks.audit import Audit, audit_histories
from sequester.attacks.pods import REFUSED
from sequester.history.seats import Seats
from sequester.ledger.state import State
from sequester.publish.recall import recall, rows_of

GRADED = {"role": "sensitive", "hierarchy": {"Any": {"X": ["a", "b"], "Y": ["c", "d"]}}, "grades": {"a": "high"}}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "ordinary": ({"attributes__value__ordinary": ["a"]}, {}),
    "per value": ({"protect__confidence": {"a": 0.7, "*": 0.5}}, {}),
    "three seats": ({"protect__confidence": 0.34}, {}),
    "two attributes": ({"attributes__other": {"role": "sensitive"}}, {"other": ["x", "y", "z"]}),
    "both together": (
        {"attributes__other": {"role": "sensitive"}, "protect__sensitive": "both"},
        {"other": ["x", "y", "z"]},
    ),
    "a column that stays": ({"attributes__ward": {"role": "insensitive"}}, {"ward": ["x", "y"]}),
    "sets": (
        {"attributes__many": {"role": "sensitive", "kind": "set"}},
        {"many": ["x", "y", "x;y", "z", "w;z", "w"]},
    ),
    "grades": ({"attributes__value": GRADED}, {}),
}


def published(kind: str, seed: int) -> tuple[State, sq.Policy]:
    """A panel of three waves, from the ledger."""
    changes, cells = KINDS[kind]
    policy = rules(**{"protect__inferred": 2, "protect__k": 3, "decoys": 1.0, **changes})
    panel = Panel.random(30, 3, seed=seed, **cells)
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "panel.ledger", policy, key=KEY)
        for number, table in enumerate(panel.tables()):
            series.publish(series.plan(table, name=f"r{number}", seed=SEED + number, everybody_is_new=True))
        return state_of(series), policy


def audited(state: State, policy: sq.Policy, seats: Seats | None) -> Audit:
    histories, _, labels = recall(state, policy, state.domains)
    rows = rows_of(histories, labels, ["insider"])
    return audit_histories(histories, policy, against=["insider"], rows=rows, seats=seats)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_ledger_keeps_is_a_witness_and_agrees_with_the_programs(kind: str) -> None:
    state, policy = published(kind, 6)
    assert state.seats is not None
    with_, without = audited(state, policy, state.seats), audited(state, policy, None)
    assert REFUSED not in with_.notes
    assert with_.holds
    assert without.holds
    assert with_.tried == without.tried
    assert with_.measures["deniability"] >= without.measures["deniability"] - 1e-6


def test_a_spoiled_ledger_is_no_witness_and_everything_is_tried() -> None:
    state, policy = published("plain", 7)
    seats = state.seats
    assert seats is not None
    without = audited(state, policy, None)
    for person in np.flatnonzero(seats.pods[-1] >= 0).tolist():
        last = seats.pods[-1].copy()
        last[person] = last.max() + 1
        found = audited(state, policy, replace(seats, pods=(*seats.pods[:-1], last)))
        assert REFUSED in found.notes
        assert found.measures == without.measures
        assert found.findings == without.findings == ()
