"""Two releases as the difference attack sees them: who is in which class of both, and the sets left by subtraction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.index import Index
from sequester.deferred import connected_components, csr_matrix
from sequester.history import History

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Subtraction:
    """People by their classes in two releases: classes of `outer` are added up, classes of `inner` are taken away.

    Parallel arrays, one entry per non-empty pair of classes, -1 for absence; `counts` is (cells, values), None when
    not known. `outer_counts` and `inner_counts` are (classes, values) as published.
    """

    outer: int
    inner: int
    outer_class: NDArray[np.int32]
    inner_class: NDArray[np.int32]
    size: NDArray[np.int64]
    counts: NDArray[np.int64] | None
    outer_counts: NDArray[np.int64]
    inner_counts: NDArray[np.int64]

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Cells of people who are in both releases."""
        return (self.outer_class >= 0) & (self.inner_class >= 0)

    @cached_property
    def selectable(self) -> NDArray[np.bool_]:
        """Per inner class, whether all its people are in the outer release: only such a class can be nested."""
        nested = np.ones(len(self.inner_counts), np.bool_)
        nested[self.inner_class[self.outer_class < 0]] = False
        return nested

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """Per class, outer classes first, the connected component of classes that share people."""
        outer, inner = self.outer_class[self.shared], self.inner_class[self.shared]
        return components(outer, inner + len(self.outer_counts), len(self.outer_counts) + len(self.inner_counts))

    @cached_property
    def _left(self) -> tuple[Index, list[int]]:
        """Cells by outer class, and the inner class of every cell."""
        return Index.of(self.outer_class, len(self.outer_counts)), self.inner_class.tolist()

    def left(self, added: Iterable[int], taken: Iterable[int]) -> list[int]:
        """Cells of the added outer classes that are outside the inner classes taken away, in order."""
        by_outer, inner = self._left
        within = set(taken)
        return sorted([cell for cell in by_outer.members(added) if inner[cell] not in within])


@dataclass(frozen=True, eq=False, repr=False)
class Remainder:
    """A set of people got by subtraction: outer classes minus inner classes (class numbers from 0).

    `people` are left, at least `with_value` of them with the `value` the set was searched for, if any; `nested` says
    that the classes taken away lie within those added, so that every count of what is left is known exactly.
    """

    cells: Subtraction
    added: list[int]
    taken: list[int]
    people: int
    value: int | None = None
    with_value: int = 0
    nested: bool = True


def directions(history: History, first: int, second: int) -> tuple[Subtraction, Subtraction]:
    """Later minus earlier, then earlier minus later."""
    overlap = history.overlap(first, second)
    one, other = history.releases[first].counts, history.releases[second].counts
    size, counts = overlap.size, overlap.counts
    return (
        Subtraction(second, first, overlap.second, overlap.first, size, counts, other, one),
        Subtraction(first, second, overlap.first, overlap.second, size, counts, one, other),
    )


def components(tails: NDArray[Any], heads: NDArray[Any], nodes: int) -> NDArray[np.int32]:
    """Per node, the number of its connected component."""
    graph = csr_matrix((np.ones(len(tails), np.int8), (tails, heads)), shape=(nodes, nodes))
    label: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return label
