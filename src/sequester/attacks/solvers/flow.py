"""Maximum flows and minimum cuts in exact 64-bit integers, over SciPy's solver, which holds 32 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sequester.deferred import breadth_first_order, csr_matrix, maximum_flow

INFINITE = int(np.iinfo(np.int64).max >> 23)
"""A capacity no cut can pay: more than any sum of people times the denominator of a bound."""

# A residual capacity is at most the sum of both directions of an arc, so half the range is safe for the solver.
_LIMIT = (1 << 30) - 1


def max_flow(
    tails: ArrayLike, heads: ArrayLike, capacities: ArrayLike, source: int, sink: int
) -> tuple[int, NDArray[np.int64]]:
    """The value of a maximum flow, and the flow on every arc (parallel and opposite arcs are allowed).

    Of two opposite arcs at most one carries flow. Capacities are clipped to what can leave the source and enter the
    sink, so `INFINITE` is a fine capacity anywhere but on a whole path from source to sink.
    """
    tail, head, capacity = _arcs(tails, heads, capacities, source=source, sink=sink)
    bound = min(int(capacity[tail == source].sum()), int(capacity[head == sink].sum()))
    if bound >= INFINITE:
        raise OverflowError("source and sink of the flow are joined by arcs without a limit")
    flow = _solve(tail, head, np.minimum(capacity, bound), ends=(source, sink), bound=bound)
    return int(flow[tail == source].sum() - flow[head == source].sum()), flow


def min_cut(
    tails: ArrayLike, heads: ArrayLike, capacities: ArrayLike, source: int, sink: int
) -> tuple[int, NDArray[np.bool_]]:
    """The value of a minimum cut, and per node whether it is on the source side of the smallest such cut."""
    tail, head, capacity = _arcs(tails, heads, capacities, source=source, sink=sink)
    value, flow = max_flow(tail, head, capacity, source, sink)
    onward, backward = capacity > flow, flow > 0
    rows = np.concatenate([tail[onward], head[backward]])
    columns = np.concatenate([head[onward], tail[backward]])
    nodes = _nodes(tail, head, source, sink)
    residual = csr_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(nodes, nodes))
    side = np.zeros(nodes, np.bool_)
    side[breadth_first_order(residual, source, return_predecessors=False)] = True
    return value, side


def _nodes(tail: NDArray[np.int64], head: NDArray[np.int64], source: int, sink: int) -> int:
    return max(int(tail.max(initial=0)), int(head.max(initial=0)), source, sink) + 1


def _arcs(
    tails: ArrayLike, heads: ArrayLike, capacities: ArrayLike, *, source: int, sink: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    tail, head, capacity = (np.asarray(part, np.int64) for part in (tails, heads, capacities))
    if not len(tail) == len(head) == len(capacity):
        raise ValueError("tails, heads and capacities of a flow must be equally long")
    if source == sink:
        raise ValueError("source and sink of a flow must differ")
    if (capacity < 0).any():
        raise ValueError("capacities of a flow must not be negative")
    return tail, head, np.minimum(capacity, INFINITE)


def _solve(
    tail: NDArray[np.int64], head: NDArray[np.int64], capacity: NDArray[np.int64], *, ends: tuple[int, int], bound: int
) -> NDArray[np.int64]:
    """A maximum flow whose value is known to be at most `bound`; no capacity is larger."""
    if bound <= _LIMIT:
        return _solve_small(tail, head, capacity, ends=ends)
    shift = max(1, (bound // _LIMIT).bit_length())
    coarse = _solve(tail, head, capacity >> shift, ends=ends, bound=bound >> shift) << shift
    # What a cut of the coarse problem dropped is less than 2**shift per arc: only that much is left to send.
    rest = min(bound, len(tail) << shift)
    if rest >= bound and rest > _LIMIT:
        raise OverflowError("a flow with this many arcs and people is beyond exact 64-bit arithmetic")
    onward, back = np.minimum(capacity - coarse, rest), np.minimum(coarse, rest)
    finer = _solve(np.r_[tail, head], np.r_[head, tail], np.r_[onward, back], ends=ends, bound=rest)
    return coarse + finer[: len(tail)] - finer[len(tail) :]


def _solve_small(
    tail: NDArray[np.int64], head: NDArray[np.int64], capacity: NDArray[np.int64], *, ends: tuple[int, int]
) -> NDArray[np.int64]:
    """SciPy's Dinic on merged parallel arcs; their flow is dealt out again in the order of the arcs."""
    source, sink = ends
    flow = np.zeros(len(tail), np.int64)
    used = np.flatnonzero((capacity > 0) & (tail != head))
    if len(used) == 0:
        return flow
    nodes = _nodes(tail, head, source, sink)
    key = tail[used] * nodes + head[used]
    order = used[np.argsort(key, kind="stable")]
    merged, start, group = np.unique(tail[order] * nodes + head[order], return_index=True, return_inverse=True)
    total = np.minimum(np.add.reduceat(capacity[order], start), _LIMIT).astype(np.int32)
    graph = csr_matrix((total, (merged // nodes, merged % nodes)), shape=(nodes, nodes))
    net = maximum_flow(graph, source, sink, method="dinic").flow
    sent = np.maximum(np.asarray(net[merged // nodes, merged % nodes]).ravel(), 0).astype(np.int64)
    before = np.cumsum(capacity[order]) - capacity[order]
    before -= before[start][group]
    flow[order] = np.clip(sent[group] - before, 0, capacity[order])
    return flow
