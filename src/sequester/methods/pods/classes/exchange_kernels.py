"""People with the same seat change places: both classes stay unions of pods.

Those may who have the same type and seat (and lineage, where that is bounded). Rows about nobody have no place of their
own, and widen no box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_PASSES = 4
"""How often everybody tries."""

_LESS = 1e-9
"""What must be saved for anybody to change places: sums in another order differ by less."""


class ClassRows(NamedTuple):
    """Rows by class, as they are by now.

    member, pod    per row
    order, start   rows in the order of their classes, and where each class begins; `at` is every row's place there
    place, real    per row (with attributes) where it is, and whether it is about somebody
    people, width  per class, its people and the summed widths of its box
    """

    member: Integers
    pod: Integers
    order: Integers
    start: Integers
    at: Integers
    place: Places
    real: NDArray[np.bool_]
    people: Integers
    width: Places


class Seatmates(NamedTuple):
    """Who may change places: rows by seat, and where those of each seat begin.

    tries  with how many of those behind them in the order they try it
    """

    order: Integers
    begin: Integers
    tries: int


@helper
def _class_width(rows: ClassRows, cls: int, skip: int, add: int) -> float:
    """Summed widths of a class of rows, with one of them in another's place (-1: as it is)."""
    order, place, real = rows.order, rows.place, rows.real
    first, last = rows.start[cls], rows.start[cls + 1]
    total = 0.0
    for axis in range(place.shape[1]):
        least, most = np.inf, -np.inf
        for at in range(first, last):
            row = order[at]
            if row == skip:
                row = add
            if real[row]:
                least, most = min(least, place[row, axis]), max(most, place[row, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


@helper
def _try_places(rows: ClassRows, one: int, other: int, fewest: int) -> int:
    """Let two rows change places if less is lost then; returns whether they did."""
    member, people, width, pod, at = rows.member, rows.people, rows.width, rows.pod, rows.at
    here, there = member[one], member[other]
    if here == there or not (rows.real[one] or rows.real[other]):
        return 0
    more = np.int64(rows.real[other]) - np.int64(rows.real[one])
    if (more < 0 and people[here] <= fewest) or (more > 0 and people[there] <= fewest):
        return 0
    first, second = _class_width(rows, here, one, other), _class_width(rows, there, other, one)
    now = width[here] * people[here] + width[there] * people[there]
    if first * (people[here] + more) + second * (people[there] - more) >= now - _LESS:
        return 0
    rows.order[at[one]], rows.order[at[other]] = other, one
    at[one], at[other] = at[other], at[one]
    member[one], member[other] = there, here
    pod[one], pod[other] = pod[other], pod[one]
    people[here] += more
    people[there] -= more
    width[here], width[there] = first, second
    return 1


@kernel
def exchange(rows: ClassRows, mates: Seatmates, fewest: int) -> int:
    """People with the same seat change places while that loses less; returns how often. Changes `rows`.

    A class of no more than the `fewest` people gives nobody away for a row about nobody.
    """
    for cls in range(rows.width.size):
        rows.width[cls] = _class_width(rows, cls, -1, -1)
    changed = 0
    for _ in range(_PASSES):
        moved = 0
        for seat in range(mates.begin.size - 1):
            last = mates.begin[seat + 1]
            for place in range(mates.begin[seat], last):
                for other in range(place + 1, min(place + 1 + mates.tries, last)):
                    moved += _try_places(rows, mates.order[place], mates.order[other], fewest)
        changed += moved
        if moved == 0:
            break
    return changed
