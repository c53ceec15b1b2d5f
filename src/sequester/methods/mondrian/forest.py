"""The tree of units, what each node may become, and the choice that loses least among those that are safe."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes, compact, hulls
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.methods.series_guard.limits import SeriesLimits
from sequester.methods.stock import Stock

if TYPE_CHECKING:
    from sequester.methods.mondrian.node_kernels import NodePeople
    from sequester.methods.mondrian.search_kernels import Spans, Ways

Progress = Callable[[str, int, int], None]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGEST_NODE = 120
"""People of a node up to which it is searched: in larger ones a safe cut is rarely found, and tests take long."""

TRIES, KEPT = 8, 4
"""Cuts tried per class, and results kept per node: of those that look safe the exact judge refuses some."""

_WIDE, _HOPEFUL, _WHOLE = (0, 1, 0, 1), (0, 0, 1, 0), (0, 0, 0, 1)
"""How trials differ, four in turn: see `Ways`. The plainest comes first, since most nodes take what it finds."""

_NOISE = 0.4
"""From the fifth trial on scores are raised by up to this share: less repeats the first four, more is mere chance."""

_STAY, _JOIN, _ONE = 0, KEPT + 1, KEPT + 2


@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    """A tree over the units, its nodes numbered from the root, parents before children.

    record            records in the order of the tree; `begin`, `end` are per node, those of the node
    left, right       per node, its children, -1 for single units
    options           (nodes, options) what each costs, infinity where there is none or it failed: to stay as it is
                      (single units), results of the search, all that cannot stay in one class and the rest as it is,
                      and everybody in one class
    proven            (nodes, options) whether it is known to be safe
    label             (results, slots) classes of search results; `slot` says where a node's begin
    """

    stock: Stock
    guard: ClassGuard
    record: Longs
    begin: Longs
    end: Longs
    left: Longs
    right: Longs
    options: Floats
    proven: Mask
    label: NDArray[np.int16]
    slot: Longs

    @classmethod
    def of(
        cls,
        past: Past,
        watch: SeriesGuard,
        stock: Stock,
        domains: tuple[Hierarchy, ...],
        guard: ClassGuard,
        *,
        trials: int,
        seed: int,
    ) -> Forest:
        """The tree with all its options; with trials, searched."""
        from sequester.methods.loops.tree import unit_tree

        frozen = np.zeros(stock.units, np.bool_)
        frozen[stock.unit[past.retained]] = True
        position = [domain.position for domain in domains]
        low = np.column_stack([place[side] for place, side in zip(position, stock.lo.T, strict=True)])
        high = np.column_stack([place[side] for place, side in zip(position, stock.hi.T, strict=True)])
        size = np.bincount(stock.unit, minlength=stock.units)
        center = np.column_stack([np.bincount(stock.unit, axis, minlength=stock.units) for axis in (low + high).T])
        center = center / (2 * np.maximum(size, 1)[:, None])
        # What can be neither cut nor moved stays outside.
        chosen = np.flatnonzero(~frozen | stock.unsettled)
        order, first, last, left, right = unit_tree(center[chosen], size[chosen].astype(np.float64))
        tree = _Tree(chosen[order], first, last, left, right)
        rank = np.full(stock.units, -1, np.int64)
        rank[tree.order] = np.arange(len(tree.order))
        record = np.argsort(rank[stock.unit], kind="stable")
        ends = np.concatenate([[0], np.cumsum(size[tree.order])])
        staying, cost = _stay_costs(stock, low, high)
        disturbed = tree.total(stock.unsettled) > 0
        options = np.full((len(first), KEPT + 3), np.inf)
        proven = np.zeros(options.shape, np.bool_)
        single = left < 0
        units = tree.order[first[single]]
        options[single, _STAY], proven[single, _STAY] = cost[units], ~stock.unsettled[units]
        if disturbed.any():
            joined = tree.hull_costs(stock.unit, low, high, stock.lost) + tree.total(staying)
            options[disturbed, _JOIN] = joined[disturbed]
            everybody = np.ones(len(stock.unit), np.bool_)
            options[disturbed, _ONE] = tree.hull_costs(stock.unit, low, high, everybody)[disturbed]
        forest = cls(
            stock,
            guard,
            record[np.count_nonzero(rank[stock.unit] < 0) :],
            ends[first],
            ends[last],
            left,
            right,
            options,
            proven,
            np.zeros((KEPT, 0), np.int16),
            np.full(len(first), -1, np.int64),
        )
        if not trials or guard.known:
            return forest
        from sequester.methods.mondrian.search_kernels import Spans

        newcomers = np.zeros(stock.units, np.bool_)
        newcomers[stock.unit[watch.past_classes.person[past.person] < 0]] = True
        fresh, people = tree.total(newcomers), forest.end - forest.begin
        mixed = (fresh > 0) & (fresh < last - first)
        wanted = (disturbed | mixed) & (tree.total(frozen) == 0)
        wanted &= (people <= LARGEST_NODE) & (people >= 2 * guard.limits.k)
        known = np.where(disturbed, np.inf, tree.total(np.where(stock.unsettled, 0.0, cost)))
        lineup, start = _lineup(past, watch, stock, guard, rank)
        nodes = np.flatnonzero(wanted & (start[last] - start[first] <= 4 * LARGEST_NODE))
        begin, end = start[first[nodes]], start[last[nodes]]
        slot = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64)
        spans = Spans(nodes, begin, end, slot[:-1], known[nodes])
        return forest._searched(spans, lineup, watch.limits, domains, ways=_ways(trials, seed))

    def _searched(
        self, spans: Spans, lineup: NodePeople, required: SeriesLimits, domains: tuple[Hierarchy, ...], *, ways: Ways
    ) -> Forest:
        """With the results of a search in these nodes."""
        from sequester.methods.mondrian.cut_kernels import Scale
        from sequester.methods.mondrian.search_kernels import Results, Spans, search_nodes

        nodes, begin, slot, length = spans.number, spans.begin, spans.slot, spans.end - spans.begin
        cost = np.full((len(nodes), KEPT), np.inf)
        label = np.full((KEPT, int(length.sum())), -1, np.int16)
        scale, limits = Scale(*side_by_side(domains)), self.guard.limits
        threads = min(os.cpu_count() or 1, 8)

        def search(thread: int) -> None:
            own = np.arange(thread, len(nodes), threads)
            results = Results(cost[own], label)
            part = Spans(nodes[own], begin[own], spans.end[own], slot[own], spans.known[own])
            search_nodes(part, lineup, required, limits, scale, ways, results)
            cost[own] = results.cost

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(search, range(threads)))
        self.options[nodes, 1 : KEPT + 1] = cost
        # Those who left have no class: the labels of the others are put side by side, in the order of the records.
        here = lineup.here[np.repeat(begin - slot, length) + np.arange(label.shape[1])]
        slots = self.slot.copy()
        slots[nodes] = np.concatenate([[0], np.cumsum(here)])[slot]
        return replace(self, label=label[:, here], slot=slots)

    def settle(self, watch: SeriesGuard, progress: Progress | None = None) -> Longs:
        """Per record its class: the cheapest choice of which every part is safe."""
        from sequester.methods.loops.tree import choose

        while True:
            cost, choice = choose(self.left, self.right, self.options)
            if len(cost) and not np.isfinite(cost[0]):
                raise GuaranteeError(
                    "no classes keep the series safe, however coarse: too few people joined, left or came back since "
                    "an earlier release, or too many of them share a value; hold them back until there are more",
                    guarantee="series",
                )
            chosen = self._top(choice)
            open_nodes = [node for node in chosen if not self.proven[node, choice[node]]]
            if progress is not None:
                progress("judge", len(chosen) - len(open_nodes), len(chosen))
            if not open_nodes:
                member = self._member(chosen, choice)
                if not self._strike(watch, chosen, choice, member):
                    return member
                continue
            good = self._judge(watch, open_nodes, choice)
            for node, fine in zip(open_nodes, good.tolist(), strict=True):
                self.proven[node, choice[node]] = fine
                if not fine:
                    self.options[node, choice[node]] = np.inf

    def _strike(self, watch: SeriesGuard, chosen: list[int], choice: Longs, member: Longs) -> bool:
        """Give up what leaves a neighbor too much of a value, seen in the whole table; whether there was any.

        What stays as it is is given up by nobody: then it is those near it that changed what is left of it.
        """
        classes = self.stock.classes(member)
        skewed = watch.skewed(classes.member, classes.lo, classes.hi)
        made = [node for node in chosen if choice[node] != _STAY]
        if not skewed.any() or not made:
            # Nothing was made here: what the classes of the last release leave is for the audit to judge.
            return False
        records = {node: self.record[self.begin[node] : self.end[node]] for node in made}
        hit = [node for node in made if skewed[records[node]].any()]
        if not hit:
            there = np.unique(classes.member[skewed])
            lo, hi = classes.lo[:, there].T, classes.hi[:, there].T
            hit = [
                node
                for node in made
                if ((self.stock.lo[records[node]].min(axis=0) <= hi) & (self.stock.hi[records[node]].max(axis=0) >= lo))
                .all(axis=1)
                .any()
            ]
        for node in hit or made:
            self.options[node, choice[node]] = np.inf
        return True

    def _top(self, choice: Longs) -> list[int]:
        """Nodes whose own option is taken, none of them below another."""
        found, stack = [], [0] if len(choice) else []
        left, right, taken = self.left.tolist(), self.right.tolist(), choice.tolist()
        while stack:
            node = stack.pop()
            if taken[node] >= 0:
                found.append(node)
            else:
                stack += [right[node], left[node]]
        return found

    def _place(self, node: int, option: int, member: Longs, following: int) -> int:
        """Write the classes of one node; new ones are numbered from `following`."""
        records = self.record[self.begin[node] : self.end[node]]
        if option == _ONE:
            member[records] = following
            return following + 1
        if option in (_STAY, _JOIN):
            member[records] = self.stock.kept[records]
            if option == _JOIN:
                lost = records[self.stock.lost[records]]
                member[lost] = following
                return following + 1
            return following
        labels = self.label[option - 1, self.slot[node] : self.slot[node] + len(records)]
        member[records] = following + labels.astype(np.int64)
        return following + int(labels.max()) + 1

    def _member(self, nodes: list[int], choice: Longs) -> Longs:
        member = self.stock.kept.copy()
        following = int(member.max(initial=-1)) + 1
        for node in nodes:
            if choice[node] != _STAY:
                following = self._place(node, int(choice[node]), member, following)
        return member

    def _judge(self, watch: SeriesGuard, nodes: list[int], choice: Longs) -> Mask:
        """Whether what these nodes chose is safe, all at once."""
        from sequester.methods.loops.tree import safe_classes

        member = np.full(len(self.stock.unit), -1, np.int64)
        block = np.full(len(member), -1, np.int32)
        following = int(self.stock.kept.max(initial=-1)) + 1
        for number, node in enumerate(nodes):
            following = self._place(node, int(choice[node]), member, following)
            block[self.record[self.begin[node] : self.end[node]]] = number
        judged = np.flatnonzero(block >= 0)
        good = np.ones(len(nodes), np.bool_)
        good[block[judged[member[judged] < 0]]] = False
        own = compact(member[judged])
        lo, hi = hulls(own, self.stock.lo[judged], self.stock.hi[judged])
        sound = safe_classes(own, self.guard.values[judged], lo.shape[1], self.guard.limits)
        good[block[judged[~sound[own]]]] = False
        placed = np.zeros(len(member), np.int32)
        placed[judged] = own
        block[judged[~good[block[judged]]]] = -1
        verdict = watch.judge_blocks(placed, lo, hi, block)
        good[: len(verdict)] &= verdict[: len(nodes)] == Answer.YES.value
        return good


@dataclass(frozen=True, eq=False, repr=False)
class _Tree:
    """The units in order, and per node where its units begin and end in it, and its children."""

    order: Longs
    first: Longs
    last: Longs
    left: Longs
    right: Longs

    def total(self, of_unit: NDArray[Any]) -> NDArray[Any]:
        """Per node, the sum over its units."""
        through = np.concatenate([[0], np.cumsum(of_unit[self.order])])
        found: NDArray[Any] = through[self.last] - through[self.first]
        return found

    def hull_costs(self, unit: Longs, low: Floats, high: Floats, which: Mask) -> Floats:
        """Per node, what one class of some of its records would cost; boxes of records are positions on [0, 1]."""
        units = int(unit.max(initial=-1)) + 1
        lo, hi = np.full((units, low.shape[1]), np.inf), np.full((units, low.shape[1]), -np.inf)
        rows = np.flatnonzero(which)
        rows = rows[np.argsort(unit[rows], kind="stable")]
        if len(rows):
            start = np.flatnonzero(np.diff(unit[rows], prepend=-1))
            lo[unit[rows[start]]] = np.minimum.reduceat(low[rows], start)
            hi[unit[rows[start]]] = np.maximum.reduceat(high[rows], start)
        return self._costs(lo, hi, np.bincount(unit[rows], minlength=units))

    def _costs(self, lo: Floats, hi: Floats, size: Longs) -> Floats:
        """Per node, people times the summed widths of the box around its units, from the leaves up, level by level."""
        single = np.flatnonzero(self.left < 0)
        low, high = np.empty((len(self.left), lo.shape[1])), np.empty((len(self.left), lo.shape[1]))
        low[single], high[single] = lo[self.order[self.first[single]]], hi[self.order[self.first[single]]]
        for level in reversed(self.levels):
            left, right = self.left[level], self.right[level]
            low[level], high[level] = np.minimum(low[left], low[right]), np.maximum(high[left], high[right])
        people = self.total(size)
        cost = np.zeros(len(people))
        some = people > 0
        for axis in range(lo.shape[1]):
            cost[some] += people[some] * np.minimum(high[some, axis] - low[some, axis], 1.0)
        return cost

    @cached_property
    def levels(self) -> list[Longs]:
        """Nodes with children by how far they are from the root."""
        levels, level = [], np.zeros(min(len(self.left), 1), np.int64)
        while len(level := level[self.left[level] >= 0]):
            levels.append(level)
            level = np.concatenate([self.left[level], self.right[level]])
        return levels


def settled(
    past: Past,
    watch: SeriesGuard,
    stock: Stock,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    trials: int,
    seed: int,
    progress: Progress | None = None,
) -> Classes:
    """Classes that lose least among those that are safe.

    A class that stayed may leave a neighbor too much of a value because others changed or came: its people are placed
    anew then, as people who come back.
    """
    classes: Classes | None = None
    while True:
        try:
            forest = Forest.of(past, watch, stock, domains, guard, trials=trials, seed=seed)
            made = stock.classes(forest.settle(watch, progress))
        except GuaranteeError:
            if classes is None:
                raise
            return classes
        classes = made
        skewed = watch.skewed(classes.member, classes.lo, classes.hi)
        torn = (stock.kept >= 0) & np.isin(stock.kept, stock.kept[skewed])
        if not torn.any():
            return classes
        unsettled = stock.unsettled.copy()
        unsettled[stock.unit[torn]] = True
        stock = replace(stock, kept=np.where(torn, -1, stock.kept), lost=stock.lost | torn, unsettled=unsettled)


def _ways(trials: int, seed: int) -> Ways:
    """So many trials."""
    from sequester.methods.mondrian.search_kernels import Ways

    turn = np.arange(trials)
    wide, hopeful, whole = (np.array(way, np.bool_)[turn % len(way)] for way in (_WIDE, _HOPEFUL, _WHOLE))
    return Ways(wide, whole, hopeful, np.where(turn < len(_WIDE), 0.0, _NOISE), TRIES, seed)


def _stay_costs(stock: Stock, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Per unit, what its classes that can stay cost, and what all of them do (infinite where some have none)."""
    has = np.flatnonzero(stock.kept >= 0)
    own = np.full(len(stock.kept), np.inf)
    if len(has):
        inverse = compact(stock.kept[has])
        order = np.argsort(inverse, kind="stable")
        start = np.flatnonzero(np.diff(inverse[order], prepend=-1))
        span = np.maximum.reduceat(high[has][order], start) - np.minimum.reduceat(low[has][order], start)
        own[has] = np.minimum(span, 1.0).sum(axis=1)[inverse]
    everything = np.bincount(stock.unit, own, minlength=stock.units)
    staying = np.bincount(stock.unit, np.where(stock.lost, 0.0, own), minlength=stock.units)
    return np.asarray(staying, np.float64), np.asarray(everything, np.float64)


def _lineup(past: Past, watch: SeriesGuard, stock: Stock, guard: ClassGuard, rank: Longs) -> tuple[NodePeople, Longs]:
    """Everybody in units, in the order of the tree, and where each place of the order begins."""
    from sequester.methods.mondrian.node_kernels import NodePeople

    columns = watch.past_classes
    placed = np.flatnonzero(rank[stock.unit] >= 0)
    gone = np.flatnonzero(rank[stock.absent_unit] >= 0)
    person = np.concatenate([past.person[placed], stock.absent[gone]])
    place = np.concatenate([rank[stock.unit[placed]], rank[stock.absent_unit[gone]]])
    # Those who left come after the records of their unit, which keep their order.
    order = np.argsort(place, kind="stable")
    here = np.concatenate([np.ones(len(placed), np.bool_), np.zeros(len(gone), np.bool_)])[order]
    record = np.concatenate([placed, np.full(len(gone), -1)])[order]
    person = person[order]
    history = columns.person[person].astype(np.int64)
    column = np.full((len(person), columns.path.shape[1]), -1, np.int64)
    known = history >= 0
    path = columns.path[history[known]]
    column[known] = np.where(path >= 0, columns.same[path], -1)
    value = np.column_stack(
        [terms.value[person] + offset for terms, offset in zip(watch.views, watch.offsets, strict=True)]
    )
    lineup = NodePeople(
        rows=np.ascontiguousarray(np.where(here[:, None], stock.lo[record], 0), np.int32),
        static=np.ascontiguousarray(np.where(here[:, None], guard.values[record], 0), np.int32),
        value=np.ascontiguousarray(value, np.int32),
        column=column,
        history=history,
        unit=np.where(here, stock.kept[record], -1).astype(np.int32),
        here=here,
    )
    start = np.searchsorted(place[order], np.arange(int(rank.max(initial=-1)) + 2))
    return lineup, start.astype(np.int64)
