"""What the next table is made from: whole components of the history, and newcomers in classes of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes, compact, hulls
from sequester.methods.mondrian.cut import Cuts, mondrian
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.methods.series_guard.proposed import PastClasses


@dataclass(frozen=True, eq=False, repr=False)
class Stock:
    """Units that are never torn apart by the division into blocks, and the classes they have if nothing is cut anew.

    unit        per record, its unit: a component of the history, or a class of newcomers
    kept        per record, its class if nothing is cut anew: that of the last release, or of newcomers; -1 for people
                who come back, who have none
    lost        per record, whether it cannot stay as it is: its class lost somebody or is no longer safe by itself, or
                it has none
    unsettled   per unit, whether staying as it is is not known to be safe: somebody left it or came back
    absent      people of the history who are in units but not in the table, and the unit of each
    lo, hi      (records, attributes) what every record adds to its box: its codes, or the old box for the retained
    """

    unit: NDArray[np.int64]
    kept: NDArray[np.int64]
    lost: NDArray[np.bool_]
    unsettled: NDArray[np.bool_]
    absent: NDArray[np.int64]
    absent_unit: NDArray[np.int64]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]

    @property
    def units(self) -> int:
        return len(self.unsettled)

    @classmethod
    def of(
        cls,
        past: Past,
        columns: PastClasses,
        codes: NDArray[np.int32],
        domains: tuple[Hierarchy, ...],
        guard: ClassGuard,
        *,
        cuts: Cuts,
        regroup: bool,
    ) -> Stock:
        """The units of the next table; newcomers' classes are regrouped if wished."""
        from sequester.methods.loops.tree import safe_classes

        trajectory = columns.person[past.person]
        component = np.where(trajectory >= 0, columns.component[trajectory], -1).astype(np.int64)
        last = past.last_class().astype(np.int64)
        old = len(past.first.releases[-1])
        kept, count = last.copy(), old
        fresh = np.flatnonzero(component < 0)
        unit = np.full(len(past), -1, np.int64)
        found, inverse = np.unique(component[component >= 0], return_inverse=True)
        unit[component >= 0] = inverse
        if len(fresh):
            own = replace(guard, values=guard.values[fresh])
            member = mondrian(codes[:, fresh], domains, own, cuts=cuts, regroup=regroup).member.astype(np.int64)
            kept[fresh] = old + member
            unit[fresh] = len(found) + member
            count += int(member.max()) + 1
        units = int(unit.max(initial=-1)) + 1
        missing = columns.person >= 0
        missing[past.person] = False
        everybody = np.flatnonzero(missing)
        of_component = np.full(columns.components, -1, np.int64)
        of_component[found] = np.arange(len(found))
        absent_unit = of_component[columns.component[columns.person[everybody]]]
        absent, absent_unit = everybody[absent_unit >= 0], absent_unit[absent_unit >= 0]
        before = past.first.releases[-1].member
        assert before is not None
        torn = np.zeros(count, np.bool_)
        left = before[absent] >= 0
        torn[before[absent[left]]] = True
        torn |= ~safe_classes(kept.astype(np.int64, copy=False), guard.values, count, guard.limits)
        lost = np.append(torn, True)[kept]
        unsettled = np.zeros(units, np.bool_)
        unsettled[absent_unit[left]] = True
        unsettled[unit[lost]] = True
        return cls(unit, kept, lost, unsettled, absent, absent_unit, *extents(past, codes))

    def safe_blocks(
        self, watch: SeriesGuard, guard: ClassGuard, member: NDArray[np.int64], block: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Per block of records whether its classes are safe, by themselves and in the series; -1 is in none."""
        from sequester.methods.loops.tree import safe_classes

        judged = np.flatnonzero(block >= 0)
        good = np.ones(int(block.max(initial=-1)) + 1, np.bool_)
        if not len(judged):
            return good
        good[block[judged[member[judged] < 0]]] = False
        own = compact(member[judged])
        lo, hi = hulls(own, self.lo[judged], self.hi[judged])
        sound = safe_classes(own, guard.values[judged], lo.shape[1], guard.limits)
        good[block[judged[~sound[own]]]] = False
        placed = np.zeros(len(member), np.int32)  # elsewhere: people of other blocks did not leave
        placed[judged] = own
        verdict = watch.judge_blocks(placed, lo, hi, np.where(good[block] & (block >= 0), block, -1).astype(np.int32))
        good[: len(verdict)] &= verdict[: len(good)] == Answer.YES.value
        return good

    def classes(self, member: NDArray[np.int64]) -> Classes:
        """The classes with boxes around what their records add; classes are numbered without gaps."""
        return Classes.around(compact(member), self.lo.T, self.hi.T)


def extents(past: Past, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(records, attributes) what every record adds to its box: its codes, or its old box if its person left."""
    lo, hi = codes.T.copy(), codes.T.copy()
    if past.retained.any():
        release, last = past.first.releases[-1], past.last_class()[past.retained]
        lo[past.retained], hi[past.retained] = release.lo[:, last].T, release.hi[:, last].T
    return lo, hi


def around(classes: Classes, past: Past, codes: NDArray[np.int32]) -> Classes:
    """The same classes, their boxes widened to the old boxes of people who left and are kept in the release."""
    if not past.retained.any():
        return classes
    lo, hi = hulls(classes.member.astype(np.int64), *extents(past, codes))
    return replace(classes, lo=np.minimum(classes.lo, lo), hi=np.maximum(classes.hi, hi))
