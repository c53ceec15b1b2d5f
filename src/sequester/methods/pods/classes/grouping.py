"""Classes of pods: cut by gain, then shared out again, and people with the same seat exchanged.

How much is tried falls with the number of rows, so that time grows with it and never jumps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.cut_kernels import cut_pods, cut_runs
from sequester.methods.pods.classes.exchange_kernels import ClassRows, Seatmates, exchange
from sequester.methods.pods.classes.share_kernels import Care, PodRuns, share_pods
from sequester.methods.pods.task import Least

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_TURNS, _ROUNDS = (2, 8), 3
"""How often classes are shared out again, at least and at most, before people are exchanged, and how often both."""

_SHARED, _COMPARED, _TRIED = 600_000, 30_000_000, 1_000_000
"""Rows for whom classes are shared out once, classes that are compared by rows, and exchanges of people that are tried:
of more rows, as much less for each."""


def group(place: Places, people: int, pod: Integers, key: Integers, least: Least) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places.

    place   (rows, attributes); those about nobody are where their pod is
    people  how many rows are about somebody: they come first
    key     per row, who may change places: those with the same number
    """
    rows, count = len(pod), int(pod.max()) + 1
    tries = min(max(360_000 // rows, 3), 6)
    care = Care(min(max(_COMPARED // rows, 64), 512), 2 * tries + 4, tries, min(rows / 3e6, 0.05))
    turns = min(max(_SHARED // rows, _TURNS[0]), _TURNS[1])
    member, start = np.zeros(rows, np.int64), np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        box = _boxes(place, people, pod)
        weight = np.empty((count, 2), np.int32)
        weight[:, 0], weight[:, 1] = np.bincount(pod, minlength=count), np.bincount(pod[:people], minlength=count)
        if not len(start):
            order, start = cut_pods(box, weight, least)
        else:
            of_pod = np.empty(count, np.int64)
            of_pod[pod] = member
            order, start = runs_of(of_pod)
            box, weight = box[order], weight[order]
        for turn in range(turns):
            shared = share_pods(PodRuns(box, weight, np.append(start, count)), least, turn % 2, care)
            again, start = runs_of(shared)
            box, weight, order = box[again], weight[again], order[again]
            # Classes that have become large enough are cut again.
            start = np.sort(cut_runs(box, weight, order, np.append(start, count), 0, least))
        of_pod = np.empty(count, np.int64)
        of_pod[order] = np.repeat(np.arange(len(start)), np.diff(start, append=count))
        member, pod, moved = exchanged(of_pod[pod], place, people, pod, key, least.people)
        if moved < rows / 1000:
            break
    return member, pod


def cut(low: Places, high: Places, weight: NDArray[np.int32], least: Least) -> Integers:
    """The class of every pod after cuts alone, given its box, and its rows and people (pods, 2)."""
    order, start = cut_pods(np.hstack([low, high]).astype(np.float32), weight, least)
    found = np.empty(len(order), np.int64)
    found[order] = np.repeat(np.arange(len(start)), np.diff(start, append=len(order)))
    return found


def exchanged(
    member: Integers, place: Places, people: int, pod: Integers, key: Integers, fewest: int
) -> tuple[Integers, Integers, int]:
    """Classes and pods of all rows after people with the same key have changed places, and how often they did.

    fewest  people that a class keeps
    """
    classes, real = int(member.max()) + 1, np.arange(len(pod)) < people
    order, start = runs_of(member)
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    there = np.bincount(member[:people], minlength=classes)
    rows = ClassRows(
        member.copy(), pod.copy(), order, np.append(start, len(order)), at, place, real, there, np.empty(classes)
    )
    # Classes that stand near have numbers that are near.
    mates = np.lexsort((member, key))
    begin = np.append(np.flatnonzero(np.diff(key[mates], prepend=-1)), len(mates))
    moved = exchange(rows, Seatmates(mates, begin, max(_TRIED // len(pod), 2)), fewest)
    return rows.member, rows.pod, moved


def runs_of(member: Integers) -> tuple[Integers, Integers]:
    """An order in which those of one class stand together, and where each class begins."""
    order = np.argsort(member, kind="stable")
    return order, np.flatnonzero(np.diff(member[order], prepend=-1))


def boxes_of(group: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and largest of every column of `values` (rows, columns), per group; groups are numbered from 0."""
    order, start = runs_of(group)
    sides = values[order]
    return np.minimum.reduceat(sides, start, axis=0), np.maximum.reduceat(sides, start, axis=0)


def _boxes(place: Places, people: int, pod: Integers) -> NDArray[np.float32]:
    """(pods, 2 attributes) least, then largest of the people of every pod; of its decoys where it has nobody else."""
    there = np.full(int(pod.max()) + 1, -1, np.int64)
    there[pod[:people]] = np.arange(people)
    beside = there[pod[people:]]
    where = place.copy()
    where[people:][beside >= 0] = place[beside[beside >= 0]]
    return np.hstack(boxes_of(pod, where)).astype(np.float32)
