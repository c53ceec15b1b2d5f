"""Clusters in windows of neighbours: records join, clusters merge until they are safe, and records move.

Distances are the loss itself: how much wider, over all attributes, the box around two clusters is than each alone,
for everybody in them. Positions lie on [0, 1], a missing value at 2, so that mixing it with others costs 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe

# Partners looked at for one with whom a cluster is safe at once.
TRIES = 32
ALL, NOTHING = np.float32(1), np.float32(1e-5)
NEVER = np.float32(np.inf)
# Numbers of which the least is found at once.
BLOCK = 32


@helper
def _first(numbers, begin, end):  # type: ignore[no-untyped-def]
    found = begin
    for i in range(begin + 1, end):
        if numbers[i] < numbers[found]:
            found = i
    return found


@helper(fastmath={"nnan", "nsz"})
def _least(numbers, count):  # type: ignore[no-untyped-def]
    """Where the least of the first numbers is: first in which block, and then where in it."""
    least = np.float32(np.inf)
    block: Any = np.int64(0)
    whole = count - count % BLOCK
    for begin in range(0, whole, BLOCK):
        lowest = numbers[begin]
        for i in range(begin + 1, begin + BLOCK):
            lowest = min(lowest, numbers[i])
        if lowest < least:
            least, block = lowest, begin
    for i in range(whole, count):
        if numbers[i] < least:
            return _first(numbers, whole, count)
    return _first(numbers, block, min(block + BLOCK, count))


@helper(fastmath={"nnan", "nsz"})
def _around(low, high, count, at_low, at_high, wide):  # type: ignore[no-untyped-def]
    """Per cluster, the summed widths of the box around it and a given one."""
    for c in range(count):
        wide[c] = 0
    for axis in range(low.shape[0]):
        a, b = at_low[axis], at_high[axis]
        for c in range(count):
            x, y = low[axis, c], high[axis, c]
            x = a if a < x else x
            y = b if b > y else y
            span = y - x
            wide[c] += span if span < ALL else ALL


@helper
def _width(low, high, c):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for axis in range(low.shape[0]):
        total += min(high[axis, c] - low[axis, c], ALL)
    return total


@helper
def _run(label, records, begin):  # type: ignore[no-untyped-def]
    """Where the run of records with the same label ends."""
    end = begin + 1
    while end < records.size and label[records[end]] == label[records[begin]]:
        end += 1
    return end


@helper
def _bound(rows, records, position, first_leaf, low, high, c):  # type: ignore[no-untyped-def]
    """Set box c to that around some records."""
    for axis in range(rows.shape[1]):
        first, last = rows[records[0], axis], rows[records[0], axis]
        for i in range(1, records.size):
            first, last = min(first, rows[records[i], axis]), max(last, rows[records[i], axis])
        low[axis, c] = position[first_leaf[axis] + first]
        high[axis, c] = position[first_leaf[axis] + last]


@helper
def _host(low, high, clusters, widest, at_low, at_high, wide):  # type: ignore[no-untyped-def]
    """The cluster that a unit with this box may join, and is nearest to; -1 for none."""
    if widest > 0:
        _around(low, high, clusters, at_low, at_high, wide)
        nearest, found = np.float32(widest) + NOTHING, -1
        for c in range(clusters):
            if wide[c] < nearest:
                nearest, found = wide[c], c
        return found
    for c in range(clusters - 1, -1, -1):
        same = True
        for axis in range(low.shape[0]):
            if low[axis, c] != at_high[axis] or high[axis, c] != at_low[axis]:
                same = False
                break
        if same:
            return c
    return -1


@helper
def _partner(c, count, wide, size, counts, total, limits):  # type: ignore[no-untyped-def]
    """The cluster whose union with c costs least, rather one that makes it safe; `wide` holds costs."""
    first, price = -1, NEVER
    for _ in range(TRIES):
        o = _least(wide, count)
        if wide[o] == np.inf:
            break
        if first < 0:
            first, price = o, wide[o]
        if size[c] + size[o] < limits.k:
            return o, wide[o]
        for value in range(counts.shape[1]):
            total[value] = counts[c, value] + counts[o, value]
        if safe(total, int(size[c] + size[o]), limits):
            return o, wide[o]
        wide[o] = NEVER
    return first, price


@helper
def _absorb(c, o, last, low, high, size, cost, counts, ident, slot, into):  # type: ignore[no-untyped-def]
    """Merge the cluster in slot o into that in slot c; the last slot moves to o."""
    for axis in range(low.shape[0]):
        low[axis, c] = min(low[axis, c], low[axis, o])
        high[axis, c] = max(high[axis, c], high[axis, o])
    size[c] += size[o]
    cost[c] = size[c] * _width(low, high, c)
    into[ident[o]] = ident[c]
    slot[ident[o]] = -1
    for value in range(counts.shape[1]):
        counts[c, value] += counts[o, value]
    if o != last:
        for axis in range(low.shape[0]):
            low[axis, o], high[axis, o] = low[axis, last], high[axis, last]
        size[o], cost[o] = size[last], cost[last]
        for value in range(counts.shape[1]):
            counts[o, value] = counts[last, value]
        ident[o] = ident[last]
        slot[ident[o]] = o


@helper
def _merge(low, high, size, counts, clusters, limits, wide, into):  # type: ignore[no-untyped-def]
    """Merge clusters until all are safe; `into` says which took which. Returns what those that are left cost.

    Of those that are not safe the one goes first whose merge costs least, divided by the square of what it has of the
    k people: clusters that were begun are finished before others begin.
    """
    # Slots hold the clusters that are left; an identity never changes.
    ident, slot = np.arange(clusters), np.arange(clusters)
    version, seen = np.zeros(clusters, np.int64), np.zeros(clusters, np.int64)
    cost, far, near = np.empty(clusters, np.float32), np.empty(clusters, np.float32), np.full(clusters, -1, np.int64)
    at_low, at_high = np.empty(low.shape[0], np.float32), np.empty(low.shape[0], np.float32)
    total = np.zeros(counts.shape[1], np.int64)
    for c in range(clusters):
        into[c] = c
        cost[c] = size[c] * _width(low, high, c)
        far[c] = NEVER if size[c] >= limits.k and safe(counts[c], int(size[c]), limits) else 0
    left = clusters
    while left > 1:
        c = _least(far, left)
        if far[c] == np.inf:
            break
        me, partner = ident[c], near[c]
        if partner < 0 or slot[partner] < 0 or version[partner] != seen[c]:
            # What was near is no longer what it was: the merge may cost more now, and have to wait.
            for axis in range(low.shape[0]):
                at_low[axis], at_high[axis] = low[axis, c], high[axis, c]
            _around(low, high, left, at_low, at_high, wide)
            for o in range(left):
                wide[o] = (size[c] + size[o]) * wide[o] - cost[o]
            wide[c] = NEVER
            o = _least(wide, left)
            price = wide[o]
            if counts.shape[1] > 0 and size[c] + size[o] >= limits.k:
                o, price = _partner(c, left, wide, size, counts, total, limits)
            share = min(size[c], np.float32(max(limits.k, 1)))
            far[c] = max((price - cost[c]) / (share * share), np.float32(0))
            near[c], seen[c] = ident[o], version[ident[o]]
            continue
        left -= 1
        o = slot[partner]
        _absorb(c, o, left, low, high, size, cost, counts, ident, slot, into)
        far[o], near[o], seen[o] = far[left], near[left], seen[left]
        c = slot[me]
        version[me] += 1
        near[c] = -1
        far[c] = NEVER if size[c] >= limits.k and safe(counts[c], int(size[c]), limits) else 0
    lost = np.float32(0)
    for c in range(left):
        lost += cost[c]
    return lost


@helper
def _cluster(rows, unit, values, records, units, position, first_leaf, limits, widest, at_low, at_high, of):  # type: ignore[no-untyped-def]
    """Cluster the units of one window; `of` is written. Returns how many numbers there are, and what is lost."""
    width, flat = rows.shape[1], limits.numerator.size
    low, high = np.empty((width, units), np.float32), np.empty((width, units), np.float32)
    size, counts = np.zeros(units, np.float32), np.zeros((units, flat), np.int64)
    wide, into = np.empty(units, np.float32), np.empty(units, np.int64)
    box_low, box_high = np.empty(width, np.float32), np.empty(width, np.float32)
    clusters: Any = np.int64(0)
    i: Any = np.int64(0)
    while i < records.size:
        stop = _run(unit, records, i)
        _bound(rows, records[i:stop], position, first_leaf, at_low, at_high, np.int64(0))
        for axis in range(width):
            box_low[axis], box_high[axis] = at_low[axis, 0], at_high[axis, 0]
        found = _host(low, high, clusters, widest, box_low, box_high, wide)
        if found < 0:
            found, clusters = clusters, clusters + 1
            for axis in range(width):
                low[axis, found], high[axis, found] = box_low[axis], box_high[axis]
        for axis in range(width):
            low[axis, found] = min(low[axis, found], box_low[axis])
            high[axis, found] = max(high[axis, found], box_high[axis])
        size[found] += stop - i
        for j in range(i, stop):
            of[j] = found
            for view in range(values.shape[1]):
                counts[found, values[records[j], view]] += 1
        i = stop
    cost = _merge(low, high, size, counts, clusters, limits, wide, into)
    for i in range(records.size):
        while into[of[i]] != of[i]:
            of[i] = into[of[i]]
    return clusters, cost


@kernel
def merge_windows(  # type: ignore[no-untyped-def]
    rows: Any, unit: Any, base: Any, values: Any, order: Any, begin: Any, end: Any, position: Any, first_leaf: Any,
    limits: Any, widest: float, longest: int, compare: bool, member: Any,
):  # fmt: skip
    """Cluster the units of every window: near ones join, and clusters that are not safe merge with the nearest.

    rows        (records, attributes) codes
    unit, base  per record; units are not torn apart, and the clusters of a window are compared with the base
    order       records by window, those of a base class and in it of a unit side by side; rearranged by clusters
    begin, end  per window, where it is in the order; all its records in one cluster must be safe
    position    where each leaf lies, all attributes side by side; first_leaf says where each begins
    widest      units join a cluster as long as its summed widths are at most this; at 0 only equal ones do
    longest     windows of more units, which are single classes that cannot be cut, stay as they are
    compare     whether classes of the base are taken in windows where they cost no more than the clusters
    member      written: per record its cluster, which is where its records begin in the order
    """
    width = rows.shape[1]
    at_low, at_high = np.empty((width, 1), np.float32), np.empty((width, 1), np.float32)
    for window in range(begin.size):
        records = order[begin[window] : end[window]].copy()
        people = records.size
        units: Any = np.int64(0)
        i: Any = np.int64(0)
        while i < people:
            units, i = units + 1, _run(unit, records, i)
        of = np.empty(people, np.int64)
        clusters, cost = np.int64(0), NEVER
        if units <= longest:
            clusters, cost = _cluster(
                rows, unit, values, records, units, position, first_leaf, limits, widest, at_low, at_high, of
            )
        if compare or cost == NEVER:
            as_was, i = np.float32(0), np.int64(0)
            while i < people:
                stop = _run(base, records, i)
                _bound(rows, records[i:stop], position, first_leaf, at_low, at_high, np.int64(0))
                as_was += (stop - i) * _width(at_low, at_high, np.int64(0))
                i = stop
            if as_was <= cost:
                clusters, i = np.int64(0), np.int64(0)
                while i < people:
                    stop = _run(base, records, i)
                    of[i:stop] = clusters
                    clusters, i = clusters + 1, stop
        place = np.zeros(clusters + 1, np.int64)
        for i in range(people):
            place[of[i] + 1] += 1
        for c in range(clusters):
            place[c + 1] += place[c]
        following = place.copy()
        for i in range(people):
            order[begin[window] + following[of[i]]] = records[i]
            following[of[i]] += 1
            member[records[i]] = begin[window] + place[of[i]]


@helper
def _without(place, following, head, person, low, high):  # type: ignore[no-untyped-def]
    """The box around all of a list but one person; returns its summed widths."""
    for axis in range(low.size):
        low[axis], high[axis] = NEVER, -NEVER
    i = head
    while i >= 0:
        if i != person:
            for axis in range(low.size):
                low[axis] = min(low[axis], place[axis, i])
                high[axis] = max(high[axis], place[axis, i])
        i = following[i]
    total = np.float32(0)
    for axis in range(low.size):
        total += min(high[axis] - low[axis], ALL)
    return total


@helper
def _safe_with(counts, size, values, record, more, total, limits):  # type: ignore[no-untyped-def]
    """Whether a cluster is safe with one record more, or less."""
    for value in range(total.size):
        total[value] = counts[value]
    for view in range(values.shape[1]):
        total[values[record, view]] += more
    return safe(total, int(size) + more, limits)


@kernel
def move_windows(  # type: ignore[no-untyped-def]
    rows: Any, values: Any, order: Any, begin: Any, end: Any, position: Any, first_leaf: Any, limits: Any, passes: int,
    member: Any,
):  # fmt: skip
    """Move records whom their cluster can spare to clusters of the window where less is lost; changes `member`.

    Windows are as in `merge_windows`, with whole clusters side by side.
    """
    width, flat = rows.shape[1], limits.numerator.size
    at = np.empty(width, np.float32)
    low_left, high_left = np.empty(width, np.float32), np.empty(width, np.float32)
    total, one = np.zeros(flat, np.int64), np.int64(1)
    largest = 4 * limits.k + 64  # it would take long to see what is left of a larger one
    for window in range(begin.size):
        records = order[begin[window] : end[window]]
        people = records.size
        clusters: Any = np.int64(0)
        i: Any = np.int64(0)
        while i < people:
            clusters, i = clusters + 1, _run(member, records, i)
        place = np.empty((width, people), np.float32)
        low, high = np.empty((width, clusters), np.float32), np.empty((width, clusters), np.float32)
        size, cost = np.empty(clusters, np.float32), np.empty(clusters, np.float32)
        counts = np.zeros((clusters, flat), np.int64)
        name, head = np.empty(clusters, np.int64), np.full(clusters, -1, np.int64)
        of, following = np.empty(people, np.int64), np.empty(people, np.int64)
        wide = np.empty(clusters, np.float32)
        c: Any = np.int64(0)
        i = np.int64(0)
        while i < people:
            stop = _run(member, records, i)
            _bound(rows, records[i:stop], position, first_leaf, low, high, c)
            size[c], name[c] = stop - i, member[records[i]]
            cost[c] = size[c] * _width(low, high, c)
            for j in range(i, stop):
                of[j] = c
                following[j], head[c] = head[c], j
                for axis in range(width):
                    place[axis, j] = position[first_leaf[axis] + rows[records[j], axis]]
                for view in range(values.shape[1]):
                    counts[c, values[records[j], view]] += 1
            c, i = c + 1, stop
        for _ in range(passes):
            moved = False
            for i in range(people):
                c, record = of[i], records[i]
                if cost[c] == 0 or size[c] <= limits.k or size[c] > largest:
                    continue
                if not _safe_with(counts[c], size[c], values, record, -one, total, limits):
                    continue
                rest = (size[c] - 1) * _without(place, following, head[c], i, low_left, high_left)
                for axis in range(width):
                    at[axis] = place[axis, i]
                _around(low, high, clusters, at, at, wide)
                best = cost[c] - rest - NOTHING
                chosen: Any = np.int64(-1)
                for o in range(clusters):
                    price = (size[o] + ALL) * wide[o] - cost[o]
                    if price < best and o != c and _safe_with(counts[o], size[o], values, record, one, total, limits):
                        best, chosen = price, o
                if chosen < 0:
                    continue
                moved = True
                before = head[c]
                if before == i:
                    head[c] = following[i]
                else:
                    while following[before] != i:
                        before = following[before]
                    following[before] = following[i]
                following[i], head[chosen] = head[chosen], i
                of[i] = chosen
                size[c] -= 1
                size[chosen] += 1
                for axis in range(width):
                    low[axis, c], high[axis, c] = low_left[axis], high_left[axis]
                    low[axis, chosen] = min(low[axis, chosen], at[axis])
                    high[axis, chosen] = max(high[axis, chosen], at[axis])
                cost[c] = rest
                cost[chosen] = size[chosen] * _width(low, high, chosen)
                for view in range(values.shape[1]):
                    counts[c, values[record, view]] -= 1
                    counts[chosen, values[record, view]] += 1
            if not moved:
                break
        for i in range(people):
            member[records[i]] = name[of[i]]


@kernel
def bound_members(member: Any, rows: Any, classes: int):  # type: ignore[no-untyped-def]
    """(attributes, classes) the smallest boxes around the rows (records, attributes) of their members."""
    width = rows.shape[1]
    low = np.full((width, classes), np.iinfo(np.int32).max, np.int32)
    high = np.full((width, classes), -1, np.int32)
    for i in range(member.size):
        c = member[i]
        for axis in range(width):
            low[axis, c], high[axis, c] = min(low[axis, c], rows[i, axis]), max(high[axis, c], rows[i, axis])
    return low, high


@kernel
def take_nearest(  # type: ignore[no-untyped-def]
    box: Any, low: Any, high: Any, begin: Any, end: Any, place: Any, of: Any, at_low: Any, at_high: Any, reach: int,
    once: bool,
):  # fmt: skip
    """Per seeker the nearest of the hosts it may have, -1 for none: that with the narrowest box around both.

    box              per seeker, the number of its box among `low`, `high` (boxes, attributes)
    begin, end       per seeker, the hosts it may have, which are in the order of the neighbourhood; `place` is where
                     the seeker would be among them, and it looks at so many as `reach` on either side
    of               per host, the number of the box that it belongs to itself, and cannot be a host for
    at_low, at_high  (hosts, attributes) boxes of the hosts
    once             whether a host can be taken only once; then boxes grow around the hosts they take
    """
    width = low.shape[1]
    taken = np.zeros(at_low.shape[0], np.bool_)
    found = np.full(box.size, -1, np.int64)
    for seeker in range(box.size):
        own = box[seeker]
        least = np.inf
        for side in range(2):
            host = place[seeker] - 1 if side == 0 else place[seeker]
            looks = 0
            while looks < reach and begin[seeker] <= host < end[seeker]:
                if not taken[host] and of[host] != own:
                    looks += 1
                    wide = 0.0
                    for axis in range(width):
                        span = max(high[own, axis], at_high[host, axis]) - min(low[own, axis], at_low[host, axis])
                        wide += min(span, 1.0)
                    if wide < least:
                        least, found[seeker] = wide, host
                host += 2 * side - 1
        if once and found[seeker] >= 0:
            host = found[seeker]
            taken[host] = True
            for axis in range(width):
                low[own, axis] = min(low[own, axis], at_low[host, axis])
                high[own, axis] = max(high[own, axis], at_high[host, axis])
    return found
