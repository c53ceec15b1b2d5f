"""Clusters as a method."""

from __future__ import annotations

from typing import Any

from sequester.methods.classes import Classes
from sequester.methods.cluster.chosen import cluster_next, cluster_table
from sequester.methods.method import Method, Task


def _first(task: Task) -> Classes:
    return cluster_table(*task.table, task.options)


def _following(task: Task) -> Classes:
    return cluster_next(task.history, *task.table, task.options, **task.shared)


def _asks_no_similarity(options: Any) -> bool:
    """Clusters may have to be similar, or to gain privacy: a merge would not do."""
    return bool({options.similarity, options.gain, options.weight} == {None})


METHOD = Method("cluster", _first, _following, merges=_asks_no_similarity)
