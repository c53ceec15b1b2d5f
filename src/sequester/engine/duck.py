"""This machine: DuckDB counts, within a limit of memory and with a folder to spill to; work is done in processes.

A table that is Parquet is read where it is. Any other is copied to the spill as Parquet first, some rows at a time.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sequester.domain.codec import distinct, is_text
from sequester.engine.engine import CELL, COUNT, Coder, Dealer, Means, ParquetRows, SeenFile, stage
from sequester.errors import DataError, Problem
from sequester.ingest.source import Wanted, quietly
from sequester.ingest.stream import parquet_files
from sequester.ingest.suited import suited
from sequester.policy.model import Input
from sequester.processes import Item, Result, run_all

ROWS = 1 << 19
"""Rows of one piece, and rows that are looked at together."""
# Of all memory, what DuckDB may have while nothing else is done.
_SHARE = 0.6


class DuckEngine:
    """Rows on this machine."""

    name = "duckdb"

    def __init__(self, room: Means) -> None:
        self._room = room
        self._connection: Any = None

    def open(self, source: Any, wanted: Wanted, *, form: Input) -> ParquetRows:
        """A table of any kind; what is not Parquet is copied."""
        files = parquet_files(source)
        if not files:
            copy = stage(source, wanted, form, self._room.spill / "table.parquet")
            if copy is None:
                raise DataError("the table has no rows")
            files = [copy]
        read = list(map(opened, files))
        names = tuple(read[0].schema_arrow.names)
        if others := [file for file, one in zip(files, read, strict=True) if set(one.schema_arrow.names) != set(names)]:
            message = f"{len(others)} of {len(files)} files have other columns than {files[0].name}"
            raise DataError(Problem(message, file=str(others[0])))
        count = sum(one.metadata.num_rows for one in read)
        return ParquetRows(tuple(files), names, count, tuple(wanted.among(names)))

    def distinct(self, rows: ParquetRows, column: str) -> pa.Table:
        """Different cells and their rows."""
        sql = f"SELECT {_quoted(column)} AS {CELL}, count(*) AS {COUNT} FROM rows GROUP BY ALL"
        found = self._ask(sql, rows, {})
        kind = opened(rows.files[0]).schema_arrow.field(column).type
        # DuckDB gives times in its own zone, and a day begins elsewhere.
        zoned = pa.types.is_timestamp(found[CELL].type) and pa.types.is_timestamp(kind) and kind.tz is not None
        return found.set_column(0, CELL, found[CELL].cast(pa.timestamp("us", kind.tz))) if zoned else found

    def column(self, rows: ParquetRows, column: str) -> pa.ChunkedArray:
        """One column, in the order of the rows."""
        parts = [parquet.ParquetFile(file).read(columns=[column]) for file in rows.files]
        return pa.concat_tables(parts, promote_options="permissive").column(0)

    def tally(self, rows: ParquetRows, steps: Mapping[str, pa.Table]) -> pa.Table:
        """Rows by steps."""
        tables = {f"steps{place}": steps[name] for place, name in enumerate(steps)}
        joins = " ".join(
            f"LEFT JOIN {table} ON rows.{_quoted(name)} = {table}.{CELL}"
            for table, name in zip(tables, steps, strict=True)
        )
        chosen = ", ".join(
            f"coalesce({table}.step, 0) AS {_quoted(name)}" for table, name in zip(tables, steps, strict=True)
        )
        return self._ask(f"SELECT {chosen}, count(*) AS {COUNT} FROM rows {joins} GROUP BY ALL", rows, tables)

    def deal(self, rows: ParquetRows, coder: Coder, folder: Path) -> int:
        """Some rows at a time: coded by as many threads as there may be processes, and written by this one."""
        batches = (table for file in rows.files for table in _read(file, rows.columns, ROWS))
        with Dealer(folder) as dealer, ThreadPoolExecutor(self._room.processes) as pool:
            for coded in _ahead(pool, coder, batches, self._room.processes + 1):
                dealer.deal(coded)
            return dealer.count

    def each(self, work: Callable[[Item], Result], items: Sequence[Item], *, need: int = 0) -> Iterator[Result]:
        """In processes of their own, as many as there is memory for."""
        self.close()
        most = self._room.processes if not need else max(1, min(self._room.processes, self._room.memory // need))
        return run_all(work, items, processes=most)

    def close(self) -> None:
        """Close the database in memory."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, sql: str, rows: ParquetRows, tables: Mapping[str, pa.Table]) -> pa.Table:
        import duckdb

        if self._connection is None:
            settings: dict[str, Any] = {
                "memory_limit": f"{int(_SHARE * self._room.memory) // 10**6}MB",
                "temp_directory": str(self._room.spill),
                "threads": self._room.processes,
                "python_enable_replacements": False,
                "preserve_insertion_order": False,
            }
            self._connection = duckdb.connect(":memory:", config=settings)
            self._connection.execute("SET enable_progress_bar = false")
        cursor = self._connection.cursor()
        try:
            return quietly(lambda: _asked(cursor, sql, rows, tables), lambda _: _unread(rows))
        finally:
            cursor.close()


def _asked(cursor: Any, sql: str, rows: ParquetRows, tables: Mapping[str, pa.Table]) -> pa.Table:
    for name, table in tables.items():
        cursor.register(name, table)
    files = ", ".join("'" + str(file).replace("'", "''") + "'" for file in rows.files)
    return cursor.sql(
        f"WITH rows AS (SELECT * FROM read_parquet([{files}], union_by_name = true)) {sql}"
    ).to_arrow_table()


def _ahead(pool: ThreadPoolExecutor, function: Coder, given: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """Results in order, of which a few are reckoned ahead, so that memory stays bounded."""
    waiting: collections.deque[Future[pa.Table]] = collections.deque()
    for table in given:
        waiting.append(pool.submit(function, table))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: Path) -> Problem:
    return Problem("the file is not Parquet, or is cut off or damaged; get it again", file=str(path))


def _unread(rows: ParquetRows) -> Problem:
    return Problem("cannot be read", file=str(rows.files[0]))


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
        for table in _read(stretch.file.find(), columns, rows, list(range(stretch.first, stretch.last))):
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


def _read(path: Path, columns: Sequence[str], rows: int, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
    """Groups of rows of a file, or all, so many rows at a time, text by dictionary."""
    text = [field.name for field in opened(path).schema_arrow if field.name in columns and is_text(field.type)]
    file = quietly(lambda: parquet.ParquetFile(path, read_dictionary=text), lambda _: _damaged(path))
    batches = file.iter_batches(rows, row_groups=groups, columns=list(columns))
    while (batch := quietly(lambda: next(batches, None), lambda _: _damaged(path))) is not None:
        table = pa.Table.from_batches([batch])
        yield pa.table({name: suited(table[name], name) for name in columns})


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    mixed = Problem("the files have columns with values of several types; make each one type")
    return quietly(lambda: pa.concat_tables(tables, promote_options="permissive"), lambda _: mixed)
