"""This machine: DuckDB counts, within a limit of memory and with a folder to spill to; work is done in processes.

A table that is Parquet is read where it is. Any other is copied to the spill as Parquet first, some rows at a time.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import parquet

from sequester.domain.codec import is_text
from sequester.engine.dealt import Dealer
from sequester.engine.engine import CELL, COUNT, Coder, Means
from sequester.engine.staged import stage
from sequester.errors import DataError, Problem
from sequester.ingest.source import Wanted, quietly
from sequester.ingest.stream import parquet_files
from sequester.ingest.suited import suited
from sequester.policy.model import Input
from sequester.processes import run_all

Item = TypeVar("Item")
Result = TypeVar("Result")

_BATCH = 1 << 19
# Of all memory, what DuckDB may have while nothing else is done.
_SHARE = 0.6


@dataclass(frozen=True)
class ParquetRows:
    """A table in files of Parquet."""

    files: tuple[Path, ...]
    names: tuple[str, ...]
    count: int
    columns: tuple[str, ...]


class DuckEngine:
    """Rows on this machine."""

    name = "duckdb"

    def __init__(self, room: Means) -> None:
        self._room = room
        self._connection: Any = None

    def open(self, source: Any, wanted: Wanted, *, form: Input) -> ParquetRows:
        """A table of any kind; what is not Parquet is copied."""
        files = parquet_files(source) or self._staged(source, wanted, form)
        read = list(map(_opened, files))
        names = tuple(read[0].schema_arrow.names)
        if others := [file for file, one in zip(files, read, strict=True) if set(one.schema_arrow.names) != set(names)]:
            message = f"{len(others)} of {len(files)} files have other columns than {files[0].name}"
            raise DataError(Problem(message, file=str(others[0])))
        count = sum(one.metadata.num_rows for one in read)
        return ParquetRows(tuple(files), names, count, tuple(wanted.among(names)))

    def _staged(self, source: Any, wanted: Wanted, form: Input) -> list[Path]:
        """A copy as Parquet."""
        place = stage(source, wanted, form, self._room.spill / "table.parquet")
        if place is None:
            raise DataError("the table has no rows")
        return [place]

    def distinct(self, rows: ParquetRows, column: str) -> pa.Table:
        """Different cells and their rows."""
        sql = f"SELECT {_quoted(column)} AS {CELL}, count(*) AS {COUNT} FROM rows GROUP BY ALL"
        found = self._ask(sql, rows, {})
        kind = _opened(rows.files[0]).schema_arrow.field(column).type
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
        with Dealer(folder) as dealer, ThreadPoolExecutor(self._room.processes) as pool:
            for coded in _ahead(pool, coder, self._batches(rows), self._room.processes + 1):
                dealer.deal(coded)
            return dealer.count

    def each(self, work: Callable[[Item], Result], items: Sequence[Item], *, need: int = 0) -> Iterator[Result]:
        """In processes of their own, as many as there is memory for."""
        self._close_connection()
        most = self._room.processes if not need else max(1, min(self._room.processes, self._room.memory // need))
        return run_all(work, items, processes=most)

    def close(self) -> None:
        """Close the database in memory."""
        self._close_connection()

    def _close_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _batches(self, rows: ParquetRows) -> Iterator[pa.Table]:
        for path in rows.files:
            for table in _read(path, rows.columns):
                yield pa.table({name: suited(table[name], name) for name in table.column_names})

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


def _opened(path: Path) -> parquet.ParquetFile:
    return quietly(lambda: parquet.ParquetFile(path), lambda _: _damaged(path))


def _read(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some rows at a time, text by dictionary."""
    text = [field.name for field in _opened(path).schema_arrow if is_text(field.type) and field.name in columns]
    batches = parquet.ParquetFile(path, read_dictionary=text).iter_batches(_BATCH, columns=list(columns))
    while (batch := quietly(lambda: next(batches, None), lambda _: _damaged(path))) is not None:
        yield pa.Table.from_batches([batch])


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
