"""Classes of many pods: cut by gain and shared out again, by quick loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.shelf_kernels import Least
from sequester.methods.pods.many.cut_kernels import cut_many, cut_runs
from sequester.methods.pods.many.share_kernels import PodRuns, bound_pods, share_many, sorted_by

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_TURNS, _SHARED = 6, 600_000
"""How often classes are shared out again at most, and the people for whom it is done once: of fewer, more often."""

_CARE, _HASTE = 0.02, 0.05
"""The share of its class's width that a pod must make to be worth moving: of fewer people, and of more."""


def group_many(place: Places, pod: Integers, least: Least) -> Integers:
    """The class of every row, as `group`; rows about nobody are last."""
    count, people = int(pod.max()) + 1, len(place)
    weight = np.empty((count, 2), np.int32)
    weight[:, 0], weight[:, 1] = np.bincount(pod, minlength=count), np.bincount(pod[:people], minlength=count)
    box = _boxes(place, pod, count)
    order, start = cut_many(box, weight, least)
    worth = _CARE if people < _SHARED else _HASTE
    for turn in range(max(min(_SHARED // people, _TURNS), 1)):
        member = share_many(PodRuns(box, weight, np.append(start, count)), least, turn % 2, worth)
        again, ends = sorted_by(member)
        box, weight, order = box[again], weight[again], order[again]
        # Classes that have become large enough are cut again.
        start = np.sort(cut_runs(box, weight, order, ends, 0, least))
    of_pod = np.empty(count, np.int64)
    of_pod[order] = np.repeat(np.arange(len(start)), np.diff(start, append=count))
    return of_pod[pod]


def _boxes(place: Places, pod: Integers, count: int) -> NDArray[np.float32]:
    """(pods, 2 attributes) least, then largest of the people of every pod; of a pod without any it is at the origin."""
    box = np.zeros((count, 2 * place.shape[1]), np.float32)
    bound_pods(place, pod[: len(place)], np.zeros(count, np.bool_), box)
    return box
