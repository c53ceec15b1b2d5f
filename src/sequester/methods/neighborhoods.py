"""Some neighborhoods of a large table, drawn by the people in them.

Classes of a random tenth of the people are coarser than those of all, since whoever is near may not be among them. So
whole neighborhoods are drawn, in which everybody is there: the table is halved at its widest attribute until few enough
are left, and which half is looked at is drawn. What is lost in them is lost on average by all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy

Rows = NDArray[np.int64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Neighborhood:
    """Rows of people who are near one another, and `drawn` how often they were; `around` are ever larger ones."""

    rows: Rows
    drawn: int
    around: tuple[Rows, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class _Part(Neighborhood):
    """A part of the table, where codes lie from `lo` to `hi`, as far as that was looked at."""

    lo: tuple[int, ...] = ()
    hi: tuple[int, ...] = ()


def draw(
    codes: Codes, domains: Sequence[Hierarchy], rows: Rows, *, people: int, times: int, draws: np.random.Generator
) -> Iterator[Neighborhood]:
    """Neighborhoods among these rows, drawn so many times, each of twice as many people at most.

    There may be more people where nobody can be told apart.
    """
    lo, hi = (0,) * len(domains), tuple(domain.size - 1 for domain in domains)
    yield from _halve(codes, domains, _Part(rows, times, (), lo, hi), people, draws)


def _halve(
    codes: Codes, domains: Sequence[Hierarchy], part: _Part, people: int, draws: np.random.Generator
) -> Iterator[Neighborhood]:
    halves = _halves(codes, domains, part) if len(part.rows) > 2 * people else None
    if halves is None:
        yield Neighborhood(part.rows, part.drawn, part.around)
        return
    first = int(draws.binomial(part.drawn, len(halves[0].rows) / len(part.rows)))
    for half, times in zip(halves, (first, part.drawn - first), strict=True):
        if times:
            yield from _halve(codes, domains, replace(half, drawn=times), people, draws)


def _halves(codes: Codes, domains: Sequence[Hierarchy], part: _Part) -> tuple[_Part, _Part] | None:
    """A part cut near the middle of its widest attribute."""
    rows, lo, hi = part.rows, list(part.lo), list(part.hi)
    widths = [
        float(domain.position[high] - domain.position[low]) for domain, low, high in zip(domains, lo, hi, strict=True)
    ]
    while True:
        axis = max(range(len(domains)), key=widths.__getitem__, default=-1)
        if axis < 0 or lo[axis] == hi[axis]:
            return None
        own = codes[axis][rows]
        lo[axis], hi[axis] = int(own.min()), int(own.max())
        before, widths[axis] = widths[axis], float(domains[axis].position[hi[axis]] - domains[axis].position[lo[axis]])
        if lo[axis] == hi[axis]:
            widths[axis] = -1.0
        elif widths[axis] == before or widths[axis] >= max(widths):
            break
    counts = np.cumsum(np.bincount(own - lo[axis]))
    cut = int(np.argmin(np.abs(2 * counts[:-1] - len(rows)))) + lo[axis]
    below = own <= cut
    around = (rows, *part.around)
    first = _Part(rows[below], 0, around, tuple(lo), (*hi[:axis], cut, *hi[axis + 1 :]))
    return first, _Part(rows[~below], 0, around, (*lo[:axis], cut + 1, *lo[axis + 1 :]), tuple(hi))
