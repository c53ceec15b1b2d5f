"""One table, or the same table as it was at several times: opened, held together, and its columns by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sequester.errors import DataError
from sequester.ingest.decimals import decimal_sign, with_points
from sequester.policy.model import Input

_LONGEST_KEY = 1000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Waves:
    """Tables of the same people, in order of time.

    names    of all columns, as they first occur
    tables   per wave, its columns by name; numbers with points, however they were written
    decimal  what stands before the fraction of a number in them
    """

    names: tuple[str, ...]
    tables: tuple[dict[str, pa.ChunkedArray], ...]
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def rows(self) -> list[int]:
        """How many rows each wave has."""
        return [max((len(column) for column in table.values()), default=0) for table in self.tables]

    @property
    def common(self) -> list[str]:
        """The columns that every wave has."""
        return [name for name in self.names if all(name in table for table in self.tables)]

    def column(self, name: str) -> list[pa.ChunkedArray]:
        """A column of those waves that have it."""
        return [table[name] for table in self.tables if name in table]


def open_waves(sources: Sequence[Any], form: Input, progress: Progress) -> Waves:
    """Read the tables. DataError where they cannot be waves of one."""
    from sequester.ingest.read import open_source
    from sequester.ingest.source import Wanted

    _refuse_twice(sources)
    tables = []
    for number, source in enumerate(sources):
        progress("reading", number, len(sources))
        table = open_source(source, Wanted(), form=form, any_kind=True)
        _refuse_long_names(table.names)
        _refuse_data_as_names(table.names)
        tables.append({name: table.load(name) for name in table.names})
    decimal = decimal_sign(column for table in tables for column in table.values())
    if decimal == ",":
        tables = [{name: _pointed(column) for name, column in table.items()} for table in tables]
    waves = Waves(tuple(dict.fromkeys(name for table in tables for name in table)), tuple(tables), decimal)
    for number, rows in enumerate(waves.rows, start=1):
        if not rows:
            which = "the table" if len(waves) == 1 else f"wave {number}"
            raise DataError(f"{which} has no rows to propose a policy from")
    if not waves.common:
        raise DataError("the waves have no column in common, so they are not the same table at several times")
    return waves


def _pointed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers with commas as one with points; any other as it is."""
    return with_points(column) if decimal_sign([column]) == "," else column


def _refuse_twice(sources: Sequence[Any]) -> None:
    places: dict[Path, int] = {}
    for number, source in enumerate(sources, start=1):
        if not isinstance(source, str | Path):
            continue
        first = places.setdefault(Path(source).resolve(), number)
        if first != number:
            raise DataError(f"waves {first} and {number} are the same file; name every wave once, the earliest first")


def _refuse_long_names(names: Sequence[str]) -> None:
    """YAML takes no longer keys. Without a header line a name is a cell, so only its place is told."""
    from sequester.ingest.propose.text import quoted

    long = [place for place, name in enumerate(names, start=1) if len(quoted(name)) > _LONGEST_KEY]
    if long:
        places = ", ".join(map(str, long[:5]))
        raise DataError(f"the names of {len(long)} columns have more than {_LONGEST_KEY:,} letters: column {places}")


def _refuse_data_as_names(names: Sequence[str]) -> None:
    """A file without a header has its first record as column names, which must not get into the policy."""
    numbers = [name for name in names if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", name.strip())]
    years = [name for name in numbers if re.fullmatch(r"(19|20)[0-9]{2}", name.strip())]
    if len(numbers) - len(years) >= 2:
        raise DataError("the first line looks like a record, not like column names; add a line with the names on top")
