"""Where rows of an earlier release can be in a later one: what is traced, and what is left for a target.

Rows with one value of a class can be in any class of the later release that has the value and a box that meets its
own; all of them must be somewhere. The truth is one such flow, so every question is about its residual graph.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from sequester.kernels import kernel
from sequester.kernels.blocks_pairs import index_by

_FAR = 1 << 40


@numba.njit(cache=True, nogil=True)
def _arcs(first, second, size, counts, pair_first, pair_second, first_counts, second_counts):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)
def _join(tail, head, nodes):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)
def _strong(tail, head, more, carried, start, at, nodes):  # type: ignore[no-untyped-def]
    """Per node its strongly connected component of the residual graph (Tarjan)."""
    number = np.zeros(nodes, np.int64)
    low = np.zeros(nodes, np.int64)
    part = np.full(nodes, -1, np.int64)
    place = start[:-1].copy()
    path, depth = np.empty(nodes, np.int64), 0
    stack, height = np.empty(nodes, np.int64), 0
    count, parts = 0, 0
    for root in range(nodes):
        if number[root] > 0 or start[root] == start[root + 1]:
            continue
        path[0], depth = root, 1
        count += 1
        number[root] = low[root] = count
        stack[height] = root
        height += 1
        while depth > 0:
            node = path[depth - 1]
            if place[node] < start[node + 1]:
                arc = at[place[node]]
                place[node] += 1
                onward = tail[arc] == node
                if (onward and more[arc] == 0) or (not onward and carried[arc] == 0):
                    continue
                following = head[arc] if onward else tail[arc]
                if number[following] == 0:
                    count += 1
                    number[following] = low[following] = count
                    stack[height] = following
                    height += 1
                    path[depth] = following
                    depth += 1
                elif part[following] < 0:
                    low[node] = min(low[node], number[following])
            else:
                depth -= 1
                if depth > 0:
                    low[path[depth - 1]] = min(low[path[depth - 1]], low[node])
                if low[node] == number[node]:
                    while True:
                        height -= 1
                        part[stack[height]] = parts
                        if stack[height] == node:
                            break
                    parts += 1
    return part


@numba.njit(cache=True, nogil=True)
def _cycles(tail, head, part, start, at, nodes):  # type: ignore[no-untyped-def]
    """Per arc within a component, the number of its block: arcs on a common cycle (Hopcroft and Tarjan)."""
    block = np.full(tail.size, -1, np.int64)
    number = np.zeros(nodes, np.int64)
    low = np.zeros(nodes, np.int64)
    by = np.full(nodes, -1, np.int64)
    place = start[:-1].copy()
    path, depth = np.empty(nodes, np.int64), 0
    stack, height = np.empty(tail.size, np.int64), 0
    stacked = np.zeros(tail.size, np.bool_)
    count, blocks = 0, 0
    for root in range(nodes):
        if number[root] > 0 or start[root] == start[root + 1]:
            continue
        path[0], depth = root, 1
        count += 1
        number[root] = low[root] = count
        while depth > 0:
            node = path[depth - 1]
            if place[node] < start[node + 1]:
                arc = at[place[node]]
                place[node] += 1
                following = head[arc] if tail[arc] == node else tail[arc]
                if part[following] != part[node] or arc == by[node]:
                    continue
                if number[following] == 0:
                    stack[height], stacked[arc] = arc, True
                    height += 1
                    by[following] = arc
                    count += 1
                    number[following] = low[following] = count
                    path[depth] = following
                    depth += 1
                elif number[following] < number[node]:
                    if not stacked[arc]:
                        stack[height], stacked[arc] = arc, True
                        height += 1
                    low[node] = min(low[node], number[following])
            else:
                depth -= 1
                if depth > 0:
                    above = path[depth - 1]
                    low[above] = min(low[above], low[node])
                    if low[node] >= number[above]:
                        while True:
                            height -= 1
                            block[stack[height]] = blocks
                            if stack[height] == by[node]:
                                break
                        blocks += 1
    return block, blocks


@kernel
def trace_rows(  # type: ignore[no-untyped-def]
    first: Any, second: Any, size: Any, counts: Any, pair_first: Any, pair_second: Any, first_counts: Any,
    second_counts: Any, numerator: Any, denominator: int, k: int,
):  # fmt: skip
    """Per earlier class, whether rows of it can be traced to fewer than k people, or tie a value to too many of them.

    Byun et al., section 4.5. The truth is a feasible flow: rows of one group can be exchanged between the places on
    a common cycle of its residual graph, and between no others.
    """
    firsts, values = first_counts.shape[0], first_counts.shape[1]
    bad = np.zeros(firsts, np.bool_)
    places = np.zeros(firsts, np.int64)
    for cell in range(size.size):
        if first[cell] >= 0:
            places[first[cell]] += 1
    if not (places > 1).any():
        return bad
    tail, head, more, carried, people, sink = _arcs(
        first, second, size, counts, pair_first, pair_second, first_counts, second_counts
    )
    nodes = sink + 1
    start, at = _join(tail, head, nodes)
    part = _strong(tail, head, more, carried, start, at, nodes)
    block, blocks = _cycles(tail, head, part, start, at, nodes)
    candidates = np.zeros(blocks + 1, np.int64)
    overfull = np.zeros(blocks + 1, np.bool_)
    rows_more, rows_carried = np.zeros(tail.size, np.int64), np.zeros(tail.size, np.int64)
    seen, came = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    queue = np.zeros(nodes, np.int64)
    room, over = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    touched, dirty = np.zeros(tail.size, np.int64), np.zeros(tail.size, np.bool_)
    stamp = 0
    for a in range(firsts):
        if places[a] < 2:
            continue
        for value in range(values):
            node = a * values + value
            if start[node] == start[node + 1] or bad[a]:
                continue
            for place in range(start[node], start[node + 1]):
                if block[at[place]] >= 0:
                    candidates[block[at[place]]], overfull[block[at[place]]] = 0, False
            for place in range(start[node], start[node + 1]):
                arc = at[place]
                if block[arc] >= 0:
                    candidates[block[arc]] += people[arc]
                    overfull[block[arc]] |= denominator * carried[arc] > numerator[value] * people[arc]
            for place in range(start[node], start[node + 1]):
                arc = at[place]
                if block[arc] >= 0 and candidates[block[arc]] < k:
                    bad[a] = True
            if bad[a]:
                continue
            for place in range(start[node], start[node + 1]):
                chosen = block[at[place]]
                if chosen < 0 or not overfull[chosen]:
                    continue
                overfull[chosen] = False
                # Move what is over to places of the same choice that have room, around the group itself.
                wanted, quick = 0, 0
                for other in range(start[node], start[node + 1]):
                    arc = at[other]
                    if block[arc] != chosen:
                        continue
                    excess = denominator * carried[arc] - numerator[value] * people[arc]
                    if excess > 0:
                        over[head[arc]] = excess
                        wanted += excess
                    elif excess < 0:
                        room[head[arc]] = -excess
                        if head[arc] < sink - firsts:
                            for third in range(start[head[arc]], start[head[arc] + 1]):
                                if head[at[third]] == sink:
                                    quick += min(-excess, denominator * more[at[third]])
                changed = 0
                if quick < wanted:
                    while wanted > 0:
                        stamp += 1
                        first_in, last_in, end = 0, 0, -1
                        for other in range(start[node], start[node + 1]):
                            arc = at[other]
                            if block[arc] == chosen and room[head[arc]] > 0:
                                seen[head[arc]], came[head[arc]] = stamp, -1
                                queue[last_in] = head[arc]
                                last_in += 1
                        while first_in < last_in:
                            here = queue[first_in]
                            first_in += 1
                            if over[here] > 0:
                                end = here
                                break
                            for other in range(start[here], start[here + 1]):
                                arc = at[other]
                                onward = tail[arc] == here
                                following = head[arc] if onward else tail[arc]
                                if following == node or seen[following] == stamp:
                                    continue
                                left = (
                                    denominator * more[arc] - rows_carried[arc] + rows_more[arc] if onward
                                    else denominator * carried[arc] + rows_carried[arc] - rows_more[arc]
                                )  # fmt: skip
                                if left <= 0:
                                    continue
                                seen[following], came[following] = stamp, arc
                                queue[last_in] = following
                                last_in += 1
                        if end < 0:
                            break
                        amount, here = over[end], end
                        while came[here] >= 0:
                            arc = came[here]
                            onward = head[arc] == here
                            left = (
                                denominator * more[arc] - rows_carried[arc] + rows_more[arc] if onward
                                else denominator * carried[arc] + rows_carried[arc] - rows_more[arc]
                            )  # fmt: skip
                            amount = min(amount, left)
                            here = tail[arc] if onward else head[arc]
                        amount = min(amount, room[here])
                        room[here] -= amount
                        over[end] -= amount
                        wanted -= amount
                        here = end
                        while came[here] >= 0:
                            arc = came[here]
                            if not dirty[arc]:
                                dirty[arc] = True
                                touched[changed] = arc
                                changed += 1
                            if head[arc] == here:
                                rows_carried[arc] += amount
                                here = tail[arc]
                            else:
                                rows_more[arc] += amount
                                here = head[arc]
                    bad[a] |= wanted > 0
                for i in range(changed):
                    rows_more[touched[i]], rows_carried[touched[i]], dirty[touched[i]] = 0, 0, False
                for other in range(start[node], start[node + 1]):
                    room[head[at[other]]], over[head[at[other]]] = 0, 0
    return bad


@numba.njit(cache=True, nogil=True)
def _make_room(tail, head, start, at, more, carried, sink, node, group, shifted, seen, came, queue, stamps, most):  # type: ignore[no-untyped-def]
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
def rows_left(  # type: ignore[no-untyped-def]
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
