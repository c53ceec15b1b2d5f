"""Groups for values that change: no class links anybody to a value beyond what is left of her lifetime guarantee.

The people of a class differ in what was published about them, and the one with the worst history decides for each value
how large its share may be. A class without a value costs nobody anything; so classes are made bottom-up from small runs
of neighbours (gain Mondrian under k alone), joined where that is needed and at the least loss: a dynamic program over
the runs in their order, which judges every union on its own, because neither merging nor splitting is monotone. People
of runs that no union makes safe, and people who would spoil most groups, are put one by one into near groups that bear
them; or get a group of neighbours whose own groups can spare them; or groups join around them. Where somebody finds no
place then, because no class can have her or none that costs less than `WORTH` fully generalized records, the safe node
of neighborhoods around her is one class. Who is left out was decided before, by neighborhoods (`neighborhoods`), so
that it tells nothing about who has what.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.lifetime import DOUBT
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.allowance import Allowance, boxes_of
from sequester.methods.lifetime.neighborhoods import bearable, neighborhoods
from sequester.methods.lifetime.placing import members
from sequester.methods.lifetime.promise import broken, nobody_fits, prospects

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]

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
    _, number = np.unique(member[kept], return_inverse=True)
    compact = np.full(len(member), -1, np.int32)
    compact[kept] = number
    order = kept[np.argsort(number, kind="stable")]
    return Classes(compact, *boxes_of(codes, order, np.append(0, np.cumsum(np.bincount(number)))))
