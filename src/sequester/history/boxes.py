"""Pairs of boxes that intersect, without looking at every pair where the boxes are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Sides = NDArray[np.int32] | NDArray[np.float64]
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]
Words = NDArray[np.uint64]

_WORDS = 1 << 20
"""Words of 64 pairs that are held at once; an eighth of them are unpacked at once."""


def intersecting(lo: Sides, hi: Sides, other_lo: Sides, other_hi: Sides) -> Pairs:
    """Indices of all pairs of boxes, given as (attributes, boxes), that share at least one point.

    The others that a box meets are the bits of a row of words: those that start early enough and end late enough, in
    every attribute. Rows are made in blocks, so that memory stays bounded.
    """
    count, others = lo.shape[1], other_lo.shape[1]
    width = max(1, -(-others // 64))
    block, part = max(1, _WORDS // width), max(1, _WORDS >> 3)
    found_first, found_second = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for start in range(0, count, block):
        near = np.repeat(_at_most(np.zeros(others, np.int32), np.zeros(1, np.int32)), min(block, count - start), axis=0)
        for axis in range(len(lo)):
            near &= _at_most(other_lo[axis], hi[axis, start : start + block])
            near &= _at_most(-other_hi[axis], -lo[axis, start : start + block])
        words = near.reshape(-1)
        for begin in range(0, len(words), part):
            word = begin + np.flatnonzero(words[begin : begin + part])
            bits = np.flatnonzero(np.unpackbits(words[word].view(np.uint8), bitorder="little"))
            row, column = np.divmod(word, width)
            found_first.append((row + start).astype(np.int32)[bits >> 6])
            found_second.append((column << 6).astype(np.int32)[bits >> 6] + (bits & 63).astype(np.int32))
    return np.concatenate(found_first), np.concatenate(found_second)


def _at_most(sides: Sides, limits: Sides) -> Words:
    """(limits, words) which sides are at most each limit, one bit per side."""
    steps, of = np.unique(limits, return_inverse=True)
    table = np.zeros((len(steps) + 1, max(8, -(-len(sides) // 64) * 8)), np.uint8)
    number = np.arange(len(sides))
    np.bitwise_or.at(table, (np.searchsorted(steps, sides), number >> 3), np.uint8(1) << (number & 7).astype(np.uint8))
    words: Words = np.bitwise_or.accumulate(table.view(np.uint64), axis=0)[of]
    return words
