"""A whole release of a series: read, recognise, make, audit, price and publish, with everything published before."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import sequester as sq
from benchmarks import adult
from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.ledger import Key, Ledger, before, chain, ledger

KEY = Key.of_text("a key for benchmarks only")
MILLION = 1_000_000


def run() -> list[Figure]:
    """The sixth release of 30,000 records of Adult, and the second of a million synthetic records."""
    against = ["insider", "neighbor"]
    taken, plan = _last(_adult(), [5_000 * step for step in range(1, 7)], k=5, confidence=0.7, against=against)
    with _clocked() as trust:
        slow, large = _last(
            _synthetic(), [MILLION * 8 // 10, MILLION], clock=trust, k=10, confidence=0.5, against=["insider"]
        )
    share = sum(trust.values()) / slow
    parts = ", ".join(f"{name} {taken:.2f} s" for name, taken in trust.items())
    return [
        Figure("30,000 rows of Adult, five releases before", taken, "s", at_most=5.0, note=_loss(plan)),
        Figure("1,000,000 rows, one release before", slow, "s", at_most=180.0, note=_loss(large)),
        Figure("of that, making sure of ledger, folders and head", share, "", at_most=0.1, note=parts),
    ]


@contextlib.contextmanager
def _clocked() -> Iterator[dict[str, float]]:
    """The seconds spent on what a release is built upon: digests of rows, the chain, the folders, the head."""
    taken: dict[str, float] = {}

    def watch(owner: Any, name: str) -> Any:
        function = getattr(owner, name)
        taken[name] = 0.0

        def timed(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                taken[name] += time.perf_counter() - start

        return mock.patch.object(owner, name, timed)

    with (
        watch(chain, "of_table"),
        watch(ledger, "chained"),
        watch(Ledger, "troubles"),
        watch(Ledger, "_remember"),
        watch(before, "keep"),
    ):
        yield taken


def _last(
    table: pa.Table, sizes: list[int], clock: dict[str, float] | None = None, **protect: Any
) -> tuple[float, sq.Plan]:
    """The time of the last release of these sizes, with its plan; the clock counts for that one alone."""
    names = [name for name in table.column_names if name not in ("id", adult.SENSITIVE)]
    kinds = {name: "category" if pa.types.is_string(table.schema.field(name).type) else "number" for name in names}
    attributes = {name: {"role": "quasi-identifier", "kind": kinds[name]} for name in names}
    policy = sq.Policy.model_validate(
        {
            "version": 1,
            "series": "scale",
            "person": "id",
            "attributes": {**attributes, adult.SENSITIVE: {"role": "sensitive"}},
            "protect": protect,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        series = sq.Series.open(Path(folder) / "scale.ledger", policy, key=KEY)
        for size in sizes:
            if clock is not None:
                clock.update(dict.fromkeys(clock, 0.0))
            taken, plan = seconds(lambda: _publish(series, table.slice(0, size), name=str(size)))  # noqa: B023 - called at once
    return taken, plan


def _publish(series: sq.Series, table: pa.Table, *, name: str) -> sq.Plan:
    plan = series.plan(table, name=name, seed=2**63 + 1)
    series.publish(plan)
    return plan


def _loss(plan: sq.Plan) -> str:
    return ", ".join(f"{name} {losses['ail']:.3f}" for name, losses in plan.loss.items())


def _adult() -> pa.Table:
    columns = adult.read_columns()
    order = pa.array(np.random.default_rng(1).permutation(30_162)[:30_000])
    table = pa.table({name: pa.array(columns[name]).take(order) for name in (*adult.BYUN, adult.SENSITIVE)})
    table = table.set_column(table.column_names.index("age"), "age", table["age"].cast(pa.int64()))
    return table.append_column("id", pa.array(range(table.num_rows)))


def _synthetic() -> pa.Table:
    random = np.random.default_rng(0)
    sizes = (100, 20, 50, 8, 4, 2, 30, 10)
    columns = {f"q{place}": random.integers(0, size, MILLION) for place, size in enumerate(sizes)}
    values = pa.array([f"v{value}" for value in range(14)]).take(pa.array(random.integers(0, 14, MILLION)))
    return pa.table({"id": np.arange(MILLION), **columns, adult.SENSITIVE: values})
