"""Groups for values that change: no class links anybody to a value beyond what is left of her lifetime guarantee.

The people of a class differ in what was published about them, and the one with the worst history decides for each value
how large its share may be. A class without a value costs nobody anything; so classes are made bottom-up from small runs
of neighbours (gain Mondrian under k alone), joined where that is needed and at the least loss: a dynamic program over
the runs in their order, which judges every union on its own, because neither merging nor splitting is monotone. People
of runs that no union makes safe, and people who would spoil most groups, are put one by one into near groups that bear
them, or groups join around them. Where somebody finds no
place then, because no class can have her or none that costs less than `WORTH` fully generalized records, the safe node
of neighborhoods around her is one class.

Sometimes no classes keep what was promised for everybody. To leave out just those with the values in the way would tell
these values to whoever knows the raw table's people. So the table is cut into neighborhoods by quasi-identifiers alone,
several times as large as classes have to be, and joined two by two to a tree. Of a node only counts are looked at: how
many have each value, and how much of it the one with the worst history allows. A node that is safe as one class loses
nobody; of one that is not, its parts are looked at; and a neighborhood in no safe node is left out as a whole. Two
people of one neighborhood may swap their values, and the same people are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.guarantees.lifetime import DOUBT
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.classes import Classes, compact
from sequester.methods.lifetime.allowance import Allowance
from sequester.methods.lifetime.placing import members
from sequester.methods.lifetime.promise import broken, nobody_fits, prospects

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]

# Groups are made so often before all shares are lowered by a hair; nearly always the first ones keep the promise.
_ATTEMPTS = 4


def group(past: Past, codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, *, lifetime: Lifetime) -> Classes:
    """Classes of the next table, given as codes (attributes, records), for all views whose values change.

    They keep the lifetime guarantee. People of neighborhoods that can be in no class have the class -1. Raises
    GuaranteeError when nobody can be published.
    """
    if past.retained.any() or guard.known:
        raise ValueError("groups are made of records that are there, and without a population")
    strategy, survivals, share = prospects(past, lifetime)
    allowance = Allowance(codes, domains, guard, survivals, share)
    near = neighborhoods(codes, domains, size=allowance.neighbors())
    cell = bearable(near, lambda node, count: allowance.safe(node, count, strategy))
    if (cell < 0).all():
        raise nobody_fits()
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            share -= 4 * DOUBT
        member = _within(replace(allowance, share=share), cell)
        exceeded = broken(survivals, strategy, member)
        if not len(exceeded.row):
            return _classes(member, codes)
        # So near to the limit that only whole numbers could tell: from now on the share is out of the question.
        np.minimum.at(share, (exceeded.row, exceeded.column), exceeded.share - 4 * DOUBT)
    raise AssertionError("groups within their shares exceed what was promised")


def _within(allowance: Allowance, cell: Ints) -> Ints:
    """Per record its group: everybody with a cell has one; cells are safe by themselves."""
    member, whole = np.full(len(cell), -1, np.int32), np.zeros(len(cell), np.bool_)
    for last in (False, False, True):
        rest = np.flatnonzero((cell >= 0) & ~whole)
        own = members(allowance.only(rest)) if len(rest) else np.zeros(0, np.int32)
        if (own >= 0).all():
            member[rest] = own
            break
        whole |= (cell >= 0) if last else np.isin(cell, cell[rest[own < 0]]) & (cell >= 0)
    member[whole] = cell[whole] + int(member.max(initial=-1)) + 1
    return member


def _classes(member: Ints, codes: Ints) -> Classes:
    """Groups numbered through, with tight boxes."""
    kept = np.flatnonzero(member >= 0)
    made = Classes.around(compact(member[kept]), codes[:, kept])
    number = np.full(len(member), -1, np.int32)
    number[kept] = made.member
    return replace(made, member=number)


def neighborhoods(codes: Ints, domains: tuple[Hierarchy, ...], *, size: int) -> Ints:
    """Per record its neighborhood of at least `size` records (or all), numbered so that near ones have near numbers."""
    from sequester.methods.mondrian import cut_kernels as kernels

    order = np.arange(codes.shape[1], dtype=np.int32)
    rows, nothing = np.ascontiguousarray(codes.T), np.zeros((len(order), 0), np.int32)
    deck, scale = kernels.Deck(rows, nothing, order), kernels.Scale(*side_by_side(domains))
    starts = kernels.cut_rows(deck, 0, len(order), 0, kernels.GAIN, scale, kernels.NOBODY, Limits.only(size))
    number = np.empty(len(order), np.int32)
    number[order] = np.searchsorted(np.sort(starts), np.arange(len(order)), side="right") - 1
    return number


def bearable(neighborhood: Ints, safe: Callable[[Ints, int], Mask]) -> Ints:
    """Per record the smallest safe node of the tree that it can be in while nobody more is left out; -1: left out.

    safe  tells of nodes, given as the node of every record and their number, which are safe as one class
    """
    count = int(neighborhood.max(initial=-1)) + 1
    good, covered = [], []
    level = 0
    while True:
        nodes = (count + (1 << level) - 1) >> level
        good.append(safe(neighborhood >> level, nodes))
        if level == 0:
            covered.append(good[0].copy())
        else:
            below = np.append(covered[-1], True)[: 2 * nodes]
            covered.append(good[-1] | below.reshape(-1, 2).all(axis=1))
        if nodes <= 1:
            break
        level += 1
    cell = np.full(count, -1, np.int64)
    number = 0
    waiting = [(level, 0)] if count else []
    while waiting:
        at, node = waiting.pop()
        parts = [(at - 1, child) for child in (2 * node, 2 * node + 1) if at and child < len(covered[at - 1])]
        if parts and (all(covered[at - 1][child] for _, child in parts) or not good[at][node]):
            waiting += parts
        elif good[at][node]:
            cell[node << at : (node + 1) << at] = number
            number += 1
    return cell[neighborhood].astype(np.int32)
