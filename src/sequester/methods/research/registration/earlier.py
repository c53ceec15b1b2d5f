"""What earlier releases say about every registered point, and whether the next one keeps what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.lifetime import DOUBT, Strategy, survival
from sequester.history.history import History
from sequester.methods.research.registration.costs import Regions
from sequester.methods.research.registration.point_kernels import PointShares, Tree
from sequester.methods.research.registration.registry import Registry
from sequester.methods.research.registration.values import Values

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# To find points, they are in runs of so many: fewer nodes than points, and few points looked at in vain.
_FEW = 8
# Points whose entries are made at once: few enough to stay in a processor's cache.
_CHUNK = 1 << 11


class Exceeded(NamedTuple):
    """What exceeds the promise: entries (-1: linked for the first time), columns, and shares."""

    entry: Longs
    column: Longs
    share: Floats


@dataclass(frozen=True, eq=False)
class Earlier:
    """What earlier releases say about every point; boxes are numbered through all releases.

    start, where   in release t point p is in the boxes where[start[t, p]:start[t, p + 1]]
    ends           box b has the values column[ends[b]:ends[b + 1]]; `linked` rows each, of `among` people
    tree           to find points
    """

    registry: Registry
    start: Longs
    where: Longs
    ends: Longs
    column: Ints
    linked: Longs
    among: Longs
    tree: Tree

    @classmethod
    def of(cls, histories: Sequence[History], values: Values, registry: Registry) -> Earlier:
        weight = registry.points.weight
        points, nothing = len(weight), np.zeros(0, np.int64)
        unlinked = PointShares(
            np.zeros(points + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.ones(len(values.bounds))
        )
        tree = registry.cut(unlinked, fine=_FEW)
        start, where, among = [np.zeros((0, points + 1), np.int64)], [nothing], [nothing]
        number, column, linked = [nothing], [np.zeros(0, np.int32)], [nothing]
        boxes = pairs = 0
        for release, published in enumerate(histories[0].releases):
            point, box = registry.inside(tree, published.lo.T, published.hi.T)
            around = np.bincount(point, minlength=points)
            inside = np.bincount(box, weights=weight[point], minlength=len(published)).astype(np.int64)
            shared = np.zeros(len(published), np.bool_)
            shared[box[around[point] > 1]] = True
            # Where boxes share people, how many there are says too little: the rows of the class are sure.
            rows = np.maximum(published.size, 1)
            among.append(np.where(shared, rows, np.maximum(inside, rows)))
            start.append((pairs + np.append(0, np.cumsum(around)))[None, :])
            where.append(boxes + box[np.argsort(point, kind="stable")].astype(np.int64))
            for place, history in zip(values.place, histories, strict=True):
                counts = history.releases[release].counts
                which, code = np.nonzero(counts)
                kept = place[code] >= 0
                number.append(boxes + which[kept])
                column.append(place[code[kept]])
                linked.append(counts[which[kept], code[kept]])
            boxes += len(published)
            pairs += len(point)
        by_box = np.concatenate(number)
        order = np.argsort(by_box, kind="stable")
        return cls(
            registry=registry,
            start=np.concatenate(start),
            where=np.concatenate(where),
            ends=np.append(0, np.cumsum(np.bincount(by_box, minlength=boxes))).astype(np.int64),
            column=np.concatenate(column)[order],
            linked=np.concatenate(linked)[order].astype(np.int64),
            among=np.concatenate(among),
            tree=tree,
        )

    def left(self, values: Values, strategy: Strategy) -> tuple[PointShares, Floats]:
        """What is left of every point, for the values it was linked to, and the survival of these entries."""
        from sequester.methods.research.registration.earlier_kernels import Around, remain

        points, columns = self.start.shape[1] - 1, len(values.bounds)
        box = np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))
        around = Around(self.start, self.where, self.ends, self.column, self.linked / self.among[box])
        # No strategy allows more than 1/l.
        bounded = (values.bounds * float(strategy.l) < 1).any()
        many, entries, allowed, survivals = [np.zeros(1, np.int64)], [], [], []
        for begin in range(0, points, _CHUNK):
            count, entry, kept, linked = remain(around, begin, min(begin + _CHUNK, points), columns)
            many.append(count)
            entries.append(entry)
            survivals.append(kept)
            share = strategy.shares(kept, linked)
            allowed.append(np.minimum(share, values.bounds[entry]) if bounded else share)
        fresh = np.minimum(strategy.shares(np.ones(columns), np.zeros(columns, np.int32)), values.bounds)
        shares = PointShares(np.cumsum(np.concatenate(many)), np.concatenate(entries), np.concatenate(allowed), fresh)
        return shares, np.concatenate(survivals)

    def broken(
        self, made: Regions, shares: PointShares, survivals: Floats, values: Values, strategy: Strategy
    ) -> Exceeded:
        """What in these classes exceeds the promise. Near the limit whole numbers decide."""
        from sequester.methods.research.registration.earlier_kernels import Linked, near_limit

        classes = len(made.lo)
        point, box = self.registry.inside(self.tree, made.lo, made.hi)
        if len(np.unique(point)) < len(point):
            raise AssertionError("regions share registered people")
        weights = self.registry.points.weight[point]
        among = np.bincount(box, weights=weights, minlength=classes).astype(np.int64)
        first, column, linked = values.count(made.member, classes)
        limit = float(strategy.floor) + 10 * DOUBT
        points, places, entries = near_limit(point, box, Linked(first, column, linked, among), shares, survivals, limit)
        size = among[np.repeat(np.arange(classes), np.diff(first))[places]]
        now, columns = linked[places], column[places].astype(np.int64)
        keeps = now * strategy.l.numerator <= size * strategy.l.denominator
        again = np.flatnonzero(entries >= 0)
        before, sizes = self.factors(points[again], columns[again])
        cases = np.column_stack([before, now[again], sizes, size[again]])
        distinct, which = np.unique(cases, axis=0, return_inverse=True)
        half = cases.shape[1] // 2
        decided = [survival(case[:half], case[half:]) >= strategy.floor for case in distinct.tolist()]
        keeps[again] = np.array(decided, np.bool_)[which.reshape(-1)]
        return Exceeded(entries[~keeps], columns[~keeps], now[~keeps] / size[~keeps])

    def factors(self, points: Longs, columns: Longs) -> tuple[Longs, Longs]:
        """(pairs, releases) rows with the value and people who share them, of the worst box around each point."""
        linked = np.zeros((len(points), len(self.start)), np.int64)
        among = np.ones_like(linked)
        box = np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))
        width = int(max(self.column.max(initial=0), columns.max(initial=0))) + 1
        keys = box * width + self.column
        order = np.argsort(keys)
        keys, many = keys[order], self.linked[order]
        for release, begin in enumerate(self.start if len(points) and len(keys) else ()):
            times = begin[points + 1] - begin[points]
            pair = np.repeat(np.arange(len(points)), times)
            around = self.where[np.repeat(begin[points] - np.cumsum(times) + times, times) + np.arange(len(pair))]
            wanted = around * width + columns[pair]
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            there = keys[place] == wanted
            pair, n_s, n = pair[there], many[place[there]], self.among[around[there]]
            # With repeated indices the last assignment stays, so the largest share must come last.
            by_share = np.argsort(n_s / n, kind="stable")
            linked[pair[by_share], release], among[pair[by_share], release] = n_s[by_share], n[by_share]
        return linked, among
