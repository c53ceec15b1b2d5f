"""The tree that divides a table into blocks: units that stay together, what they cost, and which nodes to take."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import kernel
from sequester.methods.class_guard.limits import safe
from sequester.methods.loops.ranks import rank_keys


@kernel
def unit_tree(center: Any, weight: Any):
    """Halve units at the best gaps between their centers, down to single ones.

    Returns the order of the units, and per node (parents before children) where its units begin and end in that
    order, and its two children (-1 for single units).
    """
    units, width = center.shape
    order = np.arange(units)
    begin, end = np.zeros(2 * units, np.int64), np.zeros(2 * units, np.int64)
    left, right = np.full(2 * units, -1, np.int64), np.full(2 * units, -1, np.int64)
    key = np.empty(units, np.float64)
    moved, rank = np.empty(units, np.int64), np.empty(units, np.int64)
    waiting = np.empty(200, np.int64)
    nodes, node = 0, 0
    if units > 0:
        end[0] = units
        nodes = 1
    while node < nodes:
        start, stop = begin[node], end[node]
        size = stop - start
        if size > 1:
            best, best_axis, best_place = -1.0, -1, size // 2
            total = 0.0
            for i in range(start, stop):
                total += weight[order[i]]
            for axis in range(width):
                for i in range(size):
                    key[i] = center[order[start + i], axis]
                rank_keys(key, size, rank, waiting)
                low, high = key[rank[0]], key[rank[size - 1]]
                if high <= low:
                    continue
                below = 0.0
                for i in range(size - 1):
                    below += weight[order[start + rank[i]]]
                    here, following = key[rank[i]], key[rank[i + 1]]
                    if following > here:
                        gain = total * (high - low) - below * (here - low) - (total - below) * (high - following)
                        if gain > best:
                            best, best_axis, best_place = gain, axis, i + 1
            if best_axis >= 0:
                for i in range(size):
                    key[i] = center[order[start + i], best_axis]
                rank_keys(key, size, rank, waiting)
                for i in range(size):
                    moved[i] = order[start + rank[i]]
                for i in range(size):
                    order[start + i] = moved[i]
            for side in range(2):
                begin[nodes] = start if side == 0 else start + best_place
                end[nodes] = start + best_place if side == 0 else stop
                if side == 0:
                    left[node] = nodes
                else:
                    right[node] = nodes
                nodes += 1
        node += 1
    return order, begin[:nodes], end[:nodes], left[:nodes], right[:nodes]


@kernel
def choose(left: Any, right: Any, options: Any):
    """Per node (parents before children) the least cost and the option it takes, -1 for what its children choose."""
    nodes = left.size
    cost, choice = np.empty(nodes, np.float64), np.full(nodes, -1, np.int64)
    for node in range(nodes - 1, -1, -1):
        cost[node] = np.inf
        if left[node] >= 0:
            cost[node] = cost[left[node]] + cost[right[node]]
        for option in range(options.shape[1]):
            if options[node, option] < cost[node] - 1e-9:
                cost[node], choice[node] = options[node, option], option
    return cost, choice


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
