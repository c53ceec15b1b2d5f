"""What Reddy, Raju and Valli Kumari measure and choose, as far as only their own tables and figures need it.

As printed, equation 3 exceeds 1 at the root, equation 5 divides by 0 for a taxonomy of one step, and equation 1 is
P(QI | SA) where P(SA | QI) is meant. Here:

    gain of a sensitive node  nodes strictly below it / nodes strictly below the root
    loss of a sensitive node  height of the node / height of the root, in edges above the deepest leaf
    linking                   n(q, a) / n(q); the printed n(q, a) / n(a) is the risk of being traced

The paper averages the scores of a subset over its attributes (`over="subset"`): there a single attribute is as good as
all, and adding one that the cluster agrees on makes the loss look smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy
from sequester.metrics.gain import each_attribute, mean, node_scores, of_lowest_node, quasi_gain, quasi_loss

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Over = Literal["all", "subset"]
Intervals = tuple[Integers, Integers, Sequence[Hierarchy]]

# Scores that differ by less are equal: they are sums of a few fractions.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class SubsetRule:
    """How the subset is chosen: by exactly one of `threshold` and `weight`.

    threshold  least loss among the subsets that gain at least this; all attributes if there is none
    weight     most of weight * gain - (1 - weight) * loss
    over       what scores are averaged over: all quasi-identifiers, or those of the subset as in the paper
    """

    threshold: float | None = None
    weight: float | None = None
    over: Over = "all"


def subsets(attributes: int) -> Mask:
    """Every non-empty subset (subsets, attributes): fewer attributes first, then in the order of attributes."""
    sets = [chosen for size in range(1, attributes + 1) for chosen in combinations(range(attributes), size)]
    taken = np.zeros((len(sets), attributes), np.bool_)
    for row, chosen in zip(taken, sets, strict=True):
        row[list(chosen)] = True
    return taken


def score(gain: Floats, loss: Floats, *, over: Over = "all") -> tuple[Floats, Floats]:
    """Gain and loss of every subset (subsets, clusters), from those of every attribute (attributes, clusters)."""
    every = subsets(len(gain)).astype(np.float64)
    every /= every.sum(axis=1, keepdims=True) if over == "subset" else max(len(gain), 1)
    return every @ gain, every @ loss


def pick(gain: Floats, loss: Floats, rule: SubsetRule) -> NDArray[np.int64]:
    """Per cluster the subset that a rule takes, by gain and loss (subsets, clusters) in the order of `subsets`."""
    if rule.weight is not None:
        cost = (1 - rule.weight) * loss - rule.weight * gain
    else:
        cost = np.where(gain >= (rule.threshold or 0.0) - _TOLERANCE, loss, np.inf)
    least = cost.min(axis=0)
    picked: NDArray[np.int64] = np.argmax(cost <= least + _TOLERANCE, axis=0)
    picked[np.isinf(least)] = len(gain) - 1
    return picked


def choose_by(lo: Integers, hi: Integers, domains: Sequence[Hierarchy], rule: SubsetRule) -> Mask:
    """The attributes that a rule generalizes (attributes, clusters), by trying every subset."""
    scores = score(quasi_gain(lo, hi, domains), quasi_loss(lo, hi, domains), over=rule.over)
    return subsets(len(lo))[pick(*scores, rule)].T


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
    whole = gains_by_cluster(member, quasi, sensitive, cluster=everyone, lambda_1=lambda_1)
    left_out = float(np.mean(member < 0)) if len(member) else 0.0
    published = asdict(whole[0]).values() if whole else (0.0,) * 4
    return Gain(*((1 - left_out) * score + left_out for score in published))


def sensitive_gain(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 3 per attribute and published value: the share of a taxonomy's nodes that are below it."""
    return each_attribute(lo, hi, domains, _share_below)


def sensitive_loss(lo: Integers, hi: Integers, domains: Sequence[Hierarchy]) -> Floats:
    """Equation 5 per attribute and published value: how far up its taxonomy it is."""
    return each_attribute(lo, hi, domains, _node_climb)


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


def _node_climb(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    _checknode_scores(domain, lo, hi)
    heights, _ = node_scores(domain)
    return of_lowest_node(domain, heights, lo, hi) / max(int(heights[-1][0]), 1)


def _share_below(domain: Hierarchy, lo: Integers, hi: Integers) -> Floats:
    _checknode_scores(domain, lo, hi)
    _, below = node_scores(domain)
    return of_lowest_node(domain, below, lo, hi) / max(int(below[-1][0]), 1)


def _checknode_scores(domain: Hierarchy, lo: Integers, hi: Integers) -> None:
    level = domain.level_of(lo, hi)
    wrong = 0
    for step in range(domain.height + 1):
        first, last = domain.bounds(step)
        here = level == step
        group = np.searchsorted(first, lo[here], side="right") - 1
        wrong += int(np.count_nonzero((first[group] != lo[here]) | (last[group] != hi[here])))
    if wrong:
        raise ValueError(f"{wrong} published sensitive values are no nodes of their taxonomy")
