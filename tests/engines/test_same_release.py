"""The same table, policy and seed give the same release by DuckDB and by Spark, method by method."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import sequester as sq
from parted import KEY, SEED, begin, files, policy, waves, write
from parted_series import CHURN, Churn, check_as_whole
from sequester.engine import duck, spark
from sequester.ledger import Ledger
from sequester.ledger.parts import is_parted

METHODS = ("pods", "mondrian", "merge", "grow", "cluster", "static", "group")
# What only this method promises: of values that change.
LIFETIME: dict[str, Any] = {
    "attributes": {
        "illness": {"role": "sensitive", "values": "transient", "ordinary": ["flu", "cold", "gout", "lupus"]}
    },
    "protect": {"confidence": None, "inferred": None, "against": ["lifetime"], "lifetime": {"l": 1.2, "releases": 2}},
}
PLANNED = ("content", "input_digest", "checks", "findings", "change", "waiting", "loss", "notes", "pods", "records")


@dataclass(frozen=True, eq=False)
class Told:
    """Everything that two releases say: what was planned, what was written, and what an audit of both finds."""

    plans: list[dict[str, Any]]
    files: dict[str, bytes]
    audit: dict[str, Any]


def publish(folder: Path, method: str, engine: str) -> Told:
    """Two releases of CSV files, the second with people who came and left."""
    changes = LIFETIME if method == "group" else {"attributes": {"note": {"role": "insensitive"}}}
    chosen = policy(method, engine={"name": engine}, **changes)
    series = begin(folder, chosen)
    plans = []
    for number, table in enumerate(waves(), 1):
        note = pa.array([f"n{len(name)}" for name in table["id"].to_pylist()])
        source = write(folder / f"w{number}.csv", table.append_column("note", note))
        plan = series.plan(source, seed=SEED + number)
        plans.append({name: getattr(plan, name) for name in PLANNED})
        # `static` looks at no release before; what an audit finds then must be the same, too.
        series.publish(plan, i_know_this_leaks=method == "static")
    audit = series.audit(k=9, confidence=0.2)
    with Ledger.open(series.place, key=KEY, read_only=True) as ledger:
        assert is_parted(ledger.releases())
        assert ledger.verify(releases=series.folder).holds
    found = {"measures": audit.measures, "findings": len(audit.findings), "tried": audit.tried}
    return Told(plans, files(folder), found)


@functools.cache
def by_duckdb(method: str) -> Told:
    with tempfile.TemporaryDirectory() as folder:
        return publish(Path(folder), method, "duckdb")


@pytest.mark.parametrize("method", METHODS)
def test_two_releases_are_the_same_by_every_engine(method: str, engine: str, tmp_path: Path) -> None:
    told = by_duckdb(method) if engine == "duckdb" else publish(tmp_path, method, engine)
    assert len(told.files) == 2
    assert method == "static" or all(check.holds for plan in told.plans for check in plan["checks"])
    expected = by_duckdb(method)
    assert told.plans == expected.plans
    assert told.files == expected.files
    assert told.audit == expected.audit


def test_rows_in_any_order_and_in_many_tasks_give_the_same_bytes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of 40 rows, brought together by a shuffle."""
    monkeypatch.setattr(spark, "pieces_of", functools.partial(duck.pieces_of, rows=40))
    monkeypatch.setattr(spark, "_TASKS", 3)
    table = waves()[0]
    mixed = table.take(pa.array(np.random.default_rng(7).permutation(table.num_rows)))
    (tmp_path / "parts").mkdir()
    for number in range(10):
        write(tmp_path / "parts" / f"{number}.csv", mixed.slice(number * 30, 30))
    chosen = policy("pods", engine={"name": engine})
    plan = begin(tmp_path / "mixed", chosen).plan(str(tmp_path / "parts" / "*.csv"), name="w1", seed=SEED)
    expected = begin(tmp_path / "one", policy("pods")).plan(table, name="w1", seed=SEED)
    assert plan.parts is not None
    assert (plan.content, plan.input_digest) == (expected.content, expected.input_digest)
    assert [file.digest for file in plan.parts.files] == [file.digest for file in expected.parts.files]


@settings(deadline=None, max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHURN)
def test_series_whose_parts_empty_and_fill_again_are_as_safe_as_the_whole(spark: Any, churn: Churn) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_as_whole(Path(folder), churn, name="spark")


def test_a_series_goes_on_with_another_engine(spark: Any, tmp_path: Path) -> None:
    told = {}
    for first, second in (("duckdb", "spark"), ("spark", "duckdb")):
        folder = tmp_path / first
        for number, (name, table) in enumerate(zip((first, second), waves(), strict=True), 1):
            series: sq.Series = begin(folder, policy("pods", engine={"name": name}))
            series.publish(table, name=f"w{number}", seed=SEED + number)
        told[first] = files(folder)
    assert told["duckdb"] == told["spark"]
