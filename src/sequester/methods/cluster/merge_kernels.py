"""Clusters among units that are near one another: those that are alike join, and clusters merge until they are safe.

Distances are the loss itself: how much wider, over all attributes, the box around two clusters is than each alone,
for everybody in them. Positions lie on [0, 1], a missing value at 2, so that mixing it with others costs 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe

Shorts = NDArray[np.float32]
Longs = NDArray[np.int64]

# The widest that an attribute can be, and what no sum of rounded widths differs by.
_ALL, _NOTHING = np.float32(1), np.float32(1e-5)
_NEVER = np.float32(np.inf)

# Partners looked at for one with whom a cluster is safe at once: that is nearly always among the nearest few, and where
# a value is too frequent everywhere all would be looked at in vain.
TRIES = 32


class Clusters(NamedTuple):
    """Units or clusters: their boxes, people, and value counts. One that is gone has nobody."""

    low: Shorts  # (attributes, clusters)
    high: Shorts
    size: Shorts
    cost: Shorts  # people times the summed widths of their box; negatively infinite for one that is gone
    counts: Longs  # (clusters, values)


class MergeQueue(NamedTuple):
    """Clusters that are not safe wait for a partner.

    The one goes first whose merge costs least, divided by the square of what it has of the k people: clusters that were
    begun are finished before others begin.
    """

    into: Longs  # the one that absorbed it, or itself
    version: Longs  # how many it has absorbed
    urgency: Shorts  # the price it waits for, infinite for one that is safe
    partner: Longs  # whom it would merge with, -1 before it has looked
    seen: Longs  # the version of the partner that was looked at


@helper(fastmath={"nnan", "nsz"})
def _least(numbers):
    """Where the least of some numbers is: first what it is, in a loop that is unrolled, and then where."""
    lowest = numbers[0]
    for number in numbers:
        lowest = min(lowest, number)
    at = 0
    while numbers[at] != lowest:
        at += 1
    return at


@helper(fastmath={"nnan", "nsz"})
def _widths_around(clusters, count, c, wide):
    """Per cluster the summed widths of the box around it and cluster c."""
    lows, highs = clusters.low, clusters.high
    for o in range(count):
        wide[o] = 0
    for axis in range(lows.shape[0]):
        a, b = lows[axis, c], highs[axis, c]
        for o in range(count):
            x, y = lows[axis, o], highs[axis, o]
            x = a if a < x else x
            y = b if b > y else y
            span = y - x
            wide[o] += span if span < _ALL else _ALL


@helper
def _absorb(clusters, c, o):
    """Merge cluster o into cluster c."""
    width = np.float32(0)
    for axis in range(clusters.low.shape[0]):
        clusters.low[axis, c] = min(clusters.low[axis, c], clusters.low[axis, o])
        clusters.high[axis, c] = max(clusters.high[axis, c], clusters.high[axis, o])
        width += min(clusters.high[axis, c] - clusters.low[axis, c], _ALL)
    clusters.size[c] += clusters.size[o]
    clusters.cost[c] = clusters.size[c] * width
    for value in range(clusters.counts.shape[1]):
        clusters.counts[c, value] += clusters.counts[o, value]
    clusters.size[o] = 0
    clusters.cost[o] = -_NEVER


@helper
def _host(clusters, unit, widest, wide):
    """The cluster before a unit that it may join, and is nearest to; -1 for none. At 0 only equal ones join."""
    host = -1
    if widest > 0:
        _widths_around(clusters, unit, unit, wide)
        nearest = np.float32(widest) + _NOTHING
        for c in range(unit):
            if clusters.size[c] > 0 and wide[c] < nearest:
                nearest = wide[c]
                host = c
        return host
    for c in range(unit - 1, -1, -1):
        same = clusters.size[c] > 0
        for axis in range(clusters.low.shape[0]):
            if clusters.low[axis, c] != clusters.high[axis, unit] or clusters.high[axis, c] != clusters.low[axis, unit]:
                same = False
                break
        if same:
            return c
    return host


@helper
def _first_urgency(clusters, c, limits):
    """Clusters that are not safe look for a partner at once, those that are never do."""
    size = clusters.size[c]
    return _NEVER if size == 0 or safe(clusters.counts[c], int(size), limits) else np.float32(0)


@helper
def _look(clusters, waiting, c, wide, total, limits):
    """Find the partner whose union with c costs least, rather one that makes it safe, and how urgent their merge is.

    What counts is what is lost beyond what the other lost already.
    """
    count, size = wide.size, clusters.size
    _widths_around(clusters, count, c, wide)
    for o in range(count):
        wide[o] = (size[c] + size[o]) * wide[o] - clusters.cost[o]
    wide[c] = _NEVER
    partner = _least(wide)
    price = wide[partner]
    for _ in range(TRIES if total.size > 0 else 0):
        o = _least(wide)
        if wide[o] == np.inf:
            break
        for value in range(total.size):
            total[value] = clusters.counts[c, value] + clusters.counts[o, value]
        if size[c] + size[o] < limits.k or safe(total, int(size[c] + size[o]), limits):
            partner, price = o, wide[o]
            break
        wide[o] = _NEVER
    share = min(size[c], np.float32(max(limits.k, 1)))
    waiting.urgency[c] = max((price - clusters.cost[c]) / (share * share), np.float32(0))
    waiting.partner[c] = partner
    waiting.seen[c] = waiting.version[partner]


@kernel
def merge_units(clusters: Clusters, limits: Limits, widest: float) -> tuple[Longs, float]:
    """Units join clusters as long as these are no wider than `widest`, and clusters that are not safe merge.

    All units together must be safe. Returns the cluster of every unit and what all clusters cost; `clusters` are units
    at first, and are changed.
    """
    count = clusters.size.size
    wide, total = np.empty(count, np.float32), np.zeros(clusters.counts.shape[1], np.int64)
    waiting = MergeQueue(
        np.arange(count),
        np.zeros(count, np.int64),
        np.empty(count, np.float32),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
    )
    left = count
    for unit in range(count):
        host = _host(clusters, unit, widest, wide)
        if host >= 0:
            _absorb(clusters, host, unit)
            waiting.into[unit] = host
            left -= 1
    for c in range(count):
        waiting.urgency[c] = _first_urgency(clusters, c, limits)
    while left > 1:
        c = _least(waiting.urgency)
        if waiting.urgency[c] == np.inf:
            break
        o = waiting.partner[c]
        if o < 0 or clusters.size[o] == 0 or waiting.version[o] != waiting.seen[c]:
            # What was near is no longer what it was: the merge may cost more now, and have to wait.
            _look(clusters, waiting, c, wide, total, limits)
            continue
        _absorb(clusters, c, o)
        waiting.into[o] = c
        waiting.version[c] += 1
        waiting.urgency[o] = _NEVER
        waiting.partner[c] = -1
        waiting.urgency[c] = _first_urgency(clusters, c, limits)
        left -= 1
    lost = 0.0
    for c in range(count):
        if clusters.size[c] > 0:
            lost += clusters.cost[c]
        while waiting.into[waiting.into[c]] != waiting.into[c]:
            waiting.into[c] = waiting.into[waiting.into[c]]
    return waiting.into, lost
