"""Which rows of an earlier release can be which rows of a later one: the assignments of Fung et al., as flows.

Every row of the earlier release has its own row of the later one, its *buddy*, with the same sensitive value and a box
that shares a point. Given one assignment that works (the truth, where it is known), all questions are flows in its
residual graph: a class of the earlier release can send to every comparable class, a later class can send rows back to
where they came from, and what a later class has left over goes to one node for people who joined in between.

Answers are found by shortest augmenting paths from that assignment, for one sensitive value at a time. A question about
a class changes it by a few rows only, and the rows that have to move are near it, so short searches from the class beat
a new maximum flow over all classes. Every answer restores what it changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.flow import max_flow
from sequester.deferred import connected_components, csr_matrix

Counts = NDArray[np.int64]
Classes = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Assignment:
    """Rows by their classes in both releases: `units` is (pairs, values)."""

    first: Classes
    second: Classes
    units: Counts


def assign(before: Counts, after: Counts, comparable: tuple[Classes, Classes]) -> Assignment | None:
    """Some assignment of buddies; None when there is none, so that rows were deleted."""
    first, second = comparable
    if len(first) == len(before) * len(after):
        return _assign_freely(before, after)
    units = send(before, after, first, second)
    if (units.sum(axis=0) < before.sum(axis=0)).any():
        return None
    used = units.any(axis=1)
    return Assignment(first[used], second[used], units[used])


def send(before: Counts, after: Counts, first: Classes, second: Classes) -> Counts:
    """(pairs, values) as many rows as can have buddies along these pairs of classes: one maximum flow per value."""
    source, sink = len(before) + len(after), len(before) + len(after) + 1
    units = np.zeros((len(first), before.shape[1]), np.int64)
    for value in range(before.shape[1]):
        supply, demand = np.flatnonzero(before[:, value]), np.flatnonzero(after[:, value])
        arcs = np.flatnonzero((before[first, value] > 0) & (after[second, value] > 0))
        if not len(arcs):
            continue
        tails = np.concatenate([np.full(len(supply), source), first[arcs], len(before) + demand])
        heads = np.concatenate([supply, len(before) + second[arcs], np.full(len(demand), sink)])
        most = np.minimum(before[first[arcs], value], after[second[arcs], value])
        capacity = np.concatenate([before[supply, value], most, after[demand, value]])
        flow = max_flow(tails, heads, capacity, source, sink)[1]
        units[arcs, value] = flow[len(supply) : len(supply) + len(arcs)]
    return units


def _assign_freely(before: Counts, after: Counts) -> Assignment | None:
    """Where every two classes are comparable: rows and places of each value side by side, in the order of classes."""
    if (before.sum(axis=0) > after.sum(axis=0)).any():
        return None
    keys, values, units = [], [], []
    for value in range(before.shape[1]):
        rows, places = np.cumsum(before[:, value]), np.cumsum(after[:, value])
        ends = np.unique(np.concatenate([rows, places[places < rows[-1:].sum()]]))
        ends = ends[ends > 0]
        # The classes of the last row of every stretch; it is the same for all its rows.
        one, other = np.searchsorted(rows, ends), np.searchsorted(places, ends)
        keys.append(one * len(after) + other)
        values.append(np.full(len(ends), value))
        units.append(np.diff(ends, prepend=0))
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    held = np.zeros((len(pairs), before.shape[1]), np.int64)
    np.add.at(held, (place.reshape(-1), np.concatenate(values)), np.concatenate(units))
    first, second = np.divmod(pairs, max(len(after), 1))
    return Assignment(first.astype(np.int32), second.astype(np.int32), held)


@dataclass(frozen=True, eq=False, repr=False)
class Buddies:
    """All assignments of buddies between two releases.

    before, after  (classes, values) rows of the earlier and the later release
    comparable     pairs of classes whose boxes share a point
    known          one assignment: every row of `before` is in it, and no class of `after` is overfull
    """

    before: Counts
    after: Counts
    comparable: tuple[Classes, Classes]
    known: Assignment

    def between(self, first: Classes, second: Classes) -> Counts:
        """(pairs, values) the most rows of a class that have their buddy in a given comparable class, in one world.

        Where a component of comparable classes is complete, as for cuts of taxonomies, that is the smaller count
        (Fung et al., Lemma 4.2). Elsewhere the known assignment gives lower bounds and flows close what they leave.
        """
        least = self._units_of(first, second)
        most = np.minimum(self.before[first], self.after[second])
        whole = self._complete[self._component[first]]
        least[whole] = most[whole]
        room = self._loose[second] + self._best_move(first, second)
        least = np.maximum(least, np.minimum(most, self._units_of(first, second) + room))
        for row, value in np.argwhere(least < most).tolist():
            limit = int(most[row, value])
            least[row, value] = self._of_value(value).bring(int(first[row]), int(second[row]), most=limit)
        return least

    def certain(self) -> tuple[Classes, Classes]:
        """Pairs of classes that somebody is in, in every world: rows that have no other place for their buddies."""
        first, second = self.known.first, self.known.second
        graph = self._graph
        rows, units = self.before[first], self.known.units
        short: NDArray[np.bool_] = np.any(rows > np.asarray(graph @ self.after)[first] - self.after[second], axis=1)
        # Rows that can leave for spare places at once are held by nothing; of the others only a search can tell.
        open_ = ~short & ~self._complete[self._component[first]]
        held = open_[:, None] & (units > np.asarray(graph @ self._loose)[first] - self._loose[second])
        for pair in np.flatnonzero(held.any(axis=1)).tolist():
            origin, place = int(first[pair]), int(second[pair])
            values = np.flatnonzero(held[pair]).tolist()
            short[pair] = any(self._of_value(value).keep(origin, place) for value in values)
        return first[short], second[short]

    def joined(self) -> Classes:
        """Later classes with a row that has no buddy, in every world: more rows than could come from anywhere."""
        short = (self.after > np.asarray(self._graph.T @ self.before)).any(axis=1)
        return np.flatnonzero(short).astype(np.int32)

    def unforced(self, second: Classes) -> Counts:
        """(classes, values) the most rows of a later class that have no buddy, in one world.

        In a complete component these are all who joined, as far as the class has rows (Fung et al., Theorem 4.4).
        """
        place = self._component[len(self.before) + second]
        joined = np.zeros((len(self._complete), self.after.shape[1]), np.int64)
        np.add.at(joined, self._component[len(self.before) :], self._loose)
        most: Counts = np.minimum(self.after[second], joined[place])
        least: Counts = np.minimum(most, self._loose[second] + self._moves[1][second])
        whole = self._complete[place]
        least[whole] = most[whole]
        for row, value in np.argwhere(least < most).tolist():
            least[row, value] = self._of_value(value).empty(int(second[row]), most=int(most[row, value]))
        return least

    @cached_property
    def _loose(self) -> Counts:
        """(later classes, values) rows without a buddy in the known assignment."""
        taken = np.zeros_like(self.after)
        np.add.at(taken, self.known.second, self.known.units)
        return self.after - taken

    @cached_property
    def _graph(self) -> csr_matrix:
        """(classes, later classes) 1 where they are comparable."""
        first, second = self.comparable
        return csr_matrix((np.ones(len(first), np.int64), (first, second)), shape=(len(self.before), len(self.after)))

    @cached_property
    def _component(self) -> Classes:
        """Per class of both releases, its component of the graph of comparable classes."""
        first, second = self.comparable
        nodes = len(self.before) + len(self.after)
        graph = csr_matrix((np.ones(len(first), np.int8), (first, len(self.before) + second)), shape=(nodes, nodes))
        labels: Classes = connected_components(graph, directed=False)[1]
        return labels

    @cached_property
    def _complete(self) -> NDArray[np.bool_]:
        """Per component, whether each of its earlier classes is comparable with each of its later classes."""
        number = int(self._component.max(initial=-1)) + 1
        earlier = np.bincount(self._component[: len(self.before)], minlength=number)
        later = np.bincount(self._component[len(self.before) :], minlength=number)
        pairs = np.bincount(self._component[self.comparable[0]], minlength=number)
        return np.asarray(earlier * later == pairs)

    @cached_property
    def _keys(self) -> tuple[Counts, Counts]:
        key = self.known.first.astype(np.int64) * len(self.after) + self.known.second
        order = np.argsort(key)
        return key[order], order

    def _find(self, first: Classes, second: Classes) -> tuple[NDArray[np.bool_], Counts]:
        """Where pairs of classes are in the known assignment."""
        keys, order = self._keys
        if len(keys) == 0:
            return np.zeros(len(first), np.bool_), np.zeros(len(first), np.int64)
        key = first.astype(np.int64) * len(self.after) + second
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return keys[place] == key, order[place]

    def _units_of(self, first: Classes, second: Classes) -> Counts:
        units = np.zeros((len(first), self.after.shape[1]), np.int64)
        there, place = self._find(first, second)
        units[there] = self.known.units[place[there]]
        return units

    @cached_property
    def _moves(self) -> tuple[Counts, Counts, Counts, Counts]:
        """Rows of one origin that can leave a later class at once for places that are loose elsewhere.

        Per pair of the known assignment; and per later class the largest, how often it occurs, and the next.
        """
        outlets = np.asarray(self._graph @ self._loose)
        at = self.known.second
        move = np.minimum(self.known.units, outlets[self.known.first] - self._loose[at])
        best, often, next_best = (np.zeros_like(self.after) for _ in range(3))
        np.maximum.at(best, at, move)
        top = move == best[at]
        np.add.at(often, at, top)
        np.maximum.at(next_best, at, np.where(top, 0, move))
        return move, best, often, next_best

    def _best_move(self, first: Classes, second: Classes) -> Counts:
        """As `_moves`, of an origin other than the given one."""
        move, best, often, next_best = self._moves
        there, place = self._find(first, second)
        own = np.full((len(first), self.after.shape[1]), -1, np.int64)
        own[there] = move[place[there]]
        alone = (own == best[second]) & (often[second] == 1)
        return np.asarray(np.where(alone, next_best[second], best[second]))

    @cached_property
    def _near(self) -> list[list[int]]:
        """Per earlier class, the later classes it is comparable with."""
        first, second = self.comparable
        order = np.argsort(first, kind="stable")
        ends = np.cumsum(np.bincount(first, minlength=len(self.before)))
        return [part.tolist() for part in np.split(second[order], ends[:-1])]

    @cached_property
    def _residuals(self) -> dict[int, Residual]:
        return {}

    def _of_value(self, value: int) -> Residual:
        if value not in self._residuals:
            used = np.flatnonzero(self.known.units[:, value])
            held: dict[int, dict[int, int]] = {}
            sides = (self.known.first[used], self.known.second[used], self.known.units[used, value])
            for origin, place, rows in zip(*(side.tolist() for side in sides), strict=True):
                held.setdefault(place, {})[origin] = rows
            self._residuals[value] = Residual(self._near, held, self._loose[:, value].tolist())
        return self._residuals[value]


Step = tuple[int, int, int]
"""One origin's rows leave a later class for another: (origin, from, to)."""


class Residual:
    """Rows of one value: where those of every earlier class are, and what every later class has to spare.

    near    per earlier class, the later classes it is comparable with
    held    per later class, rows by the earlier class they came from
    loose   per later class, rows without a buddy
    """

    def __init__(self, near: Sequence[Sequence[int]], held: dict[int, dict[int, int]], loose: list[int]) -> None:
        self._near = near
        self._held = held
        self._loose = loose
        self._undo: list[tuple[int, int, int]] = []

    def bring(self, origin: int, place: int, *, most: int) -> int:
        """The most rows of an earlier class that can be in a comparable later class at once."""
        reached = self._held.get(place, {}).get(origin, 0)
        while reached < most and (path := self._search(place, origin)) is not None:
            steps, end = path
            room = self._room(steps, most - reached)
            home = self._held.get(end, {}).get(origin, 0) if end != place else 0
            if home == 0:
                # The path ends in a spare place, and any other class can give up a row of this origin for it.
                home = self._elsewhere(origin, place)
                room = min(room, self._loose[end], self._held[home][origin])
                self._shift(steps, room)
                self._spare(end, -room)
                self._spare(home, room)
                self._shift([(origin, home, place)], room)
            else:
                room = min(room, home)
                self._shift(steps, room)
                self._shift([(origin, end, place)], room)
            reached += room
        self._restore()
        return reached

    def empty(self, place: int, *, most: int) -> int:
        """The most rows of a later class that can be without a buddy at once."""
        reached = self._loose[place]
        while reached < most and (path := self._search(place, None)) is not None:
            steps, end = path
            room = min(self._room(steps, most - reached), self._loose[end])
            self._shift(steps, room)
            self._spare(end, -room)
            reached += room
        self._restore()
        return reached

    def keep(self, origin: int, place: int) -> int:
        """The fewest rows of an earlier class that can be in a comparable later class."""
        left = self._held.get(place, {}).get(origin, 0)
        while left and (path := self._detour(place, origin)) is not None:
            steps, end = path
            room = self._room(steps, left)
            if end != place:
                room = min(room, self._loose[end])
                self._spare(end, -room)
                self._spare(place, room)
            self._shift(steps, room)
            left -= room
        self._restore()
        return left

    def _detour(self, place: int, origin: int) -> tuple[list[Step], int] | None:
        """Moves that let rows of `origin` leave `place`, and where they end: a spare row, or the place left free."""
        came: dict[int, Step | None] = {place: None}
        queue: deque[int] = deque()
        moved: set[int] = set()
        reached = [(origin, place)]
        while reached:
            source, here = reached.pop()
            moved.add(source)
            for there in self._near[source]:
                if there == place and source != origin:
                    return [(source, here, place), *self._trace(came, here)], place
                if there not in came:
                    came[there] = (source, here, there)
                    if self._loose[there] > 0:
                        return self._trace(came, there), there
                    queue.append(there)
            while queue and not reached:
                here = queue.popleft()
                held = self._held.get(here, {})
                reached = [(source, here) for source, rows in held.items() if rows and source not in moved]
        return None

    def _search(self, place: int, origin: int | None) -> tuple[list[Step], int] | None:
        """Moves that make room in `place`, and the class they end in: with a spare row, or with rows of `origin`."""
        if origin is not None and self._loose[place] > 0:
            return [], place
        came: dict[int, Step | None] = {place: None}
        moved = set() if origin is None else {origin}
        queue = deque([place])
        while queue:
            here = queue.popleft()
            for source, rows in self._held.get(here, {}).items():
                if rows == 0 or source in moved:
                    continue
                moved.add(source)
                for there in self._near[source]:
                    if there in came:
                        continue
                    came[there] = (source, here, there)
                    held = self._held.get(there)
                    if self._loose[there] > 0 or (origin is not None and held is not None and held.get(origin, 0) > 0):
                        return self._trace(came, there), there
                    if held is not None:
                        queue.append(there)
        return None

    @staticmethod
    def _trace(came: dict[int, Step | None], end: int) -> list[Step]:
        steps = []
        step = came[end]
        while step is not None:
            steps.append(step)
            step = came[step[1]]
        return steps

    def _room(self, steps: list[Step], most: int) -> int:
        return min([most, *(self._held[here][source] for source, here, _ in steps)])

    def _elsewhere(self, origin: int, place: int) -> int:
        return next(
            there for there in self._near[origin] if there != place and self._held.get(there, {}).get(origin, 0) > 0
        )

    def _shift(self, steps: list[Step], rows: int) -> None:
        for source, here, there in steps:
            self._put(source, here, -rows)
            self._put(source, there, rows)

    def _put(self, source: int, place: int, rows: int) -> None:
        held = self._held.setdefault(place, {})
        held[source] = held.get(source, 0) + rows
        self._undo.append((source, place, rows))

    def _spare(self, place: int, rows: int) -> None:
        self._loose[place] += rows
        self._undo.append((-1, place, rows))

    def _restore(self) -> None:
        for source, place, rows in reversed(self._undo):
            if source < 0:
                self._loose[place] -= rows
            else:
                self._held[place][source] -= rows
                if self._held[place][source] == 0:
                    del self._held[place][source]
        self._undo.clear()
