"""t-closeness (Li, Li and Venkatasubramanian 2007): the distribution in a class is near the table's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sequester.domain.kinds import kind_of
from sequester.guarantees.criterion import (
    TOLERANCE,
    Combined,
    Counts,
    Criterion,
    Declaration,
    Subject,
    among,
    shares,
)
from sequester.policy.protect import CLOSENESS
from sequester.rational import plain

if TYPE_CHECKING:
    from sequester.guarantees.criterion import View
    from sequester.policy.attributes import Sensitive

Distance = Literal["equal", "ordered", "hierarchical"]
Levels = tuple[NDArray[np.integer[Any]], ...]


@dataclass(frozen=True, eq=False)
class TCloseness(Criterion):
    """The earth mover's distance between every class and the table is at most t.

    reference  the table's own counts of each value; None: the sum of the classes given
    levels     hierarchical distance: per level, the first code of every group, leaves first (`Hierarchy.starts`)

    The domain is that of the values in order: values that never occur still count as steps of the ordered distance.
    """

    t: float
    distance: Distance = "equal"
    reference: Counts | None = field(default=None, repr=False)
    levels: Levels = field(default=(), repr=False)

    name: ClassVar[str] = "closeness"
    protects: ClassVar[str] = "knowing the class teaches little about the target that the whole table does not teach"
    does_not_protect: ClassVar[str] = "what the whole table teaches; who a row is about (k is apart)"
    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    at_least: ClassVar[bool] = False
    whole_domain: ClassVar[bool] = True

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

    def on(self, view: View) -> TCloseness | None:
        return self.in_table(view.counts) if view.own else None

    @classmethod
    def together(cls, asked: Sequence[Self | None], view: View, parts: Sequence[Combined]) -> TCloseness | None:
        # Combinations have no order and no tree.
        return next((cls(one.t, "equal", view.counts) for one in asked if one is not None), None)

    def in_table(self, counts: Counts) -> TCloseness:
        return replace(self, reference=counts)


def equal_distance(extra: NDArray[np.float64]) -> NDArray[np.float64]:
    """All values equally far apart: half the summed differences, the total variation."""
    distance: NDArray[np.float64] = np.abs(extra).sum(axis=1) / 2
    return distance


def ordered_distance(extra: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values on a line, |i - j| / (m - 1) apart: what is carried past each of the m - 1 gaps."""
    carried = np.abs(np.cumsum(extra, axis=1)[:, :-1]).sum(axis=1)
    distance: NDArray[np.float64] = carried / max(extra.shape[1] - 1, 1)
    return distance


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


def default_distance(attribute: Sensitive) -> Distance:
    """Ordered for numbers, hierarchical with a hierarchy, else equal."""
    if kind_of(attribute).measured:
        return "ordered"
    return "equal" if attribute.hierarchy is None else "hierarchical"


def _ask(subject: Subject) -> TCloseness | None:
    options = subject.policy.protect.closeness
    if options is None:
        return None
    return TCloseness(options.t, options.distance or default_distance(subject.attribute), levels=subject.domain.starts)


CRITERION = Declaration(
    promise=CLOSENESS,
    forms=(TCloseness,),
    ask=_ask,
    title="Distance of a class from the table",
    judged=among(TCloseness),
    required=lambda policy, bound: None if policy.protect.closeness is None else policy.protect.closeness.t,
)
