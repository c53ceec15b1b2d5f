"""Registered people as points, trees over them, and who is inside a box.

A point is a place where registered people are, some of whom have records in the next table. What is left of a point's
shares is kept only for values it was linked to; for all others it is fresh.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


class Points(NamedTuple):
    """Registered people by their points in the attributes that link, and the records at each point.

    The records at point p are record[begin[p]:begin[p + 1]]. Widths are differences of positions, which lie side by
    side for all attributes, those that link first.
    """

    codes: Ints  # (points, attributes that link)
    weight: Longs  # people at each point
    begin: Longs
    record: Longs
    loose: Ints  # (records, other attributes)
    column: Ints  # (records, views) of the protected values, -1 for others
    values: Ints  # (records, views) positions in the counts of the static criteria
    position: Floats
    first_leaf: Longs


class PointShares(NamedTuple):
    """The largest share of a value in a box around point p: of its entries ends[p]:ends[p + 1], or else `fresh`."""

    ends: Longs
    column: Ints
    share: Floats
    fresh: Floats  # per column


class Tree(NamedTuple):
    """Nodes are runs [first, last) of `line`; children, two next to each other, come after their parents."""

    line: Ints  # points
    first: Longs
    last: Longs
    child: Longs  # the left one, -1 for none
    low: Ints  # (nodes, attributes) the codes of the points
    high: Ints


@helper
def inside(codes, p, low, high):
    """Whether a point is inside a box."""
    for a in range(codes.shape[1]):  # noqa: SIM110 - compiled
        if codes[p, a] < low[a] or codes[p, a] > high[a]:
            return False
    return True


@kernel
def locate(tree: Tree, codes: Ints, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Pairs of (point, box) with the point inside the box, boxes given as (boxes, attributes), in their order."""
    pairs = 0
    point, box = np.empty(codes.shape[0] + 1, np.int32), np.empty(codes.shape[0] + 1, np.int32)
    stack = np.empty(tree.first.size + 1, np.int64)
    for b in range(lo.shape[0]):
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            apart, within = False, True
            for a in range(codes.shape[1]):
                if tree.low[node, a] > hi[b, a] or tree.high[node, a] < lo[b, a]:
                    apart = True
                    break
                within &= tree.low[node, a] >= lo[b, a] and tree.high[node, a] <= hi[b, a]
            if apart:
                continue
            if not within and tree.child[node] >= 0:
                stack[top] = tree.child[node] + 1
                stack[top + 1] = tree.child[node]
                top += 2
                continue
            for i in range(tree.first[node], tree.last[node]):
                if within or inside(codes, tree.line[i], lo[b], hi[b]):
                    if pairs == point.size:
                        point, box = np.append(point, point), np.append(box, box)
                    point[pairs] = tree.line[i]
                    box[pairs] = b
                    pairs += 1
    return point[:pairs], box[:pairs]
