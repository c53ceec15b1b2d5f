"""Mondrian on up to ten million records against one DuckDB GROUP BY over the same columns of the same table."""

from __future__ import annotations

import math
import os

import duckdb
import pyarrow as pa

from benchmarks import synthetic
from benchmarks.figures import Figure
from benchmarks.timing import medians
from sequester.methods.mondrian.cut import mondrian

K = 10
REPEATS = {100_000: 9, 1_000_000: 5, 10_000_000: 3}
MOST = 5


def run() -> list[Figure]:
    """Times at every size with k alone and with a confidence bound too, then how they grow."""
    figures: list[Figure] = []
    taken: dict[int, dict[str, float]] = {}
    for count, repeats in REPEATS.items():
        taken[count], groups = _measure(count, repeats)
        figures += _compare(count, taken[count], groups)
    return figures + _growth(taken)


def _measure(count: int, repeats: int) -> tuple[dict[str, float], int]:
    records, domains = synthetic.make(count), synthetic.domains()
    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    held = pa.table(dict(zip(synthetic.NAMES, records.codes, strict=True)))
    connection.register("held", held)
    connection.execute("CREATE TABLE records AS SELECT * FROM held")
    connection.unregister("held")
    columns = ", ".join(synthetic.NAMES)
    query = f"CREATE OR REPLACE TEMP TABLE grouped AS SELECT {columns}, count(*) AS people FROM records GROUP BY ALL"
    taken = medians(
        repeats,
        duckdb=lambda: connection.execute(query),
        k=lambda: mondrian(records.codes, domains, records.guard(k=K)),
        confidence=lambda: mondrian(records.codes, domains, records.guard(k=K, confidence=0.5)),
    )
    (groups,) = connection.execute("SELECT count(*) FROM grouped").fetchone() or (0,)
    connection.close()
    return taken, groups


def _compare(count: int, taken: dict[str, float], groups: int) -> list[Figure]:
    # The target is for a million records and more; below that both take milliseconds.
    most = MOST if count >= 1_000_000 else None
    base = taken["duckdb"]
    return [
        Figure(f"{count:,}: GROUP BY", base, "s", note=f"{groups:,} groups"),
        Figure(f"{count:,}: mondrian, k = {K}", taken["k"], "s"),
        Figure(f"{count:,}: mondrian, k = {K}, confidence 0.5", taken["confidence"], "s"),
        Figure(f"{count:,}: k / GROUP BY", taken["k"] / base, at_most=most),
        Figure(f"{count:,}: k and confidence / GROUP BY", taken["confidence"] / base, at_most=most),
    ]


def _growth(taken: dict[int, dict[str, float]]) -> list[Figure]:
    """Time at the largest size over time at the smallest, against what n log n allows."""
    small, large = min(taken), max(taken)
    allowed = large * math.log(large) / (small * math.log(small))
    note = f"n log n allows {allowed:.0f} from {small:,} to {large:,}"
    return [
        Figure(f"growth of time, {what}", taken[large][what] / taken[small][what], at_most=allowed, note=note)
        for what in ("k", "confidence")
    ]
