"""The cheapest safe boxes in the regions of a tree over registered people.

A box has N registered people and n records; a value that n_s of the records have is within its share when
n_s <= share * N for the smallest share that any point in the box allows. Every box is judged anew: nothing is assumed
to stay safe when it grows or shrinks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe
from sequester.methods.lifetime.region_tree_kernels import inside
from sequester.methods.loops.boxes import width as box_width

# Shares this near to what is allowed pass here, and are decided exactly afterwards.
SLACK = 1e-10

# Boxes grow point by point in nodes of at most so many points, and in so many even steps in larger ones.
_MANY, _STEPS = 600, 16


@helper
def _around(  # type: ignore[no-untyped-def]
    run, points, weight, ends, entry, share, fresh, touched, seen, counts, least, low, high
):
    """How many registered people of a run are in a box; the smallest shares there are left in `least`."""
    people = np.int64(0)
    for index in range(seen):
        least[touched[index]] = fresh[touched[index]]
    for i in range(run.size):
        p = run[i]
        if inside(points, p, low, high):
            people += weight[p]
            for e in range(ends[p], ends[p + 1]):
                if counts[entry[e]] > 0 and share[e] < least[entry[e]]:
                    least[entry[e]] = share[e]
    return people


@helper
def _within(touched, seen, counts, least, people):  # type: ignore[no-untyped-def]
    """Whether every value that occurs is within its share of so many people."""
    for index in range(seen):
        c = touched[index]
        if counts[c] > 0 and counts[c] > (least[c] + SLACK) * people:
            return False
    return True


@helper
def _next_box(run, points, blocked, position, first_leaf, box, steps):  # type: ignore[no-untyped-def]
    """The next larger box to try, in box[2] and box[3]; returns the place in the run it is for, -1 for none.

    In a short run it reaches the point, of those that are not blocked, that widens it least. In a long one all sides go
    so many equal `steps` to the end of the points, which is in box[4] and box[5].
    """
    best, chosen, large = np.inf, -1, run.size > _MANY
    for i in range(0 if large else run.size):
        p = run[i]
        if blocked[i] or inside(points, p, box[0], box[1]):
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


@helper
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
    steps = np.int64(_STEPS)
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


@helper
def _bound(run, points, loose, begin, record, box):  # type: ignore[no-untyped-def]
    """The tight box around the records of a run, in box[0] and box[1]; returns their number.

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
            for a in range(box.shape[1]):
                code = points[p, a] if a < width else loose[r, a - width]
                box[0, a] = code if size == 0 else min(box[0, a], code)
                box[1, a] = code if size == 0 else max(box[1, a], code)
            size += 1
    return size


@helper
def _judge(  # type: ignore[no-untyped-def]
    run, points, weight, begin, record, loose, column, values, position, first_leaf, ends, entry, share, fresh, limits,
    touched, counts, least, total, blocked, box,
):  # fmt: skip
    """The box of a node around all its records, as tight as is safe; returns the loss, -1 for none.

    All or nobody: to leave out some of its records would tell their values. The box is then in box[0] and box[1].
    """
    seen, everybody = np.int64(0), np.int64(0)
    total[:] = 0
    for i in range(run.size):
        everybody += weight[run[i]]
        for place in range(begin[run[i]], begin[run[i] + 1]):
            r = record[place]
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
    size = _bound(run, points, loose, begin, record, box)
    if size >= max(limits.k, 1) and safe(total, size, limits):
        people = _around(run, points, weight, ends, entry, share, fresh, touched, seen, counts, least, box[0], box[1])
        shared = _within(touched, seen, counts, least, people)
        if not shared:
            shared, people = _grow(
                run, points, weight, ends, entry, share, fresh, touched, seen, counts, least,
                everybody, blocked, position, first_leaf, box,
            )  # fmt: skip
        if shared:
            cost = size * box_width(box[0], box[1], position, first_leaf)
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
    total = np.zeros(flat, np.int64)
    blocked, box = np.zeros(_MANY, np.bool_), np.zeros((6, width), np.int32)
    best, member = np.full(nodes, np.inf), np.full(record.size, -1, np.int32)
    lo, hi = np.empty((wanted.size, width), np.int32), np.empty((wanted.size, width), np.int32)
    choosing = wanted.size == 0
    for step in range(nodes if choosing else wanted.size):
        node = nodes - 1 - step if choosing else wanted[step]
        run = line[tree.first[node] : tree.last[node]]
        if choosing:
            size = _bound(run, points, loose, begin, record, box)
            best[node] = worth * width * size
            if tree.child[node] >= 0:
                best[node] = best[tree.child[node]] + best[tree.child[node] + 1]
            best[node] = min(best[node], given[node])
            tight = size * box_width(box[0], box[1], position, first_leaf)
            if not np.isnan(own[node]) or size == 0 or best[node] <= tight:
                if own[node] < best[node]:
                    best[node] = own[node]
                continue
        cost = _judge(
            run, points, weight, begin, record, loose, column, values, position, first_leaf,
            left.ends, left.column, left.share, left.fresh, limits,
            touched, counts, least, total, blocked, box,
        )  # fmt: skip
        own[node] = cost if cost >= 0.0 else np.inf
        if choosing:
            best[node] = min(best[node], own[node])
            continue
        for i in range(run.size):
            for place in range(begin[run[i]], begin[run[i] + 1]):
                member[record[place]] = step
        for a in range(width):
            lo[step, a], hi[step, a] = box[0, a], box[1, a]
    return best, member, lo, hi
