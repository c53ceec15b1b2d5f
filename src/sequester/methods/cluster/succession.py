"""The next table beside the last release: who stays, who left, who comes, and which clusters are safe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster.join import in_order
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.stock import Stock

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# People per neighbourhood, whose order does not matter: far fewer than are looked at for the nearest.
_RUN = 16


class PlacedBoxes(NamedTuple):
    """Boxes by where they lie, (boxes, attributes), and the number of the neighbourhood of each."""

    low: Floats
    high: Floats
    run: Longs

    def take(self, which: Longs) -> PlacedBoxes:
        """Some of them."""
        return PlacedBoxes(self.low[which], self.high[which], self.run[which])


def summed_widths(low: Floats, high: Floats) -> Floats:
    """Per box (boxes, attributes), its widths of all attributes together."""
    widths: Floats = np.minimum(high - low, 1.0).sum(axis=1)
    return widths


@dataclass(frozen=True, eq=False, repr=False)
class Succession:
    """The next table beside the last release; `stock` has its components, and what every record adds to a box.

    Clusters are given as `kept`: per record the number of one of the last release, or, from `old` on, of newcomers; -1
    for people who come back and are in none yet.
    """

    past: Past
    watch: SeriesGuard
    codes: Ints
    domains: tuple[Hierarchy, ...]
    guard: ClassGuard
    stock: Stock
    similarity: float | None

    @cached_property
    def old(self) -> int:
        """Clusters of the last release: those of newcomers are numbered from here."""
        return len(self.past.first.releases[-1])

    @cached_property
    def fresh(self) -> Mask:
        """Per record, whether its person was never published."""
        unseen: Mask = self.watch.past_classes.person[self.past.person] < 0
        return unseen

    @cached_property
    def leavers(self) -> tuple[Longs, Longs]:
        """Those who left since the last release and a cluster of which somebody is still here, and this cluster.

        A cluster that all have left is published no more, and that tells nothing new.
        """
        before = self.past.first.releases[-1].member
        assert before is not None
        stay = np.zeros(self.old + 1, np.bool_)
        stay[self.past.last_class()] = True
        stay[-1] = False
        gone = self.stock.absent[stay[before[self.stock.absent]]]
        return gone, before[gone].astype(np.int64)

    @cached_property
    def signature(self) -> Longs:
        """Per person, a number for her values in all views that do not change; of no meaning where they are unknown."""
        number = np.zeros(len(self.past.first.people), np.int64)
        for terms in self.watch.views:
            number = np.unique(number * terms.values + np.maximum(terms.value, 0), return_inverse=True)[1].ravel()
        return number

    def loss(self, classes: Classes) -> float:
        """People times the summed widths of their boxes."""
        return float(classes.size @ summed_widths(self.place(classes.lo), self.place(classes.hi)))

    def units(self, kept: Longs) -> Longs:
        """Per record, its closed block: people tied by any class of any release, or by these clusters."""
        known = ~self.fresh
        first = int(self.stock.unit[known].max(initial=-1)) + 1
        node = np.where(known, self.stock.unit, first + kept)
        tied = np.flatnonzero(known & (kept >= 0))
        nodes = first + int(kept.max(initial=-1)) + 1
        graph = coo_array((np.ones(len(tied), np.int8), (node[tied], first + kept[tied])), shape=(nodes, nodes))
        label = connected_components(graph, directed=False)[1]
        return np.unique(label[node], return_inverse=True)[1].ravel().astype(np.int64)

    def units_of_absent(self, unit: Longs) -> Longs:
        """Per person who is not here, the unit she is tied to."""
        of_component = np.zeros(int(self.stock.unit.max(initial=-1)) + 1, np.int64)
        of_component[self.stock.unit] = unit
        tied: Longs = of_component[self.stock.absent_unit]
        return tied

    def units_of_leavers(self, unit: Longs) -> Longs:
        """Per leaver, the unit she is tied to."""
        return self.units_of_absent(unit)[np.isin(self.stock.absent, self.leavers[0])]

    def touched(self, kept: Longs) -> Mask:
        """Per record, whether its cluster is not just one that stayed, or a safe one of newcomers."""
        from sequester.methods.loops.tree import safe_classes

        numbers = max(int(kept.max(initial=-1)) + 1, self.old)
        changed = ~safe_classes(kept.astype(np.int64, copy=False), self.guard.values, numbers, self.guard.limits)
        changed[self.leavers[1]] = True
        last = self.past.last_class()
        came = np.flatnonzero((last < 0) & (kept >= 0))
        changed[kept[came[(kept[came] < self.old) | ~self.fresh[came]]]] = True
        touched: Mask = np.append(changed, True)[kept] | ((last >= 0) & (kept != last))
        return touched

    def judge(self, kept: Longs, unit: Longs, chosen: Longs) -> Mask:
        """Per chosen unit whether its clusters are safe, by themselves and in the series."""
        number = np.full(int(unit.max(initial=-1)) + 1, -1, np.int32)
        number[chosen] = np.arange(len(chosen))
        return self.stock.safe_blocks(self.watch, self.guard, kept, number[unit])

    def spots(self, lo: Ints, hi: Ints) -> PlacedBoxes:
        """Where boxes (attributes, boxes) lie."""
        return PlacedBoxes(self.place(lo), self.place(hi), self.neighbourhoods(lo))

    def neighbourhoods(self, codes: Ints) -> Longs:
        """Per point (attributes, points) the number of its neighbourhood; near ones have near numbers."""
        return in_order(np.ascontiguousarray(codes), self.domains, self.guard, _RUN).astype(np.int64)

    def place(self, codes: Ints) -> Floats:
        """(points, attributes) where these codes (attributes, points) lie."""
        return np.column_stack([domain.position[side] for domain, side in zip(self.domains, codes, strict=True)])
