"""Clusters that are not safe merge with near ones, among whom it stays open who has which value."""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.methods.cluster.nearest import Wish, nearest
from sequester.methods.cluster.succession import Succession
from sequester.methods.stock import hulls

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


def gather(succession: Succession, kept: Longs, settled: Mask) -> None:
    """Judge what changed, and merge what is not safe with what is near, until it is or there is nothing more."""
    judged = settled.copy()
    for turn, lacks in ((turn, lacks) for turn in count() for lacks in (True, False)):
        unit, touched = succession.units(kept), succession.touched(kept)
        chosen = np.unique(unit[touched & ~judged])
        settled |= np.isin(unit, chosen[succession.judge(kept, unit, chosen)])
        judged |= np.isin(unit, chosen)
        groups = np.unique(unit[touched])
        open_ = np.isin(groups, unit[touched & ~settled])
        if not open_.any() or len(groups) == 1:
            return
        rows = np.flatnonzero(touched)
        part = np.searchsorted(groups, unit[rows])
        left = np.searchsorted(groups, succession.units_of_leavers(unit))
        want, has = _wants(succession, rows, part, left, open_, lacks=lacks, turn=turn)
        partner = _partners(succession, rows, part, open_, want, has)
        tied = coo_array((np.ones(len(partner)), (np.flatnonzero(open_), partner)), shape=(len(groups),) * 2)
        into = connected_components(tied, directed=False)[1]
        together = np.bincount(into) > 1
        least = np.full(len(together), np.iinfo(np.int64).max)
        np.minimum.at(least, into[part], kept[rows])
        kept[rows] = np.where(together[into[part]], least[into[part]], kept[rows])
        again = np.isin(unit, groups[together[into]])
        settled[again] = judged[again] = False


def _wants(
    succession: Succession, rows: Longs, part: Longs, left: Longs, open_: Mask, *, lacks: bool, turn: int
) -> tuple[Longs, Longs]:
    """Per part the signature it wants, one more than all for none; and what there is, as part and signature in one.

    `rows` and leavers are in these parts. Where a place was not filled a part wants one with the value of somebody who
    left (`lacks`), or somebody who left and has a value of those who stay: only among such people it remains open who
    has which.
    """
    values = int(succession.signature.max()) + 1
    here = part * values + succession.signature[succession.past.person[rows]]
    gone = left * values + succession.signature[succession.leavers[0]]
    lacking = _more(gone, here[succession.past.last_class()[rows] < 0])
    wants = lacking if lacks else np.setdiff1d(here, gone)
    wants = wants[np.isin(wants // values, lacking // values) & open_[wants // values]]
    has = np.unique(here if lacks else gone)
    # What nobody else has is not wanted; and of several things one at a time.
    several = np.bincount(has % values, minlength=values)
    wants = wants[several[wants % values] > np.isin(wants, has)]
    want = np.full(len(open_), values, np.int64)
    owner, first, number = np.unique(wants // values, return_index=True, return_counts=True)
    want[owner] = wants[first + turn % number] % values
    return want, has


def _partners(succession: Succession, rows: Longs, part: Longs, open_: Mask, want: Longs, has: Longs) -> Longs:
    """Per open part the nearest one that has what it wants; anybody has nothing."""
    parts, values = len(open_), int(succession.signature.max()) + 1
    stock, seekers = succession.stock, np.flatnonzero(open_)
    spots = succession.spots(*hulls(part, stock.lo[rows], stock.hi[rows]))
    of = np.concatenate([has // values, np.arange(parts)])
    have = np.concatenate([has % values, np.full(parts, values)])
    return of[nearest(seekers, spots, spots.take(of), wish=Wish(want[seekers], have, of))]


def _more(some: Longs, others: Longs) -> Longs:
    """Numbers that occur more often in the first list, each once and in order."""
    number, times = np.unique(some, return_counts=True)
    other, less = np.unique(others, return_counts=True)
    at = np.searchsorted(other, number)
    same = (at < len(other)) & (np.append(other, -1)[at] == number)
    return np.asarray(number[times > np.where(same, np.append(less, 0)[at], 0)])
