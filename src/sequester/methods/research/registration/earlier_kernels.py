"""What earlier releases left of every registered point, and where the next release comes near the limit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sequester.kernels import kernel
from sequester.methods.research.registration.point_kernels import Floats, Ints, Longs, PointShares


class Around(NamedTuple):
    """The boxes around every point, numbered through all releases, and what is in them.

    In release t point p is in the boxes where[start[t, p]:start[t, p + 1]]; box b has the values
    column[ends[b]:ends[b + 1]] at these shares.
    """

    start: Longs
    where: Longs
    ends: Longs
    column: Ints
    share: Floats


class Linked(NamedTuple):
    """The values of box b of the next release, column[first[b]:first[b + 1]]: so many rows, among so many people."""

    first: Longs
    column: Ints
    rows: Longs
    among: Longs  # per box


@kernel
def remain(around: Around, begin: int, end: int, columns: int) -> tuple[Longs, Ints, Floats, Ints]:
    """What is left of the points [begin, end) after all releases, for the values that were in a box around them.

    Of several boxes the worst counts. Returns per point how many entries it has, their columns, the survival, and in
    how many releases there was a link.
    """
    count = np.zeros(end - begin, np.int64)
    room = 8 * (end - begin) + columns + 16
    entry, left, linked = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    state, times, worst = np.ones(columns), np.zeros(columns, np.int32), np.zeros(columns)
    touched, now = np.empty(columns, np.int32), np.empty(columns, np.int32)
    entries = 0
    for p in range(begin, end):
        seen = 0
        for t in range(around.start.shape[0]):
            new = 0
            for i in range(around.start[t, p], around.start[t, p + 1]):
                box = around.where[i]
                for e in range(around.ends[box], around.ends[box + 1]):
                    c = around.column[e]
                    if worst[c] == 0.0:
                        now[new] = c
                        new += 1
                    worst[c] = max(worst[c], around.share[e])
            for index in range(new):
                c = now[index]
                if times[c] == 0:
                    touched[seen] = c
                    seen += 1
                times[c] += 1
                state[c] *= 1.0 - worst[c]
                worst[c] = 0.0
        if entries + seen > entry.size:
            entry, left, linked = np.append(entry, entry), np.append(left, left), np.append(linked, linked)
        for index in range(seen):
            c = touched[index]
            entry[entries] = c
            left[entries] = state[c]
            linked[entries] = times[c]
            state[c] = 1.0
            times[c] = 0
            entries += 1
        count[p - begin] = seen
    return count, entry[:entries], left[:entries], linked[:entries]


@kernel
def near_limit(
    point: Ints, box: Ints, values: Linked, shares: PointShares, left: Floats, limit: float
) -> tuple[Longs, Longs, Longs]:
    """Where boxes of the next release leave a point so little of a value that it has to be looked at exactly.

    point, box  pairs of a point and the box it is in
    left        per entry of the shares its survival; from `limit` on nothing is wrong
    Returns points, places in the columns of the values, and entries, -1 where the point was not linked before.
    """
    at = np.full(shares.fresh.size, -1, np.int64)
    room, cases = 1024, 0
    points, places, entries = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for i in range(point.size):
        p, b = point[i], box[i]
        if values.first[b + 1] == values.first[b]:
            continue
        for e in range(shares.ends[p], shares.ends[p + 1]):
            at[shares.column[e]] = e
        for place in range(values.first[b], values.first[b + 1]):
            e = at[values.column[place]]
            kept = 1.0 if e < 0 else left[e]
            if kept * (1.0 - values.rows[place] / values.among[b]) < limit:
                if cases == room:
                    points, places = np.append(points, points), np.append(places, places)
                    entries = np.append(entries, entries)
                    room *= 2
                points[cases] = p
                places[cases] = place
                entries[cases] = e
                cases += 1
        for e in range(shares.ends[p], shares.ends[p + 1]):
            at[shares.column[e]] = -1
    return points[:cases], places[:cases], entries[:cases]
