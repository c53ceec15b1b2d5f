"""Classes of pods, shared out again among neighbors: windows of classes that stand near, each on its own.

A pod moves to a near class, or two are exchanged, while that loses less. Cuts leave classes of up to twice as many rows
as they need, and neither makes one more: a pod and the nearest pods whose classes stay large enough without them open
a class of their own.

Every class keeps the least and the second least of its sides, so that it is told without looking at its pods what it
would be without one of them. Windows do not know of each other, so that threads share them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.pods.task import Least

Integers = NDArray[np.int64]
Boxes = NDArray[np.float32]
Weights = NDArray[np.int32]

_MOST = 64
"""Pods of a class for which there is room at least; a class of more than there is room for is left alone."""

_PART = 1_024
"""Classes that a thread looks at at a time: whole windows."""

_LESS = 1e-6
"""What must be lost less for anything to change: sums in another order differ by less."""


class Care(NamedTuple):
    """How much is tried.

    window  classes that are compared with each other
    near    of these, how many of the nearest a class looks at
    tries   of the near, those that grow least with a pod: all their pods are tried
    worth   the share of its class's width that a pod must make to be worth moving
    """

    window: int
    near: int
    tries: int
    worth: float


class PodRuns(NamedTuple):
    """Pods, those of one class together.

    box     (pods, 2 attributes) least, then largest of their people
    weight  (pods, 2) rows, and those about somebody
    start   where each class begins, and the end
    """

    box: Boxes
    weight: Weights
    start: Integers


class ClassWindow(NamedTuple):
    """Classes that are compared with each other, and those they open.

    members  (classes, any) pods, and `tally`: how many, their rows and people
    edge     (classes, 5, attributes) least, second least, largest and second largest side; width
    near     (classes, any) near classes, the nearest first, -1 for none
    came     (any, 2) room for the pods of a class that is opened, and from where they came
    """

    members: Integers
    tally: Integers
    edge: Boxes
    near: Integers
    came: Integers


def share_pods(pods: PodRuns, least: Least, shift: int, care: Care) -> Integers:
    """The class of every pod after some have moved and classes were opened; there may be numbers without a class.

    shift  1: windows begin in the middle of others
    """
    classes = len(pods.start) - 1
    # A window has room for large classes: no more of it than there are.
    care = care._replace(window=min(care.window, 2 * classes))
    member = np.repeat(np.arange(classes), np.diff(pods.start))
    part = max(_PART // care.window, 1) * care.window
    begins = range(-shift * care.window // 2, classes, part)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda begin: share_windows(pods, least, care, begin, begin + part, member), begins))
    return member


# Arrays go to the innermost loops by themselves: a tuple of arrays counts references at every look.


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
    axes, last = edge.shape[2], near.shape[1] - 1
    way = np.empty(last + 1, np.float32)
    for one in range(classes):
        for rank in range(last + 1):
            near[one, rank], way[rank] = -1, np.inf
        for other in range(classes):
            if other == one:
                continue
            apart = np.float32(0.0)
            for axis in range(axes):
                apart += abs(edge[one, 0, axis] + edge[one, 2, axis] - edge[other, 0, axis] - edge[other, 2, axis])
            if apart < way[last]:
                rank = last
                while rank > 0 and way[rank - 1] > apart:
                    near[one, rank], way[rank] = near[one, rank - 1], way[rank - 1]
                    rank -= 1
                near[one, rank], way[rank] = other, apart


@helper
def _grown(box: Boxes, edge: Boxes, near: Integers, pod: int, here: int, choice: Integers, grows: Boxes) -> None:
    """The near classes that grow least with a pod, the least first, -1 for none. Changes `choice`."""
    last = choice.size - 1
    for rank in range(last + 1):
        choice[rank], grows[rank] = -1, np.inf
    for place in range(near.shape[1]):
        there = near[here, place]
        if there < 0:
            break
        more = _width(edge, there, box, -1, pod) - edge[there, 4, 0]
        if more < grows[last]:
            rank = last
            while rank > 0 and grows[rank - 1] > more:
                choice[rank], grows[rank] = choice[rank - 1], grows[rank - 1]
                rank -= 1
            choice[rank], grows[rank] = there, more


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
    best, swap = -_LESS, -1
    spare, room = tally[here, 1] - rows - least.rows, tally[here, 2] - people - least.people
    if spare >= 0 and room >= 0 and tally[there, 0] < members.shape[1] - 2:
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


@helper
def _can_spare(weight: Weights, tally: Integers, pod: int, cls: int, least: Least) -> bool:
    """Whether a class is large enough without one of its pods."""
    enough: bool = tally[cls, 1] - weight[pod, 0] >= least.rows and tally[cls, 2] - weight[pod, 1] >= least.people
    return enough


@helper
def _spared(box: Boxes, weight: Weights, tally: Integers, edge: Boxes, pod: int, cls: int) -> float:
    """What a class loses less without one of its pods."""
    people = tally[cls, 2]
    spared: float = edge[cls, 4, 0] * people - _width(edge, cls, box, pod, -1) * (people - weight[pod, 1])
    return spared


@helper
def _next_to_come(pods: PodRuns, window: ClassWindow, here: int, opened: int, least: Least) -> tuple[int, int]:
    """The pod, of a class or those near it, whose coming to a new class costs least, and its class; -1 for none."""
    box, weight, near = pods.box, pods.weight, window.near
    members, tally, edge = window.members, window.tally, window.edge
    best, pod, origin = np.inf, -1, -1
    now = edge[opened, 4, 0] * tally[opened, 2]
    for rank in range(-1, near.shape[1]):
        cls = here if rank < 0 else near[here, rank]
        if cls < 0:
            break
        for at in range(tally[cls, 0]):
            one = members[cls, at]
            if not _can_spare(weight, tally, one, cls, least):
                continue
            cost = _width(edge, opened, box, -1, one) * (tally[opened, 2] + weight[one, 1]) - now
            cost -= _spared(box, weight, tally, edge, one, cls)
            if cost < best:
                best, pod, origin = cost, one, cls
    return pod, origin


@helper
def _open(pods: PodRuns, window: ClassWindow, first: int, here: int, opened: int, least: Least) -> bool:
    """Open a class for a pod and the nearest that others can spare, if that loses less."""
    box, weight, came = pods.box, pods.weight, window.came
    members, tally, edge = window.members, window.tally, window.edge
    pod, cls, gain, count, enough = first, here, 0.0, 0, False
    tally[opened, 0] = tally[opened, 1] = tally[opened, 2] = 0
    while pod >= 0 and count < came.shape[0] and not enough:
        gain += _spared(box, weight, tally, edge, pod, cls)
        came[count, 0], came[count, 1] = pod, cls
        count += 1
        _move(weight, members, tally, pod, cls, opened)
        _edges(box, members, tally, edge, cls)
        _edges(box, members, tally, edge, opened)
        enough = tally[opened, 1] >= least.rows and tally[opened, 2] >= least.people
        if not enough:
            pod, cls = _next_to_come(pods, window, here, opened, least)
    if enough and edge[opened, 4, 0] * tally[opened, 2] < gain - _LESS:
        return True
    for at in range(count):
        _move(weight, members, tally, came[at, 0], opened, came[at, 1])
        _edges(box, members, tally, edge, came[at, 1])
    return False


@kernel
def share_windows(pods: PodRuns, least: Least, care: Care, begin: int, end: int, member: Integers) -> None:
    """Move pods to near classes, exchange two, or open classes, where that loses less. Changes `member`.

    begin, end  the classes of so many windows; there may be none before the first and after the last
    """
    box, weight, start = pods.box, pods.weight, pods.start
    window, worth = care.window, np.float32(care.worth)
    # What is opened must find room, too.
    most, many = window + window // 2 + 1, max(_MOST, 2 * least.rows + 2)
    edge = np.empty((most, 5, box.shape[1] // 2), np.float32)
    number, tally = np.empty(most, np.int64), np.zeros((most, 3), np.int64)
    members, near = np.empty((most, many + 1), np.int64), np.empty((window, care.near), np.int64)
    room = ClassWindow(members, tally, edge, near, np.empty((many, 2), np.int64))
    choice, grows = np.empty(care.tries, np.int64), np.empty(care.tries, np.float32)
    for at_class in range(begin, end, window):
        classes = 0
        for cls in range(max(at_class, 0), min(at_class + window, start.size - 1)):
            if start[cls + 1] - start[cls] >= many:
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
                _grown(box, edge, near, pod, here, choice, grows)
                best, there, third = -_LESS, -1, -1
                for rank in range(care.tries):
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
        opened = classes
        for here in range(classes):
            for at in range(tally[here, 0] - 1, -1, -1):
                if opened == most or at >= tally[here, 0]:
                    continue
                pod = members[here, at]
                if not _can_spare(weight, tally, pod, here, least):
                    continue
                if _open(pods, room, pod, here, opened, least):
                    # No other window has these numbers.
                    number[opened] = start.size + 2 * (at_class + window) + opened - classes
                    opened += 1
        for cls in range(opened):
            for at in range(tally[cls, 0]):
                member[members[cls, at]] = number[cls]
