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
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard

WINDOW = 600
"""People per window."""

LARGEST_K = 25
"""Beyond this, cuts leave few people too many, and sharing out takes long."""

CARE, HASTE, MANY = (8, 2, 3), (4, 1, 1), 20_000
"""Neighbours looked at together, first persons tried, and times every class is looked at: of few people and of many.

Haste takes a tenth of the time and saves about four fifths as much.
"""


def regrouped(classes: Classes, codes: NDArray[np.int32], domains: tuple[Hierarchy, ...], guard: ClassGuard) -> Classes:
    """The classes of these records (attributes, records), all in one, shared out again; `guard` is over them."""
    from sequester.methods.loops.tree import unit_tree
    from sequester.methods.mondrian.regroup_kernels import regroup

    if guard.limits.k > LARGEST_K or guard.known or not len(classes):
        return classes
    member = classes.member.astype(np.int64)
    place = np.column_stack([domain.position[row] for domain, row in zip(domains, codes, strict=True)])
    near, starts, passes = CARE if len(member) <= MANY else HASTE
    threads = min(os.cpu_count() or 1, 8)
    for turn in range(2):
        member = np.unique(member, return_inverse=True)[1].ravel()
        size = np.bincount(member)
        center = np.column_stack([np.bincount(member, weights=axis) for axis in place.T]) / size[:, None]
        order = unit_tree(center, size.astype(np.float64))[0]
        window = np.empty(len(size), np.int64)
        window[order] = (np.cumsum(size[order]) - 1 + turn * WINDOW // 2) // WINDOW
        of = np.unique(window[member], return_inverse=True)[1].ravel()
        people = np.argsort(of, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(of))]).astype(np.int64)
        # The classes of each window, in their order, and where among them everybody's is.
        pairs, place_in = np.unique(of * np.int64(len(size)) + member, return_inverse=True)
        names, first = pairs % len(size), np.searchsorted(pairs, np.arange(len(ends)) * len(size))
        at_name = place_in.ravel() - first[of]
        # No window can have more classes than people.
        fresh = len(size) + ends[:-1] + np.arange(len(ends) - 1)

        def work(thread: int) -> None:
            own = slice(thread, None, threads)
            regroup(
                place, guard.values, member, people, ends[:-1][own].copy(), ends[1:][own].copy(),  # noqa: B023
                names, first[:-1][own].copy(), first[1:][own].copy(), at_name,  # noqa: B023
                fresh[own].copy(), guard.limits, near, starts, passes,  # noqa: B023
            )  # fmt: skip

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    member = np.unique(member, return_inverse=True)[1].ravel()
    order = np.argsort(member, kind="stable")
    start = np.flatnonzero(np.diff(member[order], prepend=-1))
    sides = codes[:, order]
    lo, hi = np.minimum.reduceat(sides, start, axis=1), np.maximum.reduceat(sides, start, axis=1)
    return Classes(member.astype(np.int32), lo, hi)
