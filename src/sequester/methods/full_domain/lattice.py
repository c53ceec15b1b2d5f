"""Exact search of a generalization lattice for the cheapest safe node.

The lattice is an array with one axis per attribute and one index per level, so that everything above or below a node
is a slice. Every node has a `base` cost, which never falls when any level is raised, and an `extra` cost of what must
be left out, which never falls when levels are lowered (infinite where the node is not allowed). So one judged node
bounds the base of all above it and the extra of all below it, and a node whose bounds reach the best cost is done.
Where a criterion does not allow a conclusion, its evaluation reports a smaller bound: it verifies and never prunes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Node = tuple[int, ...]


@dataclass(frozen=True)
class NodeCost:
    """A judged node: its cost (infinite when not allowed), and what it proves about its neighbours."""

    cost: float
    base: float  # no node above costs less
    extra: float  # every node below costs at least this beyond its own base
    forbidden: NDArray[np.bool_] | None = None  # nodes, anywhere in the lattice, that are not allowed either


@dataclass(frozen=True)
class Optimum:
    """The cheapest node and how many nodes had to be judged to know it."""

    node: Node
    cost: float
    judged: int


def cheapest(
    shape: tuple[int, ...],
    judge: Callable[[Node], NodeCost],
    *,
    base: NDArray[np.float64] | None = None,
) -> Optimum | None:
    """The cheapest allowed node of a lattice, None when no node is allowed. `base`: base costs known beforehand.

    A path from the most promising node to the top is bisected: a node in the middle tells most about the others.
    """
    bases = np.zeros(shape) if base is None else base.astype(np.float64)
    extras = np.zeros(shape)
    is_open = np.ones(shape, np.bool_)
    best: tuple[float, Node] | None = None
    judged = 0
    top = tuple(length - 1 for length in shape)

    def visit(node: Node) -> None:
        nonlocal best, judged
        verdict = judge(node)
        judged += 1
        is_open[node] = False
        if verdict.cost < np.inf and (best is None or (verdict.cost, node) < best):
            best = (verdict.cost, node)
        above = tuple(slice(level, None) for level in node)
        below = tuple(slice(None, level + 1) for level in node)
        np.maximum(bases[above], verdict.base, out=bases[above])
        np.maximum(extras[below], verdict.extra, out=extras[below])
        if verdict.forbidden is not None:
            is_open[verdict.forbidden] = False

    visit(top)
    while True:
        bound = np.where(is_open, bases + extras, np.inf)
        start = np.unravel_index(int(np.argmin(bound)), shape)
        if bound[start] >= (best[0] if best else np.inf):
            break
        path = _climb(tuple(int(level) for level in start), top, bound, best[0] if best else np.inf)
        visit(path[len(path) // 2])
    return None if best is None else Optimum(best[1], best[0], judged)


def _climb(node: Node, top: Node, bound: NDArray[np.float64], limit: float) -> list[Node]:
    """A path of undecided nodes upwards, each time to the cheapest bound."""
    path = [node]
    while True:
        steps = [
            (bound[above], above)
            for axis in range(len(node))
            if node[axis] < top[axis]
            for above in [(*node[:axis], node[axis] + 1, *node[axis + 1 :])]
            if bound[above] < limit
        ]
        if not steps:
            return path
        node = min(steps)[1]
        path.append(node)
