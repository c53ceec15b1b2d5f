"""Runs of neighbours, as small as k allows, in an order in which near runs are neighbours."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import side_by_side
from sequester.methods.class_guard.limits import Limits
from sequester.methods.lifetime.allowance import Allowance
from sequester.methods.mondrian.cut import mondrian

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


class RunsInOrder(NamedTuple):
    """The records by runs, where runs begin (and the last ends), and per run where the group that it is in ends."""

    order: Longs
    starts: Longs
    until: Longs

    def without(self, aside: Mask) -> RunsInOrder:
        """The runs without these records, and without those that are empty then."""
        kept = ~aside[self.order]
        size = np.add.reduceat(kept, self.starts[:-1])
        number = np.append(0, np.cumsum(size > 0))
        starts = np.append(0, np.cumsum(size[size > 0]))
        return RunsInOrder(self.order[kept], starts, number[self.until][size > 0])


def runs(allowance: Allowance) -> RunsInOrder:
    """The records in runs.

    First they are cut as if everybody had the share that most have, which makes good groups already where nobody is
    worse off, and then each of these is cut on under k alone: so the order has the groups, and their parts.
    """
    from sequester.methods.mondrian import cut_kernels as kernels

    scale = kernels.Scale(*side_by_side(allowance.domains))
    limits, values = allowance.usual()
    guard = replace(allowance.guard, limits=limits, values=values)
    whole = mondrian(allowance.codes, allowance.domains, guard)
    order = np.argsort(whole.member, kind="stable").astype(np.int32)
    rows = np.ascontiguousarray(allowance.codes[:, order].T)
    only_k, nothing = Limits.only(limits.k), np.zeros((len(order), 0), np.int32)
    deck = kernels.Deck(rows, nothing, order)
    ends = np.append(0, np.cumsum(whole.size)).tolist()
    parts = [
        kernels.cut_rows(deck, begin, end, 0, kernels.GAIN, scale, kernels.NOBODY, only_k)
        for begin, end in pairwise(ends)
    ]
    starts = np.append(np.sort(np.concatenate(parts)), len(order)).astype(np.int64)
    counts = [len(part) for part in parts]
    return RunsInOrder(order.astype(np.int64), starts, np.repeat(np.cumsum(counts), counts).astype(np.int64))
