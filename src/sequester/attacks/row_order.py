"""Unsorted matching (Sweeney, section 4.1): rows of two releases in the same order are joined by their row number.

Nobody can see from two tables why rows are where they are, but a fresh shuffle of either one makes agreement unlikely.
Two tests bound how unlikely, with no approximation, whichever of the two releases was shuffled:

* Places: how many rows with the same number agree (same value if values are permanent, boxes that meet). The chance
  of so many is bounded by the number of ways to place that many agreeing rows, and that by Bregman's theorem on
  permanents (1973), which is exact when rows fall into separate kinds that agree throughout.
* Stretches: whether some run of rows has the same values in the same order anywhere in the other release, as happens
  when rows are put in or taken out in between. Runs are so long that the expected number of such accidents is small.

What is not looked for: an order kept only after the first 65,536 rows, or kept so loosely that no long run survives.
Two releases that are both written class by class (or value by value) are not judged: that order follows from what is
published anyway. Nor are two with the same rows throughout: a table published again tells nothing, in whatever order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import Attack
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.history import History, Publication
from sequester.history.boxes import intersecting

Integers = NDArray[np.int64]

# A shuffled pair gives a false alarm at most this often, half of it for each test.
CHANCE = 1e-6
# Tables too small to ever be that unlikely: rows must agree throughout, and do so by chance at most this often.
SMALL_CHANCE = 1 / 500

_ROWS = 1 << 16
_PAIRS = 1 << 21


@dataclass(frozen=True)
class Agreement:
    """What one pair of releases shows: the largest share of rows beyond chance, and how likely that is by chance."""

    test: str
    share: float
    chance: float
    agreeing: int
    rows: int
    expected: float
    small: bool = False


def find(history: History, *, semantics: Semantics = "exact") -> Result:
    """Pairs of releases whose order agrees more than chance allows.

    The measure is the largest share of rows beyond chance, from 0 (as after a shuffle) to 1 (all rows in place): of
    rows with the same number, (agreeing - expected) / (rows - expected); of stretches, the rows they cover.
    """
    findings: list[Finding] = []
    shares = []
    for first, second in combinations(range(len(history)), 2):
        one, other = history.releases[first], history.releases[second]
        if not len(one.row_class) or not len(other.row_class) or (_in_groups(one) and _in_groups(other)):
            continue
        if _repeated(one, other):
            continue
        places = _same_places(history, one, other)
        agreements = [places] if _alarms(places) else []
        shares.append(places.share)
        stretches = _same_stretches(history, one, other)
        if stretches is not None and stretches.share > 0:
            agreements.append(stretches)
            shares.append(stretches.share)
        if agreements:
            best = max(agreements, key=lambda agreement: agreement.share)
            findings.append(_finding(best, first, second))
    return Result(findings, max(shares) if shares else None)


def _alarms(places: Agreement) -> bool:
    if places.small:
        return places.agreeing == places.rows and places.chance <= SMALL_CHANCE
    return places.chance <= CHANCE / 2


def _finding(agreement: Agreement, first: int, second: int) -> Finding:
    return Finding(
        attack="row-order",
        adversary="any",
        releases=(first + 1, second + 1),
        required=0.0,
        observed=agreement.share,
        witness={
            "test": agreement.test,
            "rows": agreement.rows,
            "agreeing": agreement.agreeing,
            "expected": agreement.expected,
            "chance": agreement.chance,
            "small": agreement.small,
        },
    )


def _repeated(one: Publication, other: Publication) -> bool:
    """Whether row for row the same is published."""
    if len(one.row_class) != len(other.row_class) or (one.row_value != other.row_value).any():
        return False
    sides = ((one.lo, other.lo), (one.hi, other.hi))
    return all((side[:, one.row_class] == again[:, other.row_class]).all() for side, again in sides)


def _in_groups(release: Publication) -> bool:
    """Whether the rows of every class, or of every value, stand together."""
    return _together(release.row_class) or _together(release.row_value)


def _together(kinds: NDArray[np.int32]) -> bool:
    runs = 1 + int(np.count_nonzero(np.diff(kinds)))
    return 1 < len(np.unique(kinds)) == runs < len(kinds)


def _same_places(history: History, one: Publication, other: Publication) -> Agreement:
    axes = _axes(history, one, other)
    rows = min(len(one.row_class), len(other.row_class), _ROWS)
    here, there = one.row_class[:rows], other.row_class[:rows]
    agree = np.ones(rows, np.bool_)
    if history.permanent:
        agree &= one.row_value[:rows] == other.row_value[:rows]
    for axis in axes:
        agree &= (one.lo[axis, here] <= other.hi[axis, there]) & (other.lo[axis, there] <= one.hi[axis, here])
    agreeing = int(agree.sum())
    chances, least, expected = [], [], []
    for near, far in ((one, other), (other, one)):
        degree = _degrees(history, near, far, axes)[near.row_class[:rows], near.row_value[:rows]]
        of = len(far.row_class)
        chances.append(log_chance(degree, agreeing, of=of))
        least.append(log_chance(degree, int(np.count_nonzero(degree)), of=of))
        expected.append(float(degree.sum()) / of)
    usual = max(expected)
    return Agreement(
        test="places",
        share=max(0.0, (agreeing - usual) / (rows - usual)) if usual < rows else 0.0,
        chance=math.exp(max(chances)),
        agreeing=agreeing,
        rows=rows,
        expected=usual,
        small=max(least) > math.log(CHANCE / 2),
    )


def _axes(history: History, one: Publication, other: Publication) -> list[int]:
    """The attributes whose sides are compared: all that link, or of two large releases the one that tells most.

    The choice depends on the classes, never on the order of the rows.
    """
    axes: list[int] = np.flatnonzero(history.links).tolist()
    if len(one) * len(other) <= _PAIRS:
        return axes
    return sorted(axes, key=lambda axis: int((_degrees(history, one, other, [axis]) * one.counts).sum()))[:1]


def _degrees(history: History, one: Publication, other: Publication, axes: list[int]) -> Integers:
    """(classes, values) with how many rows of the other release a row of each kind agrees."""
    held = other.counts
    if not history.permanent:
        held = np.repeat(held.sum(axis=1, keepdims=True), held.shape[1], axis=1)
    if len(axes) == 1:
        return _not_after(other.lo[axes[0]], held, one.hi[axes[0]]) - _not_after(
            other.hi[axes[0]], held, one.lo[axes[0]] - 1
        )
    if not axes:
        return np.repeat(held.sum(axis=0, keepdims=True), len(one), axis=0)
    from scipy.sparse import csr_array

    pairs = intersecting(one.lo[axes], one.hi[axes], other.lo[axes], other.hi[axes])
    degree: Integers = csr_array((np.ones(len(pairs[0]), np.int64), pairs), shape=(len(one), len(other))) @ held
    return degree


def _not_after(sides: NDArray[np.int32], held: Integers, limits: NDArray[np.int32]) -> Integers:
    """(limits, values) the rows held by classes whose side is at most each limit."""
    order = np.argsort(sides)
    total = np.concatenate([np.zeros((1, held.shape[1]), np.int64), np.cumsum(held[order], axis=0)])
    return total[np.searchsorted(sides[order], limits, "right")]


def _same_stretches(history: History, one: Publication, other: Publication) -> Agreement | None:
    """Runs of rows with the same values in both, of the smallest length that chance does not explain."""
    if not history.permanent or len(history.values) < 2:
        return None
    here, there = one.row_value[:_ROWS], other.row_value[:_ROWS]
    length, chance = _telling_length((here, there), (one.counts.sum(axis=0), other.counts.sum(axis=0)))
    if length is None:
        return None
    grams = _grams(np.concatenate([here, np.array([-1], here.dtype), there]), length)
    start = np.flatnonzero(np.isin(grams[: len(here) - length + 1], grams[len(here) + 1 :]))
    covered = np.zeros(len(here) + 1, np.int64)
    np.add.at(covered, start, 1)
    np.add.at(covered, start + length, -1)
    rows = int(np.count_nonzero(np.cumsum(covered)[:-1]))
    return Agreement("stretches", rows / len(here), chance, rows, len(here), 0.0)


def _telling_length(
    rows: tuple[NDArray[np.int32], NDArray[np.int32]], held: tuple[Integers, Integers]
) -> tuple[int | None, float]:
    """The smallest length, of those tried, at which fewer than half a `CHANCE` of equal runs are expected."""
    length, limit = 4, min(len(rows[0]), len(rows[1]))
    while length <= limit:
        expected = max(
            log_equal_runs(rows[near], len(rows[far]), held[far], length=length) for near, far in ((0, 1), (1, 0))
        )
        if expected < math.log(CHANCE / 2):
            return length, math.exp(expected)
        length += 1 + length // 8
    return None, 1.0


def _grams(values: NDArray[np.int32], length: int) -> Integers:
    """A number for the run of this length that starts at each row, the same for equal runs."""
    _, found = np.unique(values, return_inverse=True)
    have = 1
    while have < length:
        step = min(have, length - have)
        ahead, behind = found[: len(found) - step], found[step:]
        _, found = np.unique(ahead.astype(np.int64) * (int(found.max()) + 1) + behind, return_inverse=True)
        have += step
    return found.astype(np.int64)


def _story(finding: Finding, history: History) -> str:
    return (
        "The rows of two releases are in the same order far more often than chance allows, so a row of one can be "
        "joined with the row of the other by its number. Publish rows in a fresh random order."
    )


def _nothing(history: History) -> str:
    if not any(len(release.row_class) for release in history.releases[:-1]):
        return "the ledger does not keep the order of rows, which is drawn anew for every release"
    return "rows are written class by class or value by value, or the same are published again"


def log_chance(degree: Integers, agreeing: int, *, of: int) -> float:
    """An upper bound of the log of the chance that at least so many rows agree.

    Row r agrees with `degree[r]` of the `of` rows of a shuffled table. For s <= t the chance of at least t agreeing
    rows is at most E[C(A, s)] / C(t, s), by Markov; E[C(A, s)] is the number of ways to place s agreeing rows, times
    (of - s)! / of!. These ways are a permanent once rows and columns that agree with everything fill the table up.
    """
    kinds, times = np.unique(degree[degree > 0], return_counts=True)
    rows = int(times.sum())
    if agreeing > rows:
        return -math.inf
    best = 0.0
    for chosen in sorted({round(agreeing * step / 64) for step in range(1, 65)} - {0}):
        spare = rows - chosen
        full = kinds.astype(np.float64) + spare
        ways = float((times * _log_factorial(full) / full).sum())
        ways += (of - chosen) / of * math.lgamma(of + 1) - math.lgamma(spare + 1) - math.lgamma(of - chosen + 1)
        moment = ways + math.lgamma(of - chosen + 1) - math.lgamma(of + 1)
        choices = math.lgamma(agreeing + 1) - math.lgamma(chosen + 1) - math.lgamma(agreeing - chosen + 1)
        best = min(best, moment - choices)
    return best


def _log_factorial(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    return np.asarray(gammaln(numbers + 1))


def log_equal_runs(rows: NDArray[np.int32], places: int, held: Integers, *, length: int) -> float:
    """An upper bound of the log of how many equal runs are expected when the other release is shuffled.

    It has a given run at a given place with a chance of at most the product of held[v] over the run's values, divided
    by the number of ways to choose so many of its rows in order.
    """
    of = int(held.sum())
    weight = np.append(0.0, np.cumsum(np.log(np.maximum(held, 1e-300))[rows]))
    runs = weight[length:] - weight[:-length]
    most = float(runs.max())
    total = most + math.log(float(np.exp(runs - most).sum())) + math.log(places - length + 1)
    return total - math.lgamma(of + 1) + math.lgamma(of - length + 1)


ATTACK = Attack(
    name="row-order",
    by_chance="as by chance",
    adversary="any",
    title="Agreement of row orders beyond chance",
    find=lambda history, asked: find(history),
    smallest=False,
    classes_only=True,
    story=_story,
    nothing=_nothing,
)
