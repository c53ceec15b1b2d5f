"""The protected values of the next table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.history.history import History
from sequester.methods.lifetime.survivals import protected_columns

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Values:
    """The protected values of the next table, of all views, as columns.

    place   per view and value its column, -1 for those that need no protection or that nobody has
    column  (records, views) of the values of the records
    bounds  per column, the bound on single classes
    """

    place: tuple[Ints, ...]
    column: Ints
    bounds: Floats

    @classmethod
    def of(cls, histories: Sequence[History], values: Sequence[Ints]) -> Values:
        chosen, places = protected_columns(histories, values)
        pairs = zip(histories, chosen, strict=True)
        bounds = [float(history.bounds[code]) for history, which in pairs for code in which]
        column = np.column_stack([place[value] for place, value in zip(places, values, strict=True)])
        return cls(tuple(places), np.ascontiguousarray(column, np.int32), np.array(bounds, np.float64))

    def count(self, member: Ints, classes: int) -> tuple[Longs, Ints, Longs]:
        """Per class where its columns begin in the other two: columns, and how many records have their values."""
        columns = max(len(self.bounds), 1)
        flat = [
            member[there].astype(np.int64) * columns + column[there]
            for column in self.column.T
            for there in [np.flatnonzero((column >= 0) & (member >= 0))]
        ]
        keys, many = np.unique(np.concatenate(flat), return_counts=True)
        first = np.searchsorted(keys, np.arange(classes + 1) * columns)
        return first.astype(np.int64), (keys % columns).astype(np.int32), many.astype(np.int64)
