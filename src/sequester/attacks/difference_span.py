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
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.difference_cells import components
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
    for part in np.unique(label[(trajectories.size < k) & small[label]]).tolist():
        members = np.flatnonzero(label == part)
        if len(members) < 2:
            continue
        inside = np.isin(row, members)
        classes = np.unique(column[inside])
        matrix = np.zeros((len(classes), len(members)), np.int64)
        matrix[np.searchsorted(classes, column[inside]), np.searchsorted(members, row[inside])] = 1
        for position, factors in _units(matrix, trajectories.size[members] < k):
            terms = []
            for index, factor in factors.items():
                of = int(np.searchsorted(offset, classes[index], side="right")) - 1
                terms.append((of, int(classes[index] - offset[of]), factor))
            if len(terms) > 1:
                yield Combination(int(members[position]), tuple(terms))


def _units(matrix: NDArray[np.int64], wanted: NDArray[np.bool_]) -> Iterator[tuple[int, dict[int, Fraction]]]:
    """Columns whose unit vector is a combination of the rows, with the factors.

    In reduced echelon form that is a pivot column whose row has no other entry.
    """
    rows, columns = matrix.shape
    reduced = np.concatenate([matrix, np.eye(rows, dtype=np.int64)], axis=1)
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        candidates = np.flatnonzero(reduced[rank:, column])
        if len(candidates) == 0:
            continue
        reduced[[rank, rank + candidates[0]]] = reduced[[rank + candidates[0], rank]]
        reduced[rank] = reduced[rank] * pow(int(reduced[rank, column]), -1, _PRIME) % _PRIME
        others = np.flatnonzero(reduced[:, column])
        others = others[others != rank]
        reduced[others] = (reduced[others] - reduced[others, column, None] * reduced[rank]) % _PRIME
        pivots.append(column)
        if len(pivots) == rows:
            break
    for rank, column in enumerate(pivots):
        if not wanted[column] or np.count_nonzero(reduced[rank, :columns]) != 1:
            continue
        found = np.flatnonzero(reduced[rank, columns:])
        factors = [_fraction(int(residue)) for residue in reduced[rank, columns + found]]
        exact = {int(index): factor for index, factor in zip(found, factors, strict=True) if factor is not None}
        if len(exact) == len(found) and _is_unit(matrix, exact, column):
            yield column, exact


def _fraction(residue: int) -> Fraction | None:
    """The fraction with small numerator and denominator that has this residue, by the Euclidean algorithm."""
    small = isqrt(_PRIME // 2)
    before, after, factor_before, factor = _PRIME, residue, 0, 1
    while after > small:
        quotient = before // after
        before, after = after, before - quotient * after
        factor_before, factor = factor, factor_before - quotient * factor
    return Fraction(after, factor) if 0 < abs(factor) <= small else None


def _is_unit(matrix: NDArray[np.int64], factors: dict[int, Fraction], column: int) -> bool:
    """Whether the combination of rows is exactly the unit vector of the column."""
    total: dict[int, Fraction] = {}
    for index, factor in factors.items():
        for entry in np.flatnonzero(matrix[index]).tolist():
            total[entry] = total.get(entry, Fraction(0)) + factor
    return {entry: value for entry, value in total.items() if value} == {column: Fraction(1)}
