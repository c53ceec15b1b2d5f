"""Pieces of Parquet: every row is in one of them, and what is counted in them is what DuckDB counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sequester.engine.duck import DuckEngine, Steps, added, cells_of, pieces_of, read_piece
from sequester.engine.engine import CELL, COUNT, PART, Dealer, Means, packed, read_dealt
from sequester.errors import DataError
from sequester.ingest.source import Wanted
from sequester.policy.model import Input

TYPES: dict[str, Any] = {
    "text": [None if number % 7 == 0 else f"t{number % 5}" for number in range(100)],
    "number": [number % 9 for number in range(100)],
    "real": [number % 4 / 2 for number in range(100)],
    "truth": [number % 3 == 0 for number in range(100)],
    "nothing": pa.nulls(100),
    "small": pa.array([number % 11 for number in range(100)], pa.uint8()),
    "day": pa.array([number % 6 for number in range(100)], pa.date32()),
    "time": pa.array([3_600_000_000 * (number % 30) for number in range(100)], pa.timestamp("us", "Asia/Tokyo")),
    "exact": pa.array([number % 8 for number in range(100)], pa.decimal128(9, 2)),
    "listed": pa.array([f"d{number % 3}" for number in range(100)]).dictionary_encode(),
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A table in files of several groups of rows."""
    table, names = pa.table(TYPES), [tmp_path / f"{number}.parquet" for number in range(3)]
    for name, (first, last) in zip(names, [(0, 45), (45, 50), (50, 100)], strict=True):
        parquet.write_table(table.slice(first, last - first), name, row_group_size=10)
    return names


def duck(files: list[Path], folder: Path) -> tuple[DuckEngine, Any]:
    engine = DuckEngine(Means(10**9, folder, 1))
    return engine, engine.open(str(files[0].parent), Wanted(), form=Input())


@pytest.mark.parametrize("rows", [1, 10, 25, 60, 1000])
def test_every_row_is_in_one_piece_in_its_order(files: list[Path], rows: int) -> None:
    pieces = pieces_of(files, rows)
    read = [table for piece in pieces for table in read_piece(piece, ("number", "text"), 7)]
    assert pa.concat_tables(read)["number"].to_pylist() == TYPES["number"]
    assert all(table.num_rows <= 7 for table in read)
    assert len(pieces) == {1: 11, 10: 10, 25: 4, 60: 2, 1000: 1}[rows]


@pytest.mark.parametrize("column", list(TYPES))
def test_cells_are_counted_as_duckdb_counts_them(files: list[Path], column: str, tmp_path: Path) -> None:
    engine, rows = duck(files, tmp_path)
    pieces = pieces_of(files, 20)
    found = added([cells_of((column, some))[1] for some in (pieces[:2], pieces[2:])], (CELL,))
    expected = engine.distinct(rows, column)
    assert set(zip(*found.to_pydict().values(), strict=True)) == set(zip(*expected.to_pydict().values(), strict=True))
    assert found.num_rows == expected.num_rows


def test_rows_are_tallied_by_steps_as_duckdb_tallies_them(files: list[Path], tmp_path: Path) -> None:
    engine, rows = duck(files, tmp_path)
    steps = {
        "text": pa.table({CELL: ["t1", "t2", "t4"], "step": pa.array([1, 1, 2], pa.int32())}),
        "day": pa.table({CELL: pa.array([1, 2, 5], pa.date32()), "step": pa.array([3, 1, 2], pa.int32())}),
    }
    pieces = pieces_of(files, 20)
    found = added([Steps(steps)([piece]) for piece in pieces], ())
    expected = engine.tally(rows, steps)
    names = ["text", "day", COUNT]
    assert sorted(map(str, found.select(names).to_pylist())) == sorted(map(str, expected.select(names).to_pylist()))


def test_packed_rows_are_read_as_those_that_were_dealt(tmp_path: Path) -> None:
    """Whatever types they have."""
    part = np.random.default_rng(1).integers(0, 4, 100).astype(np.int32)
    rows = pa.table({PART: part, **TYPES, "wide": np.arange(100, dtype=np.uint64) + np.uint64(2**63)})
    with Dealer(tmp_path / "dealt") as dealer:
        dealer.deal(rows)
    carried = pa.Table.from_pylist([{"part": at, "rows": bytes(word)} for at, _, word in packed(rows)])
    parquet.write_to_dataset(carried, tmp_path / "packed", partition_cols=[PART])
    for number in range(4):
        assert read_dealt(tmp_path / "packed", number).equals(read_dealt(tmp_path / "dealt", number))
    assert read_dealt(tmp_path / "packed", 4) is None


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not Parquet, or is cut off"):
        pieces_of([tmp_path / "t.parquet"])
