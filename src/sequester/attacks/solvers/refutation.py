"""Proofs in whole numbers that a program has no solution within its caps: add these counts, subtract those.

Row multipliers of a floating-point solver are rounded to small rationals and checked exactly, so a refutation never
rests on a tolerance. Multipliers that fail the check are dropped: what is reported is certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.program import Floats, Integers, Mask, Program

# Multipliers of these programs are ratios of small integers; others fail the check.
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 60)
_NOISE = 1e-7
_CLOSE = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class Refutation:
    """Rows, each taken a whole number of times, that leave more than the caps of what remains allow.

    rows, times                of the program, with their labels and totals
    trajectory, value, weight  the unknowns that remain, and how often each is counted
    least, allowed             the weighted sum of those unknowns is at least `least` in every world, while the caps
                               allow `allowed`, in parts of `scale`
    """

    rows: Integers
    times: Integers
    labels: Integers
    total: Integers
    trajectory: Integers
    value: Integers
    weight: Integers
    least: int
    allowed: int
    scale: int

    def remaining(self) -> Iterator[tuple[int, int, int]]:
        """Trajectory, value and weight of what remains, as plain numbers."""
        return zip(self.trajectory.tolist(), self.value.tolist(), self.weight.tolist(), strict=True)

    @cached_property
    def strain(self) -> Fraction | None:
        """What is unavoidable, in multiples of what is allowed; None where nothing at all is allowed."""
        return Fraction(self.least * self.scale, self.allowed) if self.allowed else None


@dataclass(frozen=True, eq=False, repr=False)
class _Sums:
    """Rows and unknowns of a program that falls into `count` independent parts."""

    program: Program
    count: int
    of_row: NDArray[np.int32]
    of_unknown: Integers

    def weigh(self, times: Integers) -> tuple[Integers, Integers, Integers, Mask]:
        """Weights of the unknowns, then per part what is added up, what is allowed (scaled), and whether it counts."""
        weight: Integers = self.program.matrix.T @ times
        least, allowed = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        np.add.at(least, self.of_row, times * self.program.total)
        np.add.at(allowed, self.of_unknown, np.maximum(weight, 0) * self.program.cap)
        proves = least * self.program.scale > allowed
        # An unknown without a cap must not remain on the side that is bounded.
        proves[self.of_unknown[(weight > 0) & ~self.program.capped]] = False
        return weight, least, allowed, proves


def refute(program: Program, multipliers: Floats) -> Iterator[Refutation]:
    """Every independent part of the multipliers that is a proof."""
    rows = np.flatnonzero(np.abs(multipliers) > _NOISE)
    if not len(rows):
        return
    used = program.take(rows)
    count, part = used.blocks()
    sums = _Sums(used, count, part, used.spread(part))
    times, good = _round(sums, multipliers[rows])
    weight, least, allowed, _ = sums.weigh(times)
    remaining = np.flatnonzero(weight > 0)
    r, row_ends = _grouped(part, count)
    u, unknown_ends = _grouped(sums.of_unknown[remaining], count)
    u = remaining[u]
    taken, often, labels, total = (column[r] for column in (rows, times, used.labels, used.total))
    trajectory, value, weights = (column[u] for column in (used.trajectory, used.value, weight))
    for number in np.flatnonzero(good).tolist():
        here = slice(row_ends[number], row_ends[number + 1])
        left = slice(unknown_ends[number], unknown_ends[number + 1])
        yield Refutation(
            rows=taken[here],
            times=often[here],
            labels=labels[here],
            total=total[here],
            trajectory=trajectory[left],
            value=value[left],
            weight=weights[left],
            least=int(least[number]),
            allowed=int(allowed[number]),
            scale=used.scale,
        )


def _round(sums: _Sums, multipliers: Floats) -> tuple[Integers, Mask]:
    """Whole multiples of every part's multipliers, and which parts are proofs."""
    smallest = np.full(sums.count, np.inf)
    np.minimum.at(smallest, sums.of_row, np.abs(multipliers))
    ratio = multipliers / smallest[sums.of_row]
    kept, good, left = np.zeros(len(ratio), np.int64), np.zeros(sums.count, np.bool_), np.ones(sums.count, np.bool_)
    for denominator in _DENOMINATORS:
        times = np.rint(ratio * denominator).astype(np.int64)
        off = np.zeros(sums.count)
        np.maximum.at(off, sums.of_row, np.abs(ratio * denominator - times))
        found = left & (off < _CLOSE)
        kept = np.where(found[sums.of_row], times, kept)
        good |= found & sums.weigh(times)[-1]
        left &= ~found
        if not left.any():
            break
    return kept, good


def _grouped(part: NDArray[np.int32] | Integers, count: int) -> tuple[Integers, list[int]]:
    """An order in which what is in one part stands together, and where each part begins; at last where all end."""
    order = np.argsort(part, kind="stable")
    return order, np.searchsorted(part[order], np.arange(count + 1)).tolist()
