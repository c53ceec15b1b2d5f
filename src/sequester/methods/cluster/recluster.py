"""Clusters for a series: those of the last release stay, grow and merge; newcomers join them or form their own.

Incremental clustering (Reddy, Raju and Valli Kumari) under the rules that make it safe. Whoever left a cluster would be
what is left of it when the new one is subtracted. So a newcomer with the same values takes her place, the nearest there
is: then the cluster publishes the same values as before, and who of both has which cannot be told (the idea of
m-invariance, Xiao and Tao, without counterfeits). All other newcomers form clusters among themselves, which hide them,
and such a cluster joins one of the last release where they are similar enough (grow-only lemma).

Every cluster that did not just stay is judged by `SeriesGuard`. Those that are not safe merge with near ones and are
judged again. In the end the blocks of the series Mondrian split and merge whatever loses less and is safe, up to the
whole table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes, hulls
from sequester.methods.cluster.join import cluster, clusters, in_order
from sequester.methods.mondrian.forest import Forest, Progress
from sequester.methods.mondrian.republish import TRIALS_REGROUPED
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.methods.stock import Stock, around

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

REACH = 256
"""Newcomers looked at on either side for one who takes a place; and clusters, for one to join."""

FEW = 2000
"""Records up to which it is also tried what is lost when nobody takes another's place."""

_RUN, _NOTHING, _NEVER = 16, 1e-9, 1e9
# Pairs of places and newcomers of which the best matching is found; of more, everybody takes the nearest.
_MATCHED = 1_000_000


def recluster(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    similarity: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Classes:
    """Clusters of the next table, given as codes (attributes, records), that are safe together with all before.

    `similarity` is as in `cluster`, also of newcomers' clusters with those they join; without it they join where that
    loses nothing. Raises GuaranteeError when even the coarsest classes are not safe: then too few people joined, left
    or came back, and some of them must be held back. The same seed gives the same clusters.
    """
    watch = SeriesGuard.of(past, codes, against=against)
    if watch.idle:
        return around(cluster(codes, domains, guard, similarity=similarity), past, codes)
    stock = Stock.of(past, watch.past_classes, codes, domains, guard, cuts="gain", regroup=False)
    table = _Table(past, watch, codes, domains, guard, stock, similarity)

    def settled(*, fill: bool) -> Classes:
        grown = table.grown(fill=fill)
        forest = Forest.of(past, watch, grown, domains, guard, trials=TRIALS_REGROUPED, seed=seed)
        return grown.classes(forest.settle(watch, progress))

    if not len(table.leavers[0]) and table.fresh[past.last_class() < 0].all():
        return settled(fill=False)
    try:
        found = settled(fill=True)
    except GuaranteeError:
        return settled(fill=False)
    if len(past) > FEW:
        return found
    try:
        other = settled(fill=False)
    except GuaranteeError:
        return found
    return min(found, other, key=table.loss)


@dataclass(frozen=True, eq=False, repr=False)
class _Table:
    """The next table beside the last release; `stock` has its components, and what every record adds to a box."""

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
        found: Mask = self.watch.past_classes.person[self.past.person] < 0
        return found

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
    def left(self) -> Mask:
        """Per person of the stock who is not here, whether she is one of the leavers."""
        return np.isin(self.stock.absent, self.leavers[0])

    def loss(self, classes: Classes) -> float:
        """People times the summed widths of their boxes."""
        return float(classes.size @ _width(self._place(classes.lo), self._place(classes.hi)))

    def grown(self, *, fill: bool) -> Stock:
        """What stays, grew and merged, as the stock of blocks; without `fill` nobody takes another's place."""
        kept = self.past.last_class().astype(np.int64)
        if fill:
            self._fill(kept)
        rest = np.flatnonzero(kept < 0 if fill else self.fresh)
        if len(rest):
            own = replace(self.guard, values=self.guard.values[rest])
            made = clusters(np.ascontiguousarray(self.codes[:, rest]), self.domains, own, similarity=self.similarity)
            kept[rest] = self.old + made.member
        settled = np.zeros(len(kept), np.bool_)
        settled[self._join(kept)] = True
        if fill:
            self._gather(kept, settled)
        unit, open_ = self._units(kept), self._touched(kept) & ~settled
        unsettled = np.zeros(int(unit.max(initial=-1)) + 1, np.bool_)
        unsettled[unit[open_]] = True
        absent_unit = self._of_absent(unit)
        return replace(self.stock, unit=unit, kept=kept, lost=open_, unsettled=unsettled, absent_unit=absent_unit)

    def _fill(self, kept: Longs) -> None:
        """Give the place of everybody who left to somebody near with the same values, as far as there are any.

        People who come back may do so too, where the values of their earlier classes leave it open which they have.
        """
        gone, left = self.leavers
        stay, hosts = np.flatnonzero(kept >= 0), np.flatnonzero(kept < 0)
        size = np.bincount(kept[stay], minlength=self.old)
        if not len(gone) or not len(hosts):
            return
        torn, box = np.unique(left, return_inverse=True)
        number = np.full(self.old, -1, np.int64)
        number[torn] = np.arange(len(torn))
        inside = stay[number[kept[stay]] >= 0]
        lo, hi = hulls(number[kept[inside]], self.stock.lo[inside], self.stock.hi[inside])
        low, high, at = self._place(lo), self._place(hi), self._place(self.codes[:, hosts])
        run = self._neighbours(np.hstack([lo, self.codes[:, hosts]]))
        wanted, have = self.signature[gone], self.signature[self.past.person[hosts]]
        for value in np.intersect1d(wanted, have):
            seeks, offers = np.flatnonzero(wanted == value), np.flatnonzero(have == value)
            boxes = box.ravel()[seeks]
            if len(seeks) * len(offers) > _MATCHED:
                offers = offers[self.fresh[hosts[offers]]]
                found = self._nearest(boxes, low, high, run[: len(torn)], at[offers], run[len(torn) :][offers])
            else:
                cost = (size[torn[boxes]] + 1)[:, None] * _widths(low[boxes], high[boxes], at[offers])
                cost -= (size[torn[boxes]] * _width(low[boxes], high[boxes]))[:, None]
                cost = np.where(self._deniable(hosts[offers], torn[boxes]), cost, _NEVER)
                found = np.full(len(seeks), -1, np.int64)
                row, column = linear_sum_assignment(cost)
                found[row] = np.where(cost[row, column] < _NEVER, column, -1)
            filled = found >= 0
            kept[hosts[offers[found[filled]]]] = left[seeks[filled]]

    @cached_property
    def signature(self) -> Longs:
        """Per person, a number for her values in all views that do not change; of no meaning where they are unknown."""
        found = np.zeros(len(self.past.first.people), np.int64)
        for terms in self.watch.views:
            found = np.unique(found * terms.values + np.maximum(terms.value, 0), return_inverse=True)[1].ravel()
        return found

    def _deniable(self, hosts: Longs, torn: Longs) -> Mask:
        """(clusters, hosts) whether a host's earlier classes and the cluster share a second value."""
        columns, first = self.watch.past_classes, len(self.watch.past_classes.lo) - self.old
        before = columns.person[self.past.person[hosts]]
        found = np.ones((len(torn), len(hosts)), np.bool_)
        back = np.flatnonzero(before >= 0)
        for terms in self.watch.views if len(back) else ():
            open_ = np.ones((len(back), terms.values), np.bool_)
            for column in columns.path[before[back]].T:
                open_ &= (terms.table[column] > 0) | (column < 0)[:, None]
            common = (terms.table[first + torn] > 0).astype(np.int64) @ open_.T.astype(np.int64)
            found[:, back] &= common > 1
        return found

    def _join(self, kept: Longs) -> Longs:
        """Clusters of newcomers join those of the last release they are similar to; the records where that is safe."""
        unit = self._units(kept)
        calm = np.flatnonzero(~np.isin(unit, unit[self._touched(kept)]))
        labels, of = np.unique(kept[calm], return_inverse=True)
        hosts, seekers = np.flatnonzero(labels < self.old), np.flatnonzero(labels >= self.old)
        if not len(hosts) or not len(seekers):
            return np.zeros(0, np.int64)
        lo, hi = hulls(of.ravel(), self.stock.lo[calm], self.stock.hi[calm])
        run = self._neighbours(lo)
        low, high = self._place(lo), self._place(hi)
        found = self._nearest(seekers, low, high, run, low[hosts], run[hosts], high[hosts])
        host = hosts[found]
        wide = _width(np.minimum(low[seekers], low[host]), np.maximum(high[seekers], high[host]))
        if self.similarity is None:
            fits = wide <= np.minimum(_width(low[seekers], high[seekers]), _width(low[host], high[host])) + _NOTHING
        else:
            fits = wide <= (1 - self.similarity) * len(self.domains) + _NOTHING
        into = np.arange(int(kept.max()) + 1)
        into[labels[seekers[fits]]] = labels[host[fits]]
        joined = np.where(kept >= 0, into[kept], -1)
        moved = np.zeros(len(into), np.bool_)
        moved[labels[host[fits]]] = True
        unit = self._units(joined)
        chosen = np.unique(unit[moved[joined] & (joined >= 0)])
        fine = np.isin(unit, chosen[self._judge(joined, unit, chosen)])
        kept[fine] = joined[fine]
        return np.flatnonzero(fine)

    def _gather(self, kept: Longs, settled: Mask) -> None:
        """Judge what changed, and merge what is not safe with what is near, until it is or there is nothing more."""
        judged = settled.copy()
        for step in count():
            unit, touched = self._units(kept), self._touched(kept)
            chosen = np.unique(unit[touched & ~judged])
            settled |= np.isin(unit, chosen[self._judge(kept, unit, chosen)])
            judged |= np.isin(unit, chosen)
            groups = np.unique(unit[touched])
            open_ = np.isin(groups, unit[touched & ~settled])
            if not open_.any() or len(groups) == 1:
                return
            rows = np.flatnonzero(touched)
            part = np.searchsorted(groups, unit[rows])
            partner = self._partners(rows, part, np.searchsorted(groups, self._of_absent(unit)[self.left]), open_, step)
            tied = coo_array((np.ones(len(partner)), (np.flatnonzero(open_), partner)), shape=(len(groups),) * 2)
            into = connected_components(tied, directed=False)[1]
            together = np.bincount(into) > 1
            least = np.full(len(together), np.iinfo(np.int64).max)
            np.minimum.at(least, into[part], kept[rows])
            kept[rows] = np.where(together[into[part]], least[into[part]], kept[rows])
            again = np.isin(unit, groups[together[into]])
            settled[again] = judged[again] = False

    def _partners(self, rows: Longs, part: Longs, left: Longs, open_: Mask, step: int) -> Longs:
        """Per open part a near one to merge with; `rows` and leavers are in these parts.

        Where a place was not filled it is one with the value of somebody who left, or with somebody who left and has
        a value of those who stay, in turns: only among such people it remains open who has which.
        """
        parts, values = len(open_), int(self.signature.max()) + 1
        here = part * values + self.signature[self.past.person[rows]]
        gone = left * values + self.signature[self.leavers[0]]
        came = here[self.past.last_class()[rows] < 0]
        lacking = _more(gone, came)
        wants = [lacking, np.setdiff1d(here, gone)][step % 2]
        wants = wants[np.isin(wants // values, lacking // values) & open_[wants // values]]
        has = np.unique(here if step % 2 == 0 else gone)
        # Parts that want something, one thing at a time; what nobody else has is not wanted.
        several = np.bincount(has % values, minlength=values)
        wants = wants[several[wants % values] > np.isin(wants, has)]
        want = np.full(parts, values, np.int64)
        owner, first, number = np.unique(wants // values, return_index=True, return_counts=True)
        want[owner] = wants[first + (step // 2) % number] % values
        lo, hi = hulls(part, self.stock.lo[rows], self.stock.hi[rows])
        run, low, high = self._neighbours(lo), self._place(lo), self._place(hi)
        of = np.concatenate([has // values, np.arange(parts)])
        what = np.concatenate([has % values, np.full(parts, values)])
        seekers = np.flatnonzero(open_)
        found = self._nearest(
            seekers, low, high, run, low[of], run[of], high[of], of=of, wanted=want[seekers], have=what
        )  # fmt: skip
        return of[found]

    def _nearest(
        self,
        box: Longs,
        low: Floats,
        high: Floats,
        run: Longs,
        at_low: Floats,
        at_run: Longs,
        at_high: Floats | None = None,
        *,
        of: Longs | None = None,
        wanted: Longs | None = None,
        have: Longs | None = None,
    ) -> Longs:
        """Per seeker, with one of the boxes, the nearest host that has what is wanted; -1 for none.

        Hosts without a box of their own are points, which can be taken only once.
        """
        from sequester.methods.cluster.join_kernels import take_nearest

        runs = int(max(run.max(initial=0), at_run.max(initial=0))) + 1
        key = at_run if have is None else have * runs + at_run
        order = np.argsort(key, kind="stable")
        key, start = key[order], np.zeros(len(box), np.int64) if wanted is None else wanted * runs
        owner = np.full(len(key), -1, np.int64) if of is None else of
        once = at_high is None
        at_high = at_low if at_high is None else at_high
        found = take_nearest(
            box, low.copy(), high.copy(), np.searchsorted(key, start), np.searchsorted(key, start + runs),
            np.searchsorted(key, start + run[box]), owner[order], at_low[order], at_high[order], REACH, once,
        )  # fmt: skip
        return np.where(found >= 0, order[found], -1)

    def _of_absent(self, unit: Longs) -> Longs:
        """Per person who is not here, the unit she is tied to."""
        of_component = np.zeros(int(self.stock.unit.max(initial=-1)) + 1, np.int64)
        of_component[self.stock.unit] = unit
        found: Longs = of_component[self.stock.absent_unit]
        return found

    def _units(self, kept: Longs) -> Longs:
        """Per record, its closed block: people tied by any class of any release, or by these clusters."""
        known = ~self.fresh
        first = int(self.stock.unit[known].max(initial=-1)) + 1
        node = np.where(known, self.stock.unit, first + kept)
        tied = np.flatnonzero(known & (kept >= 0))
        nodes = first + int(kept.max(initial=-1)) + 1
        graph = coo_array((np.ones(len(tied), np.int8), (node[tied], first + kept[tied])), shape=(nodes, nodes))
        label = connected_components(graph, directed=False)[1]
        return np.unique(label[node], return_inverse=True)[1].ravel().astype(np.int64)

    def _touched(self, kept: Longs) -> Mask:
        """Per record, whether its cluster is not just one that stayed, or a safe one of newcomers."""
        from sequester.methods.loops.tree import safe_classes

        numbers = max(int(kept.max(initial=-1)) + 1, self.old)
        changed = ~safe_classes(kept.astype(np.int64, copy=False), self.guard.values, numbers, self.guard.limits)
        changed[self.leavers[1]] = True
        last = self.past.last_class()
        came = np.flatnonzero((last < 0) & (kept >= 0))
        changed[kept[came[(kept[came] < self.old) | ~self.fresh[came]]]] = True
        found: Mask = (kept < 0) | changed[kept] | ((last >= 0) & (kept != last))
        return found

    def _judge(self, kept: Longs, unit: Longs, chosen: Longs) -> Mask:
        """Per chosen unit whether its clusters are safe, by themselves and in the series."""
        from sequester.methods.loops.tree import safe_classes

        number = np.full(int(unit.max(initial=-1)) + 1, -1, np.int32)
        number[chosen] = np.arange(len(chosen))
        block = number[unit]
        judged = np.flatnonzero(block >= 0)
        good = np.ones(len(chosen), np.bool_)
        if not len(judged):
            return good
        compact = np.unique(kept[judged], return_inverse=True)[1].ravel()
        lo, hi = hulls(compact, self.stock.lo[judged], self.stock.hi[judged])
        sound = safe_classes(compact, self.guard.values[judged], lo.shape[1], self.guard.limits)
        good[block[judged[~sound[compact]]]] = False
        placed = np.zeros(len(kept), np.int32)  # elsewhere: people of other blocks did not leave
        placed[judged] = compact
        block[judged[~good[block[judged]]]] = -1
        verdict = self.watch.judge_blocks(placed, lo, hi, block)
        good[: len(verdict)] &= verdict[: len(good)] == Answer.YES.value
        return good

    def _neighbours(self, codes: Ints) -> Longs:
        """Per point (attributes, points) the number of its neighbourhood; near ones have near numbers."""
        return in_order(np.ascontiguousarray(codes), self.domains, self.guard, _RUN).astype(np.int64)

    def _place(self, codes: Ints) -> Floats:
        """(points, attributes) where these codes (attributes, points) lie."""
        return np.column_stack([domain.position[side] for domain, side in zip(self.domains, codes, strict=True)])


def _width(low: Floats, high: Floats) -> Floats:
    found: Floats = np.minimum(high - low, 1.0).sum(axis=1)
    return found


def _widths(low: Floats, high: Floats, at: Floats) -> Floats:
    """(boxes, points) the summed widths of the boxes around each of both."""
    found = np.zeros((len(low), len(at)))
    for axis in range(low.shape[1]):
        span = np.maximum(high[:, axis, None], at[:, axis]) - np.minimum(low[:, axis, None], at[:, axis])
        found += np.minimum(span, 1.0)
    return found


def _more(some: Longs, others: Longs) -> Longs:
    """Numbers that occur more often in the first list, each once and in order."""
    found, times = np.unique(some, return_counts=True)
    other, less = np.unique(others, return_counts=True)
    at = np.searchsorted(other, found)
    same = (at < len(other)) & (np.append(other, -1)[at] == found)
    return np.asarray(found[times > np.where(same, np.append(less, 0)[at], 0)])
