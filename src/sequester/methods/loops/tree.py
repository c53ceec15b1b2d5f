"""The tree that divides a table into blocks: units that stay together; and which classes are safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import kernel
from sequester.methods.class_guard.limits import safe

Longs = NDArray[np.int64]


def unit_tree(center: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[Longs, Longs, Longs, Longs, Longs]:
    """Halve units at the best gaps between their centers (units, attributes), down to single ones.

    Returns the order of the units, and per node (parents before children) where its units begin and end in that
    order, and its two children (-1 for single units).
    """
    ranked = np.ascontiguousarray(np.argsort(center, axis=0, kind="stable").T)
    halved: tuple[Longs, Longs, Longs, Longs, Longs] = _halve(ranked, center, weight)
    return halved


@kernel
def _halve(ranked: Any, center: Any, weight: Any):
    """As `unit_tree`; `ranked` has the units in the order of every attribute, and in every node they stay in it."""
    width, units = ranked.shape
    begin, end = np.zeros(2 * units + 1, np.int64), np.zeros(2 * units + 1, np.int64)
    left, right = np.full(2 * units + 1, -1, np.int64), np.full(2 * units + 1, -1, np.int64)
    is_below, above = np.zeros(units, np.bool_), np.empty(units, np.int64)
    end[0] = units
    nodes, node = min(units, 1), 0
    while node < nodes:
        start, stop = begin[node], end[node]
        if stop - start > 1:
            best, best_axis, middle = -1.0, 0, start + (stop - start) // 2
            total = 0.0
            for i in range(start, stop):
                total += weight[ranked[0, i]]
            for axis in range(width):
                low, high = center[ranked[axis, start], axis], center[ranked[axis, stop - 1], axis]
                below = 0.0
                for i in range(start, stop - 1):
                    below += weight[ranked[axis, i]]
                    here, following = center[ranked[axis, i], axis], center[ranked[axis, i + 1], axis]
                    if following > here:
                        gain = total * (high - low) - below * (here - low) - (total - below) * (high - following)
                        if gain > best:
                            best, best_axis, middle = gain, axis, i + 1
            for i in range(start, stop):
                is_below[ranked[best_axis, i]] = i < middle
            for axis in range(width):
                first, others = start, 0
                for i in range(start, stop):
                    unit = ranked[axis, i]
                    if is_below[unit]:
                        ranked[axis, first] = unit
                        first += 1
                    else:
                        above[others] = unit
                        others += 1
                for i in range(others):
                    ranked[axis, first + i] = above[i]
            left[node], right[node] = nodes, nodes + 1
            begin[nodes], end[nodes], begin[nodes + 1], end[nodes + 1] = start, middle, middle, stop
            nodes += 2
        node += 1
    return ranked[0].copy(), begin[:nodes], end[:nodes], left[:nodes], right[:nodes]


@kernel
def safe_classes(member: Any, values: Any, classes: int, limits: Any):
    """Per class, whether it satisfies the static limits by itself."""
    size = np.zeros(classes, np.int64)
    counts = np.zeros((classes, limits.numerator.size), np.int64)
    for i in range(member.size):
        if member[i] >= 0:
            size[member[i]] += 1
            for view in range(values.shape[1]):
                counts[member[i], values[i, view]] += 1
    found = np.empty(classes, np.bool_)
    for number in range(classes):
        found[number] = safe(counts[number], size[number], limits)
    return found
