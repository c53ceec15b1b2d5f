"""The walk through a tree of boxes, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

_DEPTH = 64
"""Nodes that wait at most: one per level of the tree, and trees have fewer levels than numbers have bits."""


class BoxTree(NamedTuple):
    """Boxes in the order of a balanced tree, and the hulls of its nodes.

    The root is node 1, the children of node n are 2 n and 2 n + 1, and the leaves are the last half of all nodes.

    box                    which box is where in the order
    low, high              (boxes, attributes) their sides
    begin                  per leaf where its boxes begin, and where the last ones end
    hull_low, hull_high    (nodes, attributes) the smallest boxes around all boxes of a node
    """

    box: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    begin: NDArray[np.int64]
    hull_low: NDArray[np.int32]
    hull_high: NDArray[np.int32]


@helper
def _meet(low, high, i, other_low, other_high, j):
    """Whether two boxes share a point."""
    for axis in range(low.shape[1]):
        if low[i, axis] > other_high[j, axis] or high[i, axis] < other_low[j, axis]:
            return False
    return True


@kernel
def note_meetings(tree, other_low, other_high, place, met):
    """For every other box in turn, write its number to the next place of every box of the tree that it meets.

    place  per box, its next place; moves on. Without room in `met` nothing is written, so that places are counts
    """
    box, low, high, begin, hull_low, hull_high = (
        tree.box, tree.low, tree.high, tree.begin, tree.hull_low, tree.hull_high,
    )  # fmt: skip
    leaves = begin.size - 1
    waiting = np.empty(_DEPTH, np.int64)
    for other in range(other_low.shape[0]):
        waiting[0] = 1
        top = 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if not _meet(hull_low, hull_high, node, other_low, other_high, other):
                continue
            if node < leaves:
                waiting[top], waiting[top + 1] = 2 * node + 1, 2 * node
                top += 2
                continue
            for i in range(begin[node - leaves], begin[node - leaves + 1]):
                if _meet(low, high, i, other_low, other_high, other):
                    if met.size > 0:
                        met[place[box[i]]] = other
                    place[box[i]] += 1
