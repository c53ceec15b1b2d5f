"""What earlier releases left of every registered point, and where the next release comes near the limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import kernel


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
