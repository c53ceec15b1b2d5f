"""Where rows of an earlier release can be in a later one: what is left for a target.

Rows with one value of a class can be in any class of the later release that has the value and a box that meets its
own; all of them must be somewhere. The truth is one such flow, so every question is about its residual graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.series_guard.pair_kernels import index_by

_FAR = 1 << 40
"""More rows than there are."""


class Near(NamedTuple):
    """Pairs of an earlier and a later class that one person can be in."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]


class _Arcs(NamedTuple):
    """Where rows may be, the truth being a flow: the ends of every arc, how much more it can take, what it carries."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    more: NDArray[np.int64]
    carried: NDArray[np.int64]


class _Shifts(NamedTuple):
    """Moves away from the truth: per arc what is shifted, and room to search for the next move.

    clock    when a node was seen last is compared with the first; the second is how many arcs are touched
    """

    shifted: NDArray[np.int64]
    touched: NDArray[np.int64]
    dirty: NDArray[np.bool_]
    seen: NDArray[np.int64]
    came: NDArray[np.int64]
    queue: NDArray[np.int64]
    clock: NDArray[np.int64]


class _Joints(NamedTuple):
    """Arcs at every node, at both ends; the last node is the sink."""

    start: NDArray[np.int64]
    at: NDArray[np.int64]
    sink: int


@helper(inline="always")
def _most_arcs(crossing, near, first_counts, second_counts):
    """How many arcs there may be."""
    one, first, second = crossing.one, near.first, near.second
    values, most = first_counts.shape[1], 0
    for i in range(near.first.size):
        for value in range(values):
            most += first_counts[first[i], value] > 0 and second_counts[second[i], value] > 0
    for cell in range(crossing.size.size):
        most += values if one[cell] >= 0 else 0
    return most + second_counts.size


@helper(inline="always")
def _put(arcs, number, tail, head, more, carried):
    arcs.tail[number], arcs.head[number], arcs.more[number], arcs.carried[number] = tail, head, more, carried
    return number + 1


@helper
def _list_arcs(crossing, counts, near, first_counts, second_counts):
    """Where rows of an earlier class may be in the later release, with the truth as a flow; and the sink.

    Nodes are (earlier class, value), (later class, value), "left" of every earlier class, and the sink.
    """
    other, second = crossing.other, near.second
    firsts, seconds, values = first_counts.shape[0], second_counts.shape[0], first_counts.shape[1]
    left, sink = (firsts + seconds) * values, (firsts + seconds) * values + firsts
    start, cells = index_by(crossing.one, firsts)
    near_start, near_cells = index_by(near.first, firsts)
    most = _most_arcs(crossing, near, first_counts, second_counts)
    arcs = _Arcs(
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    )  # fmt: skip
    shares = np.full(seconds + 1, -1, np.int64)
    used = np.zeros((seconds, values), np.int64)
    number = 0
    for a in range(firsts):
        for place in range(start[a], start[a + 1]):
            b = other[cells[place]]
            if b >= 0:
                shares[b] = a
            for value in range(values):
                if first_counts[a, value] == 0 or (b >= 0 and second_counts[b, value] == 0):
                    continue
                carried = counts[cells[place], value]
                head = left + a if b < 0 else (firsts + b) * values + value
                number = _put(arcs, number, a * values + value, head, _FAR, carried)
                if b >= 0:
                    used[b, value] += carried
        for place in range(near_start[a], near_start[a + 1]):
            b = second[near_cells[place]]
            for value in range(values if shares[b] != a else 0):
                if first_counts[a, value] > 0 and second_counts[b, value] > 0:
                    number = _put(arcs, number, a * values + value, (firsts + b) * values + value, _FAR, 0)
    for b in range(seconds):
        for value in range(values):
            if second_counts[b, value] > 0:
                spare = second_counts[b, value] - used[b, value]
                number = _put(arcs, number, (firsts + b) * values + value, sink, spare, used[b, value])
    listed = _Arcs(arcs.tail[:number], arcs.head[:number], arcs.more[:number], arcs.carried[:number])
    return listed, sink


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
def _shift(shifts, arc, rows):
    """Move rows over an arc, and remember that it must be undone."""
    if not shifts.dirty[arc]:
        shifts.dirty[arc] = True
        shifts.touched[shifts.clock[1]] = arc
        shifts.clock[1] += 1
    shifts.shifted[arc] += rows


@helper(inline="always")
def _find_room(arcs, joints, shifts, node, group):
    """Where a way from a node ends: at another with a spare row, or a row of the group's own; -1: nowhere."""
    carried, head, more, tail, joints_at = arcs.carried, arcs.head, arcs.more, arcs.tail, joints.at
    start, came, queue, seen, shifted = joints.start, shifts.came, shifts.queue, shifts.seen, shifts.shifted
    shifts.clock[0] += 1
    stamp = shifts.clock[0]
    queue[0] = node
    seen[node], came[node] = stamp, -1
    if group >= 0:
        seen[group] = stamp
    first, last = 0, 1
    while first < last:
        here = queue[first]
        first += 1
        for place in range(start[here], start[here + 1]):
            arc = joints_at[place]
            if head[arc] == joints.sink:
                # Room at the node itself is what the caller counts, or what the group's row takes.
                if (here != node or group >= 0) and more[arc] - shifted[arc] > 0:
                    return here
                continue
            carries = carried[arc] + shifted[arc] > 0
            if group >= 0 and tail[arc] == group:
                if here != node and carries:
                    return here
                continue
            onward = tail[arc] == here
            following = head[arc] if onward else tail[arc]
            if seen[following] == stamp or not (onward or carries):
                continue
            seen[following], came[following] = stamp, arc
            queue[last] = following
            last += 1
    return -1


@helper(inline="always")
def _move_along(arcs, joints, shifts, node, group, end):
    """Move one row along the way that was found; whether a row of the group itself gave up its place."""
    carried, head, more, tail, joints_at = arcs.carried, arcs.head, arcs.more, arcs.tail, joints.at
    start, came, shifted = joints.start, shifts.came, shifts.shifted
    closing, own = -1, -1
    for place in range(start[end], start[end + 1]):
        arc = joints_at[place]
        if head[arc] == joints.sink and more[arc] - shifted[arc] > 0 and (end != node or group >= 0):
            closing = arc
        if group >= 0 and tail[arc] == group and end != node and carried[arc] + shifted[arc] > 0:
            own = arc
    _shift(shifts, own if own >= 0 else closing, -1 if own >= 0 else 1)
    here = end
    while came[here] >= 0:
        arc = came[here]
        onward = head[arc] == here
        _shift(shifts, arc, 1 if onward else -1)
        here = tail[arc] if onward else head[arc]
    return own >= 0


@helper(inline="always")
def _leave_home(arcs, joints, shifts, node, group):
    """Take the group's row from any other place of it, which thereby gets a spare row; whether there is one."""
    carried, head, joints_at, start, shifted = arcs.carried, arcs.head, joints.at, joints.start, shifts.shifted
    home = -1
    for place in range(start[group], start[group + 1]):
        arc = joints_at[place]
        if head[arc] != node and carried[arc] + shifted[arc] > 0:
            home = arc
            break
    if home < 0:
        return False
    _shift(shifts, home, -1)
    for place in range(start[head[home]], start[head[home] + 1]):
        if head[joints_at[place]] == joints.sink:
            _shift(shifts, joints_at[place], -1)
    return True


@helper
def _make_room(arcs, joints, shifts, node, group, most):
    """How many rows can be moved out of a (later class, value) `node`, to where there is room.

    Without a `group` (-1) room is a spare row elsewhere; with one also a place that the group's own rows give up, and
    the group's rows are moved only to `node`. Every answer restores what it changed. One row at a time: there are few.
    """
    head, joints_at, start, clock, dirty = arcs.head, joints.at, joints.start, shifts.clock, shifts.dirty
    shifted, touched = shifts.shifted, shifts.touched
    total = 0
    while total < most:
        end = _find_room(arcs, joints, shifts, node, group)
        if end < 0:
            break
        gave_up = _move_along(arcs, joints, shifts, node, group, end)
        if group >= 0:
            if not gave_up and not _leave_home(arcs, joints, shifts, node, group):
                break
            for place in range(start[group], start[group + 1]):
                if head[joints_at[place]] == node:
                    _shift(shifts, joints_at[place], 1)
        total += 1
    for i in range(clock[1]):
        shifted[touched[i]] = 0
        dirty[touched[i]] = False
    clock[1] = 0
    return total


@helper(inline="always")
def _doubtful(crossing, counts, first_counts, second_counts, spare, between, k, exact):
    """Cells, and later classes of those who joined, whose rows must be counted exactly; `between` has lower bounds."""
    one, other = crossing.one, crossing.other
    cells, seconds, values = crossing.size.size, second_counts.shape[0], second_counts.shape[1]
    joins, ask_join = np.zeros(seconds, np.bool_), np.zeros(seconds, np.bool_)
    ask = np.zeros(cells, np.bool_)
    for cell in range(cells):
        a, b = one[cell], other[cell]
        if a < 0:
            joins[b] = True
            ask_join[b] |= exact[cell]
            continue
        if b < 0:
            continue
        total = 0
        for value in range(values):
            most = min(first_counts[a, value], second_counts[b, value])
            between[cell, value] = min(most, counts[cell, value] + spare[b, value])
            total += between[cell, value]
        ask[cell] = exact[cell] or total < k
    for b in range(seconds):
        total = 0
        for value in range(values):
            total += spare[b, value]
        ask_join[b] |= joins[b] and total < k
    return ask, ask_join


@kernel
def rows_left(crossing, counts, near, first_counts, second_counts, k, exact):
    """Rows that can still be a target's (Fung et al.): per cell, and per later class for those who joined.

    Of people in both releases the rows of the earlier class that can be in the later one in one world, of newcomers
    the rows of the later class that nobody before can have. Numbers are lower bounds, and exact for cells marked so
    and wherever the bounds are below k.
    """
    firsts, seconds, values = first_counts.shape[0], second_counts.shape[0], first_counts.shape[1]
    first, second, cells = crossing.one, crossing.other, crossing.size.size
    between, alone = np.zeros((cells, values), np.int64), second_counts.copy()
    for cell in range(cells):
        if first[cell] >= 0 and second[cell] >= 0:
            for value in range(values):
                alone[second[cell], value] -= counts[cell, value]
    ask, ask_join = _doubtful(crossing, counts, first_counts, second_counts, alone, between, k, exact)
    if not ask.any() and not ask_join.any():
        return between, alone
    arcs, sink = _list_arcs(crossing, counts, near, first_counts, second_counts)
    start, at = _join(arcs.tail, arcs.head, sink + 1)
    joints = _Joints(start, at, sink)
    shifts = _Shifts(
        np.zeros(at.size, np.int64), np.zeros(at.size, np.int64), np.zeros(at.size, np.bool_),
        np.zeros(sink + 1, np.int64), np.zeros(sink + 1, np.int64), np.zeros(sink + 1, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    for cell in range(cells):
        a, b = np.int64(first[cell]), np.int64(second[cell])
        for value in range(values if ask[cell] else 0):
            most = min(first_counts[a, value], second_counts[b, value])
            if between[cell, value] < most:
                node, group = (firsts + b) * values + value, a * values + value
                more = _make_room(arcs, joints, shifts, node, group, most - counts[cell, value])
                between[cell, value] = counts[cell, value] + more
    for later in range(seconds):
        for value in range(values if ask_join[later] else 0):
            most = second_counts[later, value] - alone[later, value]
            if most > 0:
                alone[later, value] += _make_room(
                    arcs, joints, shifts, (firsts + later) * values + value, np.int64(-1), most
                )  # fmt: skip
    return between, alone
