"""Pods by class while they are moved: lists of each class's pods, and its rows and people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray


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


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def put(pod: Any, to: Any, shelves: Any, pods: Any) -> None:
    """Add a pod to a class."""
    shelves.follows[pod], shelves.leads[pod] = shelves.head[to], -1
    if shelves.head[to] >= 0:
        shelves.leads[shelves.head[to]] = pod
    shelves.head[to] = pod
    shelves.rows[to] += pods.size[pod]
    shelves.persons[to] += pods.people[pod]


@numba.njit(cache=True, nogil=True)
def move(pod: Any, to: Any, member: Any, shelves: Any, pods: Any) -> None:
    """Move a pod to another class."""
    here, before, after = member[pod], shelves.leads[pod], shelves.follows[pod]
    if before >= 0:
        shelves.follows[before] = after
    else:
        shelves.head[here] = after
    if after >= 0:
        shelves.leads[after] = before
    shelves.rows[here] -= pods.size[pod]
    shelves.persons[here] -= pods.people[pod]
    put(pod, to, shelves, pods)
    member[pod] = to


@numba.njit(cache=True, nogil=True)
def lost(cls: Any, skip: Any, add: Any, shelves: Any, pods: Any) -> Any:
    """What the people of a class lose together, without one of its pods and with another; -1: none."""
    total = 0.0
    for axis in range(pods.low.shape[1]):
        least, most = np.inf, -np.inf
        pod = shelves.head[cls]
        while pod >= 0:
            if pod != skip:
                least, most = min(least, pods.low[pod, axis]), max(most, pods.high[pod, axis])
            pod = shelves.follows[pod]
        if add >= 0:
            least, most = min(least, pods.low[add, axis]), max(most, pods.high[add, axis])
        if most > least:
            total += min(most - least, 1.0)
    persons = shelves.persons[cls]
    if skip >= 0:
        persons -= pods.people[skip]
    if add >= 0:
        persons += pods.people[add]
    return total * persons
