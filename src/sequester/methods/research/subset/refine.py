"""A cluster cut on the attributes that it does not generalize, as far as every class stays safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard

Integers = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]


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
    position, first_leaf = side_by_side(domains)
    starts = [begins]
    for begin, end in _to_cut(rows, begins, max(2 * guard.limits.k, 2), known=guard.known > 0):
        here = cluster[begin]
        people = guard.population
        if guard.known:
            people = _people(guard, rows[begin:end], lo[:, here], hi[:, here], subset[:, here])
        cuts = kernels.cut_rows(
            rows, values, order, begin, end, 0, kernels.GAIN, position, first_leaf, people, guard.known, guard.limits
        )  # fmt: skip
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
