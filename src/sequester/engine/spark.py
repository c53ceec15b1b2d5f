"""A cluster, or this machine as one: rows stay in Spark, and only counts and different cells reach whoever asks.

Whatever a table is, its rows are files of Parquet in a folder that all machines see: where they are already, or in the
spill. Tasks of Spark read them piece by piece as this machine would, so that every cell means the same, and Spark
brings together and writes what belongs to one part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.engine.duck import DuckEngine, Piece, Steps, added, cells_of, pieces_of, read_piece
from sequester.engine.engine import (
    CELL,
    COUNT,
    PACKED,
    PART,
    SAME,
    Coder,
    Means,
    Packed,
    ParquetRows,
    Seeing,
    SeenFile,
    packed,
    read_words,
    refuse_unseen,
    stage,
)
from sequester.engine.spark_session import Job, lease, run_each, run_job
from sequester.errors import DataError, OutOfMemory, Problem, SequesterError
from sequester.ingest.named import InputName, files_of, named
from sequester.ingest.read import DELIMITED
from sequester.ingest.source import Wanted
from sequester.ingest.stream import parquet_files
from sequester.policy.model import Input
from sequester.processes import Item, Result, answer_of, error_of

# Errors of tasks are dealt to a part that nobody has.
_REFUSED = -1
# Every task writes a file per part, up to so many tasks; with more of them rows are brought together first.
_TASKS = 64
# Counts come from a few tasks per worker, whatever number of pieces there is.
_ROUNDS = 4
# Seconds.
_LONGEST = 60
_WRITTEN = "the table cannot be copied by Spark; look whether it can be read there, and whether the spill has room"


@dataclass(frozen=True)
class SparkRows(ParquetRows):
    """A table in files that all machines see; of the columns that `repeats` names cells repeat."""

    repeats: tuple[str, ...] = ()

    @cached_property
    def pieces(self) -> list[Piece]:
        """Its rows, as tasks read them."""
        return pieces_of(self.files)


class SparkEngine:
    """Rows of Spark."""

    name = "spark"

    def __init__(self, room: Means, *, master: str | None = None, session: Any = None) -> None:
        self._room = room
        self._lease = lease(master, session)
        self._context = self._lease.session.sparkContext
        self._files = DuckEngine(room)
        self._cells: dict[str, pa.Table] = {}

    def open(self, source: Any, wanted: Wanted, *, form: Input) -> SparkRows:
        """A frame, a table of the catalog, or whatever else is a table; what is not Parquet is copied."""
        if not self._context.master.startswith("local"):
            # A task for every core of every machine: a folder that one does not see is told before anything is copied.
            list(self.each(_nothing, range(self._context.defaultParallelism)))
        frame = self._frame(source)
        if frame is not None:
            return self._copied(frame, wanted)
        source = _whole(source)
        if files := _delimited(source):
            copies = list(self.each(_Copy(self._copy(), wanted, form), list(enumerate(map(SeenFile.of, files)))))
            if not any(copies):
                raise DataError("the table has no rows")
            source = self._copy()
        rows = self._files.open(source, wanted, form=form)
        return _rows(rows, rows.names, wanted)

    def distinct(self, rows: SparkRows, column: str) -> pa.Table:
        """Different cells and their rows; of all columns whose cells repeat, when the first is asked for."""
        if column not in self._cells:
            columns = [column, *(name for name in rows.repeats if name != column and name not in self._cells)]
            found: dict[str, list[pa.Table]] = {name: [] for name in columns}
            for name, cells in self.each(cells_of, [(name, share) for name in columns for share in self._shares(rows)]):
                found[name].append(cells)
            self._cells |= {name: added(tables, (CELL,)) for name, tables in found.items()}
        return self._cells[column]

    def column(self, rows: SparkRows, column: str) -> pa.ChunkedArray:
        """One column, in the order of the files."""
        return self._files.column(rows, column)

    def tally(self, rows: SparkRows, steps: Mapping[str, pa.Table]) -> pa.Table:
        """Rows by steps."""
        return added(list(self.each(Steps(steps), self._shares(rows))), ())

    def deal(self, rows: SparkRows, coder: Coder, folder: Path) -> int:
        """Tasks code, Spark brings rows together and writes them; returns how many."""
        pieces, columns, session, means = list(enumerate(rows.pieces)), rows.columns, self._lease.session, self._room

        def write() -> int:
            coded = self._context.parallelize(pieces, len(pieces)).flatMap(
                lambda one: _coded(coder, one[0], one[1], columns, means)
            )
            frame = session.createDataFrame(coded, PACKED, verifySchema=False)
            frame = frame.repartition(PART) if len(pieces) > _TASKS else frame
            frame.write.mode("append").partitionBy(PART).option("compression", "none").parquet(_address(folder))
            # What is there: tasks that were done again are counted once.
            return int(session.read.parquet(_address(folder)).agg({COUNT: "sum"}).first()[0])

        count = run_job(self._context, write)
        refused = [json.loads(word) for word in read_words(folder, _REFUSED)]
        if refused:
            _, kind, what = min(refused, key=lambda one: one[0])
            raise error_of(
                kind,
                what if isinstance(what, str) else [Problem(**{**one, "values": tuple(one["values"])}) for one in what],
            )
        if count < rows.count:
            raise _unseen(folder)
        return count

    def each(self, work: Callable[[Item], Result], items: Sequence[Item], *, need: int = 0) -> Iterator[Result]:
        """A task for every item; where all workers are this machine, no more at a time than there is memory for."""
        most = len(items)
        if need and self._context.master.startswith("local"):
            room = max(1, self._room.memory // need)
            most = room if room < self._context.defaultParallelism else most
        for begin in range(0, len(items), most or 1):
            yield from run_each(self._context, Seeing(work, self._room), items[begin : begin + most])

    def close(self) -> None:
        """Give the session back."""
        self._files.close()
        self._lease.give_back()

    def _frame(self, source: Any) -> Any:
        """A table of Spark by itself or by its name; None for any other."""
        if not isinstance(source, str):
            return source if hasattr(source, "sparkSession") else None
        name = named(source)
        if name.is_address or name.table is not None or Path(source).exists() or files_of(Path(source)):
            return None
        try:
            known = self._lease.session.catalog.tableExists(source)
        except Exception:  # noqa: BLE001 - what is no name of a table is the name of a file
            return None
        return self._lease.session.table(source) if known else None

    def _copied(self, frame: Any, wanted: Wanted) -> SparkRows:
        """A copy: a frame is a query, which may give other rows each time it is asked."""
        names = tuple(frame.columns)
        chosen = wanted.among(names)
        if len(set(chosen)) < len(chosen):
            raise DataError("column names must differ, but two of the columns of the policy share one; rename one")
        if not chosen:
            return SparkRows((), names, 0, ())
        from pyspark.sql import Observation, functions

        copy = _plain(frame, [names.index(name) for name in chosen]).toDF(*chosen)
        counted = Observation()
        copy = copy.observe(counted, functions.count(functions.lit(1)).alias(COUNT))
        writer, folder = copy.write.mode("append").option("compression", "lz4"), self._copy()
        failed = None
        try:
            run_job(self._context, lambda: writer.parquet(_address(folder)))
        except OutOfMemory:
            raise
        except SequesterError:
            failed = DataError(_WRITTEN)
        if failed is not None:
            raise failed
        written = parquet_files(folder)
        rows = self._files.open(folder, wanted, form=Input()) if written else SparkRows((), names, 0, tuple(chosen))
        # How many there were is told beside the work, and might be lost on the way.
        told = Job(self._context, lambda: int(counted.get[COUNT]))
        if not told.is_over(_LONGEST) or rows.count < told.result():
            raise _unseen(folder)
        return _rows(rows, names, wanted)

    def _copy(self) -> Path:
        """Where a table is copied to."""
        folder = self._room.spill / "table"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _shares(self, rows: SparkRows) -> list[list[Piece]]:
        """All pieces, for as many tasks as count well."""
        tasks = min(len(rows.pieces), _ROUNDS * self._context.defaultParallelism)
        return [rows.pieces[first::tasks] for first in range(tasks)]


@dataclass(frozen=True, eq=False, repr=False)
class _Copy:
    """Copies one file of text after the other."""

    folder: Path
    wanted: Wanted
    form: Input

    def __call__(self, item: tuple[int, SeenFile]) -> Path | None:
        number, file = item
        return stage(str(file.find()), self.wanted, self.form, self.folder / f"{number:05d}.parquet")


def _coded(coder: Coder, number: int, piece: Piece, columns: Sequence[str], means: Means) -> Iterator[Packed]:
    """Packed rows of a piece; after an error, the error, and nothing more."""
    # An error that could not be written down.
    refuse_unseen(means)
    tables = read_piece(piece, columns)

    def next_one(_: None) -> list[Packed] | None:
        table = next(tables, None)
        return None if table is None else list(packed(coder(table)))

    while True:
        kind, what = answer_of(next_one, None)
        if kind != "done":
            said = what if isinstance(what, str) else list(map(asdict, what))
            yield _REFUSED, 0, bytearray(json.dumps((number, kind, said)).encode())
        if kind != "done" or what is None:
            return
        yield from what


def _rows(rows: ParquetRows, names: tuple[str, ...], wanted: Wanted) -> SparkRows:
    repeats = tuple(name for name in rows.columns if name in wanted.repeats)
    return SparkRows(rows.files, names, rows.count, rows.columns, repeats)


def _whole(source: Any) -> Any:
    """A file as it is named from any folder: workers are in others."""
    if not isinstance(source, str | os.PathLike):
        return source
    name = named(source)
    return source if name.is_address else str(InputName(str(Path(name.place).absolute()), name.table))


def _nothing(_: int) -> None:
    """Work for the sake of what is looked at before it."""


def _unseen(folder: Path) -> DataError:
    return DataError(Problem(f"not all that workers wrote is here; {SAME}", file=str(folder)))


def _delimited(source: Any) -> list[Path]:
    """Several files of text; none for any other table, which is opened by one."""
    if not isinstance(source, str | os.PathLike):
        return []
    files = files_of(Path(named(source).place))
    return files if len(files) > 1 and all(file.suffix.lower() in DELIMITED for file in files) else []


def _plain(frame: Any, places: Sequence[int]) -> Any:
    """Some columns of a frame, as they are shown: times are those of the session's zone.

    They are chosen by place: names that differ by case, or have a point in them, are something else to Spark.
    """
    from pyspark.sql import functions

    frame = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    given = {"timestamp": "timestamp_ntz", "void": "string"}
    kinds = {place: given.get(frame.schema[place].dataType.simpleString()) for place in places}
    columns = {place: functions.col(f"c{place}") for place in places}
    return frame.select(*(columns[place].cast(kind) if kind else columns[place] for place, kind in kinds.items()))


def _address(folder: Path) -> str:
    """A folder that all machines see, whatever else Spark takes folders for."""
    return folder.resolve().as_uri()
