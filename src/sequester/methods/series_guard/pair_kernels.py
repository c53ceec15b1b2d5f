"""What two releases tell an insider by subtraction: sets of few people, and values that cannot be shared out.

All of it is about *cells*: people by their class in an earlier release (-1: not in it) and in a later one. Classes of
several independent blocks may be given side by side; every answer is per class, and no path leaves a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel


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
def near_pairs(lo: Any, hi: Any, block: Any, other_lo: Any, other_hi: Any, other_block: Any):
    """Pairs of boxes of one block that share a point; boxes are (boxes, attributes)."""
    blocks = 0
    for number in other_block:
        blocks = max(blocks, number + 1)
    start, order = index_by(other_block, blocks)
    first = np.empty(1024, np.int32)
    second = np.empty(1024, np.int32)
    found = 0
    width = lo.shape[1]
    for a in range(lo.shape[0]):
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
                if found == first.size:
                    first = np.append(first, np.empty(found, np.int32))
                    second = np.append(second, np.empty(found, np.int32))
                first[found], second[found] = a, b
                found += 1
    return first[:found], second[:found]


@helper
def _small_flow(
    source, outers, by_outer, by_inner, outer, inner, size, spill, closed, limit, backward, room
):  # fmt: skip
    """A flow from one class to closed classes or to where people are loose, given up at the limit; leaves no trace."""
    start_o, cells_o = by_outer
    start_i, cells_i = by_inner
    flow, spilled, seen, came, queue, touched, dirty, stamps = room
    total, changed = 0, 0
    while total < limit:
        stamps[0] += 1
        stamp = stamps[0]
        queue[0] = source
        seen[source] = stamp
        came[source] = -1
        head, tail, end = 0, 1, -1
        while head < tail:
            node = queue[head]
            head += 1
            if closed[node] or (not backward and node < outers and spill[node] > spilled[node]):
                end = node
                break
            is_outer = node < outers
            begin = start_o[node] if is_outer else start_i[node - outers]
            stop = start_o[node + 1] if is_outer else start_i[node - outers + 1]
            for place in range(begin, stop):
                cell = cells_o[place] if is_outer else cells_i[place]
                following = outers + inner[cell] if is_outer else outer[cell]
                if seen[following] == stamp or (is_outer != backward and flow[cell] >= size[cell]):
                    continue
                seen[following] = stamp
                came[following] = cell
                queue[tail] = following
                tail += 1
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
    for i in range(changed):
        cell = touched[i]
        flow[cell], dirty[cell] = 0, False
        spilled[outer[cell]] = 0
    if source < outers:
        spilled[source] = 0
    return total


@kernel
def small_differences(outer: Any, inner: Any, size: Any, outers: int, inners: int, k: int):
    """Per outer class, whether it is in a component where outer minus nested inner classes leave 1 to k - 1 people.

    Byun et al., section 4.3, as the smallest positive directed cut of every component of classes that share people.
    """
    selectable = np.ones(inners, np.bool_)
    for cell in range(size.size):
        if outer[cell] < 0:
            selectable[inner[cell]] = False
    spill = np.zeros(outers, np.int64)
    alive_outer = np.full(size.size, -1, np.int32)
    alive_inner = np.full(size.size, -1, np.int32)
    parent = np.arange(outers + inners)
    for cell in range(size.size):
        if outer[cell] < 0:
            continue
        if inner[cell] < 0 or not selectable[inner[cell]]:
            spill[outer[cell]] += size[cell]
        else:
            alive_outer[cell], alive_inner[cell] = outer[cell], inner[cell]
            one, other = _root(parent, np.int64(outer[cell])), _root(parent, outers + inner[cell])
            parent[max(one, other)] = min(one, other)
    by_outer, by_inner = index_by(alive_outer, outers), index_by(alive_inner, inners)
    nodes = outers + inners
    loose = np.zeros(nodes, np.bool_)
    broken = np.zeros(nodes, np.bool_)
    closed = np.zeros(nodes, np.bool_)
    for b in range(outers):
        if spill[b] > 0:
            loose[_root(parent, b)] = True
        closed[b] = spill[b] >= k
    room = (
        np.zeros(size.size, np.int64), np.zeros(outers, np.int64), np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(size.size, np.int64),
        np.zeros(size.size, np.bool_), np.zeros(1, np.int64),
    )  # fmt: skip
    for b in range(outers):
        root = _root(parent, b)
        if broken[root] or closed[b]:
            continue
        if not loose[root] and root == b:
            closed[b] = True  # nobody leaves this component: its first outer class is outside
            continue
        total = _small_flow(
            b, outers, by_outer, by_inner, outer, inner, size, spill, closed, k, np.bool_(False), room
        )  # fmt: skip
        broken[root] |= total < k
        closed[b] = total >= k
    for node in range(nodes):
        closed[node] = node < outers and parent[node] == node
    for node in range(outers, nodes):
        root = _root(parent, node)
        if broken[root] or loose[root] or root == node:
            continue
        total = _small_flow(
            node, outers, by_outer, by_inner, outer, inner, size, spill, closed, k, np.bool_(True), room
        )  # fmt: skip
        broken[root] |= total < k
        closed[node] = total >= k
    bad = np.zeros(outers, np.bool_)
    for b in range(outers):
        bad[b] = broken[_root(parent, b)]
    return bad


@kernel
def surpluses(
    outer: Any, inner: Any, size: Any, outer_counts: Any, inner_counts: Any, numerator: Any, denominator: int,
    open_values: Any,
):  # fmt: skip
    """Per outer class, whether some value cannot be shared out: outer minus any inner classes has it too often.

    Per value a flow from outer classes (their rows with it) to the cells, each with room for its share, and on to
    the inner classes (their rows with it). What cannot be sent proves a breach (and for two releases conversely).
    """
    outers, inners, values = outer_counts.shape[0], inner_counts.shape[0], outer_counts.shape[1]
    bad = np.zeros(outers, np.bool_)
    start_o, cells_o = index_by(outer, outers)
    start_i, cells_i = index_by(inner, inners)
    flow = np.zeros(size.size, np.int64)
    sent = np.zeros(inners, np.int64)
    nodes = outers + inners
    seen = np.zeros(nodes, np.int64)
    came = np.zeros(nodes, np.int64)
    queue = np.zeros(nodes, np.int64)
    stamp = 0
    for value in range(values):
        if not open_values[value]:
            continue
        p = numerator[value]
        flow[:] = 0
        sent[:] = 0
        for source in range(outers):
            need = denominator * outer_counts[source, value]
            while need > 0:
                stamp += 1
                queue[0] = source
                seen[source] = stamp
                came[source] = -1
                head, tail, end, last = 0, 1, -1, -1
                while head < tail and end < 0:
                    node = queue[head]
                    head += 1
                    if node < outers:
                        for place in range(start_o[node], start_o[node + 1]):
                            cell = cells_o[place]
                            if flow[cell] >= p * size[cell]:
                                continue
                            if inner[cell] < 0:
                                end, last = node, cell
                                break
                            following = outers + inner[cell]
                            if seen[following] != stamp:
                                seen[following] = stamp
                                came[following] = cell
                                queue[tail] = following
                                tail += 1
                    else:
                        a = node - outers
                        if sent[a] < denominator * inner_counts[a, value]:
                            end = node
                            break
                        for place in range(start_i[a], start_i[a + 1]):
                            cell = cells_i[place]
                            if outer[cell] >= 0 and flow[cell] > 0 and seen[outer[cell]] != stamp:
                                seen[outer[cell]] = stamp
                                came[outer[cell]] = cell
                                queue[tail] = outer[cell]
                                tail += 1
                if end < 0:
                    bad[source] = True
                    break
                amount = need
                if last >= 0:
                    amount = min(amount, p * size[last] - flow[last])
                else:
                    amount = min(amount, denominator * inner_counts[end - outers, value] - sent[end - outers])
                node = end
                while node != source:
                    cell = came[node]
                    if node >= outers:
                        amount = min(amount, p * size[cell] - flow[cell])
                        node = outer[cell]
                    else:
                        amount = min(amount, flow[cell])
                        node = outers + inner[cell]
                if last >= 0:
                    flow[last] += amount
                else:
                    sent[end - outers] += amount
                node = end
                while node != source:
                    cell = came[node]
                    if node >= outers:
                        flow[cell] += amount
                        node = outer[cell]
                    else:
                        flow[cell] -= amount
                        node = outers + inner[cell]
                need -= amount
    return bad
