"""A series that promises less of what is inferred than of a class, from the policy to the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.ledger import Key
from sequester.publish.series import Series

KEY = Key.of_text("a key for tests only")
METHODS = ("mondrian", "merge", "grow", "full-domain", "specialize", "cluster")


def policy(method: str, **protect: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 39], "levels": [10, 20]},
                "value": {"role": "sensitive"},
            },
            "protect": {"k": 5, "confidence": 0.5, **protect},
            "method": {"name": method},
        }
    )


def table(people: range) -> pa.Table:
    ages = np.random.default_rng(3).integers(0, 40, 200)
    return pa.table(
        {"id": [f"p{n}" for n in people], "age": ages[list(people)], "value": ["abcde"[n % 5] for n in people]}
    )


@pytest.mark.parametrize("method", METHODS)
def test_few_newcomers_are_published_at_once_where_few_may_be_inferred(method: str, tmp_path: Path) -> None:
    waiting = {}
    for inferred in (None, 2):
        (tmp_path / f"{inferred}").mkdir()
        series = Series.open(tmp_path / f"{inferred}" / "s.ledger", policy(method, inferred=inferred), key=KEY)
        series.publish(table(range(40)), name="one", seed=2**63 + 1)
        plan = series.plan(table(range(43)), name="two", seed=2**63 + 2)
        waiting[inferred] = plan.waiting.held
        assert plan.holds
        required = {check.attack: check.required for check in plan.checks}
        assert (required["k"], required["difference"]) == (5, 5 if inferred is None else 2)
        series.publish(plan)
        assert series.audit().holds
    assert waiting == {None: 3, 2: 0}


@pytest.mark.parametrize("method", ["mondrian", "merge", "cluster"])
def test_people_who_leave_cost_less_where_few_may_be_inferred(method: str, tmp_path: Path) -> None:
    loss = {}
    for inferred in (None, 2):
        (tmp_path / f"{inferred}").mkdir()
        series = Series.open(tmp_path / f"{inferred}" / "s.ledger", policy(method, inferred=inferred), key=KEY)
        series.publish(table(range(60)), name="one", seed=2**63 + 1)
        release = series.publish(table(range(10, 80)), name="two", seed=2**63 + 2)
        loss[inferred] = release.loss["ail"]
        assert series.audit().holds
    assert loss[2] <= loss[None]


def test_what_is_inferred_is_fixed_for_a_series(tmp_path: Path) -> None:
    series = Series.open(tmp_path / "s.ledger", policy("mondrian", inferred=3), key=KEY)
    series.publish(table(range(40)), name="one", seed=2**63 + 1)
    with pytest.raises(sq.PolicyError, match=r"protect\.inferred"):
        Series.open(tmp_path / "s.ledger", policy("mondrian", inferred=2), key=KEY)
