"""Classes of many pods: gain cuts by counts in bins, of which a few pods of a large run tell enough."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Boxes = NDArray[np.float32]

_BINS, _SEEN = 32, 256
"""Places along an axis at which a run may be cut, and the pods by whom that is decided."""

_DEEP = 4096
"""Runs that may wait."""

_PART = 20_000
"""Pods that a thread cuts at a time."""


def cut_many(box: Boxes, weight: NDArray[np.int32], k: int) -> tuple[Integers, Integers]:
    """The order of the pods in which those of one class stand together, and where each class begins.

    Changes the order of these too:
    box     (pods, 2 attributes) least, then largest of the people of every pod
    weight  (pods, 2) rows, and those about somebody
    """
    order = np.arange(len(box))
    ends = np.array([0, len(box)])
    ends = np.append(np.sort(cut_runs(box, weight, order, ends, _PART, k)), len(box))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = pool.map(lambda at: cut_runs(box, weight, order, ends[at : at + 2], 0, k), range(len(ends) - 1))
        return order, np.sort(np.concatenate(list(parts)))


@helper
def _bounds(box, start, stop, step, least, most):  # type: ignore[no-untyped-def]
    """The box of some pods of a run, and in the second half of both that of their centers."""
    axes = box.shape[1] // 2
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
def _count(box, weight, start, stop, step, least, scale, rows, left, right):  # type: ignore[no-untyped-def]
    """Rows, the largest and the least of the pods in every bin of every axis."""
    axes = box.shape[1] // 2
    for axis in range(axes):
        for number in range(_BINS):
            rows[axis, number], left[axis, number], right[axis, number] = 0, -np.inf, np.inf
    for at in range(start, stop, step):
        for axis in range(axes):
            low, high = box[at, axis], box[at, axes + axis]
            number = int((low + high - least[axes + axis]) * scale[axis])
            rows[axis, number] += weight[at, 0]
            left[axis, number] = max(left[axis, number], high)
            right[axis, number] = min(right[axis, number], low)


@helper
def _best(rows, left, right, least, most, enough):  # type: ignore[no-untyped-def]
    """The axis and the bin behind which a cut shortens ranges most, with enough rows on both sides; -1 for none."""
    axes = rows.shape[0]
    total = 0
    for number in range(_BINS):
        total += rows[0, number]
    best, best_axis, best_bin = 0.0, -1, -1
    for axis in range(axes):
        for number in range(_BINS - 2, -1, -1):
            right[axis, number] = min(right[axis, number], right[axis, number + 1])
        full = min(most[axis] - least[axis], 1.0)
        below, reached = 0, -np.inf
        for number in range(_BINS - 1):
            below += rows[axis, number]
            reached = max(reached, left[axis, number])
            if below < enough or rows[axis, number] == 0:
                continue
            if total - below < enough:
                break
            kept = below * min(reached - least[axis], 1.0)
            kept += (total - below) * min(most[axis] - right[axis, number + 1], 1.0)
            if total * full - kept > best:
                best, best_axis, best_bin = total * full - kept, axis, number
    return best_axis, best_bin


@helper
def _sides(box, weight, order, start, stop, axis, least, scale, last):  # type: ignore[no-untyped-def]
    """Move the pods of the first bins to the front of a run; returns where the others begin, and the rows before."""
    width = box.shape[1]
    i, j, rows = start, stop - 1, 0
    while i <= j:
        if int((box[i, axis] + box[i, width // 2 + axis] - least) * scale) <= last:
            rows += weight[i, 0]
            i += 1
            continue
        while i < j and int((box[j, axis] + box[j, width // 2 + axis] - least) * scale) > last:
            j -= 1
        if i >= j:
            break
        for side in range(width):
            box[i, side], box[j, side] = box[j, side], box[i, side]
        for side in range(2):
            weight[i, side], weight[j, side] = weight[j, side], weight[i, side]
        order[i], order[j] = order[j], order[i]
        j -= 1
    return i, rows


@helper
def _choose(box, weight, start, stop, step, k, scratch):  # type: ignore[no-untyped-def]
    """The cut of a run by some of its pods: axis (-1: none), bin, and how a center becomes a bin."""
    axes = box.shape[1] // 2
    least, most, scale, rows, left, right = scratch
    _bounds(box, start, stop, step, least, most)
    for one in range(axes):
        wide = most[axes + one] - least[axes + one]
        scale[one] = (_BINS - 0.01) / wide if wide > 0 else 0.0
    _count(box, weight, start, stop, step, least, scale, rows, left, right)
    axis, last = _best(rows, left, right, least, most, k)
    return axis, last, least[axes + axis], scale[axis]


@kernel
def cut_runs(box, weight, order, ends, coarse, k):  # type: ignore[no-untyped-def]
    """Cut runs of pods while both sides have k rows; returns where runs begin. Changes all three.

    ends    where each run begins, and the end of the last
    coarse  runs of at most so many pods are left as they are, for other threads
    """
    axes = box.shape[1] // 2
    scratch = (
        np.empty(2 * axes, np.float32),
        np.empty(2 * axes, np.float32),
        np.empty(axes, np.float32),
        np.empty((axes, _BINS), np.int64),
        np.empty((axes, _BINS), np.float32),
        np.empty((axes, _BINS), np.float32),
    )
    starts, found = np.empty(ends[-1] - ends[0] + 1, np.int64), 0
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
            if total >= 2 * k and stop - start > coarse and top < _DEEP:
                step = max((stop - start) // _SEEN, 1)
                axis, last, least, scale = _choose(box, weight, start, stop, step, k, scratch)
                if axis < 0 and step > 1:
                    # What no few pods tell, all of them may.
                    axis, last, least, scale = _choose(box, weight, start, stop, 1, k, scratch)
                if axis >= 0:
                    middle, below = _sides(box, weight, order, start, stop, axis, least, scale, last)
            if middle <= start or middle >= stop:
                starts[found] = start
                found += 1
                continue
            stack[top, 0], stack[top, 1], stack[top, 2] = middle, stop, total - below
            stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = start, middle, below
            top += 2
    return starts[:found]
