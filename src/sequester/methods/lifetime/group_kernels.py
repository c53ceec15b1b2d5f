"""Groups under shares: runs of neighbours joined so that no value is above the share its worst-off member allows.

A unit is a run of records that stay together, a group a union of units. Of a group the loops keep its size, how many
records have each protected value (`counts`), the smallest share that any member allows for it (`least`), the counts of
the static criteria, and its box. Every union is judged anew: nothing is assumed to stay safe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe
from sequester.methods.loops.boxes import width as box_width

# Shares this near to what is allowed pass here, and are decided exactly afterwards.
SLACK = 1e-10


@helper
def _within(counts, least, size):  # type: ignore[no-untyped-def]
    """Whether every value that occurs is within its share."""
    for c in range(counts.size):  # noqa: SIM110 - compiled
        if counts[c] > 0 and counts[c] > (least[c] + SLACK) * size:
            return False
    return True


@kernel
def survive(path: Any, ends: Any, column: Any, share: Any, left: Any, linked: Any):  # type: ignore[no-untyped-def]
    """Take one release off what is left: class c of it has the values column[ends[c]:ends[c + 1]] at these shares."""
    for row in range(path.size):
        if path[row] >= 0:
            for i in range(ends[path[row]], ends[path[row] + 1]):
                left[row, column[i]] *= 1.0 - share[i]
                linked[row, column[i]] += 1


@kernel
def lowest(share: Any, row: Any, order: Any, starts: Any):  # type: ignore[no-untyped-def]
    """(units, columns) the smallest share that any record of each unit allows."""
    units, columns = starts.size - 1, share.shape[1]
    found = np.ones((units, columns))
    for unit in range(units):
        for i in range(starts[unit], starts[unit + 1]):
            own = row[order[i]]
            for c in range(columns):
                if share[own, c] < found[unit, c]:
                    found[unit, c] = share[own, c]
    return found


@kernel
def join_runs(  # type: ignore[no-untyped-def]
    order: Any, starts: Any, lo: Any, hi: Any, least: Any, place: Any, column: Any, counted: Any, values: Any,
    limits: Any, position: Any, first_leaf: Any, until: Any, reach: Any, longest: Any, worth: Any,
):  # fmt: skip
    """The cheapest way to join consecutive units into groups that are safe, or to leave units out.

    Unit u has the records order[starts[u]:starts[u + 1]], the box lo[u], hi[u] and the shares least[place[u]], which
    are of the records that are `counted`. Loss is the summed widths of the boxes over the records; a record left out
    counts as `worth` that are fully generalized. A group is extended to the unit `until`, to `reach` records and to
    twice the first size at which it is safe, but not over `longest` records. Returns per unit the number of units of
    the group that begins with it: 0 for a unit that is left out, -1 inside a group.
    """
    units, width = lo.shape
    columns, flat = least.shape[1], limits.first[-1]
    best = np.zeros(units + 1)
    length = np.zeros(units, np.int64)
    counts, total = np.zeros(columns, np.int64), np.zeros(flat, np.int64)
    allowed = np.ones(columns)
    present = np.zeros(columns, np.int64)
    low, high = np.empty(width, np.int32), np.empty(width, np.int32)
    for begin in range(units - 1, -1, -1):
        best[begin] = best[begin + 1] + worth * width * (starts[begin + 1] - starts[begin])
        size, seen, first, rows = 0, 0, 0, 0
        total[:] = 0
        allowed[:] = 1.0
        for unit in range(begin, units):
            for i in range(starts[unit], starts[unit + 1]):
                record = order[i]
                rows += counted[record]
                for view in range(column.shape[1]):
                    c = column[record, view]
                    if c >= 0:
                        if counts[c] == 0:
                            present[seen] = c
                            seen += 1
                        counts[c] += 1
                for view in range(values.shape[1]):
                    total[values[record, view]] += 1
            size += starts[unit + 1] - starts[unit]
            for a in range(width):
                if unit == begin or lo[unit, a] < low[a]:
                    low[a] = lo[unit, a]
                if unit == begin or hi[unit, a] > high[a]:
                    high[a] = hi[unit, a]
            for c in range(columns):
                if least[place[unit], c] < allowed[c]:
                    allowed[c] = least[place[unit], c]
            inside, hopeless = True, False
            for index in range(seen):
                c = present[index]
                if counts[c] > (allowed[c] + SLACK) * rows:
                    inside = False
                    # More units only add to the count and lower the share.
                    if counts[c] > (allowed[c] + SLACK) * longest:
                        hopeless = True
                        break
            if hopeless:
                break
            if inside and safe(total, size, limits):
                if first == 0:
                    first = size
                cost = best[unit + 1] + size * box_width(low, high, position, first_leaf)
                if cost < best[begin]:
                    best[begin] = cost
                    length[begin] = unit + 1 - begin
            if size >= longest or (first > 0 and unit + 1 >= until[begin] and size >= max(2 * first, reach)):
                break
        for index in range(seen):
            counts[present[index]] = 0
    begin = 0
    while begin < units:
        for unit in range(begin + 1, begin + length[begin]):
            length[unit] = -1
        begin += max(length[begin], 1)
    return length


@kernel
def place_left(  # type: ignore[no-untyped-def]
    left: Any, near: Any, group_of: Any, alone: Any, size: Any, counts: Any, least: Any, total: Any, lo: Any, hi: Any,
    codes: Any, share: Any, row: Any, column: Any, values: Any, limits: Any,
    position: Any, first_leaf: Any, scan: Any, most: Any, join: Any, worth: Any,
):  # fmt: skip
    """Put records that are in no group into one, nearest first, wherever it stays safe; or join groups around them.

    left, near   the records, and for each the number of the group that is next to it in the order of the units
    group_of     per record its group, -1 for those left; changed, as are all arrays of the groups (a joined group is
                 empty afterwards)
    alone        per group -1, or the one of those left whom it stands for: it is no group until others join it
    scan         how many groups to look at on either side, and `most` what a place in one may cost
    join         whether groups may be joined to make room for a record, at no more loss than `worth` records
    Returns how many found a place.
    """
    groups, width = lo.shape
    columns, flat = counts.shape[1], total.shape[1]
    trial, sum_ = np.zeros(columns, np.int64), np.zeros(flat, np.int64)
    allowed = np.ones(columns)
    low, high = np.empty(width, np.int32), np.empty(width, np.int32)
    wide_low, wide_high = np.empty(width, np.int32), np.empty(width, np.int32)
    everybody = 0
    own_group = np.full(group_of.size, -1, np.int64)
    for g in range(groups):
        everybody += size[g]
        if alone[g] >= 0:
            own_group[alone[g]] = g
    into = np.arange(groups)
    placed = 0
    taken = np.empty(groups, np.int64)
    for index in range(left.size):
        record = left[index]
        if group_of[record] >= 0:
            continue
        best, chosen = most, -1
        own = row[record]
        for step in range(2 * scan):
            g = near[index] + (step // 2 if step % 2 == 0 else -1 - step // 2)
            if g < 0 or g >= groups or size[g] == 0 or alone[g] == record:
                continue
            fits = True
            for c in range(columns):
                n = counts[g, c]
                for view in range(column.shape[1]):
                    if column[record, view] == c:
                        n += 1
                if n > 0 and n > (min(least[g, c], share[own, c]) + SLACK) * (size[g] + 1):
                    fits = False
                    break
            if not fits:
                continue
            for a in range(width):
                low[a], high[a] = min(lo[g, a], codes[a, record]), max(hi[g, a], codes[a, record])
            new = box_width(low, high, position, first_leaf)
            cost = (size[g] + 1) * new - size[g] * box_width(lo[g], hi[g], position, first_leaf)
            if cost >= best:
                continue
            for v in range(flat):
                sum_[v] = total[g, v]
            for view in range(values.shape[1]):
                sum_[values[record, view]] += 1
            if not safe(sum_, size[g] + 1, limits):
                continue
            best, chosen = cost, g
        for mode in range(2 if chosen < 0 and join else 0):
            # Groups join one by one, nearest first: those that bring nothing that is too frequent at once, and then
            # those that bring what may still come to be within its share.
            if chosen >= 0:
                break
            trial[:] = 0
            sum_[:] = 0
            many, joined, old = 1, 0, 0.0
            for c in range(columns):
                allowed[c] = share[own, c]
            for view in range(column.shape[1]):
                if column[record, view] >= 0:
                    trial[column[record, view]] += 1
            for view in range(values.shape[1]):
                sum_[values[record, view]] += 1
            for a in range(width):
                wide_low[a] = wide_high[a] = codes[a, record]
            hopeless = False
            for c in range(columns):
                if trial[c] > 0 and trial[c] > (allowed[c] + SLACK) * (everybody + 1):
                    hopeless = True
            for step in range(2 * groups):
                if hopeless:
                    break
                g = near[index] + (step // 2 if step % 2 == 0 else -1 - step // 2)
                if g < 0 or g >= groups or size[g] == 0 or alone[g] == record:
                    continue
                bearable = True
                for c in range(columns):
                    n = trial[c] + counts[g, c]
                    people = many + size[g] if mode == 0 and counts[g, c] > 0 else everybody + 1
                    if n > 0 and n > (min(allowed[c], least[g, c]) + SLACK) * people:
                        bearable = False
                        break
                if not bearable:
                    continue
                for a in range(width):
                    low[a], high[a] = min(wide_low[a], lo[g, a]), max(wide_high[a], hi[g, a])
                more = old + size[g] * box_width(lo[g], hi[g], position, first_leaf)
                if alone[g] >= 0:
                    more += worth * width
                if (many + size[g]) * box_width(low, high, position, first_leaf) - more > worth * width:
                    continue
                old = more
                many += size[g]
                for c in range(columns):
                    trial[c] += counts[g, c]
                    allowed[c] = min(allowed[c], least[g, c])
                for v in range(flat):
                    sum_[v] += total[g, v]
                for a in range(width):
                    wide_low[a], wide_high[a] = low[a], high[a]
                taken[joined] = g
                joined += 1
                if _within(trial, allowed, many) and safe(sum_, many, limits):
                    chosen = taken[0]
                    for other in range(1, joined):
                        h = taken[other]
                        into[h] = chosen
                        if alone[h] >= 0:
                            group_of[alone[h]] = h
                            alone[h] = -1
                            placed += 1
                        size[chosen] += size[h]
                        size[h] = 0
                        for c in range(columns):
                            counts[chosen, c] += counts[h, c]
                            least[chosen, c] = min(least[chosen, c], least[h, c])
                            counts[h, c] = 0
                        for v in range(flat):
                            total[chosen, v] += total[h, v]
                        for a in range(width):
                            lo[chosen, a] = min(lo[chosen, a], lo[h, a])
                            hi[chosen, a] = max(hi[chosen, a], hi[h, a])
                    break
        if chosen < 0:
            continue
        placed += 1
        group_of[record] = chosen
        if alone[chosen] >= 0:
            group_of[alone[chosen]] = chosen
            alone[chosen] = -1
            placed += 1
        if own_group[record] >= 0:
            size[own_group[record]] = 0
        else:
            everybody += 1
        size[chosen] += 1
        for c in range(columns):
            least[chosen, c] = min(least[chosen, c], share[own, c])
        for view in range(column.shape[1]):
            if column[record, view] >= 0:
                counts[chosen, column[record, view]] += 1
        for view in range(values.shape[1]):
            total[chosen, values[record, view]] += 1
        for a in range(width):
            lo[chosen, a] = min(lo[chosen, a], codes[a, record])
            hi[chosen, a] = max(hi[chosen, a], codes[a, record])
    for record in range(group_of.size):
        g = group_of[record]
        if g >= 0:
            while into[g] != g:
                g = into[g]
            group_of[record] = g
    return placed


@kernel
def borrow(  # type: ignore[no-untyped-def]
    left: Any, line: Any, rank: Any, group_of: Any, size: Any, counts: Any, least: Any, total: Any,
    share: Any, row: Any, column: Any, values: Any, limits: Any, groups: Any, span: Any,
):  # fmt: skip
    """Make groups around records that are in none, of neighbours whose own groups stay safe without them.

    left   the records
    line   all records in the order of the runs, and `rank` the place of each in it
    groups how many groups there are: the arrays have room for one more for each of those left
    span   how many records to look at on either side
    Returns the number of groups then; `group_of` and the arrays of the groups are changed.
    """
    columns, flat = counts.shape[1], total.shape[1]
    trial, sum_ = np.zeros(columns, np.int64), np.zeros(flat, np.int64)
    rest, others = np.zeros(columns, np.int64), np.zeros(flat, np.int64)
    allowed = np.ones(columns)
    taken, came_from = np.empty(2 * span + 1, np.int64), np.empty(2 * span + 1, np.int64)
    for index in range(left.size):
        first = left[index]
        if group_of[first] >= 0:
            continue
        trial[:] = 0
        sum_[:] = 0
        need = float(limits.k)
        for c in range(columns):
            allowed[c] = share[row[first], c]
        many = 0
        for step in range(2 * span + 1):
            place = rank[first] + ((step + 1) // 2 if step % 2 == 1 else -(step // 2))
            if place < 0 or place >= line.size:
                continue
            record = line[place]
            own, g = row[record], group_of[record]
            fits = True
            if many > 0:
                # Nobody who makes what is there too frequent for a group not much larger than it has to be.
                for c in range(columns):
                    n, most = trial[c], 1.5 * need + limits.k
                    for view in range(column.shape[1]):
                        if column[record, view] == c:
                            n, most = n + 1, float(many + 1)
                    if n > 0 and n > (min(allowed[c], share[own, c]) + SLACK) * most:
                        fits = False
                        break
            if fits and g >= 0:
                for c in range(columns):
                    rest[c] = counts[g, c]
                for view in range(column.shape[1]):
                    if column[record, view] >= 0:
                        rest[column[record, view]] -= 1
                for v in range(flat):
                    others[v] = total[g, v]
                for view in range(values.shape[1]):
                    others[values[record, view]] -= 1
                fits = _within(rest, least[g], size[g] - 1) and safe(others, size[g] - 1, limits)
            if not fits:
                continue
            if g >= 0:
                size[g] -= 1
                counts[g, :] = rest
                total[g, :] = others
            taken[many], came_from[many] = record, g
            many += 1
            group_of[record] = groups
            for c in range(columns):
                allowed[c] = min(allowed[c], share[own, c])
            for view in range(column.shape[1]):
                if column[record, view] >= 0:
                    trial[column[record, view]] += 1
            for view in range(values.shape[1]):
                sum_[values[record, view]] += 1
            for c in range(columns):
                if trial[c] > 0:
                    need = max(need, trial[c] / max(allowed[c], 1e-9))
            if _within(trial, allowed, many) and safe(sum_, many, limits):
                size[groups] = many
                counts[groups, :] = trial
                least[groups, :] = allowed
                total[groups, :] = sum_
                groups += 1
                many = -1
                break
            if need > 2 * span:
                break
        for back in range(many):
            record, g = taken[back], came_from[back]
            group_of[record] = g
            if g >= 0:
                size[g] += 1
                for view in range(column.shape[1]):
                    if column[record, view] >= 0:
                        counts[g, column[record, view]] += 1
                for view in range(values.shape[1]):
                    total[g, values[record, view]] += 1
    return groups
