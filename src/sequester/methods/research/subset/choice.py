"""Which quasi-identifiers of a cluster to generalize (Reddy, Raju and Valli Kumari), and how to do so safely.

The paper scores every subset of the quasi-identifiers of a cluster by privacy gain and information loss, generalizes
the subset with "more privacy and less loss", and publishes the other attributes as they are. Two things are missing.

*Which subset that is.* Its Table 5 follows none of gain - loss, gain / loss and gain * (1 - loss). A `SubsetRule` says
it: the least loss with at least a given gain (0.85 gives the paper's choice), or the most of weight * gain -
(1 - weight) * loss. Of equal subsets the one with fewer attributes is taken, then the first in the order of attributes.

The scores of subsets of different size can be compared only if they describe the same table. So by default both are
averages over *all* quasi-identifiers, where one that is published as it is gains and loses 0: then more attributes
never gain less, and if no subset gains enough, all attributes gain most. The paper's own average, over the attributes
of the subset, is `over="subset"`: there a single attribute is as good as all, and adding one that the cluster agrees
on makes the loss look smaller.

*That the rest is safe.* Attributes published as they are make rows unique again (Tables 7 and 8). So `refine` publishes
the subset with the range of the cluster, and cuts the cluster on the other attributes only as far as every class
satisfies the guard on all quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.methods.research.subset.search import TOLERANCE, Over, SubsetSearch
from sequester.metrics.gain import quasi_gain, quasi_loss

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

POWER_SET = 12
"""Up to this many attributes every subset is scored; beyond, subsets are searched for one cluster at a time."""

# Scores of subsets and clusters that are kept at once: 8 MB.
_CELLS = 1 << 20


@dataclass(frozen=True)
class SubsetRule:
    """How the subset is chosen: by exactly one of `threshold` and `weight`.

    threshold  least loss among the subsets that gain at least this; all attributes if there is none
    weight     most of weight * gain - (1 - weight) * loss
    over       what scores are averaged over: all quasi-identifiers, or those of the subset as in the paper
    lambda_1   divides every gain (equation 2)
    """

    threshold: float | None = None
    weight: float | None = None
    over: Over = "all"
    lambda_1: float = 1.0

    def __post_init__(self) -> None:
        given = self.weight if self.threshold is None else self.threshold
        if (self.threshold is None) == (self.weight is None) or given is None or not 0 <= given <= 1:
            raise ValueError("a subset is chosen by a threshold or by a weight, between 0 and 1")


def subsets(attributes: int) -> Mask:
    """Every non-empty subset (subsets, attributes): fewer attributes first, then in the order of attributes."""
    sets = [chosen for size in range(1, attributes + 1) for chosen in combinations(range(attributes), size)]
    taken = np.zeros((len(sets), attributes), np.bool_)
    for row, chosen in zip(taken, sets, strict=True):
        row[list(chosen)] = True
    return taken


def score(gain: Floats, loss: Floats, *, over: Over = "all") -> tuple[Floats, Floats]:
    """Gain and loss of every subset (subsets, clusters), from those of every attribute (attributes, clusters)."""
    return _averages(gain, over=over), _averages(loss, over=over)


def pick(gain: Floats, loss: Floats, rule: SubsetRule) -> NDArray[np.int64]:
    """Per cluster the subset that a rule takes, by gain and loss (subsets, clusters) in the order of `subsets`."""
    if rule.weight is not None:
        cost = (1 - rule.weight) * loss - rule.weight * gain
    else:
        cost = np.where(gain >= (rule.threshold or 0.0) - TOLERANCE, loss, np.inf)
    least = cost.min(axis=0)
    picked: NDArray[np.int64] = np.argmax(cost <= least + TOLERANCE, axis=0)
    picked[np.isinf(least)] = len(gain) - 1
    return picked


def choose(lo: Integers, hi: Integers, domains: Sequence[Hierarchy], rule: SubsetRule) -> Mask:
    """The attributes to generalize (attributes, clusters), for clusters that lie in the boxes lo, hi of the same shape.

    A weight is decided attribute by attribute. A threshold is looked for in the power set, and with more than
    `POWER_SET` attributes by a best-first search, which is exact but for `search.LONGEST_SEARCH`.
    """
    # Rounded, so that equal scores are equal.
    gain = np.round(quasi_gain(lo, hi, domains, lambda_1=rule.lambda_1), 12)
    loss = np.round(quasi_loss(lo, hi, domains), 12)
    if rule.threshold is None:
        return _weighed(gain, loss, rule)
    chosen = np.ones(gain.shape, np.bool_)
    if not len(gain):
        return chosen
    # If all attributes together gain too little (in an average over the subset: the best one), so do all subsets.
    most = gain.mean(axis=0) if rule.over == "all" else gain.max(axis=0)
    hopeful = np.flatnonzero(most >= rule.threshold - TOLERANCE)
    if len(gain) > POWER_SET:
        for cluster in hopeful.tolist():
            chosen[:, cluster] = SubsetSearch(gain[:, cluster], loss[:, cluster], rule.threshold, over=rule.over).run()
        return chosen
    every = subsets(len(gain))
    step = max(1, _CELLS // len(every))
    for start in range(0, len(hopeful), step):
        part = hopeful[start : start + step]
        chosen[:, part] = every[pick(*score(gain[:, part], loss[:, part], over=rule.over), rule)].T
    return chosen


def _averages(scores: Floats, *, over: Over) -> Floats:
    """The average of every subset in the order of `subsets`; each is one attribute more than one before it."""
    attributes, clusters = scores.shape
    averages = np.empty(((1 << attributes) - 1, clusters), np.float64)
    averages[:attributes] = scores
    before: dict[tuple[int, ...], int] = {(a,): a for a in range(attributes)}
    begin = attributes
    for size in range(2, attributes + 1):
        sets = list(combinations(range(attributes), size))
        end = begin + len(sets)
        np.add(
            averages[[before[chosen[:-1]] for chosen in sets]], scores[[c[-1] for c in sets]], out=averages[begin:end]
        )
        before = dict(zip(sets, range(begin, end), strict=True))
        begin = end
    averages /= subsets(attributes).sum(axis=1, keepdims=True) if over == "subset" else max(attributes, 1)
    return averages


def _weighed(gain: Floats, loss: Floats, rule: SubsetRule) -> Mask:
    """The subsets of most weighted gain. Each attribute counts for itself, so those that help are taken.

    In an average over the subset no set is better than its best attribute.
    """
    assert rule.weight is not None
    worth = rule.weight * gain - (1 - rule.weight) * loss
    if not len(worth):
        return np.zeros(worth.shape, np.bool_)
    best = np.arange(len(worth))[:, None] == np.argmax(worth >= worth.max(axis=0) - TOLERANCE, axis=0)
    helps = worth > TOLERANCE
    return np.where(helps.any(axis=0) & (rule.over == "all"), helps, best)
