"""What was published before, prepared for specializing the next table: counts, pasts, and the cuts of every release.

Classes of two releases are nested in every attribute when both are cuts of one taxonomy. Then the classes that one
person can be in, in both, form complete groups: rows of a group can be anybody's in it, and the rows that remain for
a target are the smaller of two counts (Fung et al., Theorems 4.2 to 4.4). `Cuts.nested` says whether that holds for
all releases and everything the next table can become. Where somebody left in between, the smaller count remains in
any case, and nothing is known about the rows of newcomers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import is_halved
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.specialize.bcf_kernels import Before

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class TaxonomyCuts:
    """Per earlier release and attribute, the published value that every code is in.

    lo, hi  codes of its ends, -1 where a code is in none; None where published values overlap: then it is no cut
    edges   per attribute that links and release, where published values begin and end
    nested  whether the values of all releases, and those of the taxonomies, are nested in every attribute that links
    """

    lo: tuple[tuple[Longs | None, ...], ...]
    hi: tuple[tuple[Longs | None, ...], ...]
    edges: tuple[tuple[Longs, ...], ...]
    nested: bool

    @classmethod
    def of(cls, history: History, domains: Sequence[Hierarchy]) -> TaxonomyCuts:
        """The cuts of all releases, and whether they are."""
        values = [
            [_distinct(release.lo[place], release.hi[place], domain.size) for place, domain in enumerate(domains)]
            for release in history.releases
        ]
        found = [
            [_cover(some, domain.size) for some, domain in zip(one, domains, strict=True)] for one in values
        ]  # fmt: skip
        edges = tuple(
            tuple(np.unique(np.concatenate([one[place][:, 0], one[place][:, 1] + 1])) for one in values if links)
            for place, links in enumerate(history.links.tolist())
        )
        nested = all(
            all(_fits(one[place], domain) for one in values) and _agree([one[place] for one in found])
            for place, domain in enumerate(domains)
            if history.links[place]
        )
        lo = tuple(tuple(None if cover is None else cover[0] for cover in one) for one in found)
        hi = tuple(tuple(None if cover is None else cover[1] for cover in one) for one in found)
        return cls(lo, hi, edges, nested)

    def branches(self, release: int, attribute: int, first: int, starts: Longs, last: int) -> Ints | None:
        """Which children of a value lie in one value of a release; None where all of them do, as they did before."""
        lo, hi = self.lo[release][attribute], self.hi[release][attribute]
        assert lo is not None
        assert hi is not None
        if hi[first] >= last:
            return None
        ends = np.append(starts[1:] - 1, last)
        label = np.where(hi[starts] >= ends, lo[starts], starts)
        return np.unique(label, return_inverse=True)[1].astype(np.int32).ravel()


def _distinct(lo: Ints, hi: Ints, size: int) -> Longs:
    """(values, 2) the published values of one attribute."""
    return np.column_stack(np.divmod(np.unique(lo.astype(np.int64) * size + hi), size))


def _cover(values: Longs, size: int) -> tuple[Longs, Longs] | None:
    """Per code the ends of the value it is in, -1 where it is in none; None where values overlap."""
    if (values[1:, 0] <= values[:-1, 1]).any():
        return None
    first, last = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    length = values[:, 1] - values[:, 0] + 1
    inside = np.repeat(values[:, 0] - np.append(0, np.cumsum(length)[:-1]), length) + np.arange(int(length.sum()))
    first[inside], last[inside] = np.repeat(values[:, 0], length), np.repeat(values[:, 1], length)
    return first, last


def _fits(values: Longs, domain: Hierarchy) -> bool:
    """Whether values are nested with the groups of the taxonomy: inside one, or several whole ones."""
    if is_halved(domain):
        return True  # cut at the edges of earlier releases first
    lo, hi = values.T
    for starts in domain.starts:
        ends = np.append(starts[1:], domain.size)
        one, other = (np.searchsorted(starts, side, side="right") - 1 for side in (lo, hi))
        if ((one != other) & ((starts[one] != lo) | (ends[other] != hi + 1))).any():
            return False
    return True


def _agree(covers: Sequence[tuple[Longs, Longs] | None]) -> bool:
    """Whether all are cuts, and the values of every two of them are nested."""
    cuts = [cover for cover in covers if cover is not None]
    return len(cuts) == len(covers) and not any(_crosses(*pair) for pair in combinations(cuts, 2))


def _crosses(one: tuple[Longs, Longs], other: tuple[Longs, Longs]) -> bool:
    """Whether a value of one cut begins inside a value of the other and ends behind it, or the other way round."""
    lo, hi = one
    first, last = other
    inside = (lo >= 0) & (first >= 0)
    return bool((inside & (((first < lo) & (last < hi)) | ((first > lo) & (last > hi)))).any())


def before_of(past: Past, cuts: TaxonomyCuts, views: Sequence[int], *, remembered: bool) -> Before:
    """Everything published before over these histories; nothing at all unless it is to be `remembered`."""
    history = past.first
    trajectories = history.trajectories
    widths = [len(past.histories[view].values) for view in views]
    first = np.cumsum([0, *widths]).astype(np.int64)
    if not remembered or trajectories is None:
        return Before(
            path=np.full((1, 0), -1, np.int64),
            table=np.zeros((0, int(first[-1])), np.int64),
            first=first,
            joins=np.zeros(0, np.bool_),
            pair=np.zeros((0, 0), np.int64),
            alone=np.zeros((0, int(first[-1])), np.int64),
            start=np.zeros(1, np.int64),
        )
    releases = len(history)
    start = np.cumsum([0, *(len(release) for release in history.releases)]).astype(np.int64)
    path = np.where(trajectories.path >= 0, trajectories.path + start[:-1], -1).astype(np.int64)
    tables = [
        np.concatenate([release.counts for release in past.histories[view].releases]).reshape(-1, width)
        for view, width in zip(views, widths, strict=True)
    ]
    here = np.zeros(len(history.people), np.bool_)
    here[past.person] = True
    members = [release.member for release in history.releases]
    joins = np.zeros(releases, np.bool_)
    pair = np.full((releases, releases), -1, np.int64)
    rows: list[Longs] = []
    count = 0
    for number, member in enumerate(members):
        assert member is not None
        joins[number] = cuts.nested and not (~here & (member >= 0)).any()
    for one, other in combinations(range(releases), 2):
        was, then = members[one], members[other]
        assert was is not None
        assert then is not None
        if cuts.nested and not ((was >= 0) & (then < 0)).any() and ((was < 0) & (then >= 0)).any():
            pair[one, other] = count
            rows.append(_alone(past, cuts, views, one, other))
            count += len(rows[-1])
    return Before(
        path=np.vstack([path, np.full((1, releases), -1, np.int64)]),
        table=np.ascontiguousarray(np.hstack([np.zeros((int(start[-1]), 0), np.int64), *tables])),
        first=first,
        joins=joins,
        pair=pair,
        alone=np.concatenate(rows) if rows else np.zeros((0, int(first[-1])), np.int64),
        start=start,
    )


def _alone(past: Past, cuts: TaxonomyCuts, views: Sequence[int], one: int, other: int) -> Longs:
    """(classes of the later release, values) rows that can be of somebody who joined between two earlier releases."""
    history = past.first
    later = history.releases[other]
    sides = []
    for place in np.flatnonzero(history.links).tolist():
        lo, hi = cuts.lo[one][place], cuts.hi[one][place]
        assert lo is not None
        assert hi is not None
        sides.append(np.where(hi[later.lo[place]] >= later.hi[place], lo[later.lo[place]], later.lo[place]))
    key = np.column_stack(sides) if sides else np.zeros((len(later), 1), np.int64)
    group = np.unique(key, axis=0, return_inverse=True)[1].ravel()
    was, then = history.releases[one].member, later.member
    assert was is not None
    assert then is not None
    new = np.flatnonzero((was < 0) & (then >= 0))
    found = []
    for view in views:
        own = past.histories[view]
        assert own.value is not None
        counts = np.zeros((int(group.max(initial=-1)) + 1, len(own.values)), np.int64)
        np.add.at(counts, (group[then[new]], own.value[new]), 1)
        found.append(np.minimum(own.releases[other].counts, counts[group]))
    return np.hstack([np.zeros((len(later), 0), np.int64), *found])


def limits_of(past: Past, guard: ClassGuard, views: Sequence[int]) -> tuple[Limits, Mask]:
    """The criteria of the guard over the values of these histories, and per view whether there are any.

    What compares with the whole table, as closeness does, is left out: nothing is excluded from that.
    """
    own, limits = guard.limits, Limits.only(guard.limits.k, [len(past.histories[view].values) for view in views])
    guarded = {(view.name, view.element): column for column, view in enumerate(guard.views)}
    for place, view in enumerate(views):
        inside = slice(int(limits.first[place]), int(limits.first[place + 1]))
        numerator, denominator = limits.numerator[inside], limits.denominator[inside]
        history = past.histories[view]
        bounds = history.bounds
        if any(bound < 1 for bound in {id(bound): bound for bound in bounds}.values()):
            numerator[:] = [bound.numerator for bound in bounds]
            denominator[:] = [bound.denominator if bound < 1 else 0 for bound in bounds]
        match = guarded.get((history.attribute, history.element))
        if match is None:
            continue
        codes, of = np.unique(past.value[view], return_index=True)
        theirs = guard.values[of, match]
        numerator[codes], denominator[codes] = own.numerator[theirs], own.denominator[theirs]
        limits.take_view(place, own, match)
    return limits, limits.demanding()


def blocked_by(past: Past, domains: Sequence[Hierarchy]) -> tuple[Mask, ...] | None:
    """Per attribute and code, whether a value may not begin there: it would cut what is known of somebody who left."""
    if not past.retained.any():
        return None
    release, last = past.first.releases[-1], past.last_class()[past.retained]
    found = []
    for domain, lo, hi in zip(domains, release.lo, release.hi, strict=True):
        change = np.zeros(domain.size + 1, np.int64)
        np.add.at(change, lo[last] + 1, 1)
        np.add.at(change, hi[last] + 1, -1)
        found.append(np.cumsum(change)[: domain.size] > 0)
    return tuple(found)
