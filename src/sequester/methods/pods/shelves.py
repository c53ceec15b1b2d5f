"""Pods by class while they are moved: lists of each class's pods, and its rows and people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper


class Pods(NamedTuple):
    """Pods that are shared out among classes.

    low, high     (pods, attributes) boxes of their people
    size, people  rows and people of each
    near          (pods, any) others nearby, -1 for none
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    size: NDArray[np.int64]
    people: NDArray[np.int64]
    near: NDArray[np.int64]


class Shelves(NamedTuple):
    """The pods of every class as a linked list, and how many rows and people a class has."""

    head: NDArray[np.int64]
    follows: NDArray[np.int64]
    leads: NDArray[np.int64]
    rows: NDArray[np.int64]
    persons: NDArray[np.int64]


@helper
def link(pod: Any, cls: Any, head: Any, follows: Any, leads: Any) -> None:
    """Put a pod at the head of the list of a class."""
    follows[pod], leads[pod] = head[cls], -1
    if head[cls] >= 0:
        leads[head[cls]] = pod
    head[cls] = pod


@helper
def unlink(pod: Any, cls: Any, head: Any, follows: Any, leads: Any) -> None:
    """Take a pod out of the list of its class."""
    if leads[pod] >= 0:
        follows[leads[pod]] = follows[pod]
    else:
        head[cls] = follows[pod]
    if follows[pod] >= 0:
        leads[follows[pod]] = leads[pod]


@helper
def width_of(cls: Any, skip: Any, add: Any, head: Any, follows: Any, low: Any, high: Any) -> Any:
    """Summed widths of the box of a class, without one of its pods and with another; -1: none."""
    total = 0.0
    for axis in range(low.shape[1]):
        least, most = np.inf, -np.inf
        pod = head[cls]
        while pod >= 0:
            if pod != skip:
                least, most = min(least, low[pod, axis]), max(most, high[pod, axis])
            pod = follows[pod]
        if add >= 0:
            least, most = min(least, low[add, axis]), max(most, high[add, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


@helper
def shelve(member: Any, pods: Any, spare: int) -> Any:
    """The shelves of these classes, and room for more."""
    classes = np.int64(0)
    for pod in range(member.size):
        classes = max(classes, member[pod] + 1)
    shelves = Shelves(
        np.full(classes + spare, -1, np.int64),
        np.full(member.size, -1, np.int64),
        np.full(member.size, -1, np.int64),
        np.zeros(classes + spare, np.int64),
        np.zeros(classes + spare, np.int64),
    )
    for pod in range(member.size):
        put(pod, member[pod], shelves, pods)
    return shelves, classes


@helper
def put(pod: Any, to: Any, shelves: Any, pods: Any) -> None:
    """Add a pod to a class."""
    link(pod, to, shelves.head, shelves.follows, shelves.leads)
    shelves.rows[to] += pods.size[pod]
    shelves.persons[to] += pods.people[pod]


@helper
def move(pod: Any, to: Any, member: Any, shelves: Any, pods: Any) -> None:
    """Move a pod to another class."""
    here = member[pod]
    unlink(pod, here, shelves.head, shelves.follows, shelves.leads)
    shelves.rows[here] -= pods.size[pod]
    shelves.persons[here] -= pods.people[pod]
    put(pod, to, shelves, pods)
    member[pod] = to


@helper
def lost(cls: Any, skip: Any, add: Any, shelves: Any, pods: Any) -> Any:
    """What the people of a class lose together, without one of its pods and with another; -1: none."""
    persons = shelves.persons[cls]
    if skip >= 0:
        persons -= pods.people[skip]
    if add >= 0:
        persons += pods.people[add]
    return width_of(cls, skip, add, shelves.head, shelves.follows, pods.low, pods.high) * persons
