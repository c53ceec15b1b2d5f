"""How everybody comes into a group: units are joined, neighbours are borrowed, places are found one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.methods.lifetime.allowance import Allowance
from sequester.methods.lifetime.runs import runs

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
# Neighbours that may be borrowed: so many times the size of a usual group on either side.
_AROUND = 4


def members(allowance: Allowance) -> Ints:
    """Per record its group, -1 for none."""
    out = allowance.impossible()
    member = np.full(allowance.codes.shape[1], -1, np.int32)
    if out.all():
        return member
    units = runs(allowance)
    # Everybody has a place in the order, so that near means near for those who are put aside, too.
    rank = np.empty(len(member), np.int64)
    rank[units.order] = np.arange(len(member))
    placing = _Placing(allowance, member, rank)
    easy = units.without(out | allowance.difficult(out))
    if len(easy.order):
        least = allowance.lowest(easy.order, easy.starts)
        place = np.arange(len(easy.until), dtype=np.int64)
        placing.join(easy.order, easy.starts, least=least, place=place, until=easy.until, worth=_LATER)
    if (member >= 0).any():
        placing.place(scan=_SCAN, join=False, most=_NEAR * len(allowance.domains))
    single = np.flatnonzero((member < 0) & ~out)
    if len(single):
        single = single[np.argsort(rank[single])]
        ends, own = np.arange(len(single) + 1, dtype=np.int64), allowance.survivals.row[single].astype(np.int64)
        placing.join(single, ends, least=allowance.share, place=own, until=ends[1:], worth=WORTH)
    if (member < 0).any() and (member >= 0).any():
        placing.borrow()
    for scan, join in ((_SCAN, True), (len(member), False)):
        while (member < 0).any() and (join or (member >= 0).any()):
            if not placing.place(scan=scan, join=join):
                break
    return member


@dataclass(frozen=True, eq=False)
class _Placing:
    """Per record its group so far, -1 for none, which is changed, and its place in the order of the runs."""

    allowance: Allowance
    member: Ints
    rank: Longs

    def join(self, order: Longs, starts: Longs, *, least: Floats, place: Longs, until: Longs, worth: float) -> None:
        """Join units to groups, numbered after those there are: see `join_kernels.Units`."""
        from sequester.methods.lifetime.join_kernels import Extent, Units, join_runs

        size = np.diff(starts)
        units = Units(order, starts, least, place, size, until)
        extent = Extent(*self.allowance.sizes(len(order)), worth)
        boxes, limits = self.allowance.boxes(order, starts), self.allowance.guard.limits
        length = join_runs(units, boxes, self.allowance.holders, limits, extent)
        number = np.cumsum(length > 0) - 1 + int(self.member.max(initial=-1)) + 1
        self.member[order] = np.repeat(np.where(length == 0, -1, number), size)

    def place(self, *, scan: int, join: bool, most: float = np.inf) -> int:
        """Find groups for those who have none, or make some of them and others; returns how many have one now."""
        from sequester.methods.lifetime.place_kernels import Effort, Lonely, place_left

        left = self._left()
        columns, before = max(self.allowance.share.shape[1], 1), len(left)
        group_of = self.member.astype(np.int64)
        if join:
            # Those who are left may join each other, too: each is a group of her own that is not safe yet.
            numbers = int(self.member.max()) + 1
            left = left[: max(int(_LOOKS / ((numbers + len(left)) * columns)), 1)]
            group_of[left] = numbers + np.arange(len(left))
        middle = self._number_by_place(group_of)
        own = np.full(len(group_of), -1, np.int64)
        alone = np.full(len(middle), -1, np.int64)
        if join:
            own[left] = group_of[left]
            alone[group_of[left]] = left
        groups = self.allowance.groups(group_of, len(middle))
        near = np.searchsorted(middle, self.rank[left]).astype(np.int64)
        if scan > _SCAN:
            scan = int(min(len(middle), max(_SCAN, _LOOKS / (max(len(left), 1) * columns)))) + 1
        group_of[left] = -1
        effort = Effort(self.allowance.guard.limits, scan, most, join, WORTH)
        place_left(Lonely(left, near, alone, own), group_of, groups, self.allowance.holders, effort)
        self.member[:] = group_of
        return before - int(np.count_nonzero(self.member < 0))

    def borrow(self) -> None:
        """Make groups for those who have none with neighbours whose groups can spare them."""
        from sequester.methods.lifetime.borrow_kernels import Line, borrow

        kept = np.flatnonzero(self.member >= 0)
        present, number = np.unique(self.member[kept], return_inverse=True)
        group_of = np.full(len(self.member), -1, np.int64)
        group_of[kept] = number
        span = int(min(len(self.member), _AROUND * self.allowance.sizes(len(self.member))[0]))
        left = self._left()[: max(int(_LOOKS / (2 * span * max(self.allowance.share.shape[1], 1))), 1)]
        groups = self.allowance.groups(group_of, len(present), room=len(left))
        line = Line(np.argsort(self.rank), self.rank, group_of, span)
        borrow(left, line, groups, len(present), self.allowance.holders, self.allowance.guard.limits)
        self.member[:] = group_of

    def _left(self) -> Longs:
        """Those who are in no group, in the order of the runs."""
        left = np.flatnonzero(self.member < 0)
        return left[np.argsort(self.rank[left])]

    def _number_by_place(self, group_of: Longs) -> Floats:
        """Number groups by where they are, so that neighbours in number are neighbours; returns where each is."""
        kept = np.flatnonzero(group_of >= 0)
        _, number, size = np.unique(group_of[kept], return_inverse=True, return_counts=True)
        middle: Floats = np.bincount(number, weights=self.rank[kept], minlength=len(size)) / size
        by_place = np.argsort(middle, kind="stable")
        renumber = np.empty(len(size), np.int64)
        renumber[by_place] = np.arange(len(size))
        group_of[kept] = renumber[number]
        return middle[by_place]
