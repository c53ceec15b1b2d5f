"""Whatever the method, a later release of a series loses no more than Byun's merge of the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.errors import GuaranteeError
from sequester.ledger import Key
from sequester.methods.classes import Classes
from sequester.publish.remedy import beside_merge

KEY = Key.of_text("a key for tests only")
SEED = 1 << 63
ONE = Classes(np.zeros(2, np.int32), np.zeros((1, 1), np.int32), np.ones((1, 1), np.int32))


def rules(method: str, **protect: Any) -> sq.Policy:
    number = {"role": "quasi-identifier", "kind": "number", "range": [0, 31], "levels": [4, 16]}
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "tiny",
            "person": "id",
            "attributes": {"a": number, "b": number, "value": {"role": "sensitive"}},
            "protect": protect,
            "method": {"name": method},
        }
    )


def second(folder: Path, policy: sq.Policy, codes: np.ndarray, value: np.ndarray, first: Any, then: Any) -> sq.Plan:
    def people(chosen: Any) -> pa.Table:
        ids = np.asarray(chosen)
        return pa.table(
            {"id": ids.astype(str), "a": codes[0, ids], "b": codes[1, ids], "value": value[ids].astype(str)}
        )

    series = sq.Series.open(folder / "tiny.ledger", policy, key=KEY)
    series.publish(people(first), name="first", seed=SEED)
    return series.plan(people(then), name="second", seed=SEED)


def merged(plan: sq.Plan, method: str) -> None:
    assert plan.loss["release"]["ail"] == plan.loss["merge"]["ail"]
    assert any("(merge)" in note and method in note for note in plan.notes)
    assert plan.holds


def test_full_domain_publishes_the_merge_where_that_loses_less(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    codes, value = draw.integers(0, 32, (2, 48)), draw.integers(0, 4, 48)
    plan = second(tmp_path, rules("full-domain", k=3, confidence=0.6), codes, value, range(24), range(48))
    merged(plan, "full-domain")


def test_cluster_publishes_the_merge_where_that_loses_less(tmp_path: Path) -> None:
    # Five of 25 people leave while 18 come.
    draw = np.random.default_rng(42)
    codes, value = draw.integers(0, 32, (2, 49)), draw.integers(0, 5, 49)
    left = draw.choice(25, 5, replace=False)
    policy = rules("cluster", k=5, confidence=0.5, against=["insider", "neighbor"])
    plan = second(tmp_path, policy, codes, value, range(25), np.setdiff1d(np.arange(43), left))
    merged(plan, "cluster")


@pytest.mark.parametrize("method", ["mondrian", "cluster", "full-domain", "specialize", "grow"])
def test_no_method_loses_more_than_merge(tmp_path: Path, method: str) -> None:
    draw = np.random.default_rng(3)
    codes, value = draw.integers(0, 32, (2, 60)), draw.integers(0, 4, 60)
    plan = second(tmp_path, rules(method, k=3, confidence=0.6), codes, value, range(30), range(60))
    assert plan.loss["release"]["ail"] <= plan.loss["merge"]["ail"]


def refuse() -> Classes:
    raise GuaranteeError("no classes", guarantee="series")


def test_what_one_of_the_two_refuses_the_other_may_still_make() -> None:
    assert beside_merge(refuse, lambda: ONE) == (None, ONE)
    assert beside_merge(lambda: ONE, refuse) == (ONE, None)
    with pytest.raises(GuaranteeError, match="no classes"):
        beside_merge(refuse, refuse)
