"""Classes of pods by gain cuts: counts in bins tell where to cut, and a few pods of a large run tell enough."""

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

_BINS = 32
"""Places along an axis at which a run may be cut: finer ones are tried when its parts are cut."""

_SEEN = 256
"""Pods of a large run by whom its cut is decided, so that deciding takes no longer than for a small one."""

_DEEP = 4096
"""Runs that may wait; with more the rest would stay together, and only very uneven cuts come to that."""

_PART = 20_000
"""Pods that a thread cuts at a time; it decides nothing about the result."""


class Bins(NamedTuple):
    """Room for one run: its box and that of its centers (in the second half), and what is in every bin of every axis.

    scale        per axis, bins per length
    rows, people (axes, bins) rows, and those about somebody
    left, right  (axes, bins) the largest and the least of the pods
    """

    least: Boxes
    most: Boxes
    scale: Boxes
    rows: Integers
    people: Integers
    left: Boxes
    right: Boxes


def cut_pods(box: Boxes, weight: Weights, least: Least) -> tuple[Integers, Integers]:
    """The order of the pods in which those of one class stand together, and where each class begins.

    Changes the order of these too:
    box     (pods, 2 attributes) least, then largest of the people of every pod
    weight  (pods, 2) rows, and those about somebody
    """
    order = np.arange(len(box))
    ends = np.array([0, len(box)])
    ends = np.append(np.sort(cut_runs(box, weight, order, ends, _PART, least)), len(box))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = pool.map(lambda at: cut_runs(box, weight, order, ends[at : at + 2], 0, least), range(len(ends) - 1))
        return order, np.sort(np.concatenate(list(parts)))


@helper
def _bounds(box: Boxes, start: int, stop: int, step: int, bins: Bins) -> None:
    """The box of some pods of a run, and that of their centers. Changes `bins`."""
    axes, least, most = box.shape[1] // 2, bins.least, bins.most
    for axis in range(2 * axes):
        least[axis], most[axis] = np.inf, -np.inf
    for at in range(start, stop, step):
        for axis in range(axes):
            low, high = box[at, axis], box[at, axes + axis]
            center = low + high
            least[axis], most[axis] = min(least[axis], low), max(most[axis], high)
            least[axes + axis] = min(least[axes + axis], center)
            most[axes + axis] = max(most[axes + axis], center)


@helper
def _count(box: Boxes, weight: Weights, start: int, stop: int, step: int, bins: Bins) -> None:
    """Rows, people, the largest and the least of the pods in every bin of every axis. Changes `bins`."""
    axes, least, scale = box.shape[1] // 2, bins.least, bins.scale
    rows, people, left, right = bins.rows, bins.people, bins.left, bins.right
    for axis in range(axes):
        for number in range(_BINS):
            rows[axis, number], people[axis, number] = 0, 0
            left[axis, number], right[axis, number] = -np.inf, np.inf
    for at in range(start, stop, step):
        for axis in range(axes):
            low, high = box[at, axis], box[at, axes + axis]
            number = int((low + high - least[axes + axis]) * scale[axis])
            rows[axis, number] += weight[at, 0]
            people[axis, number] += weight[at, 1]
            left[axis, number] = max(left[axis, number], high)
            right[axis, number] = min(right[axis, number], low)


@helper
def _best(bins: Bins, enough: Least) -> tuple[int, int]:
    """The axis and the bin behind which a cut shortens ranges most, with enough of both on both sides; -1 for none."""
    rows, left, right, least, most = bins.rows, bins.left, bins.right, bins.least, bins.most
    axes = rows.shape[0]
    total, everybody = 0, 0
    for number in range(_BINS):
        total, everybody = total + rows[0, number], everybody + bins.people[0, number]
    best, best_axis, best_bin = 0.0, -1, -1
    for axis in range(axes):
        for number in range(_BINS - 2, -1, -1):
            right[axis, number] = min(right[axis, number], right[axis, number + 1])
        full = min(most[axis] - least[axis], 1.0)
        below, people, reached = 0, 0, -np.inf
        for number in range(_BINS - 1):
            below, people = below + rows[axis, number], people + bins.people[axis, number]
            reached = max(reached, left[axis, number])
            if below < enough.rows or people < enough.people or rows[axis, number] == 0:
                continue
            if total - below < enough.rows or everybody - people < enough.people:
                break
            kept = below * min(reached - least[axis], 1.0)
            kept += (total - below) * min(most[axis] - right[axis, number + 1], 1.0)
            if total * full - kept > best:
                best, best_axis, best_bin = total * full - kept, axis, number
    return best_axis, best_bin


@helper
def _sides(
    box: Boxes, weight: Weights, order: Integers, start: int, stop: int, cut: tuple[int, int, float, float]
) -> tuple[int, int]:
    """Move the pods of the first bins to the front of a run; returns where the others begin, and the rows before."""
    axis, last, least, scale = cut
    width = box.shape[1]
    front, back, rows = start, stop - 1, 0
    while front <= back:
        if int((box[front, axis] + box[front, width // 2 + axis] - least) * scale) <= last:
            rows += weight[front, 0]
            front += 1
            continue
        while front < back and int((box[back, axis] + box[back, width // 2 + axis] - least) * scale) > last:
            back -= 1
        if front >= back:
            break
        for side in range(width):
            box[front, side], box[back, side] = box[back, side], box[front, side]
        for side in range(2):
            weight[front, side], weight[back, side] = weight[back, side], weight[front, side]
        order[front], order[back] = order[back], order[front]
        back -= 1
    return front, rows


@helper
def _choose(
    box: Boxes, weight: Weights, start: int, stop: int, step: int, least: Least, bins: Bins
) -> tuple[int, int, float, float]:
    """The cut of a run by some of its pods: axis (-1: none), bin, and how a center becomes a bin. Changes `bins`."""
    axes = box.shape[1] // 2
    _bounds(box, start, stop, step, bins)
    for one in range(axes):
        wide = bins.most[axes + one] - bins.least[axes + one]
        bins.scale[one] = (_BINS - 0.01) / wide if wide > 0 else 0.0
    _count(box, weight, start, stop, step, bins)
    axis, last = _best(bins, least)
    return axis, last, bins.least[axes + axis], bins.scale[axis]


@kernel
def cut_runs(box: Boxes, weight: Weights, order: Integers, ends: Integers, coarse: int, least: Least) -> Integers:
    """Cut runs of pods while both sides are large enough; returns where runs begin. Changes all three.

    ends    where each run begins, and the end of the last
    coarse  runs of at most so many pods are left as they are, for other threads
    """
    axes = box.shape[1] // 2
    bins = Bins(
        np.empty(2 * axes, np.float32),
        np.empty(2 * axes, np.float32),
        np.empty(axes, np.float32),
        np.empty((axes, _BINS), np.int64),
        np.empty((axes, _BINS), np.int64),
        np.empty((axes, _BINS), np.float32),
        np.empty((axes, _BINS), np.float32),
    )
    starts, runs = np.empty(ends[-1] - ends[0] + 1, np.int64), 0
    stack = np.empty((_DEEP + 2, 3), np.int64)
    for run in range(ends.size - 1):
        total = 0
        for at in range(ends[run], ends[run + 1]):
            total += weight[at, 0]
        stack[0, 0], stack[0, 1], stack[0, 2] = ends[run], ends[run + 1], total
        top = 1
        while top > 0:
            top -= 1
            start, stop, total = stack[top, 0], stack[top, 1], stack[top, 2]
            middle = start
            if total >= 2 * least.rows and stop - start > coarse and top < _DEEP:
                step = max((stop - start) // _SEEN, 1)
                cut = _choose(box, weight, start, stop, step, least, bins)
                if cut[0] < 0 and step > 1:
                    # What no few pods tell, all of them may.
                    cut = _choose(box, weight, start, stop, 1, least, bins)
                if cut[0] >= 0:
                    middle, below = _sides(box, weight, order, start, stop, cut)
            if middle <= start or middle >= stop:
                starts[runs] = start
                runs += 1
                continue
            stack[top, 0], stack[top, 1], stack[top, 2] = middle, stop, total - below
            stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = start, middle, below
            top += 2
    return starts[:runs]
