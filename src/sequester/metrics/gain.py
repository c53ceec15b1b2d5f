"""Privacy gain and information loss of quasi-identifiers (Reddy, Raju and Valli Kumari), from 0 to 1.

The paper wants every measure in [0, 1], 0 for an exact value and 1 for a value that says nothing. As printed,
equation 2 divides by the value itself, and equation 4 by 0 for a taxonomy of one step. Here, with boxes of leaf codes:

    gain  numbers and dates (max - min) / (domain max - domain min); categories and codes (leaves - 1) /
          (all leaves - 1); times the printed factor 1 / lambda_1
    loss  height of the node / height of the root, in edges above the deepest leaf

Nodes are distinct intervals of leaves: a group of a single leaf says what the leaf says, and is that leaf. An interval
that is no node loses what the lowest node around it loses; a number or date without levels of its own has no nodes
between a leaf and everything, and loses its width instead. A domain of one value neither gains nor loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]


def mean(scores: Floats, subset: NDArray[np.bool_] | None = None) -> Floats:
    """Scores (attributes, classes) averaged over all attributes, or over those of a subset; over none it is 0.

    `subset` is (attributes,), or (attributes, classes) where every class has its own.
    """
    if subset is None:
        subset = np.ones(len(scores), np.bool_)
    counted = subset if subset.ndim == 2 else subset[:, None]
    average: Floats = (scores * counted).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    return average


def quasi_gain(lo: Integers, hi: Integers, domains: Sequence[Hierarchy], *, lambda_1: float = 1.0) -> Floats:
    """Equation 2 per attribute and class: how much of its domain every side of every box spans."""
    if not lambda_1 >= 1:
        raise ValueError("lambda_1 must be at least 1, or a gain could be more than everything")
    return each_attribute(lo, hi, domains, _span) / lambda_1


def quasi_loss(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 4 per attribute and class: how far up its taxonomy every side of every box is."""
    return each_attribute(lo, hi, domains, _climb)


def each_attribute(
    lo: Integers,
    hi: Integers,
    domains: Sequence[Hierarchy],
    score: Callable[[Hierarchy, Integers, Integers], Floats],
) -> Floats:
    """One row of scores per attribute."""
    scores = np.zeros(lo.shape, np.float64)
    for row, domain, low, high in zip(scores, domains, lo, hi, strict=True):
        row[:] = score(domain, low, high)
    return scores


def _span(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    if kind_of(domain).measured:
        return domain.width(lo, hi)
    leaves: Floats = (hi.astype(np.int64) - lo) / max(domain.size - 1, 1)
    return leaves


def _climb(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    if kind_of(domain).measured and domain.height <= 1:
        return domain.width(lo, hi)
    heights, _ = node_scores(domain)
    return of_lowest_node(domain, heights, lo, hi) / max(int(heights[-1][0]), 1)


def node_scores(domain: Hierarchy) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Per level and group: the edges down to its deepest leaf, and the nodes strictly below it.

    Levels may repeat a group that does not grow; it is one node all the same.
    """
    heights = [np.zeros(domain.size, np.int64)]
    below = [np.zeros(domain.size, np.int64)]
    for finer, coarser in pairwise(domain.starts):
        first = np.searchsorted(finer, coarser)
        several = np.diff(first, append=len(finer)) > 1
        heights.append(np.maximum.reduceat(heights[-1], first) + several)
        below.append(np.where(several, np.add.reduceat(below[-1] + 1, first), below[-1][first]))
    return heights, below


def of_lowest_node(
    domain: Hierarchy, scores: Sequence[NDArray[np.int64]], lo: Integers, hi: Integers
) -> NDArray[np.int64]:
    """The score of the lowest node around each interval."""
    level = domain.level_of(lo, hi)
    lowest = np.zeros(len(lo), np.int64)
    for step, (starts, score) in enumerate(zip(domain.starts, scores, strict=True)):
        here = level == step
        lowest[here] = score[np.searchsorted(starts, lo[here], side="right") - 1]
    return lowest
