"""Sweeney's advice: base a release on the last one.

Published rows stay as they are, to the letter. Newcomers who fit the box of a class join it if those who do are
themselves enough people (`inferred`) with no value too frequent: then nobody learns more from the difference than that
group tells (grow-only lemma). All others get classes of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.history.boxes import intersecting
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task
from sequester.methods.mondrian.cut import Cuts, mondrian
from sequester.methods.mondrian.method import cut_once
from sequester.methods.series_guard.proposed import over_one

Integers = NDArray[np.int64]


def grow(
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    cuts: Cuts = "gain",
) -> Classes:
    """The next release on top of the last; records (attributes, records) of `past`. The first is plain Mondrian."""
    if not len(past.first):
        return mondrian(codes, domains, guard, cuts=cuts)
    member, lo, hi = _stay(past, codes)
    new = np.flatnonzero(member < 0)
    member[new] = _join(past, codes, new, lo=lo, hi=hi)
    rest = np.flatnonzero(member < 0)
    if len(rest) and not _are_a_class(past, rest):
        # Too few are left for classes of their own: all newcomers are cut together.
        member[new], rest = -1, new
        if not _are_a_class(past, rest):
            raise GuaranteeError(
                "the newcomers do not make a class, and do not fit those of the last release; hold them back until "
                "there are more",
                guarantee="series",
            )
    if len(rest):
        others = mondrian(codes[:, rest], domains, replace(guard, values=guard.values[rest]), cuts=cuts)
        member[rest] = others.member + lo.shape[1]
        lo, hi = np.hstack([lo, others.lo]), np.hstack([hi, others.hi])
    used, compact = np.unique(member, return_inverse=True)
    return Classes(compact.astype(np.int32), lo[:, used], hi[:, used])


def _stay(past: Past, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Everybody in her last class with its published box, widened where somebody's attributes changed."""
    last = past.first.releases[-1]
    member, lo, hi = past.last_class(), last.lo.copy(), last.hi.copy()
    here = member >= 0
    for axis in range(len(lo)):
        np.minimum.at(lo[axis], member[here], codes[axis, here])
        np.maximum.at(hi[axis], member[here], codes[axis, here])
    return member, lo, hi


def _join(
    past: Past, codes: NDArray[np.int32], new: Integers, *, lo: NDArray[np.int32], hi: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Per newcomer, the smallest class whose box she fits, -1 where there is none or the group cannot be hidden."""
    choice = np.full(len(new), -1, np.int32)
    if not len(new) or not lo.shape[1]:
        return choice
    sides = codes[:, new]
    person, group = intersecting(sides, sides, lo, hi)
    width = (hi - lo).sum(axis=0, dtype=np.int64)
    order = np.lexsort((group, width[group], person))
    fitting, first = np.unique(person[order], return_index=True)
    choice[fitting] = group[order][first]
    fits = np.flatnonzero(choice >= 0)
    groups, inverse = np.unique(choice[fits], return_inverse=True)
    if len(groups):
        hides = _hides(past, inverse.astype(np.int64), new[fits], len(groups), past.first.fewest)
        choice[fits[~hides[inverse]]] = -1
    return choice


def _are_a_class(past: Past, records: Integers) -> bool:
    return bool(_hides(past, np.zeros(len(records), np.int64), records, 1, past.first.k).all())


def _hides(past: Past, group: Integers, records: Integers, groups: int, people: int) -> NDArray[np.bool_]:
    """Per group of records, whether it is so many people with no value above its bound."""
    size = np.bincount(group, minlength=groups)
    safe = size >= people
    for history, value in zip(past.histories, past.value, strict=True):
        values = len(history.values)
        counts = np.bincount(group * values + value[records], minlength=groups * values).reshape(groups, values)
        numerator, denominator = over_one(history.bounds)
        safe &= (counts * denominator <= size[:, None] * numerator).all(axis=1)
    return np.asarray(safe)


def _following(task: Task) -> Classes:
    return grow(task.history, *task.table, cuts=task.options.cuts)


METHOD = Method("grow", cut_once, _following, together=True)
