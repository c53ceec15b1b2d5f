"""Regions of registered people: trees of cuts over their points, and who is inside a box.

A point is a place where registered people are, some of whom have records in the next table. What is left of a point's
shares is kept only for values it was linked to; for all others it is fresh.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe


class Crowd(NamedTuple):
    """Registered people by their points in the attributes that link, and the records at each point.

    The records at point p are record[begin[p]:begin[p + 1]]. Widths are differences of positions, which lie side by
    side for all attributes, those that link first.
    """

    points: NDArray[np.int32]  # (points, attributes that link)
    weight: NDArray[np.int64]  # people at each point
    begin: NDArray[np.int64]
    record: NDArray[np.int64]
    loose: NDArray[np.int32]  # (records, other attributes)
    column: NDArray[np.int32]  # (records, views) of the protected values, -1 for others
    values: NDArray[np.int32]  # (records, views) positions in the counts of the static criteria
    position: NDArray[np.float64]
    first_leaf: NDArray[np.int64]


class Left(NamedTuple):
    """The largest share of a value in a box around point p: of its entries ends[p]:ends[p + 1], or else `fresh`."""

    ends: NDArray[np.int64]
    column: NDArray[np.int32]
    share: NDArray[np.float64]
    fresh: NDArray[np.float64]  # per column


class Tree(NamedTuple):
    """Nodes are runs [first, last) of `line`; children, two next to each other, come after their parents."""

    line: NDArray[np.int32]  # points
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    child: NDArray[np.int64]  # the left one, -1 for none
    low: NDArray[np.int32]  # (nodes, attributes) the codes of the points
    high: NDArray[np.int32]


@helper
def inside(points, p, low, high):  # type: ignore[no-untyped-def]
    for a in range(points.shape[1]):  # noqa: SIM110 - compiled
        if points[p, a] < low[a] or points[p, a] > high[a]:
            return False
    return True


@helper
def _best_cut(  # type: ignore[no-untyped-def]
    order, start, stop, points, weight, begin, record, column, values, position, first_leaf, ends, entry, share, limits,
    sound, apart, touched, seen, counts, allowed, hurt, total, present, everybody, below, hurt_below, under,
):  # fmt: skip
    """The best cut with k records on both sides: attribute and last code below, or -1.

    Best is what shortens the boxes around the records most and, where `apart` is positive, parts most of the records
    from points that can hardly bear their values. `sound`: no value may be too frequent on either side.
    """
    conflicts = 0.0
    for index in range(seen):
        conflicts += counts[touched[index]] * hurt[touched[index]]
    best, chosen, last = -1.0, -1, -1
    for a in range(points.shape[1]):
        base, origin, full = first_leaf[a], -1.0, 0.0
        for i in range(start, stop):
            p = order[a, i]
            if begin[p + 1] > begin[p]:
                full = position[base + points[p, a]]
                if origin < 0.0:
                    origin = full
        end, full = full, min(full - origin, 1.0)
        for index in range(seen):
            below[touched[index]] = 0
            hurt_below[touched[index]] = 0.0
        under[:] = 0
        size, people, together = 0, 0, conflicts
        i = j = start
        while True:
            # The next code with records and the one after it; codes in between are shared out to both.
            while j < stop and begin[order[a, j] + 1] == begin[order[a, j]]:
                j += 1
            if j == stop:
                break
            code = points[order[a, j], a]
            while j < stop and (points[order[a, j], a] == code or begin[order[a, j] + 1] == begin[order[a, j]]):
                j += 1
            if j == stop:
                break
            following = points[order[a, j], a]
            until = (code + following) // 2
            while points[order[a, i], a] <= until:
                p = order[a, i]
                i += 1
                people += weight[p]
                if apart > 0.0 and conflicts > 0.0:
                    for e in range(ends[p], ends[p + 1]):
                        c = entry[e]
                        if counts[c] > 0:
                            burden = 1.0 / max(share[e] * everybody, 1.0)
                            together += burden * (2 * below[c] - counts[c])
                            hurt_below[c] += burden
                for r in range(begin[p], begin[p + 1]):
                    size += 1
                    for view in range(column.shape[1]):
                        c = column[record[r], view]
                        if c >= 0:
                            together += 2.0 * hurt_below[c] - hurt[c]
                            below[c] += 1
                    for view in range(values.shape[1]):
                        under[values[record[r], view]] += 1
            if present - size < limits.k:
                break
            if size < limits.k:
                continue
            low = min(position[base + code] - origin, 1.0)
            high = min(end - position[base + following], 1.0)
            score = full - (size * low + (present - size) * high) / present
            if conflicts > 0.0:
                score += apart * (conflicts - together) / conflicts
            if score <= best:
                continue
            if sound:
                fits = True
                for index in range(seen):
                    c = touched[index]
                    if below[c] > allowed[c] * people or counts[c] - below[c] > allowed[c] * (everybody - people):
                        fits = False
                        break
                for side in range(2 if fits else 0):
                    # The counts of this side, of the other, and of this again.
                    fits = fits and safe(under, size if side == 0 else present - size, limits)
                    for v in range(total.size):
                        under[v] = total[v] - under[v]
                if not fits:
                    continue
            best, chosen, last = score, a, until
    return chosen, last


@helper
def _halve(order, start, stop, points, position, first_leaf):  # type: ignore[no-untyped-def]
    """The cut nearest to the median of the widest attribute: attribute and last code below, or -1."""
    best, chosen = -1.0, -1
    for a in range(points.shape[1]):
        low, high = points[order[a, start], a], points[order[a, stop - 1], a]
        wide = position[first_leaf[a] + high] - position[first_leaf[a] + low]
        if high > low and wide > best:
            best, chosen = wide, a
    if chosen < 0:
        return -1, -1
    code = points[order[chosen, (start + stop) // 2], chosen]
    return chosen, code - 1 if code > points[order[chosen, start], chosen] else code


@kernel
def cut_points(  # type: ignore[no-untyped-def]
    order: Any, first_of: Any, crowd: Any, left: Any, limits: Any, usual: Any, apart: float, fine: int
):
    """Trees of cuts over points, one for each run of them that is given.

    order     int32 (attributes, points): the points sorted by each attribute inside every run, parted in place, so that
              a node is a run of every row; one row where there is no attribute
    first_of  where the runs begin, and where the last ends
    usual     per column, how frequent it may always be among the registered
    apart     how much it counts that records are parted from points that can hardly bear their values
    fine      0, or nodes are halved until they have so few points: then records are not looked at
    Cuts have k records on both sides. As long as there is one that leaves no value more frequent among the registered
    than is usual, or than what is left here bears on average, it is taken, and then any. Returns the nodes of a `Tree`
    without its line, which is any row of `order`.
    """
    points, weight, begin, record = crowd.points, crowd.weight, crowd.begin, crowd.record
    column, values, position, first_leaf = crowd.column, crowd.values, crowd.position, crowd.first_leaf
    ends, entry, share, fresh = left.ends, left.column, left.share, left.fresh
    many, width = order.shape[1], points.shape[1]
    columns, flat = fresh.size, limits.first[-1]
    room = 2 * many
    first, last, child = np.empty(room, np.int64), np.empty(room, np.int64), np.full(room, -1, np.int64)
    low, high = np.empty((room, width), np.int32), np.empty((room, width), np.int32)
    sound = np.ones(room, np.bool_)
    counts, below, touched = np.zeros(columns, np.int64), np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    total, under = np.zeros(flat, np.int64), np.zeros(flat, np.int64)
    mean, allowed, hurt, hurt_below = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros(columns)
    right = np.zeros(points.shape[0], np.bool_)
    buffer = np.empty(many, np.int32)
    nodes, node = first_of.size - 1, 0
    for root in range(nodes):
        first[root], last[root] = first_of[root], first_of[root + 1]
    while node < nodes:
        start, stop = first[node], last[node]
        for a in range(width):
            low[node, a], high[node, a] = points[order[a, start], a], points[order[a, stop - 1], a]
        axis, code = -1, -1
        if fine > 0:
            if stop - start > fine:
                axis, code = _halve(order, start, stop, points, position, first_leaf)
        else:
            present, everybody, seen = np.int64(0), np.int64(0), np.int64(0)
            total[:] = 0
            for i in range(start, stop):
                p = order[0, i]
                everybody += weight[p]
                present += begin[p + 1] - begin[p]
                for r in range(begin[p], begin[p + 1]):
                    for view in range(column.shape[1]):
                        c = column[record[r], view]
                        if c >= 0:
                            if counts[c] == 0:
                                touched[seen] = c
                                seen += 1
                                mean[c], hurt[c] = 0.0, 0.0
                            counts[c] += 1
                    for view in range(values.shape[1]):
                        total[values[record[r], view]] += 1
            if present >= 2 * limits.k and present >= 2:
                if sound[node] or apart > 0.0:
                    for i in range(start, stop):
                        p = order[0, i]
                        for e in range(ends[p], ends[p + 1]):
                            c = entry[e]
                            if counts[c] > 0:
                                mean[c] += weight[p] * (share[e] - fresh[c])
                                hurt[c] += 1.0 / max(share[e] * everybody, 1.0)
                    for index in range(seen):
                        c = touched[index]
                        allowed[c] = max(fresh[c] + mean[c] / everybody, usual[c])
                while True:
                    axis, code = _best_cut(
                        order, start, stop, points, weight, begin, record, column, values, position, first_leaf,
                        ends, entry, share, limits, sound[node], apart, touched, seen, counts, allowed,
                        hurt, total, present, everybody, below, hurt_below, under,
                    )  # fmt: skip
                    if axis >= 0 or not sound[node]:
                        break
                    sound[node] = False
            for index in range(seen):
                counts[touched[index]] = 0
        if axis >= 0:
            middle = start
            for i in range(start, stop):
                p = order[axis, i]
                right[p] = points[p, axis] > code
                middle += not right[p]
            for a in range(width):
                kept, moved = start, 0
                for i in range(start, stop):
                    p = order[a, i]
                    if right[p]:
                        buffer[moved] = p
                        moved += 1
                    else:
                        order[a, kept] = p
                        kept += 1
                for i in range(moved):
                    order[a, kept + i] = buffer[i]
            child[node] = nodes
            first[nodes], last[nodes], sound[nodes] = start, middle, sound[node]
            first[nodes + 1], last[nodes + 1], sound[nodes + 1] = middle, stop, sound[node]
            nodes += 2
        node += 1
    return first[:nodes], last[:nodes], child[:nodes], low[:nodes], high[:nodes]


@kernel
def locate(tree: Any, points: Any, lo: Any, hi: Any):  # type: ignore[no-untyped-def]
    """Pairs of (point, box) with the point inside the box, boxes given as (boxes, attributes), in their order."""
    many, found = points.shape[0], 0
    point, box = np.empty(many + 1, np.int32), np.empty(many + 1, np.int32)
    stack = np.empty(tree.first.size + 1, np.int64)
    for b in range(lo.shape[0]):
        stack[0], top = 0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            apart, within = False, True
            for a in range(points.shape[1]):
                if tree.low[node, a] > hi[b, a] or tree.high[node, a] < lo[b, a]:
                    apart = True
                    break
                within &= tree.low[node, a] >= lo[b, a] and tree.high[node, a] <= hi[b, a]
            if apart:
                continue
            if not within and tree.child[node] >= 0:
                stack[top], stack[top + 1] = tree.child[node] + 1, tree.child[node]
                top += 2
                continue
            for i in range(tree.first[node], tree.last[node]):
                if within or inside(points, tree.line[i], lo[b], hi[b]):
                    if found == point.size:
                        point, box = np.append(point, point), np.append(box, box)
                    point[found], box[found] = tree.line[i], b
                    found += 1
    return point[:found], box[:found]
