"""Mondrian as a method, and its plain cuts, with which others begin."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Progress, Task
from sequester.methods.mondrian.cut import Cuts, mondrian
from sequester.metrics.loss import ail

_CLUSTERED = 300_000
"""Records up to which clusters are tried beside cuts where people left."""


def cut_once(task: Task) -> Classes:
    """The table by itself, cut as the method's options say, or by gain where they say nothing."""
    return mondrian(*task.table, cuts=cuts_of(task.options))


def cuts_of(options: Any) -> Any:
    """How boxes are cut, by methods that let people choose; else by gain."""
    return getattr(options, "cuts", "gain")


def _first(task: Task) -> Classes:
    regroup = task.options.regroups(in_series=task.past is not None)
    return mondrian(*task.table, cuts=task.options.cuts, regroup=regroup)


def _following(task: Task) -> Classes:
    regroup = task.options.regroups(in_series=True)
    return mondrian_next(task.history, *task.table, cuts=task.options.cuts, regroup=regroup, **task.shared)


def mondrian_next(
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    cuts: Cuts = "gain",
    regroup: bool = True,
    progress: Progress | None = None,
) -> Classes:
    """Mondrian for a series; where people left, or clusters if they lose less.

    Whoever leaves a class must be hidden by others who leave it. Clusters give her place to a newcomer with the same
    values, which cuts cannot.
    """
    from sequester.methods.cluster.recluster import recluster
    from sequester.methods.mondrian.republish import republish

    table = past, codes, domains, guard
    ways = [partial(republish, *table, against=against, cuts=cuts, regroup=regroup, progress=progress)]
    somebody_left = np.count_nonzero(past.last_member() >= 0) > np.count_nonzero(past.last_class() >= 0)
    if regroup and somebody_left and len(past) <= _CLUSTERED:
        ways.append(partial(recluster, *table, against=against, progress=progress))
    made: list[Classes] = []
    for way in ways:
        try:
            made.append(way())
        except GuaranteeError as error:
            refused = error
    if not made:
        raise refused
    return min(made, key=lambda classes: ail(classes, domains))


def _regroups(options: Any) -> bool:
    return bool(options.regroups(in_series=True))


METHOD = Method("mondrian", _first, _following, together=True, regroups=_regroups)
