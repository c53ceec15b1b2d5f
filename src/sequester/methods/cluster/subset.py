"""Which quasi-identifiers of a cluster to generalize (Reddy, Raju and Valli Kumari), and how to do so safely.

The paper scores every subset of the quasi-identifiers of a cluster by privacy gain and information loss, generalizes
the subset with "more privacy and less loss", and publishes the other attributes as they are. Two things are missing.

*Which subset that is.* Its Table 5 follows none of gain - loss, gain / loss and gain * (1 - loss). A `Rule` says it:
the least loss with at least a given gain (0.85 gives the paper's choice), or the most of weight * gain -
(1 - weight) * loss. Of equal subsets the one with fewer attributes is taken, then the first in the order of attributes.

The scores of subsets of different size can be compared only if they describe the same table. So by default both are
averages over *all* quasi-identifiers, where one that is published as it is gains and loses 0: then more attributes
never gain less, and if no subset gains enough, all attributes gain most. The paper's own average, over the attributes
of the subset, is `over="subset"`: there a single attribute is as good as all, and adding one that the cluster agrees
on makes the loss look smaller.

*That the rest is safe.* Attributes published as they are make rows unique again (Tables 7 and 8). `refine` therefore
publishes the subset with the range of the cluster, and cuts the cluster on the other attributes only as far as every
class satisfies the guard on all quasi-identifiers.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.metrics.gain import quasi_gain, quasi_loss

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Over = Literal["all", "subset"]

POWER_SET = 12
"""Up to this many attributes every subset is scored; beyond, subsets are searched for one cluster at a time."""

TOLERANCE = 1e-9
"""Scores that differ by less are equal: they are sums of a few fractions."""

LONGEST_SEARCH = 20_000
"""Sets of attributes looked at for one cluster before the best one found is taken."""

_CELLS = 1 << 20


@dataclass(frozen=True)
class Rule:
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
    found = np.zeros((len(sets), attributes), np.bool_)
    for row, chosen in zip(found, sets, strict=True):
        row[list(chosen)] = True
    return found


def score(gain: Floats, loss: Floats, *, over: Over = "all") -> tuple[Floats, Floats]:
    """Gain and loss of every subset (subsets, clusters), from those of every attribute (attributes, clusters)."""
    return _averages(gain, over=over), _averages(loss, over=over)


def pick(gain: Floats, loss: Floats, rule: Rule) -> NDArray[np.int64]:
    """Per cluster the subset that a rule takes, by gain and loss (subsets, clusters) in the order of `subsets`."""
    if rule.weight is not None:
        cost = (1 - rule.weight) * loss - rule.weight * gain
    else:
        cost = np.where(gain >= (rule.threshold or 0.0) - TOLERANCE, loss, np.inf)
    least = cost.min(axis=0)
    found: NDArray[np.int64] = np.argmax(cost <= least + TOLERANCE, axis=0)
    found[np.isinf(least)] = len(gain) - 1
    return found


def choose(lo: Integers, hi: Integers, domains: Sequence[Hierarchy], rule: Rule) -> Mask:
    """The attributes to generalize (attributes, clusters), for clusters that lie in the boxes lo, hi of the same shape.

    A weight is decided attribute by attribute. A threshold is looked for in the power set, and with more than
    `POWER_SET` attributes by a best-first search, which is exact but for `LONGEST_SEARCH`.
    """
    # Rounded, so that equal scores are equal.
    gain = np.round(quasi_gain(lo, hi, domains, lambda_1=rule.lambda_1), 12)
    loss = np.round(quasi_loss(lo, hi, domains), 12)
    if rule.threshold is None:
        return _weighed(gain, loss, rule)
    found = np.ones(gain.shape, np.bool_)
    if not len(gain):
        return found
    # If all attributes together gain too little (in an average over the subset: the best one), so do all subsets.
    most = gain.mean(axis=0) if rule.over == "all" else gain.max(axis=0)
    hopeful = np.flatnonzero(most >= rule.threshold - TOLERANCE)
    if len(gain) > POWER_SET:
        for cluster in hopeful.tolist():
            found[:, cluster] = _Search(gain[:, cluster], loss[:, cluster], rule.threshold, over=rule.over).run()
        return found
    every = subsets(len(gain))
    step = max(1, _CELLS // len(every))
    for start in range(0, len(hopeful), step):
        part = hopeful[start : start + step]
        found[:, part] = every[pick(*score(gain[:, part], loss[:, part], over=rule.over), rule)].T
    return found


def refine(
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    member: Integers,
    lo: Integers,
    hi: Integers,
    subset: Mask,
) -> Classes:
    """Publish a subset of the attributes with the range of the cluster, and the others as fine as the guard allows.

    codes   the records, (attributes, records)
    member  the cluster of every record, -1 for one left out, which stays left out
    lo, hi  the boxes of the clusters, (attributes, clusters)
    subset  the attributes that keep the range of the cluster, (attributes, clusters)

    Every cluster has to be safe as one class: one that is not is an error, since no cut could make it safe. Within a
    cluster boxes do not overlap. With a k-map every cluster is compared with the whole population, which takes longer.
    """
    from sequester.methods.mondrian import cut_kernels as kernels

    records = np.flatnonzero(member >= 0)
    records = records[np.argsort(member[records], kind="stable")]
    cluster = np.asarray(member[records], np.int64)
    raw = codes[:, records]
    if np.any((raw < lo[:, cluster]) | (raw > hi[:, cluster])):
        raise ValueError("every record must lie in the box of its cluster")
    # What all rows of a run agree on is never cut.
    rows = np.ascontiguousarray(np.where(subset[:, cluster], lo[:, cluster], raw).T, np.int32)
    values = guard.values[records]
    order = np.arange(len(records), dtype=np.int32)
    begins = np.flatnonzero(np.diff(cluster, prepend=-1))
    _check_safe(cluster, values, guard)
    deck, scale = kernels.Deck(rows, values, order), kernels.Scale(*side_by_side(domains))
    starts = [begins]
    for begin, end in _to_cut(rows, begins, max(2 * guard.limits.k, 2), known=guard.known > 0):
        here = cluster[begin]
        people = guard.population
        if guard.known:
            people = _people(guard, rows[begin:end], lo[:, here], hi[:, here], subset[:, here])
        known = kernels.KnownPeople(people, guard.known)
        found = kernels.cut_rows(deck, begin, end, 0, kernels.GAIN, scale, known, guard.limits)
        starts.append(found[found > begin])
    first = np.sort(np.concatenate(starts))
    of_record, low, high = kernels.bound_runs(rows, order, first)
    result = np.full(len(member), -1, np.int32)
    result[records] = of_record
    # What is kept begins where the cluster does already.
    source = cluster[first]
    high = np.where(subset[:, source], hi[:, source], high).astype(np.int32)
    return Classes(result, low, high)


def _check_safe(cluster: NDArray[np.int64], values: NDArray[np.int32], guard: ClassGuard) -> None:
    from sequester.methods.loops.tree import safe_classes

    _, compact = np.unique(cluster, return_inverse=True)
    count = int(compact.max(initial=-1)) + 1
    safe: Mask = safe_classes(compact.astype(np.int64), values, count, guard.limits)
    _refuse(count - int(np.count_nonzero(safe)))


def _refuse(clusters: int) -> None:
    if clusters:
        raise GuaranteeError(
            f"clusters that are not safe as they are: {clusters:,}; merge them with others first", guarantee="cluster"
        )


def _to_cut(rows: NDArray[np.int32], begins: NDArray[np.int64], least: int, *, known: bool) -> list[tuple[int, int]]:
    """The runs that are long enough to be cut and do not agree on everything; all of them if a population counts."""
    if not len(begins):
        return []
    ends = np.append(begins[1:], len(rows))
    differs = np.maximum.reduceat(rows, begins, axis=0) > np.minimum.reduceat(rows, begins, axis=0)
    worth = known | ((ends - begins >= least) & differs.any(axis=1))
    return list(zip(begins[worth].tolist(), ends[worth].tolist(), strict=True))


def _people(guard: ClassGuard, rows: NDArray[np.int32], lo: Integers, hi: Integers, subset: Mask) -> NDArray[np.int32]:
    """Who of the population lies in the range of a cluster on its subset, on which they then agree with its rows."""
    kept = np.flatnonzero(subset)
    inside = ((guard.population[:, kept] >= lo[kept]) & (guard.population[:, kept] <= hi[kept])).all(axis=1)
    people = guard.population[inside]
    people[:, kept] = lo[kept]
    fits = ((people >= rows.min(axis=0)) & (people <= rows.max(axis=0))).all(axis=1)
    _refuse(int(np.count_nonzero(fits) < guard.known))
    return people


def _averages(scores: Floats, *, over: Over) -> Floats:
    """The average of every subset in the order of `subsets`; each is one attribute more than one before it."""
    attributes, clusters = scores.shape
    found = np.empty(((1 << attributes) - 1, clusters), np.float64)
    found[:attributes] = scores
    before: dict[tuple[int, ...], int] = {(a,): a for a in range(attributes)}
    begin = attributes
    for size in range(2, attributes + 1):
        sets = list(combinations(range(attributes), size))
        end = begin + len(sets)
        np.add(found[[before[chosen[:-1]] for chosen in sets]], scores[[c[-1] for c in sets]], out=found[begin:end])
        before = dict(zip(sets, range(begin, end), strict=True))
        begin = end
    found /= subsets(attributes).sum(axis=1, keepdims=True) if over == "subset" else max(attributes, 1)
    return found


def _weighed(gain: Floats, loss: Floats, rule: Rule) -> Mask:
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


class _Search:
    """Branch and bound, best bound first, for the subset of one cluster with least loss and enough gain.

    Enough is a sum of gains: of gain - threshold in an average over the subset, which has to reach 0. With a price of
    gain, a subset that gains enough loses at least the sum (or average) of loss - price * gain, plus price times what
    has to be reached: so the least of that over all ways to complete a set bounds what it can lose. The price is the
    one with the highest bound at the beginning. An attribute that another beats in both gain and loss is never taken
    without that other.
    """

    def __init__(self, gain: Floats, loss: Floats, threshold: float, *, over: Over) -> None:
        count = len(gain)
        self.count, self.per_subset = count, over == "subset"
        self.need = 0.0 if self.per_subset else threshold
        own, lost = (gain - threshold, loss) if self.per_subset else (gain / count, loss / count)
        self.price = self._best_price(own, lost)
        cost = lost - self.price * own
        # What gains nothing is of no use in an average over all.
        useful = np.flatnonzero(gain > 0) if self.need > TOLERANCE else np.arange(count)
        order = useful[np.argsort(cost[useful], kind="stable")]
        self.order: list[int] = order.tolist()
        self.own: list[float] = own.tolist()
        self.lost: list[float] = lost.tolist()
        self.cost: list[float] = cost.tolist()
        before = np.arange(count)[:, None] < np.arange(count)
        beats = (gain[:, None] >= gain) & (loss[:, None] <= loss) & ((loss[:, None] < loss) | before)
        self.beaten_by = [int.from_bytes(bits.tobytes(), "little") for bits in np.packbits(beats.T, 1, "little")]
        # What the attributes from a place in the order on can still add to the gain, and take from the cost.
        self.more: list[float] = [*np.cumsum(np.maximum(own[order], 0)[::-1])[::-1].tolist(), 0.0]
        self.less: list[float] = [*np.cumsum(np.minimum(cost[order], 0)[::-1])[::-1].tolist(), 0.0]
        self.best: tuple[float, int, tuple[int, ...]] | None = None

    def run(self) -> Mask:
        """The attributes of the subset; all if no subset gains enough."""
        # Bound, the latest first among equal ones, place in the order, what is taken, what is not, gain and cost.
        queue: list[tuple[float, int, int, tuple[int, ...], int, float, float]] = []
        heapq.heappush(queue, (self._bound(0, 0, 0.0), 0, 0, (), 0, 0.0, 0.0))
        if self.per_subset:
            most = int(np.argmax(self.own))
            self._offer((most,), self.own[most])
        looked = 0
        while queue and looked < LONGEST_SEARCH:
            bound, _, place, taken, out, own, cost = heapq.heappop(queue)
            if self.best is not None and bound > self.best[0] + TOLERANCE:
                break
            if place == len(self.order):
                continue
            a = self.order[place]
            children = [(taken, out | 1 << a, own, cost)]
            if not self.beaten_by[a] & out:
                children.append(((*taken, a), out, own + self.own[a], cost + self.cost[a]))
                # More attributes only lose more in an average over all.
                if self._offer(children[-1][0], own + self.own[a]) and not self.per_subset:
                    children.pop()
            for taken, out, own, cost in children:
                looked += 1
                if own + self.more[place + 1] >= self.need - self._slack(len(self.order)):
                    reach = self._bound(place + 1, len(taken), cost)
                    heapq.heappush(queue, (reach, -looked, place + 1, taken, out, own, cost))
        found = np.full(self.count, self.best is None)
        found[list(() if self.best is None else self.best[2])] = True
        return found

    def _offer(self, taken: tuple[int, ...], own: float) -> bool:
        """Whether a set gains enough; it is kept if it loses less than the best, or is as good and comes first."""
        if own < self.need - self._slack(len(taken)):
            return False
        lost = sum(self.lost[a] for a in taken) / (len(taken) if self.per_subset else 1)
        key = (len(taken), tuple(sorted(taken)))
        least, *first = self.best or (np.inf, 0, ())
        if lost < least - TOLERANCE or (lost <= least + TOLERANCE and key < tuple(first)):
            self.best = (lost, *key)
        return True

    def _slack(self, taken: int) -> float:
        return TOLERANCE * taken if self.per_subset else TOLERANCE

    def _bound(self, place: int, taken: int, cost: float) -> float:
        """No set that begins like this, and gains enough, loses less."""
        if not self.per_subset:
            return self.price * (self.need - TOLERANCE) + cost + self.less[place]
        least = cost / taken if taken else np.inf
        for a in self.order[place:]:
            if self.cost[a] >= least:
                break
            taken, cost = taken + 1, cost + self.cost[a]
            least = cost / taken
        return least - self.price * TOLERANCE

    def _best_price(self, own: Floats, lost: Floats) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            prices = ((lost[:, None] - lost) / (own[:, None] - own)).ravel() if self.per_subset else lost / own
        prices = np.append(prices[np.isfinite(prices) & (prices > 0)], 0.0)
        cost = lost - prices[:, None] * own
        bound = cost.min(axis=1) if self.per_subset else prices * self.need + np.minimum(cost, 0).sum(axis=1)
        return float(prices[np.argmax(bound)])
