"""The history after a proposed release, by trajectories: only what is needed to judge some blocks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from sequester.history.history import History
from sequester.history.past import Past
from sequester.history.trajectory import linked, number_through

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LARGEST = 400
"""Trajectories of a component up to which single ones are sought that several releases determine together."""


@dataclass(frozen=True, eq=False, repr=False)
class WatchedView:
    """One sensitive view whose values are permanent, as the guard sees it: who has which value, and what is required.

    index      its place among the histories of the past
    fewest     rows that anything inferred may come down to: the k of everything in this folder
    numerator  per value, over `denominator`: the largest share it may have; not bounded where they are equal
    table      (classes of all releases, values) published counts
    value      per person of the history
    guarded    whether values are bounded at all, also where nobody has one of these
    """

    index: int
    fewest: int
    numerator: Longs
    denominator: int
    table: Longs
    value: Ints
    guarded: bool

    @property
    def values(self) -> int:
        return len(self.numerator)

    def excess(self, counts: Longs, size: Longs) -> Mask:
        """(sets of people, values) whether a value is more frequent than its bound."""
        over: Mask = counts * self.denominator > size[:, None] * self.numerator
        return over

    def asked(self, counts: Longs) -> Mask:
        """Sets of people of whom somebody has a value with a bound; all, where no value has one."""
        bounded = self.numerator < self.denominator
        return np.asarray(counts[:, bounded].any(axis=1)) if self.guarded else np.ones(len(counts), np.bool_)


@dataclass(frozen=True, eq=False, repr=False)
class ValueBounds:
    """Bounds on the values of one attribute, where kinds of rows are counted: which value every kind has.

    numerator  per value, over `denominator`: the largest share it may have
    """

    of: Ints
    numerator: Longs
    denominator: int

    @classmethod
    def under(cls, of: Ints, bounds: Sequence[Fraction]) -> ValueBounds:
        """Of kinds of rows with these values."""
        return cls(of, *over_one(bounds))

    def count(self, rows: Longs) -> Longs:
        """(sets of rows, values) given their (sets of rows, kinds of rows)."""
        found = np.zeros((len(self.numerator), len(rows)), np.int64)
        np.add.at(found, self.of, rows.T)
        return found.T

    def exceeded(self, most: Longs, least: Longs) -> Mask:
        """Sets of rows of which a value may have too much, with at most and at least so many rows of each value."""
        others = least.sum(axis=1, keepdims=True) - least
        over: Mask = (most * self.denominator > self.numerator * (most + others)).any(axis=1)
        return over


def over_one(bounds: Sequence[Fraction]) -> tuple[Longs, int]:
    """Bounds over one denominator: their numerators, and this."""
    denominator = lcm(*(bound.denominator for bound in bounds))
    return np.array([int(bound * denominator) for bound in bounds], np.int64), denominator


def watched_views(past: Past) -> tuple[WatchedView, ...]:
    """One for every history of permanent values."""
    found = []
    for index, (history, value) in enumerate(zip(past.histories, past.value, strict=True)):
        if not history.permanent:
            continue
        numerator, denominator = over_one(history.bounds)
        known = np.zeros(len(history.people), np.int32) if history.value is None else history.value.copy()
        known[past.person] = value
        tables = [release.counts for release in history.releases]
        table = np.concatenate(tables) if tables else np.zeros((0, len(numerator)), np.int64)
        found.append(WatchedView(index, history.fewest, numerator, denominator, table, known, history.is_guarded))
    return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class PastClasses:
    """Who was in which class of every earlier release, by trajectory: a row per trajectory, a column per release.

    path       (trajectories, releases) classes of all releases numbered through, -1 for absence
    same       per class, the first class with the same people and the same box; repeating it tells nothing new
    component  per trajectory, those it is linked to by any class
    person     per person, her trajectory, -1 for newcomers
    lo, hi     (classes, attributes that link) boxes, as numbers that can be compared across releases
    pace       (attributes that link, 2) how far values move from release to release
    """

    path: Longs
    same: Longs
    component: Ints
    components: int
    person: Ints
    lo: Floats
    hi: Floats
    pace: Floats

    @classmethod
    def of(cls, history: History) -> PastClasses:
        """The columns of a history that knows its people."""
        trajectories = history.trajectories
        if trajectories is None or len(history) == 0:
            none, sides = np.zeros(0, np.int64), np.zeros((0, len(history.pace)))
            nobody = np.full(len(history.people), -1, np.int32)
            return cls(np.zeros((0, 0), np.int64), none, none.astype(np.int32), 0, nobody, sides, sides, history.pace)
        path, classes = number_through(trajectories.path, [len(release) for release in history.releases])
        used = history.links | history.moves
        pace = history.pace
        # A box that is repeated tells nothing new, unless values must have moved on in the meantime.
        apart = int(((pace[:, 0] > 0) | (pace[:, 1] < 0)).any())
        codes = [
            np.concatenate([one.lo[used], one.hi[used], np.full((1, len(one)), number * apart)]).T
            for number, one in enumerate(history.releases)
        ]
        component = linked(path, classes)
        count = int(component.max(initial=-1)) + 1
        same = _same(path, classes, np.concatenate(codes))
        boxes = [history.sides(one.lo, one.hi) for one in history.releases]
        lo, hi = (np.ascontiguousarray(np.concatenate([box[side].T for box in boxes])) for side in (0, 1))
        return cls(path, same, component, count, trajectories.of, lo, hi, pace)


def _same(path: Longs, classes: int, boxes: Ints) -> Longs:
    """Per class, the first one with the same trajectories and the same box, found by sums of random numbers."""
    random = np.random.default_rng(1)
    part = random.integers(1, 1 << 62, len(path), dtype=np.int64)
    mark = np.zeros(classes, np.int64)
    for column in path.T:
        inside = column >= 0
        np.add.at(mark, column[inside], part[inside])
    mark += boxes @ random.integers(1, 1 << 62, boxes.shape[1], dtype=np.int64)
    first, inverse = np.unique(mark, return_index=True, return_inverse=True)[1:]
    return np.asarray(first[inverse])


@dataclass(frozen=True, eq=False, repr=False)
class ProposedRelease:
    """The next release in the classes somebody proposes, and what its people would then have in common.

    The proposal divides the trajectories of the history further: two people are still of one trajectory only if they
    were, and the proposed class is the same. Only the blocks that are to be judged are in it.

    person, row    the people of these blocks, and the trajectory of each
    before, after  per trajectory, the one of the history it is part of, and the proposed class; -1 for none
    block          per trajectory; `blocks` is how many there are
    releases       how many of the earlier releases count; `gone` says for each whether anybody in it is not here
    lo, hi         (proposed classes, attributes that link) boxes, as those of the past classes
    """

    past_classes: PastClasses
    person: Longs
    row: Longs
    before: Longs
    after: Longs
    size: Longs
    block: Longs
    blocks: int
    releases: int
    gone: Mask
    lo: Floats
    hi: Floats

    @classmethod
    def of(
        cls, past: Past, past_classes: PastClasses, member: Ints, block: Ints, *, lo: Ints, hi: Ints
    ) -> ProposedRelease:
        """The next table in these classes."""
        people = len(past.first.people)
        placed = np.full(people, -1, np.int64)
        placed[past.person] = member
        of_person = np.full(people, -1, np.int64)
        of_person[past.person] = block
        # Whoever is not in the table belongs to the block of her component.
        known = past_classes.person >= 0
        of_component = np.full(past_classes.components, -1, np.int64)
        component = np.full(people, -1, np.int64)
        component[known] = past_classes.component[past_classes.person[known]]
        here = known & (of_person >= 0)
        of_component[component[here]] = of_person[here]
        missing = np.ones(people, np.bool_)
        missing[past.person] = False
        absent = known & missing
        of_person[absent] = of_component[component[absent]]
        person = np.flatnonzero((of_person >= 0) & (known | (placed >= 0)))
        width = lo.shape[1] + 1
        key = (past_classes.person[person].astype(np.int64) + 1) * width + placed[person] + 1
        found, first, row, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        sides = past.first.sides(lo, hi)
        absent = known & (placed < 0)
        gone: Mask = np.zeros(past_classes.path.shape[1], np.bool_)
        if absent.any():
            gone = np.asarray((past_classes.path[np.unique(past_classes.person[absent])] >= 0).any(axis=0))
        return cls(
            past_classes,
            person,
            row.ravel(),
            found // width - 1,
            found % width - 1,
            size.astype(np.int64),
            of_person[person[first]],
            int(block.max(initial=-1)) + 1,
            past_classes.path.shape[1],
            gone,
            np.ascontiguousarray(sides[0].T),
            np.ascontiguousarray(sides[1].T),
        )

    @classmethod
    def past_release(cls, past_classes: PastClasses, release: int, block: Ints) -> ProposedRelease:
        """An earlier release in the place of the proposed one; its trajectories are all of the history."""
        person = np.flatnonzero(past_classes.person >= 0)
        row = past_classes.person[person].astype(np.int64)
        count = len(past_classes.path)
        column = past_classes.path[:, release]
        classes = np.unique(column[column >= 0])
        after = np.where(column >= 0, np.searchsorted(classes, column), -1)
        gone = np.asarray(((past_classes.path[:, :release] >= 0) & (after < 0)[:, None]).any(axis=0))
        return cls(
            past_classes,
            person,
            row,
            np.arange(count),
            after,
            np.bincount(row, minlength=count).astype(np.int64),
            block.astype(np.int64),
            int(block.max(initial=-1)) + 1,
            release,
            gone,
            past_classes.lo[classes],
            past_classes.hi[classes],
        )

    def open(self, view: WatchedView) -> Mask:
        """Trajectories that are too small, or hold too much of a value, to vouch for themselves."""
        found: Mask = (self.size < view.fewest) | view.excess(self.counts(view), self.size).any(axis=1)
        return found

    @cached_property
    def _counts(self) -> dict[int, Longs]:
        return {}

    def counts(self, view: WatchedView) -> Longs:
        """(trajectories, values)."""
        if view.index not in self._counts:
            flat = self.row * view.values + view.value[self.person]
            counted = np.bincount(flat, minlength=len(self.size) * view.values)
            self._counts[view.index] = counted.reshape(-1, view.values).astype(np.int64)
        return self._counts[view.index]

    def after_counts(self, view: WatchedView) -> Longs:
        """(proposed classes, values)."""
        found = np.zeros((len(self.lo), view.values), np.int64)
        inside = self.after >= 0
        np.add.at(found, self.after[inside], self.counts(view)[inside])
        return found

    @cached_property
    def path(self) -> Longs:
        """(trajectories, releases) classes before, -1 for absence."""
        found = np.full((len(self.before), self.releases), -1, np.int64)
        known = self.before >= 0
        found[known] = self.past_classes.path[self.before[known], : self.releases]
        return found

    @cached_property
    def same(self) -> Longs:
        """The path with equal classes of different releases as one."""
        if not len(self.past_classes.same):
            return self.path
        return np.where(self.path >= 0, self.past_classes.same[self.path], -1)

    @cached_property
    def new(self) -> Mask:
        """(releases, blocks) whether a release tells something that the following one does not.

        It tells nothing where the following one repeats its classes: that has more classes to subtract, and fewer rows
        of newcomers that somebody's could be taken for, so whatever can be learned from the earlier one can from it.
        """
        found = np.ones((self.releases, self.blocks), np.bool_)
        for release in range(self.releases - 1):
            if self.gone[release] == self.gone[release + 1]:
                here = self.same[:, release]
                differs = (here >= 0) & (here != self.same[:, release + 1])
                found[release] = np.bincount(self.block, weights=differs, minlength=self.blocks) > 0
        return found

    @cached_property
    def columns(self) -> Longs:
        """(trajectories, releases and the proposed one) classes, equal ones as one; the proposed follow all others."""
        return np.column_stack([self.same, np.where(self.after >= 0, self.after + len(self.past_classes.lo), -1)])

    @cached_property
    def component(self) -> Ints:
        """Per trajectory, those it is linked to by any class, the proposed ones among them."""
        return linked(self.columns, len(self.past_classes.lo) + len(self.lo))

    def determined(self, k: int, live: Mask, views: Sequence[WatchedView]) -> Mask:
        """Per block, whether several releases together determine a trajectory of fewer than k people.

        Only trajectories with somebody who has a bounded value count.
        """
        from sequester.methods.series_guard.path_kernels import determined_people

        bad = np.zeros(self.blocks, np.bool_)
        small = (self.size < k) & live[self.block]
        small &= np.any([one.asked(self.counts(one)) for one in views], axis=0)
        if self.releases < 2 or not small.any():
            return bad
        members = np.bincount(self.component)
        wanted = (np.bincount(self.component, weights=small) > 0) & (members > 1) & (members <= _LARGEST)
        chosen = np.flatnonzero(wanted[self.component])
        chosen = chosen[np.argsort(self.component[chosen], kind="stable")]
        if len(chosen) == 0:
            return bad
        # Classes are numbered through, component by component.
        part, columns = self.component[chosen].astype(np.int64), self.columns[chosen]
        key = np.where(columns >= 0, part[:, None] * (int(columns.max()) + 1) + columns, -1)
        row = np.where(columns >= 0, np.searchsorted(np.unique(key[key >= 0]), key), -1)
        start = np.append(np.flatnonzero(np.diff(part, prepend=-1)), len(chosen))
        found = determined_people(start, row, small[chosen])
        bad[self.block[chosen[found]]] = True
        return bad

    def shared(self, view: WatchedView) -> Mask:
        """Per block, whether what somebody's classes have in common holds too much of a value."""
        from sequester.methods.series_guard.path_kernels import shared_values

        bad = np.zeros(self.blocks, np.bool_)
        both = np.flatnonzero((self.before >= 0) & (self.after >= 0))
        found = shared_values(
            self.path[both], view.table, self.after[both], self.after_counts(view), view.numerator, view.denominator
        )
        bad[self.block[both[found]]] = True
        return bad
