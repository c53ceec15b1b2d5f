"""Mondrian for a series: what was published stays as it is, newcomers get classes of their own.

The people of the history fall into components, linked by any class of any release; nothing published about one says
anything about another. While nobody leaves or comes back that is safe (the merge approach of Byun et al.), and cutting
old classes anew together with newcomers gains next to nothing: on a growing Adult .276 instead of .277.

Classes that lost somebody, and people who come back, are joined near one another. Components and classes of newcomers
are the units of a tree of neighbours. What has to change in a node may become one class, or everybody in it may, or is
cut anew. From all nodes those are chosen that lose least together, judged exactly (`SeriesGuard`), and what fails is
struck out until all are safe.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes, compact
from sequester.methods.method import Progress
from sequester.methods.mondrian.cut import Cuts, mondrian
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.stock import Stock, around

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STAY, _JOIN, _ONE, _CUT = range(4)
"""What becomes of a node: it stays as it is (single units), all that cannot stay is one class, everybody is, or
everybody is cut as if nothing had been published: from here on, by how coarsely."""

_COARSER = (1, 2, 4, 8)
"""How many times k people classes have that are cut so: finer ones lose less, and are less often safe."""

_LARGEST, _MOST = 600, 50_000
"""People of a node up to which it is cut: in larger ones that is hardly ever safe. And records of a table up to which
nodes are cut: it gains least where there are many, and takes longest."""

_SAME = 1e-9
"""Losses that differ by less are not worth coarser classes; sums of floats differ by less."""


def republish(
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    cuts: Cuts = "gain",
    regroup: bool = True,
    progress: Progress | None = None,
) -> Classes:
    """Classes of the next table, given as codes (attributes, records), that are safe together with all before.

    `regroup` is about newcomers, as in plain Mondrian. Raises GuaranteeError when even the coarsest classes are not
    safe: then too few people joined, left or came back, and some of them must be held back. With a known population
    (k-map) nothing is cut anew.
    """
    watch = SeriesGuard.of(past, codes, against=against)
    if watch.idle:
        return around(mondrian(codes, domains, guard, cuts=cuts, regroup=regroup), past, codes)
    stock = Stock.of(past, watch.past_classes, codes, domains, guard, cuts=cuts, regroup=regroup)
    return settled(watch, stock, domains, guard, anew=not guard.known, progress=progress)


def settled(
    watch: SeriesGuard,
    stock: Stock,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    anew: bool = True,
    progress: Progress | None = None,
) -> Classes:
    """Classes that lose least among those that are safe; cut `anew` where that is allowed.

    A class that stayed may leave a neighbor too much of a value because others changed or came: its people are placed
    anew then, as people who come back.
    """
    classes: Classes | None = None
    while True:
        try:
            classes = stock.classes(_Blocks.of(watch, stock, domains, guard, anew=anew).settle(progress))
        except GuaranteeError:
            if classes is None:
                raise
            return classes
        skewed = watch.skewed(classes.member, classes.lo, classes.hi)
        torn = (stock.kept >= 0) & np.isin(stock.kept, stock.kept[skewed])
        if not torn.any():
            return classes
        unsettled = stock.unsettled.copy()
        unsettled[stock.unit[torn]] = True
        stock = replace(stock, kept=np.where(torn, -1, stock.kept), lost=stock.lost | torn, unsettled=unsettled)


@dataclass(frozen=True, eq=False, repr=False)
class _Blocks:
    """A tree over the units, its nodes numbered from the root, parents before children.

    record       records in the order of the tree; `begin`, `end` are per node, those of the node
    left, right  per node, its children, -1 for single units
    cost         (nodes, choices) infinity where there is none or it failed; `proven` says which are known to be safe
    cuts         per node that can be cut, and choice, the classes of its records
    """

    watch: SeriesGuard
    stock: Stock
    guard: ClassGuard
    record: Longs
    begin: Longs
    end: Longs
    left: Longs
    right: Longs
    cost: Floats
    proven: Mask
    cuts: dict[tuple[int, int], Longs]

    @classmethod
    def of(
        cls, watch: SeriesGuard, stock: Stock, domains: tuple[Hierarchy, ...], guard: ClassGuard, *, anew: bool
    ) -> _Blocks:
        """The tree with what every choice costs."""
        from sequester.methods.loops.tree import unit_tree

        frozen = np.zeros(stock.units, np.bool_)
        frozen[stock.unit[watch.past.retained]] = True
        low, high = (
            np.column_stack([domain.position[axis] for domain, axis in zip(domains, side.T, strict=True)])
            for side in (stock.lo, stock.hi)
        )
        size = np.bincount(stock.unit, minlength=stock.units)
        center = np.column_stack([np.bincount(stock.unit, axis, minlength=stock.units) for axis in (low + high).T])
        center = center / (2 * np.maximum(size, 1)[:, None])
        # What can be neither joined nor moved stays outside; and where everything can stay nothing is joined.
        inside = np.flatnonzero((~frozen | stock.unsettled) & stock.unsettled.any())
        order, first, last, left, right = unit_tree(center[inside], size[inside].astype(np.float64))
        rank = np.full(stock.units, -1, np.int64)
        rank[inside[order]] = np.arange(len(order))
        record = np.argsort(rank[stock.unit], kind="stable")
        record = record[np.count_nonzero(rank[stock.unit] < 0) :]
        ends = np.concatenate([[0], np.cumsum(size[inside[order]])])
        begin, end = ends[first], ends[last]
        cost = np.full((len(first), _CUT + len(_COARSER)), np.inf)
        proven = np.zeros(cost.shape, np.bool_)
        single, staying = left < 0, _widths(stock.kept, low, high)[record]
        unsettled, lost = stock.unsettled[stock.unit[record]], stock.lost[record]
        cost[single, _STAY] = _sums(staying, begin, end)[single]
        proven[single, _STAY] = ~unsettled[begin[single]]
        low, high = low[record], high[record]
        cost[:, _JOIN] = _hull_costs(low, high, lost, begin, end) + _sums(np.where(lost, 0.0, staying), begin, end)
        cost[:, _ONE] = _hull_costs(low, high, np.ones(len(lost), np.bool_), begin, end)
        cost[_sums(unsettled, begin, end) == 0, _JOIN:] = np.inf
        cuts = {}
        whole = (_sums(frozen[stock.unit[record]], begin, end) == 0) & (end - begin <= _LARGEST)
        for node in np.flatnonzero(np.isfinite(cost[:, _ONE]) & whole & (anew and len(record) <= _MOST)).tolist():
            span = slice(begin[node], end[node])
            here = record[span]
            for choice, times in enumerate(_COARSER, _CUT):
                limits = guard.limits._replace(k=times * guard.limits.k)
                made = mondrian(stock.lo[here].T, domains, replace(guard, limits=limits, values=guard.values[here]))
                if len(made) > 1:
                    cuts[node, choice] = made.member.astype(np.int64)
                    cost[node, choice] = _widths(cuts[node, choice], low[span], high[span]).sum()
        return cls(watch, stock, guard, record, begin, end, left, right, cost, proven, cuts)

    def settle(self, progress: Progress | None = None) -> Longs:
        """Per record its class: the cheapest choice of which every part is safe."""
        while True:
            nodes, choice = self._cheapest()
            proven = self.proven[nodes, choice]
            if progress is not None:
                progress("judge", int(proven.sum()), len(nodes))
            if proven.all():
                member = self._member(nodes, choice)
                if not self._strike(nodes[choice != _STAY], choice[choice != _STAY], member):
                    return member
                continue
            nodes, choice = nodes[~proven], choice[~proven]
            block = np.full(len(self.stock.unit), -1, np.int32)
            for number, records in enumerate(self._records(nodes)):
                block[records] = number
            safe = self.stock.safe_blocks(self.watch, self.guard, self._member(nodes, choice), block)
            self.proven[nodes, choice] = safe
            self.cost[nodes[~safe], choice[~safe]] = np.inf

    def _cheapest(self) -> tuple[Longs, Longs]:
        """The nodes of which something is made, none of them below another, and what: what costs least together."""
        option = self.cost.argmin(axis=1)
        least = self.cost.min(axis=1)
        for level in reversed(self._levels):
            parts = least[self.left[level]] + least[self.right[level]]
            option[level] = np.where(least[level] < parts - _SAME, option[level], -1)
            least[level] = np.where(option[level] < 0, parts, least[level])
        if len(least) and not np.isfinite(least[0]):
            raise GuaranteeError(
                "no classes keep the series safe, however coarse: too few people joined, left or came back since "
                "an earlier release, or too many of them share a value; hold them back until there are more",
                guarantee="series",
            )
        found, level = [], np.zeros(min(len(least), 1), np.int64)
        while len(level):
            taken = option[level] >= 0
            found.append(level[taken])
            level = np.concatenate([self.left[level[~taken]], self.right[level[~taken]]])
        nodes = np.concatenate([np.zeros(0, np.int64), *found])
        return nodes, option[nodes]

    @cached_property
    def _levels(self) -> list[Longs]:
        """Nodes with children by how far they are from the root."""
        levels, level = [], np.zeros(min(len(self.left), 1), np.int64)
        while len(level := level[self.left[level] >= 0]):
            levels.append(level)
            level = np.concatenate([self.left[level], self.right[level]])
        return levels

    def _records(self, nodes: Longs) -> list[Longs]:
        """The records of every one of these nodes."""
        return [self.record[self.begin[node] : self.end[node]] for node in nodes.tolist()]

    def _member(self, nodes: Longs, choice: Longs) -> Longs:
        """Per record its class when these nodes become what is chosen, and all else stays."""
        member = self.stock.kept.copy()
        following = int(member.max(initial=-1)) + 1
        for node, records, made in zip(nodes.tolist(), self._records(nodes), choice.tolist(), strict=True):
            if made >= _CUT:
                member[records] = following + self.cuts[node, made]
            elif made != _STAY:
                member[records if made == _ONE else records[self.stock.lost[records]]] = following
            following += _LARGEST
        return member

    def _strike(self, made: Longs, choice: Longs, member: Longs) -> bool:
        """Give up what leaves a neighbor too much of a value, seen in the whole table; whether there was any.

        What stays as it is is given up by nobody: then it is those near it that changed what is left of it.
        """
        if not len(made):
            # Nothing was made here: what the classes of the last release leave is for the audit to judge.
            return False
        classes = self.stock.classes(member)
        skewed = self.watch.skewed(classes.member, classes.lo, classes.hi)
        if not skewed.any():
            return False
        records = self._records(made)
        hit = np.array([skewed[inside].any() for inside in records])
        if not hit.any():
            there = np.unique(classes.member[skewed])
            lo, hi = classes.lo[:, there].T, classes.hi[:, there].T
            low, high = self.stock.lo, self.stock.hi
            near = [(low[inside].min(axis=0) <= hi) & (high[inside].max(axis=0) >= lo) for inside in records]
            hit = np.array([boxes.all(axis=1).any() for boxes in near])
        hit |= not hit.any()
        self.cost[made[hit], choice[hit]] = np.inf
        return True


def _widths(member: Longs, low: Floats, high: Floats) -> Floats:
    """Per record the summed widths of the box of its class, infinite where it has none."""
    found, has = np.full(len(member), np.inf), np.flatnonzero(member >= 0)
    if len(has):
        own = compact(member[has])
        order = np.argsort(own, kind="stable")
        start = np.flatnonzero(np.diff(own[order], prepend=-1))
        span = np.maximum.reduceat(high[has][order], start) - np.minimum.reduceat(low[has][order], start)
        found[has] = np.minimum(span, 1.0).sum(axis=1)[own]
    return found


def _sums(numbers: NDArray[Any], begin: Longs, end: Longs) -> Floats:
    """Sums of runs of numbers, of which some may be infinite."""
    finite = np.isfinite(numbers)
    through = np.concatenate([[0.0], np.cumsum(np.where(finite, numbers, 0.0))])
    without = np.concatenate([[0], np.cumsum(~finite)])
    return np.where(without[end] > without[begin], np.inf, through[end] - through[begin])


def _hull_costs(low: Floats, high: Floats, counted: Mask, begin: Longs, end: Longs) -> Floats:
    """Per run of records, what one class of those that are counted would cost; boxes are positions on [0, 1]."""
    people = _sums(counted, begin, end)
    # A record beyond the end, since a run may end there.
    nowhere = np.full((1, low.shape[1]), np.inf)
    low = np.vstack([np.where(counted[:, None], low, np.inf), nowhere])
    high = np.vstack([np.where(counted[:, None], high, -np.inf), -nowhere])
    ends = np.column_stack([begin, end]).ravel()
    cost = np.zeros(len(begin))
    some = people > 0
    if some.any():
        span = np.maximum.reduceat(high, ends)[::2][some] - np.minimum.reduceat(low, ends)[::2][some]
        cost[some] = people[some] * np.minimum(span, 1.0).sum(axis=1)
    return cost
