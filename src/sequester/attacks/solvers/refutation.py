"""Proofs that a program has no solution within its caps: add these sums, subtract those, see what remains.

Multipliers of a floating-point solver are rounded to small rationals and checked in whole numbers, so that a proof does
not rest on a tolerance. What fails that check is kept as the solver gave it, where the breach is clear of its noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.program import Floats, Integers, Mask, Multipliers, Parts, Program, linked_parts

# Multipliers of these programs are ratios of small integers.
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 60)
# How far from a whole number a multiplier may be that is one.
_CLOSE = 1e-4
# Multipliers below this are the solver's noise.
_NOISE = 1e-7
# How far above 1 the solver may put a strain that is exactly 1.
_CLEAR = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Refutation:
    """Rows and caps, each taken so often that the rows add up to more than the caps allow.

    rows, times     numbers of the rows, and how often each is taken
    caps, weight    numbers of the caps that remain, and how often each is counted
    least, allowed  what remains is at least `least` in every solution; caps allow `allowed`, in parts of `scale`
    exact           whether all of that are whole numbers
    """

    rows: Integers
    times: NDArray[Any]
    caps: Integers
    weight: NDArray[Any]
    least: float
    allowed: float
    scale: int
    exact: bool

    @property
    def strain(self) -> Fraction | float:
        """What is unavoidable, in multiples of what is allowed."""
        if self.allowed <= 0:
            return np.inf
        if self.exact:
            return Fraction(int(self.least) * self.scale, int(self.allowed))
        return self.least * self.scale / self.allowed


@dataclass(frozen=True, eq=False, repr=False)
class _Sums:
    """The rows and caps that multipliers use, which fall into `count` independent parts."""

    matrix: Any
    total: Integers
    caps: Any
    cap: Integers
    scale: int
    count: int
    of_row: Parts
    of_cap: Parts
    of_unknown: Parts

    def weigh(self, times: NDArray[Any], weight: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Per part what is added up, and what is allowed, in parts of the scale."""
        least, allowed = np.zeros(self.count, times.dtype), np.zeros(self.count, times.dtype)
        np.add.at(least, self.of_row, times * self.total)
        np.add.at(allowed, self.of_cap, weight * self.cap)
        return least, allowed

    def proves(self, times: Integers, weight: Integers) -> Mask:
        """Per part, whether the caps cover all that remains of the rows, and allow less than they add up to."""
        least, allowed = self.weigh(times, weight)
        proves = least * self.scale > allowed
        proves[self.of_unknown[(self.matrix.T @ times - self.caps.T @ weight) > 0]] = False
        return np.asarray(proves)


def refute(program: Program, multipliers: Multipliers) -> Iterator[Refutation]:
    """Every independent part of the multipliers that is a proof."""
    rows = np.flatnonzero(np.abs(multipliers.rows) > _NOISE)
    caps = np.flatnonzero(multipliers.caps > _NOISE)
    if not len(rows) or not len(caps):
        return
    matrix = program.matrix[rows]
    counted = np.unique(matrix.indices)
    matrix, held = matrix[:, counted], program.caps[caps][:, counted]
    parts = linked_parts(matrix, held)
    sums = _Sums(matrix, program.total[rows], held, program.cap[caps], program.scale, *parts)
    count, of_row, of_cap, _ = parts
    times, weight, good = _round(sums, multipliers.rows[rows], multipliers.caps[caps])
    least, allowed = sums.weigh(times, weight)
    rough, most = sums.weigh(multipliers.rows[rows], multipliers.caps[caps])
    clear = rough > most / program.scale * (1 + _CLEAR) + _NOISE
    r, row_ends = _grouped(of_row, count)
    c, cap_ends = _grouped(of_cap, count)
    for number in np.flatnonzero(good | clear).tolist():
        own, kept = r[row_ends[number] : row_ends[number + 1]], c[cap_ends[number] : cap_ends[number + 1]]
        exact = bool(good[number])
        yield Refutation(
            rows=program.row[rows[own]],
            times=times[own] if exact else multipliers.rows[rows[own]],
            caps=program.held[caps[kept]],
            weight=weight[kept] if exact else multipliers.caps[caps[kept]],
            least=int(least[number]) if exact else float(rough[number]),
            allowed=int(allowed[number]) if exact else float(most[number]),
            scale=program.scale,
            exact=exact,
        )


def _round(sums: _Sums, rows: Floats, caps: Floats) -> tuple[Integers, Integers, Mask]:
    """Whole multiples of every part's multipliers, of rows and of caps, and which parts are proofs."""
    smallest = np.full(sums.count, np.inf)
    np.minimum.at(smallest, sums.of_row, np.abs(rows))
    np.minimum.at(smallest, sums.of_cap, caps)
    row_ratio, cap_ratio = rows / smallest[sums.of_row], caps / smallest[sums.of_cap]
    times, weight = np.zeros(len(rows), np.int64), np.zeros(len(caps), np.int64)
    good = np.zeros(sums.count, np.bool_)
    for denominator in _DENOMINATORS:
        often, heavy = (np.rint(ratio * denominator).astype(np.int64) for ratio in (row_ratio, cap_ratio))
        off = np.zeros(sums.count)
        np.maximum.at(off, sums.of_row, np.abs(row_ratio * denominator - often))
        np.maximum.at(off, sums.of_cap, np.abs(cap_ratio * denominator - heavy))
        new = ~good & (off < _CLOSE) & sums.proves(often, heavy)
        times, weight = np.where(new[sums.of_row], often, times), np.where(new[sums.of_cap], heavy, weight)
        good |= new
        if good.all():
            break
    return times, weight, good


def _grouped(part: Parts, count: int) -> tuple[Integers, list[int]]:
    """An order in which what is in one part stands together, and where each part begins; at last where all end."""
    order = np.argsort(part, kind="stable")
    return order, np.searchsorted(part[order], np.arange(count + 1)).tolist()
