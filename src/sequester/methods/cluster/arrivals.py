"""Where newcomers come in: to the places of people who left, or as clusters that join others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sequester.methods.cluster.nearest import Spots, nearest, summed_widths, widths_around
from sequester.methods.cluster.succession import Succession
from sequester.methods.stock import hulls

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Pairs of places and newcomers of which the best matching is found; of more, everybody takes the nearest.
MATCHED = 1_000_000
# What no sum of widths is wrong by, and a price that is never paid.
_NOTHING, _NEVER = 1e-9, 1e9


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
    boxes = Spots(succession.place(lo), succession.place(hi), run[: len(torn)])
    at = succession.place(codes[:, hosts])
    points = Spots(at, at, run[len(torn) :])
    wanted, have = succession.signature[gone], succession.signature[succession.past.person[hosts]]
    for value in np.intersect1d(wanted, have):
        seeks, offers = np.flatnonzero(wanted == value), np.flatnonzero(have == value)
        whose = box.ravel()[seeks]
        if len(seeks) * len(offers) > MATCHED:
            offers = offers[succession.fresh[hosts[offers]]]
            taken = nearest(whose, boxes, points.take(offers), once=True)
        else:
            cost = _costs(boxes.take(whose), size[whose], at[offers])
            cost = np.where(_deniable(succession, hosts[offers], torn[whose]), cost, _NEVER)
            taken = np.full(len(seeks), -1, np.int64)
            row, column = linear_sum_assignment(cost)
            taken[row] = np.where(cost[row, column] < _NEVER, column, -1)
        filled = taken >= 0
        kept[hosts[offers[taken[filled]]]] = left[seeks[filled]]


def _costs(boxes: Spots, size: Longs, at: Floats) -> Floats:
    """(boxes, points) what more is lost when a point joins the people of a box."""
    cost: Floats = (size + 1)[:, None] * widths_around(boxes.low, boxes.high, at)
    cost -= (size * summed_widths(boxes.low, boxes.high))[:, None]
    return cost


def _deniable(succession: Succession, hosts: Longs, torn: Longs) -> Mask:
    """(clusters, hosts) whether a host's earlier classes and the cluster share a second value."""
    columns = succession.watch.columns
    first = len(columns.lo) - succession.old
    before = columns.person[succession.past.person[hosts]]
    deniable = np.ones((len(torn), len(hosts)), np.bool_)
    back = np.flatnonzero(before >= 0)
    for terms in succession.watch.terms if len(back) else ():
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
    host = hosts[nearest(seekers, spots, spots.take(hosts))]
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
