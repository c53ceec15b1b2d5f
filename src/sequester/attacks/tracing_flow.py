"""Which places surely hold more rows of a row group than the bound allows: the flow of record tracing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.tracing_graph import Integers, Network


def fullest(rows: Network, order: Integers, start: Integers) -> Iterator[tuple[list[int], int]]:
    """Places, among those one row group chooses from, that surely hold more of its rows than the bound allows.

    The choices are the arcs `order` from every `start` to the next; for each that has such places, the arcs to them and
    how many rows are certain to be there. What is certain adds up over the choices of a row group, so each is judged
    alone.

    The distributions of a row group over its places are the bases of a polymatroid, so none of them respects the
    bound everywhere iff some set of places must be overfull. The truth is one distribution: try to move its excess,
    along the residual graph without the group itself, to places below the bound. When not all can be moved, the cut
    tells which places stay overfull.
    """
    bounds = rows.history.bounds
    scale = np.array([bound.denominator for bound in bounds], np.int64)[rows.value[order]]
    allowed = np.array([bound.numerator for bound in bounds], np.int64)[rows.value[order]] * rows.people[order]
    excess = rows.rows[order] * scale - allowed
    room, over = np.maximum(-excess, 0), np.maximum(excess, 0)
    # Newcomers' rows make room. Where too many left, others of the class leave instead: the room in a place is never
    # more than the people there with other values.
    free = np.add.reduceat(np.minimum(room, rows.spare[rows.head[order]] * scale), start)
    overfull = np.add.reduceat(excess, start) > 0
    stop = np.append(start[1:], len(order))
    for choice in np.flatnonzero(overfull | (free < np.add.reduceat(over, start))).tolist():
        here = slice(start[choice], stop[choice])
        arcs = order[here]
        if overfull[choice]:
            yield arcs.tolist(), int(rows.rows[arcs].sum())
            continue
        moved, kept = _move(rows, arcs, room[here], over[here], int(scale[start[choice]]))
        if moved < over[here].sum() and kept.any():
            crossing = moved - room[here][kept].sum() - over[here][~kept].sum()
            yield arcs[kept].tolist(), int(rows.rows[arcs[kept]].sum() - crossing // scale[start[choice]])


def _move(rows: Network, arcs: Integers, room: Integers, over: Integers, scale: int) -> tuple[int, NDArray[np.bool_]]:
    """How much of what is over can be moved to where there is room; and the places on the far side of the cut.

    Shortest augmenting paths. They are few and short, because what can be moved mostly meets rows of newcomers soon,
    so only the part of the graph that the searches touch is ever built.
    """
    places = rows.head[arcs].tolist()
    give = {place: most for place, most in zip(places, room.tolist(), strict=True) if most}
    take = {place: most for place, most in zip(places, over.tolist(), strict=True) if most}
    graph = _Residual(rows, int(rows.tail[arcs[0]]), scale, exits=_exits(rows, arcs, over))
    moved = 0
    while True:
        before = graph.search(give, take)
        path = graph.path(before, take)
        if not path:
            break
        sent = min(give[path[0]], take[path[-1]], graph.narrowest(path))
        graph.push(path, sent)
        moved += sent
        for ends, node in ((give, path[0]), (take, path[-1])):
            ends[node] -= sent
            if not ends[node]:
                del ends[node]
        if not take:
            break
    kept = np.array([place not in before for place in places])
    if rows.sink in before:
        # The sink leads to every class, by arcs that were not needed.
        kept &= rows.second[arcs] < 0
    return moved, kept


def _exits(rows: Network, arcs: Integers, over: Integers) -> list[int]:
    """Where to go from the sink: what reaches it needs no longer way than straight to the places that are overfull.

    But for "left", which is only reached by other rows of the class.
    """
    exits: list[int] = rows.head[arcs[(over > 0) & (rows.second[arcs] >= 0)]].tolist()
    if (over[rows.second[arcs] < 0] > 0).any():
        exits = sorted({*exits, *rows.true_heads(int(rows.first[arcs[0]])).tolist()})
    return exits


class _Residual:
    """The residual graph of the truth without one row group, built as it is searched."""

    def __init__(self, rows: Network, group: int, scale: int, *, exits: list[int]) -> None:
        self._onward = rows.onward
        self._group = group
        self._scale = scale
        self._built = {rows.sink: {node: int(rows.used[node]) * scale for node in exits}}

    def _arcs(self, node: int) -> dict[int, int]:
        found = self._built.get(node)
        if found is None:
            begin, heads, capacity = self._onward
            span = slice(begin[node], begin[node + 1])
            pairs = zip(heads[span], capacity[span], strict=True)
            found = {head: most * self._scale for head, most in pairs if head != self._group}
            self._built[node] = found
        return found

    def search(self, give: dict[int, int], take: dict[int, int]) -> dict[int, int]:
        """Nodes reached from those that give, each with the one before it, until one that takes is met."""
        before = dict.fromkeys(give, -1)
        queue = list(give)
        for node in queue:
            if node in take:
                break
            for head, most in self._arcs(node).items():
                if most and head not in before:
                    before[head] = node
                    queue.append(head)
        return before

    def path(self, before: dict[int, int], take: dict[int, int]) -> list[int]:
        """From a node that gives to one that takes; empty when none was met."""
        node = next((node for node in before if node in take), -1)
        path = []
        while node >= 0:
            path.append(node)
            node = before[node]
        return path[::-1]

    def narrowest(self, path: list[int]) -> int:
        return min(self._arcs(tail)[head] for tail, head in pairwise(path))

    def push(self, path: list[int], sent: int) -> None:
        for tail, head in pairwise(path):
            self._arcs(tail)[head] -= sent
            back = self._arcs(head)
            back[tail] = back.get(tail, 0) + sent
