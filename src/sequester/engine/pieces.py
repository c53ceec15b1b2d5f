"""Files of Parquet in pieces of about as many rows, which are read alike whoever reads them, and wherever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sequester.domain.codec import distinct, is_text
from sequester.engine.engine import CELL, COUNT
from sequester.engine.seen import SeenFile
from sequester.errors import Problem
from sequester.ingest.source import quietly
from sequester.ingest.suited import suited

ROWS = 1 << 19
"""Rows of one piece, and rows that are looked at together."""


@dataclass(frozen=True)
class Stretch:
    """Some groups of rows of one file, one after the other: from `first` up to, but without, `last`."""

    file: SeenFile
    first: int
    last: int


Piece = tuple[Stretch, ...]


def pieces_of(files: Sequence[Path], rows: int = ROWS) -> list[Piece]:
    """All rows of some files, in order, in pieces of so many or a few more: small files are put together."""
    pieces: list[Piece] = []
    piece: list[Stretch] = []
    held = 0
    for file in files:
        about, first, seen = opened(file).metadata, 0, SeenFile.of(file)
        for group in range(about.num_row_groups):
            held += about.row_group(group).num_rows
            if held >= rows:
                pieces.append((*piece, Stretch(seen, first, group + 1)))
                piece, held, first = [], 0, group + 1
        if first < about.num_row_groups:
            piece.append(Stretch(seen, first, about.num_row_groups))
    return [*pieces, tuple(piece)] if piece else pieces


def read_piece(piece: Piece, columns: Sequence[str], rows: int = ROWS) -> Iterator[pa.Table]:
    """The rows of a piece, so many at a time, text by dictionary."""
    waiting: list[pa.Table] = []
    held = 0
    for stretch in piece:
        for table in _read(stretch, columns, rows):
            if held and held + table.num_rows > rows:
                yield _together(waiting)
                waiting, held = [], 0
            waiting.append(table)
            held += table.num_rows
    if held:
        yield _together(waiting)


def opened(path: Path) -> parquet.ParquetFile:
    """A file of Parquet, or DataError."""
    return quietly(lambda: parquet.ParquetFile(path), lambda _: _damaged(path))


def cells_of(item: tuple[str, Sequence[Piece]]) -> tuple[str, pa.Table]:
    """The different cells of a column in some pieces, and how many rows have each; with the name of the column."""
    column, pieces = item
    found = [_counted(table[column]) for piece in pieces for table in read_piece(piece, (column,))]
    return column, added(found, (CELL,))


@dataclass(frozen=True, eq=False, repr=False)
class Steps:
    """Counts the rows of some pieces by steps; given, per column, the step of every cell."""

    steps: Mapping[str, pa.Table]

    def __call__(self, pieces: Sequence[Piece]) -> pa.Table:
        """Every combination of steps that there is, and how many rows are in it."""
        return added([self._counted(table) for piece in pieces for table in read_piece(piece, tuple(self.steps))], ())

    def _counted(self, table: pa.Table) -> pa.Table:
        found = {name: pa.array(self._step(table[name], name)) for name in self.steps}
        return pa.table({**found, COUNT: pa.array(np.ones(table.num_rows, np.int64))})

    def _step(self, column: pa.ChunkedArray, name: str) -> np.ndarray:
        known = self.steps[name]
        values, index = distinct(column)
        cells = known[CELL].combine_chunks()
        place = pc.index_in(values.cast(cells.type), value_set=cells).fill_null(-1).to_numpy(zero_copy_only=False)
        # Whoever has a cell that is not known, or none, is in the first step.
        steps = np.append(known["step"].to_numpy(), np.int32(0))[place]
        return np.append(steps, np.int32(0))[index]


def added(counted: Sequence[pa.Table], keys: Sequence[str]) -> pa.Table:
    """Counts of several tables together, by these columns, or by all but the count."""
    table = _together(counted)
    names = list(keys) or [name for name in table.column_names if name != COUNT]
    total = table.group_by(names, use_threads=False).aggregate([(COUNT, "sum")])
    return total.select([*names, f"{COUNT}_sum"]).rename_columns([*names, COUNT])


def _counted(column: pa.ChunkedArray) -> pa.Table:
    values, index = distinct(column)
    count = np.bincount(index + 1, minlength=len(values) + 1).astype(np.int64)
    kept = slice(0 if count[0] else 1, None)
    cells = pa.concat_arrays([pa.nulls(1, values.type), values])[kept]
    return pa.table({CELL: cells, COUNT: pa.array(count[kept])})


def _read(stretch: Stretch, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    path = stretch.file.find()
    wrong = _damaged(path)
    text = [field.name for field in opened(path).schema_arrow if field.name in columns and is_text(field.type)]
    file = quietly(lambda: parquet.ParquetFile(path, read_dictionary=text), lambda _: wrong)
    groups = list(range(stretch.first, stretch.last))
    batches = file.iter_batches(rows, row_groups=groups, columns=list(columns))
    while (batch := quietly(lambda: next(batches, None), lambda _: wrong)) is not None:
        table = pa.Table.from_batches([batch])
        yield pa.table({name: suited(table[name], name) for name in columns})


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    mixed = Problem("the files have columns with values of several types; make each one type")
    return quietly(lambda: pa.concat_tables(tables, promote_options="permissive"), lambda _: mixed)


def _damaged(path: Path) -> Problem:
    return Problem("the file is not Parquet, or is cut off or damaged; get it again", file=str(path))
