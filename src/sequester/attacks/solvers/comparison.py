"""Rows that can still be a target's when two releases are read together (Fung et al., sections 3 and 4).

A neighbor knows the target's quasi-identifier and when the target joined. Read with a later release, rows of the
target's class turn out not to be the target's (*cracked*), because too few rows of the other class could be their
buddies. Rows of one group are alike, so crack sizes are counts: what matters is how many rows remain, per value,
between (q1, q2) for somebody in both releases, and in q2 for somebody who joined in between.

Only classes that hold such a person are targets, where the people are known: the printed minimum over all comparable
classes includes targets nobody can be, and is not monotone. Without people only what is certain counts: the classes
that hold such a person in *every* assignment of buddies. Boxes that touch, or values that may change freely, let
somebody be in almost any two classes, and a table published twice would then be full of people who need not exist.
That nobody left (or that nobody joined) is taken for granted where some assignment has it so, as Fung et al. do; where
neither can be, people may all have been exchanged, and nothing is certain.

Buddies need that nobody left. Where rows were deleted between two releases any row may be without a buddy, so of
(q1, q2) at least the smaller count per value remains, which is exact, and nothing is cracked in q2 for a newcomer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.buddies import Assignment, Buddies, Classes, Counts, assign
from sequester.deferred import csr_matrix
from sequester.history import History
from sequester.history.history import Overlap

_LIMIT = 1 << 24
"""Comparisons of boxes that are worth an exact number where nobody is exposed anyway."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two releases of a history, numbered from 0, the earlier one first; by value, where values are asked for."""

    whole: ReferenceType[History]
    first: int
    second: int
    by_value: bool

    @property
    def history(self) -> History:
        """The history, which is not kept alive by what was found out about it."""
        everywhere = self.whole()
        if everywhere is None:
            raise ReferenceError("the history of this comparison is gone")
        return everywhere

    @cached_property
    def before(self) -> Counts:
        """(classes, values) rows of the earlier release; one column when values are free to change."""
        return self.history.rows_of(self.first)

    @cached_property
    def after(self) -> Counts:
        """(classes, values) rows of the later release."""
        return self.history.rows_of(self.second)

    @cached_property
    def comparable(self) -> tuple[Classes, Classes]:
        """Pairs of classes that one person can be in."""
        return self.history.compatible(self.first, self.second)

    @cached_property
    def overlap(self) -> Overlap | None:
        """Who is where, None when nobody is known."""
        return None if self.history.trajectories is None else self.history.overlap(self.first, self.second)

    @cached_property
    def buddies(self) -> Buddies | None:
        """All assignments of buddies; None when rows were deleted in between."""
        overlap = self.overlap
        if overlap is not None and bool((overlap.second < 0).any()):
            return None
        known = self._truth() or assign(self.before, self.after, self.comparable)
        return None if known is None else Buddies(self.before, self.after, self.comparable, known)

    def _truth(self) -> Assignment | None:
        """The true assignment, where the history knows it and it agrees with what was published."""
        overlap = self.overlap
        if overlap is None or (self.history.permanent and overlap.counts is None):
            return None
        both = (overlap.first >= 0) & (overlap.second >= 0)
        first, second = overlap.first[both], overlap.second[both]
        units = overlap.size[:, None] if overlap.counts is None or not self.history.permanent else overlap.counts
        sent, taken = np.zeros_like(self.before), np.zeros_like(self.after)
        np.add.at(sent, first, units[both])
        np.add.at(taken, second, units[both])
        width = len(self.after)
        pairs = self.comparable[0].astype(np.int64) * width + self.comparable[1]
        if (sent != self.before).any() or (taken > self.after).any():
            return None
        if not np.isin(first.astype(np.int64) * width + second, pairs).all():
            return None
        return Assignment(first, second, units[both])

    @cached_property
    def bounded(self) -> bool:
        """Whether lower bounds are all that is wanted: everybody is safe, and the boxes are too many to compare."""
        if self.by_value or self.overlap is None or len(self.before) * len(self.after) <= _LIMIT:
            return False
        return bool((self.overlap.size >= self.history.fewest).all() and (self.overlap.second >= 0).all())

    @cached_property
    def pairs(self) -> tuple[Classes, Classes]:
        """Pairs of classes with a target who is in both releases."""
        if self.overlap is None:
            return self._certain()
        both = (self.overlap.first >= 0) & (self.overlap.second >= 0)
        first, second = self.overlap.first[both], self.overlap.second[both]
        if self.bounded or self.buddies is None:
            return first, second
        width = len(self.after)
        allowed = self.comparable[0].astype(np.int64) * width + self.comparable[1]
        agree = np.isin(first.astype(np.int64) * width + second, allowed)
        return first[agree], second[agree]

    @cached_property
    def reverse(self) -> Buddies | None:
        """All assignments where nobody joined: every row of the later release has its own in the earlier one."""
        back = (self.comparable[1], self.comparable[0])
        known = assign(self.after, self.before, back)
        return None if known is None else Buddies(self.after, self.before, back, known)

    def _certain(self) -> tuple[Classes, Classes]:
        """Pairs of classes that somebody is in, whatever the world."""
        if self.buddies is not None:
            return self.buddies.certain()
        if self.reverse is None:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        second, first = self.reverse.certain()
        return first, second

    @cached_property
    def remaining(self) -> Counts:
        """(pairs, values) rows that can be a target's: of q1 (forward) as many as of q2 (cross)."""
        return self._between(*self.pairs)

    def _between(self, first: Classes, second: Classes) -> Counts:
        if self.bounded:
            assert self.overlap is not None
            size = self.overlap.size[(self.overlap.first >= 0) & (self.overlap.second >= 0)]
            return np.asarray(size[:, None])
        if self.buddies is None:
            return np.minimum(self.before[first], self.after[second])
        return self.buddies.between(first, second)

    @cached_property
    def joined(self) -> Classes:
        """Later classes with a target who joined in between; none where rows were deleted, and B-attacks fail."""
        if self.bounded:
            assert self.overlap is not None
            return self.overlap.second[self.overlap.first < 0]
        if self.buddies is None:
            return np.zeros(0, np.int32)
        if self.overlap is not None:
            return np.unique(self.overlap.second[self.overlap.first < 0])
        return self.buddies.joined()

    @cached_property
    def unforced(self) -> Counts:
        """(joined, values) rows that can be a newcomer's."""
        if self.bounded:
            assert self.overlap is not None
            return np.asarray(self.overlap.size[self.overlap.first < 0][:, None])
        if self.buddies is None:
            return np.zeros((0, self.after.shape[1]), np.int64)
        return self.buddies.unforced(self.joined)

    @cached_property
    def _trajectories(self) -> tuple[Counts, list[int]]:
        """Keys of the pairs of classes of all trajectories, sorted, and which each is."""
        path = self.history.known_trajectories.path
        key = (path[:, self.first].astype(np.int64) + 1) * (len(self.after) + 1) + path[:, self.second] + 1
        order = np.argsort(key, kind="stable")
        return key[order], order.tolist()

    def people(self, *pairs: tuple[int, int]) -> tuple[Any, ...]:
        """Ids of those in any of these pairs of classes, one of either release; -1 is absence."""
        if self.overlap is None:
            return ()
        keys, number = self._trajectories
        wanted = [(first + 1) * (len(self.after) + 1) + second + 1 for first, second in pairs]
        start, stop = keys.searchsorted(wanted), keys.searchsorted(wanted, side="right")
        return self.history.people_of(one for a, b in zip(start, stop, strict=True) for one in number[a:b])


_compared: WeakKeyDictionary[History, dict[bool, list[Comparison]]] = WeakKeyDictionary()


def compare(history: History, *, by_value: bool = False) -> list[Comparison]:
    """All pairs of releases. The three attacks ask for the same ones, so they are kept as long as the history."""
    known = _compared.setdefault(history, {})
    if by_value not in known:
        whole = ref(history)
        pairs = ((first, second) for second in range(len(history)) for first in range(second))
        known[by_value] = [Comparison(whole, first, second, by_value) for first, second in pairs]
    return known[by_value]


def closed_between(comparison: Comparison) -> Counts:
    """(comparable pairs, values) as printed in Theorems 4.2 and 4.3: the smaller of two groups; right for cuts."""
    first, second = comparison.comparable
    return np.minimum(comparison.before[first], comparison.after[second])


def closed_unforced(comparison: Comparison) -> Counts:
    """(later classes, values) as printed in Theorem 4.4: |g2| - max(0, |G1| - (|G2| - |g2|)); right for cuts."""
    before, after = comparison.before, comparison.after
    first, second = comparison.comparable
    graph = csr_matrix((np.ones(len(first), np.int64), (first, second)), shape=(len(before), len(after)))
    left: NDArray[np.int64] = np.empty_like(after)
    for value in range(after.shape[1]):
        holds = (before[:, value] > 0).astype(np.int64)
        near = graph.multiply(holds[:, None]).tocsr()
        partners: Any = near.T @ near
        partners.data[:] = 1
        rows_before = np.asarray(near.T @ before[:, value])
        rows_after = np.asarray(partners @ after[:, value])
        own = after[:, value]
        crack = np.where(rows_after < own, 0, np.maximum(0, rows_before - (rows_after - own)))
        left[:, value] = own - crack
    return left
