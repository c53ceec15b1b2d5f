"""The method `cluster` as a policy asks for it: clusters, and in each the attributes that are worth generalizing.

Reddy et al. generalize only a subset of the quasi-identifiers, in every cluster another, and publish the rest as it is,
which identifies people. Here the rest is as fine as the guard allows on all quasi-identifiers (`subset`). In a
series only clusters of newcomers are cut so: what has a history is cut anew only where the guard of the series says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster.join import cluster
from sequester.methods.method import Method, Task

if TYPE_CHECKING:
    from sequester.policy.methods import Cluster

Ints = NDArray[np.int32]
Progress = Callable[[str, int, int], None]


def cluster_table(codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, method: Cluster) -> Classes:
    """Classes of one table, given as codes (attributes, records)."""
    classes = cluster(codes, domains, _coarse(guard, method, codes.shape[1]), similarity=method.similarity)
    return _narrowed(classes, codes, domains, guard, method)


def cluster_next(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    method: Cluster,
    *,
    against: Collection[str],
    progress: Progress | None = None,
) -> Classes:
    """Classes of the next table of a series; those of newcomers alone are narrowed as in a first table."""
    from sequester.methods.cluster.recluster import recluster

    if not len(past.first):
        return cluster_table(codes, domains, guard, method)
    classes = recluster(past, codes, domains, guard, against=against, similarity=method.similarity, progress=progress)
    new = np.ones(len(classes), np.bool_)
    new[classes.member[past.last_class() >= 0]] = False
    if not new.any():
        return classes
    rows = np.flatnonzero(new[classes.member])
    number = np.cumsum(new) - 1
    own = Classes(number[classes.member[rows]].astype(np.int32), classes.lo[:, new], classes.hi[:, new])
    fine = _narrowed(
        own, np.ascontiguousarray(codes[:, rows]), domains, replace(guard, values=guard.values[rows]), method
    )
    member = np.cumsum(~new)[classes.member] - 1
    member[rows] = fine.member + int(np.count_nonzero(~new))
    return Classes(
        member.astype(np.int32), np.hstack([classes.lo[:, ~new], fine.lo]), np.hstack([classes.hi[:, ~new], fine.hi])
    )


def _coarse(guard: ClassGuard, method: Cluster, records: int) -> ClassGuard:
    """The guard with clusters so large that there are about as many as asked for."""
    if method.clusters is None:
        return guard
    k = max(guard.limits.k, records // method.clusters)
    return replace(guard, limits=guard.limits._replace(k=k))


def _narrowed(
    classes: Classes, codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, method: Cluster
) -> Classes:
    if method.gain is None and method.weight is None:
        return classes
    from sequester.methods.cluster.subset import choose, refine

    chosen = choose(classes.lo, classes.hi, domains, gain=method.gain, weight=method.weight)
    return refine(codes, domains, guard, classes.member, classes.lo, classes.hi, chosen)


def _first(task: Task) -> Classes:
    return cluster_table(*task.table, task.options)


def _following(task: Task) -> Classes:
    return cluster_next(task.history, *task.table, task.options, **task.shared)


def _asks_no_similarity(options: Any) -> bool:
    """Clusters may have to be similar, or to gain privacy: a merge would not do."""
    return bool({options.similarity, options.gain, options.weight} == {None})


METHOD = Method("cluster", _first, _following, merges=_asks_no_similarity)
