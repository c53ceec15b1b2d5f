"""What an engine does. Everything that decides works on counts, or on one part at a time, and is the same on all.

An engine opens a table without reading it, counts its cells, deals its rows out to parts, and runs a piece of work on
every part, where the rows are. Whatever order rows come in, what is made of them is the same: a part is sorted before
anything looks at it, and the published order is drawn.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from sequester.domain.codec import spread
from sequester.errors import DataError, Problem
from sequester.ingest.source import Wanted, quietly
from sequester.ingest.stream import stream
from sequester.policy.model import EngineOptions, Input
from sequester.processes import Item, Result

Coder = Callable[[pa.Table], pa.Table]
"""Rows as they are read to rows as they are dealt, the first column of which is their part (`PART`)."""
PART = "part"
CELL, COUNT = "cell", "n"

_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
# What the system, the interpreter and whoever else is there need.
_SHARE = 0.75


@dataclass(frozen=True)
class Means:
    """How much room there is.

    memory     bytes that may be used in all
    spill      a private folder for what is in between; whoever made it removes it
    processes  pieces of work at a time
    folders    others that whoever works reads from
    """

    memory: int
    spill: Path
    processes: int
    folders: tuple[Path, ...] = ()

    @classmethod
    def of(cls, options: EngineOptions, spill: Path, *, folders: tuple[Path, ...] = ()) -> Means:
        """As a policy says, or what the machine has."""
        memory = bytes_of(options.memory) if options.memory else int(_SHARE * _installed())
        return cls(memory, spill, options.processes or os.cpu_count() or 1, folders)


@dataclass(frozen=True)
class ParquetRows:
    """An opened table, in files of Parquet: the names of all its columns, how many rows, and the columns to be read."""

    files: tuple[Path, ...]
    names: tuple[str, ...]
    count: int
    columns: tuple[str, ...]


class Engine(Protocol):
    """Operations on rows."""

    name: str

    def open(self, source: Any, wanted: Wanted, *, form: Input) -> ParquetRows:
        """A table by its path, its name or as a frame; the rows stay where they are, or are copied to the spill."""

    def distinct(self, rows: Any, column: str) -> pa.Table:
        """Every different cell of a column (`CELL`), and how many rows have it (`COUNT`)."""

    def column(self, rows: Any, column: str) -> pa.ChunkedArray:
        """A whole column, to say exactly what is wrong with it."""

    def tally(self, rows: Any, steps: Mapping[str, pa.Table]) -> pa.Table:
        """How many rows (`COUNT`) are in every combination of steps; given, per column, the `step` of every cell."""

    def deal(self, rows: Any, coder: Coder, folder: Path) -> int:
        """Deal rows out to parts, as `read_dealt` reads them; returns how many were dealt."""

    def each(self, work: Callable[[Item], Result], items: Sequence[Item], *, need: int = 0) -> Iterator[Result]:
        """Results of a picklable piece of work on every item, as they are done; `need` is its memory in bytes."""

    def close(self) -> None:
        """Let go of whatever is open."""


def engine_of(options: EngineOptions, room: Means, source: Any = None) -> Engine:
    """The engine that a policy names, or that a table needs: rows of Spark stay in Spark."""
    if options.name == "spark" or _is_of_spark(source):
        from sequester.engine.spark import SparkEngine

        return SparkEngine(room, master=options.master, session=getattr(source, "sparkSession", None))
    from sequester.engine.duck import DuckEngine

    return DuckEngine(room)


def bytes_of(text: str) -> int:
    """8GB as a number of bytes."""
    return int(float(text[:-2]) * _UNITS[text[-2:]])


def _is_of_spark(source: Any) -> bool:
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(source).__mro__
    )


def _installed() -> int:
    """The memory of this machine, in bytes."""
    if hasattr(os, "sysconf"):
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 8 * 10**9


PACKED = f"{PART} int, {COUNT} bigint, rows binary"
"""Columns of packed rows: their part, how many there are, and they themselves."""
Packed = tuple[int, int, bytearray]
_ROWS = "rows"
# Rows in one cell: a few megabytes.
_PACKED = 1 << 16


class Dealer:
    """Writes rows of many parts, a file each, as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[int, tuple[pa.OSFile, ipc.RecordBatchStreamWriter]] = {}
        self.count = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file, writer in self._writers.values():
            writer.close()
            file.close()

    def deal(self, rows: pa.Table) -> None:
        """Write rows to the files of their parts."""
        for number, some in _by_part(rows):
            self._writer(number, some.schema).write_table(some)
        self.count += rows.num_rows

    def _writer(self, part: int, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if part not in self._writers:
            place = self._folder / f"{part:05d}.arrow"
            place.touch(0o600)
            file = pa.OSFile(str(place), "wb")
            options = ipc.IpcWriteOptions(compression="lz4")
            self._writers[part] = (file, ipc.new_stream(file, schema, options=options))
        return self._writers[part][1]


def packed(rows: pa.Table) -> Iterator[Packed]:
    """Rows of many parts as a few cells of bytes (`PACKED`): carried by whatever moves and writes tables.

    In these bytes every column keeps its type; what carries them need not know it.
    """
    for number, some in _by_part(rows):
        for at in range(0, some.num_rows, _PACKED):
            few = some.slice(at, _PACKED)
            yield number, few.num_rows, _to_bytes(few)


def _by_part(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of every part that has any."""
    part = rows[PART].to_numpy()
    order = np.argsort(part, kind="stable")
    rows = rows.drop_columns(PART).take(pa.array(order)).combine_chunks()
    parts, first = np.unique(part[order], return_index=True)
    for number, begin, end in zip(parts.tolist(), first.tolist(), [*first[1:].tolist(), len(part)], strict=True):
        yield number, rows.slice(begin, end - begin)


def _to_bytes(rows: pa.Table) -> bytearray:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, rows.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(rows)
    return bytearray(sink.getvalue())


def read_words(folder: Path, part: int) -> list[bytes]:
    """What is packed for one part, in any order."""
    files = sorted((folder / f"{PART}={part}").glob("*.parquet"))
    return [word for file in files for word in parquet.ParquetFile(file).read(columns=[_ROWS])[_ROWS].to_pylist()]


def read_dealt(folder: Path, part: int) -> pa.Table | None:
    """The rows of one part, in any order; None where it has none."""
    file = folder / f"{part:05d}.arrow"
    if file.exists():
        with pa.OSFile(str(file)) as stream, ipc.open_stream(stream) as reader:
            return reader.read_all()
    words = read_words(folder, part)
    if not words:
        return None
    return pa.concat_tables([ipc.open_stream(word).read_all() for word in words], promote_options="permissive")


def stage(source: Any, wanted: Wanted, form: Input, place: Path) -> Path | None:
    """Copy the wanted columns to a file; None, and no file, where there are no rows."""
    writer = None
    for rows in stream(source, wanted, form=form):
        plain = undictionaried(rows)
        if writer is None:
            place.touch(0o600)
            writer = parquet.ParquetWriter(place, plain.schema, compression="lz4")
        writer.write_table(_cast(plain, writer.schema))
    if writer is None:
        return None
    writer.close()
    return place


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    mixed = Problem("has columns with values of several types; make each one type")
    return quietly(lambda: rows.cast(schema), lambda _: mixed)


def undictionaried(rows: pa.Table) -> pa.Table:
    """The same with plain cells in place of dictionaries."""
    return pa.table(list(map(spread, rows.columns)), names=rows.column_names)


SAME = "driver and workers need the folders of ledger, spill and tables under the same names"


@dataclass(frozen=True)
class SeenFile:
    """A file as the driver sees it."""

    path: Path
    size: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """A file that is here."""
        return cls(path, path.stat().st_size)

    def find(self) -> Path:
        """Its path, where this machine sees the same file."""
        if not os.access(self.path, os.R_OK):
            raise _refusal("cannot be read", self.path)
        if self.path.stat().st_size != self.size:
            raise _refusal("is not the same file", self.path)
        return self.path


@dataclass(frozen=True, eq=False, repr=False)
class Seeing(Generic[Item, Result]):
    """Work that is begun only where the folders can be seen that it needs."""

    work: Callable[[Item], Result]
    means: Means

    def __call__(self, item: Item) -> Result:
        """Raises DataError where they cannot."""
        refuse_unseen(self.means)
        return self.work(item)


def refuse_unseen(means: Means) -> None:
    """Stop where this machine does not see a folder: what is written there would be seen by nobody else."""
    if not os.access(means.spill, os.R_OK | os.W_OK | os.X_OK):
        raise _refusal("cannot be written to", means.spill)
    for folder in means.folders:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise _refusal("cannot be read", folder)


def _refusal(what: str, path: Path) -> DataError:
    return DataError(Problem(f"{what} on the worker {platform.node()}; {SAME}", file=str(path)))
