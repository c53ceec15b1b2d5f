"""Pods by class while they are moved: the pods of each class as a linked list, with its rows and people.

Everything that moves pods between classes stands on these. Lists are made outside, since allocating arrays and sorting
is most of what a short kernel costs to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper

Integers = NDArray[np.int64]
Places = NDArray[np.float64]


class Least(NamedTuple):
    """What every class keeps: so many rows, and so many of them about somebody."""

    rows: int
    people: int


class PodBoxes(NamedTuple):
    """Pods to be put into classes.

    low, high     (pods, attributes) boxes of their people; of a pod without any from infinity to minus infinity
    size, people  rows and people of each
    """

    low: Places
    high: Places
    size: Integers
    people: Integers


class Shelves(NamedTuple):
    """The pods of every class as a linked list, -1 at its ends, and how many rows and people a class has."""

    head: Integers
    follows: Integers
    leads: Integers
    rows: Integers
    people: Integers


def shelve(member: Integers, boxes: PodBoxes, classes: int) -> Shelves:
    """The shelves of so many classes, given every pod's class; the last pod of each comes first."""
    count = len(member)
    order = np.argsort(member, kind="stable")[::-1]
    own = member[order]
    begins = np.flatnonzero(np.diff(own, prepend=-1))
    head, follows, leads = (np.full(size, -1, np.int64) for size in (classes, count, count))
    head[own[begins]] = order[begins]
    inside = np.flatnonzero(np.diff(own, append=-1) == 0)
    follows[order[inside]], leads[order[inside + 1]] = order[inside + 1], order[inside]
    rows, people = (np.bincount(member, each, classes).astype(np.int64) for each in (boxes.size, boxes.people))
    return Shelves(head, follows, leads, rows, people)


@helper
def move(pod: int, to: int, member: Integers, shelves: Shelves, boxes: PodBoxes) -> None:
    """Move a pod to the front of another class."""
    here, before, after = member[pod], shelves.leads[pod], shelves.follows[pod]
    if before >= 0:
        shelves.follows[before] = after
    else:
        shelves.head[here] = after
    if after >= 0:
        shelves.leads[after] = before
    first = shelves.head[to]
    shelves.follows[pod], shelves.leads[pod] = first, -1
    if first >= 0:
        shelves.leads[first] = pod
    shelves.head[to] = pod
    shelves.rows[here] -= boxes.size[pod]
    shelves.rows[to] += boxes.size[pod]
    shelves.people[here] -= boxes.people[pod]
    shelves.people[to] += boxes.people[pod]
    member[pod] = to


@helper
def keeps(cls: int, out: int, into: int, least: Least, shelves: Shelves, boxes: PodBoxes) -> bool:
    """Whether a class is large enough without one of its pods and with another; -1: none."""
    rows, people = shelves.rows[cls], shelves.people[cls]
    if out >= 0:
        rows, people = rows - boxes.size[out], people - boxes.people[out]
    if into >= 0:
        rows, people = rows + boxes.size[into], people + boxes.people[into]
    enough: bool = rows >= least.rows and people >= least.people
    return enough


@helper
def width_of(cls: int, skip: int, add: int, shelves: Shelves, boxes: PodBoxes) -> float:
    """Summed widths of the box of a class, without one of its pods and with another; -1: none."""
    # Arrays by themselves: a tuple of arrays in the innermost loop counts references.
    follows, low, high = shelves.follows, boxes.low, boxes.high
    total = 0.0
    for axis in range(low.shape[1]):
        least, most = np.inf, -np.inf
        pod = shelves.head[cls]
        while pod >= 0:
            if pod != skip:
                least, most = min(least, low[pod, axis]), max(most, high[pod, axis])
            pod = follows[pod]
        if add >= 0:
            least, most = min(least, low[add, axis]), max(most, high[add, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


class Sharing(NamedTuple):
    """Pods that are shared out among classes.

    member  per pod, its class
    near    (pods, any) others nearby, -1 for none
    lost    room: per class, what its people lose together
    """

    member: Integers
    shelves: Shelves
    boxes: PodBoxes
    near: Integers
    lost: Places


def sharing(member: Integers, boxes: PodBoxes, near: Integers, *, spare: int = 0) -> Sharing:
    """Pods in classes, and room for more classes."""
    classes = int(member.max()) + 1 + spare
    return Sharing(member, shelve(member, boxes, classes), boxes, near, np.empty(classes))


@helper
def lost(pods: Sharing, cls: int, skip: int, add: int) -> float:
    """What the people of a class lose together, without one of its pods and with another; -1: none."""
    people = pods.shelves.people[cls]
    if skip >= 0:
        people -= pods.boxes.people[skip]
    if add >= 0:
        people += pods.boxes.people[add]
    together: float = width_of(cls, skip, add, pods.shelves, pods.boxes) * people
    return together
