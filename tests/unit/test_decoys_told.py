"""What a reader who looks for decoys computes: from published rows alone, with a column of weights or without."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from experiments.decoys import seen, town

import sequester as sq


def releases() -> tuple[sq.Policy, list[pa.Table]]:
    policy, tables = town(waves=2, people=160)
    published = [sq.anonymize(table, policy, seed=number).table for number, table in enumerate(tables, 1)]
    return policy, [
        table.drop_columns([name for name in table.column_names if name == "weight"]) for table in published
    ]


def test_weights_that_are_all_alike_tell_nothing() -> None:
    policy, plain = releases()
    alike = [table.append_column("weight", pa.array(np.full(table.num_rows, 0.9))) for table in plain]
    found = seen(plain, policy)
    assert np.allclose(found, seen(alike, policy), equal_nan=True)
    assert found.shape[0] == sum(table.num_rows for table in plain)


def test_weights_that_differ_are_seen() -> None:
    policy, plain = releases()
    marks = [np.arange(table.num_rows) % 2 + 1.0 for table in plain]
    marked = [table.append_column("weight", pa.array(mark)) for table, mark in zip(plain, marks, strict=True)]
    differs = (seen(marked, policy) != seen(plain, policy)) & ~np.isnan(seen(plain, policy))
    assert np.count_nonzero(differs.any(axis=0)) == 1  # one feature


def test_features_do_not_depend_on_the_order_of_rows() -> None:
    policy, plain = releases()
    order = np.random.default_rng(1).permutation(plain[-1].num_rows)
    other = seen([plain[0], plain[1].take(pa.array(order))], policy)[plain[0].num_rows :]
    assert np.allclose(other, seen(plain, policy)[plain[0].num_rows :][order], equal_nan=True)
