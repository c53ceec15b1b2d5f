"""Sets left by subtracting classes of one release from classes of another, that are too few or have a value too often.

Identity: too few people are left by subtracting nested sets of classes.

Byun et al., section 4.3. The set left by outer classes B minus inner classes A, all people of A being in B, is a
directed cut: a class b in B pays for every person of hers who is in no class of A, and a class in A forces every
class with one of its people into B. The smallest non-empty such set is a smallest positive cut, found per connected
component of classes that share people. Sets of `limit` or more people do not matter, which first shrinks the problem:
a class that shares `limit` people with another goes with it, and one with `limit` people nobody can take away is out.
For two releases these sets, of both directions, make up every set of people whose values are determined.

Values: too many of those left by subtracting classes must have it.

Byun et al., section 4.3, add up classes of one release and take away classes of another that lie within them. Taking
away any classes proves as much: of the people in added classes E but not in taken classes F at least n(E) - n(F) have
a value that occurs n(E) and n(F) times, and if that is more than the bound c of |E - F| people, the bound is broken
whatever the adversary believes. For two releases and one value against the rest the converse holds too: where no such
pair of sets exists, in either direction, some belief consistent with both releases gives everybody at most c. The
nested sets of the paper are a special case, and miss people.

Both are one minimum cut instead of a search through all sets of classes, and one for all values together, since what
is chosen for one value says nothing about another. A broken set holds a broken cell (a mean is at most the largest), so
only connected components with such a cell are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.flow import INFINITE, min_cut
from sequester.deferred import connected_components, csr_matrix
from sequester.history import History
from sequester.history.trajectory import Index

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Subtraction:
    """People by their classes in two releases: classes of `outer` are added up, classes of `inner` are taken away.

    Parallel arrays, one entry per non-empty pair of classes, -1 for absence; `counts` is (cells, values), None when
    not known. `outer_counts` and `inner_counts` are (classes, values) as published.
    """

    outer: int
    inner: int
    outer_class: NDArray[np.int32]
    inner_class: NDArray[np.int32]
    size: NDArray[np.int64]
    counts: NDArray[np.int64] | None
    outer_counts: NDArray[np.int64]
    inner_counts: NDArray[np.int64]

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Cells of people who are in both releases."""
        return (self.outer_class >= 0) & (self.inner_class >= 0)

    @cached_property
    def selectable(self) -> NDArray[np.bool_]:
        """Per inner class, whether all its people are in the outer release: only such a class can be nested."""
        nested = np.ones(len(self.inner_counts), np.bool_)
        nested[self.inner_class[self.outer_class < 0]] = False
        return nested

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """Per class, outer classes first, the connected component of classes that share people."""
        outer, inner = self.outer_class[self.shared], self.inner_class[self.shared]
        return components(outer, inner + len(self.outer_counts), len(self.outer_counts) + len(self.inner_counts))

    @cached_property
    def _left(self) -> tuple[Index, list[int]]:
        """Cells by outer class, and the inner class of every cell."""
        return Index.of(self.outer_class, len(self.outer_counts)), self.inner_class.tolist()

    def left(self, added: Iterable[int], taken: Iterable[int]) -> list[int]:
        """Cells of the added outer classes that are outside the inner classes taken away, in order."""
        by_outer, inner = self._left
        within = set(taken)
        return sorted([cell for cell in by_outer.members(added) if inner[cell] not in within])


@dataclass(frozen=True, eq=False, repr=False)
class Remainder:
    """A set of people got by subtraction: outer classes minus inner classes (class numbers from 0).

    `people` are left, at least `with_value` of them with the `value` the set was searched for, if any; `nested` says
    that the classes taken away lie within those added, so that every count of what is left is known exactly.
    """

    cells: Subtraction
    added: list[int]
    taken: list[int]
    people: int
    value: int | None = None
    with_value: int = 0
    nested: bool = True


def directions(history: History, first: int, second: int) -> tuple[Subtraction, Subtraction]:
    """Later minus earlier, then earlier minus later."""
    overlap = history.overlap(first, second)
    one, other = history.releases[first].counts, history.releases[second].counts
    size, counts = overlap.size, overlap.counts
    return (
        Subtraction(second, first, overlap.second, overlap.first, size, counts, other, one),
        Subtraction(first, second, overlap.first, overlap.second, size, counts, one, other),
    )


def components(tails: NDArray[Any], heads: NDArray[Any], nodes: int) -> NDArray[np.int32]:
    """Per node, the number of its connected component."""
    graph = csr_matrix((np.ones(len(tails), np.int8), (tails, heads)), shape=(nodes, nodes))
    label: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return label


Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]
Residual = dict[int, dict[int, int]]
Cut = tuple[int, set[int]]

_INFINITE = 1 << 60


def determined(cells: Subtraction, *, k: int, limit: int) -> list[Remainder]:
    """Determined sets of fewer than `limit` people, without duplicates; sets that are whole classes are among them.

    Everybody who is in some set of fewer than k people is in one of these. When all sets have k or more, only ever
    smaller ones are returned: the last is the smallest of all.
    """
    limit = max(k, limit)
    if cells.size.min(initial=limit) >= limit:
        return []
    label, dead = _kernel(cells, limit)
    network = _Network(cells, label, dead, limit=limit)
    remainders: dict[tuple[int, ...], Remainder] = {}
    size = cells.size.tolist()
    for part in network.parts():
        for chosen in network.cuts(part, k=k):
            added, taken = network.classes(chosen)
            left = cells.left(added, taken)
            remainders.setdefault(tuple(left), Remainder(cells, added, taken, sum([size[cell] for cell in left])))
    return list(remainders.values())


def _kernel(cells: Subtraction, limit: int) -> tuple[Labels, Mask]:
    """Per class, outer classes first, the group it goes with, and whether it is in no set of fewer than `limit`."""
    outer = len(cells.outer_counts)
    nodes = outer + len(cells.inner_counts)
    tail, head, weight = _arcs(cells)
    newcomers = _newcomers(cells)
    label = np.arange(nodes, dtype=np.int32)
    count = nodes
    dead = np.concatenate([np.zeros(outer, np.bool_), ~cells.selectable])
    while True:
        alive = ~dead[tail] & ~dead[head]
        key, inverse = np.unique(label[tail[alive]].astype(np.int64) * count + label[head[alive]], return_inverse=True)
        heavy = key[np.bincount(inverse, weights=weight[alive], minlength=len(key)) >= limit]
        rows, columns = np.concatenate([key % count, heavy // count]), np.concatenate([key // count, heavy % count])
        forces = csr_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(count, count))
        groups, number = connected_components(forces, directed=True, connection="strong")
        group: Labels = number[label]
        lost = ~dead[tail] & dead[head]
        loose = np.bincount(group[:outer], weights=newcomers, minlength=groups)
        loose += np.bincount(group[tail[lost]], weights=weight[lost], minlength=groups)
        fatal = _spread(loose >= limit, group[tail[alive]], group[head[alive]])
        after = dead | fatal[group]
        if groups == count and (after == dead).all():
            return group, dead
        label, count, dead = group, groups, after


def _spread(fatal: Mask, tail: Labels, head: Labels) -> Mask:
    """A group with an inner class that forces a fatal group is fatal too."""
    while True:
        reached = head[fatal[tail]]
        if fatal[reached].all():
            return fatal
        fatal[reached] = True


def _arcs(cells: Subtraction) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """From outer class to inner class (numbered after the outer ones), with the people they share."""
    shared = cells.shared
    head = cells.inner_class[shared].astype(np.int64) + len(cells.outer_counts)
    return cells.outer_class[shared].astype(np.int64), head, cells.size[shared]


def _newcomers(cells: Subtraction) -> NDArray[np.int64]:
    """Per outer class, its people who are not in the inner release."""
    alone = cells.inner_class < 0
    loose = np.zeros(len(cells.outer_counts), np.int64)
    np.add.at(loose, cells.outer_class[alone], cells.size[alone])
    return loose


class _Network:
    """The groups that are left, with what each pays: for people in no group (`spill`) or in one not chosen."""

    def __init__(self, cells: Subtraction, label: Labels, dead: Mask, *, limit: int) -> None:
        self.limit = limit
        self.outer, self.nodes = len(cells.outer_counts), len(label)
        self.by_group = Index.of(label, len(label))
        tail, head, weight = _arcs(cells)
        spill = np.bincount(label[: self.outer], weights=_newcomers(cells), minlength=len(label))
        lost = ~dead[tail] & dead[head]
        spill += np.bincount(label[tail[lost]], weights=weight[lost], minlength=len(label))
        self.spill = spill.astype(np.int64).tolist()
        self.capacity: Residual = {}
        inside = ~dead[tail] & ~dead[head] & (label[tail] != label[head])
        self.start, self.stop = label[tail[inside]], label[head[inside]]
        for start, stop, size in zip(self.start.tolist(), self.stop.tolist(), weight[inside].tolist(), strict=True):
            onward, back = self.capacity.setdefault(start, {}), self.capacity.setdefault(stop, {})
            onward[stop] = onward.get(stop, 0) + size
            back[start] = _INFINITE
        self.with_outer = set(label[: self.outer][~dead[: self.outer]].tolist())
        self.with_inner = set(label[self.outer :][~dead[self.outer :]].tolist())

    def parts(self) -> list[list[int]]:
        """Connected groups."""
        part = components(self.start, self.stop, self.nodes)
        parts: dict[int, list[int]] = {}
        for group in sorted(self.with_outer | self.with_inner):
            parts.setdefault(int(part[group]), []).append(group)
        return list(parts.values())

    def cuts(self, part: list[int], *, k: int) -> Iterator[set[int]]:
        """Groups whose outer classes minus inner classes leave somebody, but fewer than the limit."""
        outer = [group for group in part if group in self.with_outer]
        closed: set[int] = set()
        cuts: list[Cut] = []
        if any(self.spill[group] for group in part):
            cuts = list(self._search(outer, closed, self.capacity, k=k))
        elif len(part) > 1:
            # Nobody leaves this component, so the cut that keeps all of it is empty: a root is outside, or inside.
            inner = [group for group in part if group in self.with_inner]
            backward: Residual = {group: {} for group in part}
            for start in part:
                for stop, size in self.capacity[start].items():
                    backward[stop][start] = size
            cuts = list(self._search(outer, {part[0]}, self.capacity, k=k))
            cuts += [(size, set(part) - kept) for size, kept in self._search(inner, {part[0]}, backward, k=k)]
        yield from (groups for _, groups in cuts)
        few = [groups for size, groups in cuts if size < k]
        if few:
            yield from self._others(part, few, closed, k=k)

    def classes(self, groups: set[int]) -> tuple[list[int], list[int]]:
        """Outer and inner classes of the groups."""
        classes = sorted(self.by_group.members(groups))
        split = bisect_left(classes, self.outer)
        return classes[:split], [number - self.outer for number in classes[split:]]

    def _search(self, sources: list[int], closed: set[int], capacity: Residual, *, k: int) -> Iterator[Cut]:
        for source in sources:
            if source in closed:
                continue
            size, reached = self._cut(source, closed, capacity)
            if size < self.limit:
                self.limit = max(k, size)
                yield size, reached
            if size >= self.limit:
                # Every set with this group is too large from now on: it can be treated as outside.
                closed.add(source)

    def _others(self, part: list[int], earlier: list[set[int]], closed: set[int], *, k: int) -> Iterator[set[int]]:
        """Sets of fewer than k people with somebody of two groups that no set found so far tells apart."""
        apart: set[tuple[int, int]] = set()
        for groups in earlier:
            apart.update(self._apart(groups))
        for start in part:
            for stop, size in self.capacity.get(start, {}).items():
                if size < k and start not in closed and (start, stop) not in apart:
                    total, reached = self._cut(start, closed, self.capacity, out=stop)
                    if total < k:
                        yield reached
                        apart.update(self._apart(reached))

    def _apart(self, groups: set[int]) -> Iterator[tuple[int, int]]:
        for start in groups:
            for stop in self.capacity.get(start, {}):
                if stop not in groups:
                    yield start, stop

    def _cut(self, source: int, closed: Collection[int], capacity: Residual, *, out: int = -1) -> Cut:
        """The smallest cut that keeps the source in and the closed groups and `out` out, given up at the limit."""
        spill, flow = self.spill, dict[tuple[int, int], int]()
        spilled: dict[int, int] = {}
        total = 0
        while total < self.limit:
            parent, queue, end = {source: source}, [source], -1
            for node in queue:
                if node in closed or node == out or spill[node] > spilled.get(node, 0):
                    end = node
                    break
                for following, most in capacity.get(node, {}).items():
                    if following not in parent and most > flow.get((node, following), 0):
                        parent[following] = node
                        queue.append(following)
            if end < 0:
                return total, set(parent)
            barred = end in closed or end == out
            amount = _INFINITE if barred else spill[end] - spilled.get(end, 0)
            path = [end]
            while path[-1] != source:
                path.append(parent[path[-1]])
            for stop, start in pairwise(path):
                amount = min(amount, capacity[start][stop] - flow.get((start, stop), 0))
            if not barred:
                spilled[end] = spilled.get(end, 0) + amount
            for stop, start in pairwise(path):
                flow[start, stop] = flow.get((start, stop), 0) + amount
                flow[stop, start] = flow.get((stop, start), 0) - amount
            total += amount
        return total, set()


def generalized(cells: Subtraction, bounds: Mapping[int, Fraction]) -> list[Remainder]:
    """Sets E - F in which a value is proved to be more frequent than its bound, F arbitrary; F empty is left out.

    One per value and connected group of classes: the smallest sets with the largest excess. None are missed in this
    sense: if there is any such pair of sets, then here is one, or a class of the outer release breaks the bound by
    itself.
    """
    choice = _open(cells, bounds)
    source, sink = choice.ends
    v, cell = np.nonzero(choice.open[:, cells.outer_class])
    outer, inner = np.flatnonzero(choice.is_outer), np.flatnonzero(~choice.is_outer)
    tails = [np.full(len(outer), source), choice.node[v, cells.outer_class[cell]], inner]
    heads = [outer, choice.node[v, choice.inner_class[cell]], np.full(len(inner), sink)]
    capacities = [choice.having[outer], choice.numerator[v] * cells.size[cell], choice.having[inner]]
    return _remainders(choice, _cut(choice, tails, heads, capacities))


def nested(cells: Subtraction, bounds: Mapping[int, Fraction]) -> list[Remainder]:
    """Sets E - F with F within E (Byun et al., Figure 5) in which a value is more frequent than its bound.

    A largest closed set of classes: taking an inner class away requires every outer class with one of its people.
    """
    choice = _open(cells, bounds, takeable=cells.selectable)
    source, sink = choice.ends
    v, cell = np.nonzero(choice.open[:, cells.outer_class] & choice.open[:, choice.inner_class])
    excess = choice.having - choice.allowed
    weight = np.where(choice.is_outer, excess, -excess)
    gain, loss = np.flatnonzero(weight > 0), np.flatnonzero(weight < 0)
    tails = [np.full(len(gain), source), loss, choice.node[v, choice.inner_class[cell]]]
    heads = [gain, np.full(len(loss), sink), choice.node[v, cells.outer_class[cell]]]
    capacities = [weight[gain], -weight[loss], np.full(len(cell), INFINITE)]
    return _remainders(choice, _cut(choice, tails, heads, capacities))


@dataclass(frozen=True, eq=False, repr=False)
class _Choice:
    """Classes to choose from, for every value by itself, as nodes of one network.

    codes, numerator, denominator  the values and their bounds
    open                           (values, classes + 1) whether there is a node; outer classes first, absence last
    v, number                      per node the value, as a row of `open`, and the class, as a column
    """

    cells: Subtraction
    codes: Numbers
    numerator: Numbers
    denominator: Numbers
    open: Mask
    v: Numbers
    number: Numbers

    @property
    def ends(self) -> tuple[int, int]:
        """Source and sink, after the nodes."""
        return len(self.v), len(self.v) + 1

    @cached_property
    def node(self) -> Numbers:
        """(values, classes + 1) the node, the sink where there is none."""
        depth = np.full(self.open.shape, len(self.v) + 1)
        depth[self.v, self.number] = np.arange(len(self.v))
        return depth

    @property
    def is_outer(self) -> Mask:
        return np.asarray(self.number < len(self.cells.outer_counts))

    @property
    def inner_class(self) -> Numbers:
        """Per cell, its inner class as a column of `open`."""
        inner = self.cells.inner_class
        return np.where(inner >= 0, inner + len(self.cells.outer_counts), -1)

    @cached_property
    def counts(self) -> Numbers:
        """(classes, values) as published."""
        return np.concatenate([self.cells.outer_counts, self.cells.inner_counts])

    @cached_property
    def having(self) -> Numbers:
        """Per node, how many of the class have the value, times the bound's denominator."""
        return self.counts[self.number, self.codes[self.v]] * self.denominator[self.v]

    @property
    def allowed(self) -> Numbers:
        """Per node, how many of the class may have the value, times the bound's denominator."""
        return np.asarray(self.counts.sum(axis=1)[self.number] * self.numerator[self.v])


def _open(cells: Subtraction, bounds: Mapping[int, Fraction], *, takeable: Mask | None = None) -> _Choice:
    """The classes of the components with a cell where the value may be more frequent than its bound."""
    codes = np.array(list(bounds), np.int64)
    numerator = np.array([bound.numerator for bound in bounds.values()], np.int64)
    denominator = np.array([bound.denominator for bound in bounds.values()], np.int64)
    if cells.counts is not None:
        most = cells.counts[:, codes]
    else:
        unlimited = np.full((1, len(codes)), INFINITE)
        most = np.minimum(
            np.concatenate([cells.outer_counts[:, codes], unlimited])[cells.outer_class],
            np.concatenate([cells.inner_counts[:, codes], unlimited])[cells.inner_class],
        )
    broken = denominator * most > numerator * cells.size[:, None]
    cell, v = np.nonzero(broken & (cells.outer_class >= 0)[:, None])
    label = cells.component
    touched = np.zeros((len(codes), label.max(initial=0) + 1), np.bool_)
    touched[v, label[cells.outer_class[cell]]] = True
    reached = np.concatenate([touched[:, label], np.zeros((len(codes), 1), np.bool_)], axis=1)
    if takeable is not None:
        reached[:, len(cells.outer_counts) : -1] &= takeable
    return _Choice(cells, codes, numerator, denominator, reached, *np.nonzero(reached))


def _cut(choice: _Choice, tails: list[Numbers], heads: list[Numbers], capacities: list[Numbers]) -> Numbers:
    """The nodes on the source side of a smallest cut."""
    source, sink = choice.ends
    tail, head, capacity = (np.concatenate(part) for part in (tails, heads, capacities))
    _, side = min_cut(tail, head, capacity, source, sink)
    return np.flatnonzero(side[:source])


def _remainders(choice: _Choice, chosen: Numbers) -> list[Remainder]:
    """The chosen classes of every value, split where they share nobody; what takes nothing away is dropped."""
    if len(chosen) == 0:
        return []
    cells, outer = choice.cells, choice.is_outer[chosen]
    v, number = choice.v[chosen], choice.number[chosen]
    place = np.full(choice.open.shape, -1)
    place[v, number] = np.arange(len(chosen))
    row, cell = np.nonzero((place >= 0)[:, cells.outer_class])
    tail, head = place[row, cells.outer_class[cell]], place[row, choice.inner_class[cell]]
    met = head >= 0
    label = components(tail[met], head[met], len(chosen))
    size = cells.size[cell]
    having, people = choice.counts[number, choice.codes[v]], choice.counts.sum(axis=1)[number]

    def total(weight: Numbers | Mask, part: NDArray[np.int32]) -> list[int]:
        sums: list[int] = np.bincount(part, weight, minlength=len(chosen)).astype(np.int64).tolist()
        return sums

    left, inside = total(size[~met], label[tail[~met]]), total(size[met], label[tail[met]])
    with_value, taken = total(np.where(outer, having, -having), label), total(people[~outer], label[~outer])
    order = np.argsort(label, kind="stable")
    classes = np.where(outer, number, number - len(cells.outer_counts))[order].tolist()
    codes = choice.codes[v[order]].tolist()
    ends = np.searchsorted(label[order], np.arange(label.max() + 2)).tolist()
    added = total(outer, label)
    return [
        Remainder(
            cells,
            classes[start : start + added[one]],
            classes[start + added[one] : stop],
            people=left[one],
            value=codes[start],
            with_value=with_value[one],
            nested=inside[one] == taken[one],
        )
        for one, (start, stop) in enumerate(pairwise(ends))
        if start + added[one] < stop
    ]
