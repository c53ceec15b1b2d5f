"""Pairs of boxes that intersect, without looking at every pair where the boxes are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Sides = NDArray[np.int32]
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]


def intersecting(lo: Sides, hi: Sides, other_lo: Sides, other_hi: Sides) -> Pairs:
    """Indices of all pairs of boxes, given as (attributes, boxes), that share at least one point.

    Boxes are compared in blocks, first in the attribute that separates most, so that memory stays bounded.
    """
    count, others = lo.shape[1], other_lo.shape[1]
    if lo.shape[0] == 0:
        first, second = np.divmod(np.arange(count * others), max(others, 1))
        return first.astype(np.int32), second.astype(np.int32)
    block = max(1, (1 << 23) // max(others, 1))
    found_first, found_second = [], []
    for start in range(0, count, block):
        stop = min(start + block, count)
        near = np.ones((stop - start, others), np.bool_)
        for axis in range(lo.shape[0]):
            near &= lo[axis, start:stop, None] <= other_hi[axis]
            near &= hi[axis, start:stop, None] >= other_lo[axis]
        first, second = np.nonzero(near)
        found_first.append((first + start).astype(np.int32))
        found_second.append(second.astype(np.int32))
    if not found_first:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate(found_first), np.concatenate(found_second)
