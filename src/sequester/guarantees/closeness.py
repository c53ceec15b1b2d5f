"""t-closeness (Li, Li and Venkatasubramanian 2007): the distribution in a class is near the table's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.criterion import TOLERANCE, Counts, Criterion, Name, shares
from sequester.rational import plain

Distance = Literal["equal", "ordered", "hierarchical"]
Levels = tuple[NDArray[np.integer[Any]], ...]


@dataclass(frozen=True, eq=False)
class Closeness(Criterion):
    """The earth mover's distance between every class and the table is at most t.

    reference  the table's own counts of each value; None: the sum of the classes given
    levels     hierarchical distance: per level, the first code of every group, leaves first (`Hierarchy.starts`)

    Protects: knowing the class teaches little about the target that the table as a whole does not teach.
    Does not protect: what the table as a whole teaches; identity (k is apart).
    The domain is that of the values in order: values that never occur still count as steps of the ordered distance.
    """

    t: float
    distance: Distance = "equal"
    reference: Counts | None = field(default=None, repr=False)
    levels: Levels = field(default=(), repr=False)

    name: ClassVar[Name] = "closeness"
    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    at_least: ClassVar[bool] = False

    @property
    def required(self) -> float:
        return self.t

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        reference = counts.sum(axis=0) if self.reference is None else self.reference
        extra = shares(counts) - shares(np.asarray(reference)[None, :])
        match self.distance:
            case "equal":
                return equal_distance(extra)
            case "ordered":
                return ordered_distance(extra)
            case "hierarchical":
                return hierarchical_distance(extra, self.levels)

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        return np.asarray(self.observed(counts) <= self.t + TOLERANCE)

    def describe(self) -> str:
        return f"every class is within {plain(self.t)} of the table by the {self.distance} distance"


def equal_distance(extra: NDArray[np.float64]) -> NDArray[np.float64]:
    """All values equally far apart: half the summed differences, the total variation."""
    found: NDArray[np.float64] = np.abs(extra).sum(axis=1) / 2
    return found


def ordered_distance(extra: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values on a line, |i - j| / (m - 1) apart: what is carried past each of the m - 1 gaps."""
    found: NDArray[np.float64] = np.abs(np.cumsum(extra, axis=1)[:, :-1]).sum(axis=1) / max(extra.shape[1] - 1, 1)
    return found


def hierarchical_distance(extra: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    """Values in a tree of height H, as far apart as the height of their lowest common ancestor over H.

    At every node of height h, what its children have too much of and too little of is exchanged as far as possible,
    at a cost of h / H; the rest goes up.
    """
    cost = np.zeros(len(extra))
    height = len(levels) - 1
    for level in range(1, height + 1):
        first_child = np.searchsorted(levels[level - 1], levels[level])
        surplus = np.add.reduceat(np.maximum(extra, 0.0), first_child, axis=1)
        deficit = np.add.reduceat(np.maximum(-extra, 0.0), first_child, axis=1)
        cost += level / height * np.minimum(surplus, deficit).sum(axis=1)
        extra = surplus - deficit
    return cost
