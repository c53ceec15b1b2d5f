"""Everything published so far about one sensitive attribute, extended one release at a time.

A release is there as the world sees it: classes with a box, a size and value counts, and rows in their published order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.criterion import Criterion
from sequester.history.drift import Sides, comparable, reach
from sequester.history.trajectory import Trajectories


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """Published classes, and who is in which where that is known.

    lo, hi     (quasi-identifiers, classes) leaf codes of the boxes
    counts     (classes, values) how often each sensitive value is published in each class
    row_class  per published row, in published order, its class
    row_value  per published row, the code of its sensitive value
    member     per person of the history, the class she is in, -1 when absent; None when nobody's class is known
    value      per person of the history, the code of her sensitive value here, -1 when absent; None when not known
    certain    where not everybody's class is known: per person the class she must be in, -1 when absent or not known
    """

    name: str
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    counts: NDArray[np.int64]
    row_class: NDArray[np.int32]
    row_value: NDArray[np.int32]
    member: NDArray[np.int32] | None = None
    value: NDArray[np.int32] | None = None
    certain: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[0])

    def __repr__(self) -> str:
        return f"<Publication {self.name}: {int(self.size.sum())} rows in {len(self)} classes>"

    @property
    def size(self) -> NDArray[np.int64]:
        """Rows per class."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def known_member(self) -> NDArray[np.int32]:
        """The class of everybody, of a release that is known to say it."""
        if self.member is None:
            raise ValueError("who is in which class is not known")
        return self.member


@dataclass(frozen=True, eq=False, repr=False)
class Overlap:
    """People by their classes in two releases: parallel arrays, one entry per non-empty pair.

    `first`, `second` are classes, -1 for absence (never both); `counts` is (pairs, values), None when not known.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    size: NDArray[np.int64]
    counts: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What the world knows about one sensitive attribute (or one combination of several).

    attribute  its name
    element    where it is about one element of the attribute's sets, or about its values that stay: which
    values     the published name of every value
    k, bounds  what is required: people, and per value the largest confidence (1: not bounded)
    inferred   fewest rows that anything inferred from several releases may come down to; None: k
    domains    of the quasi-identifiers, in the order of the boxes' rows
    links      per quasi-identifier, whether it is the same for a person in every release
    steps      (quasi-identifiers, 2) the least and the most change from release to release, NaN where anything may
               happen; None where what does not stay may change freely
    permanent  whether a person keeps her value; otherwise it may differ in every release
    kept       of changing values, the code of people who have a value that stays: nobody else has one of their rows
    people     ids as given, one per person of the history; empty when nobody is known
    value      per person, her value, where values are permanent and known; else None
    criteria   what is required of every class beside k and the bounds
    guarded    whether values are bounded at all, also where nobody has one of these; None: if somebody has
    """

    attribute: str
    values: tuple[str, ...]
    k: int
    bounds: tuple[Fraction, ...]
    domains: tuple[Hierarchy, ...]
    quasi_names: tuple[str, ...]
    links: NDArray[np.bool_]
    permanent: bool = True
    kept: int | None = None
    people: tuple[Any, ...] = ()
    releases: tuple[Publication, ...] = ()
    trajectories: Trajectories | None = None
    value: NDArray[np.int32] | None = None
    criteria: tuple[Criterion, ...] = ()
    guarded: bool | None = None
    notes: tuple[str, ...] = field(default=())
    steps: NDArray[np.float64] | None = None
    inferred: int | None = None
    element: str | None = None

    def __repr__(self) -> str:
        return f"<History of {self.attribute}: {len(self.releases)} releases, {len(self.people)} people>"

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def is_guarded(self) -> bool:
        """Whether some value is bounded, or would be."""
        return any(bound < 1 for bound in self.bounds) if self.guarded is None else self.guarded

    @property
    def fewest(self) -> int:
        """Fewest rows that anything inferred from several releases may come down to."""
        return self.k if self.inferred is None else self.inferred

    def extend(self, release: Publication) -> History:
        """The history after one more release."""
        trajectories = value = None
        if release.member is not None and (self.trajectories is not None or not self.releases):
            before = Trajectories.none(len(self.people)) if self.trajectories is None else self.trajectories
            trajectories = before.extend(release.member, len(release))
            if self.permanent and release.value is not None:
                known = np.full(len(self.people), -1, np.int32) if self.value is None else self.value
                value = np.where(release.value >= 0, release.value, known).astype(np.int32)
        return replace(self, releases=(*self.releases, release), trajectories=trajectories, value=value)

    def until(self, releases: int) -> History:
        """The history as it was after so many releases."""
        history = replace(self, releases=(), trajectories=None, value=None)
        for release in self.releases[:releases]:
            history = history.extend(release)
        return history

    def of_certain(self) -> History | None:
        """What is known of people whose class is certain, as if they were absent where it is not; None without any.

        For attacks on what one person's classes have in common, which any of her releases may be left out of.
        """
        if self.trajectories is not None or not any(release.certain is not None for release in self.releases):
            return None
        certain = Trajectories.none(len(self.people))
        for release in self.releases:
            nowhere = np.full(len(self.people), -1, np.int32)
            certain = certain.extend(nowhere if release.certain is None else release.certain, len(release))
        return replace(self, trajectories=certain)

    def sharing(self, release: int) -> NDArray[np.int64]:
        """Per class of a release (numbered from 0), how many rows any of its people may have: of changing values, all
        but those of people who have a value that stays."""
        published = self.releases[release]
        return published.size if self.kept is None else published.size - published.counts[:, self.kept]

    def rows_of(self, release: int) -> NDArray[np.int64]:
        """(classes, values) rows of a release (numbered from 0); one column where values are free to change."""
        counts = self.releases[release].counts
        return counts if self.permanent else counts.sum(axis=1, keepdims=True)

    def trajectory_counts(self) -> NDArray[np.int64] | None:
        """(trajectories, values) of permanent values, None when they are not known."""
        if self.trajectories is None or self.value is None:
            return None
        return self.trajectories.count(self.value, len(self.values))

    @property
    def known_trajectories(self) -> Trajectories:
        """The trajectories of a history that is known to have them."""
        if self.trajectories is None:
            raise ValueError("who is in which class is not known")
        return self.trajectories

    def people_of(self, trajectories: Iterable[int]) -> tuple[Any, ...]:
        """Ids of the people of these trajectories, in the order of the history."""
        return tuple([self.people[person] for person in sorted(self.known_trajectories.people.members(trajectories))])

    def fitting_path(self) -> NDArray[np.int32]:
        """The path of every trajectory, without the classes that contradict what is known of their members.

        A class counts only where its known members are as many as its rows and, if their values are known, have exactly
        the published values: anything else (people not found, a value that changed) would make worlds contradictory.
        """
        trajectories, own = self.known_trajectories, self.trajectory_counts()
        path = trajectories.path.copy()
        for number, release in enumerate(self.releases):
            inside = np.flatnonzero(path[:, number] >= 0)
            classes = path[inside, number]
            size = np.zeros(len(release), np.int64)
            np.add.at(size, classes, trajectories.size[inside])
            fits = size == release.size
            if own is not None:
                counted = np.zeros_like(release.counts)
                np.add.at(counted, classes, own[inside])
                fits &= (counted == release.counts).all(axis=1)
            path[inside[~fits[classes]], number] = -1
        return path

    def overlap(self, first: int, second: int) -> Overlap:
        """The people of two releases (numbered from 0) by their classes in both, from one pass over trajectories."""
        trajectories, counts = self.known_trajectories, self.trajectory_counts()
        path = trajectories.path
        a, b = path[:, first], path[:, second]
        either = (a >= 0) | (b >= 0)
        width = len(self.releases[second]) + 1
        key = (a[either].astype(np.int64) + 1) * width + b[either] + 1
        found, inverse = np.unique(key, return_inverse=True)
        size = np.zeros(len(found), np.int64)
        np.add.at(size, inverse, trajectories.size[either])
        of_values = None
        if counts is not None:
            of_values = np.zeros((len(found), len(self.values)), np.int64)
            np.add.at(of_values, inverse, counts[either])
        return Overlap((found // width - 1).astype(np.int32), (found % width - 1).astype(np.int32), size, of_values)

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Per quasi-identifier, whether it changes by a known step."""
        known = np.zeros(len(self.links), np.bool_) if self.steps is None else ~np.isnan(self.steps[:, 0])
        moves: NDArray[np.bool_] = known & ~self.links
        return moves

    @property
    def pace(self) -> NDArray[np.float64]:
        """(attributes that link, 2) the least and the most change from release to release of what stays or moves."""
        pace = np.zeros((len(self.links), 2))
        if self.steps is not None:
            pace[self.moves] = self.steps[self.moves]
        return pace[self.links | self.moves]

    def sides(self, lo: NDArray[np.int32], hi: NDArray[np.int32]) -> Sides:
        """Boxes in the attributes that link, as numbers that can be compared across releases."""
        links = self.links | self.moves
        domains = [domain for domain, used in zip(self.domains, links.tolist(), strict=True) if used]
        return comparable(domains, self.moves[links], lo[links], hi[links])

    def compatible(self, first: int, second: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs of classes of two releases that one person can be in: in every attribute that stays the boxes share a
        point, and in every one that moves the box of the one release can be reached from that of the other."""
        from sequester.history.boxes import intersecting

        one, other = self.releases[first], self.releases[second]
        if not self.moves.any():
            return intersecting(one.lo[self.links], one.hi[self.links], other.lo[self.links], other.hi[self.links])
        later = reach(self.sides(other.lo, other.hi), self.pace, first - second)
        return intersecting(*self.sides(one.lo, one.hi), *later)
