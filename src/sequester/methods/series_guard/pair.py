"""An earlier release beside the proposed one: who is in which class of both, and what that tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.history.drift import reach
from sequester.methods.series_guard.proposed import Ints, Longs, Mask, ProposedRelease, Shares, WatchedView


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """Cells of people by their two classes, of the blocks that are looked at; every answer is per block.

    first, second    per cell, its class in the earlier release and the proposed one, numbered here; -1 for absence
    size             people per cell
    chosen, cell     trajectories of the proposed release, and the cell of each
    earlier, later   the classes that are numbered: of all releases before, and of the proposed one
    """

    proposed: ProposedRelease
    release: int
    first: Ints
    second: Ints
    size: Longs
    chosen: NDArray[np.intp]
    cell: Longs
    earlier: Longs
    later: Longs
    earlier_block: Longs
    later_block: Longs

    @classmethod
    def of(cls, proposed: ProposedRelease, release: int, live: Mask, *, only_new: bool = True) -> Pair | None:
        """The pair in the live blocks, where it tells something new if `only_new`; None when there is none."""
        wanted = live & proposed.new[release] if only_new else live
        one, other = proposed.path[:, release], proposed.after
        chosen = np.flatnonzero(wanted[proposed.block] & ((one >= 0) | (other >= 0)))
        if len(chosen) == 0:
            return None
        one, other = one[chosen], other[chosen]
        earlier, later = np.unique(one[one >= 0]), np.unique(other[other >= 0])
        first = np.where(one >= 0, np.searchsorted(earlier, one), -1)
        second = np.where(other >= 0, np.searchsorted(later, other), -1)
        found, cell = np.unique((first + 1) * (len(later) + 1) + second + 1, return_inverse=True)
        cell = cell.ravel()
        size = np.bincount(cell, weights=proposed.size[chosen], minlength=len(found)).astype(np.int64)
        earlier_block, later_block = np.zeros(len(earlier), np.int64), np.zeros(len(later), np.int64)
        earlier_block[first[one >= 0]] = proposed.block[chosen[one >= 0]]
        later_block[second[other >= 0]] = proposed.block[chosen[other >= 0]]
        return cls(
            proposed,
            release,
            (found // (len(later) + 1) - 1).astype(np.int32),
            (found % (len(later) + 1) - 1).astype(np.int32),
            size,
            chosen,
            cell,
            earlier,
            later,
            earlier_block,
            later_block,
        )

    @cached_property
    def _counts(self) -> dict[int, Longs]:
        return {}

    def counts(self, view: WatchedView) -> Longs:
        """(cells, values)."""
        if view.index not in self._counts:
            found = np.zeros((len(self.size), view.values), np.int64)
            np.add.at(found, self.cell, self.proposed.counts(view)[self.chosen])
            self._counts[view.index] = found
        return self._counts[view.index]

    def earlier_counts(self, view: WatchedView) -> Longs:
        """(earlier classes, values)."""
        return self._sum(self.counts(view), self.first, len(self.earlier))

    def later_counts(self, view: WatchedView) -> Longs:
        """(proposed classes, values)."""
        return self._sum(self.counts(view), self.second, len(self.later))

    @staticmethod
    def _sum(counts: Longs, classes: Ints, count: int) -> Longs:
        found = np.zeros((count, counts.shape[1]), np.int64)
        inside = classes >= 0
        np.add.at(found, classes[inside], counts[inside])
        return found

    @cached_property
    def near(self) -> tuple[Ints, Ints]:
        """Pairs of classes of one block that one person can be in."""
        from sequester.methods.series_guard.pair_kernels import near_pairs

        past_classes = self.proposed.past_classes
        sides = (self.proposed.lo[self.later].T, self.proposed.hi[self.later].T)
        lo, hi = reach(sides, past_classes.pace, self.release - self.proposed.releases)
        first, second = near_pairs(
            past_classes.lo[self.earlier],
            past_classes.hi[self.earlier],
            self.earlier_block,
            np.ascontiguousarray(lo.T),
            np.ascontiguousarray(hi.T),
            self.later_block,
        )
        return first, second

    def _blocks(self, earlier: Mask | None = None, later: Mask | None = None) -> Mask:
        bad = np.zeros(self.proposed.blocks, np.bool_)
        if earlier is not None:
            bad[self.earlier_block[earlier]] = True
        if later is not None:
            bad[self.later_block[later]] = True
        return bad

    def differences(self, k: int, views: Sequence[WatchedView]) -> Mask:
        """Whether classes of one release minus nested classes of the other leave 1 to k - 1 people.

        Not where nobody in a small cell has a bounded value: whatever is left of fewer than k people is made of these.
        """
        from sequester.methods.series_guard.pair_kernels import Crossing, small_differences

        few = self.size < k
        if not few.any() or not any(one.asked(self.counts(one))[few].any() for one in views):
            return self._blocks()
        earlier, later = Crossing(self.first, self.second, self.size), Crossing(self.second, self.first, self.size)
        return self._blocks(
            small_differences(earlier, len(self.earlier), len(self.later), k),
            small_differences(later, len(self.later), len(self.earlier), k),
        )

    def surpluses(self, view: WatchedView) -> Mask:
        """Whether classes of one release minus any of the other must hold too much of a value."""
        from sequester.methods.series_guard.pair_kernels import Crossing, PairShares, surpluses

        counts = self.counts(view)
        values = np.asarray(view.excess(counts, self.size).any(axis=0))
        if not values.any():
            return self._blocks()
        earlier, later = self.earlier_counts(view), self.later_counts(view)
        shares = PairShares(view.numerator, view.denominator, values)
        return self._blocks(
            surpluses(Crossing(self.first, self.second, self.size), earlier, later, shares),
            surpluses(Crossing(self.second, self.first, self.size), later, earlier, shares),
        )

    def left(self, view: WatchedView, *, exact: Mask | None) -> tuple[Longs, Longs | None]:
        """(cells, values) and (proposed classes, values) rows that can still be a target's; lower bounds.

        Exact for the cells marked, and where they are fewer than k. Where somebody left, any row may be without its
        like: then the smaller count remains, and nothing is known about the rows of newcomers (None).
        """
        from sequester.methods.series_guard.pair_kernels import Crossing
        from sequester.methods.series_guard.row_kernels import Near, rows_left

        counts, earlier, later = self.counts(view), self.earlier_counts(view), self.later_counts(view)
        if self.proposed.gone[self.release]:
            if not len(earlier) or not len(later):
                return np.zeros_like(counts), None
            found = np.minimum(earlier[self.first], later[self.second])
            return np.asarray(found), None
        if exact is None:
            exact = np.zeros(len(self.size), np.bool_)
        crossing = Crossing(self.first, self.second, self.size)
        between, alone = rows_left(crossing, counts, Near(*self.near), earlier, later, view.fewest, exact)
        return between, alone

    def few(self, between: Longs, alone: Longs | None, k: int) -> Mask:
        """Whether fewer than k rows are left for somebody."""
        both = (self.first >= 0) & (self.second >= 0)
        short = both & (between.sum(axis=1) < k)
        bad = np.zeros(self.proposed.blocks, np.bool_)
        bad[self.later_block[self.second[short]]] = True
        if alone is not None:
            joined = self.second[self.first < 0]
            bad[self.later_block[joined[alone[joined].sum(axis=1) < k]]] = True
        return bad

    def skewed(self, view: WatchedView, shares: Sequence[Shares]) -> Mask:
        """Per trajectory, whether the rows that are left of somebody's class hold too much of a value.

        Numbers are worked out exactly only where they may matter.
        """
        between, alone = self.left(view, exact=None)
        most = self._most_left(view, alone)
        both, joined = (self.first >= 0) & (self.second >= 0), (self.first < 0) & (self.second >= 0)
        least = between.copy()
        if alone is not None:
            least[joined] = alone[self.second[joined]]
        else:
            joined = np.zeros_like(joined)
        asked = both | joined
        doubtful = np.zeros(len(self.size), np.bool_)
        for one in shares:
            doubtful |= asked & one.exceeded(one.count(most), one.count(least))
        if doubtful.any() and alone is not None:
            between, alone = self.left(view, exact=doubtful)
            assert alone is not None
            least = np.where(joined[:, None], alone[self.second], between)
        bad = np.zeros(len(self.size), np.bool_)
        for one in shares:
            counted = one.count(least)
            bad |= doubtful & one.exceeded(counted, counted)
        found = np.zeros(len(self.proposed.size), np.bool_)
        found[self.chosen[bad[self.cell]]] = True
        return found

    def _most_left(self, view: WatchedView, alone: Longs | None) -> Longs:
        """(cells, values) rows that can be left at most: of both classes the fewer, of newcomers all who joined."""
        earlier, later = self.earlier_counts(view), self.later_counts(view)
        most = np.zeros_like(self.counts(view))
        both, joined = (self.first >= 0) & (self.second >= 0), (self.first < 0) & (self.second >= 0)
        most[both] = np.minimum(earlier[self.first[both]], later[self.second[both]])
        if alone is not None:
            most[joined] = np.minimum(later[self.second[joined]], later.sum(axis=0) - earlier.sum(axis=0))
        return most

    def meet(self, between: Longs, joining: Longs, cells: Longs, alone: Longs | None) -> None:
        """Lower, per trajectory of the proposed release, what is left to what this pair leaves."""
        first, second = self.first[self.cell], self.second[self.cell]
        both = (first >= 0) & (second >= 0)
        rows = self.chosen[both]
        between[rows] = np.minimum(between[rows], cells[self.cell[both]])
        if alone is not None:
            joined = (first < 0) & (second >= 0)
            rows = self.chosen[joined]
            joining[rows] = np.minimum(joining[rows], alone[second[joined]])
