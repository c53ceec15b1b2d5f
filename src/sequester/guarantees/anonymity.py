"""k-anonymity and k-map: nobody is alone in a class, or alone in the population behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.guarantees.criterion import Counts, Criterion, Declaration
from sequester.policy.protect import K_MAP, K

# Cells of the largest (boxes x population) comparison made at once.
_CELLS = 1 << 18


@dataclass(frozen=True)
class _Crowd(Criterion):
    """At least k are counted in every class."""

    k: int

    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    at_least: ClassVar[bool] = True
    about_values: ClassVar[bool] = False

    @property
    def required(self) -> float:
        return self.k

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        return np.asarray(counts.sum(axis=1), np.float64)

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        return np.asarray(counts.sum(axis=1) >= self.k)


@dataclass(frozen=True)
class KAnonymity(_Crowd):
    """k-anonymity (Samarati and Sweeney 1998; Sweeney 2002): every class has at least k records."""

    name: ClassVar[str] = "k"
    protects: ClassVar[str] = "who a row is about, from someone who knows the quasi-identifiers of the target"
    does_not_protect: ClassVar[str] = "the target's sensitive value where the class agrees on it; against two releases"

    def describe(self) -> str:
        return f"every class has at least {self.k} records"


@dataclass(frozen=True)
class KMap(_Crowd):
    """k-map (Sweeney 2001): every published box fits at least k people of a population table.

    `counts` are population counts, one column: see `population_inside`.
    """

    name: ClassVar[str] = "k-map"
    protects: ClassVar[str] = "who a row is about, from someone who does not know who of the population is in the table"
    does_not_protect: ClassVar[str] = "anything, once it is known that the target is in the table; any sensitive value"

    def describe(self) -> str:
        return f"every published box fits at least {self.k} people of the population"


def population_inside(
    lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]], *, population: NDArray[np.integer[Any]]
) -> Counts:
    """How many people of the population lie inside each box: one row per box, one column.

    All arrays have one row per quasi-identifier. The population is halved again and again; a box that covers a part
    takes it whole, one that misses it never looks at it, so no (boxes x population) matrix is built.
    """
    inhabitants = np.zeros((lo.shape[1], 1), np.int64)
    if not population.shape[1]:
        return inhabitants
    group, first = row_groups(population)
    cells, people = population[:, first], np.bincount(group)
    work = [(np.arange(cells.shape[1]), np.arange(lo.shape[1]))]
    while work:
        part, boxes = work.pop()
        low, high = cells[:, part].min(axis=1)[:, None], cells[:, part].max(axis=1)[:, None]
        boxes = boxes[np.all((lo[:, boxes] <= high) & (hi[:, boxes] >= low), axis=0)]
        covers = np.all((lo[:, boxes] <= low) & (hi[:, boxes] >= high), axis=0)
        inhabitants[boxes[covers], 0] += people[part].sum()
        boxes = boxes[~covers]
        if not len(boxes):
            continue
        if len(part) * len(boxes) <= _CELLS:
            inside = np.ones((len(boxes), len(part)), bool)
            for row, below, above in zip(cells[:, part], lo[:, boxes], hi[:, boxes], strict=True):
                inside &= (row >= below[:, None]) & (row <= above[:, None])
            inhabitants[boxes, 0] += inside @ people[part]
            continue
        widest = int(np.argmax(high - low))
        row = cells[widest, part]
        middle = np.partition(row, len(row) // 2)[len(row) // 2]
        # Distinct cells differ somewhere, so the widest attribute has a value on each side of this cut.
        left = row < middle if middle > row.min() else row <= middle
        work += [(part[left], boxes), (part[~left], boxes)]
    return inhabitants


CRITERIA = (
    Declaration(
        promise=K,
        forms=(KAnonymity,),
        title="People with the same published row",
        judged=lambda history, policy: KAnonymity(history.k),
        smallest=True,
        required=lambda policy, bound: float(policy.protect.k),
    ),
    Declaration(promise=K_MAP, forms=(KMap,)),
)
