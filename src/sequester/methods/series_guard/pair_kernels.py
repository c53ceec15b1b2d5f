"""What two releases tell an insider by subtraction: sets of few people, and values that cannot be shared out.

All of it is about *cells*: people by their class in an earlier release (-1: not in it) and in a later one. Classes of
several independent blocks may be given side by side; every answer is per class, and no path leaves a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel


class Crossing(NamedTuple):
    """People by their classes in two releases: the class in one and in the other (-1: not in it), and how many."""

    one: NDArray[np.int32]
    other: NDArray[np.int32]
    size: NDArray[np.int64]


class PairShares(NamedTuple):
    """Per value the largest share of people who may have it, numerator / denominator, and whether to look at it."""

    numerator: NDArray[np.int64]
    denominator: int
    is_open: NDArray[np.bool_]


class _Links(NamedTuple):
    """Cells between outer and inner classes, by class: those of an outer class are `by_outer[start_outer[b]:...]`."""

    outer: NDArray[np.int32]
    inner: NDArray[np.int32]
    size: NDArray[np.int64]
    start_outer: NDArray[np.int64]
    by_outer: NDArray[np.int64]
    start_inner: NDArray[np.int64]
    by_inner: NDArray[np.int64]


class _Ways(NamedTuple):
    """Room for flows, by cell, and for the search of a way, by node: outer classes, then inner ones.

    flow              per cell, what flows
    spilled           per outer class, how many of its loose people are used; of surpluses, what reached an inner class
    seen, came        when a node was seen last, and by which cell it was reached; `stamp` is the clock
    touched, dirty    cells whose flow must be undone
    """

    flow: NDArray[np.int64]
    spilled: NDArray[np.int64]
    seen: NDArray[np.int64]
    came: NDArray[np.int64]
    queue: NDArray[np.int64]
    stamp: NDArray[np.int64]
    touched: NDArray[np.int64]
    dirty: NDArray[np.bool_]


@helper
def index_by(keys, count):
    """Positions by key, and where those of each key start; negative keys are left out."""
    start = np.zeros(count + 1, np.int64)
    for key in keys:
        if key >= 0:
            start[key + 1] += 1
    for i in range(count):
        start[i + 1] += start[i]
    place = start[:-1].copy()
    order = np.empty(start[count], np.int64)
    for i in range(keys.size):
        if keys[i] >= 0:
            order[place[keys[i]]] = i
            place[keys[i]] += 1
    return start, order


@helper
def _root(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def near_pairs(lo, hi, block, other_lo, other_hi, other_block):
    """Pairs of boxes of one block that share a point; boxes are (boxes, attributes)."""
    shape = lo.shape
    blocks = 0
    for number in other_block:
        blocks = max(blocks, number + 1)
    start, order = index_by(other_block, blocks)
    first = np.empty(1024, np.int32)
    second = np.empty(1024, np.int32)
    pairs = 0
    width = shape[1]
    for a in range(shape[0]):
        if block[a] < 0 or block[a] >= blocks:
            continue
        for place in range(start[block[a]], start[block[a] + 1]):
            b = order[place]
            meets = True
            for axis in range(width):
                if lo[a, axis] > other_hi[b, axis] or hi[a, axis] < other_lo[b, axis]:
                    meets = False
                    break
            if meets:
                if pairs == first.size:
                    first = np.append(first, np.empty(pairs, np.int32))
                    second = np.append(second, np.empty(pairs, np.int32))
                first[pairs], second[pairs] = a, b
                pairs += 1
    return first[:pairs], second[:pairs]


@helper(inline="always")
def _small_way(links, ways, source, outers, spill, closed, backward):
    """Where a way ends: at a closed class, or an outer one with loose people; -1 where there is none."""
    by_inner, by_outer, inner, outer, size = links.by_inner, links.by_outer, links.inner, links.outer, links.size
    start_inner, start_outer, came, flow = links.start_inner, links.start_outer, ways.came, ways.flow
    queue, seen, spilled = ways.queue, ways.seen, ways.spilled
    ways.stamp[0] += 1
    stamp = ways.stamp[0]
    queue[0] = source
    seen[source], came[source] = stamp, -1
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        is_outer = node < outers
        if closed[node] or (not backward and is_outer and spill[node] > spilled[node]):
            return node
        begin = start_outer[node] if is_outer else start_inner[node - outers]
        stop = start_outer[node + 1] if is_outer else start_inner[node - outers + 1]
        for place in range(begin, stop):
            cell = by_outer[place] if is_outer else by_inner[place]
            following = outers + inner[cell] if is_outer else outer[cell]
            is_full = is_outer != backward and flow[cell] >= size[cell]
            if seen[following] == stamp or is_full:
                continue
            seen[following], came[following] = stamp, cell
            queue[tail] = following
            tail += 1
    return -1


@helper(inline="always")
def _undo(links, ways, source, outers, changed):
    outer, dirty, flow, spilled, touched = links.outer, ways.dirty, ways.flow, ways.spilled, ways.touched
    for i in range(changed):
        cell = touched[i]
        flow[cell], dirty[cell] = 0, False
        spilled[outer[cell]] = 0
    if source < outers:
        spilled[source] = 0


@helper
def _small_flow(source, links, ways, spill, closed, limit, backward):
    """A flow from one class to closed classes or to where people are loose, given up at the limit; leaves no trace."""
    inner, outer, size, came, dirty, flow = links.inner, links.outer, links.size, ways.came, ways.dirty, ways.flow
    spilled, touched = ways.spilled, ways.touched
    outers = spill.size
    total, changed = 0, 0
    while total < limit:
        end = _small_way(links, ways, source, outers, spill, closed, backward)
        if end < 0:
            break
        amount = limit - total
        if not closed[end]:
            amount = min(amount, spill[end] - spilled[end])
        node = end
        while node != source:
            cell = came[node]
            # A limited step leaves an outer class (backward: an inner one).
            if (node >= outers) != backward:
                amount = min(amount, size[cell] - flow[cell])
            node = outer[cell] if node >= outers else outers + inner[cell]
        if not closed[end]:
            spilled[end] += amount
        node = end
        while node != source:
            cell = came[node]
            if not dirty[cell]:
                dirty[cell] = True
                touched[changed] = cell
                changed += 1
            flow[cell] += amount if (node >= outers) != backward else -amount
            node = outer[cell] if node >= outers else outers + inner[cell]
        total += amount
    _undo(links, ways, source, outers, changed)
    return total


@helper
def _make_ways(cells, spilled, nodes):
    """Room for flows over so many cells and nodes."""
    return _Ways(
        np.zeros(cells, np.int64), np.zeros(spilled, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64), np.zeros(1, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.bool_),
    )  # fmt: skip


@helper(inline="always")
def _link(crossing, selectable, spill, parent, outers):
    """Outer and inner classes that may be subtracted, linked where they share people; other people are spilled."""
    crossing_one, crossing_other, size = crossing.one, crossing.other, crossing.size
    outer, inner = np.empty(crossing.size.size, np.int32), np.empty(crossing.size.size, np.int32)
    for cell in range(crossing.size.size):
        b, a = crossing_one[cell], crossing_other[cell]
        outer[cell] = inner[cell] = -1
        if b < 0:
            continue
        if a < 0 or not selectable[a]:
            spill[b] += size[cell]
        else:
            outer[cell], inner[cell] = b, a
            one, other = _root(parent, np.int64(b)), _root(parent, outers + a)
            parent[max(one, other)] = min(one, other)
    return outer, inner


@kernel
def small_differences(crossing, outers, inners, k):
    """Per outer class, whether it is in a component where outer minus nested inner classes leave 1 to k - 1 people.

    Outer classes are those of the one release. Byun et al., section 4.3, as the smallest positive directed cut of every
    component of classes that share people.
    """
    one, other = crossing.one, crossing.other
    nodes = outers + inners
    selectable, spill, parent = np.ones(inners, np.bool_), np.zeros(outers, np.int64), np.arange(nodes)
    for cell in range(crossing.size.size):
        if one[cell] < 0:
            selectable[other[cell]] = False
    outer, inner = _link(crossing, selectable, spill, parent, outers)
    by_outer, by_inner = index_by(outer, outers), index_by(inner, inners)
    links = _Links(outer, inner, crossing.size, by_outer[0], by_outer[1], by_inner[0], by_inner[1])
    ways = _make_ways(crossing.size.size, outers, nodes)
    loose, broken, closed = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    for b in range(outers):
        if spill[b] > 0:
            loose[_root(parent, b)] = True
        closed[b] = spill[b] >= k
    for b in range(outers):
        root = _root(parent, b)
        if broken[root] or closed[b]:
            continue
        if not loose[root] and root == b:
            closed[b] = True  # nobody leaves this component: its first outer class is outside
            continue
        total = _small_flow(b, links, ways, spill, closed, k, np.bool_(False))
        broken[root] |= total < k
        closed[b] = total >= k
    for node in range(nodes):
        closed[node] = node < outers and parent[node] == node
    for node in range(outers, nodes):
        root = _root(parent, node)
        if broken[root] or loose[root] or root == node:
            continue
        total = _small_flow(node, links, ways, spill, closed, k, np.bool_(True))
        broken[root] |= total < k
        closed[node] = total >= k
    bad = np.zeros(outers, np.bool_)
    for b in range(outers):
        bad[b] = broken[_root(parent, b)]
    return bad


@helper(inline="always")
def _room_for(links, ways, source, outers, top, rows, denominator):
    """Where rows of an outer class can still go: the node a way ends at (-1: none), and the cell that ends it there.

    A way ends in a cell of people who are in no inner class (-1: in no such cell), or at an inner class with rows left.
    """
    by_inner, by_outer, inner, outer, size = links.by_inner, links.by_outer, links.inner, links.outer, links.size
    start_inner, start_outer, came, flow = links.start_inner, links.start_outer, ways.came, ways.flow
    queue, seen, spilled = ways.queue, ways.seen, ways.spilled
    ways.stamp[0] += 1
    stamp = ways.stamp[0]
    queue[0] = source
    seen[source], came[source] = stamp, -1
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        is_outer = node < outers
        if not is_outer and spilled[node - outers] < denominator * rows[node - outers]:
            return node, -1
        begin = start_outer[node] if is_outer else start_inner[node - outers]
        stop = start_outer[node + 1] if is_outer else start_inner[node - outers + 1]
        for place in range(begin, stop):
            cell = by_outer[place] if is_outer else by_inner[place]
            if is_outer and flow[cell] >= top * size[cell]:
                continue
            if is_outer and inner[cell] < 0:
                return node, cell
            if not is_outer and (outer[cell] < 0 or flow[cell] <= 0):
                continue
            following = np.int64(outers + inner[cell] if is_outer else outer[cell])
            if seen[following] != stamp:
                seen[following], came[following] = stamp, cell
                queue[tail] = following
                tail += 1
    return -1, -1


@helper
def _send(links, ways, source, top, rows, denominator, need):
    """Send what an outer class needs to send; whether all of it could be sent."""
    inner, outer, size, came, flow, spilled = links.inner, links.outer, links.size, ways.came, ways.flow, ways.spilled
    outers = links.start_outer.size - 1
    while need > 0:
        end, last = _room_for(links, ways, source, outers, top, rows, denominator)
        if end < 0:
            return False
        if last >= 0:
            amount = min(need, top * size[last] - flow[last])
        else:
            amount = min(need, denominator * rows[end - outers] - spilled[end - outers])
        node = end
        while node != source:
            cell = came[node]
            amount = min(amount, top * size[cell] - flow[cell] if node >= outers else flow[cell])
            node = np.int64(outer[cell] if node >= outers else outers + inner[cell])
        if last >= 0:
            flow[last] += amount
        else:
            spilled[end - outers] += amount
        node = end
        while node != source:
            cell = came[node]
            flow[cell] += amount if node >= outers else -amount
            node = np.int64(outer[cell] if node >= outers else outers + inner[cell])
        need -= amount
    return True


@kernel
def surpluses(crossing, outer_counts, inner_counts, shares):
    """Per outer class, whether some value cannot be shared out: outer minus any inner classes has it too often.

    Per value a flow from outer classes (their rows with it) to the cells, each with room for its share, and on to
    the inner classes (their rows with it). What cannot be sent proves a breach (and for two releases conversely).
    """
    shape, is_open, numerator = outer_counts.shape, shares.is_open, shares.numerator
    outers, inners = shape[0], inner_counts.shape[0]
    bad = np.zeros(outers, np.bool_)
    by_outer, by_inner = index_by(crossing.one, outers), index_by(crossing.other, inners)
    links = _Links(
        crossing.one, crossing.other, crossing.size, by_outer[0], by_outer[1], by_inner[0], by_inner[1]
    )  # fmt: skip
    ways = _make_ways(crossing.size.size, inners, outers + inners)
    rows = np.empty(inners, np.int64)
    for value in range(shape[1]):
        if not is_open[value]:
            continue
        ways.flow[:] = 0
        ways.spilled[:] = 0
        for a in range(inners):
            rows[a] = inner_counts[a, value]
        for source in range(outers):
            need = shares.denominator * outer_counts[source, value]
            if not _send(links, ways, source, numerator[value], rows, shares.denominator, need):
                bad[source] = True
    return bad
