"""How many records of an unsafe class can be in safe classes when it is cut into parts?

The union of safe classes is safe, so what is kept of all parts together is a safe choice of the class's records. The
size of the largest such choice is told by the value counts alone, and holds at every node below. Under a hereditary
criterion (k, distinct diversity) nothing of an unsafe class can be kept.
"""

from __future__ import annotations

import numpy as np

from sequester.kernels import helper
from sequester.methods.class_guard.limits import EQUAL, ORDERED, TOLERANCE, keeps_frequencies


@helper
def most_kept(counts, size, limits, slack):
    """No more records of a class with these counts can be in safe parts of it; 0 where none can.

    `slack` is the share of the table that may be left out: so much nearer to what is left than to all may a class be.
    """
    most = size
    for view in range(limits.first.size - 1):
        start, stop = limits.first[view], limits.first[view + 1]
        inside = counts[start:stop]
        most = min(most, _within_shares(inside, size, start, limits))
        if limits.distinct[view] > 1 and np.sum(inside > 0) < limits.distinct[view]:
            most = 0
        if limits.entropy[view] > 0 or limits.recursive_l[view] > 0:
            most = min(most, _capped(inside, size, view, limits))
        if limits.closeness[view] >= 0:
            most = min(most, _close(counts, size, view, limits, limits.closeness[view] + slack + 2 * TOLERANCE))
    return most if most >= limits.k else 0


@helper
def _within_shares(counts, size, start, limits):
    """The largest m with at most c_v m of every value v: shrink m until that many are left."""
    most, left = size + 1, size
    while left < most:
        most, left = left, 0
        for value in range(counts.size):
            some = counts[value]
            if limits.denominator[start + value] > 0:
                some = min(some, most * limits.numerator[start + value] // limits.denominator[start + value])
            left += some
    return most


@helper
def _capped(counts, size, view, limits):
    """Entropy and recursive diversity: no choice of its size has values more evenly frequent than a cap leaves them."""
    kept, low, high = counts.copy(), 0, counts.max() + 1
    while high - low > 1:
        cap, total = (low + high) // 2, 0
        for value in range(counts.size):
            kept[value] = min(counts[value], cap)
            total += kept[value]
        if keeps_frequencies(kept, total, view, limits, 2 * TOLERANCE):
            low = cap
        else:
            high = cap
    if low == 0:
        return 0
    # Caps between two whole ones belong to the one below the first that fails.
    return min(size, np.minimum(counts, high).sum() - 1 if high <= counts.max() else size)


@helper
def _close(counts, size, view, limits, most_far):
    """The largest m of which so many may be missing where the table has more: convex in m, and nothing at m = 0."""
    low, high = 0, size + 1
    while high - low > 1:
        some = (low + high) // 2
        if _missing(counts, size, some, view, limits) <= most_far * some:
            low = some
        else:
            high = some
    return low


@helper
def _missing(counts, size, some, view, limits):
    """The least distance to the table, times `some`, of so many records of a class."""
    start, stop = limits.first[view], limits.first[view + 1]
    total = 0.0
    if limits.distance[view] == EQUAL:
        for value in range(start, stop):
            total += max(0.0, limits.reference[value] * some - counts[value])
        return total
    if limits.distance[view] == ORDERED:
        here, there = 0, 0.0
        for value in range(start, stop - 1):
            here += counts[value]
            there += limits.reference[value]
            total += max(0.0, there * some - here, (1 - there) * some - (size - here))
        return total / max(stop - start - 1, 1)
    # Half of what goes up and half of what comes down, over every edge of the tree.
    height = limits.heights[view]
    for level in range(height):
        value = start
        while value < stop:
            group, here, there = limits.groups[level, value], 0, 0.0
            while value < stop and limits.groups[level, value] == group:
                here += counts[value]
                there += limits.reference[value]
                value += 1
            total += max(0.0, there * some - here)
    return total / max(height, 1)
