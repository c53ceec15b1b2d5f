"""Values that stay and values that change, in one release: the insider's guarantee for those, a lifetime for these.

First the classes that an insider learns nothing from about the values that stay, as in any series. These are then
joined, whole, until no class links anybody to a changing value beyond what is left of her lifetime guarantee. Joining
is safe for the first promise (every check of the insider is monotone: coarser classes tell her less) and has to be
judged anew for the second (which is not). Where no joining of neighbours is safe, the table is one class; and nothing
is published where not even that is. Nobody is left out: she would be seen to leave.

A row with a value that stays is nobody else's row of a changing value, so it does not count in the shares of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes, compact
from sequester.methods.lifetime.allowance import Allowance
from sequester.methods.lifetime.promise import broken, nobody_fits, prospects
from sequester.methods.lifetime.survivals import Survivals
from sequester.methods.mondrian.method import mondrian_next

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Progress = Callable[[str, int, int], None]

# A class that is left as it is although it is not safe makes everything one class.
_APART = 1e9
# Nobody is taken to need more people than this: beyond, the table is as good as one class.
_LONGEST = 2000


def group_both(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    lifetime: Lifetime,
    against: Collection[str],
    progress: Progress | None = None,
) -> Classes:
    """Classes of the next table, given as codes (attributes, records).

    Raises GuaranteeError when no classes hide the values that stay, or when the table as one class links somebody to a
    changing value beyond the promise.
    """
    insider = [adversary for adversary in against if adversary != "lifetime"]
    base = mondrian_next(past.views(permanent=True), codes, domains, guard, against=insider, progress=progress)
    strategy, survivals, share = prospects(past, lifetime)
    counted = counted_rows(past)
    member = _joined(base, codes, domains, guard, survivals, share, counted)
    if len(broken(survivals, strategy, member, counted).row):
        member = np.zeros_like(member)
        if len(broken(survivals, strategy, member, counted).row):
            raise nobody_fits()
    lo, hi = (side[:, base.member] for side in (base.lo, base.hi))
    return Classes.around(compact(member), lo, hi)


def counted_rows(past: Past) -> Longs:
    """Per record, 1 unless it has a value that stays in an attribute whose other values change."""
    counted = np.ones(len(past), np.int64)
    for history, value in zip(past.histories, past.value, strict=True):
        if history.kept is not None:
            counted[value == history.kept] = 0
    return counted


def _joined(
    base: Classes,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    survivals: Survivals,
    share: NDArray[np.float64],
    counted: Longs,
) -> Ints:
    """Per record its group: classes joined with their neighbours at the least loss, some perhaps not safe yet."""
    from sequester.methods.lifetime.kernels import Extent, join_runs
    from sequester.methods.loops.tree import unit_tree

    lo, hi = (
        np.column_stack([domain.position[side] for domain, side in zip(domains, sides, strict=True)])
        for sides in (base.lo, base.hi)
    )
    line = unit_tree((lo + hi) / 2, base.size.astype(np.float64))[0]
    place = np.empty(len(line), np.int64)
    place[line] = np.arange(len(line))
    usual = 1 / max(float(np.quantile(share[survivals.row].min(axis=1), 0.1)) if share.size else 1.0, 1 / _LONGEST)
    reach = int(max(1.25 * usual, 2 * guard.limits.k))
    of_record = place[base.member]
    units = Allowance(codes, domains, guard, survivals, share).groups(of_record, len(line))
    units = units._replace(low=lo[line], high=hi[line])
    in_units = np.bincount(of_record, weights=counted, minlength=len(line)).astype(np.int64)
    extent = Extent(reach, min(max(4 * reach, _LONGEST), len(of_record)), _APART)
    length = join_runs(units, in_units, np.arange(1, len(line) + 1), guard.limits, extent)
    return np.asarray((np.cumsum(length >= 0) - 1)[of_record], np.int32)
