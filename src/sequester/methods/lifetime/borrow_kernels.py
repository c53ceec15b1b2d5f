"""Groups around records that are in none, of neighbours whose own groups can spare them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.lifetime.share_kernels import SLACK, Groups, Holders, Longs, no_union, within

# A group that is made so is not much larger than its values need: half again as many people, and k.
_ROOMY = 1.5
# A share of nothing, as what can be divided by.
_HARDLY = 1e-9


class Line(NamedTuple):
    """All records in the order of the runs, of each the place in it and the group, and how far to look."""

    record: Longs
    rank: Longs
    group_of: Longs
    span: int


class Borrowed(NamedTuple):
    """Who is in the group that is made, and the group each came from, -1 for none."""

    record: Longs
    group: Longs


@helper
def _count(groups, g, holders, record, more):
    """A record comes to a group, or leaves it (-1)."""
    groups.size[g] += more
    for view in range(holders.column.shape[1]):
        if holders.column[record, view] >= 0:
            groups.counts[g, holders.column[record, view]] += more
    for view in range(holders.values.shape[1]):
        groups.total[g, holders.values[record, view]] += more


@helper
def _may_join(holders, record, union, people, most):
    """Whether a record makes nothing too frequent: of its own values among the people, of others in the whole group."""
    own = holders.row[record]
    for c in range(union.counts.size):
        n, room = union.counts[c], most
        for view in range(holders.column.shape[1]):
            if holders.column[record, view] == c:
                n += 1
                room = float(people + 1)
        if n > 0 and n > (min(union.least[c], holders.share[own, c]) + SLACK) * room:
            return False
    return True


@helper
def _spared(groups, g, holders, record, limits):
    """Take a record out of its group if that stays safe; returns whether it did."""
    if g < 0:
        return True
    _count(groups, g, holders, record, np.int64(-1))
    if within(groups.counts[g], groups.least[g], groups.size[g]) and safe(groups.total[g], groups.size[g], limits):
        return True
    _count(groups, g, holders, record, np.int64(1))
    return False


@helper
def _admit(union, holders, record, need):
    """Add a record to the union; returns how many people its values need then."""
    own = holders.row[record]
    for view in range(holders.column.shape[1]):
        if holders.column[record, view] >= 0:
            union.counts[holders.column[record, view]] += 1
    for view in range(holders.values.shape[1]):
        union.total[holders.values[record, view]] += 1
    for c in range(union.counts.size):
        union.least[c] = min(union.least[c], holders.share[own, c])
        if union.counts[c] > 0:
            need = max(need, union.counts[c] / max(union.least[c], _HARDLY))
    return need


@helper
def _gather(first, number, line, groups, holders, limits, union, borrowed):
    """Make a group with this number around a record; returns how many are in it, and whether it is safe."""
    here = line.rank[first]
    need = float(limits.k)
    people = np.int64(0)
    for distance in range(line.span + 1):
        for place in (here + distance, here - distance):
            if place < 0 or place >= line.record.size or line.group_of[line.record[place]] == number:
                continue
            record = line.record[place]
            g = line.group_of[record]
            if people > 0 and not _may_join(holders, record, union, people, _ROOMY * need + limits.k):
                continue
            if not _spared(groups, g, holders, record, limits):
                continue
            borrowed.record[people] = record
            borrowed.group[people] = g
            line.group_of[record] = number
            people += 1
            need = _admit(union, holders, record, need)
            if within(union.counts, union.least, people) and safe(union.total, people, limits):
                return people, True
            if need > 2 * line.span:
                return people, False
    return people, False


@kernel
def borrow(left: Longs, line: Line, groups: Groups, count: int, holders: Holders, limits: Limits) -> int:
    """Make groups around records that are in none, of neighbours whose own groups stay safe without them.

    left   the records
    count  how many groups there are, with room for one more for each of those left
    Returns the number of groups then; everybody's group and the groups are changed.
    """
    columns, values = groups.counts.shape[1], groups.total.shape[1]
    union = no_union(columns, values, np.int64(0))
    borrowed = Borrowed(np.empty(2 * line.span + 1, np.int64), np.empty(2 * line.span + 1, np.int64))
    for index in range(left.size):
        if line.group_of[left[index]] >= 0:
            continue
        for c in range(columns):
            union.counts[c] = 0
            union.least[c] = 1.0
        for value in range(values):
            union.total[value] = 0
        people, done = _gather(left[index], count, line, groups, holders, limits, union, borrowed)
        if not done:
            for back in range(people):
                record, g = borrowed.record[back], borrowed.group[back]
                line.group_of[record] = g
                if g >= 0:
                    _count(groups, g, holders, record, np.int64(1))
            continue
        groups.size[count] = people
        for c in range(columns):
            groups.counts[count, c] = union.counts[c]
            groups.least[count, c] = union.least[c]
        for value in range(values):
            groups.total[count, value] = union.total[value]
        count += 1
    return count
