"""Clusters in windows of neighbours: records join those they are near to, and clusters merge until they are safe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.cluster.box_kernels import (
    NEVER,
    NOTHING,
    Records,
    Windows,
    bound,
    cluster_width,
    least,
    room_for,
    run_end,
    widths_around,
)

Ints = NDArray[np.int32]

# Partners looked at for one with whom a cluster is safe at once: that is nearly always among the nearest few, and where
# a value is too frequent everywhere all would be looked at in vain.
TRIES = 32


class JoinRules(NamedTuple):
    """When units join a cluster, and what is left as it is.

    widest   units join a cluster as long as its summed widths are at most this; at 0 only equal ones do
    longest  windows of more units, which are single classes that cannot be cut, stay as they are
    compare  whether classes of the base are taken in windows where they cost no more than the clusters
    """

    widest: float
    longest: int
    compare: bool


class MergeQueue(NamedTuple):
    """Clusters in slots, the last of which moves to where one was absorbed; an identity never changes.

    Of those that are not safe the one goes first whose merge costs least, divided by the square of what it has of the
    k people: clusters that were begun are finished before others begin.
    """

    identity: NDArray[np.int64]  # per slot
    slot: NDArray[np.int64]  # per identity, -1 once it is absorbed
    into: NDArray[np.int64]  # per identity the one that absorbed it, or itself
    version: NDArray[np.int64]  # per identity how many it has absorbed
    urgency: NDArray[np.float32]  # per slot the price it waits for, infinite for one that is safe
    partner: NDArray[np.int64]  # per slot the identity it would merge with, -1 before it has looked
    seen: NDArray[np.int64]  # per slot the version of the partner that was looked at


@helper(inline="always")
def _first_urgency(clusters, c, limits):
    """Clusters that are not safe look for a partner at once, those that are never do."""
    if clusters.size[c] >= limits.k and safe(clusters.counts[c], int(clusters.size[c]), limits):
        return NEVER
    return np.float32(0)


@helper(inline="always")
def _line_up(clusters, count, limits):
    waiting = MergeQueue(
        np.arange(count),
        np.arange(count),
        np.arange(count),
        np.zeros(count, np.int64),
        np.empty(count, np.float32),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
    )
    for c in range(count):
        clusters.cost[c] = clusters.size[c] * cluster_width(clusters, c)
        waiting.urgency[c] = _first_urgency(clusters, c, limits)
    return waiting


@helper
def _partner(clusters, c, count, scratch, limits):
    """The cluster whose union with c costs least, rather one that makes it safe; `scratch.wide` holds costs."""
    wide, total, size = scratch.wide, scratch.total, clusters.size
    first, price = -1, NEVER
    for _ in range(TRIES):
        o = least(wide, count)
        if wide[o] == np.inf:
            break
        if first < 0:
            first = o
            price = wide[o]
        if size[c] + size[o] < limits.k:
            return o, wide[o]
        for value in range(total.size):
            total[value] = clusters.counts[c, value] + clusters.counts[o, value]
        if safe(total, int(size[c] + size[o]), limits):
            return o, wide[o]
        wide[o] = NEVER
    return first, price


@helper
def _price(wide, size, cost, people, count):
    """What is lost, beyond what the other lost already, when a cluster of so many people merges with each."""
    for o in range(count):
        wide[o] = (people + size[o]) * wide[o] - cost[o]


@helper(inline="always")
def _look(clusters, waiting, c, count, scratch, limits):
    """Find the partner of the cluster in slot c, and how urgent their merge is."""
    wide, size, cost = scratch.wide, clusters.size, clusters.cost
    for axis in range(scratch.low.size):
        scratch.low[axis] = clusters.low[axis, c]
        scratch.high[axis] = clusters.high[axis, c]
    widths_around(clusters.low, clusters.high, count, scratch.low, scratch.high, wide)
    _price(wide, size, cost, size[c], count)
    wide[c] = NEVER
    o = least(wide, count)
    price = wide[o]
    if scratch.total.size > 0 and size[c] + size[o] >= limits.k:
        o, price = _partner(clusters, c, count, scratch, limits)
    share = min(size[c], np.float32(max(limits.k, 1)))
    waiting.urgency[c] = max((price - cost[c]) / (share * share), np.float32(0))
    waiting.partner[c] = waiting.identity[o]
    waiting.seen[c] = waiting.version[waiting.identity[o]]


@helper(inline="always")
def _absorb(clusters, waiting, c, o):
    """Merge the cluster in slot o into that in slot c."""
    low, high, counts = clusters.low, clusters.high, clusters.counts
    for axis in range(low.shape[0]):
        low[axis, c] = min(low[axis, c], low[axis, o])
        high[axis, c] = max(high[axis, c], high[axis, o])
    clusters.size[c] += clusters.size[o]
    clusters.cost[c] = clusters.size[c] * cluster_width(clusters, c)
    for value in range(counts.shape[1]):
        counts[c, value] += counts[o, value]
    waiting.into[waiting.identity[o]] = waiting.identity[c]
    waiting.slot[waiting.identity[o]] = -1
    waiting.version[waiting.identity[c]] += 1


@helper(inline="always")
def _close_gap(clusters, waiting, o, last):
    """Move the cluster in the last slot to slot o."""
    low, high, counts = clusters.low, clusters.high, clusters.counts
    for axis in range(low.shape[0]):
        low[axis, o] = low[axis, last]
        high[axis, o] = high[axis, last]
    clusters.size[o] = clusters.size[last]
    clusters.cost[o] = clusters.cost[last]
    for value in range(counts.shape[1]):
        counts[o, value] = counts[last, value]
    waiting.urgency[o] = waiting.urgency[last]
    waiting.partner[o] = waiting.partner[last]
    waiting.seen[o] = waiting.seen[last]
    waiting.identity[o] = waiting.identity[last]
    waiting.slot[waiting.identity[o]] = o


@helper
def _merge(clusters, count, limits, scratch, cluster_of):
    """Merge clusters until all are safe; `cluster_of` is changed. Returns what those that are left cost."""
    waiting = _line_up(clusters, count, limits)
    left = count
    while left > 1:
        c = least(waiting.urgency, left)
        if waiting.urgency[c] == np.inf:
            break
        partner = waiting.partner[c]
        if partner < 0 or waiting.slot[partner] < 0 or waiting.version[partner] != waiting.seen[c]:
            # What was near is no longer what it was: the merge may cost more now, and have to wait.
            _look(clusters, waiting, c, left, scratch, limits)
            continue
        me, o = waiting.identity[c], waiting.slot[partner]
        left -= 1
        _absorb(clusters, waiting, c, o)
        if o != left:
            _close_gap(clusters, waiting, o, left)
        c = waiting.slot[me]
        waiting.partner[c] = -1
        waiting.urgency[c] = _first_urgency(clusters, c, limits)
    lost = np.float32(0)
    for c in range(left):
        lost += clusters.cost[c]
    for i in range(cluster_of.size):
        while waiting.into[cluster_of[i]] != cluster_of[i]:
            cluster_of[i] = waiting.into[cluster_of[i]]
    return lost


@helper
def _host(lows, highs, count, widest, low, high, wide):
    """The cluster that a unit with the box in `scratch` may join, and is nearest to; -1 for none."""
    host = -1
    if widest > 0:
        widths_around(lows, highs, count, low, high, wide)
        nearest = np.float32(widest) + NOTHING
        for c in range(count):
            if wide[c] < nearest:
                nearest = wide[c]
                host = c
        return host
    for c in range(count - 1, -1, -1):
        same = True
        for axis in range(low.size):
            if lows[axis, c] != high[axis] or highs[axis, c] != low[axis]:
                same = False
                break
        if same:
            return c
    return host


@helper
def _join(records, people, unit, clusters, scratch, widest, cluster_of):
    """Put the units of one window into clusters, one after the other; returns how many there are."""
    values, counts = records.values, clusters.counts
    lows, highs, low, high = clusters.low, clusters.high, scratch.low, scratch.high
    count: Any = np.int64(0)
    begin: Any = np.int64(0)
    while begin < people.size:
        end = run_end(unit, people, begin)
        bound(records, people, begin, end, low, high)
        host = _host(lows, highs, count, widest, low, high, scratch.wide)
        if host < 0:
            host = count
            count += 1
            for axis in range(low.size):
                lows[axis, host] = low[axis]
                highs[axis, host] = high[axis]
        for axis in range(low.size):
            lows[axis, host] = min(lows[axis, host], low[axis])
            highs[axis, host] = max(highs[axis, host], high[axis])
        clusters.size[host] += end - begin
        for i in range(begin, end):
            cluster_of[i] = host
            for view in range(values.shape[1]):
                counts[host, values[people[i], view]] += 1
        begin = end
    return count


@helper
def _number_runs(label, people, number):
    """Number the runs of people with the same label through; returns how many there are."""
    count: Any = np.int64(0)
    begin: Any = np.int64(0)
    while begin < people.size:
        end = run_end(label, people, begin)
        for i in range(begin, end):
            number[i] = count
        count += 1
        begin = end
    return count


@helper(inline="always")
def _cost_of_runs(records, people, label, scratch):
    """What it costs to publish the runs of people with the same label."""
    cost = np.float32(0)
    begin: Any = np.int64(0)
    while begin < people.size:
        end = run_end(label, people, begin)
        cost += (end - begin) * bound(records, people, begin, end, scratch.low, scratch.high)
        begin = end
    return cost


@helper(inline="always")
def _write(people, cluster_of, count, begin, order, member):
    """Put the people of a window into the order by clusters, and write where the cluster of each begins."""
    place = np.zeros(count + 1, np.int64)
    for i in range(people.size):
        place[cluster_of[i] + 1] += 1
    for c in range(count):
        place[c + 1] += place[c]
    following = place.copy()
    for i in range(people.size):
        c = cluster_of[i]
        order[begin + following[c]] = people[i]
        following[c] += 1
        member[people[i]] = begin + place[c]


@kernel
def merge_windows(
    records: Records, unit: Ints, base: Ints, windows: Windows, limits: Limits, joining: JoinRules, member: Ints
) -> None:
    """Cluster the units of every window: near ones join, and clusters that are not safe merge with the nearest.

    unit, base  per record; units are not torn apart, and the clusters of a window are compared with the base
    windows     those of a base class and in it of a unit side by side; the order is rearranged by clusters. All records
                of a window in one cluster must be safe
    member      written: per record its cluster, which is where its records begin in the order
    """
    width, values = records.codes.shape[1], limits.numerator.size
    for window in range(windows.begin.size):
        begin = windows.begin[window]
        people = windows.order[begin : windows.end[window]].copy()
        cluster_of = np.empty(people.size, np.int64)
        units = _number_runs(unit, people, cluster_of)
        few = units <= joining.longest
        clusters, scratch = room_for(units if few else np.int64(0), width, values)
        count, cost = np.int64(0), NEVER
        if few:
            count = _join(records, people, unit, clusters, scratch, joining.widest, cluster_of)
            cost = _merge(clusters, count, limits, scratch, cluster_of)
        if (joining.compare or not few) and _cost_of_runs(records, people, base, scratch) <= cost:
            count = _number_runs(base, people, cluster_of)
        _write(people, cluster_of, count, begin, windows.order, member)
