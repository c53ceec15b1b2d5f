"""The next table under shares: how frequent each value may be among people with each history, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.lifetime import DOUBT, Strategy
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.lifetime.kernels import Groups
from sequester.methods.lifetime.promise import broken, count_values
from sequester.methods.lifetime.survivals import Survivals

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Neighborhoods have so many times the records that a usual class needs: so most are safe as they are, and few people
# are left out with those who cannot be hidden.
_NEIGHBORS = 4
# Nobody is looked at as needing more people than this: whoever does is put into groups one by one.
_FARTHEST = 1000
# Groups of this many are looked at anyway: they take no time, and a few difficult people may need them.
_LONG = 800
# People are put aside when they can bear less of the values in a usual group than this.
_SPOILT = 0.3
# A value may be a little more frequent in a part than in the whole table, or nothing could be cut at all.
_MORE = 1.02
# Multiples of the golden ratio are spread evenly, whatever their number.
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Allowance:
    """The largest share of each value (columns) that each kind of person (rows) allows, and the table it is for."""

    codes: Ints
    domains: tuple[Hierarchy, ...]
    guard: ClassGuard
    survivals: Survivals
    share: Floats

    def only(self, rows: Longs) -> Allowance:
        """The same of some of the records."""
        own = replace(self.survivals, row=self.survivals.row[rows], column=self.survivals.column[rows])
        guard = replace(self.guard, values=np.ascontiguousarray(self.guard.values[rows]))
        return replace(self, codes=np.ascontiguousarray(self.codes[:, rows]), guard=guard, survivals=own)

    def groups(self, group_of: Longs, count: int) -> Groups:
        """So many groups of the records that are in one."""
        kept = np.flatnonzero(group_of >= 0)
        order = kept[np.argsort(group_of[kept], kind="stable")]
        size = np.bincount(group_of[kept], minlength=count).astype(np.int64)
        starts = np.append(0, np.cumsum(size)[:-1])
        position = [domain.position[row[order]] for domain, row in zip(self.domains, self.codes, strict=True)]
        low, high = (
            np.column_stack([operate.reduceat(side, starts) for side in position])
            for operate in (np.minimum, np.maximum)
        )
        counts = count_values(group_of, self.survivals.column, self.share.shape[1], count)
        total = count_values(group_of, self.guard.values, int(self.guard.limits.first[-1]), count)
        return Groups(size, counts, self._lowest(order, starts), total, low, high)

    def _lowest(self, order: Longs, starts: Longs) -> Floats:
        """(units, values) the smallest share that any record of each unit allows; units begin at `starts`."""
        row = self.survivals.row[order]
        least = [np.minimum.reduceat(column[row], starts) for column in self.share.T]
        return np.column_stack([np.ones((len(starts), 0)), *least])

    def neighbors(self) -> int:
        """How large neighborhoods are; looks at what people were linked to before, and not at what they have now."""
        people = np.bincount(self.survivals.row, minlength=len(self.share))
        usual = people @ self.share / max(len(self.survivals.row), 1)
        needs = 1 / max(float(np.median(usual)) if len(usual) else 1.0, 1 / _FARTHEST)
        return _NEIGHBORS * int(max(np.ceil(needs), self.guard.limits.k))

    def safe(self, node: Ints, count: int, strategy: Strategy) -> Mask:
        """Which of so many nodes, given per record, are safe as one class: by their counts and the worst history."""
        from sequester.methods.loops.tree import safe_classes

        size = np.bincount(node, minlength=count)
        order = np.argsort(node, kind="stable").astype(np.int64)
        least = self._lowest(order, np.append(0, np.cumsum(size)[:-1]))
        many = count_values(node.astype(np.int64), self.survivals.column, self.share.shape[1], count)
        safe: Mask = safe_classes(node.astype(np.int64), self.guard.values, count, self.guard.limits)
        safe &= ((many == 0) | (many <= (least + DOUBT) * size[:, None])).all(axis=1)
        safe[broken(self.survivals, strategy, node).number] = False
        return safe

    def sizes(self, records: int) -> tuple[int, int]:
        """How far groups are looked for: the size that nine of ten protected people need at least, and the most."""
        row, needs = self.survivals.row, [np.array([float(self.guard.limits.k)])]
        for column in self.survivals.column.T:
            there = np.flatnonzero(column >= 0)
            needs.append(1 / np.maximum(self.share[row[there], column[there]], 1 / _FARTHEST))
        usual = float(np.quantile(np.concatenate(needs), 0.9))
        reach = int(min(max(1.25 * usual, 2 * self.guard.limits.k), _FARTHEST))
        return reach, min(max(4 * reach, 8 * self.guard.limits.k, _LONG), max(records, 1))

    def impossible(self) -> Mask:
        """Records that cannot be in any class: by their own history, or as too many of one value for the whole table.

        Of too many the ones with the worst history go, and among equals some from everywhere.
        """
        row, share = self.survivals.row, self.share
        out = np.zeros(len(row), np.bool_)
        spread = (np.arange(len(row)) * _GOLDEN) % 1.0
        while not out.all():
            left, before = int(np.count_nonzero(~out)), int(np.count_nonzero(out))
            best = share[np.bincount(row[~out], minlength=len(share)) > 0].max(axis=0)
            for column in self.survivals.column.T:
                holders = np.flatnonzero((column >= 0) & ~out)
                out[holders[(share[row[holders], column[holders]] + DOUBT) * left < 1]] = True
                holders = holders[~out[holders]]
                counts = np.bincount(column[holders], minlength=len(best))
                for c in np.flatnonzero(counts > (best + DOUBT) * left).tolist():
                    whose = holders[column[holders] == c]
                    many = int(np.ceil((counts[c] - best[c] * left) / (1 - best[c]) - 1e-6))
                    worst = np.lexsort((spread[whose], share[row[whose], c]))[: max(many, 1)]
                    out[whose[worst]] = True
            if int(np.count_nonzero(out)) == before:
                break
        return out

    def difficult(self, out: Mask) -> Mask:
        """People who would spoil most groups around them: for values that are common, their share is next to nothing.

        They are put aside, and into groups one by one. Where they are most of the people, nobody is.
        """
        row, inside = self.survivals.row, ~out
        reach, _ = self.sizes(len(row))
        counts = np.zeros(self.share.shape[1])
        for column in self.survivals.column.T:
            counts += np.bincount(column[inside & (column >= 0)], minlength=len(counts))
        often = np.minimum(counts * (reach / max(int(np.count_nonzero(inside)), 1)), 1.0)
        spoiling = ((self.share + DOUBT) * reach < 1) @ often > _SPOILT
        difficult: Mask = spoiling[row] & inside
        return difficult if 2 * np.count_nonzero(difficult) < np.count_nonzero(inside) else np.zeros_like(difficult)

    def usual(self) -> tuple[Limits, Ints]:
        """The static criteria with the shares that nine of ten people allow, or the table's own where that is more."""
        limits, row = self.guard.limits, self.survivals.row
        column, first = self.survivals.column, self.survivals.first
        tenth = len(row) // 10
        parts, codes, views = [], [], len(first) - 1
        offset = int(limits.first[-1])
        for view in range(views):
            start, stop = int(first[view]), int(first[view + 1])
            there = np.bincount(column[:, view][column[:, view] >= 0] - start, minlength=stop - start) / len(row)
            most = np.array([np.partition(self.share[row, c], tenth)[tenth] for c in range(start, stop)])
            parts.append(np.append(np.maximum(most, _MORE * there), 1.0))
            codes.append(np.where(column[:, view] >= 0, column[:, view] - start, stop - start) + offset)
            offset += stop - start + 1
        flat = np.column_stack([self.guard.values, *codes]).astype(np.int32)
        return limits.with_shares(parts), np.ascontiguousarray(flat)
