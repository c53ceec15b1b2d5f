"""Blocks (biconnected components) of a graph: edges are in one block when they are equal or lie on a common cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

Integers = NDArray[np.int64]


def blocks_of(one: Integers, other: Integers) -> Integers:
    """Per edge of an undirected graph without loops, the number of its block. Edges may repeat.

    Tarjan and Vishkin: a block is a component of the graph whose nodes are the edges of a spanning tree, and that joins
    edges whose cycle is closed by an edge outside the tree. It takes any tree, so a breadth-first one.
    """
    names, inverse = np.unique(np.concatenate([one, other]), return_inverse=True)
    if len(names) == 0:
        return np.zeros(0, np.int64)
    tail, head, root = inverse[: len(one)], inverse[len(one) :], len(names)
    order, parent = _spanning_tree(tail, head, root)
    rank, size = _number(order, parent)
    low, high = rank.copy(), rank.copy()
    apart = (parent[tail] != head) & (parent[head] != tail)
    for a, b in ((tail[apart], head[apart]), (head[apart], tail[apart])):
        np.minimum.at(low, a, rank[b])
        np.maximum.at(high, a, rank[b])
    _gather(order, parent, low, high)
    # A tree edge is named by its lower end. It shares a block with the edge above when its subtree leaves that of the
    # node between them.
    lower = order[1:]
    lower = lower[parent[lower] != root]
    above = parent[lower]
    joined = (low[lower] < rank[above]) | (high[lower] >= rank[above] + size[above])
    beside = (rank[tail] + size[tail] <= rank[head]) | (rank[head] + size[head] <= rank[tail])
    pairs = np.concatenate([lower[joined], tail[beside]]), np.concatenate([above[joined], head[beside]])
    graph = csr_matrix((np.ones(len(pairs[0]), np.bool_), pairs), shape=(root + 1, root + 1))
    block = connected_components(graph, directed=False)[1].astype(np.int64)
    return np.asarray(block[np.where(rank[tail] > rank[head], tail, head)])


def _spanning_tree(tail: Integers, head: Integers, root: int) -> tuple[Integers, Integers]:
    """Nodes in breadth-first order and the parent of each, from a root that is joined to every component."""
    graph = csr_matrix((np.ones(len(tail), np.bool_), (tail, head)), shape=(root + 1, root + 1))
    part = connected_components(graph, directed=False)[1][:root]
    first = np.unique(part, return_index=True)[1]
    pairs = np.concatenate([tail, head, np.full(len(first), root)]), np.concatenate([head, tail, first])
    graph = csr_matrix((np.ones(len(pairs[0]), np.bool_), pairs), shape=(root + 1, root + 1))
    order, parent = breadth_first_order(graph, root, directed=True)
    return order.astype(np.int64), parent.astype(np.int64)


def _number(order: Integers, parent: Integers) -> tuple[Integers, Integers]:
    """Per node its place in a preorder of the tree, and how many nodes its subtree has."""
    up, nodes = parent.tolist(), order.tolist()
    size = [1] * len(nodes)
    for node in reversed(nodes[1:]):
        size[up[node]] += size[node]
    rank, free = [0] * len(nodes), [1] * len(nodes)
    for node in nodes[1:]:
        above = up[node]
        rank[node] = free[above]
        free[above] += size[node]
        free[node] = rank[node] + 1
    return np.array(rank, np.int64), np.array(size, np.int64)


def _gather(order: Integers, parent: Integers, low: Integers, high: Integers) -> None:
    """Extend `low` and `high` of every node to its whole subtree."""
    up, least, most = parent.tolist(), low.tolist(), high.tolist()
    for node in reversed(order[1:].tolist()):
        above = up[node]
        least[above] = min(least[above], least[node])
        most[above] = max(most[above], most[node])
    low[:], high[:] = least, most
