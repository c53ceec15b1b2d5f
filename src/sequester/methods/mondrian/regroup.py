"""Classes regrouped with their neighbours: less loss than cuts alone, boxes that may overlap.

Cuts leave classes with up to twice the people they need, and in a series nothing ever tears them apart again, so what
they lose at first they lose for ever. People who have no history yet can be in any safe classes, so windows of
neighbouring classes are shared out again, twice, the second time with windows that begin in the middle of the first.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.methods.classes import Classes, compact

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard
    from sequester.methods.mondrian.regroup_kernels import Window

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW = 600
"""People per window: neighbours are looked for in all of it, so that time grows with its square."""

LARGEST_K = 25
"""Beyond this, cuts leave few people too many, and sharing out takes long."""

SPARE = 8
"""Classes of up to 2 k people and this many more are shared out: of those that are larger cuts made what they could."""

CARE, HASTE, MANY = (8, 2, 3), (4, 1, 1), 20_000
"""Neighbours looked at together, first persons tried, and times every class is looked at: of few people and of many.

Haste takes a tenth of the time and saves about four fifths as much (`benchmarks series_adult`).
"""


def regrouped(classes: Classes, codes: NDArray[np.int32], domains: tuple[Hierarchy, ...], guard: ClassGuard) -> Classes:
    """The classes of these records (attributes, records), all in one, shared out again; `guard` is over them."""
    from sequester.methods.loops.tree import unit_tree
    from sequester.methods.mondrian.regroup_kernels import Pace, regroup

    if guard.limits.k > LARGEST_K or guard.known or not len(classes):
        return classes
    member = classes.member.astype(np.int64)
    place = np.column_stack([domain.position[row] for domain, row in zip(domains, codes, strict=True)])
    pace = Pace(*(CARE if len(member) <= MANY else HASTE), largest=2 * max(guard.limits.k, 1) + SPARE)
    for begins in (0, WINDOW // 2):
        member = compact(member)
        size = np.bincount(member)
        center = np.column_stack([np.bincount(member, weights=axis) for axis in place.T]) / size[:, None]
        order = unit_tree(center, size.astype(np.float64))[0]
        window_of = np.empty(len(size), np.int64)
        window_of[order] = (np.cumsum(size[order]) - 1 + begins) // WINDOW
        of = compact(window_of[member])
        people = np.argsort(of, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(of)))

        def share_out(begin: int, end: int, people: Longs = people, member: Longs = member) -> None:
            rows = people[begin:end]
            names, window = _window(place[rows], member[rows], pace.largest, most=len(rows) // max(guard.limits.k, 1))
            count = regroup(window, len(names), place[rows], guard.values[rows], guard.limits, pace)
            # No window can have more classes than people, so that these numbers are free.
            numbers = np.append(names, len(member) + begin + np.arange(count - len(names)))
            held, size = window.held[:count], window.number[:count]
            size = np.where(size <= held.shape[1], size, 0)
            member[rows[held[np.arange(held.shape[1]) < size[:, None]]]] = np.repeat(numbers, size)

        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            list(pool.map(share_out, ends[:-1].tolist(), ends[1:].tolist()))
    return Classes.around(compact(member), codes)


def _window(place: Floats, member: Longs, largest: int, *, most: int) -> tuple[Longs, Window]:
    """The classes of the people of a window, with room for so many more; and which classes they are."""
    from sequester.methods.mondrian.regroup_kernels import Window

    names, at, number = np.unique(member, return_inverse=True, return_counts=True)
    room, count = 3 * largest, len(names) + most + 1
    held = np.zeros((count, room), np.int64)
    order = np.argsort(at, kind="stable")
    rank = np.arange(len(at)) - (np.cumsum(number) - number)[at[order]]
    fits = rank < room
    held[at[order][fits], rank[fits]] = order[fits]
    center = np.zeros((count, place.shape[1]))
    for axis, column in enumerate(place.T):
        center[: len(names), axis] = np.bincount(at, weights=column / number[at])
    numbers = np.zeros(count, np.int64)
    numbers[: len(names)] = number
    return names, Window(held, numbers, center, np.zeros(count), np.zeros(count, np.int64), np.full(count, -1))
