"""Classes as unions of pods, by gain cuts: any position of any attribute, the one that shortens ranges most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.pods.classes.shelf_kernels import Least, PodBoxes

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_LESS = 1e-12
"""What a later axis or place must save: of equal cuts the first is taken."""


class _SplitRoom(NamedTuple):
    """Room for the box of some pods, and for what all pods from a place on would lose."""

    least: Places
    most: Places
    after: Places


@helper
def _by_place(low: Places, high: Places, own: Integers, axis: int) -> Integers:
    """An order of some pods along an axis; those at one place stay in theirs."""
    center = np.empty(own.size)
    for at in range(own.size):
        center[at] = low[own[at], axis] + high[own[at], axis]
    return np.argsort(center, kind="mergesort")


@helper
def _clear(room: _SplitRoom) -> None:
    for axis in range(room.least.size):
        room.least[axis], room.most[axis] = np.inf, -np.inf


@helper
def _grow(low: Places, high: Places, pod: int, room: _SplitRoom) -> float:
    """The summed widths of a box with a pod more. Changes `room`."""
    width = 0.0
    for axis in range(room.least.size):
        room.least[axis] = min(room.least[axis], low[pod, axis])
        room.most[axis] = max(room.most[axis], high[pod, axis])
        width += room.most[axis] - room.least[axis]
    return width


@helper
def _best_cut(boxes: PodBoxes, own: Integers, least: Least, room: _SplitRoom) -> tuple[int, int]:
    """The axis (-1: none) and the number of pods on the left of the cut that loses least. Changes `room`."""
    low, high, size, people = boxes.low, boxes.high, boxes.size, boxes.people
    best, best_axis, best_at = np.inf, -1, 0
    for axis in range(low.shape[1]):
        ranked = _by_place(low, high, own, axis)
        _clear(room)
        rows, about = 0, 0
        for at in range(own.size - 1, 0, -1):
            pod = own[ranked[at]]
            rows, about = rows + size[pod], about + people[pod]
            width = _grow(low, high, pod, room)
            room.after[at] = width * rows if rows >= least.rows and about >= least.people else np.inf
        _clear(room)
        rows, about = 0, 0
        for at in range(own.size - 1):
            pod = own[ranked[at]]
            rows, about = rows + size[pod], about + people[pod]
            width = _grow(low, high, pod, room)
            if rows < least.rows or about < least.people or room.after[at + 1] == np.inf:
                continue
            lost = width * rows + room.after[at + 1]
            if lost < best - _LESS:
                best, best_axis, best_at = lost, axis, at + 1
    return best_axis, best_at


@kernel
def cut_pods(boxes: PodBoxes, least: Least) -> NDArray[np.int32]:
    """Cut pods into classes that are large enough; every pod's class."""
    low, high, size = boxes.low, boxes.high, boxes.size
    pods, axes = low.shape
    member, order = np.zeros(pods, np.int32), np.arange(pods)
    room = _SplitRoom(np.empty(axes), np.empty(axes), np.empty(pods))
    stack, classes = [(0, pods)], 0
    while len(stack):
        begin, end = stack.pop()
        own = order[begin:end].copy()
        rows = 0
        for pod in own:
            rows += size[pod]
        axis, at = -1, 0
        if rows >= 2 * least.rows:
            axis, at = _best_cut(boxes, own, least, room)
        if axis < 0:
            for pod in own:
                member[pod] = classes
            classes += 1
            continue
        ranked = _by_place(low, high, own, axis)
        for place in range(own.size):
            order[begin + place] = own[ranked[place]]
        stack.append((begin, begin + at))
        stack.append((begin + at, end))
    return member
