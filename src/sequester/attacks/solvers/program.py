"""Linear programs of what is possible: sums that are known, and caps that should be kept.

Unknowns x >= 0 with matrix @ x = total, to be kept within caps @ x <= cap / scale. The solver works in floating point;
what is asked of it are multipliers of rows and caps, from which `refute` makes proofs in whole numbers.

A proof that a program has no solution within its caps: add these sums, subtract those, see what remains. Multipliers of
a floating-point solver are rounded to small rationals and checked in whole numbers, so that a proof does
not rest on a tolerance. What fails that check is kept as the solver gave it, where the breach is clear of its noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.deferred import OptimizeResult, connected_components, coo_array, csr_array, hstack, linprog, vstack

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Parts = NDArray[np.int32]

_AT_ONCE = 10_000
"""Unknowns of a program, about: one program of many independent parts takes far longer than many programs of few."""


@dataclass(frozen=True, eq=False, repr=False)
class Multipliers:
    """How often rows and caps are taken."""

    rows: Floats
    caps: Floats


NOTHING = Multipliers(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Rows, with their totals, and caps, in parts of `scale`.

    row, held  the numbers that rows and caps have in the program that this one is taken from
    exceeded   per cap, whether a solution is known, or may be there, that exceeds it; all others can be kept together
    """

    matrix: csr_array
    total: Integers
    caps: csr_array
    cap: Integers
    scale: int
    exceeded: Mask
    row: Integers
    held: Integers

    def take(self, rows: Mask | Integers) -> Program:
        """Fewer rows, and the unknowns and caps they touch: whatever this refutes, the whole refutes."""
        number = np.arange(len(self.total))[rows]
        used = np.zeros(self.matrix.shape[1], np.bool_)
        used[self.matrix[number].indices] = True
        kept = np.flatnonzero(used)
        held = np.flatnonzero(np.diff(self.caps[:, kept].indptr))
        return self._part(number, held, kept)

    def _part(self, rows: Integers, held: Integers, kept: Integers) -> Program:
        """These rows, caps and unknowns."""
        return replace(
            self,
            matrix=self.matrix[rows][:, kept],
            total=self.total[rows],
            caps=self.caps[held][:, kept],
            cap=self.cap[held],
            exceeded=self.exceeded[held],
            row=self.row[rows],
            held=self.held[held],
        )

    def without_caps(self, held: Integers) -> Program:
        """What these caps were about may be as large as it likes."""
        kept = np.flatnonzero(~np.isin(self.held, held))
        caps, cap, exceeded = self.caps[kept], self.cap[kept], self.exceeded[kept]
        return replace(self, caps=caps, cap=cap, exceeded=exceeded, held=self.held[kept])

    @cached_property
    def single(self) -> Integers:
        """Per cap the unknown that it alone is about, where no other cap is; else -1."""
        often = np.bincount(self.caps.indices, minlength=self.caps.shape[1])
        first = self.caps.indices[np.minimum(self.caps.indptr[:-1], max(self.caps.nnz - 1, 0))]
        return np.where((np.diff(self.caps.indptr) == 1) & (often[first] == 1), first, -1).astype(np.int64)

    @cached_property
    def parts(self) -> tuple[int, Parts, Parts, Parts]:
        """How many independent parts there are, and the part of every row, cap and unknown."""
        return linked_parts(self.matrix, self.caps)

    def batches(self) -> Iterator[tuple[Integers, Integers, Program]]:
        """Whole parts of about so many unknowns at a time: their rows and caps, and the program of these."""
        count, *of = self.parts
        if self.matrix.shape[1] <= _AT_ONCE or count == 1:
            yield np.arange(len(self.total)), np.arange(len(self.cap)), self
            return
        size = np.bincount(of[2], minlength=count)
        batch = (np.cumsum(size) - size) // _AT_ONCE
        number = np.unique(batch)
        order = [np.argsort(batch[part], kind="stable") for part in of]
        begins = [np.searchsorted(batch[part][by], number) for part, by in zip(of, order, strict=True)]
        ends = [np.append(begin[1:], len(part)) for begin, part in zip(begins, of, strict=True)]
        for place in range(len(number)):
            rows, held, kept = (by[b[place] : e[place]] for by, b, e in zip(order, begins, ends, strict=True))
            yield rows, held, self._part(rows, held, kept)


def linked_parts(matrix: csr_array, caps: csr_array) -> tuple[int, Parts, Parts, Parts]:
    """Rows, caps and unknowns by what links them: how many parts, and the part of each of the three."""
    rows, unknowns = matrix.shape
    joined = vstack([matrix, caps]).tocoo()
    size = joined.shape[0]
    ends = (joined.row, size + joined.col)
    graph = coo_array((np.ones(joined.nnz, np.int8), ends), shape=(size + unknowns,) * 2)
    count, part = connected_components(graph, directed=False)
    return int(count), part[:rows], part[rows:size], part[size:]


def relax(program: Program) -> Multipliers | None:
    """The multipliers of the least total excess over the caps; None when there is no solution at all.

    Only what a solution is known to exceed may exceed its cap: the program stays small. So it does where a cap is the
    only one of its only unknown: that is a bound of a variable, and what exceeds it is a second variable without one.
    """
    (rows, unknowns), single = program.matrix.shape, program.single
    alone, several = np.flatnonzero(single >= 0), np.flatnonzero(single < 0)
    twice, beyond = single[program.exceeded & (single >= 0)], np.flatnonzero(program.exceeded[several])
    upper = np.full(unknowns + len(twice) + len(beyond), np.inf)
    upper[single[alone]] = program.cap[alone] / program.scale
    excess = coo_array((-np.ones(len(beyond)), (beyond, np.arange(len(beyond)))), shape=(len(several), len(beyond)))
    caps = program.caps[several]
    answer = linprog(
        np.concatenate([np.zeros(unknowns), np.ones(len(twice) + len(beyond))]),
        A_ub=hstack([caps, caps[:, twice], excess], format="csc"),
        b_ub=program.cap[several] / program.scale,
        A_eq=hstack([program.matrix, program.matrix[:, twice], csr_array((rows, len(beyond)))], format="csc"),
        b_eq=program.total,
        bounds=np.column_stack([np.zeros(len(upper)), upper]),
        method="highs-ds",
    )
    if not _is_solved(answer):
        return None
    times = np.asarray(answer.eqlin.marginals)
    weight = np.empty(len(single))
    weight[several] = -np.asarray(answer.ineqlin.marginals)
    weight[alone] = np.maximum((program.matrix.T @ times)[single[alone]], 0)
    return Multipliers(times, weight)


def stretch(program: Program) -> tuple[Floats, Multipliers] | None:
    """Per part the least multiple of its caps that has a solution, and the multipliers that prove it.

    Caps of nothing are not held: no multiple of them is more.
    """
    if not len(program.total):
        return np.zeros(0), NOTHING
    count, of_row, *_ = program.parts
    least = np.zeros(count)
    times = Multipliers(np.zeros(len(program.total)), np.zeros(len(program.cap)))
    for rows, held, alone in program.batches():
        found = _stretch(alone)
        if found is None:
            return None
        part = np.empty(len(found[0]), np.int64)
        part[alone.parts[1]] = of_row[rows]
        least[part], times.rows[rows], times.caps[held] = found[0], found[1].rows, found[1].caps
    return least, times


def _stretch(program: Program) -> tuple[Floats, Multipliers] | None:
    (rows, unknowns), caps = program.matrix.shape, len(program.cap)
    count, of_row, of_cap, _ = program.parts
    pick = coo_array((-program.cap / program.scale, (np.arange(caps), of_cap)), shape=(caps, count))
    answer = linprog(
        np.concatenate([np.zeros(unknowns), np.ones(count)]),
        A_ub=hstack([program.caps, pick], format="csc"),
        b_ub=np.where(program.cap > 0, 0.0, float(program.total.sum())),
        A_eq=hstack([program.matrix, csr_array((rows, count))], format="csc"),
        b_eq=program.total,
        method="highs-ds",
    )
    if not _is_solved(answer):
        return None
    times = Multipliers(np.asarray(answer.eqlin.marginals), -np.asarray(answer.ineqlin.marginals))
    largest = np.full(count, 1e-300)
    np.maximum.at(largest, of_row, np.abs(times.rows))
    return np.asarray(answer.x[unknowns:]), Multipliers(times.rows / largest[of_row], times.caps / largest[of_cap])


def least_excess(program: Program) -> Multipliers:
    """The same as `relax`, with 0 for parts whose rows contradict each other."""
    if not len(program.total):
        return NOTHING
    times = Multipliers(np.zeros(len(program.total)), np.zeros(len(program.cap)))
    for rows, held, alone in program.batches():
        whole = relax(alone)
        together = _least_excess(alone) if whole is None else whole
        times.rows[rows], times.caps[held] = together.rows, together.caps
    return times


def _least_excess(program: Program) -> Multipliers:
    """Part by part."""
    times = Multipliers(np.zeros(len(program.total)), np.zeros(len(program.cap)))
    count, of_row, _, _ = program.parts
    for number in range(count):
        rows = np.flatnonzero(of_row == number)
        alone = program.take(rows)
        part = relax(alone)
        if part is not None:
            times.rows[rows] = part.rows
            times.caps[np.searchsorted(program.held, alone.held)] = part.caps
    return times


def _is_solved(answer: OptimizeResult) -> bool:
    """Whether there is a solution; a solver that gave up must not look like an answer."""
    if answer.status not in (0, 2):
        raise ArithmeticError(f"the solver of the deniability program gave up ({answer.message})")
    return bool(answer.status == 0)


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
