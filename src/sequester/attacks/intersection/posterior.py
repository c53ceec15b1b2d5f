"""Intersection attack on two classes that are known to share exactly m people, all worlds equally likely.

If a_s of the shared people have value s, the worlds number the product over s of C(n1_s, a_s) C(n2_s, a_s) a_s!, up to
a factor that is the same for all. So the chance of a shared person to have s is E[a_s] / m, and the sums over all
(a_s) with total m are coefficients of a product of polynomials, one per value. For m = 1 it is the product rule
n1_s n2_s / sum of n1_t n2_t. Integers throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.exposure import Exposure, Noted, gather, keep_worst, name_counts, say_more
from sequester.attacks.finding import Finding, Result
from sequester.history import History

Polynomial = list[int]


def posterior(first: Sequence[int], second: Sequence[int], *, shared: int) -> tuple[Fraction, ...]:
    """The chance of each value for one of the people that two classes with these value counts share.

    Zeros when the counts cannot share so many people of the same values.
    """
    if shared == 1:
        products = [a * b for a, b in zip(first, second, strict=True)]
        return tuple(Fraction(number, sum(products) or 1) for number in products)
    for inner, outer in ((first, second), (second, first)):
        if shared == sum(inner) and all(a <= b for a, b in zip(inner, outer, strict=True)):
            return tuple(Fraction(count, shared) for count in inner)
    chances = [Fraction(0)] * len(first)
    both = [value for value, (a, b) in enumerate(zip(first, second, strict=True)) if a and b]
    ways = [_ways(first[value], second[value], limit=shared) for value in both]
    before: list[Polynomial] = [[1]]
    for polynomial in ways:
        before.append(_times(before[-1], polynomial, limit=shared))
    worlds = before[-1][shared] if len(before[-1]) > shared else 0
    if not worlds:
        return tuple(chances)
    after: Polynomial = [1]
    for value, polynomial, others in zip(reversed(both), reversed(ways), reversed(before[:-1]), strict=True):
        rest = _times(others, after, limit=shared)
        total = sum(
            number * way * rest[shared - number] for number, way in enumerate(polynomial) if shared - number < len(rest)
        )
        chances[value] = Fraction(total, shared * worlds)
        after = _times(polynomial, after, limit=shared)
    return tuple(chances)


def _ways(first: int, second: int, *, limit: int) -> Polynomial:
    return [comb(first, a) * comb(second, a) * factorial(a) for a in range(min(first, second, limit) + 1)]


def _times(one: Polynomial, other: Polynomial, *, limit: int) -> Polynomial:
    if len(one) == 1:
        return [one[0] * factor for factor in other]
    if len(other) == 1:
        return [other[0] * factor for factor in one]
    product = [0] * min(len(one) + len(other) - 1, limit + 1)
    for degree, factor in enumerate(one):
        for more, other_factor in enumerate(other[: limit + 1 - degree]):
            product[degree + more] += factor * other_factor
    return product


def find_posterior(history: History) -> Result:
    """Every pair of classes that ties the people they share to a value by more than its bound.

    The measure is the largest such chance. Needs to know who is in which class.
    """
    if history.trajectories is None:
        return Result()
    bounded = [value for value, bound in enumerate(history.bounds) if bound < 1]
    chance_of = lru_cache(maxsize=1 << 16)(posterior)
    findings: list[Finding] = []
    more = 0
    worst: Fraction | None = None
    for pair in combinations(range(len(history)), 2):
        one, other = (history.releases[release] for release in pair)
        classes, cell, trajectory = _cells(history, pair)
        size = np.bincount(cell, weights=history.trajectories.size[trajectory], minlength=len(classes))
        exposed: dict[tuple[int, int], Fraction] = {}
        for number, ((a, b), shared) in enumerate(zip(classes.tolist(), size.astype(np.int64).tolist(), strict=True)):
            chances = chance_of(tuple(one.counts[a].tolist()), tuple(other.counts[b].tolist()), shared=shared)
            possible = [value for value in bounded if chances[value]]
            worst = max([worst or Fraction(0), *(chances[value] for value in possible)])
            exposed.update({(number, s): chances[s] for s in possible if chances[s] > history.bounds[s]})
        told, others = _findings(history, pair, exposed=exposed, cells=(classes, cell, trajectory))
        findings += told
        more += others
    findings, others = keep_worst(findings)
    notes = say_more("intersection", history.attribute, more + others)
    return Noted(findings, None if worst is None else float(worst), notes)


def _cells(history: History, pair: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of classes that share people, and the trajectories in them, each with the number of its pair."""
    path = history.known_trajectories.path[:, pair]
    trajectory = np.flatnonzero((path >= 0).all(axis=1))
    classes, cell = np.unique(path[trajectory], axis=0, return_inverse=True)
    return classes, cell.reshape(-1), trajectory


def _findings(
    history: History,
    pair: tuple[int, int],
    *,
    exposed: Mapping[tuple[int, int], Fraction],
    cells: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]],
) -> tuple[list[Finding], int]:
    classes, cell, trajectory = cells
    by_cell = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[by_cell], np.arange(len(classes) + 1))
    entries = [trajectory[by_cell[starts[number] : starts[number + 1]]] for number, _ in exposed]
    if not entries:
        return [], 0
    lengths = [len(entry) for entry in entries]
    rows = np.repeat(np.array([number for number, _ in exposed]), lengths)
    whose = np.concatenate(entries)
    used = np.full((len(whose), len(history)), -1, np.int32)
    used[:, pair] = classes[rows]
    value = np.repeat(np.array([value for _, value in exposed]), lengths)
    strain = np.array([float(chance / history.bounds[value]) for (_, value), chance in exposed.items()])
    weight = history.known_trajectories.size[whose]
    exposures, more = gather(
        history, value, classes=used, weight=weight, degree=np.repeat(strain, lengths), trajectory=whose
    )
    return [_finding(history, one, exposed[int(rows[one.entry]), one.value]) for one in exposures], more


def _finding(history: History, exposure: Exposure, chance: Fraction) -> Finding:
    witness = {
        "reading": "posterior",
        "published": [name_counts(history, history.releases[r].counts[c].tolist()) for r, c in exposure.classes],
        "shared": exposure.weight,
        "chance": str(chance),
    }
    bound = history.bounds[exposure.value]
    return exposure.tell(history, "intersection", "neighbor", required=bound, observed=chance, witness=witness)
