"""Groups for values that change, diluted by a registration list: absent people share the rows of a class.

Wong et al. (section 8) add people who are registered but not in the table to the groups. Whoever attacks then knows who
may be in a release and not who is: the rows of a class belong to any of the N registered people inside its box, and a
person is linked to a value with n_s/N instead of n_s/n, whether she is in the table or not. That holds for boxes which
share no registered person, in the attributes by which people are found (`links`); so the space of these attributes is
cut into regions, and a box stays inside its region. It is no larger than it has to be: tight around its records, and
widened only to reach the registered people that are needed.

The price is paid by everybody inside, present or not: each point of the list has what is left of its survival, and the
worst of a box decides for each value in it. Neither larger nor smaller boxes are safer as such, so every node of a tree
of cuts is judged on its own, and a dynamic program takes the cheapest ones. A node is published with all its records,
or none of them: to leave out those with a value that is too frequent would tell who has it. A record left out counts as
`WORTH` fully generalized ones, so larger nodes are taken where that spares records; and around them cuts are tried that
part records from those who can hardly bear their values.

People who share all linking attributes are in one region, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.guarantees.lifetime import DOUBT, Strategy, survival
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.classes import Classes
from sequester.methods.lifetime.group import WORTH, changing_values, nobody_fits
from sequester.methods.lifetime.region_tree_kernels import Crowd, Left, Tree
from sequester.methods.lifetime.survivals import protected_columns

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Made = tuple[Ints, Ints, Ints]
"""Per record its class, -1 for none, and the boxes (classes, attributes)."""

# A value may be a little more frequent in a part than everywhere.
_MORE = 1.02
# Cuts are tried again around classes that lose so many times as much as others: among so many times k records, and it
# counts so much to part records from points that can hardly bear their values.
_MUCH, _WIDE, _APART = 2.0, 64, 1.0
_ROOT = np.zeros(1, np.int64)
# To find points, they are in runs of so many.
_FEW = 8
_ATTEMPTS = 4
_CHUNK = 1 << 11


def regions(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    lifetime: Lifetime,
    registered: Ints,
) -> Classes:
    """Classes of the next table that keep the lifetime guarantee, given who is known to be registered.

    `codes` are (attributes, records), `registered` (attributes, people) of everybody who may be in the table: at least
    the people of the records. Attributes that change over time (`links` is False) are not looked at in it; in those,
    boxes are tight around their records. The list is taken to be the one of all releases so far. People who can be in
    no class have the class -1. Raises GuaranteeError when nobody can be published.
    """
    changing = changing_values(past)
    if past.retained.any() or guard.known:
        raise ValueError("regions are made of records that are there, and without a population")
    strategy, histories = Strategy.of(lifetime), changing.histories
    values = Values.of(histories, changing.value)
    registry = Registry.of(codes, domains, guard, values.column, links=histories[0].links, registered=registered)
    member = np.full(codes.shape[1], -1, np.int32)
    lo = hi = np.zeros((0, len(codes)), np.int32)
    if codes.shape[1]:
        member, lo, hi = _within_shares(histories, values, registry, strategy)
    if (member < 0).all():
        raise nobody_fits()
    return Classes(member, np.ascontiguousarray(lo.T), np.ascontiguousarray(hi.T))


def _within_shares(histories: Sequence[History], values: Values, registry: Registry, strategy: Strategy) -> Made:
    """Classes within what is left of everybody, and exactly so."""
    earlier = Earlier.of(histories, values, registry)
    left, survivals = earlier.left(values, strategy)
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            left = left._replace(share=left.share - 4 * DOUBT, fresh=left.fresh - 4 * DOUBT)
        made = registry.classes(left)
        entry, column, reached = earlier.broken(made, left, survivals, values, registry, strategy)
        if not len(reached):
            return made
        # So near to the limit that only whole numbers could tell: from now on the share is out of the question.
        known = entry >= 0
        np.minimum.at(left.share, entry[known], reached[known] - 4 * DOUBT)
        np.minimum.at(left.fresh, column[~known], reached[~known] - 4 * DOUBT)
    raise AssertionError("regions within their shares exceed what was promised")


@dataclass(frozen=True, eq=False)
class Values:
    """The protected values of the next table, of all views, as columns.

    place   per view and value its column, -1 for those that need no protection or that nobody has
    column  (records, views) of the values of the records
    bounds  per column, the bound on single classes
    """

    place: tuple[Ints, ...]
    column: Ints
    bounds: Floats

    @classmethod
    def of(cls, histories: Sequence[History], values: Sequence[Ints]) -> Values:
        chosen, places = protected_columns(histories, values)
        pairs = zip(histories, chosen, strict=True)
        bounds = [float(history.bounds[code]) for history, which in pairs for code in which]
        column = np.column_stack([place[value] for place, value in zip(places, values, strict=True)])
        return cls(tuple(places), np.ascontiguousarray(column, np.int32), np.array(bounds, np.float64))

    def count(self, member: Ints, classes: int) -> tuple[Longs, Ints, Longs]:
        """Per class where its columns begin in the other two: columns, and how many records have their values."""
        columns = max(len(self.bounds), 1)
        flat = [
            member[there].astype(np.int64) * columns + column[there]
            for column in self.column.T
            for there in [np.flatnonzero((column >= 0) & (member >= 0))]
        ]
        keys, many = np.unique(np.concatenate(flat), return_counts=True)
        first = np.searchsorted(keys, np.arange(classes + 1) * columns)
        return first.astype(np.int64), (keys % columns).astype(np.int32), many.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Registry:
    """The registered people by their points in the linking attributes, and the records at each.

    axes    the attributes in the order of the crowd's: those that link, and the others
    sorted  (attributes that link, points) the points by each attribute
    """

    crowd: Crowd
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
        crowd = Crowd(
            points=points,
            weight=weight,
            begin=np.append(0, np.cumsum(present)).astype(np.int64),
            record=np.argsort(own, kind="stable").astype(np.int64),
            loose=np.ascontiguousarray(codes[others].T).reshape(records, len(others)),
            column=column,
            values=guard.values,
            position=position,
            first_leaf=first_leaf,
        )
        return cls(crowd, guard.limits, axes, in_order)

    def cut(self, left: Left, runs: Sequence[Ints] | None = None, *, apart: float = 0.0, fine: int = 0) -> Tree:
        """A tree over the points, or one for each of some sets of them: see `region_tree_kernels.cut_points`."""
        from sequester.methods.lifetime import region_tree_kernels as kernels

        order, ends = self.sorted.copy(), np.array([0, self.sorted.shape[1]])
        if runs is not None:
            ends = np.cumsum([0, *map(len, runs)])
            run = np.full(order.shape[1], -1)
            run[np.concatenate(runs)] = np.repeat(np.arange(len(runs)), np.diff(ends))
            kept = [row[run[row] >= 0] for row in order]
            order = np.array([row[np.argsort(run[row], kind="stable")] for row in kept])
        column = self.crowd.column[self.crowd.column >= 0]
        usual = _MORE * np.bincount(column, minlength=len(left.fresh)) / max(int(self.crowd.weight.sum()), 1)
        nodes = kernels.cut_points(order, ends.astype(np.int64), self.crowd, left, self.limits, usual, apart, fine)
        return Tree(order[0].copy(), *nodes)

    def classes(self, left: Left) -> Made:
        """The cheapest classes within these shares."""
        whole = _Forest.of(self, left, self.cut(left))
        roots = whole.expensive(_WIDE * self.limits.k)
        if not len(roots):
            return self._together([whole.publish(whole.chosen(_ROOT)[0])])
        runs = [whole.tree.line[whole.tree.first[root] : whole.tree.last[root]] for root in roots]
        other = _Forest.of(self, left, self.cut(left, runs, apart=_APART))
        better = other.best[: len(roots)] < whole.best[roots]
        whole.give(roots[better], other.best[: len(roots)][better])
        found, given, _ = whole.chosen(_ROOT)
        again, _, _ = other.chosen(np.flatnonzero(np.isin(roots, given)))
        return self._together([whole.publish(found), other.publish(again)])

    def _together(self, made: Sequence[Made]) -> Made:
        """Classes of different records, numbered through, with the attributes as they were given."""
        member, classes = np.full(self.crowd.record.size, -1, np.int32), 0
        for own, lo, _ in made:
            member[own >= 0] = own[own >= 0] + classes
            classes += len(lo)
        back = np.argsort(self.axes)
        lo, hi = (np.concatenate([boxes[side] for boxes in made])[:, back] for side in (1, 2))
        return member, lo, hi

    def inside(self, tree: Tree, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
        """Pairs of point and box, for boxes given as (boxes, attributes); by box."""
        from sequester.methods.lifetime import region_tree_kernels as kernels

        links = self.axes[: self.crowd.points.shape[1]]
        sides = (np.ascontiguousarray(side[:, links]) for side in (lo, hi))
        point, box = kernels.locate(tree, self.crowd.points, *sides)
        return point, box


@dataclass(frozen=True, eq=False)
class _Forest:
    """What the nodes of trees cost: as one class each (`own`), as found elsewhere (`given`), and at best."""

    registry: Registry
    left: Left
    tree: Tree
    own: Floats
    given: Floats
    best: Floats

    @classmethod
    def of(cls, registry: Registry, left: Left, tree: Tree) -> _Forest:
        nodes = len(tree.first)
        forest = cls(registry, left, tree, np.full(nodes, np.nan), np.full(nodes, np.inf), np.full(nodes, np.inf))
        forest.give(np.zeros(0, np.int64), np.zeros(0))
        return forest

    def _judge(self, wanted: Longs) -> tuple[Floats, Ints, Ints, Ints]:
        from sequester.methods.lifetime import region_kernels as kernels

        found: tuple[Floats, Ints, Ints, Ints] = kernels.judge(
            self.tree, self.registry.crowd, self.left, self.registry.limits, WORTH, self.given, self.own, wanted
        )
        return found

    def give(self, nodes: Longs, loss: Floats) -> None:
        """These nodes can be had for less."""
        self.given[nodes] = loss
        self.best[:] = self._judge(np.zeros(0, np.int64))[0]

    def chosen(self, roots: Longs) -> tuple[Longs, Longs, Longs]:
        """The nodes under these that are classes at best, those that are given, and those that are left out."""
        classes, given, lost = ([np.zeros(0, np.int64)] for _ in range(3))
        while len(roots):
            child, best = self.tree.child[roots], self.best[roots]
            parts = np.where(child >= 0, self.best[child] + self.best[child + (child >= 0)], np.inf)
            split = parts == best
            elsewhere = ~split & (self.given[roots] == best)
            here = ~split & ~elsewhere & (self.own[roots] == best)
            given.append(roots[elsewhere])
            classes.append(roots[here])
            lost.append(roots[~split & ~elsewhere & ~here])
            roots = np.concatenate([child[split], child[split] + 1])
        return np.concatenate(classes), np.concatenate(given), np.concatenate(lost)

    def publish(self, nodes: Longs) -> Made:
        """These nodes as classes."""
        if not len(nodes):
            boxes = np.zeros((0, len(self.registry.axes)), np.int32)
            return np.full(self.registry.crowd.record.size, -1, np.int32), boxes, boxes
        return self._judge(nodes)[1:]

    def expensive(self, size: int) -> Longs:
        """Nodes of at least so many records, none inside another, around classes that lose much more than others."""
        tree, crowd = self.tree, self.registry.crowd
        records = np.append(0, np.cumsum(np.diff(crowd.begin)[tree.line]))
        many = records[tree.last] - records[tree.first]
        inner = np.flatnonzero(tree.child >= 0)
        parent = np.full(len(many), -1)
        parent[tree.child[inner]] = parent[tree.child[inner] + 1] = inner
        classes, _, lost = self.chosen(_ROOT)
        found = np.concatenate([classes, lost])
        found = found[self.best[found] > _MUCH * many[found] * self.best[0] / max(many[0], 1)]
        while (small := (many[found] < size) & (parent[found] >= 0)).any():
            found = np.unique(np.where(small, parent[found], found))
        found = found[np.lexsort((-tree.last[found], tree.first[found]))]
        reached = np.maximum.accumulate(np.append(-1, tree.last[found]))[:-1]
        outermost: Longs = found[(tree.last[found] > reached) & (tree.child[found] >= 0)]
        return outermost


@dataclass(frozen=True, eq=False)
class Earlier:
    """What earlier releases say about every point; boxes are numbered through all releases.

    start, where   in release t point p is in the boxes where[start[t, p]:start[t, p + 1]]
    ends           box b has the values column[ends[b]:ends[b + 1]]; `linked` rows each, of `among` people
    tree           to find points
    """

    start: Longs
    where: Longs
    ends: Longs
    column: Ints
    linked: Longs
    among: Longs
    tree: Tree

    @classmethod
    def of(cls, histories: Sequence[History], values: Values, registry: Registry) -> Earlier:
        weight = registry.crowd.weight
        nothing = Left(
            np.zeros(len(weight) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.ones(len(values.bounds))
        )
        tree = registry.cut(nothing, fine=_FEW)
        start, where, among = (
            [np.zeros((0, len(weight) + 1), np.int64)],
            [np.zeros(0, np.int64)],
            [np.zeros(0, np.int64)],
        )
        number, column, linked = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        boxes = found = 0
        for release, published in enumerate(histories[0].releases):
            point, box = registry.inside(tree, published.lo.T, published.hi.T)
            around = np.bincount(point, minlength=len(weight))
            inside = np.bincount(box, weights=weight[point], minlength=len(published)).astype(np.int64)
            shared = np.zeros(len(published), np.bool_)
            shared[box[around[point] > 1]] = True
            # Where boxes share people, how many there are says too little: the rows of the class are sure.
            rows = np.maximum(published.size, 1)
            among.append(np.where(shared, rows, np.maximum(inside, rows)))
            start.append((found + np.append(0, np.cumsum(around)))[None, :])
            where.append(boxes + box[np.argsort(point, kind="stable")].astype(np.int64))
            for place, history in zip(values.place, histories, strict=True):
                counts = history.releases[release].counts
                which, code = np.nonzero(counts)
                kept = place[code] >= 0
                number.append(boxes + which[kept])
                column.append(place[code[kept]])
                linked.append(counts[which[kept], code[kept]])
            boxes += len(published)
            found += len(point)
        by_box = np.concatenate(number)
        order = np.argsort(by_box, kind="stable")
        return cls(
            start=np.concatenate(start),
            where=np.concatenate(where),
            ends=np.append(0, np.cumsum(np.bincount(by_box, minlength=boxes))).astype(np.int64),
            column=np.concatenate(column)[order],
            linked=np.concatenate(linked)[order].astype(np.int64),
            among=np.concatenate(among),
            tree=tree,
        )

    def left(self, values: Values, strategy: Strategy) -> tuple[Left, Floats]:
        """What is left of every point, for the values it was linked to, and the survival of these entries."""
        from sequester.methods.lifetime import region_left_kernels as kernels

        points, columns = self.start.shape[1] - 1, len(values.bounds)
        box = np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))
        spent = self.linked / self.among[box]
        # No strategy allows more than 1/l.
        bounded = (values.bounds * float(strategy.l) < 1).any()
        many, entries, allowed, survivals = [np.zeros(1, np.int64)], [], [], []
        for begin in range(0, points, _CHUNK):
            count, entry, kept, linked = kernels.remain(
                begin, min(begin + _CHUNK, points), self.start, self.where, self.ends, self.column, spent, columns
            )
            many.append(count)
            entries.append(entry)
            survivals.append(kept)
            share = strategy.shares(kept, linked)
            allowed.append(np.minimum(share, values.bounds[entry]) if bounded else share)
        fresh = np.minimum(strategy.shares(np.ones(columns), np.zeros(columns, np.int32)), values.bounds)
        left = Left(np.cumsum(np.concatenate(many)), np.concatenate(entries), np.concatenate(allowed), fresh)
        return left, np.concatenate(survivals)

    def broken(
        self, made: Made, left: Left, survivals: Floats, values: Values, registry: Registry, strategy: Strategy
    ) -> tuple[Longs, Longs, Floats]:
        """What in these classes exceeds the promise: entries (-1: linked for the first time), columns, and shares.

        Near the limit whole numbers decide.
        """
        from sequester.methods.lifetime import region_left_kernels as kernels

        member, lo, hi = made
        point, box = registry.inside(self.tree, lo, hi)
        if len(np.unique(point)) < len(point):
            raise AssertionError("regions share registered people")
        among = np.bincount(box, weights=registry.crowd.weight[point], minlength=len(lo)).astype(np.int64)
        first, column, linked = values.count(member, len(lo))
        points, places, entries = kernels.near_limit(
            point, box, first, column, linked, among, left.ends, left.column, survivals, len(values.bounds),
            float(strategy.floor) + 10 * DOUBT,
        )  # fmt: skip
        size = among[np.repeat(np.arange(len(lo)), np.diff(first))[places]]
        now, columns = linked[places], column[places].astype(np.int64)
        keeps = now * strategy.l.numerator <= size * strategy.l.denominator
        again = np.flatnonzero(entries >= 0)
        before, sizes = self.factors(points[again], columns[again])
        cases = np.column_stack([before, now[again], sizes, size[again]])
        distinct, which = np.unique(cases, axis=0, return_inverse=True)
        half = cases.shape[1] // 2
        decided = [survival(case[:half], case[half:]) >= strategy.floor for case in distinct.tolist()]
        keeps[again] = np.array(decided, np.bool_)[which.reshape(-1)]
        return entries[~keeps], columns[~keeps], now[~keeps] / size[~keeps]

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
