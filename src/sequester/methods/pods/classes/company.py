"""Classes of pods in which every label has company: enough rows that may be its own, in whatever is published later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.company_kernels import (
    Asked,
    Company,
    PodBoxes,
    Ranking,
    Times,
    join_classes,
    list_pods,
    move_pods,
    split_classes,
)
from sequester.methods.pods.classes.grouping import boxes_of, exchanged
from sequester.methods.pods.pairing.seats import PodSeats
from sequester.methods.pods.task import Least

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_NEAR, _SAME = 8, 6
"""Pods nearby to whose classes a pod may go, and for each of its labels pods that have it."""

_APART = 64.0
"""How far apart pods are put that do not have the label which is looked for: farther than any two are."""

_PRICES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 2.4, 3.2)
"""Prices of a row that company lacks, one after the other: in small steps, so that what is near is joined first."""

_HASTE, _MANY = (0.1, 0.4, 1.6), 60_000
"""Fewer prices for more rows than so many, to save time."""

_ANY = 1e3
"""At last a row has any price: more than whatever a class can lose by it."""


def group_company(
    place: Places, people: int, pod: Integers, key: Integers, label: Integers, least: Least, need: int
) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places.

    As `grouping.group`; `label` per row. In every class each label has company of `need` rows, where that can be.
    """
    of_pod = np.arange(int(pod.max()) + 1)
    member = pod
    shown = labels_of(pod, label)
    turns = (_PRICES, _PRICES[-2:], _PRICES[-1:]) if len(pod) <= _MANY else (_HASTE, _HASTE[-1:])
    for turn, prices in enumerate(turns):
        boxes = _pod_boxes(place[:people], pod)
        if turn:
            of_pod = np.empty(len(boxes.size), np.int64)
            of_pod[pod] = member
        _settle(of_pod, boxes, shown, (*least, need), prices)
        of_pod = np.unique(of_pod, return_inverse=True)[1].ravel()
        member, pod, moved = exchanged(of_pod[pod], place, people, pod, key, least.people)
        if not moved and turn:
            break
    return member, pod


def _settle(
    of_pod: Integers, boxes: PodBoxes, label: Integers, asked: tuple[int, int, int], prices: tuple[float, ...]
) -> None:
    """Join classes and move pods at rising prices, until nothing is lacking that can be had. Changes `of_pod`."""
    near, count = _near_pods(boxes, label), len(of_pod)
    never = np.full(count, -1, np.int64)

    def company() -> Company:
        return Company(of_pod, list_pods(of_pod, boxes, count), boxes, label, np.empty(count))

    for price in (*prices, _ANY, _ANY):
        wanted = Asked(*asked, price)
        while join_classes(company(), wanted, near, never.copy()) and price == _ANY:
            pass
        times = Times(np.zeros(count, np.int64), np.ones(count, np.int64), never.copy())
        move_pods(company(), wanted, near, times)
        split_classes(company(), wanted, Ranking(never.copy(), never.copy(), np.empty(count)))


def complete(filled: PodSeats, need: int) -> None:
    """Pods of decoys beside those with a label that has too little company in the whole table."""
    for label in np.unique(filled.label[filled.label >= 0]).tolist():
        pods = np.flatnonzero((filled.label == label).any(axis=1))
        seats = (filled.taken >= -1).sum(axis=1)
        lacking = need - int(seats[pods].sum())
        if lacking > 0:
            # The smallest: fewest decoys too many.
            one = filled.label[[pods[np.argmin(seats[pods])]]]
            filled.add_decoys(np.repeat(one, -(-lacking // int((one >= 0).sum())), axis=0))


def spared(member: Integers, pod: Integers, label: Integers, idle: NDArray[np.bool_], need: int) -> NDArray[np.bool_]:
    """Which rows of idle pods can go: no label of their class is left with less company than it needs."""
    shown, size = labels_of(pod, label), np.bincount(pod)
    of_pod = np.zeros(len(size), np.int64)
    of_pod[pod] = member
    gone = np.zeros(len(size), np.bool_)
    for one in np.unique(pod[idle]).tolist():
        beside = np.flatnonzero((of_pod == of_pod[one]) & ~gone & (np.arange(len(size)) != one))
        left = [int(size[beside[(shown[beside] == own).any(axis=1)]].sum()) for own in shown[one] if own >= 0]
        gone[one] = all(rows == 0 or rows >= need for rows in left)
    return np.asarray(gone[pod])


def labels_of(pod: Integers, label: Integers) -> Integers:
    """(pods, most labels) the different labels of every pod, -1 after the last."""
    width = int(label.max()) + 1
    pair = np.unique(pod * width + label)
    of, own = pair // width, pair % width
    at = np.arange(len(of)) - np.searchsorted(of, of)
    found = np.full((int(pod.max()) + 1, int(at.max()) + 1), -1, np.int64)
    found[of, at] = own
    return found


def _pod_boxes(place: Places, pod: Integers) -> PodBoxes:
    """The boxes of the people of every pod, and how many rows and people it has; rows about people come first."""
    size, own = np.bincount(pod), pod[: len(place)]
    low, high = (np.full((len(size), place.shape[1]), side) for side in (np.inf, -np.inf))
    present, index = np.unique(own, return_inverse=True)
    low[present], high[present] = boxes_of(index, place)
    return PodBoxes(low, high, size, np.bincount(own, minlength=len(size)))


def _near_pods(boxes: PodBoxes, label: Integers) -> Integers:
    """Per pod, others nearby, and for each of its labels others nearby that have it; -1 for none."""
    from scipy.spatial import cKDTree

    with np.errstate(invalid="ignore"):
        # A pod of decoys is nowhere.
        center = np.nan_to_num((boxes.low + boxes.high) / 2, posinf=0, neginf=0)
    count = len(center)
    near = [cKDTree(center).query(center, k=min(_NEAR + 1, count), p=1)[1].reshape(count, -1)]
    pod, seat = np.nonzero(label >= 0)
    there = np.column_stack([center[pod], label[pod, seat] * _APART])
    far, which = cKDTree(there).query(there, k=min(_SAME + 1, len(pod)), p=1, distance_upper_bound=_APART / 2)
    which = np.where(np.isfinite(far), np.append(pod, -1)[which], -1).reshape(len(pod), -1)
    for column in range(label.shape[1]):
        own = np.full((count, which.shape[1]), -1, np.int64)
        own[pod[seat == column]] = which[seat == column]
        near.append(own)
    return np.ascontiguousarray(np.hstack(near).astype(np.int64))
