"""Regions of registered people: trees of cuts over their points, and the cheapest safe boxes in them.

A point is a place where registered people are, some of whom have records in the next table. A box has N registered
people and n records; a value that n_s of the records have is within its share when n_s <= share * N for the smallest
share that any point in the box allows. What is left of a point's shares is kept only for values it was linked to; for
all others it is fresh. Every box is judged anew: nothing is assumed to stay safe when it grows or shrinks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sequester.kernels import kernel
from sequester.kernels.limits import safe

# Shares this near to what is allowed pass here, and are decided exactly afterwards.
SLACK = 1e-10

# Boxes grow point by point in nodes of at most so many points, and in so many even steps in larger ones.
_MANY, _STEPS = 600, 16
# After so many rounds of leaving records out a node is given up.
_ROUNDS = 24


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


@numba.njit(cache=True, nogil=True)
def _span(low, high, position, first_leaf):  # type: ignore[no-untyped-def]
    """The summed widths of a box in all attributes."""
    total = 0.0
    for a in range(low.size):
        base = first_leaf[a]
        total += min(position[base + high[a]] - position[base + low[a]], 1.0)
    return total


@numba.njit(cache=True, nogil=True)
def _inside(points, p, low, high):  # type: ignore[no-untyped-def]
    for a in range(points.shape[1]):  # noqa: SIM110 - compiled
        if points[p, a] < low[a] or points[p, a] > high[a]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
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
            present, everybody, seen = 0, 0, 0
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
                if within or _inside(points, tree.line[i], lo[b], hi[b]):
                    if found == point.size:
                        point, box = np.append(point, point), np.append(box, box)
                    point[found], box[found] = tree.line[i], b
                    found += 1
    return point[:found], box[:found]


@kernel
def remain(  # type: ignore[no-untyped-def]
    begin: int, end: int, start: Any, where: Any, ends: Any, column: Any, share: Any, columns: int
):
    """What is left of the points [begin, end) after all releases, for the values that were in a box around them.

    In release t point p is in the boxes where[start[t, p]:start[t, p + 1]], which are numbered through all releases;
    box b has the values column[ends[b]:ends[b + 1]] at these shares, and of several boxes the worst counts. Returns
    per point how many entries it has, their columns, the survival, and in how many releases there was a link.
    """
    count = np.zeros(end - begin, np.int64)
    room = 8 * (end - begin) + columns + 16
    entry, left, linked = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    state, times, worst = np.ones(columns), np.zeros(columns, np.int32), np.zeros(columns)
    touched, now = np.empty(columns, np.int32), np.empty(columns, np.int32)
    found = 0
    for p in range(begin, end):
        seen = 0
        for t in range(start.shape[0]):
            new = 0
            for i in range(start[t, p], start[t, p + 1]):
                for e in range(ends[where[i]], ends[where[i] + 1]):
                    c = column[e]
                    if worst[c] == 0.0:
                        now[new] = c
                        new += 1
                    worst[c] = max(worst[c], share[e])
            for index in range(new):
                c = now[index]
                if times[c] == 0:
                    touched[seen] = c
                    seen += 1
                times[c] += 1
                state[c] *= 1.0 - worst[c]
                worst[c] = 0.0
        if found + seen > entry.size:
            entry, left, linked = np.append(entry, entry), np.append(left, left), np.append(linked, linked)
        for index in range(seen):
            c = touched[index]
            entry[found], left[found], linked[found] = c, state[c], times[c]
            state[c], times[c] = 1.0, 0
            found += 1
        count[p - begin] = seen
    return count, entry[:found], left[:found], linked[:found]


@numba.njit(cache=True, nogil=True)
def _around(  # type: ignore[no-untyped-def]
    run, points, weight, ends, entry, share, fresh, touched, seen, counts, least, low, high
):
    """How many registered people of a run are in a box; the smallest shares there are left in `least`."""
    people = 0
    for index in range(seen):
        least[touched[index]] = fresh[touched[index]]
    for i in range(run.size):
        p = run[i]
        if _inside(points, p, low, high):
            people += weight[p]
            for e in range(ends[p], ends[p + 1]):
                if counts[entry[e]] > 0 and share[e] < least[entry[e]]:
                    least[entry[e]] = share[e]
    return people


@numba.njit(cache=True, nogil=True)
def _within(touched, seen, counts, least, people):  # type: ignore[no-untyped-def]
    """Whether every value that occurs is within its share of so many people."""
    for index in range(seen):
        c = touched[index]
        if counts[c] > 0 and counts[c] > (least[c] + SLACK) * people:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _next_box(run, points, blocked, position, first_leaf, box, steps):  # type: ignore[no-untyped-def]
    """The next larger box to try, in box[2] and box[3]; returns the place in the run it is for, -1 for none.

    In a short run it reaches the point, of those that are not blocked, that widens it least. In a long one all sides go
    so many equal `steps` to the end of the points, which is in box[4] and box[5].
    """
    best, chosen, large = np.inf, -1, run.size > _MANY
    for i in range(0 if large else run.size):
        p = run[i]
        if blocked[i] or _inside(points, p, box[0], box[1]):
            continue
        cost = 0.0
        for a in range(points.shape[1]):
            code, low, high, base = points[p, a], box[0, a], box[1, a], first_leaf[a]
            if code < low or code > high:
                wide = position[base + max(high, code)] - position[base + min(low, code)]
                cost += min(wide, 1.0) - min(position[base + high] - position[base + low], 1.0)
        if cost < best:
            best, chosen = cost, i
    if large and steps > 0:
        chosen = 0
    for a in range(points.shape[1]):
        box[2, a], box[3, a] = box[0, a], box[1, a]
        if chosen >= 0 and large:
            box[2, a] -= (box[0, a] - box[4, a]) // steps
            box[3, a] += (box[5, a] - box[1, a]) // steps
        elif chosen >= 0:
            box[2, a] = min(box[0, a], points[run[chosen], a])
            box[3, a] = max(box[1, a], points[run[chosen], a])
    return chosen


@numba.njit(cache=True, nogil=True)
def _grow(  # type: ignore[no-untyped-def]
    run, points, weight, ends, entry, share, fresh, touched, seen, counts, least,
    everybody, blocked, position, first_leaf, box,
):  # fmt: skip
    """Widen box[0], box[1] inside its run, where that costs least, until every value is within its share.

    Points that would leave no hope for a value stay outside. Returns whether it is done, and the people in the box.
    """
    for i in range(run.size if run.size <= _MANY else 0):
        blocked[i] = False
        for e in range(ends[run[i]], ends[run[i] + 1]):
            many = counts[entry[e]]
            if many > 0 and many > (share[e] + SLACK) * everybody:
                blocked[i] = True
                break
    steps = _STEPS
    while True:
        chosen = _next_box(run, points, blocked, position, first_leaf, box, steps)
        steps -= 1
        people = _around(run, points, weight, ends, entry, share, fresh, touched, seen, counts, least, box[2], box[3])
        if chosen < 0:
            return False, people
        if run.size <= _MANY and not _within(touched, seen, counts, least, everybody):
            blocked[chosen] = True
            continue
        for a in range(points.shape[1]):
            box[0, a], box[1, a] = box[2, a], box[3, a]
        if _within(touched, seen, counts, least, people):
            return True, people


@numba.njit(cache=True, nogil=True)
def _bound(run, points, loose, begin, record, out, box):  # type: ignore[no-untyped-def]
    """The tight box around the records of a run that are not left out, in box[0] and box[1]; returns their number.

    Around all points, in the attributes that link, are box[4] and box[5].
    """
    width, size = points.shape[1], 0
    for i in range(run.size):
        p = run[i]
        for a in range(width):
            code = points[p, a]
            box[4, a] = code if i == 0 else min(box[4, a], code)
            box[5, a] = code if i == 0 else max(box[5, a], code)
        for place in range(begin[p], begin[p + 1]):
            r = record[place]
            if out[r]:
                continue
            for a in range(box.shape[1]):
                code = points[p, a] if a < width else loose[r, a - width]
                box[0, a] = code if size == 0 else min(box[0, a], code)
                box[1, a] = code if size == 0 else max(box[1, a], code)
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def _leave_out(run, begin, record, column, values, excess, of_columns, counts, total, out):  # type: ignore[no-untyped-def]
    """Leave out so many (`excess`) records of a run for each column, or for each value; returns how many there were."""
    gone = 0
    for i in range(run.size):
        for place in range(begin[run[i]], begin[run[i] + 1]):
            r = record[place]
            if out[r]:
                continue
            for view in range(column.shape[1] if of_columns else values.shape[1]):
                code = column[r, view] if of_columns else values[r, view]
                if code >= 0 and excess[code] > 0:
                    out[r] = True
            if not out[r]:
                continue
            gone += 1
            for view in range(column.shape[1]):
                if column[r, view] >= 0:
                    counts[column[r, view]] -= 1
                    if of_columns:
                        excess[column[r, view]] -= 1
            for view in range(values.shape[1]):
                total[values[r, view]] -= 1
                if not of_columns:
                    excess[values[r, view]] -= 1
    return gone


@numba.njit(cache=True, nogil=True)
def _judge(  # type: ignore[no-untyped-def]
    run, points, weight, begin, record, loose, column, values, position, first_leaf, ends, entry, share, fresh, limits,
    worth, touched, counts, least, total, excess, out, blocked, box,
):  # fmt: skip
    """The box of a node: as tight as is safe, with as few records left out as it needs; returns the loss, -1 for none.

    Who of its records is left out is then in `out`, and the box in box[0] and box[1].
    """
    seen, everybody, omitted = 0, 0, 0
    total[:] = 0
    for i in range(run.size):
        everybody += weight[run[i]]
        for place in range(begin[run[i]], begin[run[i] + 1]):
            r = record[place]
            out[r] = False
            for view in range(column.shape[1]):
                c = column[r, view]
                if c >= 0:
                    if counts[c] == 0:
                        touched[seen] = c
                        seen += 1
                    counts[c] += 1
            for view in range(values.shape[1]):
                total[values[r, view]] += 1
    cost = -1.0
    for _ in range(_ROUNDS):
        size = _bound(run, points, loose, begin, record, out, box)
        if size < max(limits.k, 1):
            break
        shared, frequent = False, False
        for v in range(total.size):
            bound, whole = limits.numerator[v], limits.denominator[v]
            excess[v] = 0
            if whole > 0 and total[v] * whole > bound * size:
                excess[v] = -((bound * size - total[v] * whole) // (whole - bound))
                frequent = True
        if not frequent:
            if not safe(total, size, limits):
                break
            people = _around(
                run, points, weight, ends, entry, share, fresh, touched, seen, counts, least, box[0], box[1]
            )
            shared = _within(touched, seen, counts, least, people)
            if not shared:
                if _within(touched, seen, counts, least, everybody):
                    shared, people = _grow(
                        run, points, weight, ends, entry, share, fresh, touched, seen, counts, least,
                        everybody, blocked, position, first_leaf, box,
                    )  # fmt: skip
                else:
                    people = everybody
            if shared:
                cost = size * _span(box[0], box[1], position, first_leaf) + worth * box.shape[1] * omitted
                break
            for index in range(seen):
                c = touched[index]
                excess[c] = counts[c] - int(np.floor((least[c] + SLACK) * people))
        omitted += _leave_out(run, begin, record, column, values, excess, not frequent, counts, total, out)
    for index in range(seen):
        counts[touched[index]] = 0
    return cost


@kernel
def judge(  # type: ignore[no-untyped-def]
    tree: Any, crowd: Any, left: Any, limits: Any, worth: float, given: Any, own: Any, wanted: Any
):
    """Per node the loss of publishing it, or the parts of it, or what is given for it, whichever is least.

    Loss is the summed widths of the boxes over their records; a record left out counts as `worth` that are fully
    generalized. own[node] is the loss as one class: NaN where it was not judged yet, which it is not if it cannot be
    less than that of the parts, and infinite where it cannot be one. With `wanted` nodes only these are judged, as
    classes. Returns the losses, per record its number among the wanted (-1 for none), and their boxes (wanted,
    attributes).
    """
    line, points, weight, begin, record, loose = (
        tree.line, crowd.points, crowd.weight, crowd.begin, crowd.record, crowd.loose,
    )  # fmt: skip
    column, values, position, first_leaf = crowd.column, crowd.values, crowd.position, crowd.first_leaf
    nodes, width, columns, flat = tree.first.size, points.shape[1] + loose.shape[1], left.fresh.size, limits.first[-1]
    touched, counts, least = np.zeros(columns, np.int64), np.zeros(columns, np.int64), np.ones(columns)
    total, excess = np.zeros(flat, np.int64), np.zeros(max(columns, flat), np.int64)
    out, blocked, box = np.zeros(record.size, np.bool_), np.zeros(_MANY, np.bool_), np.zeros((6, width), np.int32)
    best, member = np.full(nodes, np.inf), np.full(record.size, -1, np.int32)
    lo, hi = np.empty((wanted.size, width), np.int32), np.empty((wanted.size, width), np.int32)
    choosing = wanted.size == 0
    for step in range(nodes if choosing else wanted.size):
        node = nodes - 1 - step if choosing else wanted[step]
        run = line[tree.first[node] : tree.last[node]]
        if choosing:
            for i in range(run.size):
                for place in range(begin[run[i]], begin[run[i] + 1]):
                    out[record[place]] = False
            size = _bound(run, points, loose, begin, record, out, box)
            best[node] = worth * width * size
            if tree.child[node] >= 0:
                best[node] = best[tree.child[node]] + best[tree.child[node] + 1]
            best[node] = min(best[node], given[node])
            tight = size * _span(box[0], box[1], position, first_leaf)
            if not np.isnan(own[node]) or size == 0 or best[node] <= tight:
                if own[node] < best[node]:
                    best[node] = own[node]
                continue
        cost = _judge(
            run, points, weight, begin, record, loose, column, values, position, first_leaf,
            left.ends, left.column, left.share, left.fresh, limits, worth,
            touched, counts, least, total, excess, out, blocked, box,
        )  # fmt: skip
        own[node] = cost if cost >= 0.0 else np.inf
        if choosing:
            best[node] = min(best[node], own[node])
            continue
        for i in range(run.size):
            for place in range(begin[run[i]], begin[run[i] + 1]):
                if not out[record[place]]:
                    member[record[place]] = step
        lo[step], hi[step] = box[0], box[1]
    return best, member, lo, hi


@kernel
def near_limit(  # type: ignore[no-untyped-def]
    point: Any, box: Any, first: Any, column: Any, linked: Any, among: Any,
    ends: Any, entry: Any, left: Any, columns: int, limit: float,
):  # fmt: skip
    """Where boxes of the next release leave a point so little of a value that it has to be looked at exactly.

    Box b has the values column[first[b]:first[b + 1]], so many (`linked`) of its `among` registered people; `limit` is
    the survival from which on nothing is wrong. Returns points, places in `column`, and entries, -1 where the point was
    not linked before.
    """
    at = np.full(columns, -1, np.int64)
    room, found = 1024, 0
    points, places, entries = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for i in range(point.size):
        p, b = point[i], box[i]
        if first[b + 1] == first[b]:
            continue
        for e in range(ends[p], ends[p + 1]):
            at[entry[e]] = e
        for place in range(first[b], first[b + 1]):
            e = at[column[place]]
            kept = 1.0 if e < 0 else left[e]
            if kept * (1.0 - linked[place] / among[b]) < limit:
                if found == room:
                    points, places = np.append(points, points), np.append(places, places)
                    entries = np.append(entries, entries)
                    room *= 2
                points[found], places[found], entries[found] = p, place, e
                found += 1
        for e in range(ends[p], ends[p + 1]):
            at[entry[e]] = -1
    return points[:found], places[:found], entries[:found]
