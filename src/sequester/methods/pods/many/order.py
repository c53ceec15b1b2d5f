"""Many people in an order in which those who are near stand near: halved where they spread most, again and again."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Places = NDArray[np.int32]

WHOLE = np.int32(1 << 20)
"""What a whole axis is long, where places are whole numbers: of these, processors compare eight at a time."""

_CELL, _SEEN = 4, 128
"""People of the smallest cells, and those of a cell by whom it is told where they spread most."""

_PART = 20_000
"""People that a thread orders at a time; it decides nothing about the result."""


def whole(place: NDArray[np.float64]) -> Places:
    """Places in whole numbers; with axes on which all are at 0, so that there are eight or sixteen."""
    found = np.zeros((len(place), -(-place.shape[1] // 8) * 8), np.int32)
    for axis in range(place.shape[1]):
        found[:, axis] = np.rint(place[:, axis] * WHOLE)
    return found


def near_order(place: Places) -> Integers:
    """The order of people (people, attributes); the same whatever the number of threads."""
    order = np.arange(len(place))
    halve(place, order, 0, len(order), _PART)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda part: halve(place, order, part[0], part[1], _CELL), _halves(0, len(order))))
    return order


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    """The parts that `halve` leaves of at most so many."""
    if stop - start <= _PART:
        return [(start, stop)]
    middle = (start + stop) // 2
    return [*_halves(start, middle), *_halves(middle, stop)]


@helper
def _select(key: Places, order: Integers, shift: int, low: int, high: int, at: int) -> None:
    """Move what belongs before place `at` of a run before it, and the rest behind; `order` has the run from `shift`."""
    while low < high:
        pivot = key[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[shift + i], order[shift + j] = order[shift + j], order[shift + i]
                i += 1
                j -= 1
        if at <= j:
            high = j
        elif at >= i:
            low = i
        else:
            return


@helper
def _widest(place: Places, order: Integers, start: int, stop: int) -> int:
    """The axis along which some people of a run vary most."""
    step = max((stop - start) // _SEEN, 1)
    best, found = -1.0, 0
    for axis in range(place.shape[1]):
        total, squares, count = 0.0, 0.0, 0
        for at in range(start, stop, step):
            value = float(place[order[at], axis])
            total += value
            squares += value * value
            count += 1
        spread = squares - total * total / count
        if spread > best + 1e-12:
            best, found = spread, axis
    return found


@kernel
def halve(place: Places, order: Integers, begin: int, end: int, cell: int) -> None:
    """Halve a run of people at the median of the widest axis, down to runs of at most `cell`. Changes `order`."""
    key = np.empty(end - begin, np.int32)
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = begin, end
    top = 1
    while top > 0:
        top -= 1
        start, stop = stack[top, 0], stack[top, 1]
        if stop - start <= cell:
            continue
        axis = _widest(place, order, start, stop)
        for at in range(start, stop):
            key[at - start] = place[order[at], axis]
        middle = (start + stop) // 2
        _select(key, order, start, 0, stop - start - 1, middle - start)
        stack[top, 0], stack[top, 1] = start, middle
        stack[top + 1, 0], stack[top + 1, 1] = middle, stop
        top += 2
