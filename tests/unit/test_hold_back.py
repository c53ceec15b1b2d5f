"""With `hold-back` there is always a next release: at worst the old people in their old classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from ledgers import KEY

AGE = {"role": "quasi-identifier", "kind": "number", "range": [0, 9], "levels": [2, 4]}
Row = tuple[str, int, str]


def table(rows: list[Row]) -> pa.Table:
    return pa.table(dict(zip(("id", "age", "value"), map(list, zip(*rows, strict=True)), strict=True)))


def series(folder: Path, value: dict[str, Any], **policy: Any) -> sq.Series:
    rules = {
        "version": 1,
        "series": "tiny",
        "person": "id",
        "attributes": {"age": AGE, "value": {"role": "sensitive", **value}},
        **policy,
    }
    return sq.Series.open(folder / "tiny.ledger", sq.Policy.model_validate(rules), key=KEY)


@pytest.mark.parametrize("method", ["mondrian", "merge", "full-domain", "specialize", "cluster", "grow"])
def test_one_who_left_is_published_on_in_a_box_that_covers_hers_against_an_outsider(
    tmp_path: Path, method: str
) -> None:
    protect = {"k": 2, "confidence": 0.6, "against": ["outsider"]}
    tiny = series(tmp_path, {}, protect=protect, method={"name": method})
    tiny.publish(table([("a", 6, "c"), ("b", 5, "d")]), name="first", seed=2**63 + 1)
    plan = tiny.plan(table([("b", 5, "d")]), name="second", seed=2**63 + 1)
    assert (plan.records, plan.waiting.retained, plan.holds) == (2, 1, True)


def some(count: int, *, first: int = 0) -> list[Row]:
    return [(f"p{n}", n % 10, "abcdefgh"[n % 8]) for n in range(first, count)]


def changing(folder: Path) -> sq.Series:
    lifetime = {"l": 2, "strategy": "constant-ratio", "releases": 3}
    protect = {"k": 2, "confidence": 0.5, "lifetime": lifetime, "against": ["insider", "lifetime"]}
    value = {"values": "transient", "permanent": ["H"]}
    return series(folder, value, protect=protect, method={"name": "group"})


def test_somebody_may_leave_before_anybody_has_a_value_that_stays(tmp_path: Path) -> None:
    tiny = changing(tmp_path)
    tiny.publish(table(some(16)), name="first", seed=2**63 + 1)
    plan = tiny.plan(table(some(16, first=1)), name="second", seed=2**63 + 1)
    assert (plan.records, plan.waiting.retained) == (16, 1)


def test_values_that_stay_are_guarded_before_anybody_has_one(tmp_path: Path) -> None:
    tiny = changing(tmp_path)
    tiny.publish(table(some(16)), name="first", seed=2**63 + 1)
    newcomers = [(f"n{n}", n, "Habcd"[n % 5]) for n in range(10)]
    plan = tiny.plan(table([*some(16), *newcomers]), name="second", seed=2**63 + 1)
    assert (plan.records, plan.waiting.held, plan.holds) == (26, 0, True)
    assert {"difference", "tracing"} <= {check.attack for check in plan.checks}


@pytest.mark.parametrize("semantics", ["realised", "printed"])
def test_cuts_go_through_when_nobody_comes_or_goes(tmp_path: Path, semantics: str) -> None:
    method = {"name": "specialize", "semantics": semantics}
    tiny = series(tmp_path, {}, protect={"k": 2, "confidence": 0.5, "against": ["neighbor"]}, method=method)
    tiny.publish(table(some(16)), name="first", seed=2**63 + 1)
    plan = tiny.plan(table([*some(16), ("n", 1, "a")]), name="second", seed=2**63 + 1)
    assert (plan.records, plan.waiting.held, plan.holds) == (16, 1, True)
    tiny.publish(plan)
    plan = tiny.plan(table(some(16, first=1)), name="third", seed=2**63 + 1)
    assert (plan.records, plan.waiting.retained, plan.holds) == (16, 1, True)
