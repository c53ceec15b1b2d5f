"""Trees of cuts over points of registered people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.research.registration.point_kernels import Floats, Ints, Longs, Points, PointShares


class Below(NamedTuple):
    """What is counted of the points below a cut, as of a node."""

    counts: Longs
    hurt: Floats
    total: Longs


class NodeTally(NamedTuple):
    """What is counted in the node that is cut, per protected value (column) and per value of the static criteria."""

    touched: Longs  # the columns that occur, in no order
    counts: Longs
    mean: Floats  # how much less than a fresh one the usual person allows, summed
    allowed: Floats  # how frequent a value may be among the registered on both sides
    hurt: Floats  # how hard it is for all points together to bear one record with the value
    total: Longs
    below: Below


class Aim(NamedTuple):
    """How trees are cut: what the static criteria allow, and what makes a good cut.

    usual  per column, how frequent it may always be among the registered
    apart  how much it counts that records are parted from points that can hardly bear their values
    fine   0, or nodes are halved until they have so few points: then records are not looked at
    """

    limits: Limits
    usual: Floats
    apart: float
    fine: int


class Cutting(NamedTuple):
    """The node that is cut: a run of points with records and registered people.

    seen       how many columns occur in it
    conflicts  how hard it is for its points to bear its records
    sound      whether no value may be too frequent on either side
    apart      how much it counts that records are parted from points that can hardly bear their values
    """

    start: int
    stop: int
    present: int
    everybody: int
    seen: int
    conflicts: float
    sound: bool
    apart: float


@helper
def _burden(shares, e, everybody):
    """How hard it is for a point to bear one more record with the value of an entry: 1 is as hard as it gets."""
    return 1.0 / max(shares.share[e] * everybody, 1.0)


@helper
def _count(run, points, tally):
    """Count what is in a run of points; returns records, registered people, and how many columns occur."""
    present = np.int64(0)
    everybody = np.int64(0)
    seen = np.int64(0)
    for value in range(tally.total.size):
        tally.total[value] = 0
    for i in range(run.size):
        p = run[i]
        everybody += points.weight[p]
        present += points.begin[p + 1] - points.begin[p]
        for r in range(points.begin[p], points.begin[p + 1]):
            for view in range(points.column.shape[1]):
                c = points.column[points.record[r], view]
                if c >= 0:
                    if tally.counts[c] == 0:
                        tally.touched[seen] = c
                        seen += 1
                        tally.mean[c] = 0.0
                        tally.hurt[c] = 0.0
                    tally.counts[c] += 1
            for view in range(points.values.shape[1]):
                tally.total[points.values[points.record[r], view]] += 1
    return present, everybody, seen


@helper
def _weigh(run, points, shares, everybody, seen, usual, tally):
    """What is left at the points of a run, for the values in it; returns how hard it is to bear them."""
    for i in range(run.size):
        p = run[i]
        for e in range(shares.ends[p], shares.ends[p + 1]):
            c = shares.column[e]
            if tally.counts[c] > 0:
                tally.mean[c] += points.weight[p] * (shares.share[e] - shares.fresh[c])
                tally.hurt[c] += _burden(shares, e, everybody)
    conflicts = 0.0
    for index in range(seen):
        c = tally.touched[index]
        tally.allowed[c] = max(shares.fresh[c] + tally.mean[c] / everybody, usual[c])
        conflicts += tally.counts[c] * tally.hurt[c]
    return conflicts


@helper
def _extent(line, cutting, points, a):
    """Where the first and the last record of a run lie."""
    origin, end = -1.0, 0.0
    for i in range(cutting.start, cutting.stop):
        p = line[i]
        if points.begin[p + 1] > points.begin[p]:
            end = points.position[points.first_leaf[a] + points.codes[p, a]]
            if origin < 0.0:
                origin = end
    return origin, end


@helper
def _gap(line, j, stop, points, a):
    """The next code with records from a place on, and the one after it, which is at the place returned; or the end."""
    while j < stop and points.begin[line[j] + 1] == points.begin[line[j]]:
        j += 1
    if j == stop:
        return j, np.int64(0), np.int64(0)
    code = np.int64(points.codes[line[j], a])
    while j < stop and (points.codes[line[j], a] == code or points.begin[line[j] + 1] == points.begin[line[j]]):
        j += 1
    if j == stop:
        return j, code, code
    return j, code, np.int64(points.codes[line[j], a])


@helper
def _pass(p, points, shares, cutting, tally, together):
    """A point comes below the cut; returns how hard it is then to bear records on the same side."""
    below = tally.below
    if cutting.apart > 0.0 and cutting.conflicts > 0.0:
        for e in range(shares.ends[p], shares.ends[p + 1]):
            c = shares.column[e]
            if tally.counts[c] > 0:
                burden = _burden(shares, e, cutting.everybody)
                together += burden * (2 * below.counts[c] - tally.counts[c])
                below.hurt[c] += burden
    for r in range(points.begin[p], points.begin[p + 1]):
        for view in range(points.column.shape[1]):
            c = points.column[points.record[r], view]
            if c >= 0:
                together += 2.0 * below.hurt[c] - tally.hurt[c]
                below.counts[c] += 1
        for view in range(points.values.shape[1]):
            below.total[points.values[points.record[r], view]] += 1
    return together


@helper
def _turn(tally):
    """The counts of the other side of the cut."""
    for value in range(tally.total.size):
        tally.below.total[value] = tally.total[value] - tally.below.total[value]


@helper
def _are_sound(cutting, tally, size, people, limits):
    """Whether on both sides no value is too frequent: so many records and registered people are below."""
    below = tally.below
    for index in range(cutting.seen):
        c = tally.touched[index]
        above = cutting.everybody - people
        if below.counts[c] > tally.allowed[c] * people or (
            tally.counts[c] - below.counts[c] > tally.allowed[c] * above
        ):
            return False
    if not safe(below.total, size, limits):
        return False
    _turn(tally)
    sound = safe(below.total, cutting.present - size, limits)
    _turn(tally)
    return sound


@helper
def _best_cut(order, points, shares, cutting, limits, tally):
    """The best cut with k records on both sides: attribute and last code below, or -1.

    Best is what shortens the boxes around the records most and, where `apart` is positive, parts most of the records
    from points that can hardly bear their values.
    """
    below = tally.below
    best = -1.0
    chosen = np.int64(-1)
    last = np.int64(-1)
    for a in range(points.codes.shape[1]):
        line = order[a]
        base = points.first_leaf[a]
        origin, end = _extent(line, cutting, points, a)
        full = min(end - origin, 1.0)
        for index in range(cutting.seen):
            below.counts[tally.touched[index]] = 0
            below.hurt[tally.touched[index]] = 0.0
        for value in range(below.total.size):
            below.total[value] = 0
        size = np.int64(0)
        people = np.int64(0)
        together = cutting.conflicts
        i = cutting.start
        j, code, following = _gap(line, cutting.start, cutting.stop, points, a)
        while j < cutting.stop:
            # Codes between the two are shared out to both.
            until = (code + following) // 2
            while points.codes[line[i], a] <= until:
                p = line[i]
                i += 1
                people += points.weight[p]
                size += points.begin[p + 1] - points.begin[p]
                together = _pass(p, points, shares, cutting, tally, together)
            above = cutting.present - size
            if above < limits.k:
                break
            if size >= limits.k:
                low = min(points.position[base + code] - origin, 1.0)
                high = min(end - points.position[base + following], 1.0)
                score = full - (size * low + above * high) / cutting.present
                if cutting.conflicts > 0.0:
                    score += cutting.apart * (cutting.conflicts - together) / cutting.conflicts
                if score > best and (not cutting.sound or _are_sound(cutting, tally, size, people, limits)):
                    best = score
                    chosen = np.int64(a)
                    last = until
            j, code, following = _gap(line, j, cutting.stop, points, a)
    return chosen, last


@helper
def _halve(order, start, stop, points):
    """The cut nearest to the median of the widest attribute: attribute and last code below, or -1."""
    best = -1.0
    chosen = np.int64(-1)
    for a in range(points.codes.shape[1]):
        low, high = points.codes[order[a, start], a], points.codes[order[a, stop - 1], a]
        wide = points.position[points.first_leaf[a] + high] - points.position[points.first_leaf[a] + low]
        if high > low and wide > best:
            best = wide
            chosen = np.int64(a)
    if chosen < 0:
        return chosen, chosen
    code = np.int64(points.codes[order[chosen, (start + stop) // 2], chosen])
    if code > points.codes[order[chosen, start], chosen]:
        code -= 1
    return chosen, code


@helper
def _cut(order, start, stop, points, shares, aim, sound, tally):
    """The cut of a node, as of `_best_cut`, and whether it is sound: as long as there is one that is, that is taken."""
    run = order[0, start:stop]
    axis = np.int64(-1)
    code = np.int64(-1)
    present, everybody, seen = _count(run, points, tally)
    if present >= 2 * aim.limits.k and present >= 2:
        conflicts = 0.0
        if sound or aim.apart > 0.0:
            conflicts = _weigh(run, points, shares, everybody, seen, aim.usual, tally)
        while True:
            cutting = Cutting(start, stop, present, everybody, seen, conflicts, sound, aim.apart)
            axis, code = _best_cut(order, points, shares, cutting, aim.limits, tally)
            if axis >= 0 or not sound:
                break
            sound = False
    for index in range(seen):
        tally.counts[tally.touched[index]] = 0
    return axis, code, sound


@helper
def _part(order, start, stop, axis, code, points, above, waiting):
    """Part a run in every row of the order at a cut; returns where the points above it begin."""
    middle = start
    for i in range(start, stop):
        p = order[axis, i]
        above[p] = points.codes[p, axis] > code
        middle += not above[p]
    for a in range(points.codes.shape[1]):
        kept, moved = start, 0
        for i in range(start, stop):
            p = order[a, i]
            if above[p]:
                waiting[moved] = p
                moved += 1
            else:
                order[a, kept] = p
                kept += 1
        for i in range(moved):
            order[a, kept + i] = waiting[i]
    return middle


@kernel
def cut_points(
    order: Ints, ends: Longs, points: Points, shares: PointShares, aim: Aim
) -> tuple[Longs, Longs, Longs, Ints, Ints]:
    """Trees of cuts over points, one for each run of them that is given.

    order  (attributes, points): the points sorted by each attribute inside every run, parted in place, so that a node
           is a run of every row; one row where there is no attribute
    ends   where the runs begin, and where the last ends
    Cuts have k records on both sides. As long as there is one that leaves no value more frequent among the registered
    than is usual, or than what is left here bears on average, it is taken, and then any. Returns the nodes of a `Tree`
    without its line, which is any row of `order`.
    """
    many, width = order.shape[1], points.codes.shape[1]
    columns, values = shares.fresh.size, aim.limits.first[-1]
    room = 2 * many
    first, last, child = np.empty(room, np.int64), np.empty(room, np.int64), np.full(room, -1, np.int64)
    low, high = np.empty((room, width), np.int32), np.empty((room, width), np.int32)
    sound = np.ones(room, np.bool_)
    tally = NodeTally(
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(values, np.int64),
        Below(np.zeros(columns, np.int64), np.zeros(columns), np.zeros(values, np.int64)),
    )
    above = np.zeros(points.codes.shape[0], np.bool_)
    waiting = np.empty(many, np.int32)
    nodes, node = ends.size - 1, 0
    for root in range(nodes):
        first[root] = ends[root]
        last[root] = ends[root + 1]
    while node < nodes:
        start, stop = first[node], last[node]
        for a in range(width):
            low[node, a] = points.codes[order[a, start], a]
            high[node, a] = points.codes[order[a, stop - 1], a]
        axis = np.int64(-1)
        code = np.int64(-1)
        if aim.fine == 0:
            axis, code, sound[node] = _cut(order, start, stop, points, shares, aim, sound[node], tally)
        elif stop - start > aim.fine:
            axis, code = _halve(order, start, stop, points)
        if axis >= 0:
            middle = _part(order, start, stop, axis, code, points, above, waiting)
            child[node] = nodes
            first[nodes], last[nodes] = start, middle
            first[nodes + 1], last[nodes + 1] = middle, stop
            sound[nodes] = sound[nodes + 1] = sound[node]
            nodes += 2
        node += 1
    return first[:nodes], last[:nodes], child[:nodes], low[:nodes], high[:nodes]
