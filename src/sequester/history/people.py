"""Who is who over all releases, and whether what is published about one person fits together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain import people as known_people
from sequester.domain.hierarchy import Codes
from sequester.errors import DataError, Problem
from sequester.history.drift import Sides, reach
from sequester.ingest.source import quietly


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Everybody in any table: ids as first given, and per table the person of every row."""

    ids: tuple[Any, ...]
    rows: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<People: {len(self)} in {len(self.rows)} tables>"

    def spread(self, table: int, values: Codes) -> Codes:
        """Values of the rows of one table as values of all people; -1 for those who are not in it."""
        spread = np.full(len(self), -1, np.int32)
        spread[self.rows[table]] = values
        return spread


def recognize(columns: Sequence[pa.ChunkedArray], *, column: str, names: Sequence[str]) -> People:
    """People by their ids as `domain.people` reads them: 7 of a frame is '7' of a file. Each has one row per table."""
    ids: list[Any] = []
    rows: list[Codes] = []
    known = pa.array([], pa.string())
    problems = []
    for name, cells in zip(names, columns, strict=True):
        unread = Problem("has a type that cannot be read as text; convert it", file=name, column=column)
        values, texts = _read(cells, unread)
        if repeated := len(texts) - len(texts.unique()):
            message = f"{repeated} ids occur twice; keep one row for each person"
            problems.append(Problem(message, file=name, column=column, rows=repeated))
            continue
        new = pc.invert(pc.is_in(texts, value_set=known))
        ids += _listed(values.filter(new), texts.filter(new))
        known = pa.concat_arrays([known, texts.filter(new)])
        rows.append(pc.index_in(texts, value_set=known).to_numpy(zero_copy_only=False).astype(np.int32))
    if problems:
        raise DataError(problems)
    return People(tuple(ids), tuple(rows))


def changed_values(people: People, codes: Sequence[Codes]) -> int:
    """How many people have different values in different tables; `codes` has one per row of each, -1 for none."""
    last = np.full(len(people), -1, np.int32)
    changed = np.zeros(len(people), np.bool_)
    for rows, values in zip(people.rows, codes, strict=True):
        changed[rows] |= (last[rows] >= 0) & (values >= 0) & (last[rows] != values)
        last[rows] = np.where(values >= 0, values, last[rows])
    return int(changed.sum())


def parted_boxes(people: People, sides: Sequence[Sides], *, pace: tuple[float, float] = (0, 0)) -> int:
    """How many people have intervals of one attribute that no value lies in all of; (low, high) per row of each.

    Between two tables the value moves by `pace`, the least and the most: then it is where it can be by now that counts.
    NaN is a value that is not there, which says nothing.
    """
    low, high = np.full(len(people), -np.inf), np.full(len(people), np.inf)
    parted = np.zeros(len(people), np.bool_)
    steps = np.array([pace], np.float64)
    for rows, (lo, hi) in zip(people.rows, sides, strict=True):
        low, high = (side[0] for side in reach((low[None], high[None]), steps, 1))
        absent = np.isnan(lo)
        low[rows] = np.where(absent, -np.inf, np.maximum(low[rows], lo))
        high[rows] = np.where(absent, np.inf, np.minimum(high[rows], hi))
        parted |= low > high
    return int(np.count_nonzero(parted))


def _listed(values: pa.Array, texts: pa.Array) -> list[Any]:
    """Ids as Python has them, or as text where it has no such thing: days after the year 9999."""
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError):
        return list(texts.to_pylist())


def _read(cells: pa.ChunkedArray, unread: Problem) -> tuple[pa.Array, pa.Array]:
    """The ids as they count, and the text by which each is known."""

    def read() -> tuple[pa.Array, pa.Array]:
        values = known_people.bare(cells)
        return values, known_people.names(values)

    return quietly(read, lambda _: unread, errors=pa.ArrowException)
