"""Classes regrouped with their neighbours: two or three are taken together and shared out again, into more if possible.

Cuts leave classes of up to twice the people they need. Sharing out grows groups of k people, each from a person at the
edge by those who widen its box least, and gives who is left to the group they cost least. What is safe and costs less
is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe

_SAVED = 1e-9
"""What must be saved at least: less is a rounding error, and would go round in circles."""


class Window(NamedTuple):
    """The classes of neighbouring people; there is room for more than there are.

    held             (classes, most people) members of every class that is not too large to be shared out
    number           people per class
    center, cost     (classes, attributes) where its people are on average; people times the widths of the box
    changed, looked  when it was shared out, and when its neighbours were looked at last
    """

    held: NDArray[np.int64]
    number: NDArray[np.int64]
    center: NDArray[np.float64]
    cost: NDArray[np.float64]
    changed: NDArray[np.int64]
    looked: NDArray[np.int64]


class Pace(NamedTuple):
    """How much is tried: neighbours of a class, first persons of groups, and how often every class is looked at.

    largest  classes of more people are left alone
    """

    near: int
    starts: int
    passes: int
    largest: int


class _Shares(NamedTuple):
    """People shared out in groups: the group of each, and per group its box and people.

    free  those who are in no group yet, in order
    far   per person, how far she is from the nearest group so far
    wide  per person, the least that a growing box is wide with her: what it was when she was looked at last
    """

    group: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    size: NDArray[np.int64]
    free: NDArray[np.int64]
    far: NDArray[np.float64]
    wide: NDArray[np.float64]


@helper
def _width(place, people, count):
    """Summed widths of the box around some people."""
    shape = place.shape
    total = 0.0
    for axis in range(shape[1]):
        low, high = np.inf, -np.inf
        for i in range(count):
            low, high = min(low, place[people[i], axis]), max(high, place[people[i], axis])
        total += min(high - low, 1.0)
    return total


@helper
def _widened(place, person, low, high):
    """Summed widths of a box that a person joins."""
    total = 0.0
    for axis in range(low.size):
        total += min(max(high[axis], place[person, axis]) - min(low[axis], place[person, axis]), 1.0)
    return total


@helper(inline="always")
def _farthest(place, pool, left, newest, shares):
    """Who is farthest from the groups up to the newest, of those in none; returns where she is among them."""
    shape, free, far = place.shape, shares.free, shares.far
    low, high = shares.low[newest], shares.high[newest]
    best, chosen = -1.0, -1
    for at in range(left):
        i, distance = free[at], 0.0
        for axis in range(shape[1]):
            x = place[pool[i], axis]
            distance += max(low[axis] - x, x - high[axis], 0.0)
        far[i] = min(far[i], distance)
        if far[i] > best:
            best, chosen = far[i], at
    return chosen


@helper(inline="always")
def _add(place, person, i, g, shares):
    """Put a person, who is at i in the pool, into a group."""
    shape, high, low = place.shape, shares.high, shares.low
    shares.group[i] = g
    shares.size[g] += 1
    for axis in range(shape[1]):
        x = place[person, axis]
        low[g, axis], high[g, axis] = min(low[g, axis], x), max(high[g, axis], x)


@helper(inline="always")
def _remove(free, at, left):
    """Those after her move up."""
    for i in range(at, left - 1):
        free[i] = free[i + 1]


@helper(inline="always")
def _give_rest(place, pool, left, groups, shares):
    """Give everybody who is in no group to the one she costs least."""
    shape, free, high, low, shares_size = place.shape, shares.free, shares.high, shares.low, shares.size
    for at in range(left):
        i = free[at]
        best, chosen = np.inf, -1
        for g in range(groups):
            now = 0.0
            for axis in range(shape[1]):
                now += min(high[g, axis] - low[g, axis], 1.0)
            size = shares_size[g]
            more = (size + 1) * _widened(place, pool[i], low[g], high[g]) - size * now
            if more < best:
                best, chosen = more, g
        _add(place, pool[i], i, chosen, shares)


@helper
def _share_out(place, pool, count, groups, k, start, shares):
    """Put the people of a pool into groups of at least k, from a given first person; returns the cost."""
    shape, free, high, low, size = place.shape, shares.free, shares.high, shares.low, shares.size
    far, least, left = shares.far, shares.wide, count
    for i in range(count):
        free[i], far[i] = i, np.inf
    for g in range(groups):
        chosen = start if g == 0 else _farthest(place, pool, left, g - 1, shares)
        first = free[chosen]
        size[g] = 0
        for axis in range(shape[1]):
            low[g, axis] = high[g, axis] = place[pool[first], axis]
        _add(place, pool[first], first, g, shares)
        _remove(free, chosen, left)
        left -= 1
        own_low, own_high = low[g], high[g]
        for i in range(count):
            least[i] = -1.0
        while size[g] < k:
            best, chosen = np.inf, -1
            for at in range(left):
                i = free[at]
                # The box only grows: who was not better before is not now. Rounding keeps the order of sums, too.
                if least[i] < best:
                    wide = _widened(place, pool[i], own_low, own_high)
                    least[i] = wide
                    if wide < best:
                        best, chosen = wide, at
            _add(place, pool[free[chosen]], free[chosen], g, shares)
            _remove(free, chosen, left)
            left -= 1
    _give_rest(place, pool, left, groups, shares)
    cost = 0.0
    for g in range(groups):
        for axis in range(shape[1]):
            cost += size[g] * min(high[g, axis] - low[g, axis], 1.0)
    return cost


@helper(inline="always")
def _list_near(center, number, classes, c, largest, around, far):
    """The nearest classes that are not too large, nearest first; returns how many."""
    shape = center.shape
    near = 0
    for other in range(classes):
        if other == c or number[other] > largest:
            continue
        distance = 0.0
        for axis in range(shape[1]):
            distance += abs(center[c, axis] - center[other, axis])
        if near < around.size or distance < far[near - 1]:
            at = near if near < around.size else around.size - 1
            while at > 0 and far[at - 1] > distance:
                far[at], around[at] = far[at - 1], around[at - 1]
                at -= 1
            far[at], around[at] = distance, other
            near = min(near + 1, around.size)
    return near


@helper(inline="always")
def _pool_people(held, number, trio, together, pool):
    """The people of two or three classes; returns how many."""
    people = np.int64(0)
    for t in range(together):
        for i in range(number[trio[t]]):
            pool[people] = held[trio[t], i]
            people += 1
    return people


@helper
def _all_safe(people, count, group, groups, values, limits, counts):
    """Whether every group of the first so many people satisfies the static limits; `group` is beside `people`."""
    for number in range(groups):
        counts[:] = 0
        size = np.int64(0)
        for i in range(count):
            if group[i] == number:
                size += 1
                for view in range(values.shape[1]):
                    counts[values[people[i], view]] += 1
        if not safe(counts, size, limits):
            return False
    return True


@helper(inline="always")
def _settle(window, place, at, g, pool, people, group, clock):
    """Make one group of the pool the class `at`."""
    held = window.held
    number, center = np.int64(0), window.center[at]
    for axis in range(center.size):
        center[axis] = 0.0
    for i in range(people):
        if group[i] == g:
            held[at, number] = pool[i]
            number += 1
            for axis in range(center.size):
                center[axis] += place[pool[i], axis]
    for axis in range(center.size):
        center[axis] /= number
    window.number[at], window.changed[at] = number, clock
    window.cost[at] = number * _width(place, held[at], number)


@kernel
def regroup(window, classes, place, values, limits, pace):
    """Regroup the classes of a window, in place; returns how many there are then.

    place    (people, attributes) positions on [0, 1]; values as for the static limits
    """
    held, looked = window.held, window.looked
    width, k, most, room = place.shape[1], max(limits.k, 1), window.number.size, window.held.shape[1]
    shares = _Shares(
        np.empty(room, np.int64), np.empty((5, width)), np.empty((5, width)), np.empty(5, np.int64),
        np.empty(room, np.int64), np.empty(room), np.empty(room),
    )  # fmt: skip
    pool, best_group = np.empty(room, np.int64), np.empty(room, np.int64)
    counts = np.zeros(limits.numerator.size, np.int64)
    trio, around, far = np.empty(3, np.int64), np.empty(pace.near, np.int64), np.empty(pace.near)
    number, cost, changed = window.number, window.cost, window.changed
    for c in range(classes):
        if number[c] <= pace.largest:
            cost[c] = number[c] * _width(place, held[c], number[c])
    clock, c, left = 0, 0, pace.passes
    before = clock
    while left > 0:
        near = 0
        if number[c] <= pace.largest:
            near = _list_near(window.center, number, classes, c, pace.largest, around, far)
        # Two classes are the trio of which both neighbours are the same.
        for pair in range(near * near):
            one, two = pair // near, pair % near
            together = 2 if one == two else 3
            trio[0], trio[1], trio[2] = c, around[one], around[two]
            newest, now, size = 0, 0.0, 0
            for t in range(together):
                newest, now, size = max(newest, changed[trio[t]]), now + cost[trio[t]], size + number[trio[t]]
            # What was shared out just now may be larger than what there is room for.
            if two < one or newest < looked[c] or now <= 0 or size > room:
                continue
            people = _pool_people(window.held, number, trio, together, pool)
            best, best_groups = now - _SAVED, 0
            for groups in range(min(people // k, together + 1), together - 1, -1):
                for start in range(0, people, max(people // pace.starts, 1)):
                    total = _share_out(place, pool, people, groups, k, start, shares)
                    if total < best and _all_safe(pool, people, shares.group, groups, values, limits, counts):
                        best, best_groups = total, groups
                        for i in range(people):
                            best_group[i] = shares.group[i]
            if best_groups == 0 or (best_groups > together and classes == most):
                continue
            clock += 1
            for g in range(best_groups):
                at = trio[g] if g < together else classes
                _settle(window, place, at, g, pool, people, best_group, clock)
            classes += best_groups - together
        if number[c] <= pace.largest:
            looked[c] = clock + 1
        c += 1
        if c == classes:
            left = left - 1 if clock > before else 0
            c, before = 0, clock
    return classes
