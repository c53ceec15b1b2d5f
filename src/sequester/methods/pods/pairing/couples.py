"""Couples: who shares a pod of two seats with whom, at least cost, decoys as arcs with a price."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import numbered
from sequester.methods.pods.pairing.matching import match
from sequester.methods.pods.pairing.quick_kernels import accept
from sequester.methods.pods.task import LabelBounds

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

FEW = 8.0
"""What a type that one couple is expected to have costs, times the share of people who leave each time: whoever is left
of a rare type finds nobody. What it is worth is in `experiments/pods_ablation`, as of `LINK`."""

LINK = 0.5
"""What each person costs whom a new link adds, where lineages are bounded."""

_APART = 64.0
"""How far apart people are put who cannot be partners at all: farther than any two are."""

_NEAR_ENOUGH = 0.2
"""Half the distance up to which those of one type are paired before newcomers are looked at."""

_TURNS, _LOOSE = 4, 64
"""How often those are tried again who are left alone, and with how many of the nearest at last."""


CELL = 2_500
"""People who are paired at once. What it comes to is measured by `python -m benchmarks pods-matching`."""

_SAME, _WANTED, _NEW, _FREQUENT = 24, 12, 32, 8
"""How many of the nearest are looked at: of one type, newcomers with a label that is missing, newcomers among
themselves, and the most frequent labels of which a few are looked at besides."""


@dataclass(frozen=True, eq=False, repr=False)
class PodPeople:
    """People to be paired.

    place    (people, attributes) where they are now
    label    everything permanent that their rows show
    want     the label of the other seat of their type, -1 for those who are new and have none
    kind     their type, -1
    lineage  -1 for those who are new; `linked` people are in it
    alone    the price of having a decoy
    leaving  the share of people of a release who are not in the next, as far as is known
    """

    place: Places
    label: Integers
    want: Integers
    kind: Integers
    seat: Integers
    lineage: Integers
    linked: Integers
    alone: NDArray[np.float64]
    leaving: float = 0.0

    def __len__(self) -> int:
        return len(self.label)

    def of(self, chosen: Integers, price: float) -> PodPeople:
        """Some of them, with this price of a decoy."""
        arrays = ("place", "label", "want", "kind", "seat", "lineage", "linked")
        some: dict[str, Any] = {name: getattr(self, name)[chosen] for name in arrays}
        return replace(self, alone=np.full(len(chosen), price), **some)

    def leaders(self) -> Integers:
        """Per person the first of her lineage: of a newcomer herself."""
        found, old = np.arange(len(self)), np.flatnonzero(self.lineage >= 0)
        _, first, place = numbered(self.lineage[old])
        found[old] = old[first[place]]
        return found


def pair(
    people: PodPeople,
    bounds: LabelBounds,
    barred: NDArray[np.bool_] | None,
    most: int | None,
    *,
    kept: Integers | None = None,
    wide: int = 1,
) -> Integers:
    """Everybody's partner, -1 for a decoy; no lineage gets more than `most` people.

    kept  partners that stay together, -1 for those who have none
    wide  look so many times farther
    """
    partner = np.full(len(people), -1, np.int64) if kept is None else kept.copy()
    rules = _Rules(bounds, barred, most, wide, people.leaders(), people.linked.copy())
    if len(people) > CELL:
        _reunited(people, rules, partner)
    for turn in range(_TURNS if most is None else 3 * wide):
        free = np.flatnonzero(partner < 0)
        if len(free) < 2 or not _matched(people, rules, cells_of(people.place, free, CELL, turn), partner):
            break
    if most is None:
        _loosened(people, rules, partner)
    return partner


def loosen(people: PodPeople, bounds: LabelBounds, barred: NDArray[np.bool_] | None, partner: Integers) -> None:
    """Whoever is left alone, and the couples nearby, paired once more with care. Changes `partner`."""
    _loosened(people, _Rules(bounds, barred, None, 1, people.leaders(), people.linked.copy()), partner)


def _reunited(people: PodPeople, rules: _Rules, partner: Integers) -> None:
    """Of many people, those of one type first, unless they are far apart: newcomers may be nearer."""
    old = np.flatnonzero((partner < 0) & (people.kind >= 0))
    order = old[np.argsort(people.kind[old], kind="stable")]
    parts = np.split(order, np.flatnonzero(np.diff(people.kind[order])) + 1)
    cells = [cell for part in parts for cell in cells_of(people.place, part, CELL, 0)]
    near = replace(people, alone=np.minimum(people.alone, _NEAR_ENOUGH))
    _matched(near, rules, cells, partner)


@dataclass(frozen=True, eq=False, repr=False)
class _Rules:
    """Who may be whose partner; `leader` and `linked` say per person who leads her lineage, and how many are in it."""

    bounds: LabelBounds
    barred: NDArray[np.bool_] | None
    most: int | None
    wide: int
    leader: Integers
    linked: Integers


def _matched(people: PodPeople, rules: _Rules, cells: list[Integers], partner: Integers) -> int:
    """Pair people, cell by cell; returns how many pairs there are. Changes `partner`."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = list(pool.map(lambda cell: _in_cell(people, rules, cell), cells))
    first, second = (np.concatenate(side) for side in zip(*parts, strict=True))
    if rules.most is None:
        partner[first], partner[second] = second, first
        return len(first)
    # The nearest first, as long as no lineage gets too many people.
    apart = np.abs(people.place[first] - people.place[second]).sum(axis=1)
    order = np.argsort(apart, kind="stable")
    leader, linked = rules.leader, rules.linked
    paired = accept(leader, linked, rules.most, first[order], second[order].astype(np.int32), partner)
    while (leader != leader[leader]).any():
        leader[:] = leader[leader]
    linked[:] = linked[leader]
    return paired


def _in_cell(people: PodPeople, rules: _Rules, cell: Integers) -> tuple[Integers, Integers]:
    """Pairs of people of one cell at least cost."""
    own = people.of(cell, 0.0)
    leader, linked = rules.leader[cell], rules.linked[cell]
    one, other = _arcs(own, leader, linked, rules)
    if rules.barred is not None:
        fits = ~(rules.barred[cell[one], own.label[other]] | rules.barred[cell[other], own.label[one]])
        one, other = one[fits], other[fits]
    if not len(one):
        return cell[:0], cell[:0]
    cost = np.abs(own.place[one] - own.place[other]).clip(max=1).sum(axis=1) + _rarity(own, one, other)
    if rules.most is not None:
        # Whoever knows one of those who are linked may know all.
        apart = leader[one] != leader[other]
        cost += np.where(apart, LINK * (linked[one] + linked[other] - 2), 0.0)
    found = match(len(cell), one, other, cost, people.alone[cell])
    chosen = np.flatnonzero(found > np.arange(len(cell)))
    return cell[chosen], cell[found[chosen]]


def _loosened(people: PodPeople, rules: _Rules, partner: Integers) -> None:
    """Whoever is left alone, and the couples nearby, paired once more. Changes `partner` where fewer are alone."""
    from scipy.spatial import cKDTree

    alone = np.flatnonzero(partner < 0)
    if not len(alone) or len(alone) > len(partner) // 4 or people.alone[alone[0]] < people.place.shape[1]:
        return
    near = cKDTree(people.place).query(people.place[alone], k=min(_LOOSE, len(partner)), p=1)[1]
    chosen = np.unique(np.concatenate([alone, near.ravel()]))
    chosen = np.unique(np.concatenate([chosen, partner[chosen][partner[chosen] >= 0]]))
    trial = partner.copy()
    trial[chosen] = -1
    for turn in range(_TURNS):
        free = chosen[trial[chosen] < 0]
        if len(free) < 2 or not _matched(people, rules, cells_of(people.place, free, CELL, turn), trial):
            break
    if np.count_nonzero(trial < 0) < len(alone):
        partner[:] = trial


def _arcs(people: PodPeople, leader: Integers, linked: Integers, rules: _Rules) -> tuple[Integers, Integers]:
    """Pairs that may be, each once: those nearby."""
    new, old = np.flatnonzero(people.want < 0), np.flatnonzero(people.want >= 0)
    left, right = old[people.seat[old] == 0], old[people.seat[old] == 1]
    pairs = [nearest(people.place, left, right, people.kind, people.kind, rules.wide * _SAME)]
    if rules.most is not None:
        pairs.append(nearest(people.place, left, right, leader, leader, rules.wide * _SAME))
    pairs.append(nearest(people.place, old, new, people.want, people.label, rules.wide * _WANTED))
    nothing = np.zeros(len(people), np.int64)
    pairs.append(nearest(people.place, new, new, nothing, nothing, _NEW))
    if len(new):
        # Where one label is everywhere, the nearest with each of the others too.
        common = np.argsort(-np.bincount(people.label[new]), kind="stable")[:_FREQUENT]
        for label in common.tolist():
            rest = new[people.label[new] == label]
            pairs.append(nearest(people.place, new, rest, nothing, nothing, 4))
    one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
    both_new = (people.want[one] < 0) & (people.want[other] < 0)
    fits = (one != other) & ~(both_new & rules.bounds.clashing(people.label[one], people.label[other]))
    if rules.most is not None:
        fits &= (leader[one] == leader[other]) | (linked[one] + linked[other] <= rules.most)
    one, other = one[fits], other[fits]
    key = np.sort(np.minimum(one, other) * len(people) + np.maximum(one, other))
    key = key[np.diff(key, prepend=-1) > 0]
    return key // len(people), key % len(people)


def cells_of(place: Places, people: Integers, size: int, turn: int) -> list[Integers]:
    """People by place, in cells of at most so many: halved where they spread most, in another way each turn."""
    found, open_ = [], [people]
    first = True
    while open_:
        cell = open_.pop()
        if len(cell) <= size:
            found.append(cell)
            continue
        spread = np.ptp(place[cell], axis=0) if len(cell) < 4 * size else place[cell].std(axis=0)
        axis = int(np.argsort(-spread, kind="stable")[turn % place.shape[1] if first else 0])
        at = len(cell) // (2 + (turn % 2 if first else 0))
        order = np.argpartition(place[cell, axis], at)
        open_ += [cell[order[:at]], cell[order[at:]]]
        first = False
    return found


def nearest(
    place: Places, left: Integers, right: Integers, left_key: Integers, right_key: Integers, count: int
) -> tuple[Integers, Integers]:
    """Of each on the left, the nearest on the right who have the same key."""
    from scipy.spatial import cKDTree

    if not len(left) or not len(right):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    there = np.column_stack([place[right], right_key[right] * _APART])
    here = np.column_stack([place[left], left_key[left] * _APART])
    count = min(count + 1, len(right))
    far, found = cKDTree(there).query(here, k=count, p=1, distance_upper_bound=_APART / 2)
    found, far = found.reshape(len(left), count), far.reshape(len(left), count)
    row, column = np.nonzero(np.isfinite(far))
    return left[row], right[found[row, column]]


def _rarity(people: PodPeople, one: Integers, other: Integers) -> Places:
    """What a new type costs: the rarer, the harder it is for whoever is left alone to find another of the same type."""
    both_new = (people.want[one] < 0) & (people.want[other] < 0)
    count = np.bincount(people.label).astype(np.float64)
    expected = count[people.label[one]] * count[people.label[other]] / len(people)
    return np.where(both_new, min(FEW * people.leaving, 2.0) / np.sqrt(np.maximum(expected, 1.0)), 0.0)
