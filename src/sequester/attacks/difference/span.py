"""Three and more releases: trajectories whose values follow from sums and differences of classes, with fractions.

Byun et al. check pairs of releases and say that this suffices; it does not. With {01}{23}, {02}{13}, {03}{12} no pair
leaves anybody alone, but person 0 is half of {01} + {02} + {03} - {0123}. The people of one trajectory are determined
when its indicator is a rational combination of the indicators of classes. That is linear algebra, done here modulo a
prime on small components and confirmed in exact fractions, so that what is reported is proved; a trajectory whose
combination has a numerator or denominator above 30000 would be missed. Larger sets of trajectories are not searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, lcm

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.difference.cells import components
from sequester.history import Trajectories

LARGEST = 400
"""Components with more trajectories than this are left to the trajectory certificate and to deniability."""

_PRIME = (1 << 31) - 1


@dataclass(frozen=True)
class Combination:
    """One trajectory as a sum of multiples of classes, each (release, class, factor), numbers from 0."""

    trajectory: int
    terms: tuple[tuple[int, int, Fraction], ...]


def combinations(trajectories: Trajectories, k: int) -> Iterator[Combination]:
    """Trajectories of fewer than k people that are determined, but are no class themselves."""
    path = trajectories.path
    present = path >= 0
    offset = np.concatenate([[0], np.cumsum(path.max(axis=0, initial=-1) + 1)])
    row, release = np.nonzero(present)
    column = path[row, release] + offset[release]
    label = components(row, column + len(path), len(path) + int(offset[-1]))[: len(path)]
    small = np.bincount(label) <= LARGEST
    wanted = (trajectories.size < k) & small[label]
    by_part, of_part = np.argsort(label, kind="stable"), np.argsort(label[row], kind="stable")
    for part in np.unique(label[wanted]).tolist():
        members = by_part[slice(*np.searchsorted(label, [part, part + 1], sorter=by_part))]
        if len(members) < 2:
            continue
        inside = of_part[slice(*np.searchsorted(label[row], [part, part + 1], sorter=of_part))]
        classes, number = np.unique(column[inside], return_inverse=True)
        matrix = np.zeros((len(classes), len(members)), np.int64)
        matrix[number, np.searchsorted(members, row[inside])] = 1
        of = np.searchsorted(offset, classes, side="right") - 1
        names = list(zip(of.tolist(), (classes - offset[of]).tolist(), strict=True))
        for position, factors in _units(matrix, wanted[members]):
            if len(factors) > 1:
                terms = tuple((*names[index], factor) for index, factor in factors.items())
                yield Combination(int(members[position]), terms)


def _units(matrix: NDArray[np.int64], wanted: NDArray[np.bool_]) -> Iterator[tuple[int, dict[int, Fraction]]]:
    """Columns whose unit vector is a combination of the rows, with the factors.

    In reduced echelon form that is a pivot column whose row has no other entry.
    """
    rows, columns = matrix.shape
    reduced = np.concatenate([matrix, np.eye(rows, dtype=np.int64)], axis=1)
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        (holders,) = reduced[:, column].nonzero()
        first = holders.searchsorted(rank)
        if first == len(holders):
            continue
        pivot, lead = holders[first], int(reduced[holders[first], column])
        row = reduced[pivot].copy() if lead == 1 else reduced[pivot] * pow(lead, -1, _PRIME) % _PRIME
        reduced[pivot], reduced[rank] = reduced[rank], row
        pivots.append(column)
        if len(holders) > 1:
            others = holders[holders != pivot]
            others[others == rank] = pivot
            (entries,) = row.nonzero()
            part = others[:, None], entries
            reduced[part] = (reduced[part] - reduced[others, column, None] * row[entries]) % _PRIME
        if len(pivots) == rows:
            break
    alone = np.count_nonzero(reduced[: len(pivots), :columns], axis=1) == 1
    members = [np.flatnonzero(row).tolist() for row in matrix]
    for rank in np.flatnonzero(alone & wanted[pivots]).tolist():
        used = np.flatnonzero(reduced[rank, columns:])
        factors = [_fraction(residue) for residue in reduced[rank, columns + used].tolist()]
        exact = {index: factor for index, factor in zip(used.tolist(), factors, strict=True) if factor is not None}
        if len(exact) == len(used) and _is_unit(members, exact, pivots[rank]):
            yield pivots[rank], exact


@lru_cache(maxsize=1 << 12)
def _fraction(residue: int) -> Fraction | None:
    """The fraction with small numerator and denominator that has this residue, by the Euclidean algorithm."""
    small = isqrt(_PRIME // 2)
    before, after, factor_before, factor = _PRIME, residue, 0, 1
    while after > small:
        quotient = before // after
        before, after = after, before - quotient * after
        factor_before, factor = factor, factor_before - quotient * factor
    return Fraction(after, factor) if 0 < abs(factor) <= small else None


def _is_unit(members: list[list[int]], factors: dict[int, Fraction], column: int) -> bool:
    """Whether the combination of rows, given by where they have a 1, is exactly the unit vector of the column."""
    common = lcm(*(factor.denominator for factor in factors.values()))
    total: dict[int, int] = {}
    for index, factor in factors.items():
        times = factor.numerator * (common // factor.denominator)
        for entry in members[index]:
            total[entry] = total.get(entry, 0) + times
    return {entry: times for entry, times in total.items() if times} == {column: common}
