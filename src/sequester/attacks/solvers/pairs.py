"""Which people can have which label in some world: pairs of a trajectory and a label, from all releases at once.

A world gives every person one label so that every class of every release shows exactly the labels it was published
with. The truth is one world. Others differ from it by *moves*: people exchange labels so that no class changes. A pair
is possible when it is true, or when some combination of moves leads to it. Moves are the vectors d with A d = 0, where
A adds up labels over classes and people over trajectories, that are not negative where the truth has nobody. The pairs
they reach are found by one linear program. Worlds have whole people, so with three and more releases (or labels) a pair
can be possible for the program and in no world; the reverse cannot happen. With two releases and one label against all
others the program is a flow, and whole.

Before that, pairs are struck out that a class of the trajectory does not show, or that no two releases admit: for one
label against all others a pair is possible only if it is true or its two classes are in one strongly connected
component of what can be exchanged.

Where it is known who is in which class and nobody's label (not `seen`), there is no truth to start from. Of every two
releases one way to hand out each label is a flow from classes to classes; another differs from it by cycles of what can
be exchanged. All releases at once are a linear program over expected numbers: with the totals free to grow together,
every pair that is possible at all can have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.flow import INFINITE, max_flow
from sequester.deferred import connected_components, coo_array, csr_array, csr_matrix, hstack, linprog
from sequester.history.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import linked, number_through

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Releases up to which every two are compared before the program is solved; of more, each with the next.
_ALL_PAIRS = 8
LARGEST = 200_000
"""Pairs of a component that are solved at most."""
LARGEST_UNSEEN = 20_000
"""The same where nobody's label is known: of more every two releases are compared, and that is all."""
# Pairs that are solved together, about.
_SOLVED = 4000


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """The truth, as (trajectory, label) pairs, and what the classes of all releases show.

    path     (trajectories, releases) classes of all releases numbered through, -1 for absence; `classes` of them
    start    per release, the number of its first class
    size     people per trajectory
    trajectory, label, count   who has what
    key      class * labels + label of every row that is shown, sorted; `rows` of each

    Where people's values are not known, everybody is taken to have what all her classes show: at most that.
    """

    path: Integers
    classes: int
    size: Integers
    labels: int
    trajectory: Integers
    label: Integers
    count: Integers
    key: Integers
    rows: Integers
    start: Integers

    @classmethod
    def of(cls, history: History, labels: Labels) -> Known:
        """Of a history whose people and labels are known."""
        trajectories = history.known_trajectories
        path, classes = number_through(trajectories.path, [len(release) for release in history.releases])
        ever = np.flatnonzero((trajectories.of >= 0) & (labels.of >= 0))
        of = trajectories.of[ever].astype(np.int64) * len(labels) + labels.of[ever]
        own, count = np.unique(of, return_counts=True)
        trajectory, label = own // len(labels), own % len(labels)
        places, pair = _classes(path, trajectory)
        key, inverse = np.unique(places * len(labels) + label[pair], return_inverse=True)
        rows = np.bincount(inverse, weights=count[pair], minlength=len(key)).astype(np.int64)
        return cls(path, classes, trajectories.size, len(labels), trajectory, label, count, key, rows, _starts(history))

    @classmethod
    def of_counts(cls, history: History) -> Known:
        """Of a history whose values are labels, by what its classes are published with."""
        size, values = history.known_trajectories.size, len(history.values)
        path, classes = number_through(history.fitting_path(), [len(release) for release in history.releases])
        counts = np.concatenate([release.counts for release in history.releases])
        key = np.flatnonzero(counts)
        own = history.trajectory_counts()
        if own is None or (own.sum(axis=1) < size).any():
            own = np.repeat(size[:, None], values, axis=1)
            for column in path.T:
                inside = np.flatnonzero(column >= 0)
                own[inside] = np.minimum(own[inside], counts[column[inside]])
        trajectory, label = np.nonzero(own)
        count = own[trajectory, label]
        rows = counts.reshape(-1)[key]
        return cls(path, classes, size, values, trajectory, label, count, key, rows, _starts(history))

    @cached_property
    def part(self) -> NDArray[np.int32]:
        """Per trajectory, its component: what is published about one says nothing about the people of another."""
        return linked(self.path, self.classes)

    @cached_property
    def owners(self) -> Integers:
        """Per row that is shown, the people of trajectories of its class in which somebody has the label."""
        places, pair = _classes(self.path, self.trajectory)
        place = np.searchsorted(self.key, places * self.labels + self.label[pair])
        weights = self.size[self.trajectory[pair]]
        return np.bincount(place, weights=weights, minlength=len(self.key)).astype(np.int64)

    def true_count(self, trajectory: Integers, label: Integers) -> Integers:
        """How many people of each trajectory have the label."""
        own = self.trajectory * self.labels + self.label
        wanted = trajectory * self.labels + label
        place = np.minimum(np.searchsorted(own, wanted), max(len(own) - 1, 0))
        return np.where(own[place] == wanted, self.count[place], 0) if len(own) else np.zeros(len(wanted), np.int64)

    def places(self, key: Integers) -> tuple[list[int], list[int], list[int]]:
        """Release and class, from 0, and label of rows that are shown, by their key."""
        number, label = np.divmod(key, self.labels)
        release = np.searchsorted(self.start, number, side="right") - 1
        return release.tolist(), (number - self.start[release]).tolist(), label.tolist()

    def shows(self, classes: Integers, label: Integers) -> Mask:
        """Whether a class shows a label."""
        wanted = classes * self.labels + label
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.asarray(self.key[place] == wanted)

    def candidates(self, pairs: Pairs, chosen: Mask | None = None) -> Integers:
        """Per shown row, the people of its class who may have it by these pairs."""
        which = np.arange(len(pairs)) if chosen is None else np.flatnonzero(chosen)
        places, pair = _classes(self.path, pairs.trajectory[which])
        pair = which[pair]
        place = np.searchsorted(self.key, places * self.labels + pairs.label[pair])
        people = np.bincount(place, weights=self.size[pairs.trajectory[pair]], minlength=len(self.key))
        return people.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Trajectories and labels they may have; `count` people of the trajectory truly have it."""

    trajectory: Integers
    label: Integers
    count: Integers

    def __len__(self) -> int:
        return len(self.trajectory)

    def take(self, chosen: Mask) -> Pairs:
        """Some of them."""
        return Pairs(self.trajectory[chosen], self.label[chosen], self.count[chosen])


def shown_pairs(known: Known, trajectories: Mask) -> Pairs:
    """Of these trajectories every label that all their classes show."""
    everybody = np.flatnonzero(trajectories)
    nowhere = (known.path[everybody] < 0).all(axis=1)
    chosen = everybody[~nowhere]
    shown = np.bincount(known.key // known.labels, minlength=known.classes)
    width = np.where(known.path[chosen] >= 0, shown[known.path[chosen]], np.iinfo(np.int64).max)
    narrow = known.path[chosen, width.argmin(axis=1)]
    first = np.searchsorted(known.key, narrow * known.labels)
    number = shown[narrow]
    trajectory = np.repeat(chosen, number)
    offset = np.arange(len(trajectory)) - np.repeat(np.cumsum(number) - number, number)
    label = known.key[np.repeat(first, number) + offset] % known.labels
    kept = np.ones(len(trajectory), np.bool_)
    for column in known.path.T:
        inside = np.flatnonzero(kept & (column[trajectory] >= 0))
        kept[inside] = known.shows(column[trajectory[inside]], label[inside])
    # Whoever is in no class that says anything may have any label.
    free = everybody[nowhere]
    trajectory = np.concatenate([trajectory[kept], np.repeat(free, known.labels)])
    label = np.concatenate([label[kept], np.tile(np.arange(known.labels), len(free))])
    return Pairs(trajectory, label, known.true_count(trajectory, label))


def strike_out(known: Known, pairs: Pairs, *, seen: bool = True) -> tuple[Pairs, dict[tuple[int, int], Mask]]:
    """Without pairs that two releases exclude; and per two releases which of all pairs they alone admit.

    seen  whether the truth is known; otherwise worlds are all ways to hand out the rows
    """
    alone = {}
    for first, second in _compared(known.path.shape[1]) if seen else combinations(range(known.path.shape[1]), 2):
        admitted = _admitted if seen else _admitted_unseen
        alone[first, second] = admitted(known, pairs, known.path[:, first], known.path[:, second])
    return pairs.take(np.logical_and.reduce([np.ones(len(pairs), np.bool_), *alone.values()])), alone


def possible(known: Known, pairs: Pairs, *, seen: bool = True) -> tuple[Mask, Mask]:
    """Which pairs the program reaches, and of which it was asked.

    Components are solved some at a time: one program of everything takes far longer than many small ones. Of those
    that are too large to be solved all pairs are taken for possible.
    """
    of = known.part[pairs.trajectory]
    size = np.bincount(of, minlength=1)
    batch = ((np.cumsum(size) - size) // _SOLVED)[of]
    asked = np.asarray((size <= (LARGEST if seen else LARGEST_UNSEEN))[of])
    reached = ~asked
    order = np.argsort(np.where(asked, batch, -1), kind="stable")[np.count_nonzero(reached) :]
    for rows in np.split(order, np.flatnonzero(np.diff(batch[order])) + 1) if len(order) else ():
        chosen = np.zeros(len(pairs), np.bool_)
        chosen[rows] = True
        reached[chosen] = (_reached if seen else _reached_unseen)(known, pairs.take(chosen))
    return reached, asked


def sums(known: Known, pairs: Pairs) -> tuple[Integers, csr_array]:
    """What pairs add up to: the numbers of the sums, people of trajectories and then rows that are shown; and which
    pairs (columns) are in which."""
    places, pair = _classes(known.path, pairs.trajectory)
    shown = len(known.size) + np.searchsorted(known.key, places * known.labels + pairs.label[pair])
    number, row = np.unique(np.concatenate([pairs.trajectory, shown]), return_inverse=True)
    column = np.concatenate([np.arange(len(pairs)), pair])
    ones = np.ones(len(column), np.int64)
    return number, coo_array((ones, (row, column)), shape=(len(number), len(pairs))).tocsr()


def _reached(known: Known, pairs: Pairs) -> Mask:
    """A move of any size will do, so what is reached counts up to 1, and every pair that can be reached is."""
    others = np.flatnonzero(pairs.count == 0)
    if not len(others):
        return np.ones(len(pairs), np.bool_)
    number, matrix = sums(known, pairs)
    least = np.where(pairs.count > 0, -np.inf, 0.0)
    lower = np.concatenate([least, np.zeros(len(others))])
    upper = np.concatenate([np.full(len(pairs), np.inf), np.ones(len(others))])
    answer = linprog(
        np.concatenate([np.zeros(len(pairs)), -np.ones(len(others))]),
        A_eq=hstack([matrix, matrix[:, others]], format="csc"),
        b_eq=np.zeros(len(number)),
        bounds=np.column_stack([lower, upper]),
        method="highs",
    )
    if answer.status != 0:
        raise ArithmeticError(f"the solver of the tracing program gave up ({answer.message})")
    reached = pairs.count > 0
    reached[others] = answer.x[len(pairs) :] > 0.5
    return np.asarray(reached)


def _starts(history: History) -> Integers:
    return np.cumsum([0, *(len(release) for release in history.releases[:-1])])


def _classes(path: Integers, trajectory: Integers) -> tuple[Integers, Integers]:
    """Every class of these trajectories, and the place of the trajectory in the list."""
    pair, release = np.nonzero(path[trajectory] >= 0)
    return path[trajectory[pair], release], pair


def _compared(releases: int) -> Iterator[tuple[int, int]]:
    if releases <= _ALL_PAIRS:
        return combinations(range(releases), 2)
    return ((first, first + 1) for first in range(releases - 1))


def _admitted(known: Known, pairs: Pairs, first: Integers, second: Integers) -> Mask:
    """Whether two releases alone admit each pair, for its label against all others."""
    one, other = first[pairs.trajectory], second[pairs.trajectory]
    # Whoever is absent from a release is free there: one place for all of them.
    one, other = np.where(one >= 0, one, known.classes), np.where(other >= 0, other, known.classes)
    nodes = np.concatenate([one, other]) * known.labels + np.tile(pairs.label, 2)
    names, number = np.unique(nodes, return_inverse=True)
    tail, head = number[: len(pairs)], number[len(pairs) :]
    more, fewer = pairs.count < known.size[pairs.trajectory], pairs.count > 0
    start, end = np.concatenate([tail[more], head[fewer]]), np.concatenate([head[more], tail[fewer]])
    graph = csr_matrix((np.ones(len(start), np.int8), (start, end)), shape=(len(names), len(names)))
    part = connected_components(graph, directed=True, connection="strong")[1]
    return np.asarray(fewer | (part[tail] == part[head]))


def _admitted_unseen(known: Known, pairs: Pairs, first: Integers, second: Integers) -> Mask:
    """The same without the truth: any way to hand out a label will do to start from."""
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


def _reached_unseen(known: Known, pairs: Pairs) -> Mask:
    """Any multiple of a way to share rows out will do, so what is reached counts up to 1, and all of it together is."""
    count = len(pairs)
    number, matrix = sums(known, pairs)
    total = np.concatenate([known.size, known.rows])[number]
    times = coo_array(-total[:, None].astype(np.float64))
    each = coo_array((np.ones(count), (np.arange(count), np.arange(count))), shape=(count, count))
    answer = linprog(
        np.concatenate([np.zeros(count + 1), -np.ones(count)]),
        A_eq=hstack([matrix, times, coo_array((len(number), count))], format="csc"),
        b_eq=np.zeros(len(number)),
        A_ub=hstack([-each, coo_array((count, 1)), each], format="csc"),
        b_ub=np.zeros(count),
        bounds=[(0, None)] * count + [(1, None)] + [(0, 1)] * count,
        method="highs",
    )
    if answer.status != 0:
        return np.ones(count, np.bool_)
    return np.asarray(answer.x[count + 1 :] > 0.5)
