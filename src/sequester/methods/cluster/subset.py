"""Clusters that generalize only some attributes (Reddy, Raju and Valli Kumari), and how to do so safely.

The paper scores every subset of the quasi-identifiers of a cluster by privacy gain and information loss, generalizes
the subset with "more privacy and less loss", and publishes the other attributes as they are. Two things are missing.

*Which subset that is.* Its Table 5 follows none of gain - loss, gain / loss and gain * (1 - loss). Here it is the least
loss with at least a given gain (0.85 gives the paper's choice), or the most of weight * gain - (1 - weight) * loss.
Scores of subsets of different size can be compared only if they describe the same table, so both are averages over
*all* quasi-identifiers, where one that is published as it is gains and loses 0: then more attributes never gain less,
and if no subset gains enough, all attributes gain most.

*That the rest is safe.* Attributes published as they are make rows unique again (Tables 7 and 8). So `refine` publishes
the subset with the range of the cluster, and cuts the cluster on the other attributes only as far as every class
satisfies the guard on all quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.metrics.gain import quasi_gain, quasi_loss

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

POWER_SET = 12
"""Up to this many attributes every subset is tried; beyond, an integer program is solved for one cluster at a time."""

# Scores that differ by less are equal: they are sums of a few fractions.
_TOLERANCE = 1e-9
# Scores of subsets and clusters that are kept at once: 8 MB.
_CELLS = 1 << 20


def choose(
    lo: Integers, hi: Integers, domains: Sequence[Hierarchy], *, gain: float | None = None, weight: float | None = None
) -> Mask:
    """The attributes to generalize (attributes, clusters), for clusters that lie in the boxes lo, hi of the same shape.

    gain    least loss among the subsets that gain at least this; all attributes if there is none
    weight  most of weight * gain - (1 - weight) * loss
    Of equal subsets the one with fewer attributes is taken, then the first in the order of attributes.
    """
    # Rounded, so that equal scores are equal.
    gains, losses = np.round(quasi_gain(lo, hi, domains), 12), np.round(quasi_loss(lo, hi, domains), 12)
    chosen = np.ones(gains.shape, np.bool_)
    if not len(gains):
        return chosen
    if weight is not None:
        # Each attribute counts for itself, so those that help are taken, or the best where none does.
        worth = weight * gains - (1 - weight) * losses
        best = np.arange(len(worth))[:, None] == np.argmax(worth >= worth.max(axis=0) - _TOLERANCE, axis=0)
        helps = worth > _TOLERANCE
        return np.where(helps.any(axis=0), helps, best)
    enough = len(gains) * ((gain or 0.0) - _TOLERANCE)
    hopeful = np.flatnonzero(gains.sum(axis=0) >= enough)
    if len(gains) > POWER_SET:
        for cluster in hopeful.tolist():
            chosen[:, cluster] = _solve(gains[:, cluster], losses[:, cluster], enough)
        return chosen
    sets = [taken for size in range(1, len(gains) + 1) for taken in combinations(range(len(gains)), size)]
    every = np.zeros((len(sets), len(gains)), np.bool_)
    for row, taken in zip(every, sets, strict=True):
        row[list(taken)] = True
    step = max(1, _CELLS // len(every))
    for start in range(0, len(hopeful), step):
        part = hopeful[start : start + step]
        lost = np.where(every @ gains[:, part] >= enough, every @ losses[:, part], np.inf)
        chosen[:, part] = every[np.argmax(lost <= lost.min(axis=0) + len(gains) * _TOLERANCE, axis=0)].T
    return chosen


def _solve(gain: Floats, loss: Floats, enough: float) -> Mask:
    """The attributes of one cluster that lose least and gain enough together."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        loss,
        constraints=LinearConstraint(gain, lb=max(enough, _TOLERANCE)),
        integrality=np.ones(len(gain)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    return np.ones(len(gain), np.bool_) if found.x is None else np.asarray(found.x > 0.5)


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
        cuts = kernels.cut_rows(deck, begin, end, 0, kernels.GAIN, scale, known, guard.limits)
        starts.append(cuts[cuts > begin])
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
