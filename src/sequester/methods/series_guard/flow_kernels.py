"""How much can flow out of a node? Every question about two releases that an insider or a neighbor asks is this one.

Classes of several independent blocks may be given side by side: no way leaves a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

FAR = 1 << 40
"""More people than there are."""


class FlowNetwork(NamedTuple):
    """Arcs between nodes, the last of which is the sink; those at a node are `at[start[node] : start[node + 1]]`."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    start: NDArray[np.int64]
    at: NDArray[np.int64]


class _Flow(NamedTuple):
    """What more every arc can take, onward and back, and room to search for ways.

    moved, touched  per arc, what was moved since it was last undone; and which arcs these are, `dirty` if they are
    seen, came      per node, when it was seen last, and over which arc
    clock           now, and how many arcs are touched
    """

    onward: NDArray[np.int64]
    back: NDArray[np.int64]
    moved: NDArray[np.int64]
    touched: NDArray[np.int64]
    dirty: NDArray[np.bool_]
    seen: NDArray[np.int64]
    came: NDArray[np.int64]
    queue: NDArray[np.int64]
    clock: NDArray[np.int64]


@helper
def _make_flow(onward, back, nodes):
    """Arcs that can take so much, and room to search."""
    arcs = onward.size
    return _Flow(
        onward, back, np.zeros(arcs, np.int64), np.zeros(arcs, np.int64), np.zeros(arcs, np.bool_),
        np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@helper
def _find_way(network, flow, source, is_end):
    """The end that is nearest to a source; -1 where no way leads to any."""
    tail, head, start, at = network.tail, network.head, network.start, network.at
    onward, back, seen, came, queue = flow.onward, flow.back, flow.seen, flow.came, flow.queue
    flow.clock[0] += 1
    now = flow.clock[0]
    queue[0] = source
    seen[source] = now
    first, last = 0, 1
    while first < last:
        here = queue[first]
        first += 1
        for place in range(start[here], start[here + 1]):
            arc = at[place]
            leaves = tail[arc] == here
            following, more = (head[arc], onward[arc]) if leaves else (tail[arc], back[arc])
            if more <= 0 or seen[following] == now:
                continue
            seen[following], came[following] = now, arc
            if is_end[following]:
                return following
            queue[last] = following
            last += 1
    return np.int64(-1)


@helper
def _push(network, flow, source, is_end, limit):
    """How much of the limit can flow from a source to ends; it goes on flowing until it is undone."""
    tail, head, onward, back = network.tail, network.head, flow.onward, flow.back
    came, moved, touched, dirty, clock = flow.came, flow.moved, flow.touched, flow.dirty, flow.clock
    total = np.int64(0)
    while total < limit:
        end = _find_way(network, flow, source, is_end)
        if end < 0:
            break
        amount, node = limit - total, end
        while node != source:
            arc = came[node]
            arrives = head[arc] == node
            amount = min(amount, onward[arc] if arrives else back[arc])
            node = tail[arc] if arrives else head[arc]
        node = end
        while node != source:
            arc = came[node]
            arrives = head[arc] == node
            more = amount if arrives else -amount
            onward[arc] -= more
            back[arc] += more
            moved[arc] += more
            if not dirty[arc]:
                dirty[arc] = True
                touched[clock[1]] = arc
                clock[1] += 1
            node = tail[arc] if arrives else head[arc]
        total += amount
    return total


@helper
def _undo(flow):
    """Take back everything that was pushed."""
    onward, back, moved, touched, dirty = flow.onward, flow.back, flow.moved, flow.touched, flow.dirty
    for i in range(flow.clock[1]):
        arc = touched[i]
        onward[arc] += moved[arc]
        back[arc] -= moved[arc]
        moved[arc], dirty[arc] = 0, False
    flow.clock[1] = 0


@kernel
def small_differences(network, size, root, outers, k):
    """Per outer class, whether it is in a component where outer minus nested inner classes leave 1 to k - 1 people.

    Outer classes are those of the one release. Byun et al., section 4.3, as the smallest positive directed cut of every
    component of classes that share people.

    size  people per arc, from an outer class to an inner one, or to the sink where nothing can be subtracted
    root  per node, the first node of its component
    """
    tail, head, nodes = network.tail, network.head, network.start.size - 1
    sink = nodes - 1
    flow = _make_flow(size.copy(), np.full(size.size, FAR), nodes)
    onward, back = flow.onward, flow.back
    loose, broken, is_end = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    is_end[sink] = True
    for arc in range(size.size):
        if head[arc] == sink:
            loose[root[tail[arc]]] = True
    for node in range(outers):
        if broken[root[node]]:
            continue
        # Where nobody leaves a component its first outer class is outside.
        if loose[root[node]] or root[node] != node:
            broken[root[node]] = _push(network, flow, node, is_end, k) < k
            _undo(flow)
        is_end[node] = not broken[root[node]]
    for arc in range(size.size):
        onward[arc], back[arc] = FAR, size[arc]
    for node in range(nodes):
        is_end[node] = node < outers and root[node] == node
    for node in range(outers, sink):
        if broken[root[node]] or loose[root[node]] or root[node] == node:
            continue
        broken[root[node]] = _push(network, flow, node, is_end, k) < k
        is_end[node] = not broken[root[node]]
        _undo(flow)
    bad = np.zeros(outers, np.bool_)
    for node in range(outers):
        bad[node] = broken[root[node]]
    return bad


@kernel
def surpluses(network, size, outer_counts, inner_counts, numerator, denominator, is_open):
    """Per outer class, whether some value cannot be shared out: outer minus any inner classes has it too often.

    Per value a flow from outer classes (their rows with it) to the cells, each with room for its share, and on to
    the inner classes (their rows with it). What cannot be sent proves a breach (and for two releases conversely).

    size        people per arc, from an outer class to an inner one, or to the sink for people who are in none; behind
                these, every inner class has an arc to the sink
    numerator   per value, over `denominator`: the largest share it may have; `is_open`: whether to look at it
    """
    shape, inners, nodes = outer_counts.shape, inner_counts.shape[0], network.start.size - 1
    bad, is_end = np.zeros(shape[0], np.bool_), np.zeros(nodes, np.bool_)
    is_end[nodes - 1] = True
    flow = _make_flow(np.zeros(network.tail.size, np.int64), np.zeros(network.tail.size, np.int64), nodes)
    onward = flow.onward
    for value in range(shape[1]):
        if not is_open[value]:
            continue
        for arc in range(size.size):
            onward[arc] = numerator[value] * size[arc]
        for inner in range(inners):
            onward[size.size + inner] = denominator * inner_counts[inner, value]
        for outer in range(shape[0]):
            need = denominator * outer_counts[outer, value]
            if _push(network, flow, outer, is_end, need) < need:
                bad[outer] = True
        _undo(flow)
    return bad


@kernel
def movable_rows(network, onward, back, node, group, barred, most):
    """Per question, how many rows, up to `most`, can be moved out of a node: to the sink, or to the group's node.

    group   the sink where only that counts
    barred  an arc that nothing may be moved over
    """
    nodes = network.start.size - 1
    flow, is_end, found = _make_flow(onward, back, nodes), np.zeros(nodes, np.bool_), np.zeros(node.size, np.int64)
    for i in range(node.size):
        arc = barred[i]
        before = onward[arc], back[arc]
        onward[arc] = back[arc] = 0
        is_end[nodes - 1] = is_end[group[i]] = True
        found[i] = _push(network, flow, node[i], is_end, most[i])
        _undo(flow)
        is_end[group[i]] = False
        onward[arc], back[arc] = before
    return found
