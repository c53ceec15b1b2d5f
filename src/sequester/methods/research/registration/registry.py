"""The people of a registration list, by where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.research.registration.point_kernels import Points, PointShares, Tree

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

# A value may be a little more frequent in a part than everywhere, or nothing could be cut at all.
_MORE = 1.02


@dataclass(frozen=True, eq=False)
class Registry:
    """The registered people by their points in the linking attributes, and the records at each.

    axes    the attributes in the order of the points: those that link, and the others
    sorted  (attributes that link, points) the points by each attribute
    """

    points: Points
    limits: Limits
    axes: Longs
    sorted: Ints

    @classmethod
    def of(
        cls,
        codes: Ints,
        domains: tuple[Hierarchy, ...],
        guard: ClassGuard,
        column: Ints,
        *,
        links: NDArray[np.bool_],
        registered: Ints,
    ) -> Registry:
        people, records = registered.shape[1], codes.shape[1]
        linking, others = np.flatnonzero(links), np.flatnonzero(~links)
        both = np.hstack([registered[linking], codes[linking]])
        of, first = row_groups(both)
        weight = np.bincount(of[:people], minlength=len(first)).astype(np.int64)
        own = of[people:]
        present = np.bincount(own, minlength=len(first))
        if (present > weight).any():
            lacking = int(np.maximum(present - weight, 0).sum())
            raise ValueError(f"the registration list lacks {lacking} of the people of the table")
        axes = np.concatenate([linking, others])
        points = np.ascontiguousarray(both[:, first].T)
        in_order = np.zeros((max(len(linking), 1), len(first)), np.int32)
        for axis in range(len(linking)):
            in_order[axis] = np.argsort(points[:, axis], kind="stable")
        position, first_leaf = side_by_side([domains[axis] for axis in axes])
        registered_points = Points(
            codes=points,
            weight=weight,
            begin=np.append(0, np.cumsum(present)).astype(np.int64),
            record=np.argsort(own, kind="stable").astype(np.int64),
            loose=np.ascontiguousarray(codes[others].T).reshape(records, len(others)),
            column=column,
            values=guard.values,
            position=position,
            first_leaf=first_leaf,
        )
        return cls(registered_points, guard.limits, axes, in_order)

    def cut(
        self, shares: PointShares, runs: Sequence[Ints] | None = None, *, apart: float = 0.0, fine: int = 0
    ) -> Tree:
        """A tree over the points, or one for each of some sets of them: see `cut_kernels.cut_points`."""
        from sequester.methods.research.registration.cut_kernels import Aim, cut_points

        order, ends = self.sorted.copy(), np.array([0, self.sorted.shape[1]])
        if runs is not None:
            ends = np.cumsum([0, *map(len, runs)])
            run = np.full(order.shape[1], -1)
            run[np.concatenate(runs)] = np.repeat(np.arange(len(runs)), np.diff(ends))
            kept = [row[run[row] >= 0] for row in order]
            order = np.array([row[np.argsort(run[row], kind="stable")] for row in kept])
        column = self.points.column[self.points.column >= 0]
        usual = _MORE * np.bincount(column, minlength=len(shares.fresh)) / max(int(self.points.weight.sum()), 1)
        aim = Aim(self.limits, usual, apart, fine)
        nodes = cut_points(order, ends.astype(np.int64), self.points, shares, aim)
        return Tree(order[0].copy(), *nodes)

    def inside(self, tree: Tree, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
        """Pairs of point and box, for boxes given as (boxes, attributes); by box."""
        from sequester.methods.research.registration.point_kernels import locate

        links = self.axes[: self.points.codes.shape[1]]
        sides = (np.ascontiguousarray(side[:, links]) for side in (lo, hi))
        point, box = locate(tree, self.points.codes, *sides)
        return point, box
