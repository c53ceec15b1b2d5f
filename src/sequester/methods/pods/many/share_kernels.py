"""Classes of many pods, shared out again among neighbors: windows of classes that stand near, each on its own.

As `sharing`, but every class keeps the least and the second least of its sides, so that it is told without looking at
its pods what it would be without one of them; and windows do not know of each other, so that threads share them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.pods.classes.shelf_kernels import Least

Integers = NDArray[np.int64]
Boxes = NDArray[np.float32]
Weights = NDArray[np.int32]

_WINDOW = 64
"""Classes of a window: all of them are compared with all, so that a larger one takes longer per class."""

_NEAR = 6
"""Near classes that a class looks at: all their pods are tried."""

_MOST = 64
"""Pods of a class from which on it is left alone: every class of a window has room for as many."""

_PART = 1_024
"""Classes that a thread looks at at a time: whole windows."""


class PodRuns(NamedTuple):
    """Pods, those of one class together.

    box     (pods, 2 attributes) least, then largest of their people
    weight  (pods, 2) rows, and those about somebody
    start   where each class begins, and the end
    """

    box: Boxes
    weight: Weights
    start: Integers


def sorted_by(member: Integers) -> tuple[Integers, Integers]:
    """An order in which those of one class stand together, and where each class begins, and the end."""
    start = np.zeros(int(member.max()) + 2, np.int64)
    np.cumsum(np.bincount(member), out=start[1:])
    order = np.empty(len(member), np.int64)
    put_in_order(member, start[:-1].copy(), order)
    return order, start


@kernel
def put_in_order(member: Integers, place: Integers, order: Integers) -> None:
    """Put everything behind what its class has already. Changes `place` and `order`."""
    for one in range(member.size):
        order[place[member[one]]] = one
        place[member[one]] += 1


@kernel
def bound_pods(place: NDArray[np.float64], pod: Integers, seen: NDArray[np.bool_], box: Boxes) -> None:
    """The boxes of the people of every pod: least, then largest. Changes `box`, and `seen`: which pods have any."""
    axes = place.shape[1]
    for row in range(pod.size):
        one = pod[row]
        for axis in range(axes):
            here = place[row, axis]
            if not seen[one] or here < box[one, axis]:
                box[one, axis] = here
            if not seen[one] or here > box[one, axes + axis]:
                box[one, axes + axis] = here
        seen[one] = True


def share_many(pods: PodRuns, least: Least, shift: int, worth: float) -> Integers:
    """The class of every pod after some have moved; `shift` 1: windows begin in the middle of others."""
    member = np.repeat(np.arange(len(pods.start) - 1), np.diff(pods.start))
    begins = range(-shift * _WINDOW // 2, len(pods.start) - 1, _PART)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(
            pool.map(lambda begin: share_windows(pods, least, np.float32(worth), begin, begin + _PART, member), begins)
        )
    return member


# Arrays go to these loops by themselves: a tuple of arrays counts references at every look. Of every class of a window
# there are `tally` (pods, rows, people) and `edge` (least, second least, largest and second largest per axis; width).


@helper
def _edges(box: Boxes, members: Integers, tally: Integers, edge: Boxes, cls: int) -> None:
    """Look at all pods of a class. Changes `edge`."""
    axes = box.shape[1] // 2
    total = np.float32(0.0)
    for axis in range(axes):
        low = low_next = np.float32(np.inf)
        high = high_next = np.float32(-np.inf)
        for at in range(tally[cls, 0]):
            one, other = box[members[cls, at], axis], box[members[cls, at], axes + axis]
            if one < low:
                low, low_next = one, low
            elif one < low_next:
                low_next = one
            if other > high:
                high, high_next = other, high
            elif other > high_next:
                high_next = other
        edge[cls, 0, axis], edge[cls, 1, axis], edge[cls, 2, axis], edge[cls, 3, axis] = low, low_next, high, high_next
        if high > low:
            total += min(high - low, np.float32(1.0))
    edge[cls, 4, 0] = total


@helper
def _width(edge: Boxes, cls: int, box: Boxes, skip: int, add: int) -> np.float32:
    """The width of a class without one of its pods (-1: with all) and with another (-1: with none)."""
    axes = box.shape[1] // 2
    total = np.float32(0.0)
    for axis in range(axes):
        low, high = edge[cls, 0, axis], edge[cls, 2, axis]
        if skip >= 0:
            low = edge[cls, 1, axis] if box[skip, axis] == low else low
            high = edge[cls, 3, axis] if box[skip, axes + axis] == high else high
        if add >= 0:
            low, high = min(low, box[add, axis]), max(high, box[add, axes + axis])
        total += max(min(high - low, np.float32(1.0)), np.float32(0.0))
    return total


@helper
def _neighbors(edge: Boxes, classes: int, near: Integers) -> None:
    """Per class of a window, those whose boxes are nearest. Changes `near`."""
    axes, way = edge.shape[2], np.empty(_NEAR, np.float32)
    for one in range(classes):
        for rank in range(_NEAR):
            near[one, rank], way[rank] = -1, np.inf
        for other in range(classes):
            if other == one:
                continue
            apart = np.float32(0.0)
            for axis in range(axes):
                apart += abs(edge[one, 0, axis] + edge[one, 2, axis] - edge[other, 0, axis] - edge[other, 2, axis])
            if apart < way[_NEAR - 1]:
                rank = _NEAR - 1
                while rank > 0 and way[rank - 1] > apart:
                    near[one, rank], way[rank] = near[one, rank - 1], way[rank - 1]
                    rank -= 1
                near[one, rank], way[rank] = other, apart


@helper
def _grown(box: Boxes, edge: Boxes, near: Integers, pod: int, here: int, choice: Integers) -> None:
    """The near classes that grow least with a pod, -1 for none. Changes `choice`."""
    least, next_least = np.float32(np.inf), np.float32(np.inf)
    choice[0] = choice[1] = -1
    for rank in range(near.shape[1]):
        there = near[here, rank]
        if there < 0:
            break
        more = _width(edge, there, box, -1, pod) - edge[there, 4, 0]
        if more < least:
            least, next_least = more, least
            choice[0], choice[1] = there, choice[0]
        elif more < next_least:
            next_least, choice[1] = more, there


@helper
def _gain(  # noqa: PLR0913 - a compiled loop over plain arrays
    box: Boxes,
    weight: Weights,
    members: Integers,
    tally: Integers,
    edge: Boxes,
    pod: int,
    here: int,
    there: int,
    least: Least,
) -> tuple[float, int]:
    """What is lost less if a pod goes to another class, and the pod that comes for it: -1 for none."""
    rows, people = weight[pod, 0], weight[pod, 1]
    now = edge[here, 4, 0] * tally[here, 2] + edge[there, 4, 0] * tally[there, 2]
    best, swap = -1e-6, -1
    spare, room = tally[here, 1] - rows - least.rows, tally[here, 2] - people - least.people
    if spare >= 0 and room >= 0 and tally[there, 0] < _MOST - 1:
        gain = _width(edge, here, box, pod, -1) * (tally[here, 2] - people) - now
        best = min(gain + _width(edge, there, box, -1, pod) * (tally[there, 2] + people), best)
    for at in range(tally[there, 0]):
        third = members[there, at]
        if spare + weight[third, 0] < 0 or tally[there, 1] + rows - weight[third, 0] < least.rows:
            continue
        if room + weight[third, 1] < 0 or tally[there, 2] + people - weight[third, 1] < least.people:
            continue
        more = weight[third, 1] - people
        gain = _width(edge, here, box, pod, third) * (tally[here, 2] + more) - now
        if gain < best:
            gain += _width(edge, there, box, third, pod) * (tally[there, 2] - more)
            if gain < best:
                best, swap = gain, third
    return best, swap


@helper
def _move(weight: Weights, members: Integers, tally: Integers, pod: int, here: int, there: int) -> None:
    """A pod goes from one class of a window to another."""
    at = 0
    while members[here, at] != pod:
        at += 1
    tally[here, 0] -= 1
    members[here, at] = members[here, tally[here, 0]]
    members[there, tally[there, 0]] = pod
    tally[there, 0] += 1
    for side in range(2):
        tally[here, 1 + side] -= weight[pod, side]
        tally[there, 1 + side] += weight[pod, side]


@kernel
def share_windows(pods: PodRuns, least: Least, worth: np.float32, begin: int, end: int, member: Integers) -> None:
    """Move pods to near classes, or exchange two, where that loses less; classes stay large enough. Changes `member`.

    worth       the share of its class's width that a pod must make to be worth moving
    begin, end  the classes of so many windows; there may be none before the first and after the last
    """
    box, weight, start = pods.box, pods.weight, pods.start
    edge = np.empty((_WINDOW, 5, box.shape[1] // 2), np.float32)
    number, tally = np.empty(_WINDOW, np.int64), np.zeros((_WINDOW, 3), np.int64)
    members, near = np.empty((_WINDOW, _MOST + 1), np.int64), np.empty((_WINDOW, _NEAR), np.int64)
    choice = np.empty(2, np.int64)
    for at_class in range(begin, end, _WINDOW):
        classes = 0
        for cls in range(max(at_class, 0), min(at_class + _WINDOW, start.size - 1)):
            if start[cls + 1] - start[cls] >= _MOST:
                continue
            number[classes] = cls
            tally[classes, 0] = tally[classes, 1] = tally[classes, 2] = 0
            for pod in range(start[cls], start[cls + 1]):
                members[classes, tally[classes, 0]] = pod
                tally[classes, 0] += 1
                tally[classes, 1] += weight[pod, 0]
                tally[classes, 2] += weight[pod, 1]
            _edges(box, members, tally, edge, classes)
            classes += 1
        _neighbors(edge, classes, near)
        for here in range(classes):
            for at in range(tally[here, 0] - 1, -1, -1):
                if at >= tally[here, 0]:
                    continue
                pod = members[here, at]
                if edge[here, 4, 0] - _width(edge, here, box, pod, -1) < worth * edge[here, 4, 0]:
                    continue
                _grown(box, edge, near, pod, here, choice)
                best, there, third = -1e-6, -1, -1
                for rank in range(2):
                    if choice[rank] >= 0:
                        gain, swap = _gain(box, weight, members, tally, edge, pod, here, choice[rank], least)
                        if gain < best:
                            best, there, third = gain, int(choice[rank]), swap
                if there < 0:
                    continue
                _move(weight, members, tally, pod, here, there)
                if third >= 0:
                    _move(weight, members, tally, third, there, here)
                _edges(box, members, tally, edge, here)
                _edges(box, members, tally, edge, there)
        for cls in range(classes):
            for at in range(tally[cls, 0]):
                member[members[cls, at]] = number[cls]
