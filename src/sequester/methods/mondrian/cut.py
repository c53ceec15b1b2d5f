"""Multidimensional recoding by recursive cuts (LeFevre, DeWitt and Ramakrishnan, Mondrian).

Published cuts take the widest attribute that can be cut, `median` at the value boundary nearest to its median, and
`relaxed` into equal halves, records with the median value going to either side. The default is *gain cuts*: any
position of any attribute, the one that shortens the summed ranges most, which loses less on real data.
Cutting stops only where no cut leaves both sides safe; that is final, because the criteria are monotone.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import PolicyError
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard

Cuts = Literal["gain", "median", "relaxed"]

_PARALLEL_FROM = 100_000
"""Records from which threads pay: fewer take less time to cut than threads to begin (`benchmarks mondrian_scale`)."""


def mondrian(
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    cuts: Cuts = "gain",
    regroup: bool = False,
) -> Classes:
    """Cut the records, given as codes (attributes, records), into as many safe classes as the cuts allow.

    `regroup`: neighbouring classes are then shared out again, which loses less; their boxes may overlap.
    """
    from sequester.methods.mondrian import cut_kernels as kernels

    if guard.known and cuts == "relaxed":
        raise PolicyError("k_map needs classes whose boxes do not overlap: use cuts gain or median")
    count = codes.shape[1]
    order = np.arange(count, dtype=np.int32)
    rows = codes.T.copy()  # even of one attribute, whose transpose is contiguous: the rows are reordered in place
    deck = kernels.Deck(rows, guard.values.copy(), order)
    known = kernels.KnownPeople(guard.population.copy(), guard.known)
    scale = kernels.Scale(*side_by_side(domains))
    mode = {"gain": kernels.GAIN, "median": kernels.MEDIAN, "relaxed": kernels.RELAXED}[cuts]

    def cut(begin: int, end: int, coarse: int) -> NDArray[np.int64]:
        starts: NDArray[np.int64] = kernels.cut_rows(deck, begin, end, coarse, mode, scale, known, guard.limits)
        return starts

    threads = os.cpu_count() or 1
    if count < _PARALLEL_FROM or threads == 1 or guard.known:
        starts = cut(0, count, 0)
    else:
        # Runs are independent and each is cut the same way whoever does it: the result does not depend on threads.
        coarse = max(count // (8 * threads), 1)
        begins = np.sort(cut(0, count, coarse))
        ends = np.append(begins[1:], count)
        # A longer run was tried already: no cut of it is safe.
        done = begins[ends - begins > coarse]
        runs = [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True) if end - begin <= coarse]
        runs.sort(key=lambda run: run[0] - run[1])
        with ThreadPoolExecutor(threads) as pool:
            starts = np.concatenate([done, *pool.map(lambda run: cut(run[0], run[1], 0), runs)])
    classes = Classes(*kernels.bound_runs(rows, order, np.sort(starts)))
    if not regroup:
        return classes
    from sequester.methods.mondrian.regroup import regrouped

    return regrouped(classes, codes, domains, guard)
