"""Classes of pods: cut by gain, then shared out again, and people with the same seat exchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.boxes import boxes_of
from sequester.methods.pods.classes.cut_kernels import cut_pods
from sequester.methods.pods.classes.exchange_kernels import ClassRows, Seatmates, exchange
from sequester.methods.pods.classes.share_kernels import open_classes, rotate_pods, share_pods
from sequester.methods.pods.classes.shelf_kernels import Least, PodBoxes, sharing

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_NEAR = 16
"""Pods nearby to whose classes a pod may go."""

_WHO = 10
"""People with the same seat with whom somebody may change places, of more rows than `_FEW`."""

_FEW = 8_000
"""Rows up to which everybody with the same seat is looked at, which takes time by the square, and more often."""

_AGAIN = 4
"""How often classes are opened, and pods turned round three of them, before people are exchanged."""

_APART = 64.0
"""How far apart people are put who cannot change places: farther than any two are."""

_MANY = 200_000
"""Rows beyond which everything is looked at once, to save time."""


def group(
    place: Places, real: NDArray[np.bool_], pod: Integers, key: Integers, least: Least, *, rounds: int = 3
) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places.

    place  (rows, attributes); of rows about nobody it is not looked at, they are where their pod is
    key    per row, who may change places: those with the same number
    """
    pod = pod.copy()
    rounds = rounds if len(pod) <= _MANY else 1
    member = np.zeros(len(pod), np.int64)
    for turn in range(rounds):
        boxes = pod_boxes(place, real, pod)
        if turn == 0:
            of_pod = cut_pods(boxes, least).astype(np.int64)
        else:
            of_pod = np.empty(len(boxes.size), np.int64)
            of_pod[pod] = member
            of_pod = _split(of_pod, boxes, least)
        _share(of_pod, boxes, least, again=_AGAIN if len(pod) <= _MANY else 0, passes=_passes(len(pod)))
        of_pod = np.unique(of_pod, return_inverse=True)[1].ravel()
        member = of_pod[pod].astype(np.int64)
        member, pod, moved = exchanged(member, place, real, pod, key, least.people)
        if not moved and turn:
            break
    return member, pod


def _passes(rows: int) -> int:
    """How often everything is tried: of many people not as often."""
    return 6 if rows <= _FEW else 2


def _share(of_pod: Integers, boxes: PodBoxes, least: Least, *, again: int, passes: int) -> None:
    """Move pods, open classes and turn pods round three of them. Changes `of_pod`."""
    near, pods = _near(boxes), len(of_pod)
    came = np.empty((pods, 2), np.int64)
    share_pods(sharing(of_pod, boxes, near), least, passes)
    for _ in range(again):
        classes = int(of_pod.max()) + 1
        changed = open_classes(sharing(of_pod, boxes, near, spare=pods), classes, least, came)
        changed += rotate_pods(sharing(of_pod, boxes, near), least)
        if not changed:
            break
        share_pods(sharing(of_pod, boxes, near), least, passes)


def exchanged(
    member: Integers, place: Places, real: NDArray[np.bool_], pod: Integers, key: Integers, fewest: int
) -> tuple[Integers, Integers, int]:
    """Classes and pods of all rows after people with the same key have changed places, and how often they did.

    fewest  people that a class keeps
    """
    order = np.argsort(key, kind="stable").astype(np.int64)
    begin = np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), len(order)).astype(np.int64)
    near = np.zeros((len(pod), 0), np.int64) if len(pod) <= _FEW else _fitting(place, real, member, key)
    rows = _rows(member.astype(np.int64), place, real, pod.copy())
    moved = exchange(rows, Seatmates(order, begin, near), fewest, _passes(len(pod)))
    return rows.member, rows.pod, moved


def _rows(member: Integers, place: Places, real: NDArray[np.bool_], pod: Integers) -> ClassRows:
    """Rows by class."""
    classes = int(member.max()) + 1
    order = np.argsort(member, kind="stable").astype(np.int64)
    start = np.searchsorted(member[order], np.arange(classes + 1)).astype(np.int64)
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    people = np.bincount(member[real], minlength=classes).astype(np.int64)
    return ClassRows(member, pod, order, start, at, place, real, people, np.empty(classes))


def _split(of_pod: Integers, boxes: PodBoxes, least: Least) -> Integers:
    """Classes that have become large enough, cut again."""
    rows = np.bincount(of_pod, weights=boxes.size)
    into, classes = of_pod.copy(), len(rows)
    for cls in np.flatnonzero(rows >= 2 * least.rows).tolist():
        own = np.flatnonzero(of_pod == cls)
        part = cut_pods(PodBoxes(boxes.low[own], boxes.high[own], boxes.size[own], boxes.people[own]), least)
        into[own] = np.where(part == 0, cls, classes + part)
        classes += int(part.max()) + 1
    return np.unique(into, return_inverse=True)[1].ravel().astype(np.int64)


def pod_boxes(place: Places, real: NDArray[np.bool_], pod: Integers) -> PodBoxes:
    """The boxes of the people of every pod, and how many rows and people it has."""
    size = np.bincount(pod).astype(np.int64)
    low, high = (np.full((len(size), place.shape[1]), side) for side in (np.inf, -np.inf))
    own = np.flatnonzero(real)
    present, index = np.unique(pod[own], return_inverse=True)
    low[present], high[present] = boxes_of(index, place[own])
    return PodBoxes(low, high, size, np.bincount(pod[real], minlength=len(size)).astype(np.int64))


def _near(boxes: PodBoxes) -> Integers:
    """Per pod, others nearby."""
    from scipy.spatial import cKDTree

    with np.errstate(invalid="ignore"):
        # A pod of decoys is nowhere.
        center = np.nan_to_num(boxes.low + boxes.high, posinf=0, neginf=0)
    count = min(_NEAR + 1, len(center))
    nearest = cKDTree(center).query(center, k=count, p=1)[1].reshape(len(center), count)
    return np.asarray(nearest, np.int64)


def _fitting(place: Places, real: NDArray[np.bool_], member: Integers, key: Integers) -> Integers:
    """Per row, people with the same key who are nearest to where its class is."""
    from scipy.spatial import cKDTree

    own = np.flatnonzero(real)
    count = np.maximum(np.bincount(member[own]), 1)[:, None]
    center = np.column_stack([np.bincount(member[own], weights=axis) for axis in place[own].T]) / count
    there = np.column_stack([place[own], key[own] * _APART])
    here = np.column_stack([center[member], key * _APART])
    far, who = cKDTree(there).query(here, k=min(_WHO, len(own)), p=1, distance_upper_bound=_APART / 2, workers=-1)
    return np.where(np.isfinite(far), np.append(own, -1)[who], -1).astype(np.int64).reshape(len(place), -1)
