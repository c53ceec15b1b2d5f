"""Pods of three seats and more: seat by seat, each the cheapest assignment of people to the pods so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.pairing.couples import nearest
from sequester.methods.pods.pairing.matching import fill
from sequester.methods.pods.task import LabelBounds

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

Barred = NDArray[np.bool_] | None

_NEAR = 16
"""People near a pod, and pods near a person, who are arcs of the assignment."""

_ANY_PRICE = 1e3
"""More than any two people are apart."""


@dataclass(eq=False, repr=False)
class PodSeats:
    """Pods that are being filled: (pods, seats) who sits where, -1 for nobody and -2 where there is no seat.

    label  (pods, seats) of the seats, -1 where it is not decided yet
    """

    taken: Integers
    label: Integers

    def __len__(self) -> int:
        return len(self.taken)

    def center(self, place: Places) -> Places:
        """Where the people of every pod are, in the mean."""
        seated = self.taken >= 0
        total = np.zeros((len(self), place.shape[1]))
        for seat in range(self.taken.shape[1]):
            total += np.where(seated[:, seat, None], place[np.maximum(self.taken[:, seat], 0)], 0.0)
        return np.asarray(total / np.maximum(seated.sum(axis=1), 1)[:, None])

    def add(self, taken: Integers, label: Integers) -> None:
        """More pods."""
        wide = max(self.taken.shape[1], taken.shape[1])
        self.taken = np.vstack([_widened(self.taken, wide), _widened(taken, wide)])
        self.label = np.vstack([_widened(self.label, wide), _widened(label, wide)])

    def add_decoys(self, label: Integers) -> None:
        """More pods, of decoys with these labels."""
        self.add(np.where(label == -2, -2, -1), label)


def _widened(array: Integers, wide: int) -> Integers:
    return np.pad(array, ((0, 0), (0, wide - array.shape[1])), constant_values=-2)


def seat_again(
    place: Places,
    rows: Integers,
    kind: Integers,
    seat: Integers,
    key: Integers,
    labels: list[tuple[int, ...]],
    price: float,
) -> PodSeats:
    """Pods of people who have seats; those with the same `key` (type, or lineage) may share one."""
    wide = max((len(one) for one in labels), default=1)
    filled = PodSeats(np.zeros((0, wide), np.int64), np.zeros((0, wide), np.int64))
    keys = np.zeros(0, np.int64)
    seats = np.array([[*one, *[-2] * (wide - len(one))] for one in labels], np.int64).reshape(len(labels), wide)
    for number in range(wide):
        people = rows[seat[rows] == number]
        if not len(people):
            continue
        found = np.full(len(filled), -1, np.int64)
        if len(filled):
            one, other, cost = _pairs(filled.center(place), keys, place[people], key[people])
            found = fill(len(filled), len(people), one, other, cost, price)
            sits = found >= 0
            filled.taken[sits, number] = people[found[sits]]
        rest = np.setdiff1d(np.arange(len(people)), found)
        opened = np.where(seats[kind[people[rest]]] == -2, -2, -1)
        opened[:, number] = people[rest]
        filled.add(opened, seats[kind[people[rest]]])
        keys = np.append(keys, key[people[rest]])
    return filled


def take_seats(
    filled: PodSeats,
    place: Places,
    new: Integers,
    label: Integers,
    room: Integers | None,
    price: float,
    barred: Barred = None,
) -> Integers:
    """Newcomers take empty seats with their label; returns who does not. `room`: how many each pod's lineage may take.

    Pods of one lineage share its room: they are given as the same number, negative for no limit.
    """
    pod, seat = np.nonzero(filled.taken == -1)
    if room is not None:
        pod, seat = _roomy(pod, seat, room)
    if not len(pod) or not len(new):
        return new
    one, other, cost = _pairs(filled.center(place)[pod], filled.label[pod, seat], place[new], label[new])
    can = possible(filled, pod[one], new[other], label, barred)
    found = fill(len(pod), len(new), one[can], other[can], cost[can], price)
    sits = found >= 0
    filled.taken[pod[sits], seat[sits]] = new[found[sits]]
    return new[np.setdiff1d(np.arange(len(new)), found)]


def _roomy(pod: Integers, seat: Integers, room: Integers) -> tuple[Integers, Integers]:
    """Empty seats of pods, no more than there is room for."""
    order = np.lexsort((seat, pod))
    pod, seat = pod[order], seat[order]
    rank = np.arange(len(pod)) - np.searchsorted(pod, pod)
    kept = rank < room[pod]
    return pod[kept], seat[kept]


def new_pods(
    place: Places,
    new: Integers,
    label: Integers,
    bounds: LabelBounds,
    seats: int,
    price: float,
    barred: Barred = None,
) -> PodSeats:
    """New pods of so many seats, in chunks of one person per pod, the most frequent labels first.

    No more people of one label than pods: then everybody finds a pod without her label.
    """
    filled = PodSeats(np.zeros((0, seats), np.int64), np.zeros((0, seats), np.int64))
    rest = new
    while len(rest):
        count = np.bincount(label[rest])
        pods = max(-(-len(rest) // seats), int(count.max()))
        order = rest[np.lexsort((rest, label[rest], -count[label[rest]]))]
        taken = np.full((pods, seats), -1, np.int64)
        taken[:, 0] = order[:pods]
        own = PodSeats(taken, np.where(taken >= 0, label[taken], -1))
        left: list[Integers] = []
        for chunk in range(1, seats + 1):
            people = order[chunk * pods : (chunk + 1) * pods] if chunk < seats else np.concatenate([order[:0], *left])
            if chunk == seats:
                left = []
            if len(people):
                left.append(join(own, place, people, label, bounds, price, barred))
        filled.add(own.taken, own.label)
        after = np.concatenate([order[:0], *left])
        if len(after) == len(rest):
            break
        rest = after
    return filled


def join(
    filled: PodSeats,
    place: Places,
    people: Integers,
    label: Integers,
    bounds: LabelBounds,
    price: float,
    barred: Barred = None,
) -> Integers:
    """One person more per pod, where bounds allow; returns who found none."""
    rest = people
    for _ in range(2):
        open_ = np.flatnonzero((filled.taken == -1).any(axis=1))
        if not len(open_) or not len(rest):
            break
        near = min(4 * _NEAR, len(rest))
        one, other, cost = _pairs(filled.center(place)[open_], 0 * open_, place[rest], 0 * rest, near)
        fits = may_join(filled, open_[one], label[rest[other]], bounds)
        fits &= possible(filled, open_[one], rest[other], label, barred)
        found = fill(len(open_), len(rest), one[fits], other[fits], cost[fits], price)
        sits = np.flatnonzero(found >= 0)
        pods = open_[sits]
        seat = (filled.taken[pods] == -1).argmax(axis=1)
        filled.taken[pods, seat] = rest[found[sits]]
        filled.label[pods, seat] = label[rest[found[sits]]]
        rest = rest[np.setdiff1d(np.arange(len(rest)), found)]
    return rest


def attach(
    filled: PodSeats,
    place: Places,
    label: Integers,
    new: NDArray[np.bool_],
    bounds: LabelBounds,
    barred: Barred = None,
) -> PodSeats:
    """Newcomers who are alone sit with the nearest new couple, as a third, where bounds allow: a decoy less.

    `new` says of every record whether it is about somebody who is new. With c = 2/3, two of three may have one label.
    """
    seats, there = (filled.taken >= -1).sum(axis=1), (filled.taken >= 0).sum(axis=1)
    fresh = np.where(filled.taken >= 0, new[np.maximum(filled.taken, 0)], True).all(axis=1) & (seats == 2)
    lone, couples = np.flatnonzero(fresh & (there == 1)), np.flatnonzero(fresh & (there == 2))
    if not len(lone) or not len(couples):
        return filled
    wide = max(3, filled.taken.shape[1])
    found = PodSeats(_widened(filled.taken, wide), _widened(filled.label, wide))
    people = found.taken[lone].max(axis=1)
    found.taken[couples, 2], found.label[couples, 2] = -1, -1
    one, other, cost = _pairs(found.center(place)[couples], 0 * couples, place[people], 0 * people, 4 * _NEAR)
    fits = may_join(found, couples[one], label[people[other]], bounds)
    fits &= possible(found, couples[one], people[other], label, barred)
    sits = fill(len(couples), len(people), one[fits], other[fits], cost[fits], _ANY_PRICE)
    joined = np.flatnonzero(sits >= 0)
    found.taken[couples[joined], 2] = people[sits[joined]]
    found.label[couples[joined], 2] = label[people[sits[joined]]]
    rest = np.setdiff1d(couples, couples[joined])
    found.taken[rest, 2], found.label[rest, 2] = -2, -2
    kept = np.setdiff1d(np.arange(len(found)), lone[sits[joined]])
    return PodSeats(found.taken[kept], found.label[kept])


def may_join(filled: PodSeats, pod: Integers, label: Integers, bounds: LabelBounds) -> NDArray[np.bool_]:
    """Whether a pod with one seat of this label more keeps every bound."""
    fits = np.ones(len(pod), np.bool_)
    own = filled.label[pod]
    seats = (filled.taken[pod] != -2).sum(axis=1)
    for row, shares in zip(bounds.answers, bounds.shares, strict=True):
        answer = row[label]
        there = np.where(own >= 0, row[own], -2)
        count = (there == answer[:, None]).sum(axis=1) + 1
        top = np.array([share.numerator for share in shares] + [1], np.int64)[answer]
        below = np.array([share.denominator for share in shares] + [1], np.int64)[answer]
        fits &= (answer < 0) | (count * below <= top * seats)
    return fits


def possible(filled: PodSeats, pod: Integers, people: Integers, label: Integers, barred: Barred) -> NDArray[np.bool_]:
    """Whether somebody could have every label of a pod, and everybody in it hers, as far as others know."""
    can = np.ones(len(pod), np.bool_)
    if barred is None:
        return can
    for there, sits in zip(filled.label[pod].T, filled.taken[pod].T, strict=True):
        can &= ~((there >= 0) & (there != label[people]) & barred[people, np.maximum(there, 0)])
        can &= ~((sits >= 0) & (there != label[people]) & barred[np.maximum(sits, 0), label[people]])
    return can


def _pairs(
    center: Places, key: Integers, place: Places, other_key: Integers, near: int = _NEAR
) -> tuple[Integers, Integers, Places]:
    """Near pairs of a pod and a person with the same key, and how far apart they are."""
    both = np.vstack([center, place])
    pods, people = np.arange(len(center)), len(center) + np.arange(len(place))
    keys = np.concatenate([key, other_key])
    one, other = nearest(both, people, pods, keys, keys, near)
    three, four = nearest(both, pods, people, keys, keys, near)
    seat, person = np.concatenate([other, three]), np.concatenate([one, four])
    pair = np.unique(seat * len(both) + person)
    seat, person = pair // len(both), pair % len(both)
    cost = np.abs(both[seat] - both[person]).clip(max=1).sum(axis=1)
    return seat, person - len(center), cost
