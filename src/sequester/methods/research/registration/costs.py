"""What the nodes of trees over registered people cost, and the cheapest classes among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.methods.lifetime.placing import WORTH
from sequester.methods.research.registration.point_kernels import PointShares, Tree
from sequester.methods.research.registration.registry import Registry

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROOT = np.zeros(1, np.int64)
# Cuts are tried again around classes that lose so many times as much as the usual record: fewer are worth the time.
_MUCH = 2.0
# They are tried among so many times k records: enough that other cuts than before are possible.
_WIDE = 64
# To part all records from points that can hardly bear their values counts as much as to halve all boxes.
_APART = 1.0


class Regions(NamedTuple):
    """Per record its class, -1 for none, and the boxes (classes, attributes)."""

    member: Ints
    lo: Ints
    hi: Ints


class Chosen(NamedTuple):
    """Nodes that are classes at best, those that are given, and those that are left out."""

    classes: Longs
    given: Longs
    lost: Longs


def cheapest(registry: Registry, shares: PointShares) -> Regions:
    """The cheapest classes within these shares."""
    whole = NodeCosts.of(registry, shares, registry.cut(shares))
    roots = whole.expensive(_WIDE * registry.limits.k)
    if not len(roots):
        return _together(registry, [whole.publish(whole.chosen(_ROOT).classes)])
    runs = [whole.tree.line[whole.tree.first[root] : whole.tree.last[root]] for root in roots]
    other = NodeCosts.of(registry, shares, registry.cut(shares, runs, apart=_APART))
    better = other.best[: len(roots)] < whole.best[roots]
    whole.give(roots[better], other.best[: len(roots)][better])
    chosen = whole.chosen(_ROOT)
    again = other.chosen(np.flatnonzero(np.isin(roots, chosen.given)))
    return _together(registry, [whole.publish(chosen.classes), other.publish(again.classes)])


def _together(registry: Registry, parts: Sequence[Regions]) -> Regions:
    """Classes of different records, numbered through, with the attributes as they were given."""
    member, classes = np.full(registry.points.record.size, -1, np.int32), 0
    for part in parts:
        own = part.member >= 0
        member[own] = part.member[own] + classes
        classes += len(part.lo)
    back = np.argsort(registry.axes)
    lo, hi = np.concatenate([part.lo for part in parts]), np.concatenate([part.hi for part in parts])
    return Regions(member, lo[:, back], hi[:, back])


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """What the nodes of trees cost: as one class each (`own`), as found elsewhere (`given`), and at best."""

    registry: Registry
    shares: PointShares
    tree: Tree
    own: Floats
    given: Floats
    best: Floats

    @classmethod
    def of(cls, registry: Registry, shares: PointShares, tree: Tree) -> NodeCosts:
        nodes = len(tree.first)
        costs = cls(registry, shares, tree, np.full(nodes, np.nan), np.full(nodes, np.inf), np.full(nodes, np.inf))
        costs.give(np.zeros(0, np.int64), np.zeros(0))
        return costs

    def give(self, nodes: Longs, loss: Floats) -> None:
        """These nodes can be had for less."""
        from sequester.methods.research.registration.judge_kernels import price_nodes

        self.given[nodes] = loss
        registry = self.registry
        self.best[:] = price_nodes(
            self.tree, registry.points, self.shares, registry.limits, WORTH, self.given, self.own
        )

    def chosen(self, roots: Longs) -> Chosen:
        """The best nodes under these."""
        classes, given, lost = ([np.zeros(0, np.int64)] for _ in range(3))
        while len(roots):
            child, best = self.tree.child[roots], self.best[roots]
            parts = np.where(child >= 0, self.best[child] + self.best[child + (child >= 0)], np.inf)
            split = parts == best
            elsewhere = ~split & (self.given[roots] == best)
            here = ~split & ~elsewhere & (self.own[roots] == best)
            given.append(roots[elsewhere])
            classes.append(roots[here])
            lost.append(roots[~split & ~elsewhere & ~here])
            roots = np.concatenate([child[split], child[split] + 1])
        return Chosen(np.concatenate(classes), np.concatenate(given), np.concatenate(lost))

    def publish(self, nodes: Longs) -> Regions:
        """These nodes as classes."""
        from sequester.methods.research.registration.judge_kernels import publish_nodes

        if not len(nodes):
            boxes = np.zeros((0, len(self.registry.axes)), np.int32)
            return Regions(np.full(self.registry.points.record.size, -1, np.int32), boxes, boxes)
        return Regions(*publish_nodes(self.tree, self.registry.points, self.shares, self.registry.limits, nodes))

    def expensive(self, size: int) -> Longs:
        """Nodes of at least so many records, none inside another, around classes that lose much more than others."""
        tree = self.tree
        records = np.append(0, np.cumsum(np.diff(self.registry.points.begin)[tree.line]))
        many = records[tree.last] - records[tree.first]
        inner = np.flatnonzero(tree.child >= 0)
        parent = np.full(len(many), -1)
        parent[tree.child[inner]] = parent[tree.child[inner] + 1] = inner
        chosen = self.chosen(_ROOT)
        nodes = np.concatenate([chosen.classes, chosen.lost])
        nodes = nodes[self.best[nodes] > _MUCH * many[nodes] * self.best[0] / max(many[0], 1)]
        while (small := (many[nodes] < size) & (parent[nodes] >= 0)).any():
            nodes = np.unique(np.where(small, parent[nodes], nodes))
        nodes = nodes[np.lexsort((-tree.last[nodes], tree.first[nodes]))]
        reached = np.maximum.accumulate(np.append(-1, tree.last[nodes]))[:-1]
        outermost: Longs = nodes[(tree.last[nodes] > reached) & (tree.child[nodes] >= 0)]
        return outermost
