"""Every world that releases leave possible, enumerated from the definition; nothing here is shared with the product.

An insider knows who is in which class of every release. A published row shows its class and its *label*: all sensitive
cells and all insensitive cells that stay. A world gives the rows of every class to its occupants, one each, so that the
rows of one occupant agree across releases: as they are written, or, where cells are nodes or `*`, so that one true
value fits all of them. An occupant is a person or a decoy, a row about nobody.

From all worlds follows all that can be known: who may own a row (tracing), the smallest confidence that no belief about
the worlds gets below (deniability), and what is certain.

Occupants of the same classes are interchangeable, so worlds say only how many of them have which labels. Belief may
then be shared out evenly among them: no smaller confidence is possible by telling them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.optimize import linprog

Label = tuple[str, ...]
Place = tuple[int, int]
"""A release and a class, both counted from 0."""
Path = tuple[int, ...]
"""A class per release, -1 where absent."""
Lives = tuple[Label | None, ...]
"""The row of one occupant in every release."""
Group = tuple[Path, bool]
"""Occupants of the same classes: where, and whether they are people."""
Share = dict[Lives, int]
"""How many of a group live how."""

CLEAR = 1e-7
"""What a program's answer may be off."""


class TooMany(Exception):
    """There are more worlds than anybody wants to look at."""


@dataclass(frozen=True)
class Column:
    """What the cells of one column of a label say.

    bounds     the largest chance allowed per value; a value without one is free
    separator  of cells that are sets: a person has each value of her cell
    below      what a cell that is no value may be in truth: a node of a taxonomy, or `*`
    """

    bounds: Mapping[str, Fraction] = field(default_factory=dict)
    separator: str | None = None
    below: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def truths(self, cells: Sequence[str]) -> frozenset[str]:
        """The true cells that all these may stand for."""
        return frozenset.intersection(*(self.below.get(cell, frozenset({cell})) for cell in cells))

    def bounded(self, cells: Sequence[str]) -> frozenset[str]:
        """The bounded values that somebody with these cells has, or may have."""
        truths = self.truths(cells)
        values = {value for truth in truths for value in (truth.split(self.separator) if self.separator else [truth])}
        return frozenset(values & self.bounds.keys())


@dataclass(frozen=True)
class Class:
    """Who is in it, and what it shows; a row for everybody."""

    occupants: tuple[Hashable, ...]
    labels: tuple[Label, ...]

    def __post_init__(self) -> None:
        assert len(self.occupants) == len(self.labels) == len(set(self.occupants))


@dataclass(frozen=True)
class Published:
    """Releases and what is known about who is where.

    written  a person's cells are written the same each time; else they agree when one true value fits all
    decoys   occupants who are nobody: a row that lasts, or, in one release only, any row
    """

    columns: tuple[Column, ...]
    releases: tuple[tuple[Class, ...], ...]
    written: bool = True
    decoys: frozenset[Hashable] = frozenset()

    @cached_property
    def path(self) -> dict[Hashable, Path]:
        """Where every occupant is."""
        found: dict[Hashable, list[int]] = {}
        for number, release in enumerate(self.releases):
            for place, one in enumerate(release):
                for occupant in one.occupants:
                    here = found.setdefault(occupant, [-1] * len(self.releases))
                    assert here[number] == -1, "nobody is in two classes of one release"
                    here[number] = place
        return {occupant: tuple(path) for occupant, path in found.items()}

    def single(self) -> list[Published]:
        """Every release on its own."""
        return [replace(self, releases=(release,)) for release in self.releases]

    @cached_property
    def groups(self) -> dict[Group, list[Hashable]]:
        found: dict[Group, list[Hashable]] = {}
        for occupant, path in self.path.items():
            found.setdefault((path, occupant not in self.decoys), []).append(occupant)
        return found

    @cached_property
    def shown(self) -> dict[tuple[int, int, Label], int]:
        """How many rows of a release and class have a label."""
        return dict(
            Counter(
                (number, place, label)
                for number, release in enumerate(self.releases)
                for place, one in enumerate(release)
                for label in one.labels
            )
        )

    def lives(self, path: Path) -> list[Lives]:
        """Every way to have a row in each class of a path."""
        places = [(number, place) for number, place in enumerate(path) if place >= 0]
        distinct = [sorted(set(self.releases[number][place].labels)) for number, place in places]
        if self.written:
            ways: list[tuple[Label, ...]] = [
                (label,) * len(places) for label in distinct[0] if all(label in labels for labels in distinct)
            ]
        else:
            ways = [way for way in product(*distinct) if self._agree(way)]
        found = []
        for way in ways:
            rows = iter(way)
            found.append(tuple(next(rows) if place >= 0 else None for place in path))
        return found

    def _agree(self, labels: Sequence[Label]) -> bool:
        return all(column.truths(cells) for column, cells in zip(self.columns, zip(*labels, strict=True), strict=True))

    def has(self, lives: Lives) -> frozenset[tuple[int, str]]:
        """The bounded (column, value) of somebody who lives so."""
        rows = [label for label in lives if label is not None]
        return frozenset(
            (number, value)
            for number, (column, cells) in enumerate(zip(self.columns, zip(*rows, strict=True), strict=True))
            for value in column.bounded(cells)
        )

    def worlds(self, most: int = 20_000) -> list[dict[Group, Share]]:
        """All of them. More than `most` are too many."""
        groups = sorted(self.groups, key=lambda group: (group[0], not group[1]))
        ways = [self.lives(path) for path, _ in groups]
        left, dead = dict(self.shown), set()
        found: list[dict[Group, Share]] = []
        chosen: list[Share] = []
        # A class is settled once the last of its groups has its rows.
        last = {(n, place): at for at, (path, _) in enumerate(groups) for n, place in enumerate(path) if place >= 0}
        settled = [[key for key in left if last[key[0], key[1]] == at] for at in range(len(groups))]

        def go(at: int) -> bool:
            if at == len(groups):
                if len(found) == most:
                    raise TooMany
                found.append(dict(zip(groups, chosen, strict=True)))
                return True
            state = (at, tuple(left.values()))
            if state in dead:
                return False
            any_world = False
            for share in _shares(ways[at], len(self.groups[groups[at]]), left, groups[at][0]):
                if all(left[key] == 0 for key in settled[at]):
                    chosen.append(share)
                    any_world |= go(at + 1)
                    chosen.pop()
            if not any_world:
                dead.add(state)
            return any_world

        go(0)
        return found

    def only(self, releases: Sequence[int]) -> Published:
        """What somebody knows who holds these releases only."""
        return replace(self, releases=tuple(self.releases[number] for number in releases))

    def against_rest(self, label: Label) -> Published:
        """What is left when rows with this label are told from all others, and nothing more."""
        releases = tuple(
            tuple(replace(one, labels=tuple(("it",) if row == label else ("rest",) for row in one.labels)) for one in r)
            for r in self.releases
        )
        return replace(self, columns=(Column(),), releases=releases)


def _shares(ways: list[Lives], size: int, left: dict, path: Path) -> Iterator[Share]:
    """Every way for a group to take rows that are left; they are taken while one is looked at."""
    share: Share = {}

    def go(at: int, need: int) -> Iterator[Share]:
        if need == 0:
            yield dict(share)
            return
        if at == len(ways):
            return
        keys = [(number, path[number], label) for number, label in enumerate(ways[at]) if label is not None]
        taken = 0
        while True:
            yield from go(at + 1, need)
            if need == 0 or any(left[key] == 0 for key in keys):
                break
            for key in keys:
                left[key] -= 1
            taken, need = taken + 1, need - 1
            share[ways[at]] = taken
        for key in keys:
            left[key] += taken
        share.pop(ways[at], None)

    return go(0, size)


class Knowledge:
    """What all worlds together say."""

    def __init__(self, published: Published, most: int = 20_000) -> None:
        self.published = published
        self.worlds = published.worlds(most)
        assert self.worlds, "what happened is one of the worlds"

    def owners(self) -> dict[tuple[int, int, Label], frozenset[Hashable]]:
        """Per release, class and label everybody who has such a row there in some world."""
        found: dict[tuple[int, int, Label], set[Hashable]] = {row: set() for row in self.published.shown}
        for group, occupants in self.published.groups.items():
            for lives in {lives for world in self.worlds for lives in world[group]}:
                for number, label in enumerate(lives):
                    if label is not None:
                        found[number, group[0][number], label].update(occupants)
        return {row: frozenset(owners) for row, owners in found.items()}

    def fewest_owners(self) -> int:
        return min(map(len, self.owners().values()))

    def lives(self, person: Hashable) -> set[Lives]:
        """All that she may have been published with."""
        group = (self.published.path[person], person not in self.published.decoys)
        return {lives for world in self.worlds for lives in world[group]}

    def certain(self, person: Hashable) -> frozenset[tuple[int, str]]:
        """The bounded (column, value) that she has, or may have by her cells, in every world."""
        return frozenset.intersection(*(self.published.has(lives) for lives in self.lives(person)))

    def strain(self) -> float:
        """The smallest multiple of the bounds that some belief about the worlds keeps for everybody and every value."""
        return _least(self._chances(), [float(self._bound(value)) for _, value in self._asked])

    def confidence(self) -> float:
        """The smallest confidence, whatever is believed, of the worst person and bounded value."""
        return _least(self._chances(), [1.0] * len(self._asked))

    def deniable(self) -> bool:
        """Whether some belief about the worlds ties nobody to a value with more than its bound."""
        return self.strain() <= 1 + CLEAR

    @cached_property
    def _asked(self) -> list[tuple[Group, tuple[int, str]]]:
        return [
            (group, value)
            for group in self.published.groups
            if group[1]
            for value in sorted(
                frozenset().union(*(self.published.has(lives) for world in self.worlds for lives in world[group]))
            )
        ]

    def _bound(self, value: tuple[int, str]) -> Fraction:
        return self.published.columns[value[0]].bounds[value[1]]

    def _chances(self) -> np.ndarray:
        """(distinct worlds, asked) the share of a group that has a value."""
        groups = self.published.groups
        has = {lives: self.published.has(lives) for group in groups for lives in self.published.lives(group[0])}
        rows = {
            tuple(
                sum(number for lives, number in world[group].items() if value in has[lives]) / len(groups[group])
                for group, value in self._asked
            )
            for world in self.worlds
        }
        return np.array(sorted(rows)).reshape(len(rows), -1)


class Relaxed:
    """What follows when belief need not be a mixture of whole worlds, only add up: never more than is known in truth.

    A linear program over how many of a group are expected to live how. This is what can be computed at size.
    """

    def __init__(self, published: Published) -> None:
        self.published = published
        self.cells = [(group, lives) for group in published.groups for lives in published.lives(group[0])]
        equal = [[float(cell[0] == group) for cell in self.cells] for group in published.groups]
        right = [len(occupants) for occupants in published.groups.values()]
        for (number, place, label), count in published.shown.items():
            equal.append([float(g[0][number] == place and lives[number] == label) for g, lives in self.cells])
            right.append(count)
        self.equal, self.right = np.array(equal), np.array(right, float)

    def strain(self) -> float:
        """The smallest multiple of the bounds that is possible for everybody and every value."""
        return self._least(lambda value: float(self.published.columns[value[0]].bounds[value[1]]))

    def confidence(self) -> float:
        """The smallest confidence of the worst person and bounded value."""
        return self._least(lambda value: 1.0)

    def _least(self, bound: Callable[[tuple[int, str]], float]) -> float:
        above = []
        for group, occupants in self.published.groups.items():
            if group[1]:
                held = [self.published.has(lives) if of == group else frozenset() for of, lives in self.cells]
                for value in sorted(frozenset().union(*held)):
                    above.append([float(value in has) for has in held] + [-bound(value) * len(occupants)])
        if not above:
            return 0.0
        equal = np.hstack([self.equal, np.zeros((len(self.equal), 1))])
        found = linprog([0.0] * len(self.cells) + [1.0], above, np.zeros(len(above)), equal, self.right, method="highs")
        assert found.status == 0
        return float(found.fun)

    def owners(self) -> dict[tuple[int, int, Label], frozenset[Hashable]]:
        """As `Knowledge.owners`: who can be expected to have a row with any number above nothing."""
        count, a_little = len(self.cells), 1e-3
        # All that is possible is possible together, a little of each.
        below = np.hstack([-np.eye(count), np.eye(count)])
        equal = np.hstack([self.equal, np.zeros((len(self.equal), count))])
        limits = [(0, None)] * count + [(0, a_little)] * count
        cost = np.repeat([0.0, -1.0], count)
        found = linprog(cost, below, np.zeros(count), equal, self.right, bounds=limits, method="highs")
        assert found.status == 0
        owners: dict[tuple[int, int, Label], set[Hashable]] = {row: set() for row in self.published.shown}
        for (group, lives), reached in zip(self.cells, found.x[count:], strict=True):
            for number, label in enumerate(lives):
                if label is not None and reached > a_little / 2:
                    owners[number, group[0][number], label].update(self.published.groups[group])
        return {row: frozenset(people) for row, people in owners.items()}


def _least(chances: np.ndarray, bounds: list[float]) -> float:
    """The smallest largest chance, as a multiple of its bound, over all mixtures of worlds."""
    if not bounds:
        return 0.0
    worlds = len(chances)
    above = np.hstack([chances.T, -np.array(bounds)[:, None]])
    found = linprog(
        [0.0] * worlds + [1.0], above, np.zeros(len(bounds)), [[1.0] * worlds + [0.0]], [1.0], method="highs"
    )
    assert found.status == 0
    return float(found.fun)


Sides = tuple[tuple[int, int], ...]
"""The box of a class: the least and the most of every attribute."""


@dataclass(frozen=True)
class Boxed:
    """Releases as somebody sees them who knows nobody: boxes and rows.

    Everybody has one label, and a row in every release from the first one with her on, in boxes that share a point. If
    no world is so, somebody left: then a row may be anybody's, and be in one release only.
    """

    releases: tuple[tuple[tuple[Sides, tuple[Label, ...]], ...], ...]

    def rows_left(self, target: Sides, since: int, *, together: bool = False) -> dict[tuple[int, int, Label], int]:
        """Per release, class and label the most rows, in one world, of people like the target who joined when she did.

        `together`: of all classes at once, each release and label with class -1.
        """
        found: dict[tuple[int, int, Label], int] = {}
        labels = sorted({label for release in self.releases for _, rows in release for label in rows})
        leaving = not all(any(True for _ in self._worlds(label, leaving=False)) for label in labels)
        for label in labels:
            for world in self._worlds(label, leaving=leaving):
                like = Counter(
                    place
                    for first, path in world
                    if first == since and len(path) == len(self.releases) - since
                    if _meet([*(self.releases[first + at][number][0] for at, number in enumerate(path)), target])
                    for place in enumerate(path, start=first)
                )
                if together:
                    like = Counter({(number, -1): sum(like[p] for p in like if p[0] == number) for number, _ in like})
                for (number, place), rows in like.items():
                    key = (number, place, label)
                    found[key] = max(found.get(key, 0), rows)
        return found

    def _worlds(self, label: Label, *, leaving: bool) -> set[tuple[tuple[int, Path], ...]]:
        """All ways to make people of the rows with a label: the first release with each, and her classes since."""
        worlds: set[tuple[tuple[int, Path], ...]] = {()}
        for number, release in enumerate(self.releases):
            rows = Counter({place: labels.count(label) for place, (_, labels) in enumerate(release)})
            worlds = {
                tuple(sorted([*after, *((number, (place,)) for place in (rows - taken).elements())]))
                for world in worlds
                for after, taken in self._goes_on(world, number, rows, leaving=leaving)
            }
        return worlds

    def _goes_on(
        self, world: tuple[tuple[int, Path], ...], number: int, rows: Counter[int], *, leaving: bool
    ) -> Iterator[tuple[list[tuple[int, Path]], Counter[int]]]:
        """Every way to give those who are there still a row of the next release."""
        if not world:
            yield [], Counter()
            return
        (first, path), rest = world[0], world[1:]
        there = first + len(path) == number
        if leaving or not there:
            for after, taken in self._goes_on(rest, number, rows, leaving=leaving):
                yield [(first, path), *after], taken
        if not there:
            return
        own = [self.releases[first + at][place][0] for at, place in enumerate(path)]
        for place, (box, _) in enumerate(self.releases[number]):
            if rows[place] and _meet([*own, box]):
                for after, taken in self._goes_on(rest, number, rows - Counter([place]), leaving=leaving):
                    yield [(first, (*path, place)), *after], taken + Counter([place])


def _meet(boxes: Sequence[Sides]) -> bool:
    """Whether boxes share a point."""
    return all(max(lo for lo, _ in axis) <= min(hi for _, hi in axis) for axis in zip(*boxes, strict=True))
