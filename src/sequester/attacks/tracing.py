"""Record tracing: following the rows of an earlier release into a later one (Byun et al., section 4.5).

Whoever holds both releases, the quasi-identifiers of the people of the earlier one and the knowledge who of them is
still in the later one, asks which people may own a given row. Values are permanent and boxes of one person
intersect, so the rows with one value can only move along compatible classes, and all of them must find a place.
The true places are one solution of this transportation problem, so no flow has to be computed: a place is feasible
when it is used or lies on a cycle of the residual graph of the truth, that is when both its ends are in one strongly
connected component.

The rows of one row group need not be exchangeable: in Figure 9 (ii) of the paper one of two rows is surely in one
class and one in another. Two places of a row group belong together when rows can be moved from one to the other
around the group, that is along a cycle of the component: when they are in one block (biconnected component). How
many rows of the group are in each block is the same in every solution, and finer sets of places have no such number.

Identity: fewer than k people of the earlier class are where the rows of one block are. Attribute: more rows with a
value are certain to be in a set of classes than the bound allows for the people of the earlier class who are there.

People are counted by their true classes, not by their points: they are exactly those inside the boxes when the boxes
of one release are disjoint, and otherwise fewer, never more, than an adversary who only sees boxes must consider.
People who left count as one more place, and the adversary knows who they are. Newcomers' rows are not traced back.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from sequester.attacks.blocks import blocks_of
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.tracing_flow import fullest
from sequester.attacks.tracing_graph import Integers, Network, network
from sequester.history.history import History


def find(history: History, *, semantics: Semantics = "exact") -> Result:
    """Row groups that too few people can own, over all pairs of releases.

    The measure is the smallest number of people who can own a row. Two releases of which all classes share nobody or
    at least k people leave k candidates to every row; they count with the smallest such number, which is a lower
    bound, so a measure below k is exact. `semantics="paper"` is the heuristic of Figure 10.
    """
    if semantics == "paper":
        from sequester.attacks.tracing_paper import find_as_printed

        return find_as_printed(history)
    return search(history)


def search(history: History, *, certify: bool = True) -> Result:
    """The exact attack; without `certify` also on releases that are safe because of what their classes share."""
    counts = history.trajectory_counts()
    if history.trajectories is None or counts is None or len(history) < 2:
        return Result([], None)
    path, size = history.trajectories.path, history.trajectories.size
    if certify and not _open_cells(history, size, counts):
        # Trajectories that only the last release has are newcomers, whose rows nobody traces.
        traced = (path[:, :-1] >= 0).any(axis=1)
        return Result([], float(size[traced].min()) if traced.any() else None)
    found = _Found()
    for second in range(1, len(history)):
        for first in range(second):
            _search_pair(history, first, second, found, certify=certify)
    return Result(list(found.findings.values()), min(found.fewest) if found.fewest else None)


class _Found:
    """Each set of people and value once, by the earliest releases that expose it; the fewest candidates per pair."""

    def __init__(self) -> None:
        self.findings: dict[tuple[bool, int, tuple[int, ...]], Finding] = {}
        self.fewest: list[float] = []

    def add(self, rows: Network, arcs: list[int], *, required: float, observed: float, **more: int) -> None:
        key = (bool(more), rows.columns[2][arcs[0]], rows.owners(arcs))
        if key not in self.findings:
            self.findings[key] = rows.report(arcs, required=required, observed=observed, **more)


def _search_pair(history: History, first: int, second: int, found: _Found, *, certify: bool) -> None:
    known = history.overlap(first, second)
    inside = known.first >= 0
    if not inside.any():
        return
    assert known.counts is not None
    if certify and not _open_cells(history, known.size[inside], known.counts[inside]):
        found.fewest.append(float(known.size[inside].min()))
        return
    rows = network(history, first, second)
    order, start = _choices(rows, components(rows))
    if len(order) == 0:
        return
    candidates = np.add.reduceat(rows.people[order], start)
    found.fewest.append(float(candidates.min()))
    arcs, ends = order.tolist(), np.append(start, len(order)).tolist()
    for choice in np.flatnonzero(candidates < history.k).tolist():
        here = arcs[ends[choice] : ends[choice + 1]]
        found.add(rows, here, required=history.k, observed=int(candidates[choice]))
    for places, certain in fullest(rows, order, start):
        bound, people = history.bounds[rows.value[places[0]]], int(rows.people[places].sum())
        found.add(rows, places, required=float(bound), observed=certain / people, certain=certain)


def _open_cells(history: History, size: Integers, counts: Integers) -> bool:
    """Whether some of these sets of people is too small, or has too many of one value, to vouch for itself."""
    if (size < history.k).any():
        return True
    return any((_excess(counts[:, value], size, bound) > 0).any() for value, bound in enumerate(history.bounds))


def _excess(rows: Integers, people: Integers, bound: Fraction) -> Integers:
    """By how much rows exceed the bound for people, times the bound's denominator."""
    return rows * bound.denominator - people * bound.numerator


def components(rows: Network) -> NDArray[np.int32]:
    """Per node, its strongly connected component of the residual graph of the truth."""
    tails, heads, _ = rows.residual
    graph = csr_matrix((np.ones(len(tails), np.int8), (tails, heads)), shape=(rows.sink + 1, rows.sink + 1))
    part: NDArray[np.int32] = connected_components(graph, directed=True, connection="strong")[1]
    return part


def _choices(rows: Network, part: NDArray[np.int32]) -> tuple[Integers, Integers]:
    """The feasible arcs, those of one row group in one block after each other, and where each such choice starts."""
    feasible = np.flatnonzero(part[rows.tail] == part[rows.head])
    block = np.zeros(len(feasible), np.int64)
    # Where rows of newcomers can be moved, every class is next to the sink: one block, but for those who left.
    divided = (part[rows.tail[feasible]] != part[rows.sink]) | (rows.second[feasible] < 0).any()
    if divided.any():
        tails, heads, _ = rows.residual
        within = np.zeros(part.max() + 1, np.bool_)
        within[part[rows.tail[feasible[divided]]]] = True
        inside = np.flatnonzero((part[tails] == part[heads]) & within[part[tails]])
        of_edge = blocks_of(tails[inside], heads[inside])
        # The arcs of the network come first in the residual graph.
        block[divided] = of_edge[np.searchsorted(inside, feasible[divided])]
    order = np.lexsort((block, rows.tail[feasible]))
    changes = np.diff(rows.tail[feasible][order], prepend=-1) | np.diff(block[order], prepend=-1)
    return feasible[order], np.flatnonzero(changes)
