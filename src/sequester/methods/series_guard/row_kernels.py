"""Where rows of an earlier release can be in a later one: what is left for a target.

Rows with one value of a class can be in any class of the later release that has the value and a box that meets its
own; all of them must be somewhere. The truth is one such flow, so every question is about its residual graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.series_guard.pair_kernels import index_by

_FAR = 1 << 40


@helper
def _arcs(first, second, size, counts, pair_first, pair_second, first_counts, second_counts):
    """Where rows of an earlier class may be in the later release, with the truth as a flow.

    Nodes are (earlier class, value), (later class, value), "left" of every earlier class, and the sink. Per arc its
    ends, how much more it can take, how much it carries, and the people of the earlier class who are there.
    """
    firsts, seconds, values = first_counts.shape[0], second_counts.shape[0], first_counts.shape[1]
    left, sink = (firsts + seconds) * values, (firsts + seconds) * values + firsts
    start, cells = index_by(first, firsts)
    mark = np.full(seconds + 1, -1, np.int64)
    by_first = index_by(pair_first, firsts)
    most = 0
    for i in range(pair_first.size):
        for value in range(values):
            most += first_counts[pair_first[i], value] > 0 and second_counts[pair_second[i], value] > 0
    for cell in range(size.size):
        if first[cell] >= 0:
            most += values
    for b in range(seconds):
        for value in range(values):
            most += second_counts[b, value] > 0
    tail, head = np.empty(most, np.int64), np.empty(most, np.int64)
    more, carried, people = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    found = 0
    used = np.zeros((seconds, values), np.int64)
    for a in range(firsts):
        for place in range(start[a], start[a + 1]):
            cell = cells[place]
            b = second[cell]
            if b >= 0:
                mark[b] = a
            for value in range(values):
                if first_counts[a, value] > 0 and (b < 0 or second_counts[b, value] > 0):
                    tail[found] = a * values + value
                    head[found] = left + a if b < 0 else (firsts + b) * values + value
                    more[found], carried[found], people[found] = _FAR, counts[cell, value], size[cell]
                    found += 1
                    if b >= 0:
                        used[b, value] += counts[cell, value]
        for place in range(by_first[0][a], by_first[0][a + 1]):
            b = pair_second[by_first[1][place]]
            if mark[b] == a:
                continue
            for value in range(values):
                if first_counts[a, value] > 0 and second_counts[b, value] > 0:
                    tail[found], head[found] = a * values + value, (firsts + b) * values + value
                    more[found], carried[found], people[found] = _FAR, 0, 0
                    found += 1
    for b in range(seconds):
        for value in range(values):
            if second_counts[b, value] > 0:
                tail[found], head[found] = (firsts + b) * values + value, sink
                more[found] = second_counts[b, value] - used[b, value]
                carried[found], people[found] = used[b, value], 0
                found += 1
    return tail[:found], head[:found], more[:found], carried[:found], people[:found], sink


@helper
def _join(tail, head, nodes):
    """Arcs at every node, at both ends."""
    start = np.zeros(nodes + 1, np.int64)
    for i in range(tail.size):
        start[tail[i] + 1] += 1
        start[head[i] + 1] += 1
    for i in range(nodes):
        start[i + 1] += start[i]
    place = start[:-1].copy()
    at = np.empty(2 * tail.size, np.int64)
    for i in range(tail.size):
        at[place[tail[i]]] = i
        place[tail[i]] += 1
        at[place[head[i]]] = i
        place[head[i]] += 1
    return start, at


@helper
def _make_room(tail, head, start, at, more, carried, sink, node, group, shifted, seen, came, queue, stamps, most):
    """How many rows can be moved out of a (later class, value) `node`, to where there is room.

    Without a `group` (-1) room is a spare row elsewhere; with one also a place that the group's own rows give up, and
    the group's rows are moved only to `node`. Every answer restores what it changed.
    """
    total, changed = 0, 0
    touched = np.empty(64, np.int64)
    while total < most:
        stamps[0] += 1
        stamp = stamps[0]
        queue[0] = node
        seen[node], came[node] = stamp, -1
        first, last, end = 0, 1, -1
        if group >= 0:
            seen[group] = stamp
        while first < last and end < 0:
            here = queue[first]
            first += 1
            for place in range(start[here], start[here + 1]):
                arc = at[place]
                onward = tail[arc] == here
                if head[arc] == sink:
                    # Room at the node itself is what the caller counts, or what the group's row takes.
                    if (here != node or group >= 0) and more[arc] - shifted[arc] > 0:
                        end = here
                        break
                    continue
                if group >= 0 and tail[arc] == group:
                    if here != node and carried[arc] + shifted[arc] > 0:
                        end = here
                        break
                    continue
                following = head[arc] if onward else tail[arc]
                if seen[following] == stamp or (not onward and carried[arc] + shifted[arc] <= 0):
                    continue
                seen[following], came[following] = stamp, arc
                queue[last] = following
                last += 1
        if end < 0:
            break
        # One row at a time: there are few.
        closing, own = -1, -1
        for place in range(start[end], start[end + 1]):
            arc = at[place]
            if head[arc] == sink and more[arc] - shifted[arc] > 0 and (end != node or group >= 0):
                closing = arc
            if group >= 0 and tail[arc] == group and end != node and carried[arc] + shifted[arc] > 0:
                own = arc
        if touched.size < changed + 2 * last + 4:
            touched = np.append(touched, np.empty(changed + 2 * last + 4, np.int64))
        if own >= 0:
            shifted[own] -= 1
            touched[changed] = own
            changed += 1
        else:
            shifted[closing] += 1
            touched[changed] = closing
            changed += 1
        here = end
        while came[here] >= 0:
            arc = came[here]
            touched[changed] = arc
            changed += 1
            if head[arc] == here:
                shifted[arc] += 1
                here = tail[arc]
            else:
                shifted[arc] -= 1
                here = head[arc]
        if group >= 0 and own < 0:
            # The group's row comes from any other place of it, which thereby gets a spare row.
            home = -1
            for place in range(start[group], start[group + 1]):
                arc = at[place]
                if head[arc] != node and carried[arc] + shifted[arc] > 0:
                    home = arc
                    break
            if home < 0:
                break
            shifted[home] -= 1
            touched[changed] = home
            changed += 1
            for place in range(start[head[home]], start[head[home] + 1]):
                arc = at[place]
                if head[arc] == sink:
                    shifted[arc] -= 1
                    touched[changed] = arc
                    changed += 1
        if group >= 0:
            for place in range(start[group], start[group + 1]):
                arc = at[place]
                if head[arc] == node:
                    shifted[arc] += 1
                    touched[changed] = arc
                    changed += 1
        total += 1
    for i in range(changed):
        shifted[touched[i]] = 0
    return total


@kernel
def rows_left(
    first: Any, second: Any, size: Any, counts: Any, pair_first: Any, pair_second: Any, first_counts: Any,
    second_counts: Any, k: int, exact: Any,
):  # fmt: skip
    """Rows that can still be a target's (Fung et al.): per cell, and per later class for those who joined.

    Of people in both releases the rows of the earlier class that can be in the later one in one world, of newcomers
    the rows of the later class that nobody before can have. Numbers are lower bounds, and exact for cells marked so
    and wherever the bounds are below k.
    """
    firsts, seconds, values = first_counts.shape[0], second_counts.shape[0], first_counts.shape[1]
    cells = size.size
    between = np.zeros((cells, values), np.int64)
    spare = second_counts.copy()
    for cell in range(cells):
        if first[cell] >= 0 and second[cell] >= 0:
            for value in range(values):
                spare[second[cell], value] -= counts[cell, value]
    joins = np.zeros(seconds, np.bool_)
    ask_join = np.zeros(seconds, np.bool_)
    ask = np.zeros(cells, np.bool_)
    for cell in range(cells):
        if first[cell] < 0:
            joins[second[cell]] = True
            ask_join[second[cell]] |= exact[cell]
            continue
        if second[cell] < 0:
            continue
        total = 0
        for value in range(values):
            most = min(first_counts[first[cell], value], second_counts[second[cell], value])
            between[cell, value] = min(most, counts[cell, value] + spare[second[cell], value])
            total += between[cell, value]
        ask[cell] = exact[cell] or total < k
    alone = spare.copy()
    for b in range(seconds):
        total = 0
        for value in range(values):
            total += alone[b, value]
        ask_join[b] |= joins[b] and total < k
    if not ask.any() and not ask_join.any():
        return between, alone
    tail, head, more, carried, _, sink = _arcs(
        first, second, size, counts, pair_first, pair_second, first_counts, second_counts
    )
    nodes = sink + 1
    start, at = _join(tail, head, nodes)
    shifted = np.zeros(tail.size, np.int64)
    seen, came = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    queue, stamps = np.zeros(nodes, np.int64), np.zeros(1, np.int64)
    for cell in range(cells):
        if not ask[cell]:
            continue
        a, b = first[cell], second[cell]
        for value in range(values):
            most = min(first_counts[a, value], second_counts[b, value])
            if between[cell, value] < most:
                between[cell, value] = counts[cell, value] + _make_room(
                    tail, head, start, at, more, carried, sink, (firsts + b) * values + value, a * values + value,
                    shifted, seen, came, queue, stamps, most - counts[cell, value],
                )  # fmt: skip
    for b in range(seconds):
        if not ask_join[b]:
            continue
        for value in range(values):
            if alone[b, value] < second_counts[b, value]:
                alone[b, value] += _make_room(
                    tail, head, start, at, more, carried, sink, (firsts + b) * values + value, -1,
                    shifted, seen, came, queue, stamps, second_counts[b, value] - alone[b, value],
                )  # fmt: skip
    return between, alone
