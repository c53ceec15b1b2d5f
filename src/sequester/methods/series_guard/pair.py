"""An earlier release beside the proposed one: who is in which class of both, and what that tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.deferred import connected_components, coo_array
from sequester.history.boxes import intersecting
from sequester.history.drift import reach
from sequester.methods.series_guard.proposed import Ints, Longs, Mask, ProposedRelease, ValueBounds, WatchedView

if TYPE_CHECKING:
    from sequester.methods.series_guard.flow_kernels import FlowNetwork


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

    @classmethod
    def all(cls, proposed: ProposedRelease, live: Mask, *, only_new: bool = True) -> Iterator[Pair]:
        """The pairs of all earlier releases, in blocks that are still live when it is their turn."""
        for release in range(proposed.releases):
            pair = cls.of(proposed, release, live, only_new=only_new)
            if pair is not None:
                yield pair

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
        past_classes = self.proposed.past_classes
        sides = (self.proposed.lo[self.later].T, self.proposed.hi[self.later].T)
        lo, hi = reach(sides, past_classes.pace, self.release - self.proposed.releases)
        return intersecting(
            np.vstack([past_classes.lo[self.earlier].T, self.earlier_block]),
            np.vstack([past_classes.hi[self.earlier].T, self.earlier_block]),
            np.vstack([lo, self.later_block]),
            np.vstack([hi, self.later_block]),
        )

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
        few = self.size < k
        if not few.any() or not any(one.asked(self.counts(one))[few].any() for one in views):
            return self._blocks()
        return self._blocks(
            self._small(self.first, self.second, len(self.earlier), len(self.later), k),
            self._small(self.second, self.first, len(self.later), len(self.earlier), k),
        )

    def _small(self, outer: Ints, inner: Ints, outers: int, inners: int, k: int) -> Mask:
        """Per class of the one release, whether it minus nested ones of the other leaves too few."""
        from sequester.methods.series_guard.flow_kernels import small_differences

        # A class with people who are not in the one release is nested in nothing.
        is_open = np.zeros(inners + 1, np.bool_)
        is_open[inner[outer < 0]] = is_open[-1] = True
        cells, nodes = np.flatnonzero(outer >= 0), outers + inners + 1
        tail, nested = outer[cells], ~is_open[inner[cells]]
        head = np.where(nested, outers + inner[cells], nodes - 1)
        linked = coo_array((np.ones(int(nested.sum()), np.int8), (tail[nested], head[nested])), shape=(nodes, nodes))
        label = connected_components(linked, directed=False)[1]
        root = np.unique(label, return_index=True)[1][label].astype(np.int64)
        found: Mask = small_differences(_network(tail, head, nodes), self.size[cells], root, outers, k)
        return found

    def surpluses(self, view: WatchedView) -> Mask:
        """Whether classes of one release minus any of the other must hold too much of a value."""
        values = np.asarray(view.excess(self.counts(view), self.size).any(axis=0))
        if not values.any():
            return self._blocks()
        earlier, later = self.earlier_counts(view), self.later_counts(view)
        return self._blocks(
            self._excessive(self.first, self.second, earlier, later, view, values),
            self._excessive(self.second, self.first, later, earlier, view, values),
        )

    def _excessive(
        self, outer: Ints, inner: Ints, outer_counts: Longs, inner_counts: Longs, view: WatchedView, values: Mask
    ) -> Mask:
        """Per class of the one release, whether the other leaves too much of these values in it."""
        from sequester.methods.series_guard.flow_kernels import surpluses

        cells, inners = np.flatnonzero(outer >= 0), len(outer_counts) + np.arange(len(inner_counts))
        sink = len(outer_counts) + len(inner_counts)
        head = np.where(inner[cells] >= 0, len(outer_counts) + inner[cells], sink)
        network = _network(np.append(outer[cells], inners), np.append(head, np.full(len(inners), sink)), sink + 1)
        bounds = view.numerator, view.denominator
        found: Mask = surpluses(network, self.size[cells], outer_counts, inner_counts, *bounds, values)
        return found

    def left(self, view: WatchedView, *, exact: Mask | None) -> tuple[Longs, Longs | None]:
        """(cells, values) and (proposed classes, values) rows that can still be a target's; lower bounds.

        Of who is in both releases the earlier class's rows that can be in the later one in one world, of newcomers the
        rows of the later class that nobody before can have. Exact for the cells marked, and where they are fewer than
        k. Where somebody left, any row may be without its like: then the smaller count remains, and nothing is known
        about the rows of newcomers (None).
        """
        counts, earlier, later = self.counts(view), self.earlier_counts(view), self.later_counts(view)
        if not len(earlier) or not len(later):
            return np.zeros_like(counts), None if self.proposed.gone[self.release] else later
        most = np.minimum(earlier[self.first], later[self.second])
        if self.proposed.gone[self.release]:
            return most, None
        if exact is None:
            exact = np.zeros(len(self.size), np.bool_)
        # Nobody left: whoever is in the earlier release is in the later one.
        joined = self.first < 0
        most[joined] = 0
        alone = self._sum(counts[joined], self.second[joined], len(later))
        between = np.minimum(most, counts + alone[self.second])
        asked = ~joined & (exact | (between.sum(axis=1) < view.fewest))
        asked_alone = np.zeros(len(later), np.bool_)
        asked_alone[self.second[joined & (exact | (alone.sum(axis=1) < view.fewest)[self.second])]] = True
        doubtful, doubtful_alone = asked[:, None] & (between < most), asked_alone[:, None] & (alone < later)
        if doubtful.any() or doubtful_alone.any():
            between[doubtful], alone[doubtful_alone] = self._exactly_left(view, most, alone, doubtful, doubtful_alone)
        return between, alone

    def _exactly_left(
        self, view: WatchedView, most: Longs, alone: Longs, doubtful: Mask, doubtful_alone: Mask
    ) -> tuple[Longs, Longs]:
        """Of doubtful (cells, values) and (proposed classes, values), the rows that can still be a target's.

        Rows with one value of a class can be in any class of the later release that has the value and a box that meets
        its own; all of them must be somewhere. The truth is one such flow, so every question is about what is left of
        its network: nodes are (earlier class, value), (later class, value), and a sink for rows that newcomers have.
        """
        from sequester.methods.series_guard.flow_kernels import FAR, movable_rows

        counts, earlier, later = self.counts(view), self.earlier_counts(view), self.later_counts(view)
        width, seconds = view.values, len(later)
        firsts, sink = len(earlier) * width, (len(earlier) + seconds) * width
        both = np.flatnonzero(self.first >= 0)
        own = self.first[both].astype(np.int64) * seconds + self.second[both]
        pairs = np.union1d(own, self.near[0].astype(np.int64) * seconds + self.near[1])
        carried = np.zeros((len(pairs), width), np.int64)
        carried[np.searchsorted(pairs, own)] = counts[both]
        arc = (earlier[pairs // seconds] > 0) & (later[pairs % seconds] > 0)
        pair, value = np.nonzero(arc)
        ends = np.flatnonzero(later)
        network = _network(
            np.concatenate([pairs[pair] // seconds * width + value, firsts + ends]),
            np.concatenate([firsts + pairs[pair] % seconds * width + value, np.full(len(ends), sink)]),
            sink + 1,
        )
        onward = np.concatenate([np.full(len(pair), FAR), alone.ravel()[ends]])
        back = np.concatenate([carried[arc], np.zeros(len(ends), np.int64)])
        cell, of = np.nonzero(doubtful)
        place = np.flatnonzero(doubtful_alone)
        home = np.searchsorted(pairs, self.first[cell].astype(np.int64) * seconds + self.second[cell]) * width + of
        found = movable_rows(
            network,
            onward,
            back,
            firsts + np.concatenate([self.second[cell].astype(np.int64) * width + of, place]),
            np.concatenate([self.first[cell].astype(np.int64) * width + of, np.full(len(place), sink)]),
            # The arc from the group to the node, or from the node to the sink: these are counted already.
            np.concatenate([np.searchsorted(np.flatnonzero(arc), home), len(pair) + np.searchsorted(ends, place)]),
            np.concatenate([most[doubtful] - counts[doubtful], (later - alone)[doubtful_alone]]),
        )
        return counts[doubtful] + found[: len(cell)], alone[doubtful_alone] + found[len(cell) :]

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

    def skewed(self, view: WatchedView, shares: Sequence[ValueBounds]) -> Mask:
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


def _network(tail: NDArray[np.integer[Any]], head: NDArray[np.integer[Any]], nodes: int) -> FlowNetwork:
    """Arcs between so many nodes."""
    from sequester.methods.series_guard.flow_kernels import FlowNetwork

    ends, arcs = np.concatenate([tail, head]), len(tail)
    by_node = coo_array((np.ones(2 * arcs, np.int8), (ends, np.arange(2 * arcs))), shape=(nodes, 2 * arcs)).tocsr()
    at = by_node.indices.astype(np.int64)
    return FlowNetwork(
        tail.astype(np.int64),
        head.astype(np.int64),
        by_node.indptr.astype(np.int64),
        np.where(at < arcs, at, at - arcs),
    )
