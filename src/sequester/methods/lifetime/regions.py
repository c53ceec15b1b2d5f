"""Groups for values that change, diluted by a registration list: absent people share the rows of a class.

Wong et al. (section 8) add people who are registered but not in the table to the groups. Whoever attacks then knows who
may be in a release and not who is: the rows of a class belong to any of the N registered people inside its box, and a
person is linked to a value with n_s/N instead of n_s/n, whether she is in the table or not. That holds for boxes which
share no registered person, in the attributes by which people are found (`links`); so the space of these attributes is
cut into regions, and a box stays inside its region. It is no larger than it has to be: tight around its records, and
widened only to reach the registered people that are needed.

The price is paid by everybody inside, present or not: each point of the list has what is left of its survival, and the
worst of a box decides for each value in it. Neither larger nor smaller boxes are safer as such, so every node of a tree
of cuts is judged on its own, and the cheapest ones are taken. A node is published with all its records, or none of
them: to leave out those with a value that is too frequent would tell who has it. A record left out counts as `WORTH`
fully generalized ones, so larger nodes are taken where that spares records. Two trees are compared: one whose cuts
shorten boxes most, and one whose cuts also part records from those who can hardly bear their values.

People who share all linking attributes are in one region, always. Lists are taken to be short: everything that is
known of a point is kept for all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.lifetime import DOUBT, Strategy, survival
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.placing import WORTH
from sequester.methods.lifetime.promise import changing_values, nobody_fits
from sequester.methods.lifetime.survivals import protected_columns

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Regions are made so often before all shares are lowered by a hair; nearly always the first ones keep the promise.
_ATTEMPTS = 4
# A value may be a little more frequent in a part than everywhere, or nothing could be cut at all.
_MORE = 1.02
# Shares this near to what is allowed pass at first, and are decided in whole numbers afterwards.
_SLACK = 1e-10
# Boxes grow point by point in nodes of at most so many points, and in so many even steps in larger ones.
_MANY, _STEPS = 600, 16


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
    register = _Register.of(changing, codes, domains, guard, registered)
    if not codes.shape[1]:
        raise nobody_fits()
    releases, left, links = _what_is_left(histories, register)
    share = np.minimum(strategy.shares(left, links), register.bounds)
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            share = share - 4 * DOUBT
        made = _cheapest(register, share)
        exceeded = _exceeded(made, register, releases, left, links, strategy)
        if not exceeded:
            break
        # So near to the limit that only whole numbers could tell: from now on the share is out of the question.
        for points, column, too_much in exceeded:
            share[points, column] = np.minimum(share[points, column], too_much - 4 * DOUBT)
    else:
        raise AssertionError("regions within their shares exceed what was promised")
    if not made:
        raise nobody_fits()
    member = np.full(codes.shape[1], -1, np.int32)
    for number, region in enumerate(made):
        member[region.records] = number
    back = np.argsort(register.axes)
    lo, hi = (np.array(sides, np.int32)[:, back].T.copy() for sides in zip(*(one[1:] for one in made), strict=True))
    return Classes(member, lo, hi)


@dataclass(frozen=True, eq=False, repr=False)
class _Register:
    """Registered people by their points in the attributes that link, and the records of the next table.

    axes       the attributes: those that link first, then the others
    positions  per axis, where its codes lie
    points     (points, attributes that link), and `weight` people at each
    records    (records, axes) codes, and `at`, the point of each
    column     (records, views) of the protected values, -1 for others; `bounds` are on single classes, per column
    places     per view and value its column, -1 for none
    """

    axes: Longs
    positions: tuple[Floats, ...]
    points: Ints
    weight: Longs
    records: Ints
    at: Longs
    column: Ints
    bounds: Floats
    places: tuple[Ints, ...]
    guard: ClassGuard

    @classmethod
    def of(
        cls, changing: Past, codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, registered: Ints
    ) -> _Register:
        """The list beside the records; raises ValueError where it lacks somebody."""
        histories, people = changing.histories, registered.shape[1]
        chosen, places = protected_columns(histories, changing.value)
        links = histories[0].links
        linking = np.flatnonzero(links)
        both = np.hstack([registered[linking], codes[linking]])
        of, first = row_groups(both)
        weight = np.bincount(of[:people], minlength=len(first)).astype(np.int64)
        lacking = np.maximum(np.bincount(of[people:], minlength=len(first)) - weight, 0).sum()
        if lacking:
            raise ValueError(f"the registration list lacks {lacking} of the people of the table")
        axes = np.concatenate([linking, np.flatnonzero(~links)])
        bounds = [float(one.bounds[code]) for one, which in zip(histories, chosen, strict=True) for code in which]
        return cls(
            axes=axes,
            positions=tuple(domains[axis].position for axis in axes),
            points=np.ascontiguousarray(both[:, first].T),
            weight=weight,
            records=np.ascontiguousarray(codes[axes].T),
            at=of[people:],
            column=np.column_stack([place[value] for place, value in zip(places, changing.value, strict=True)]),
            bounds=np.array(bounds),
            places=tuple(places),
            guard=guard,
        )

    def inside(self, lo: Ints, hi: Ints) -> Longs:
        """The points inside a box, whose first sides are in the attributes that link."""
        width = self.points.shape[1]
        return np.flatnonzero(((self.points >= lo[:width]) & (self.points <= hi[:width])).all(axis=1))

    def counts(self, records: Longs) -> Longs:
        """How many of these records have the value of each column."""
        column = self.column[records]
        return np.bincount(column[column >= 0], minlength=len(self.bounds)).astype(np.int64)

    def are_safe(self, records: Longs, part: Mask | None = None) -> bool:
        """Whether records keep the static criteria as one class, or as two: a part of them, and the others."""
        from sequester.methods.loops.tree import safe_classes

        member = np.zeros(len(records), np.int64) if part is None else part.astype(np.int64)
        parts = 1 if part is None else 2
        return bool(safe_classes(member, self.guard.values[records], parts, self.guard.limits).all())

    def width(self, lo: Ints, hi: Ints) -> float:
        """The summed widths of a box."""
        sides = zip(self.positions, lo, hi, strict=True)
        return sum(min(float(position[high] - position[low]), 1.0) for position, low, high in sides)


class _Release(NamedTuple):
    """An earlier release: its boxes (boxes, attributes that link), `linked` rows with each value, `among` people."""

    lo: Ints
    hi: Ints
    linked: Longs
    among: Longs


def _what_is_left(histories: Sequence[History], register: _Register) -> tuple[list[_Release], Floats, Ints]:
    """What earlier releases say, and (points, columns) the survival and in how many releases there was a link.

    Of several boxes around a point the worst counts. Where boxes share people, how many there are says too little: the
    rows of the class are sure.
    """
    left = np.ones((len(register.points), len(register.bounds)))
    links = np.zeros(left.shape, np.int32)
    linking = register.axes[: register.points.shape[1]]
    releases = []
    for number, published in enumerate(histories[0].releases):
        lo, hi = published.lo[linking].T, published.hi[linking].T
        inside = [register.inside(*box) for box in zip(lo, hi, strict=True)]
        boxes_around = np.bincount(np.concatenate([np.zeros(0, np.int64), *inside]), minlength=len(left))
        people = [register.weight[one].sum() if (boxes_around[one] == 1).all() else 0 for one in inside]
        linked = np.zeros((len(published), left.shape[1]), np.int64)
        for place, history in zip(register.places, histories, strict=True):
            linked[:, place[place >= 0]] = history.releases[number].counts[:, place >= 0]
        release = _Release(lo, hi, linked, np.maximum(np.array(people, np.int64), np.maximum(published.size, 1)))
        worst = np.zeros_like(left)
        for points, share in zip(inside, linked / release.among[:, None], strict=True):
            worst[points] = np.maximum(worst[points], share)
        left *= 1 - worst
        links += worst > 0
        releases.append(release)
    return releases, left, links


class _Region(NamedTuple):
    """A class: its records, and its box over all axes."""

    records: Longs
    lo: Ints
    hi: Ints


def _exceeded(
    made: Sequence[_Region],
    register: _Register,
    releases: Sequence[_Release],
    left: Floats,
    links: Ints,
    strategy: Strategy,
) -> list[tuple[Longs, int, float]]:
    """What exceeds the promise: points, a column, and the share they have. Near the limit whole numbers decide."""
    found = []
    taken = np.zeros(len(left), np.bool_)
    for region in made:
        inside = register.inside(region.lo, region.hi)
        if taken[inside].any():
            raise AssertionError("regions share registered people")
        taken[inside] = True
        among, counts = int(register.weight[inside].sum()), register.counts(region.records)
        for column in np.flatnonzero(counts).tolist():
            linked = int(counts[column])
            near = inside[left[inside, column] * (1 - linked / among) < float(strategy.floor) + 10 * DOUBT]
            again = near[links[near, column] > 0]
            if len(again) < len(near) and linked * strategy.l.numerator > among * strategy.l.denominator:
                found.append((np.flatnonzero(links[:, column] == 0), column, linked / among))
            pasts = [_past_of(register.points[point], releases, column) for point in again]
            kept = {past: survival([*past[0], linked], [*past[1], among]) >= strategy.floor for past in set(pasts)}
            broken = again[[not kept[past] for past in pasts]] if pasts else again
            if len(broken):
                found.append((broken, column, linked / among))
    return found


def _past_of(point: Ints, releases: Sequence[_Release], column: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Per release, rows with the value and the people who share them, of the worst box around a point."""
    past = []
    for release in releases:
        boxes = np.flatnonzero(((release.lo <= point) & (point <= release.hi)).all(axis=1))
        if len(boxes):
            worst = boxes[np.argmax(release.linked[boxes, column] / release.among[boxes])]
            past.append((int(release.linked[worst, column]), int(release.among[worst])))
    return tuple(linked for linked, _ in past), tuple(among for _, among in past)


class _Node(NamedTuple):
    """Points that are next to each other and their records; `sound` as long as no value became too frequent."""

    points: Longs
    records: Longs
    sound: bool


def _cheapest(register: _Register, share: Floats) -> tuple[_Region, ...]:
    """The cheapest classes within these shares (points, columns), in either of two trees."""
    return min((_best_of_tree(register, share, apart=apart) for apart in (0.0, 1.0)), key=lambda made: made[0])[1]


def _best_of_tree(register: _Register, share: Floats, *, apart: float) -> tuple[float, tuple[_Region, ...]]:
    """The least loss of nodes of a tree of cuts, and these as classes.

    Loss is the summed widths of the boxes over their records; a record left out counts as `WORTH` fully generalized.
    """
    nodes = [_Node(np.arange(len(register.points)), np.arange(len(register.records)), sound=True)]
    first_child = []
    for node in nodes:
        parts = _cut(node, register, share, apart)
        first_child.append(len(nodes) if parts else 0)
        nodes += parts
    best: list[tuple[float, tuple[_Region, ...]]] = [(0.0, ())] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        node, child = nodes[number], first_child[number]
        if not len(node.records):
            continue
        best[number] = WORTH * len(register.axes) * len(node.records), ()
        if child:
            best[number] = best[child][0] + best[child + 1][0], best[child][1] + best[child + 1][1]
        codes = register.records[node.records]
        tight = _Region(node.records, codes.min(axis=0), codes.max(axis=0))
        if len(codes) * register.width(*tight[1:]) < best[number][0]:
            region = _grown(tight, node, register, share)
            loss = np.inf if region is None else len(codes) * register.width(*region[1:])
            if region is not None and loss < best[number][0]:
                best[number] = loss, (region,)
    return best[0]


def _cut(node: _Node, register: _Register, share: Floats, apart: float) -> list[_Node]:
    """The parts of a node, with k records each, at the best cut of all attributes; none where there is none.

    Best is what shortens the boxes around the records most and, where `apart` is positive, parts most of the records
    from points that can hardly bear their values. As long as there is a cut that leaves no value more frequent among
    the registered than is usual, or than what is left here bears on average, it is taken, and then any.
    """
    k, records, points = register.guard.limits.k, node.records, node.points
    if len(records) < max(2 * k, 2):
        return []
    weight = register.weight[points]
    usual = _MORE * register.counts(np.arange(len(register.records))) / register.weight.sum()
    allowed = np.maximum(weight @ share[points] / weight.sum(), usual)
    # How hard it is for a point to bear one more record with a value: 1 is as hard as it gets.
    burden = 1 / np.maximum(share[points] * weight.sum(), 1)
    counts, hurt = register.counts(records), burden.sum(axis=0)
    conflicts = float(counts @ hurt)
    found: list[tuple[float, int, int, bool]] = []
    for axis in range(register.points.shape[1]):
        position, code = register.positions[axis], register.records[records, axis]
        levels, size = np.unique(code, return_counts=True)
        below = np.cumsum(size)[:-1]
        possible = np.flatnonzero((below >= k) & (below <= len(records) - k))
        if not len(possible):
            continue
        # Codes between two records are shared out to both.
        until, below = (levels[possible] + levels[possible + 1]) // 2, below[possible]
        at, sides = position[levels], np.zeros((len(levels), len(counts)), np.int64)
        for column in register.column[records].T:
            np.add.at(sides, (np.searchsorted(levels, code[column >= 0]), column[column >= 0]), 1)
        under = np.cumsum(sides, axis=0)[possible]
        order = np.argsort(register.points[points, axis], kind="stable")
        last = np.searchsorted(register.points[points[order], axis], until, side="right") - 1
        people = np.cumsum(weight[order])[last][:, None]
        low, high = np.minimum(at[possible] - at[0], 1), np.minimum(at[-1] - at[possible + 1], 1)
        score = min(at[-1] - at[0], 1) - (below * low + (len(records) - below) * high) / len(records)
        if apart and conflicts:
            borne = np.cumsum(burden[order], axis=0)[last]
            together = (under * borne + (counts - under) * (hurt - borne)).sum(axis=1)
            score = score + apart * (conflicts - together) / conflicts
        sound = (under <= allowed * people) & (counts - under <= allowed * (weight.sum() - people))
        found += zip(score.tolist(), [axis] * len(until), until.tolist(), sound.all(axis=1).tolist(), strict=True)
    found.sort(key=lambda cut: -cut[0])
    sound_cuts = (
        cut for cut in found if cut[3] and register.are_safe(records, register.records[records, cut[1]] <= cut[2])
    )
    chosen = next(sound_cuts, None) if node.sound else None
    if chosen is None and not found:
        return []
    _, axis, until, _ = chosen or found[0]
    above, beyond = register.points[points, axis] > until, register.records[records, axis] > until
    return [
        _Node(points[~above], records[~beyond], chosen is not None),
        _Node(points[above], records[beyond], chosen is not None),
    ]


def _grown(tight: _Region, node: _Node, register: _Register, share: Floats) -> _Region | None:
    """The box of a node around all its records, as tight as is safe; None where none is.

    All or nobody: to leave out some of its records would tell their values. Every box is judged anew: nothing is
    assumed to stay safe when it grows.
    """
    if len(tight.records) < max(register.guard.limits.k, 1) or not register.are_safe(tight.records):
        return None
    counts, width = register.counts(tight.records), register.points.shape[1]
    used = np.flatnonzero(counts)
    counts, share = counts[used], share[node.points][:, used]
    points, weight = register.points[node.points], register.weight[node.points]

    def bear(lo: Ints, hi: Ints, *, at_best: bool = False) -> bool:
        """Whether the people in a box bear the values, or would if all of the node were in it."""
        inside = ((points >= lo[:width]) & (points <= hi[:width])).all(axis=1)
        people = weight.sum() if at_best else weight[inside].sum()
        return bool((counts <= (share[inside].min(axis=0) + _SLACK) * people).all())

    lo, hi = tight.lo.copy(), tight.hi.copy()
    if bear(lo, hi):
        return tight
    if len(points) > _MANY:
        for steps in range(_STEPS, 0, -1):
            lo[:width] -= (lo[:width] - points.min(axis=0)) // steps
            hi[:width] += (points.max(axis=0) - hi[:width]) // steps
            if bear(lo, hi):
                return _Region(tight.records, lo, hi)
        return None
    outside = ~(counts > (share + _SLACK) * weight.sum()).any(axis=1)
    outside &= ~((points >= lo[:width]) & (points <= hi[:width])).all(axis=1)
    while outside.any():
        some = np.flatnonzero(outside)
        wider = np.zeros(len(some))
        for axis in range(width):
            position, at = register.positions[axis], points[some, axis]
            wide = position[np.maximum(at, hi[axis])] - position[np.minimum(at, lo[axis])]
            wider += np.minimum(wide, 1) - min(position[hi[axis]] - position[lo[axis]], 1)
        nearest = some[np.argmin(wider)]
        outside[nearest] = False
        next_lo, next_hi = lo.copy(), hi.copy()
        next_lo[:width], next_hi[:width] = (
            np.minimum(lo[:width], points[nearest]),
            np.maximum(hi[:width], points[nearest]),
        )
        if not bear(next_lo, next_hi, at_best=True):
            continue
        lo, hi = next_lo, next_hi
        if bear(lo, hi):
            return _Region(tight.records, lo, hi)
        outside &= ~((points >= lo[:width]) & (points <= hi[:width])).all(axis=1)
    return None
