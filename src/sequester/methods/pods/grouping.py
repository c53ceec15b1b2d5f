"""Classes of pods: cut by gain, then shared out again, and people with the same seat exchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.cuts import boxes_of, cut_pods

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_NEAR, _WHO, _FEW = 16, 10, 8_000
"""Pods nearby that are looked at, people with the same seat, and the rows up to which all of these are."""

_AGAIN = 4
"""How often classes are opened, and pods turned round three of them, before people are exchanged."""

_APART = 64.0

_MANY = 200_000
"""Rows beyond which everything is looked at once."""


def group(
    place: Places, real: NDArray[np.bool_], pod: Integers, key: Integers, k: int, *, rounds: int = 3
) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places.

    place  (rows, attributes); of rows about nobody it is not looked at, they are where their pod is
    key    per row, who may change places: those with the same number
    """
    from sequester.methods.pods.opening import open_classes
    from sequester.methods.pods.rotating import rotate_pods
    from sequester.methods.pods.sharing import share_pods
    from sequester.methods.pods.shelves import Pods

    pod = pod.copy()
    # Of many people not everything is tried.
    few = len(pod) <= _FEW
    passes = 6 if few else 2
    rounds = rounds if len(pod) <= _MANY else 1
    member = np.zeros(len(pod), np.int64)
    for turn in range(rounds):
        low, high = _boxes(place, real, pod)
        size = np.bincount(pod).astype(np.int64)
        people = np.bincount(pod[real], minlength=len(size)).astype(np.int64)
        if turn == 0:
            of_pod = cut_pods(low, high, size, k).astype(np.int64)
        else:
            of_pod = np.empty(len(size), np.int64)
            of_pod[pod] = member
            of_pod = _split(of_pod, low, high, size, k)
        pods = Pods(low, high, size, people, _near(low, high))
        share_pods(of_pod, pods, k, passes)
        for _ in range(_AGAIN if len(pod) <= _MANY else 0):
            if not open_classes(of_pod, pods, k) + rotate_pods(of_pod, pods, k):
                break
            share_pods(of_pod, pods, k, passes)
        of_pod = np.unique(of_pod, return_inverse=True)[1].ravel()
        member = of_pod[pod].astype(np.int64)
        member, pod, moved = exchanged(member, place, real, pod, key)
        if not moved and turn:
            break
    return member, pod


def exchanged(
    member: Integers, place: Places, real: NDArray[np.bool_], pod: Integers, key: Integers
) -> tuple[Integers, Integers, int]:
    """Classes and pods of all rows after people with the same key have changed places, and how often they did."""
    from sequester.methods.pods.sharing import exchange

    # Of many people not everything is tried.
    few = len(pod) <= _FEW
    member, pod = member.astype(np.int64), pod.copy()
    order = np.argsort(key, kind="stable")
    begin = np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), len(order)).astype(np.int64)
    rows = np.argsort(member, kind="stable").astype(np.int64)
    start = np.searchsorted(member[rows], np.arange(int(member.max()) + 2)).astype(np.int64)
    at = np.empty(len(rows), np.int64)
    at[rows] = np.arange(len(rows))
    who = np.zeros((len(pod), 0), np.int64) if few else _fitting(place, real, member, key)
    passes = 6 if few else 2
    moved = exchange(member, pod, start, rows, at, place, real, order.astype(np.int64), begin, who, passes)
    return member, pod, int(moved)


def _split(of_pod: Integers, low: Places, high: Places, size: Integers, k: int) -> Integers:
    """Classes that have become large enough, cut again."""
    rows = np.bincount(of_pod, weights=size)
    found, classes = of_pod.copy(), len(rows)
    for cls in np.flatnonzero(rows >= 2 * k).tolist():
        own = np.flatnonzero(of_pod == cls)
        part = cut_pods(low[own], high[own], size[own], k)
        found[own] = np.where(part == 0, cls, classes + part)
        classes += int(part.max()) + 1
    return np.unique(found, return_inverse=True)[1].ravel().astype(np.int64)


def _boxes(place: Places, real: NDArray[np.bool_], pod: Integers) -> tuple[Places, Places]:
    """The boxes of the people of every pod."""
    count = int(pod.max()) + 1
    low, high = np.full((count, place.shape[1]), np.inf), np.full((count, place.shape[1]), -np.inf)
    own = np.flatnonzero(real)
    present, index = np.unique(pod[own], return_inverse=True)
    low[present], high[present] = boxes_of(index, place[own])
    return low, high


def _near(low: Places, high: Places) -> Integers:
    """Per pod, others nearby."""
    from scipy.spatial import cKDTree

    with np.errstate(invalid="ignore"):
        # A pod of decoys is nowhere.
        center = np.nan_to_num(low + high, posinf=0, neginf=0)
    count = min(_NEAR + 1, len(center))
    found = cKDTree(center).query(center, k=count, p=1)[1].reshape(len(center), count)
    return np.asarray(found, np.int64)


def _fitting(place: Places, real: NDArray[np.bool_], member: Integers, key: Integers) -> Integers:
    """Per row, people with the same key who are nearest to where its class is."""
    from scipy.spatial import cKDTree

    own = np.flatnonzero(real)
    count = np.maximum(np.bincount(member[own]), 1)[:, None]
    center = np.column_stack([np.bincount(member[own], weights=axis) for axis in place[own].T]) / count
    there = np.column_stack([place[own], key[own] * _APART])
    here = np.column_stack([center[member], key * _APART])
    far, found = cKDTree(there).query(here, k=min(_WHO, len(own)), p=1, distance_upper_bound=_APART / 2, workers=-1)
    return np.where(np.isfinite(far), np.append(own, -1)[found], -1).astype(np.int64).reshape(len(place), -1)
