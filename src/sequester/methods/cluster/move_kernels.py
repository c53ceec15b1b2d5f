"""Records whom their cluster can spare move to where they cost less."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.cluster.box_kernels import (
    ALL,
    NEVER,
    NOTHING,
    Records,
    Windows,
    bound,
    cluster_width,
    room_for,
    run_end,
    widths_around,
)


class MemberLists(NamedTuple):
    """The people of one window as a list per cluster: that begins with `head`, and goes on with `following`."""

    place: NDArray[np.float32]  # (people, attributes)
    cluster_of: NDArray[np.int64]
    following: NDArray[np.int64]  # -1 at the end
    head: NDArray[np.int64]  # per cluster


@helper(inline="always")
def _listed(records, people, member, clusters, scratch):
    """The lists of the clusters of a window, whose boxes, sizes, costs and counts are written."""
    width = records.codes.shape[1]
    lists = MemberLists(
        np.empty((people.size, width), np.float32),
        np.empty(people.size, np.int64),
        np.empty(people.size, np.int64),
        np.full(clusters.size.size, -1, np.int64),
    )
    c: Any = np.int64(0)
    begin: Any = np.int64(0)
    while begin < people.size:
        end = run_end(member, people, begin)
        wide = bound(records, people, begin, end, scratch.low, scratch.high)
        for axis in range(width):
            clusters.low[axis, c] = scratch.low[axis]
            clusters.high[axis, c] = scratch.high[axis]
        clusters.size[c] = end - begin
        clusters.cost[c] = clusters.size[c] * wide
        for i in range(begin, end):
            record = people[i]
            lists.cluster_of[i] = c
            lists.following[i] = lists.head[c]
            lists.head[c] = i
            for axis in range(width):
                lists.place[i, axis] = records.position[records.first_leaf[axis] + records.codes[record, axis]]
            for view in range(records.values.shape[1]):
                clusters.counts[c, records.values[record, view]] += 1
        c += 1
        begin = end
    return lists


@helper(inline="always")
def _without(lists, c, person, low, high):
    """The box around all of a cluster but one person; returns its summed widths."""
    place, following = lists.place, lists.following
    for axis in range(low.size):
        low[axis] = NEVER
        high[axis] = -NEVER
    i = lists.head[c]
    while i >= 0:
        if i != person:
            for axis in range(low.size):
                low[axis] = min(low[axis], place[i, axis])
                high[axis] = max(high[axis], place[i, axis])
        i = following[i]
    total = np.float32(0)
    for axis in range(low.size):
        total += min(high[axis] - low[axis], ALL)
    return total


@helper
def _safe_with(clusters, c, own, more, total, limits):
    """Whether a cluster is safe with one record more, or less, that has its `own` values."""
    for value in range(total.size):
        total[value] = clusters.counts[c, value]
    for view in range(own.size):
        total[own[view]] += more
    return safe(total, int(clusters.size[c]) + more, limits)


@helper(inline="always")
def _destination(clusters, own, c, rest, scratch, limits):
    """The cluster where a person of cluster c costs least, less than c is spared if only `rest` is left; -1 for none.

    `scratch.wide` has the widths around each cluster and the person.
    """
    size, cost, wide = clusters.size, clusters.cost, scratch.wide
    best = cost[c] - rest - NOTHING
    chosen: Any = np.int64(-1)
    for o in range(size.size):
        price = (size[o] + ALL) * wide[o] - cost[o]
        if price < best and o != c and _safe_with(clusters, o, own, np.int64(1), scratch.total, limits):
            best = price
            chosen = o
    return chosen


@helper(inline="always")
def _move(lists, clusters, own, i, chosen, scratch):
    """Move a person to another cluster; the box of those she leaves is in `scratch`, and costs are not changed yet."""
    c = lists.cluster_of[i]
    before = lists.head[c]
    if before == i:
        lists.head[c] = lists.following[i]
    else:
        while lists.following[before] != i:
            before = lists.following[before]
        lists.following[before] = lists.following[i]
    lists.following[i] = lists.head[chosen]
    lists.head[chosen] = i
    lists.cluster_of[i] = chosen
    clusters.size[c] -= 1
    clusters.size[chosen] += 1
    for axis in range(scratch.low.size):
        clusters.low[axis, c] = scratch.low[axis]
        clusters.high[axis, c] = scratch.high[axis]
        clusters.low[axis, chosen] = min(clusters.low[axis, chosen], lists.place[i, axis])
        clusters.high[axis, chosen] = max(clusters.high[axis, chosen], lists.place[i, axis])
    for view in range(own.size):
        clusters.counts[c, own[view]] -= 1
        clusters.counts[chosen, own[view]] += 1


@helper
def _move_once(records, people, lists, clusters, scratch, limits):
    """Look at everybody in a window once; returns whether anybody moved."""
    # It would take long to see what is left of a larger one, and it can be cut: it is the fault of no single record.
    largest = 4 * limits.k + 64
    moved = False
    for i in range(people.size):
        c, own = lists.cluster_of[i], records.values[people[i]]
        if clusters.cost[c] == 0 or clusters.size[c] <= limits.k or clusters.size[c] > largest:
            continue
        if not _safe_with(clusters, c, own, np.int64(-1), scratch.total, limits):
            continue
        rest = (clusters.size[c] - 1) * _without(lists, c, i, scratch.low, scratch.high)
        widths_around(clusters.low, clusters.high, clusters.size.size, lists.place[i], lists.place[i], scratch.wide)
        chosen = _destination(clusters, own, c, rest, scratch, limits)
        if chosen < 0:
            continue
        moved = True
        _move(lists, clusters, own, i, chosen, scratch)
        clusters.cost[c] = rest
        clusters.cost[chosen] = clusters.size[chosen] * cluster_width(clusters, chosen)
    return moved


@kernel
def move_windows(records: Records, windows: Windows, limits: Limits, passes: int, member: NDArray[np.int32]) -> None:
    """Move records whom their cluster can spare to clusters of the window where less is lost; changes `member`.

    Windows are as in `merge_windows`, with whole clusters side by side.
    """
    for window in range(windows.begin.size):
        people = windows.order[windows.begin[window] : windows.end[window]]
        count: Any = np.int64(0)
        begin: Any = np.int64(0)
        name = np.empty(people.size, np.int64)
        while begin < people.size:
            name[count] = member[people[begin]]
            count += 1
            begin = run_end(member, people, begin)
        clusters, scratch = room_for(count, records.codes.shape[1], limits.numerator.size)
        lists = _listed(records, people, member, clusters, scratch)
        for _ in range(passes):
            if not _move_once(records, people, lists, clusters, scratch, limits):
                break
        for i in range(people.size):
            member[people[i]] = name[lists.cluster_of[i]]
