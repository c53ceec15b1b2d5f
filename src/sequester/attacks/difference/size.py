"""Difference attack on identity: too few people are left by subtracting nested sets of classes.

Byun et al., section 4.3. The set left by outer classes B minus inner classes A, all people of A being in B, is a
directed cut: a class b in B pays for every person of hers who is in no class of A, and a class in A forces every
class with one of its people into B. The smallest non-empty such set is a smallest positive cut, found per connected
component of classes that share people. Sets of `limit` or more people do not matter, which first shrinks the problem:
a class that shares `limit` people with another goes with it, and one with `limit` people nobody can take away is out.
For two releases these sets, of both directions, make up every set of people whose values are determined.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.difference.cells import Remainder, Subtraction, components
from sequester.attacks.solvers.index import Index
from sequester.deferred import connected_components, csr_matrix

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
