"""Groups under shares: units in an order are joined to groups, and records that are in none find places.

Of a group the loops keep its size, how many records have each protected value, the smallest share that any member
allows for it, the counts of the static criteria, and its box. Every union is judged anew: nothing is assumed to stay
safe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# Shares this near to what is allowed pass here, and are decided exactly afterwards: far above what products of a few
# hundred survivals are wrong by, far below what one person more or less makes of a share.
SLACK = 1e-10


class Groups(NamedTuple):
    """What is kept of every group; one that was joined to another has nobody."""

    size: Longs
    counts: Longs  # (groups, columns)
    least: Floats  # (groups, columns)
    total: Longs  # (groups, values of the static criteria)
    low: Floats  # (groups, attributes), where the box begins and ends
    high: Floats


class Union(NamedTuple):
    """One group that is tried, and room for the counts of it with another."""

    counts: Longs
    least: Floats
    total: Longs
    low: Floats
    high: Floats
    sum: Longs


class Extent(NamedTuple):
    """How far groups are looked for: to `reach` records at least and `longest` at most.

    A record left out counts as `worth` records that are fully generalized.
    """

    reach: int
    longest: int
    worth: float


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
def _no_union(groups):
    """Room for a group that is tried."""
    columns, values, width = groups.counts.shape[1], groups.total.shape[1], groups.low.shape[1]
    return Union(
        np.zeros(columns, np.int64),
        np.ones(columns, np.float64),
        np.zeros(values, np.int64),
        np.zeros(width, np.float64),
        np.zeros(width, np.float64),
        np.zeros(values, np.int64),
    )


@helper
def _only(union, groups, g):
    """The union is this group alone."""
    union.counts[:] = groups.counts[g]
    union.least[:] = groups.least[g]
    union.total[:] = groups.total[g]
    union.low[:] = groups.low[g]
    union.high[:] = groups.high[g]


@helper
def _extend(union, groups, g):
    """Add a group to the union."""
    for c in range(union.counts.size):
        union.counts[c] += groups.counts[g, c]
        union.least[c] = min(union.least[c], groups.least[g, c])
    for value in range(union.total.size):
        union.total[value] += groups.total[g, value]
    for a in range(union.low.size):
        union.low[a] = min(union.low[a], groups.low[g, a])
        union.high[a] = max(union.high[a], groups.high[g, a])


@helper
def _width(low, high):
    """The summed widths of a box."""
    total = 0.0
    for a in range(low.size):
        total += min(high[a] - low[a], 1.0)
    return total


@helper
def _width_around(groups, g, union):
    """The summed widths of the box around a group and the union."""
    total = 0.0
    for a in range(union.low.size):
        total += min(max(groups.high[g, a], union.high[a]) - min(groups.low[g, a], union.low[a]), 1.0)
    return total


@helper
def _within(union, size):
    """Whether every value that occurs is within its share of so many rows."""
    for c in range(union.counts.size):
        if union.counts[c] > 0 and union.counts[c] > (union.least[c] + SLACK) * size:
            return False
    return True


@kernel
def join_runs(groups: Groups, counted: Longs, until: Longs, limits: Limits, extent: Extent) -> Longs:
    """The cheapest way to join consecutive units into groups that are safe, or to leave units out.

    Of each unit `counted` records share the rows. Loss is the summed widths of the boxes over the records. A group is
    extended to the unit `until`, to `reach` records and to twice the first size at which it is safe. Returns per unit
    the number of units of the group that begins with it: 0 for a unit that is left out, -1 inside a group.
    """
    count, width = groups.low.shape
    best = np.zeros(count + 1)
    length = np.zeros(count, np.int64)
    union = _no_union(groups)
    for begin in range(count - 1, -1, -1):
        best[begin] = best[begin + 1] + extent.worth * width * groups.size[begin]
        size, rows, first = np.int64(0), np.int64(0), np.int64(0)
        for unit in range(begin, count):
            if unit == begin:
                _only(union, groups, unit)
            else:
                _extend(union, groups, unit)
            size += groups.size[unit]
            rows += counted[unit]
            # More units only add to the counts and lower the shares.
            if not _within(union, max(rows, extent.longest)):
                break
            if _within(union, rows) and safe(union.total, size, limits):
                if first == 0:
                    first = size
                cost = best[unit + 1] + size * _width(union.low, union.high)
                if cost < best[begin]:
                    best[begin] = cost
                    length[begin] = unit + 1 - begin
            enough = first > 0 and unit + 1 >= until[begin] and size >= max(2 * first, extent.reach)
            if size >= extent.longest or enough:
                break
    begin = 0
    while begin < count:
        for unit in range(begin + 1, begin + length[begin]):
            length[unit] = -1
        begin += max(length[begin], 1)
    return length


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
            cost = (size + 1) * _width_around(groups, g, union) - size * _width(groups.low[g], groups.high[g])
            if cost >= best:
                continue
            for value in range(union.sum.size):
                union.sum[value] = groups.total[g, value] + union.total[value]
            if safe(union.sum, size + 1, effort.limits):
                best = cost
                chosen = g
    return chosen


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
    if not _within(union, everybody + 1):
        return np.int64(0)
    for distance in range(groups.size.size):
        for g in (near + distance, near - 1 - distance):
            if not _is_open(groups, lonely, g, record):
                continue
            size = groups.size[g]
            if not _bears(groups, g, union, people + size if at_once else everybody + 1, everybody + 1):
                continue
            more = apart + size * _width(groups.low[g], groups.high[g])
            if lonely.alone[g] >= 0:
                more += price
            if (people + size) * _width_around(groups, g, union) - more > price:
                continue
            apart = more
            people += size
            _extend(union, groups, g)
            taken[joined] = g
            joined += 1
            if _within(union, people) and safe(union.total, people, effort.limits):
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
    groups.counts[chosen] = union.counts
    groups.least[chosen] = union.least
    groups.total[chosen] = union.total
    groups.low[chosen] = union.low
    groups.high[chosen] = union.high
    return chosen


@kernel
def place_left(lonely: Lonely, singles: Groups, group_of: Longs, groups: Groups, effort: Effort) -> None:
    """Put records that are in no group into one, nearest first, wherever it stays safe; or join groups around them.

    singles   every one of the lonely as a group
    group_of  per record its group, -1 for the lonely; changed, as are the groups (one that was joined to another is
              empty afterwards)
    """
    union = _no_union(groups)
    into = np.arange(groups.size.size)
    taken = np.empty(groups.size.size, np.int64)
    everybody = np.int64(0)
    for g in range(groups.size.size):
        everybody += groups.size[g]
    for index in range(lonely.record.size):
        record = lonely.record[index]
        if group_of[record] >= 0:
            continue
        _only(union, singles, index)
        joined = np.int64(0)
        place = _place(groups, lonely, index, union, effort)
        if place >= 0:
            taken[0] = place
            joined = np.int64(1)
            _extend(union, groups, place)
        elif effort.join:
            for at_once in (True, False):
                if joined == 0:
                    _only(union, singles, index)
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
