"""Couples of many people: each with the nearest who fits, by rounds, over an order in which the near stand near.

The cheapest matching takes minutes of a million people. Here everybody without a partner asks the nearest who fits of
those who stand near her in an order by place, the cheapest of all these pairs are made first, and
whoever came too late asks again. Lists are by what is wanted, so that somebody with a rare wish looks as far as it
takes. Widows ask first: their wishes are narrow, and newcomers fit nearly anybody.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.cut_kernels import cut_pods
from sequester.methods.pods.pairing.couples import CELL, FEW, LINK, PodPeople, loosen
from sequester.methods.pods.pairing.quick_kernels import (
    WHOLE,
    CandidateLists,
    Nearest,
    NearOrder,
    PairRules,
    accept,
    break_up,
    search,
    trade,
    unlink,
)
from sequester.methods.pods.task import LabelBounds, Least

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_REACH, _LOOKS = (8, 24), 2_400_000
"""How many are looked at to each side, at least and at most; in between as many as these looks come to."""

_ROUNDS, _FAR, _NEAREST = 24, 128, 4
"""How often everybody asks, how far she looks at last, and how many of the nearest she asks."""

_TRADES, _FARTHER = 2, 1.0
"""How often couples exchange partners, and of how many times the mean way on."""

_PART = 8_000
"""People for whom a thread looks at a time; it decides nothing about the result."""

_TOGETHER = 4
"""People who are not cut apart any more when all are put in order."""

_LEFT = 300
"""People left without a partner, beyond the budget, up to whom these and those nearby are paired again with care."""

_SPENT = 0.6
"""The share of the budget that is spent on widows before newcomers are paired."""

_HEAVY = 0.4
"""The share of newcomers with one answer from which on those with it and those without are paired first."""


def pair_many(
    people: PodPeople,
    bounds: LabelBounds,
    barred: NDArray[np.bool_] | None,
    most: int | None,
    *,
    kept: Integers | None,
    budget: int,
) -> Integers:
    """Everybody's partner, -1 for a decoy; no lineage gets more than `most` people.

    kept    partners that stay together, -1 for those who have none
    budget  so many decoys are spent on those whose partners are farthest
    """
    partner = np.full(len(people), -1, np.int64) if kept is None else kept.copy()
    free = np.flatnonzero(partner < 0)
    if len(free) < 2:
        return partner
    place = people.place[free]
    order = near_order(place)
    free, place = free[order], place[order]
    some = _Pairing.of(people, bounds, None if barred is None else barred[free], most, (free, _whole(place)))
    found = some.pair(budget)
    partner[free] = np.where(found >= 0, free[found], -1)
    if most is None and budget < np.count_nonzero(found < 0) <= _LEFT:
        loosen(people, bounds, barred, partner)
    return partner


def near_order(place: Places) -> Integers:
    """An order of people in which those who are near stand near: that of cuts."""
    box = np.hstack([place, place]).astype(np.float32)
    return cut_pods(box, np.ones((len(place), 2), np.int32), Least(_TOGETHER, 0))[0]


def _whole(place: Places) -> NDArray[np.int32]:
    """Places in whole numbers; with axes on which all are at 0, so that there are eight or sixteen."""
    found = np.zeros((len(place), -(-place.shape[1] // 8) * 8), np.int32)
    for axis in range(place.shape[1]):
        found[:, axis] = np.rint(place[:, axis] * WHOLE)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class _Pairing:
    """People by place, and what became of them so far.

    own      per person, the list in which others look for her
    asked    (people, 2) where she looks
    reach    how many she looks at to each side
    """

    crowd: NearOrder
    rules: PairRules
    own: Integers
    asked: Integers
    partner: Integers
    reach: int

    @classmethod
    def of(
        cls,
        people: PodPeople,
        bounds: LabelBounds,
        barred: NDArray[np.bool_] | None,
        most: int | None,
        chosen: tuple[Integers, NDArray[np.int32]],
    ) -> _Pairing:
        """Chosen people in this order, and where they are; nobody with a partner."""
        free, place = chosen
        some, labels = people.of(free, 0.0), len(bounds)
        old = some.want >= 0
        # Of two labels, the product is the root of how often a couple of them is expected in a cell.
        often = np.sqrt(np.bincount(some.label, minlength=labels) * (np.sqrt(CELL) / len(free)))
        seat = labels + 2 * some.kind
        own = np.where(old, seat + some.seat, some.label)
        asked = np.full((len(free), 2), -1, np.int64)
        asked[:, 0] = some.want
        asked[old, 1] = (seat + 1 - some.seat)[old]
        rules = PairRules(
            answers=bounds.answers,
            heavy=np.zeros(0, np.bool_),
            barred=np.zeros((0, 0), np.bool_) if barred is None else barred,
            most=0 if most is None else most,
            link=LINK if most is not None else 0.0,
            rare=min(FEW * people.leaving, 2.0),
        )
        crowd = NearOrder(place, some.label, old, some.leaders(), some.linked, often)
        partner = np.full(len(free), -1, np.int64)
        reach = max(min(_LOOKS // len(people), _REACH[1]), _REACH[0])
        return cls(crowd, rules, own, asked, partner, reach)

    def pair(self, budget: int) -> Integers:
        """Widows, then newcomers; then those are parted again who are farthest, within a budget of decoys."""
        if self.crowd.old.any():
            self._widows()
            self._part_widows(int(_SPENT * budget))
        self._newcomers()
        self._trade()
        left = budget - int(np.count_nonzero(self.partner < 0))
        if left > 1:
            self._part(left // 2)
        return self.partner

    def _widows(self) -> None:
        """Those who have a seat, with others of their type or newcomers who have the label that they want."""
        for turn in range(_ROUNDS):
            seekers = np.flatnonzero((self.partner < 0) & self.crowd.old)
            if not self._round(seekers, self.asked, self.rules, turn):
                break

    def _newcomers(self) -> None:
        """Newcomers among themselves."""
        asked = np.where(self.crowd.old[:, None], -1, [[self._everybody, -1]])
        only = True
        for turn in range(_ROUNDS):
            seekers = np.flatnonzero((self.partner < 0) & ~self.crowd.old)
            rules = self.rules._replace(heavy=self._heavy(seekers)) if only else self.rules
            if not self._round(seekers, asked, rules, turn):
                if not rules.heavy.size:
                    break
                only = False
        rest = np.flatnonzero((self.partner < 0) & ~self.crowd.old)
        break_up(self.crowd, self.rules, rest, 8 * _FAR, self.partner)

    def _heavy(self, some: Integers) -> NDArray[np.bool_]:
        """The labels with the most frequent answer of these newcomers, if it is so frequent that it might be left."""
        for row in self.rules.answers:
            answer = row[self.crowd.label[some]]
            count = np.bincount(answer[answer >= 0], minlength=1)
            if int(count.max()) > _HEAVY * len(some):
                return np.asarray(row == int(count.argmax()))
        return np.zeros(0, np.bool_)

    def _round(self, seekers: Integers, asked: Integers, rules: PairRules, turn: int) -> int:
        """Everybody of these asks the nearest who fits; the cheapest pairs are made. Returns how many."""
        if len(seekers) < 1:
            return 0
        lists = self._lists(np.flatnonzero(self.partner < 0), asked)
        reach = min(self.reach << turn // 3, _FAR)
        who = np.empty((len(seekers), _NEAREST), np.int32)
        cost = np.empty((len(seekers), _NEAREST), np.float32)

        def work(at: int) -> None:
            part = slice(at, at + _PART)
            search(self.crowd, rules, lists, seekers[part], reach, Nearest(who[part], cost[part]))

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(work, range(0, len(seekers), _PART)))
        some = np.flatnonzero(who.ravel() >= 0)
        paid = cost.ravel()[some]
        # Short numbers are sorted ten times as fast.
        rank = (paid * (60_000 / max(float(paid.max(initial=0)), 1e-9))).astype(np.uint16)
        some = some[np.argsort(rank, kind="stable")]
        pairs = accept(
            self.crowd.leader, self.crowd.linked, rules.most, seekers[some // _NEAREST], who.ravel()[some], self.partner
        )
        return int(pairs)

    def _lists(self, some: Integers, asked: Integers) -> CandidateLists:
        """These people, by list; all newcomers are in one more."""
        lists = self._everybody + 1
        new = some[~self.crowd.old[some]]
        order = np.argsort(self.own[some], kind="stable")
        start = np.searchsorted(self.own[some[order]], np.arange(lists + 1))
        start[lists] += len(new)
        items = np.concatenate([some[order], new])
        return CandidateLists(start, items, self.crowd.place[items], self.crowd.label[items], asked, self.own)

    @property
    def _everybody(self) -> int:
        """The list of all newcomers; behind those that are asked for, where there may be nobody."""
        return int(max(self.own.max(), self.asked.max())) + 1

    def _trade(self) -> None:
        """Couples who are farther apart than most exchange partners."""
        asked = np.where(self.crowd.old[:, None], self.asked, [[self._everybody, -1]])
        there = np.flatnonzero(self.partner >= 0)
        if not len(there):
            return
        lists = self._lists(there, asked)
        for _ in range(_TRADES if self.reach > _REACH[0] else 1):
            apart = self._apart(there)
            far = there[apart > _FARTHER * apart.mean()]
            if not trade(self.crowd, self.rules, lists, far, self.reach, self.partner):
                break

    def _part_widows(self, budget: int) -> None:
        """Widows with the farthest newcomers have decoys instead; the newcomers are free again."""
        one = np.flatnonzero((self.partner >= 0) & self.crowd.old)
        one = one[~self.crowd.old[self.partner[one]]]
        alone = int(np.count_nonzero((self.partner < 0) & self.crowd.old))
        count = max(min(budget - alone, len(one)), 0)
        chosen = self._farthest(one, count)
        mate = self.partner[chosen]
        self.partner[chosen] = self.partner[mate] = -1
        if self.rules.most:
            unlink(self.crowd, mate)

    def _part(self, couples: int) -> None:
        """The farthest couples have two decoys instead."""
        one = np.flatnonzero(self.partner > np.arange(len(self.partner)))
        chosen = self._farthest(one, couples)
        self.partner[self.partner[chosen]] = -1
        self.partner[chosen] = -1

    def _farthest(self, some: Integers, count: int) -> Integers:
        """Those of these people who are farthest from their partners."""
        return some[np.argsort(-self._apart(some), kind="stable")[:count]]

    def _apart(self, some: Integers) -> Integers:
        """How far these people are from their partners."""
        place = self.crowd.place
        return np.asarray(np.abs(place[some] - place[self.partner[some]]).clip(max=WHOLE).sum(axis=1))
