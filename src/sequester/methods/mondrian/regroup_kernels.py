"""Classes regrouped with their neighbours: two or three are taken together and shared out again, into more if possible.

Cuts leave classes of up to twice the people they need. Sharing out grows groups of k people, each from a person at the
edge by those who widen its box least, and gives who is left to the group they cost least. What is safe and costs less
is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe


@helper
def _width(place, people, count):  # type: ignore[no-untyped-def]
    """Summed widths of the box around some people."""
    total = 0.0
    for axis in range(place.shape[1]):
        low, high = np.inf, -np.inf
        for i in range(count):
            low, high = min(low, place[people[i], axis]), max(high, place[people[i], axis])
        total += min(high - low, 1.0)
    return total


@helper
def _widened(place, person, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for axis in range(low.size):
        total += min(max(high[axis], place[person, axis]) - min(low[axis], place[person, axis]), 1.0)
    return total


@helper
def _share_out(place, pool, count, groups, k, start, group, low, high, size):  # type: ignore[no-untyped-def]
    """Put the people of a pool into groups of at least k, from a given first person; returns the cost."""
    width = place.shape[1]
    for i in range(count):
        group[i] = -1
    seed = start
    for g in range(groups):
        if g > 0:
            # The next group grows from whoever is farthest from the groups so far.
            best, seed = -1.0, -1
            for i in range(count):
                if group[i] >= 0:
                    continue
                nearest = np.inf
                for h in range(g):
                    far = 0.0
                    for axis in range(width):
                        x = place[pool[i], axis]
                        far += max(low[h, axis] - x, x - high[h, axis], 0.0)
                    nearest = min(nearest, far)
                if nearest > best:
                    best, seed = nearest, i
        for axis in range(width):
            low[g, axis] = high[g, axis] = place[pool[seed], axis]
        group[seed] = g
        size[g] = 1
        while size[g] < k:
            best, chosen = np.inf, -1
            for i in range(count):
                if group[i] < 0:
                    wide = _widened(place, pool[i], low[g], high[g])
                    if wide < best:
                        best, chosen = wide, i
            group[chosen] = g
            size[g] += 1
            for axis in range(width):
                x = place[pool[chosen], axis]
                low[g, axis], high[g, axis] = min(low[g, axis], x), max(high[g, axis], x)
    for i in range(count):
        if group[i] >= 0:
            continue
        best, chosen = np.inf, -1
        for g in range(groups):
            now = 0.0
            for axis in range(width):
                now += min(high[g, axis] - low[g, axis], 1.0)
            more = (size[g] + 1) * _widened(place, pool[i], low[g], high[g]) - size[g] * now
            if more < best:
                best, chosen = more, g
        group[i] = chosen
        size[chosen] += 1
        for axis in range(width):
            x = place[pool[i], axis]
            low[chosen, axis], high[chosen, axis] = min(low[chosen, axis], x), max(high[chosen, axis], x)
    cost = 0.0
    for g in range(groups):
        for axis in range(width):
            cost += size[g] * min(high[g, axis] - low[g, axis], 1.0)
    return cost


@helper
def _all_safe(pool, count, group, groups, size, values, limits, counts):  # type: ignore[no-untyped-def]
    for g in range(groups):
        counts[:] = 0
        for i in range(count):
            if group[i] == g:
                for view in range(values.shape[1]):
                    counts[values[pool[i], view]] += 1
        if not safe(counts, size[g], limits):
            return False
    return True


@kernel
def regroup(  # type: ignore[no-untyped-def]
    place: Any, values: Any, member: Any, order: Any, begin: Any, end: Any, names: Any, first_name: Any, last_name: Any,
    at_name: Any, fresh: Any, limits: Any, near: int, starts: int, passes: int,
):  # fmt: skip
    """Regroup the classes of every window; `member` is changed in place.

    place       (people, attributes) positions on [0, 1]; values as for the static limits
    order       people by window; begin, end are per window
    names       the classes of every window, whose are from first_name to last_name; at_name is per person where among
                those of her window her class is
    fresh       per window, the first of the class numbers it may use for new classes
    """
    width = place.shape[1]
    k = max(limits.k, 1)
    largest = 2 * k + 8  # larger classes are left alone
    room = 3 * largest
    low, high = np.empty((5, width)), np.empty((5, width))
    size, pool = np.empty(5, np.int64), np.empty(room, np.int64)
    group, best_group = np.empty(room, np.int64), np.empty(room, np.int64)
    counts = np.zeros(limits.numerator.size, np.int64)
    trio = np.empty(3, np.int64)
    for window in range(begin.size):
        first, last = begin[window], end[window]
        classes = last_name[window] - first_name[window]
        most = classes + (last - first) // k + 1
        name = np.empty(most, np.int64)
        for c in range(classes):
            name[c] = names[first_name[window] + c]
        held = np.zeros((most, room), np.int64)
        number = np.zeros(most, np.int64)
        for i in range(first, last):
            at = at_name[order[i]]
            if number[at] < room:
                held[at, number[at]] = order[i]
            number[at] += 1
        center = np.zeros((most, width))
        cost = np.zeros(most)
        changed = np.zeros(most, np.int64)
        looked = np.full(most, -1, np.int64)
        for c in range(classes):
            if number[c] <= room:
                cost[c] = number[c] * _width(place, held[c], number[c])
                for i in range(number[c]):
                    for axis in range(width):
                        center[c, axis] += place[held[c, i], axis] / number[c]
        around = np.empty(near, np.int64)
        far = np.empty(near)
        clock = 0
        for _ in range(passes):
            improved = False
            c = 0
            while c < classes:
                if number[c] > largest:
                    c += 1
                    continue
                found = 0
                for other in range(classes):
                    if other == c or number[other] > largest:
                        continue
                    distance = 0.0
                    for axis in range(width):
                        distance += abs(center[c, axis] - center[other, axis])
                    if found < near or distance < far[found - 1]:
                        at = found if found < near else near - 1
                        while at > 0 and far[at - 1] > distance:
                            far[at], around[at] = far[at - 1], around[at - 1]
                            at -= 1
                        far[at], around[at] = distance, other
                        found = min(found + 1, near)
                for one in range(found):
                    for two in range(one, found):
                        trio[0], trio[1], trio[2] = c, around[one], around[two]
                        together = 2 if one == two else 3
                        newest = 0
                        now = 0.0
                        for t in range(together):
                            newest = max(newest, changed[trio[t]])
                            now += cost[trio[t]]
                        if newest < looked[c] or now <= 0:
                            continue
                        people: Any = np.int64(0)
                        for t in range(together):
                            for i in range(number[trio[t]]):
                                pool[people] = held[trio[t], i]
                                people += 1
                        best, best_groups = now - 1e-9, 0
                        for groups in range(min(people // k, together + 1), together - 1, -1):
                            for start in range(0, people, max(people // starts, 1)):
                                total = _share_out(place, pool, people, groups, k, start, group, low, high, size)
                                if total < best and _all_safe(
                                    pool, people, group, groups, size, values, limits, counts
                                ):
                                    best, best_groups = total, groups
                                    for i in range(people):
                                        best_group[i] = group[i]
                        if best_groups == 0 or (best_groups > together and classes == most):
                            continue
                        clock += 1
                        improved = True
                        for g in range(best_groups):
                            if g < together:
                                at = trio[g]
                            else:
                                at = classes
                                name[at] = fresh[window] + at
                                classes += 1
                            number[at] = 0
                            changed[at] = clock
                            for axis in range(width):
                                center[at, axis] = 0.0
                            for i in range(people):
                                if best_group[i] == g:
                                    held[at, number[at]] = pool[i]
                                    number[at] += 1
                                    for axis in range(width):
                                        center[at, axis] += place[pool[i], axis]
                            for axis in range(width):
                                center[at, axis] /= number[at]
                            cost[at] = number[at] * _width(place, held[at], number[at])
                looked[c] = clock + 1
                c += 1
            if not improved:
                break
        for c in range(classes):
            if number[c] <= room:
                for i in range(number[c]):
                    member[held[c, i]] = name[c]
