"""Where newcomers come in: to the places of people who left, as clusters that join others, or with whom is near.

Clusters that are not safe merge with near ones, among whom it stays open who has which value.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.methods.classes import hulls
from sequester.methods.cluster.succession import PlacedBoxes, Succession, summed_widths

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Pairs of places and newcomers of which the best matching is found; of more, everybody takes the nearest.
MATCHED = 1_000_000
# What no sum of widths is wrong by, and a price that is never paid.
_NOTHING, _NEVER = 1e-9, 1e9
# Newcomers looked at on either side for one who takes a place; and clusters, for one to join.
_REACH = 256


def fill_places(succession: Succession, kept: Longs) -> None:
    """Give the place of everybody who left to somebody near with the same values, as far as there are any.

    People who come back may do so too, where the values of their earlier classes leave it open which they have.
    """
    (gone, left), stock, codes = succession.leavers, succession.stock, succession.codes
    stay, hosts = np.flatnonzero(kept >= 0), np.flatnonzero(kept < 0)
    if not len(gone) or not len(hosts):
        return
    torn, box = np.unique(left, return_inverse=True)
    size = np.bincount(kept[stay], minlength=succession.old)[torn]
    number = np.full(succession.old, -1, np.int64)
    number[torn] = np.arange(len(torn))
    inside = stay[number[kept[stay]] >= 0]
    lo, hi = hulls(number[kept[inside]], stock.lo[inside], stock.hi[inside])
    run = succession.neighbourhoods(np.hstack([lo, codes[:, hosts]]))
    boxes = PlacedBoxes(succession.place(lo), succession.place(hi), run[: len(torn)])
    at = succession.place(codes[:, hosts])
    points = PlacedBoxes(at, at, run[len(torn) :])
    wanted, have = succession.signature[gone], succession.signature[succession.past.person[hosts]]
    for value in np.intersect1d(wanted, have):
        seeks, offers = np.flatnonzero(wanted == value), np.flatnonzero(have == value)
        whose = box.ravel()[seeks]
        if len(seeks) * len(offers) > MATCHED:
            offers = offers[succession.fresh[hosts[offers]]]
            taken = _nearest(whose, boxes, points.take(offers), once=True)
        else:
            cost = _costs(boxes.take(whose), size[whose], at[offers])
            cost = np.where(_deniable(succession, hosts[offers], torn[whose]), cost, _NEVER)
            taken = np.full(len(seeks), -1, np.int64)
            row, column = linear_sum_assignment(cost)
            taken[row] = np.where(cost[row, column] < _NEVER, column, -1)
        filled = taken >= 0
        kept[hosts[offers[taken[filled]]]] = left[seeks[filled]]


def _costs(boxes: PlacedBoxes, size: Longs, at: Floats) -> Floats:
    """(boxes, points) what more is lost when a point joins the people of a box."""
    cost: Floats = (size + 1)[:, None] * _widths_around(boxes.low, boxes.high, at)
    cost -= (size * summed_widths(boxes.low, boxes.high))[:, None]
    return cost


def _deniable(succession: Succession, hosts: Longs, torn: Longs) -> Mask:
    """(clusters, hosts) whether a host's earlier classes and the cluster share a second value."""
    columns = succession.watch.past_classes
    first = len(columns.lo) - succession.old
    before = columns.person[succession.past.person[hosts]]
    deniable = np.ones((len(torn), len(hosts)), np.bool_)
    back = np.flatnonzero(before >= 0)
    for terms in succession.watch.views if len(back) else ():
        open_ = np.ones((len(back), terms.values), np.bool_)
        for column in columns.path[before[back]].T:
            open_ &= (terms.table[column] > 0) | (column < 0)[:, None]
        common = (terms.table[first + torn] > 0).astype(np.int64) @ open_.T.astype(np.int64)
        deniable[:, back] &= common > 1
    return deniable


def join_similar(succession: Succession, kept: Longs) -> Longs:
    """Clusters of newcomers join those of the last release they are similar to; the records where that is safe."""
    unit, stock = succession.units(kept), succession.stock
    calm = np.flatnonzero(~np.isin(unit, unit[succession.touched(kept)]))
    labels, of = np.unique(kept[calm], return_inverse=True)
    hosts, seekers = np.flatnonzero(labels < succession.old), np.flatnonzero(labels >= succession.old)
    if not len(hosts) or not len(seekers):
        return np.zeros(0, np.int64)
    spots = succession.spots(*hulls(of.ravel(), stock.lo[calm], stock.hi[calm]))
    host = hosts[_nearest(seekers, spots, spots.take(hosts))]
    low, high = spots.low, spots.high
    wide = summed_widths(np.minimum(low[seekers], low[host]), np.maximum(high[seekers], high[host]))
    if succession.similarity is None:
        own = summed_widths(low, high)
        fits = wide <= np.minimum(own[seekers], own[host]) + _NOTHING
    else:
        fits = wide <= (1 - succession.similarity) * len(succession.domains) + _NOTHING
    into = np.arange(int(kept.max()) + 1)
    into[labels[seekers[fits]]] = labels[host[fits]]
    joined = np.where(kept >= 0, into[kept], -1)
    moved = np.zeros(len(into), np.bool_)
    moved[labels[host[fits]]] = True
    unit = succession.units(joined)
    chosen = np.unique(unit[moved[joined] & (joined >= 0)])
    fine = np.isin(unit, chosen[succession.judge(joined, unit, chosen)])
    kept[fine] = joined[fine]
    return np.flatnonzero(fine)


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
    return of[_nearest(seekers, spots, spots.take(of), wanted=want[seekers], have=have, of=of)]


def _more(some: Longs, others: Longs) -> Longs:
    """Numbers that occur more often in the first list, each once and in order."""
    number, times = np.unique(some, return_counts=True)
    other, less = np.unique(others, return_counts=True)
    at = np.searchsorted(other, number)
    same = (at < len(other)) & (np.append(other, -1)[at] == number)
    return np.asarray(number[times > np.where(same, np.append(less, 0)[at], 0)])


def _nearest(
    seekers: Longs,
    boxes: PlacedBoxes,
    hosts: PlacedBoxes,
    *,
    wanted: Longs | None = None,
    have: Longs | None = None,
    of: Longs | None = None,
    once: bool = False,
) -> Longs:
    """Per seeker, with one of the boxes, the nearest host that has what is wanted; -1 for none.

    wanted, have   per seeker what a host must have, and per host what it has
    of             per host, the number of the box it belongs to itself
    once           a host can be taken only once, and the box of the seeker grows around it
    Those that are near in the order of the neighbourhoods are looked at, and all others only if none of them is free.
    """
    nothing = np.zeros(len(hosts.run), np.int64)
    have, of = nothing if have is None else have, nothing - 1 if of is None else of
    wanted = np.zeros(len(seekers), np.int64) if wanted is None else wanted
    runs = int(max(boxes.run.max(initial=0), hosts.run.max(initial=0))) + 1
    key = have * runs + hosts.run
    order = np.argsort(key, kind="stable")
    begin, end, place = (
        np.searchsorted(key[order], wanted * runs + step).tolist() for step in (0, runs, boxes.run[seekers])
    )
    hosts, of, free = hosts.take(order), of[order], np.ones(len(order), np.bool_)
    low, high = boxes.low.copy(), boxes.high.copy()
    found = np.full(len(seekers), -1, np.int64)
    for seeker, own in enumerate(seekers.tolist()):
        for reach in (_REACH, len(order)):
            first, last = max(begin[seeker], place[seeker] - reach), min(end[seeker], place[seeker] + reach)
            possible = first + np.flatnonzero(free[first:last] & (of[first:last] != own))
            if len(possible):
                around = np.minimum(low[own], hosts.low[possible]), np.maximum(high[own], hosts.high[possible])
                best = int(np.argmin(summed_widths(*around)))
                found[seeker] = order[possible[best]]
                if once:
                    free[possible[best]], low[own], high[own] = False, around[0][best], around[1][best]
                break
    return found


def _widths_around(low: Floats, high: Floats, at: Floats) -> Floats:
    """(boxes, points) the summed widths of the boxes around each of both."""
    widths = np.zeros((len(low), len(at)))
    for axis in range(low.shape[1]):
        span = np.maximum(high[:, axis, None], at[:, axis]) - np.minimum(low[:, axis, None], at[:, axis])
        widths += np.minimum(span, 1.0)
    return widths
