"""One level per attribute for the whole table, optimal over the generalization lattice for any of the losses.

The search goal of Incognito (LeFevre, DeWitt and Ramakrishnan) with the exactness of Flash and OLA: the result is the
cheapest node of the whole lattice. Records in classes that stay unsafe may be left out, up to a fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError, PolicyError
from sequester.methods.cells import Cells, make_room, pack
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.costs import penalty
from sequester.methods.full_domain.lattice import Node, NodeCost, cheapest

if TYPE_CHECKING:
    from sequester.methods.series_guard.guard import SeriesGuard

_LARGEST_LATTICE = 20_000_000
"""Nodes of a lattice: two bounds of each are kept, 16 bytes."""
_LARGEST_WITNESS = 4_000_000
"""Counts, over all nodes, up to which a witness is followed through the lattice: beyond, judging nodes is faster."""
_SEPARABLE = ("ncp", "ail", "precision", "entropy")


def full_domain(
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    loss: str = "ncp",
    suppression: float = 0.0,
    watch: SeriesGuard | None = None,
    floor: Node | None = None,
) -> Classes:
    """Recode all records (attributes, records) to the levels that lose least and are safe.

    `watch` judges what is safe given earlier releases, `floor` are the lowest levels allowed.
    """
    shape = tuple(domain.height + 1 for domain in domains)
    if np.prod([float(length) for length in shape]) > _LARGEST_LATTICE:
        raise PolicyError(
            f"the lattice of full-domain has over {_LARGEST_LATTICE:,} nodes; "
            "give some attributes fewer levels, or use method mondrian or specialize"
        )
    cells = Cells.of(codes, domains, guard)
    budget = int(np.floor(suppression * codes.shape[1] + 1e-9))
    costs = [
        level_costs(loss, domain, np.bincount(row, minlength=domain.size))
        for domain, row in zip(domains, codes, strict=True)
    ]
    base = _base(costs, cells, shape) if loss in _SEPARABLE else None
    judge = Judge(cells, domains, guard, loss=loss, budget=budget, costs=costs, base=base)
    found = cheapest(shape, judge if watch is None else Watched(judge, watch, floor or (0,) * len(shape)), base=base)
    if found is None:
        raise GuaranteeError(
            "no levels of the hierarchies make the table safe, not even suppressing every quasi-identifier; "
            "lower what is required, allow more suppression, or collect more records",
            guarantee="full-domain",
        )
    return judge.classes(found.node)


def level_costs(loss: str, domain: Hierarchy, frequency: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Per level, what one record with each leaf loses in this attribute; zero where a loss is not a sum of cells."""
    costs = []
    for level in range(domain.height + 1):
        groups = domain.groups(level)
        lo, hi = (bound[groups] for bound in domain.bounds(level))
        if loss == "entropy":
            together = np.bincount(groups, weights=frequency)[groups]
            cost = np.log2(np.maximum(together, 1) / np.maximum(frequency, 1)) * (frequency > 0)
        elif loss in _SEPARABLE:
            cost = penalty(loss, domain, lo, hi)
        else:
            cost = np.zeros(domain.size)
        costs.append(cost.astype(np.float64))
    return costs


def _base(costs: Sequence[Sequence[NDArray[np.float64]]], cells: Cells, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """What every node loses by generalization alone: a sum over attributes, known without looking at any class."""
    base = np.zeros(shape)
    for attribute, levels in enumerate(costs):
        # Counted once per leaf, and summed without BLAS, whose threads would spin beside a busy core.
        people = np.bincount(cells.codes[attribute], cells.size, minlength=len(levels[0]))
        totals = np.array([(cost * people).sum() for cost in levels])
        base += totals.reshape([-1 if axis == attribute else 1 for axis in range(len(shape))])
    return base


class Watched:
    """Judges nodes of the lattice of one table that follows earlier releases.

    What breaks a monotone check is given up with all nodes below it; what only another kind of check breaks says
    nothing about other nodes.
    """

    def __init__(self, judge: Judge, watch: SeriesGuard, floor: Node) -> None:
        self.judge, self.watch, self.floor = judge, watch, floor

    def __call__(self, node: Node) -> NodeCost:
        from sequester.methods.series_guard.guard import Answer

        if any(level < least for level, least in zip(node, self.floor, strict=True)):
            return NodeCost(np.inf, 0.0, np.inf)
        found = self.judge(node)
        if found.cost == np.inf:
            return found
        classes = self.judge.classes(node)
        answer = self.watch.judge(classes.member, classes.lo, classes.hi)
        if answer is Answer.YES:
            return found
        return replace(found, cost=np.inf, extra=np.inf if answer is Answer.NO else found.extra)


class Judge:
    """Judges nodes of the lattice of one table; see `lattice` for what the verdicts mean."""

    def __init__(
        self,
        cells: Cells,
        domains: Sequence[Hierarchy],
        guard: ClassGuard,
        *,
        loss: str,
        budget: int,
        costs: Sequence[Sequence[NDArray[np.float64]]],
        base: NDArray[np.float64] | None,
    ) -> None:
        self.cells, self.domains, self.guard, self.loss, self.budget, self.costs, self.base = (
            cells, domains, guard, loss, budget, costs, base,
        )  # fmt: skip
        self.records = int(cells.size.sum())
        self._first_leaf = np.cumsum([0, *(domain.size for domain in domains)]).astype(np.int64)
        # Per attribute (levels, leaves): the group of every leaf.
        self._levels = [
            np.array([domain.groups(level) for level in range(domain.height + 1)], np.int64) for domain in domains
        ]
        self._room = make_room(len(cells))
        # Levels of the attribute that has most of them: fewer cells, with which every node at that level is judged.
        self._longest = max(range(len(domains)), key=lambda a: (domains[a].height, domains[a].size))
        self._merged: dict[int, Cells] = {0: cells}
        # Leaving a record out loses all there is to know about it: for entropy that depends on how rare its values are.
        self._lost = np.concatenate([levels[-1] if loss == "entropy" else np.ones(len(levels[-1])) for levels in costs])

    def __call__(self, node: Node) -> NodeCost:
        from sequester.methods.full_domain import node_kernels as told

        cells = self._at_level(node[self._longest])
        result, _ = self._run(node, cells)
        if not result[told.SAFE] and not self.budget:
            forbidden = self._forbidden(cells.codes[:, int(result[told.WITNESS])], by_value=not result[told.BY_SIZE])
            return NodeCost(np.inf, 0.0, np.inf, forbidden)
        suppressed, below = result[told.SUPPRESSED], result[told.BELOW]
        if self.base is not None:
            base = float(self.base[node])
            cost, extra = base + result[told.EXTRA], result[told.EXTRA_BELOW]
        elif self.loss == "dm":
            base = result[told.SQUARES]
            cost = base + self.records * suppressed - result[told.SQUARES_OUT]
            extra = self.records * below - result[told.SQUARES_BELOW]
        else:
            base = self.records / result[told.CLASSES]
            cost, extra = self.records / result[told.KEPT] if result[told.KEPT] else np.inf, 0.0
        return NodeCost(
            # Leaving everybody out is no release.
            cost=cost if suppressed <= self.budget and suppressed < self.records else np.inf,
            base=base,
            extra=np.inf if below > self.budget else extra,
        )

    def _at_level(self, level: int) -> Cells:
        if level not in self._merged:
            leaves = [np.arange(domain.size) for domain in self.domains]
            leaves[self._longest] = self._levels[self._longest][level]
            self._merged[level] = self.cells.merged(leaves)
        return self._merged[level]

    def _forbidden(self, leaves: NDArray[np.int32], *, by_value: bool) -> NDArray[np.bool_] | None:
        """All nodes, anywhere in the lattice, at which the class of a cell with these leaves is not safe."""
        from sequester.methods.full_domain.node_kernels import forbid_nodes

        shape = tuple(domain.height + 1 for domain in self.domains)
        if np.prod(shape) * (2 + self.guard.limits.numerator.size) > _LARGEST_WITNESS:
            return None
        joined = [
            np.sum(levels != levels[:, [leaf]], axis=0) for levels, leaf in zip(self._levels, leaves, strict=True)
        ]
        forbidden: NDArray[np.bool_] = forbid_nodes(
            self.cells.table,
            self._first_leaf,
            np.concatenate(joined),
            np.array(shape),
            by_value,
            self.guard.known,
            self.guard.limits,
        )
        return forbidden.reshape(shape)

    def classes(self, node: Node) -> Classes:
        """What a node publishes."""
        groups = [domain.groups(level) for domain, level in zip(self.domains, node, strict=True)]
        bounds = [domain.bounds(level) for domain, level in zip(self.domains, node, strict=True)]
        return self.cells.classes(
            [first[group] for (first, _), group in zip(bounds, groups, strict=True)],
            [last[group] for (_, last), group in zip(bounds, groups, strict=True)],
            kept=self._run(node, self.cells)[1],
            levels=node,
        )

    def _run(self, node: Node, cells: Cells) -> tuple[NDArray[np.float64], Any]:
        from sequester.methods.full_domain.node_kernels import Recoding, judge_node

        groups = [self._levels[a][level] for a, level in enumerate(node)]
        scale, word, words, span = pack([int(group[-1]) + 1 for group in groups])
        recoding = Recoding(
            first_leaf=self._first_leaf,
            key=np.concatenate([group * factor for group, factor in zip(groups, scale, strict=True)]),
            word=word,
            words=words,
            span=span if span <= self._room.size else 0,
            table=self._room,
            cost=np.concatenate([self.costs[a][level] for a, level in enumerate(node)]),
            lost=self._lost,
        )
        # The judge may compare with what is left when some is suppressed.
        limits = self.guard.limits._replace(reference=self.guard.limits.reference.copy())
        judged: tuple[NDArray[np.float64], Any] = judge_node(
            cells.table, recoding, self.budget, self.guard.known, limits
        )
        return judged
