"""Mondrian as a method, and its plain cuts, with which others begin."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task
from sequester.methods.mondrian.cut import mondrian
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
    """Mondrian for a series; where people left, or clusters if they lose less.

    Whoever leaves a class must be hidden by others who leave it. Clusters give her place to a newcomer with the same
    values, which cuts cannot.
    """
    from sequester.methods.cluster.recluster import recluster
    from sequester.methods.mondrian.republish import republish

    regroup = task.options.regroups(in_series=True)
    ways = [partial(republish, task.history, *task.table, cuts=task.options.cuts, regroup=regroup, **task.shared)]
    if regroup and _somebody_left(task) and len(task.history) <= _CLUSTERED:
        ways.append(partial(recluster, task.history, *task.table, **task.shared))
    made: list[Classes] = []
    for way in ways:
        try:
            made.append(way())
        except GuaranteeError as error:
            refused = error
    if not made:
        raise refused
    return min(made, key=lambda classes: ail(classes, task.domains))


def _somebody_left(task: Task) -> bool:
    """Whether a person of the last release is not in this one."""
    before = int(np.count_nonzero(task.history.last_member() >= 0))
    return before > int(np.count_nonzero(task.history.last_class() >= 0))


def _regroups(options: Any) -> bool:
    return bool(options.regroups(in_series=True))


METHOD = Method("mondrian", _first, _following, together=True, regroups=_regroups)
