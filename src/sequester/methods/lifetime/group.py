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

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError, PolicyError
from sequester.guarantees.lifetime import DOUBT, Strategy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.classes import Classes
from sequester.methods.lifetime.neighborhoods import bearable, neighborhoods, under_k
from sequester.methods.lifetime.survivals import Survivals
from sequester.methods.mondrian.cut import mondrian

if TYPE_CHECKING:
    from sequester.policy.model import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WORTH = 100.0
"""Keeping one person in may cost as much detail as so many fully generalized records, not more."""

# Of a run that is left out most people find a place in other groups.
_LATER = 3.0
# People are put aside when they can bear less of the values in a usual group than this.
_SPOILT = 0.3
_FARTHEST = 1000
_LONG = 800
_SCAN = 64
# At first, a place in another group may cost as much as so many fully generalized records.
_NEAR = 3.0
_LOOKS = 5e7
_ATTEMPTS = 4
_CHUNK = 1 << 14
# Neighborhoods have so many times the records that a usual class needs.
_NEIGHBORS = 4


def group(past: Past, codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, *, lifetime: Lifetime) -> Classes:
    """Classes of the next table, given as codes (attributes, records), for all views whose values change.

    They keep the lifetime guarantee. People of neighborhoods that can be in no class have the class -1. Raises
    GuaranteeError when nobody can be published.
    """
    if past.retained.any() or guard.known:
        raise ValueError("groups are made of records that are there, and without a population")
    strategy, survivals, share = prospects(past, lifetime)
    table = _Table(codes, domains, guard, survivals, share)
    cell = bearable(
        neighborhoods(codes, domains, size=table.neighbors()), lambda node, count: table.safe(node, count, strategy)
    )
    if (cell < 0).all():
        raise nobody_fits()
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            share -= 4 * DOUBT
        member = replace(table, share=share).within(cell)
        rows, columns, reached, _ = broken(survivals, strategy, member)
        if not len(rows):
            break
        # So near to the limit that only whole numbers could tell: from now on the share is out of the question.
        np.minimum.at(share, (rows, columns), reached - 4 * DOUBT)
    if len(rows):
        raise AssertionError("groups within their shares exceed what was promised")
    return _classes(member, codes)


def prospects(past: Past, lifetime: Lifetime) -> tuple[Strategy, Survivals, Floats]:
    """The strategy, what is left of everybody, and the largest share (kinds of people, values) that allows now."""
    changing, strategy = changing_values(past), Strategy.of(lifetime)
    survivals = Survivals.of(changing.histories, past.person, changing.value)
    share = strategy.shares(survivals.left, survivals.linked)
    return strategy, survivals, np.ascontiguousarray(np.minimum(share, survivals.bounds))


def changing_values(past: Past) -> Past:
    """The same past, of the views whose values change."""
    found = past.views(permanent=False)
    if not found.histories:
        raise PolicyError("a lifetime guarantee is about values that change: no sensitive attribute is transient")
    return found


def nobody_fits() -> GuaranteeError:
    """Why no class was made at all."""
    return GuaranteeError(
        "nobody can be published: the people who are protected need larger classes, or more different values, than "
        "the table has. Promise a lower l or fewer releases, or call frequent values ordinary. Nothing was "
        "published.",
        guarantee="lifetime",
    )


def broken(
    survivals: Survivals, strategy: Strategy, member: Ints, counted: Longs | None = None
) -> tuple[Longs, Longs, Floats, Longs]:
    """Rows and columns of the survivals that do not keep the promise in these classes, the shares they have, and where.

    `counted` is 1 for records whose rows any of the class may have; by default for all.
    """
    classes, columns = int(member.max(initial=-1)) + 1, survivals.left.shape[1]
    kept = np.flatnonzero(member >= 0)
    weights = None if counted is None else counted[kept]
    size = np.bincount(member[kept], weights=weights, minlength=classes).astype(np.int64)
    counts = np.zeros((classes, columns), np.int64)
    for column in survivals.column.T:
        there = kept[column[kept] >= 0]
        flat = member[there].astype(np.int64) * columns + column[there]
        counts += np.bincount(flat, minlength=classes * columns).reshape(classes, columns)
    pairs = np.unique(survivals.row[kept].astype(np.int64) * max(classes, 1) + member[kept])
    rows, numbers = pairs // max(classes, 1), pairs % max(classes, 1)
    share = counts / np.maximum(size, 1)[:, None]
    found: list[tuple[Longs, Longs, Floats, Longs]] = []
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        spent = share[numbers[part]]
        after = survivals.left[rows[part]] * (1 - spent)
        place, column = np.nonzero((after < float(strategy.floor) + 10 * DOUBT) & (spent > 0))
        row, number = rows[part][place], numbers[part][place]
        keeps = survivals.keeps(strategy, row, column, linked=counts[number, column], among=size[number])
        found.append((row[~keeps], column[~keeps], share[number, column][~keeps], number[~keeps]))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class _Table:
    """The next table under shares: what the largest share of each value (columns) is for each kind of person (rows)."""

    codes: Ints
    domains: tuple[Hierarchy, ...]
    guard: ClassGuard
    survivals: Survivals
    share: Floats

    def neighbors(self) -> int:
        """How large neighborhoods are; looks at what people were linked to before, and not at what they have now."""
        people = np.bincount(self.survivals.row, minlength=len(self.share))
        usual = people @ self.share / max(len(self.survivals.row), 1)
        needs = 1 / max(float(np.median(usual)) if len(usual) else 1.0, 1 / _FARTHEST)
        return _NEIGHBORS * int(max(np.ceil(needs), self.guard.limits.k))

    def safe(self, node: Ints, count: int, strategy: Strategy) -> Mask:
        """Which of so many nodes, given per record, are safe as one class: by their counts and the worst history."""
        from sequester.methods.lifetime import group_kernels as kernels
        from sequester.methods.loops.tree import safe_classes

        size = np.bincount(node, minlength=count)
        order = np.argsort(node, kind="stable").astype(np.int64)
        least = kernels.lowest(self.share, self.survivals.row, order, np.append(0, np.cumsum(size)).astype(np.int64))
        many = self._count(node.astype(np.int64), self.survivals.column, self.share.shape[1], count)
        found: Mask = safe_classes(node.astype(np.int64), self.guard.values, count, self.guard.limits)
        found &= ((many == 0) | (many <= (least + DOUBT) * size[:, None])).all(axis=1)
        found[broken(self.survivals, strategy, node)[3]] = False
        return found

    def within(self, cell: Ints) -> Ints:
        """Per record its group: everybody with a cell has one; cells are safe by themselves."""
        member, whole = np.full(len(cell), -1, np.int32), np.zeros(len(cell), np.bool_)
        for last in (False, False, True):
            rest = np.flatnonzero((cell >= 0) & ~whole)
            found = self.only(rest).members() if len(rest) else np.zeros(0, np.int32)
            if (found >= 0).all():
                member[rest] = found
                break
            whole |= (cell >= 0) if last else np.isin(cell, cell[rest[found < 0]]) & (cell >= 0)
        member[whole] = cell[whole] + int(member.max(initial=-1)) + 1
        return member

    def only(self, rows: Longs) -> _Table:
        """The same of some of the records."""
        own = replace(self.survivals, row=self.survivals.row[rows], column=self.survivals.column[rows])
        guard = replace(self.guard, values=np.ascontiguousarray(self.guard.values[rows]))
        return replace(self, codes=np.ascontiguousarray(self.codes[:, rows]), guard=guard, survivals=own)

    def members(self) -> Ints:
        """Per record its group, -1 for none."""
        from sequester.methods.lifetime import group_kernels as kernels

        out = self.impossible()
        member = np.full(self.codes.shape[1], -1, np.int32)
        if out.all():
            return member
        order, starts, until = self._runs()
        # Everybody has a place in the order, so that near means near for those who are put aside, too.
        rank = np.empty(len(member), np.int64)
        rank[order] = np.arange(len(member))
        row = self.survivals.row
        order, starts, until = _without(out | self._difficult(out), order, starts, until)
        if len(order):
            units = np.arange(len(until), dtype=np.int64)
            least = kernels.lowest(self.share, row, order, starts)
            self._join(member, order, starts, least=least, place=units, until=until, worth=_LATER)
        if (member >= 0).any():
            self._place(member, rank, scan=_SCAN, join=False, most=_NEAR * len(self.domains))
        single = np.flatnonzero((member < 0) & ~out)
        if len(single):
            single = single[np.argsort(rank[single])]
            ends, own = np.arange(len(single) + 1, dtype=np.int64), row[single].astype(np.int64)
            self._join(member, single, ends, least=self.share, place=own, until=ends[1:], worth=WORTH)
        if (member < 0).any() and (member >= 0).any():
            self._borrow(member, rank)
        for scan, join in ((_SCAN, True), (len(member), False)):
            while (member < 0).any() and (join or (member >= 0).any()):
                if not self._place(member, rank, scan=scan, join=join):
                    break
        return member

    def impossible(self) -> Mask:
        """Records that cannot be in any class: by their own history, or as too many of one value for the whole table.

        Of too many the ones with the worst history go, and among equals some from everywhere.
        """
        row, share = self.survivals.row, self.share
        out = np.zeros(len(row), np.bool_)
        spread = (np.arange(len(row)) * 0.6180339887498949) % 1.0
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

    def _difficult(self, out: Mask) -> Mask:
        """People who would spoil most groups around them: for values that are common, their share is next to nothing.

        They are put aside, and into groups one by one. Where they are most of the people, nobody is.
        """
        row, inside = self.survivals.row, ~out
        reach, _ = self._sizes(len(row))
        counts = np.zeros(self.share.shape[1])
        for column in self.survivals.column.T:
            counts += np.bincount(column[inside & (column >= 0)], minlength=len(counts))
        often = np.minimum(counts * (reach / max(int(np.count_nonzero(inside)), 1)), 1.0)
        found = ((self.share + DOUBT) * reach < 1) @ often > _SPOILT
        difficult: Mask = found[row] & inside
        return difficult if 2 * np.count_nonzero(difficult) < np.count_nonzero(inside) else np.zeros_like(difficult)

    def _runs(self) -> tuple[Longs, Longs, Longs]:
        """The records in runs of neighbours, as small as k allows: their order, and where runs begin.

        First they are cut as if everybody had the share that most have, which makes good groups already where nobody is
        worse off, and then each of these is cut on under k alone: so the order has the groups, and their parts. Last is
        returned, per run, where the group that it is in ends.
        """
        from sequester.methods.mondrian import cut_kernels as kernels

        scale = kernels.Scale(*side_by_side(self.domains))
        limits, values = self._usual()
        whole = mondrian(self.codes, self.domains, replace(self.guard, limits=limits, values=values))
        order = np.argsort(whole.member, kind="stable").astype(np.int32)
        rows = np.ascontiguousarray(self.codes[:, order].T)
        only_k, nothing = under_k(limits.k), np.zeros((len(order), 0), np.int32)
        ends = np.append(0, np.cumsum(whole.size)).tolist()
        deck = kernels.Deck(rows, nothing, order)
        found = [
            kernels.cut_rows(deck, begin, end, 0, kernels.GAIN, scale, kernels.NOBODY, only_k)
            for begin, end in pairwise(ends)
        ]
        starts = np.append(np.sort(np.concatenate(found)), len(order)).astype(np.int64)
        runs = [len(part) for part in found]
        return order.astype(np.int64), starts, np.repeat(np.cumsum(runs), runs).astype(np.int64)

    def _usual(self) -> tuple[Limits, Ints]:
        """The static criteria with the shares that nine of ten people allow, or the table's own where that is more."""
        limits, row = self.guard.limits, self.survivals.row
        column, first = self.survivals.column, self.survivals.first
        tenth = len(row) // 10
        parts, codes, views = [], [], len(first) - 1
        offset = int(limits.first[-1])
        for view in range(views):
            start, stop = int(first[view]), int(first[view + 1])
            there = np.bincount(column[:, view][column[:, view] >= 0] - start, minlength=stop - start) / len(row)
            usual = np.array([np.partition(self.share[row, c], tenth)[tenth] for c in range(start, stop)])
            parts.append(np.append(np.maximum(usual, 1.02 * there), 1.0))
            codes.append(np.where(column[:, view] >= 0, column[:, view] - start, stop - start) + offset)
            offset += stop - start + 1
        share = np.concatenate(parts)
        whole = 1 << 30
        bounded = np.where(share < 1, whole, 0).astype(np.int64)
        nothing = np.zeros(views, np.int64)
        sizes = [len(part) for part in parts]
        extended = limits._replace(
            first=np.append(limits.first, limits.first[-1] + np.cumsum(sizes)).astype(np.int64),
            numerator=np.append(limits.numerator, (share * whole).astype(np.int64)),
            denominator=np.append(limits.denominator, bounded),
            distinct=np.append(limits.distinct, nothing),
            entropy=np.append(limits.entropy, np.zeros(views)),
            recursive_l=np.append(limits.recursive_l, nothing),
            recursive_numerator=np.append(limits.recursive_numerator, nothing),
            recursive_denominator=np.append(limits.recursive_denominator, nothing + 1),
            closeness=np.append(limits.closeness, np.full(views, -1.0)),
            distance=np.append(limits.distance, nothing),
            reference=np.append(limits.reference, np.zeros(len(share))),
            groups=np.hstack([limits.groups, np.zeros((len(limits.groups), len(share)), np.int32)]),
            heights=np.append(limits.heights, nothing),
        )
        flat = np.column_stack([self.guard.values, *codes]).astype(np.int32)
        return extended, np.ascontiguousarray(flat)

    def _join(
        self,
        member: Ints,
        order: Longs,
        starts: Longs,
        *,
        least: Floats,
        place: Longs,
        until: Longs,
        worth: float,
    ) -> None:
        """Join units to groups, numbered after those there are."""
        from sequester.methods.lifetime import group_kernels as kernels

        reach, longest = self._sizes(len(order))
        lo, hi = (side.T.copy() for side in _boxes(self.codes, order, starts))
        length = kernels.join_runs(
            order, starts, lo, hi, least, place, self.survivals.column, np.ones(len(member), np.int64),
            self.guard.values, self.guard.limits, *side_by_side(self.domains), until, reach, longest, worth,
        )  # fmt: skip
        number = np.cumsum(length > 0) - 1 + int(member.max(initial=-1)) + 1
        unit = np.where(length == 0, -1, number)
        member[order] = np.repeat(unit, np.diff(starts))

    def _sizes(self, records: int) -> tuple[int, int]:
        """How far groups are looked for: the size that nine of ten protected people need at least, and the most."""
        row, needs = self.survivals.row, [np.array([float(self.guard.limits.k)])]
        for column in self.survivals.column.T:
            there = np.flatnonzero(column >= 0)
            needs.append(1 / np.maximum(self.share[row[there], column[there]], 1 / _FARTHEST))
        usual = float(np.quantile(np.concatenate(needs), 0.9))
        reach = int(min(max(1.25 * usual, 2 * self.guard.limits.k), _FARTHEST))
        return reach, min(max(4 * reach, 8 * self.guard.limits.k, _LONG), max(records, 1))

    def _place(self, member: Ints, rank: Longs, *, scan: int, join: bool, most: float = np.inf) -> int:
        """Find groups for those who have none, or make some of them and others; returns how many have one now."""
        from sequester.methods.lifetime import group_kernels as kernels

        left = np.flatnonzero(member < 0)
        left = left[np.argsort(rank[left])]
        columns, before = max(self.share.shape[1], 1), len(left)
        if join:
            # Those who are left may join each other, too: each is a group of her own that is not safe yet.
            left = left[: max(int(_LOOKS / ((int(member.max()) + 1 + len(left)) * columns)), 1)]
        group_of = member.astype(np.int64)
        if join:
            group_of[left] = member.max() + 1 + np.arange(len(left))
        kept = np.flatnonzero(group_of >= 0)
        # Groups are numbered by where they are, so that neighbours in number are neighbours.
        _, inverse, size = np.unique(group_of[kept], return_inverse=True, return_counts=True)
        groups = len(size)
        middle = np.bincount(inverse, weights=rank[kept], minlength=groups) / size
        by_place = np.argsort(middle, kind="stable")
        renumber = np.empty(groups, np.int64)
        renumber[by_place] = np.arange(groups)
        group_of[kept], size = renumber[inverse], size[by_place].astype(np.int64)
        alone = np.full(groups, -1, np.int64)
        if join:
            alone[group_of[left]] = left
        counts = self._count(group_of, self.survivals.column, self.share.shape[1], groups)
        total = self._count(group_of, self.guard.values, int(self.guard.limits.first[-1]), groups)
        order = kept[np.argsort(group_of[kept], kind="stable")]
        starts = np.append(0, np.cumsum(size)).astype(np.int64)
        least = kernels.lowest(self.share, self.survivals.row, order, starts)
        lo, hi = (side.T.copy() for side in _boxes(self.codes, order, starts))
        near = np.searchsorted(middle[by_place], rank[left]).astype(np.int64)
        if scan > _SCAN:
            scan = int(min(groups, max(_SCAN, _LOOKS / (max(len(left), 1) * columns)))) + 1
        group_of[left] = -1
        kernels.place_left(
            left, near, group_of, alone, size, counts, least, total, lo, hi,
            self.codes, self.share, self.survivals.row, self.survivals.column, self.guard.values, self.guard.limits,
            *side_by_side(self.domains), scan, most, join, WORTH,
        )  # fmt: skip
        member[:] = group_of
        return before - int(np.count_nonzero(member < 0))

    def _borrow(self, member: Ints, rank: Longs) -> None:
        """Make groups for those who have none with neighbours whose groups can spare them."""
        from sequester.methods.lifetime import group_kernels as kernels

        left = np.flatnonzero(member < 0)
        kept = np.flatnonzero(member >= 0)
        present, group_of = np.unique(member[kept], return_inverse=True)
        groups, columns, flat = len(present), self.share.shape[1], int(self.guard.limits.first[-1])
        found = np.full(len(member), -1, np.int64)
        found[kept] = group_of
        span = int(min(len(member), 4 * self._sizes(len(member))[0]))
        left = left[np.argsort(rank[left])][: max(int(_LOOKS / (2 * span * max(columns, 1))), 1)]
        room = groups + len(left)
        size = np.bincount(group_of, minlength=room).astype(np.int64)
        order = kept[np.argsort(group_of, kind="stable")]
        least = np.ones((room, columns))
        starts = np.append(0, np.cumsum(size[:groups])).astype(np.int64)
        least[:groups] = kernels.lowest(self.share, self.survivals.row, order, starts)
        kernels.borrow(
            left, np.argsort(rank), rank, found, size,
            self._count(found, self.survivals.column, columns, room), least,
            self._count(found, self.guard.values, flat, room), self.share, self.survivals.row,
            self.survivals.column, self.guard.values, self.guard.limits, groups, span,
        )  # fmt: skip
        member[:] = found

    @staticmethod
    def _count(group_of: Longs, column: Ints, columns: int, groups: int) -> Longs:
        found = np.zeros(groups * columns, np.int64)
        for values in column.T:
            there = np.flatnonzero((group_of >= 0) & (values >= 0))
            found += np.bincount(group_of[there] * columns + values[there], minlength=groups * columns)
        return found.reshape(groups, columns)


def _boxes(codes: Ints, order: Longs, starts: Longs) -> tuple[Ints, Ints]:
    """(attributes, runs) the tight boxes of the records order[starts[run]:starts[run + 1]]."""
    sorted_codes = codes[:, order]
    lo, hi = (operate.reduceat(sorted_codes, starts[:-1], axis=1) for operate in (np.minimum, np.maximum))
    return np.ascontiguousarray(lo), np.ascontiguousarray(hi)


def _without(aside: Mask, order: Longs, starts: Longs, until: Longs) -> tuple[Longs, Longs, Longs]:
    """The runs without these records, and without those that are empty then."""
    kept = ~aside[order]
    size = np.add.reduceat(kept, starts[:-1])
    number = np.append(0, np.cumsum(size > 0))
    return order[kept], np.append(0, np.cumsum(size[size > 0])), number[until][size > 0]


def _classes(member: Ints, codes: Ints) -> Classes:
    """Groups numbered through, with tight boxes."""
    kept = np.flatnonzero(member >= 0)
    _, number = np.unique(member[kept], return_inverse=True)
    compact = np.full(len(member), -1, np.int32)
    compact[kept] = number
    order = kept[np.argsort(number, kind="stable")]
    return Classes(compact, *_boxes(codes, order, np.append(0, np.cumsum(np.bincount(number)))))
