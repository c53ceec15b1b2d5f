"""Values that stay and values that change, in one release: the insider's guarantee for those, a lifetime for these.

First the classes that an insider learns nothing from about the values that stay, as in any series. These are then
joined, whole, until no class links anybody to a changing value beyond what is left of her lifetime guarantee. Joining
is safe for the first promise (every check of the insider is monotone: coarser classes tell her less) and has to be
judged anew for the second (which is not). Where joining costs more than it is worth, the fewest values are suppressed
that do it: their people stay in the release, so nobody is seen to leave.

A row with a value that stays is nobody else's row of a changing value, so it does not count in the shares of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.guarantees.lifetime import Survivals
from sequester.history.past import Past
from sequester.methods.classes import Classes
from sequester.methods.guard import Guard
from sequester.methods.series.group import WORTH, broken, nobody_fits, prospects
from sequester.methods.series.mondrian import republish

if TYPE_CHECKING:
    from sequester.policy.model import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]
Progress = Callable[[str, int, int], None]

# Of a class that is left as it is only some values are suppressed.
_APART = WORTH / 4
_LONGEST = 2000


def group_both(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: Guard,
    *,
    lifetime: Lifetime,
    against: Collection[str],
    may_hide: bool,
    seed: int = 0,
    progress: Progress | None = None,
) -> Classes:
    """Classes of the next table, given as codes (attributes, records); `hidden` are those whose values are suppressed.

    Raises GuaranteeError when no classes hide the values that stay, or when values would have to be suppressed and must
    not be.
    """
    insider = [adversary for adversary in against if adversary != "lifetime"]
    base = republish(past.views(permanent=True), codes, domains, guard, against=insider, seed=seed, progress=progress)
    strategy, survivals, share = prospects(past, lifetime)
    counted = counted_rows(past)
    member = _joined(base, codes, domains, guard, survivals, share, counted)
    hidden = np.zeros(len(member), np.bool_)
    while True:
        rows, columns, _ = broken(survivals, strategy, member, counted)
        if not len(rows):
            break
        if not may_hide:
            raise nobody_fits()
        new = _too_many(survivals, share, member, counted, rows=rows, columns=columns)
        column = survivals.column.copy()
        column[new] = -1
        survivals, hidden = replace(survivals, column=column), hidden | new
    used, compact = np.unique(member, return_inverse=True)
    lo, hi = (np.full((len(domains), len(used)), start, np.int32) for start in (np.iinfo(np.int32).max, -1))
    into = np.zeros(len(base), np.int64)
    into[base.member] = compact
    for axis in range(len(domains)):
        np.minimum.at(lo[axis], into, base.lo[axis])
        np.maximum.at(hi[axis], into, base.hi[axis])
    return Classes(compact.astype(np.int32), lo, hi, hidden=hidden)


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
    guard: Guard,
    survivals: Survivals,
    share: NDArray[np.float64],
    counted: Longs,
) -> Ints:
    """Per record its group: classes joined with their neighbours at the least loss, some perhaps not safe yet."""
    from sequester.kernels import group as kernels
    from sequester.kernels.blocks import unit_tree

    size = base.size
    center = np.column_stack(
        [(d.position[lo] + d.position[hi]) / 2 for d, lo, hi in zip(domains, base.lo, base.hi, strict=True)]
    )
    line = unit_tree(center, size.astype(np.float64))[0]
    place = np.empty(len(size), np.int64)
    place[line] = np.arange(len(size))
    order = np.argsort(place[base.member], kind="stable").astype(np.int64)
    starts = np.append(0, np.cumsum(size[line])).astype(np.int64)
    units = np.arange(len(size), dtype=np.int64)
    usual = 1 / max(float(np.quantile(share[survivals.row].min(axis=1), 0.1)) if share.size else 1.0, 1 / _LONGEST)
    reach = int(max(1.25 * usual, 2 * guard.limits.k))
    length = kernels.join_runs(
        order, starts, base.lo[:, line].T.copy(), base.hi[:, line].T.copy(),
        kernels.lowest(share, survivals.row, order, starts), units, survivals.column, counted, guard.values,
        guard.limits, *side_by_side(domains), units + 1, reach, min(max(4 * reach, _LONGEST), len(order)), _APART,
    )  # fmt: skip
    number = np.cumsum(length >= 0) - 1
    member = np.empty(len(order), np.int32)
    member[order] = np.repeat(number, size[line])
    return member


def _too_many(
    survivals: Survivals, share: NDArray[np.float64], member: Ints, counted: Longs, *, rows: Longs, columns: Longs
) -> Mask:
    """Records whose values must be suppressed, so that these kinds of people keep the promise for these values.

    Of the holders of a value in a class, as many as are above the smallest share that one of its people allows.
    """
    classes, values = int(member.max()) + 1, share.shape[1]
    size = np.bincount(member, weights=counted, minlength=classes)
    bad = np.zeros((len(survivals.left), values), np.bool_)
    bad[rows, columns] = True
    chosen = np.zeros(len(member), np.bool_)
    for view in survivals.column.T:
        holders = np.flatnonzero(view >= 0)
        key = member[holders].astype(np.int64) * values + view[holders]
        count = np.bincount(key, minlength=classes * values)
        for value in np.unique(columns).tolist():
            people = np.flatnonzero(bad[survivals.row, value])
            least = np.ones(classes)
            np.minimum.at(least, member[people], share[survivals.row[people], value])
            hit = np.zeros(classes, np.bool_)
            hit[member[people]] = True
            have = count[np.arange(classes) * values + value]
            most = np.floor(least * size + 1e-9)
            # At least one goes: where the share itself is the limit, whole numbers said that it is too much.
            excess = np.where(hit & (have > 0), np.maximum(have - most, 1), 0)
            mine = holders[view[holders] == value]
            mine = mine[np.argsort(member[mine], kind="stable")]
            first = np.searchsorted(member[mine], member[mine], side="left")
            chosen[mine[np.arange(len(mine)) - first < excess[member[mine]]]] = True
    return chosen
