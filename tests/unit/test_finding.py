"""Findings: a witness that is told when it is read is the same as a plain one."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

from sequester.attacks import deniability
from sequester.attacks.finding import Finding, LazyWitness
from series import of_partitions

PLAIN = {"added": [{"release": 1, "class": 2}], "at_least": 3}


def test_a_witness_is_told_when_it_is_first_read_and_only_once() -> None:
    calls = []

    def tell() -> dict[str, Any]:
        calls.append(1)
        return dict(PLAIN)

    told = LazyWitness(tell)
    assert calls == []
    assert (list(told), len(told), told["at_least"], "wider" in told) == (["added", "at_least"], 2, 3, False)
    assert calls == [1]


def test_a_told_witness_equals_a_plain_one() -> None:
    plain = Finding("a", "insider", (1, 2), 0.5, 0.7, witness=PLAIN)
    later = replace(plain, witness=LazyWitness(lambda: dict(PLAIN)))
    assert later == plain
    assert plain == later
    assert later != replace(plain, witness=PLAIN | {"at_least": 4})
    assert json.dumps(later.to_dict()) == json.dumps(plain.to_dict())


def test_a_finding_with_a_told_witness_can_be_stored_and_shows_nothing_by_itself() -> None:
    series = of_partitions([[[0, 1, 2], [3, 4, 5]], [[0, 1, 3], [2, 4, 5]]], "aabbab")
    findings = deniability.find(series.history(k=1)).findings
    assert findings
    for finding in findings:
        shown = repr(finding.witness)
        assert "added" not in shown
        again = pickle.loads(pickle.dumps(finding))
        assert again == finding
        assert type(again.witness) is dict
