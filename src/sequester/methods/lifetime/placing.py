"""How everybody comes into a group: runs of neighbours are joined, and places are found one by one."""

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
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WORTH = 100.0
"""Keeping one person in may cost as much detail as so many fully generalized records, not more."""

# Of a run that is left out most people find a place in other groups, so leaving it out is cheap.
_LATER = 3.0
# Groups looked at on either side: farther ones are seldom cheaper than what is within this reach.
_SCAN = 64
# At first, a place in another group may cost as much as so many fully generalized records: a better one may come.
_NEAR = 3.0
# Comparisons of a person, a group and a value that are made in one go: about a second.
_LOOKS = 5e7


def members(allowance: Allowance) -> Ints:
    """Per record its group, -1 for none."""
    from sequester.methods.lifetime.kernels import Extent, join_runs

    out = allowance.impossible()
    member = np.full(allowance.codes.shape[1], -1, np.int32)
    if out.all():
        return member
    runs = _runs(allowance)
    # Everybody has a place in the order, so that near means near for those who are put aside, too.
    rank = np.empty(len(member), np.int64)
    rank[runs.order] = np.arange(len(member))
    easy = runs.without(out | allowance.difficult(out))
    if len(easy.order):
        size, unit_of = np.diff(easy.starts), np.full(len(member), -1, np.int64)
        unit_of[easy.order] = np.repeat(np.arange(len(size)), size)
        units = allowance.groups(unit_of, len(size))
        extent = Extent(*allowance.sizes(len(easy.order)), _LATER)
        length = join_runs(units, units.size, easy.until, allowance.guard.limits, extent)
        member[easy.order] = np.repeat(np.where(length == 0, -1, np.cumsum(length > 0) - 1), size)
    if (member >= 0).any():
        _place(allowance, member, rank, scan=_SCAN, join=False, most=_NEAR * len(allowance.domains))
    for scan, join in ((_SCAN, True), (len(member), False)):
        while (member < 0).any() and (join or (member >= 0).any()):
            if not _place(allowance, member, rank, scan=scan, join=join):
                break
    return member


def _place(allowance: Allowance, member: Ints, rank: Longs, *, scan: int, join: bool, most: float = np.inf) -> int:
    """Find groups for those who have none, or join groups around them; returns how many have one now.

    `member` is changed; `rank` is everybody's place in the order of the runs.
    """
    from sequester.methods.lifetime.kernels import Effort, Lonely, place_left

    left = np.flatnonzero(member < 0)
    if not len(left):
        return 0
    left = left[np.argsort(rank[left])]
    columns, before = max(allowance.share.shape[1], 1), len(left)
    group_of = member.astype(np.int64)
    if join:
        # Those who are left may join each other, too: each is a group of her own that is not safe yet.
        numbers = int(member.max()) + 1
        left = left[: max(int(_LOOKS / ((numbers + len(left)) * columns)), 1)]
        group_of[left] = numbers + np.arange(len(left))
    middle = _number_by_place(group_of, rank)
    own = np.full(len(group_of), -1, np.int64)
    alone = np.full(len(middle), -1, np.int64)
    if join:
        own[left] = group_of[left]
        alone[group_of[left]] = left
    groups = allowance.groups(group_of, len(middle))
    near = np.searchsorted(middle, rank[left]).astype(np.int64)
    if scan > _SCAN:
        scan = int(min(len(middle), max(_SCAN, _LOOKS / (max(len(left), 1) * columns)))) + 1
    group_of[left] = -1
    single = np.full(len(group_of), -1, np.int64)
    single[left] = np.arange(len(left))
    effort = Effort(allowance.guard.limits, scan, most, join, WORTH)
    place_left(Lonely(left, near, alone, own), allowance.groups(single, len(left)), group_of, groups, effort)
    member[:] = group_of
    return before - int(np.count_nonzero(member < 0))


def _number_by_place(group_of: Longs, rank: Longs) -> Floats:
    """Number groups by where they are, so that neighbours in number are neighbours; returns where each is."""
    kept = np.flatnonzero(group_of >= 0)
    _, number, size = np.unique(group_of[kept], return_inverse=True, return_counts=True)
    middle: Floats = np.bincount(number, weights=rank[kept], minlength=len(size)) / size
    by_place = np.argsort(middle, kind="stable")
    renumber = np.empty(len(size), np.int64)
    renumber[by_place] = np.arange(len(size))
    group_of[kept] = renumber[number]
    return middle[by_place]


class _Runs(NamedTuple):
    """The records by runs, where runs begin (and the last ends), and per run where the group that it is in ends."""

    order: Longs
    starts: Longs
    until: Longs

    def without(self, aside: Mask) -> _Runs:
        """The runs without these records, and without those that are empty then."""
        kept = ~aside[self.order]
        size = np.add.reduceat(kept, self.starts[:-1])
        number = np.append(0, np.cumsum(size > 0))
        starts = np.append(0, np.cumsum(size[size > 0]))
        return _Runs(self.order[kept], starts, number[self.until][size > 0])


def _runs(allowance: Allowance) -> _Runs:
    """The records in runs, as small as k allows, in an order in which near runs are neighbours.

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
    return _Runs(order.astype(np.int64), starts, np.repeat(np.cumsum(counts), counts).astype(np.int64))
