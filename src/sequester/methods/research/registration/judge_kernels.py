"""The cheapest safe boxes in the regions of a tree over registered people.

A box has N registered people and n records; a value that n_s of the records have is within its share when
n_s <= share * N for the smallest share that any point in the box allows. Every box is judged anew: nothing is assumed
to stay safe when it grows or shrinks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.lifetime.share_kernels import SLACK
from sequester.methods.loops.boxes import width as box_width
from sequester.methods.research.registration.point_kernels import (
    Floats,
    Ints,
    Longs,
    Points,
    PointShares,
    Tree,
    inside,
)

# Boxes grow point by point in nodes of at most so many points, which takes the square of them, and in so many even
# steps in larger ones.
_MANY, _STEPS = 600, 16


class Judging(NamedTuple):
    """What is counted in the node that is judged, per protected value (column) and value of the static criteria."""

    touched: Longs  # the columns that occur
    counts: Longs
    least: Floats  # the smallest share that any point in the box allows
    total: Longs
    blocked: NDArray[np.bool_]  # per point of a short run, whether it must stay outside


class Growing(NamedTuple):
    """A box that grows: as it is, as it would be next, and around all points of the node (attributes that link)."""

    low: Ints
    high: Ints
    next_low: Ints
    next_high: Ints
    all_low: Ints
    all_high: Ints


@helper
def _around(run, points, shares, judging, seen, low, high):
    """How many registered people of a run are in a box; the smallest shares there are left in `least`."""
    people = np.int64(0)
    for index in range(seen):
        judging.least[judging.touched[index]] = shares.fresh[judging.touched[index]]
    for i in range(run.size):
        p = run[i]
        if inside(points.codes, p, low, high):
            people += points.weight[p]
            for e in range(shares.ends[p], shares.ends[p + 1]):
                c = shares.column[e]
                if judging.counts[c] > 0 and shares.share[e] < judging.least[c]:
                    judging.least[c] = shares.share[e]
    return people


@helper
def _within(judging, seen, people):
    """Whether every value that occurs is within its share of so many people."""
    for index in range(seen):
        c = judging.touched[index]
        if judging.counts[c] > 0 and judging.counts[c] > (judging.least[c] + SLACK) * people:
            return False
    return True


@helper
def _nearest(run, points, blocked, box):
    """The place in a short run of the point that widens the box least, of those that are not blocked; -1 for none."""
    best = np.inf
    chosen = np.int64(-1)
    for i in range(run.size):
        p = run[i]
        if blocked[i] or inside(points.codes, p, box.low, box.high):
            continue
        cost = 0.0
        for a in range(points.codes.shape[1]):
            code, low, high, base = points.codes[p, a], box.low[a], box.high[a], points.first_leaf[a]
            if code < low or code > high:
                wide = points.position[base + max(high, code)] - points.position[base + min(low, code)]
                cost += min(wide, 1.0) - min(points.position[base + high] - points.position[base + low], 1.0)
        if cost < best:
            best = cost
            chosen = np.int64(i)
    return chosen


@helper
def _block(run, shares, judging, everybody):
    """Points of a short run that would leave no hope for a value stay outside."""
    for i in range(run.size):
        judging.blocked[i] = False
        for e in range(shares.ends[run[i]], shares.ends[run[i] + 1]):
            many = judging.counts[shares.column[e]]
            if many > 0 and many > (shares.share[e] + SLACK) * everybody:
                judging.blocked[i] = True
                break


@helper
def _take_next(box, width):
    for a in range(width):
        box.low[a] = box.next_low[a]
        box.high[a] = box.next_high[a]


@helper
def _grow_by_points(run, points, shares, judging, seen, everybody, box):
    """Widen the box inside its short run, where that costs least, until every value is within its share.

    Returns whether it is done.
    """
    _block(run, shares, judging, everybody)
    while True:
        chosen = _nearest(run, points, judging.blocked, box)
        if chosen < 0:
            return False
        for a in range(points.codes.shape[1]):
            box.next_low[a] = min(box.low[a], points.codes[run[chosen], a])
            box.next_high[a] = max(box.high[a], points.codes[run[chosen], a])
        people = _around(run, points, shares, judging, seen, box.next_low, box.next_high)
        if not _within(judging, seen, everybody):
            judging.blocked[chosen] = True
            continue
        _take_next(box, points.codes.shape[1])
        if _within(judging, seen, people):
            return True


@helper
def _grow_evenly(run, points, shares, judging, seen, box):
    """Widen the box inside its long run, in even steps to the ends of the points, until values are within their shares.

    Returns whether it is done.
    """
    for steps in range(_STEPS, 0, -1):
        for a in range(points.codes.shape[1]):
            box.next_low[a] = box.low[a] - (box.low[a] - box.all_low[a]) // steps
            box.next_high[a] = box.high[a] + (box.all_high[a] - box.high[a]) // steps
        people = _around(run, points, shares, judging, seen, box.next_low, box.next_high)
        _take_next(box, points.codes.shape[1])
        if _within(judging, seen, people):
            return True
    return False


@helper
def _bound(run, points, box):
    """The tight box around the records of a run, and that around all points; returns the number of records."""
    width, size = points.codes.shape[1], np.int64(0)
    for i in range(run.size):
        p = run[i]
        for a in range(width):
            code = points.codes[p, a]
            box.all_low[a] = code if i == 0 else min(box.all_low[a], code)
            box.all_high[a] = code if i == 0 else max(box.all_high[a], code)
        for place in range(points.begin[p], points.begin[p + 1]):
            r = points.record[place]
            for a in range(box.low.size):
                code = points.codes[p, a] if a < width else points.loose[r, a - width]
                box.low[a] = code if size == 0 else min(box.low[a], code)
                box.high[a] = code if size == 0 else max(box.high[a], code)
            size += 1
    return size


@helper
def _count(run, points, judging):
    """Count what is in a run of points; returns how many columns occur, and how many people are registered."""
    seen = np.int64(0)
    everybody = np.int64(0)
    for value in range(judging.total.size):
        judging.total[value] = 0
    for i in range(run.size):
        everybody += points.weight[run[i]]
        for place in range(points.begin[run[i]], points.begin[run[i] + 1]):
            r = points.record[place]
            for view in range(points.column.shape[1]):
                c = points.column[r, view]
                if c >= 0:
                    if judging.counts[c] == 0:
                        judging.touched[seen] = c
                        seen += 1
                    judging.counts[c] += 1
            for view in range(points.values.shape[1]):
                judging.total[points.values[r, view]] += 1
    return seen, everybody


@helper
def _judge(run, points, shares, limits, judging, box):
    """The box of a node around all its records, as tight as is safe; returns the loss, infinite for none.

    All or nobody: to leave out some of its records would tell their values.
    """
    cost = np.inf
    seen, everybody = _count(run, points, judging)
    size = _bound(run, points, box)
    if size >= max(limits.k, 1) and safe(judging.total, size, limits):
        people = _around(run, points, shares, judging, seen, box.low, box.high)
        shared = _within(judging, seen, people)
        if not shared and run.size <= _MANY:
            shared = _grow_by_points(run, points, shares, judging, seen, everybody, box)
        elif not shared:
            shared = _grow_evenly(run, points, shares, judging, seen, box)
        if shared:
            cost = size * box_width(box.low, box.high, points.position, points.first_leaf)
    for index in range(seen):
        judging.counts[judging.touched[index]] = 0
    return cost


@helper
def _room(points, shares, limits):
    columns, width = shares.fresh.size, points.codes.shape[1] + points.loose.shape[1]
    judging = Judging(
        np.zeros(columns, np.int64),
        np.zeros(columns, np.int64),
        np.ones(columns),
        np.zeros(limits.first[-1], np.int64),
        np.zeros(_MANY, np.bool_),
    )
    box = Growing(
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
    )
    return judging, box


@kernel
def price_nodes(
    tree: Tree, points: Points, shares: PointShares, limits: Limits, worth: float, given: Floats, own: Floats
) -> Floats:
    """Per node the loss of publishing it, or the parts of it, or what is given for it, whichever is least.

    Loss is the summed widths of the boxes over their records; a record left out counts as `worth` that are fully
    generalized. own[node] is the loss as one class: NaN where it was not judged yet, which it is not if it cannot be
    less than that of the parts, and infinite where it cannot be one.
    """
    judging, box = _room(points, shares, limits)
    best = np.full(tree.first.size, np.inf)
    for node in range(tree.first.size - 1, -1, -1):
        run = tree.line[tree.first[node] : tree.last[node]]
        size = _bound(run, points, box)
        best[node] = worth * box.low.size * size
        if tree.child[node] >= 0:
            best[node] = best[tree.child[node]] + best[tree.child[node] + 1]
        best[node] = min(best[node], given[node])
        tight = size * box_width(box.low, box.high, points.position, points.first_leaf)
        if np.isnan(own[node]) and size > 0 and best[node] > tight:
            own[node] = _judge(run, points, shares, limits, judging, box)
        if own[node] < best[node]:
            best[node] = own[node]
    return best


@kernel
def publish_nodes(
    tree: Tree, points: Points, shares: PointShares, limits: Limits, nodes: Longs
) -> tuple[Ints, Ints, Ints]:
    """These nodes as classes: per record its number among them, -1 for none, and their boxes (nodes, attributes)."""
    judging, box = _room(points, shares, limits)
    member = np.full(points.record.size, -1, np.int32)
    lo, hi = np.empty((nodes.size, box.low.size), np.int32), np.empty((nodes.size, box.low.size), np.int32)
    for number in range(nodes.size):
        run = tree.line[tree.first[nodes[number]] : tree.last[nodes[number]]]
        _judge(run, points, shares, limits, judging, box)
        for i in range(run.size):
            for place in range(points.begin[run[i]], points.begin[run[i] + 1]):
                member[points.record[place]] = number
        for a in range(box.low.size):
            lo[number, a] = box.low[a]
            hi[number, a] = box.high[a]
    return member, lo, hi
