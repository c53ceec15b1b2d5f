"""What an engine does. Everything that decides works on counts, or on one part at a time, and is the same on all.

An engine opens a table without reading it, counts its cells, deals its rows out to parts, and runs a piece of work on
every part, where the rows are. Whatever order rows come in, what is made of them is the same: a part is sorted before
anything looks at it, and the published order is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from sequester.ingest.source import Wanted
from sequester.policy.model import EngineOptions, Input

Item = TypeVar("Item")
Result = TypeVar("Result")

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


class OpenedRows(Protocol):
    """An opened table: how many rows it has, and the names of its columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its columns."""

    @property
    def count(self) -> int:
        """How many rows there are."""


class Engine(Protocol):
    """Operations on rows."""

    name: str

    def open(self, source: Any, wanted: Wanted, *, form: Input) -> OpenedRows:
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
