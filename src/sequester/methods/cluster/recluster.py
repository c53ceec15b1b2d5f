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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster.arrivals import fill_places, gather, join_similar
from sequester.methods.cluster.join import cluster, clusters
from sequester.methods.cluster.succession import Succession
from sequester.methods.method import Progress
from sequester.methods.mondrian.republish import settled
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.stock import Stock, around

Ints = NDArray[np.int32]

FEW = 2000
"""Records up to which it is also tried what is lost when nobody takes another's place."""


def recluster(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    similarity: float | None = None,
    progress: Progress | None = None,
) -> Classes:
    """Clusters of the next table, given as codes (attributes, records), that are safe together with all before.

    `similarity` is as in `cluster`, also of newcomers' clusters with those they join; without it they join where that
    loses nothing. Raises GuaranteeError when even the coarsest classes are not safe: then too few people joined, left
    or came back, and some of them must be held back.
    """
    watch = SeriesGuard.of(past, codes, against=against)
    if watch.idle:
        return around(cluster(codes, domains, guard, similarity=similarity), past, codes)
    stock = Stock.of(past, watch.past_classes, codes, domains, guard, cuts="gain", regroup=False)
    succession = Succession(past, watch, codes, domains, guard, stock, similarity)

    def made(*, filled: bool) -> Classes:
        grown = _grown(succession, filled=filled)
        return settled(watch, grown, domains, guard, progress=progress)

    if not len(succession.leavers[0]) and succession.fresh[past.last_class() < 0].all():
        return made(filled=False)
    try:
        filled = made(filled=True)
    except GuaranteeError:
        return made(filled=False)
    if len(past) > FEW:
        return filled
    try:
        unfilled = made(filled=False)
    except GuaranteeError:
        return filled
    return min(filled, unfilled, key=succession.loss)


def _grown(succession: Succession, *, filled: bool) -> Stock:
    """What stays, grew and merged, as the stock of blocks; unless `filled` nobody takes another's place."""
    guard, stock = succession.guard, succession.stock
    kept = succession.past.last_class().astype(np.int64)
    if filled:
        fill_places(succession, kept)
    rest = np.flatnonzero(kept < 0 if filled else succession.fresh)
    if len(rest):
        own, codes = replace(guard, values=guard.values[rest]), np.ascontiguousarray(succession.codes[:, rest])
        made = clusters(codes, succession.domains, own, similarity=succession.similarity)
        kept[rest] = succession.old + made.member
    settled = np.zeros(len(kept), np.bool_)
    settled[join_similar(succession, kept)] = True
    if filled:
        gather(succession, kept, settled)
    unit, open_ = succession.units(kept), succession.touched(kept) & ~settled
    unsettled = np.zeros(int(unit.max(initial=-1)) + 1, np.bool_)
    unsettled[unit[open_]] = True
    absent_unit = succession.units_of_absent(unit)
    return replace(stock, unit=unit, kept=kept, lost=open_, unsettled=unsettled, absent_unit=absent_unit)
