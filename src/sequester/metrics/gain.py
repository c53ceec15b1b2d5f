"""Privacy gain and information loss of Reddy, Raju and Valli Kumari, in readings that keep what the paper promises.

The paper wants every measure in [0, 1], 0 for an exact value and 1 for a value that says nothing. As printed,
equation 2 divides by the value itself, equation 3 exceeds 1 at the root, equations 4 and 5 divide by 0 for a taxonomy
of one step, and equation 1 is P(QI | SA) where P(SA | QI) is meant. Here, with boxes of leaf codes:

    gain of a quasi-identifier   numbers and dates (max - min) / (domain max - domain min); categories and codes
                                 (leaves - 1) / (all leaves - 1); times the printed factor 1 / lambda_1
    gain of a sensitive node     nodes strictly below it / nodes strictly below the root
    loss of either               height of the node / height of the root, in edges above the deepest leaf
    linking                      n(q, a) / n(q); the printed n(q, a) / n(a) is the risk of being traced

Nodes are distinct intervals of leaves: a group of a single leaf says what the leaf says, and is that leaf. An interval
that is no node loses what the lowest node around it loses; a number or date without levels of its own has no nodes
between a leaf and everything, and loses its width instead. A domain of one value neither gains nor loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Intervals = tuple[Integers, Integers, Sequence[Hierarchy]]


@dataclass(frozen=True)
class Gain:
    """The four averages of one cluster or of a release, each from 0 (everything is exact) to 1 (nothing is said)."""

    quasi_gain: float
    quasi_loss: float
    sensitive_gain: float
    sensitive_loss: float

    def combined(self, weight: float) -> float:
        """Gain of both kinds of attributes, `weight` on the quasi-identifiers (property 1, which adds up to 2)."""
        if not 0 <= weight <= 1:
            raise ValueError("the weight of the quasi-identifiers must be between 0 and 1")
        return weight * self.quasi_gain + (1 - weight) * self.sensitive_gain

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Linking:
    """The worst of a release (equation 1): `probability` of a value given a box, `tracing` of a box given a value."""

    probability: float
    tracing: float

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


def gains_by_cluster(
    member: Integers,
    quasi: Intervals,
    sensitive: Intervals,
    *,
    cluster: Integers | None = None,
    lambda_1: float = 1.0,
) -> tuple[Gain, ...]:
    """The gain of every cluster, averaged over its published records; a cluster without any has gained nothing.

    member     the class of every record, -1 for one left out
    quasi      lo, hi (attributes, classes) and the domains
    sensitive  what is published of every record: lo, hi (attributes, records), all nodes, and the domains
    cluster    the cluster of every class; by default every class is one
    """
    own = np.arange(quasi[0].shape[1]) if cluster is None else np.asarray(cluster)
    published = np.flatnonzero(member >= 0)
    place = own[member[published]]
    clusters = int(own.max(initial=-1)) + 1
    size = np.maximum(np.bincount(place, minlength=clusters), 1)

    def averaged(scores: Floats) -> list[float]:
        averages: list[float] = (np.bincount(place, weights=scores, minlength=clusters) / size).tolist()
        return averages

    low, high, domains = sensitive
    low, high = low[:, published], high[:, published]
    return tuple(
        Gain(*four)
        for four in zip(
            averaged(mean(quasi_gain(*quasi, lambda_1=lambda_1))[member[published]]),
            averaged(mean(quasi_loss(*quasi))[member[published]]),
            averaged(mean(sensitive_gain(low, high, domains))),
            averaged(mean(sensitive_loss(low, high, domains))),
            strict=True,
        )
    )


def gain_of_release(member: Integers, quasi: Intervals, sensitive: Intervals, *, lambda_1: float = 1.0) -> Gain:
    """The gain of all records, as for a cluster; one left out says nothing: all is gained and all is lost."""
    everyone = np.zeros(quasi[0].shape[1], np.int64)
    overall = gains_by_cluster(member, quasi, sensitive, cluster=everyone, lambda_1=lambda_1)
    left_out = float(np.mean(member < 0)) if len(member) else 0.0
    published = asdict(overall[0]).values() if overall else (0.0,) * 4
    return Gain(*((1 - left_out) * score + left_out for score in published))


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
    return _each(lo, hi, domains, _span) / lambda_1


def quasi_loss(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 4 per attribute and class: how far up its taxonomy every side of every box is."""
    return _each(lo, hi, domains, _climb)


def sensitive_gain(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 3 per attribute and published value: the share of a taxonomy's nodes that are below it."""
    return _each(lo, hi, domains, _share_below)


def sensitive_loss(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 5 per attribute and published value: how far up its taxonomy it is."""
    return _each(lo, hi, domains, _node_climb)


def linking(member: Integers, lo: Integers, hi: Integers, value: Integers) -> Linking:
    """Equation 1 over one release: `value` is any number per record, equal where the published values are.

    Classes that are published with the same box are one to whoever looks a box up, so they are counted together.
    """
    published = np.flatnonzero(member >= 0)
    if not len(published):
        return Linking(0.0, 0.0)
    box = row_groups(np.vstack([lo, hi]))[0][member[published]]
    _, own = np.unique(value[published], return_inverse=True)
    pairs, together = np.unique(box * (int(own.max()) + 1) + own, return_counts=True)
    in_box, with_value = np.bincount(box), np.bincount(own)
    return Linking(
        float((together / in_box[pairs // len(with_value)]).max()),
        float((together / with_value[pairs % len(with_value)]).max()),
    )


def _each(
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
    heights, _ = _nodes(domain)
    return _around(domain, heights, lo, hi) / max(int(heights[-1][0]), 1)


def _node_climb(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    _check_nodes(domain, lo, hi)
    heights, _ = _nodes(domain)
    return _around(domain, heights, lo, hi) / max(int(heights[-1][0]), 1)


def _share_below(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    _check_nodes(domain, lo, hi)
    _, below = _nodes(domain)
    return _around(domain, below, lo, hi) / max(int(below[-1][0]), 1)


def _nodes(domain: Hierarchy) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
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


def _around(domain: Hierarchy, scores: Sequence[NDArray[np.int64]], lo: Integers, hi: Integers) -> NDArray[np.int64]:
    """The score of the lowest node around each interval."""
    level = domain.level_of(lo, hi)
    around = np.zeros(len(lo), np.int64)
    for step, (starts, score) in enumerate(zip(domain.starts, scores, strict=True)):
        here = level == step
        around[here] = score[np.searchsorted(starts, lo[here], side="right") - 1]
    return around


def _check_nodes(domain: Hierarchy, lo: Integers, hi: Integers) -> None:
    level = domain.level_of(lo, hi)
    wrong = 0
    for step in range(domain.height + 1):
        first, last = domain.bounds(step)
        here = level == step
        group = np.searchsorted(first, lo[here], side="right") - 1
        wrong += int(np.count_nonzero((first[group] != lo[here]) | (last[group] != hi[here])))
    if wrong:
        raise ValueError(f"{wrong} published sensitive values are no nodes of their taxonomy")
