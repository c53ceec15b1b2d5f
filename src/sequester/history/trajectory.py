"""People who were in the same class of every release are one trajectory; absence is a class of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Positions sorted by their class, to take those of a few classes without looking at the others.

    Plain lists: what is taken is mostly a handful, for which arrays are slow.
    """

    order: list[int]
    ends: list[int]

    @classmethod
    def of(cls, classes: NDArray[np.integer[Any]], count: int) -> Index:
        """Of the class of every position, -1 for none."""
        order = np.argsort(classes, kind="stable")
        return cls(order.tolist(), np.searchsorted(classes[order], np.arange(count + 1)).tolist())

    def members(self, classes: Iterable[int]) -> list[int]:
        """Positions of these classes, class by class."""
        return [position for one in classes for position in self.order[self.ends[one] : self.ends[one + 1]]]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """The cells of the common refinement of all releases so far.

    path  (trajectories, releases) the class in every release, -1 for absence
    size  people per trajectory
    of    per person, her trajectory, -1 for one who was in no release yet
    """

    path: NDArray[np.int32]
    size: NDArray[np.int64]
    of: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.size)

    def __repr__(self) -> str:
        return f"<Trajectories: {len(self)} of {int(self.size.sum())} people over {self.path.shape[1]} releases>"

    @classmethod
    def none(cls, people: int) -> Trajectories:
        """Before the first release."""
        return cls(np.zeros((0, 0), np.int32), np.zeros(0, np.int64), np.full(people, -1, np.int32))

    def extend(self, member: NDArray[np.int32], classes: int) -> Trajectories:
        """After one more release, given everybody's class in it: one pass over the people; trajectories only split."""
        ever = (self.of >= 0) | (member >= 0)
        key = (self.of[ever].astype(np.int64) + 1) * (classes + 1) + member[ever] + 1
        # Hashed, not sorted: trajectories are numbered in the order in which people first show them.
        pairs = pa.array(key).dictionary_encode()
        found, inverse = pairs.dictionary.to_numpy(), pairs.indices.to_numpy()
        of = np.full(len(self.of), -1, np.int32)
        of[ever] = inverse
        before = found // (classes + 1) - 1
        path = np.full((len(found), self.path.shape[1] + 1), -1, np.int32)
        path[before >= 0, :-1] = self.path[before[before >= 0]]
        path[:, -1] = found % (classes + 1) - 1
        return Trajectories(path, np.bincount(inverse, minlength=len(found)).astype(np.int64), of)

    @cached_property
    def people(self) -> Index:
        """People by trajectory."""
        return Index.of(self.of, len(self))

    def count(self, value: NDArray[np.int32], values: int) -> NDArray[np.int64]:
        """(trajectories, values) how many people of each have each value; `value` is per person, -1 for nobody's."""
        known = (self.of >= 0) & (value >= 0)
        flat = self.of[known].astype(np.int64) * values + value[known]
        return np.bincount(flat, minlength=len(self) * values).reshape(len(self), values).astype(np.int64)


def number_through(path: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """The path with the classes of all releases, of these numbers, numbered through; and how many there are."""
    start = np.cumsum([0, *sizes])
    return np.where(path >= 0, path.astype(np.int64) + start[:-1], -1), int(start[-1])


def linked(path: NDArray[np.int64], classes: int) -> NDArray[np.int32]:
    """Per trajectory, the number of its component: those linked by any class (numbered through), never by absence."""
    if np.bincount(path[path >= 0], minlength=1).max() <= 1:
        # As after one release: nobody shares a class with another trajectory, and no graph is needed to see it.
        return np.arange(len(path), dtype=np.int32)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    row, column = np.nonzero(path >= 0)
    nodes = len(path) + classes
    graph = coo_array((np.ones(len(row), np.int8), (row, len(path) + path[row, column])), shape=(nodes, nodes))
    label = connected_components(graph, directed=False)[1][: len(path)]
    return np.unique(label, return_inverse=True)[1].astype(np.int32)
