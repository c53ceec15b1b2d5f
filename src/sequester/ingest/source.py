"""A table that is opened but not read: what every kind of input offers to the encoder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from sequester.errors import DataError, Problem
from sequester.memory import is_lack_of_memory
from sequester.policy.model import Input

T = TypeVar("T")

Load = Callable[[str], pa.ChunkedArray]


@dataclass(frozen=True, repr=False)
class Source:
    """The column names of an opened table, and a way to get one column at a time.

    `load` may be asked once for every wanted column, so that an input that had to be read whole can let go of each
    column as it is taken.
    """

    names: tuple[str, ...]
    load: Load

    def __repr__(self) -> str:
        return f"<Source: {len(self.names)} columns>"


@dataclass(frozen=True)
class Wanted:
    """What the reader will ask for.

    columns  the names that count, None for all
    repeats  those whose cells repeat a lot, worth a dictionary while reading
    """

    columns: tuple[str, ...] | None = None
    repeats: frozenset[str] = frozenset()

    def among(self, names: Sequence[str]) -> list[str]:
        """The wanted names that exist, in the order of the table."""
        return [name for name in names if self.columns is None or name in self.columns]


class Opener(Protocol):
    """Opens a file of some format without reading its rows."""

    def __call__(self, path: Path, wanted: Wanted, *, form: Input) -> Source: ...


def quietly(
    call: Callable[[], T], explain: Callable[[Exception], Problem | str], *, errors: type[Exception] = Exception
) -> T:
    """Call a library whose errors may quote cells: they become `explain(error)` and do not survive as context."""
    try:
        return call()
    except (MemoryError, DataError):
        raise
    except errors as error:
        lacking = is_lack_of_memory(error)
        problem = explain(error)
    if lacking:
        raise MemoryError
    # Outside the handler: `from None` hides the context from tracebacks but still carries it.
    raise DataError(problem)


def once(read: Callable[[], Mapping[str, pa.ChunkedArray]]) -> Load:
    """Read everything at the first request, and let go of each column as it is handed out."""
    held: dict[str, pa.ChunkedArray] = {}
    problems: list[Problem] = []
    begun = False

    def load(name: str) -> pa.ChunkedArray:
        nonlocal begun
        if not begun:
            begun = True
            try:
                held.update(read())
            except DataError as error:
                problems.extend(error.problems)
        if problems:
            raise DataError(problems)
        return held.pop(name)

    return load


def same_names(names: Sequence[str], known: Collection[str] | None) -> Problem | None:
    """The problem of column names that occur twice.

    Without a header line the names are the cells of the first record, so a name is quoted only if the caller has
    used it too; positions are always safe.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, start=1):
        places.setdefault(name, []).append(place)
    twice = {name: columns for name, columns in places.items() if len(columns) > 1}
    if not twice:
        return None
    listed = "; ".join(
        " and ".join(map(str, columns)) + (f" ('{name}')" if known and name in known else "")
        for name, columns in list(twice.items())[:5]
    )
    return Problem(f"column names must differ, but these columns share one: {listed}; rename or remove one of them")
