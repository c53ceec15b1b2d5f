"""Which people can have which label where it is known who is in which class, and nobody's label.

As in `pairs`, but without the truth to start from. Of every two releases one way to hand out each label is a flow from
classes to classes; another differs from it by cycles of what can be exchanged. All releases at once are a linear
program over expected numbers: with the totals free to grow together, every pair that is possible at all can have one.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.flow import INFINITE, max_flow
from sequester.attacks.solvers.pairs import Integers, Known, Mask, Pairs
from sequester.deferred import connected_components, coo_array, csr_matrix, hstack, linprog

LARGEST = 20_000
"""Pairs of a component that are solved at most: of more every two releases are compared, and that is all."""
# Pairs that are solved together, about.
_SOLVED = 4000


def admitted(known: Known, pairs: Pairs) -> dict[tuple[int, int], Mask]:
    """Per two releases, the pairs that they alone admit, each label against all others."""
    return {
        (first, second): _admitted(known, pairs, known.path[:, first], known.path[:, second])
        for first, second in combinations(range(known.path.shape[1]), 2)
    }


def _admitted(known: Known, pairs: Pairs, first: Integers, second: Integers) -> Mask:
    classes, labels = known.classes, known.labels
    # Whoever is absent is in a class of her own release that has room for everybody.
    one, other = first[pairs.trajectory], second[pairs.trajectory]
    one, other = np.where(one >= 0, one, classes), np.where(other >= 0, other, classes + 1)
    cell = (one * (classes + 2) + other) * labels + pairs.label
    keys, of = np.unique(cell, return_inverse=True)
    room = np.bincount(of, weights=known.size[pairs.trajectory], minlength=len(keys)).astype(np.int64)
    label = keys % labels
    tail, head = np.divmod(keys // labels, classes + 2)
    rows = np.zeros((classes + 2, labels), np.int64)
    rows[known.key // labels, known.key % labels] = known.rows
    arcs: list[tuple[Integers, Integers]] = []
    open_ = (tail == classes) & (head == classes + 1)
    order = np.argsort(label, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        one_label = int(label[chosen[0]])
        sides = (np.unique(np.append(tail[chosen], classes)), np.unique(np.append(head[chosen], classes + 1)))
        sent = _hand_out(rows[:, one_label], sides, (tail[chosen], head[chosen], room[chosen]))
        if sent is None:
            open_[chosen] = True
            continue
        flow, direct = sent
        more, fewer = flow < room[chosen], flow > 0
        open_[chosen] |= fewer
        at, to = tail[chosen] * labels + one_label, head[chosen] * labels + one_label
        gone, back = np.array([classes]) * labels + one_label, np.array([classes + 1]) * labels + one_label
        arcs += [(at[more], to[more]), (to[fewer], at[fewer]), (gone, back), *([(back, gone)] if direct else [])]
    if arcs:
        size = (classes + 2) * labels
        start, end = (np.concatenate(side) for side in zip(*arcs, strict=True))
        graph = csr_matrix((np.ones(len(start), np.int8), (start, end)), shape=(size, size))
        part = connected_components(graph, directed=True, connection="strong")[1]
        open_ |= part[tail * labels + label] == part[head * labels + label]
    return np.asarray(open_[of])


def _hand_out(
    rows: Integers, sides: tuple[Integers, Integers], cells: tuple[Integers, Integers, Integers]
) -> tuple[Integers, int] | None:
    """Rows of one label by the classes of their people in both releases, and how many are in both; None if no way."""
    starts, ends = sides
    tail, head, room = cells
    before, after = int(rows[starts[:-1]].sum()), int(rows[ends[:-1]].sum())
    absent, gone = len(rows) - 2, len(rows) - 1
    supply, demand = rows[starts], rows[ends]
    supply[-1], demand[-1] = after, before
    source, sink = 2 * len(rows), 2 * len(rows) + 1
    tails = np.concatenate([np.full(len(starts), source), tail, [absent], len(rows) + ends])
    heads = np.concatenate([starts, len(rows) + head, [len(rows) + gone], np.full(len(ends), sink)])
    capacity = np.concatenate([supply, room, [INFINITE], demand])
    value, flow = max_flow(tails, heads, capacity, source, sink)
    if value < before + after:
        return None
    inner = flow[len(starts) : len(starts) + len(tail)]
    return inner, int(flow[len(starts) + len(tail)])


def possible(known: Known, pairs: Pairs, part: NDArray[np.int32]) -> tuple[Mask, Mask]:
    """Pairs that all releases together admit, of components that are not too large, and those of which that was asked.

    `part` is the component of every trajectory, each whole.
    """
    of = part[pairs.trajectory]
    asked = (np.bincount(of, minlength=1) <= LARGEST)[of]
    reached = ~asked
    size = np.bincount(of[asked], minlength=int(of.max(initial=0)) + 1)
    batch = ((np.cumsum(size) - size) // _SOLVED)[of]
    for number in np.unique(batch[asked]).tolist():
        chosen = asked & (batch == number)
        reached[chosen] = _reached(known, pairs.take(chosen))
    return reached, np.asarray(asked)


def _reached(known: Known, pairs: Pairs) -> Mask:
    """Any multiple of a way to share rows out will do, so what is reached counts up to 1, and all of it together is."""
    count = len(pairs)
    pair, release = np.nonzero(known.path[pairs.trajectory] >= 0)
    key = known.path[pairs.trajectory[pair], release] * known.labels + pairs.label[pair]
    row = np.concatenate([pairs.trajectory, len(known.size) + np.searchsorted(known.key, key)])
    used, row = np.unique(row, return_inverse=True)
    matrix = coo_array((np.ones(len(row)), (row, np.r_[np.arange(count), pair])), shape=(len(used), count))
    total = np.concatenate([known.size, known.rows])[used]
    times = coo_array(-total[:, None].astype(np.float64))
    each = coo_array((np.ones(count), (np.arange(count), np.arange(count))), shape=(count, count))
    answer = linprog(
        np.concatenate([np.zeros(count + 1), -np.ones(count)]),
        A_eq=hstack([matrix, times, coo_array((len(used), count))], format="csc"),
        b_eq=np.zeros(len(used)),
        A_ub=hstack([-each, coo_array((count, 1)), each], format="csc"),
        b_ub=np.zeros(count),
        bounds=[(0, None)] * count + [(1, None)] + [(0, 1)] * count,
        method="highs",
    )
    if answer.status != 0:
        return np.ones(count, np.bool_)
    return np.asarray(answer.x[count + 1 :] > 0.5)
