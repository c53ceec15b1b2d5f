"""Records that are in no group find a place in one that bears them, or groups join around them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.lifetime.share_kernels import (
    SLACK,
    Groups,
    Holders,
    Longs,
    no_union,
    own_width,
    width_around,
    within,
)


class Lonely(NamedTuple):
    """Those who are in no group.

    record  those who look for a place, and `near` the group that is next to each in the order of the units
    alone   per group -1, or the one of them whom it stands for: it is no group until others join it
    own     per record the group that stands for it, -1 for none
    """

    record: Longs
    near: Longs
    alone: Longs
    own: Longs


class Effort(NamedTuple):
    """What a place may cost, and what every group must keep.

    scan   how many groups to look at on either side
    most   what a place in a group may cost
    join   whether groups may be joined to make room for a record, at no more loss than `worth` records
    """

    limits: Limits
    scan: int
    most: float
    join: bool
    worth: float


@helper
def _only(union, holders, record):
    """The union is this record alone."""
    own = holders.row[record]
    for c in range(union.counts.size):
        union.counts[c] = 0
        union.least[c] = holders.share[own, c]
    for value in range(union.total.size):
        union.total[value] = 0
    for view in range(holders.column.shape[1]):
        if holders.column[record, view] >= 0:
            union.counts[holders.column[record, view]] += 1
    for view in range(holders.values.shape[1]):
        union.total[holders.values[record, view]] += 1
    for a in range(union.low.size):
        union.low[a] = holders.codes[a, record]
        union.high[a] = holders.codes[a, record]


@helper
def _is_open(groups, lonely, g, record):
    """Whether there is such a group, and it is not the record itself."""
    return 0 <= g < groups.size.size and groups.size[g] > 0 and lonely.alone[g] != record


@helper
def _bears(groups, g, union, people, others):
    """Whether what a group brings is within its share of so many people, with the union, and the rest of others."""
    for c in range(union.counts.size):
        n = union.counts[c] + groups.counts[g, c]
        most = people if groups.counts[g, c] > 0 else others
        if n > 0 and n > (min(groups.least[g, c], union.least[c]) + SLACK) * most:
            return False
    return True


@helper
def _place(groups, lonely, index, union, effort):
    """The group where one of the lonely, who is the union, costs least; -1 for none."""
    record, near = lonely.record[index], lonely.near[index]
    best = effort.most
    chosen = np.int64(-1)
    for distance in range(effort.scan):
        for g in (near + distance, near - 1 - distance):
            if not _is_open(groups, lonely, g, record):
                continue
            size = groups.size[g]
            if not _bears(groups, g, union, size + 1, size + 1):
                continue
            cost = (size + 1) * width_around(groups.boxes, g, union.low, union.high) - size * own_width(groups.boxes, g)
            if cost >= best:
                continue
            for value in range(union.sum.size):
                union.sum[value] = groups.total[g, value] + union.total[value]
            if safe(union.sum, size + 1, effort.limits):
                best = cost
                chosen = g
    return chosen


@helper
def _extend(union, groups, g):
    """Add a group to the union."""
    for c in range(union.counts.size):
        union.counts[c] += groups.counts[g, c]
        union.least[c] = min(union.least[c], groups.least[g, c])
    for value in range(union.total.size):
        union.total[value] += groups.total[g, value]
    for a in range(union.low.size):
        union.low[a] = min(union.low[a], groups.boxes.lo[g, a])
        union.high[a] = max(union.high[a], groups.boxes.hi[g, a])


@helper
def _gather(groups, lonely, index, union, effort, everybody, at_once, taken):
    """Join groups around one of the lonely, who is the union, one by one and nearest first, until that is safe.

    With `at_once` only those that bring nothing that is too frequent then, else also those that bring what may still
    come to be within its share. Returns how many, 0 if it is never safe; `taken` has their numbers.
    """
    record, near = lonely.record[index], lonely.near[index]
    price = effort.worth * union.low.size
    people = np.int64(1)
    joined = np.int64(0)
    apart = 0.0
    if not within(union.counts, union.least, everybody + 1):
        return np.int64(0)
    for distance in range(groups.size.size):
        for g in (near + distance, near - 1 - distance):
            if not _is_open(groups, lonely, g, record):
                continue
            size = groups.size[g]
            if not _bears(groups, g, union, people + size if at_once else everybody + 1, everybody + 1):
                continue
            more = apart + size * own_width(groups.boxes, g)
            if lonely.alone[g] >= 0:
                more += price
            if (people + size) * width_around(groups.boxes, g, union.low, union.high) - more > price:
                continue
            apart = more
            people += size
            _extend(union, groups, g)
            taken[joined] = g
            joined += 1
            if within(union.counts, union.least, people) and safe(union.total, people, effort.limits):
                return joined
    return np.int64(0)


@helper
def _write(union, groups, lonely, group_of, taken, joined, into):
    """Make one group, the first, of those that were taken: the union has them and one record more. Returns which."""
    chosen = taken[0]
    people = np.int64(1)
    for index in range(joined):
        g = taken[index]
        people += groups.size[g]
        groups.size[g] = 0
        into[g] = chosen
        if lonely.alone[g] >= 0:
            # Whom a group stands for is in it from now on.
            group_of[lonely.alone[g]] = chosen
            lonely.alone[g] = -1
    groups.size[chosen] = people
    for c in range(union.counts.size):
        groups.counts[chosen, c] = union.counts[c]
        groups.least[chosen, c] = union.least[c]
    for value in range(union.total.size):
        groups.total[chosen, value] = union.total[value]
    for a in range(union.low.size):
        groups.boxes.lo[chosen, a] = union.low[a]
        groups.boxes.hi[chosen, a] = union.high[a]
    return chosen


@kernel
def place_left(lonely: Lonely, group_of: Longs, groups: Groups, holders: Holders, effort: Effort) -> None:
    """Put records that are in no group into one, nearest first, wherever it stays safe; or join groups around them.

    group_of  per record its group, -1 for the lonely; changed, as are the groups (one that was joined to another is
              empty afterwards)
    """
    union = no_union(groups.counts.shape[1], groups.total.shape[1], groups.boxes.lo.shape[1])
    into = np.arange(groups.size.size)
    taken = np.empty(groups.size.size, np.int64)
    everybody = np.int64(0)
    for g in range(groups.size.size):
        everybody += groups.size[g]
    for index in range(lonely.record.size):
        record = lonely.record[index]
        if group_of[record] >= 0:
            continue
        _only(union, holders, record)
        joined = np.int64(0)
        place = _place(groups, lonely, index, union, effort)
        if place >= 0:
            taken[0] = place
            joined = np.int64(1)
            _extend(union, groups, place)
        elif effort.join:
            for at_once in (True, False):
                if joined == 0:
                    _only(union, holders, record)
                    joined = _gather(groups, lonely, index, union, effort, everybody, at_once, taken)
        if joined == 0:
            continue
        group_of[record] = _write(union, groups, lonely, group_of, taken, joined, into)
        own = lonely.own[record]
        if own >= 0:
            groups.size[own] = 0
        else:
            everybody += 1
    for record in range(group_of.size):
        g = group_of[record]
        if g >= 0:
            while into[g] != g:
                g = into[g]
            group_of[record] = g
