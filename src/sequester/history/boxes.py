"""Pairs of boxes that intersect, without looking at every pair where the boxes are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sequester.history.box_kernels import BoxTree

Sides = NDArray[np.int32] | NDArray[np.float64]
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]
Words = NDArray[np.uint64]

_WORDS = 1 << 20
"""Words of 64 pairs that are held at once; an eighth of them are unpacked at once."""


_MANY = 1 << 24
"""Pairs of boxes from which a tree pays: fewer are compared sooner than its kernel is compiled, or even loaded."""

_LEAF = 8
"""Boxes of a leaf of the tree, about: half or twice as many take a few percent longer."""


def intersecting(lo: Sides, hi: Sides, other_lo: Sides, other_hi: Sides) -> Pairs:
    """Indices of all pairs of boxes, given as (attributes, boxes), that share at least one point; sorted."""
    if len(lo) and lo.shape[1] * other_lo.shape[1] >= _MANY:
        return _by_tree(*_ranked(lo, hi, other_lo, other_hi))
    return _by_words(lo, hi, other_lo, other_hi)


def _by_tree(lo: Sides, hi: Sides, other_lo: Sides, other_hi: Sides) -> Pairs:
    """Every other box is looked up in a tree of the boxes, twice: to count, and to note what it meets.

    Others come in turn, so that those that a box meets are noted in order.
    """
    from sequester.history.box_kernels import note_meetings

    tree = _tree(lo, hi)
    sides = np.ascontiguousarray(other_lo.T, np.int32), np.ascontiguousarray(other_hi.T, np.int32)
    count = np.zeros(lo.shape[1], np.int64)
    note_meetings(tree, *sides, count, np.zeros(0, np.int32))
    met = np.empty(int(count.sum()), np.int32)
    if len(met):
        note_meetings(tree, *sides, np.cumsum(count) - count, met)
    return np.repeat(np.arange(len(count), dtype=np.int32), count), met


def _tree(lo: Sides, hi: Sides) -> BoxTree:
    """Halve the boxes again and again, in the attribute in which their centers are farthest apart."""
    from sequester.history.box_kernels import BoxTree

    center = lo.astype(np.int64) + hi
    reach = np.maximum(np.ptp(center, axis=1), 1)
    box, begin = np.arange(lo.shape[1]), np.array([0, lo.shape[1]])
    while len(box) > _LEAF * (len(begin) - 1):
        here = center[:, box]
        wide = np.maximum.reduceat(here, begin[:-1], axis=1) - np.minimum.reduceat(here, begin[:-1], axis=1)
        node = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        axis = np.argmax(wide / reach[:, None], axis=0)[node]
        box = box[np.lexsort((here[axis, np.arange(len(box))], node))]
        begin = np.append(np.column_stack([begin[:-1], (begin[:-1] + begin[1:]) // 2]).ravel(), begin[-1])
    low, high = np.ascontiguousarray(lo.T[box], np.int32), np.ascontiguousarray(hi.T[box], np.int32)
    leaves = len(begin) - 1
    hull_low, hull_high = np.zeros((2 * leaves, len(lo)), np.int32), np.zeros((2 * leaves, len(lo)), np.int32)
    hull_low[leaves:] = np.minimum.reduceat(low, begin[:-1])
    hull_high[leaves:] = np.maximum.reduceat(high, begin[:-1])
    while leaves > 1:
        below, leaves = slice(leaves, 2 * leaves), leaves // 2
        hull_low[leaves : 2 * leaves] = hull_low[below].reshape(leaves, 2, -1).min(axis=1)
        hull_high[leaves : 2 * leaves] = hull_high[below].reshape(leaves, 2, -1).max(axis=1)
    return BoxTree(box, low, high, begin, hull_low, hull_high)


def _ranked(*sides: Sides) -> tuple[NDArray[np.int32], ...]:
    """The sides of boxes as whole numbers in the same order, for one kernel."""
    if all(side.dtype == np.int32 for side in sides):
        return tuple(side.astype(np.int32, copy=False) for side in sides)
    ends = np.cumsum([side.shape[1] for side in sides])[:-1]
    ranks = [np.unique(axis, return_inverse=True)[1] for axis in np.hstack(sides)]
    return tuple(np.split(np.array(ranks, np.int32), ends, axis=1))


def _by_words(lo: Sides, hi: Sides, other_lo: Sides, other_hi: Sides) -> Pairs:
    """Every box with every other, 64 at once.

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
