"""What the loops of clustering share: the records, clusters with the boxes around them, and how wide boxes are.

Distances are the loss itself: how much wider, over all attributes, the box around two clusters is than each alone,
for everybody in them. Positions lie on [0, 1], a missing value at 2, so that mixing it with others costs 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper

Shorts = NDArray[np.float32]

# The widest that an attribute can be, and what no sum of rounded widths differs by.
ALL, NOTHING = np.float32(1), np.float32(1e-5)
NEVER = np.float32(np.inf)
# Numbers of which the least is found at once: a few registers of them, so that the loop over a block is unrolled.
BLOCK = 32


class Records(NamedTuple):
    """The records that are clustered, and where their codes lie."""

    codes: NDArray[np.int32]  # (records, attributes)
    values: NDArray[np.int32]  # (records, views) positions in the counts of the static criteria
    position: Shorts  # of every leaf, all attributes side by side
    first_leaf: NDArray[np.int64]  # where each attribute begins among them


class Windows(NamedTuple):
    """Window w has the records order[begin[w]:end[w]], with what belongs together side by side."""

    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]


class Clusters(NamedTuple):
    """Clusters of one window: their boxes, how many people they have and what that costs, and their value counts."""

    low: Shorts  # (attributes, clusters)
    high: Shorts
    size: Shorts
    cost: Shorts  # people times the summed widths of their box
    counts: NDArray[np.int64]  # (clusters, values)


class Scratch(NamedTuple):
    """Room for one look at all clusters: their summed widths, the counts of a union, and one box."""

    wide: Shorts
    total: NDArray[np.int64]
    low: Shorts
    high: Shorts


@helper(inline="always")
def room_for(clusters, width, values):
    """So many clusters, with nobody in them yet, and room for a look at them."""
    return (
        Clusters(
            np.empty((width, clusters), np.float32),
            np.empty((width, clusters), np.float32),
            np.zeros(clusters, np.float32),
            np.zeros(clusters, np.float32),
            np.zeros((clusters, values), np.int64),
        ),
        Scratch(
            np.empty(clusters, np.float32),
            np.zeros(values, np.int64),
            np.empty(width, np.float32),
            np.empty(width, np.float32),
        ),
    )


@helper(inline="always")
def _first_least(numbers, begin, end):
    at = begin
    for i in range(begin + 1, end):
        if numbers[i] < numbers[at]:
            at = i
    return at


@helper(fastmath={"nnan", "nsz"})
def least(numbers, count):
    """Where the least of the first numbers is: first in which block, and then where in it."""
    lowest = np.float32(np.inf)
    block: Any = np.int64(0)
    whole = count - count % BLOCK
    for begin in range(0, whole, BLOCK):
        here = numbers[begin]
        for i in range(begin + 1, begin + BLOCK):
            here = min(here, numbers[i])
        if here < lowest:
            lowest = here
            block = begin
    for i in range(whole, count):
        if numbers[i] < lowest:
            return _first_least(numbers, whole, count)
    return _first_least(numbers, block, min(block + BLOCK, count))


@helper(fastmath={"nnan", "nsz"})
def widths_around(lows, highs, count, low, high, wide):
    """Per cluster, whose boxes are (attributes, clusters), the summed widths of the box around it and a given one."""
    for c in range(count):
        wide[c] = 0
    for axis in range(lows.shape[0]):
        a, b = low[axis], high[axis]
        for c in range(count):
            x, y = lows[axis, c], highs[axis, c]
            x = a if a < x else x
            y = b if b > y else y
            span = y - x
            wide[c] += span if span < ALL else ALL


@helper
def cluster_width(clusters, c):
    """The summed widths of a cluster's box."""
    low, high = clusters.low, clusters.high
    total = np.float32(0)
    for axis in range(low.shape[0]):
        total += min(high[axis, c] - low[axis, c], ALL)
    return total


@helper
def run_end(label, people, begin):
    """Where the run of people with the same label ends."""
    end = begin + 1
    while end < people.size and label[people[end]] == label[people[begin]]:
        end += 1
    return end


@helper
def bound(records, people, begin, end, low, high):
    """The box around the people [begin, end) of a list; returns its summed widths."""
    codes, position, first_leaf = records.codes, records.position, records.first_leaf
    total = np.float32(0)
    for axis in range(low.size):
        first = codes[people[begin], axis]
        last = first
        for i in range(begin + 1, end):
            code = codes[people[i], axis]
            first = min(first, code)
            last = max(last, code)
        low[axis] = position[first_leaf[axis] + first]
        high[axis] = position[first_leaf[axis] + last]
        total += min(high[axis] - low[axis], ALL)
    return total
