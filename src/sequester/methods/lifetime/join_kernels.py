"""Runs of neighbours joined to groups so that no value is above the share its worst-off member allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.lifetime.share_kernels import SLACK, Boxes, Floats, Holders, Longs, no_union
from sequester.methods.loops.boxes import width as box_width

HOPELESS, NOT_YET, WITHIN = -1, 0, 1
_LAST_CODE = np.int32(np.iinfo(np.int32).max)


class Units(NamedTuple):
    """Runs of records that stay together, in an order in which neighbours are near: a group is a union of some.

    Unit u has the records order[starts[u]:starts[u + 1]], of which `counted` share the rows, and allows the shares
    least[place[u]]. A group that begins with it is tried up to the unit `until` at least.
    """

    order: Longs
    starts: Longs
    least: Floats
    place: Longs
    counted: Longs
    until: Longs


class Extent(NamedTuple):
    """How far groups are looked for: to `reach` records at least and `longest` at most.

    A record left out counts as `worth` records that are fully generalized.
    """

    reach: int
    longest: int
    worth: float


@helper
def _begin(union, present, seen):
    """Nobody is in the union; `present` has the values that were in it."""
    for index in range(seen):
        union.counts[present[index]] = 0
    for value in range(union.total.size):
        union.total[value] = 0
    for c in range(union.least.size):
        union.least[c] = 1.0
    for a in range(union.low.size):
        union.low[a] = _LAST_CODE
        union.high[a] = -1


@helper
def _add_unit(units, unit, boxes, holders, union, present, seen):
    """Add a unit to the union; returns how many values are present then."""
    for i in range(units.starts[unit], units.starts[unit + 1]):
        record = units.order[i]
        for view in range(holders.column.shape[1]):
            c = holders.column[record, view]
            if c >= 0:
                if union.counts[c] == 0:
                    present[seen] = c
                    seen += 1
                union.counts[c] += 1
        for view in range(holders.values.shape[1]):
            union.total[holders.values[record, view]] += 1
    for a in range(union.low.size):
        union.low[a] = min(union.low[a], boxes.lo[unit, a])
        union.high[a] = max(union.high[a], boxes.hi[unit, a])
    place = units.place[unit]
    for c in range(union.least.size):
        if units.least[place, c] < union.least[c]:
            union.least[c] = units.least[place, c]
    return seen


@helper
def _outlook(union, present, seen, rows, longest):
    """Whether all values are within their share of so many rows, or may come to be as the union grows."""
    outlook = WITHIN
    for index in range(seen):
        c = present[index]
        if union.counts[c] > (union.least[c] + SLACK) * rows:
            outlook = NOT_YET
            # More units only add to the count and lower the share.
            if union.counts[c] > (union.least[c] + SLACK) * longest:
                return HOPELESS
    return outlook


@kernel
def join_runs(units: Units, boxes: Boxes, holders: Holders, limits: Limits, extent: Extent) -> Longs:
    """The cheapest way to join consecutive units, with these boxes, into groups that are safe, or to leave units out.

    Loss is the summed widths of the boxes over the records. A group is extended to the unit `until`, to `reach` records
    and to twice the first size at which it is safe. Returns per unit the number of units of the group that begins with
    it: 0 for a unit that is left out, -1 inside a group.
    """
    count, width = boxes.lo.shape
    best = np.zeros(count + 1)
    length = np.zeros(count, np.int64)
    union = no_union(units.least.shape[1], limits.first[-1], width)
    present = np.zeros(units.least.shape[1], np.int64)
    seen = np.int64(0)
    for begin in range(count - 1, -1, -1):
        best[begin] = best[begin + 1] + extent.worth * width * (units.starts[begin + 1] - units.starts[begin])
        _begin(union, present, seen)
        seen = np.int64(0)
        rows = np.int64(0)
        first = np.int64(0)
        for unit in range(begin, count):
            seen = _add_unit(units, unit, boxes, holders, union, present, seen)
            size = units.starts[unit + 1] - units.starts[begin]
            rows += units.counted[unit]
            outlook = _outlook(union, present, seen, rows, extent.longest)
            if outlook == HOPELESS:
                break
            if outlook == WITHIN and safe(union.total, size, limits):
                if first == 0:
                    first = size
                cost = best[unit + 1] + size * box_width(union.low, union.high, boxes.position, boxes.first_leaf)
                if cost < best[begin]:
                    best[begin] = cost
                    length[begin] = unit + 1 - begin
            enough = first > 0 and unit + 1 >= units.until[begin] and size >= max(2 * first, extent.reach)
            if size >= extent.longest or enough:
                break
    begin = 0
    while begin < count:
        for unit in range(begin + 1, begin + length[begin]):
            length[unit] = -1
        begin += max(length[begin], 1)
    return length
