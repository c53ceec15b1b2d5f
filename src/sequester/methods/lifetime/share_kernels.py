"""Groups under shares: what the loops keep of records and of groups, and whether shares are kept.

Of a group the loops keep its size, how many records have each protected value (`counts`), the smallest share that any
member allows for it (`least`), the counts of the static criteria, and its box. Every union is judged anew: nothing is
assumed to stay safe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# Shares this near to what is allowed pass here, and are decided exactly afterwards: far above what products of a few
# hundred survivals are wrong by, far below what one person more or less makes of a share.
SLACK = 1e-10


class Holders(NamedTuple):
    """The records, and what their people allow.

    codes   (attributes, records)
    values  (records, views) positions in the counts of the static criteria
    column  (records, views) of the protected values, -1 for others
    row     per record what kind of person it is about
    share   (kinds of people, columns) the largest share of a value that each allows
    """

    codes: Ints
    values: Ints
    column: Ints
    row: Ints
    share: Floats


class Boxes(NamedTuple):
    """(boxes, attributes) and where all leaves lie: a box is as wide as its attributes together."""

    lo: Ints
    hi: Ints
    position: Floats
    first_leaf: Longs


class Groups(NamedTuple):
    """What is kept of every group; one that was joined to another has nobody."""

    size: Longs
    counts: Longs  # (groups, columns)
    least: Floats  # (groups, columns)
    total: Longs  # (groups, values of the static criteria)
    boxes: Boxes


class Union(NamedTuple):
    """One group that is tried, with its box, and room for the counts of it with another."""

    counts: Longs
    least: Floats
    total: Longs
    low: Ints
    high: Ints
    sum: Longs


@helper
def no_union(columns, values, width):
    """Room for a group that is tried."""
    return Union(
        np.zeros(columns, np.int64),
        np.ones(columns, np.float64),
        np.zeros(values, np.int64),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(values, np.int64),
    )


@helper
def within(counts, least, size):
    """Whether every value that occurs is within its share."""
    for c in range(counts.size):  # noqa: SIM110 - compiled
        if counts[c] > 0 and counts[c] > (least[c] + SLACK) * size:
            return False
    return True


@helper
def own_width(boxes, b):
    """The summed widths of a box."""
    total = 0.0
    for a in range(boxes.lo.shape[1]):
        base = boxes.first_leaf[a]
        total += min(boxes.position[base + boxes.hi[b, a]] - boxes.position[base + boxes.lo[b, a]], 1.0)
    return total


@helper
def width_around(boxes, b, low, high):
    """The summed widths of the box around box b and another."""
    total = 0.0
    for a in range(low.size):
        first, last = min(boxes.lo[b, a], low[a]), max(boxes.hi[b, a], high[a])
        base = boxes.first_leaf[a]
        total += min(boxes.position[base + last] - boxes.position[base + first], 1.0)
    return total


@kernel
def survive(path: Ints, ends: Longs, column: Ints, share: Floats, left: Floats, linked: Ints) -> None:
    """Take one release off what is left: class c of it has the values column[ends[c]:ends[c + 1]] at these shares."""
    for row in range(path.size):
        if path[row] >= 0:
            for i in range(ends[path[row]], ends[path[row] + 1]):
                left[row, column[i]] *= 1.0 - share[i]
                linked[row, column[i]] += 1


@kernel
def lowest(share: Floats, row: Ints, order: Longs, starts: Longs) -> Floats:
    """(units, columns) the smallest share that any record of each unit allows."""
    units, columns = starts.size - 1, share.shape[1]
    least = np.ones((units, columns))
    for unit in range(units):
        for i in range(starts[unit], starts[unit + 1]):
            own = row[order[i]]
            for c in range(columns):
                if share[own, c] < least[unit, c]:
                    least[unit, c] = share[own, c]
    return least
