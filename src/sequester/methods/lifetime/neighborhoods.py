"""Who is left out of a release of values that change: whole neighborhoods, whoever in them has what.

Sometimes no classes keep what was promised for everybody. To leave out just those with the values in the way would tell
these values to whoever knows the raw table's people. So the table is cut into neighborhoods by quasi-identifiers alone,
several times as large as classes have to be, and joined two by two to a tree. Of a node only counts are looked at: how
many have each value, and how much of it the one with the worst history allows. A node that is safe as one class loses
nobody; of one that is not, its parts are looked at; and a neighborhood in no safe node is left out as a whole. Two
people of one neighborhood may swap their values, and the same people are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.methods.class_guard.limits import Limits

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


def neighborhoods(codes: Ints, domains: tuple[Hierarchy, ...], *, size: int) -> Ints:
    """Per record its neighborhood of at least `size` records (or all), numbered so that near ones have near numbers."""
    from sequester.methods.mondrian import cut_kernels as kernels

    order = np.arange(codes.shape[1], dtype=np.int32)
    rows, nothing = np.ascontiguousarray(codes.T), np.zeros((len(order), 0), np.int32)
    deck, scale = kernels.Deck(rows, nothing, order), kernels.Scale(*side_by_side(domains))
    starts = kernels.cut_rows(deck, 0, len(order), 0, kernels.GAIN, scale, kernels.NOBODY, Limits.only(size))
    number = np.empty(len(order), np.int32)
    number[order] = np.searchsorted(np.sort(starts), np.arange(len(order)), side="right") - 1
    return number


def bearable(neighborhood: Ints, safe: Callable[[Ints, int], Mask]) -> Ints:
    """Per record the smallest safe node of the tree that it can be in while nobody more is left out; -1: left out.

    safe  tells of nodes, given as the node of every record and their number, which are safe as one class
    """
    count = int(neighborhood.max(initial=-1)) + 1
    good, covered = [], []
    level = 0
    while True:
        nodes = (count + (1 << level) - 1) >> level
        good.append(safe(neighborhood >> level, nodes))
        if level == 0:
            covered.append(good[0].copy())
        else:
            below = np.append(covered[-1], True)[: 2 * nodes]
            covered.append(good[-1] | below.reshape(-1, 2).all(axis=1))
        if nodes <= 1:
            break
        level += 1
    cell = np.full(count, -1, np.int64)
    number = 0
    waiting = [(level, 0)] if count else []
    while waiting:
        at, node = waiting.pop()
        parts = [(at - 1, child) for child in (2 * node, 2 * node + 1) if at and child < len(covered[at - 1])]
        if parts and (all(covered[at - 1][child] for _, child in parts) or not good[at][node]):
            waiting += parts
        elif good[at][node]:
            cell[node << at : (node + 1) << at] = number
            number += 1
    return cell[neighborhood].astype(np.int32)
