"""Where the ends of published intervals may lie, so that they are nobody's own value.

A scale has a grid: numbers the largest step of 1, 2 or 5 times a power of ten that is not above a hundredth of their
range (of whole numbers never below 1), days whole months where the domain spans a hundred of them. Points of the grid
are leaves like any other, so that an end on it is a code, is read back, kept and carried on as ever. An interval is
published with its ends moved outwards to the grid; one value that everybody of a class has stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, sorted_places
from sequester.domain.kinds import kind_of

if TYPE_CHECKING:
    from sequester.policy.attributes import QuasiIdentifier, Sensitive

Floats = NDArray[np.float64]

PARTS = 100
_WHOLE = 2.0**53
_STEPS = (5, 2, 1)
# Enough digits for the difference of any two floats that are worth a grid.
_EXACT = Context(prec=700)


def with_grid(
    attribute: QuasiIdentifier | Sensitive, values: Sequence[str] | NDArray[Any]
) -> Sequence[str] | NDArray[Any]:
    """Distinct values of a private table and the points of their grid: the leaves of a domain to publish from."""
    if attribute.role == "sensitive" or not isinstance(values, np.ndarray) or not len(values):
        return values
    kind = kind_of(attribute)
    if kind.numeric:
        return np.unique(np.append(values, _around(attribute, np.asarray(values, np.float64))))
    if kind.measured and _has_levels(attribute.levels):
        return np.unique(np.append(values, np.concatenate(month_ends(values.min(), values.max()))))
    return values


def snapped(domain: Hierarchy, lo: Codes, hi: Codes) -> tuple[Codes, Codes]:
    """Intervals of codes with their ends moved outwards to the grid; single leaves stay.

    A domain without some points of its grid was given, not made for publishing: nothing moves in it.
    """
    marks = _marks(domain)
    if marks is None:
        return lo, hi
    starts, ends = marks
    proper, value = lo < hi, len(domain.values) - 1
    low = np.where(proper & (lo <= value), starts[np.searchsorted(starts, lo, side="right") - 1], lo)
    up = ends[np.minimum(np.searchsorted(ends, hi), len(ends) - 1)]
    return low.astype(np.int32), np.where(proper & (hi <= value), up, hi).astype(np.int32)


def number_grid(low: float, high: float, *, whole: bool) -> Floats | None:
    """The points between two ends, and the ends; None where every whole number is a point."""
    step = _step(low, high, whole=whole)
    if step is None or (whole and step == 1):
        return None
    first = int((_decimal(low) / step).to_integral_value(ROUND_CEILING))
    last = int((_decimal(high) / step).to_integral_value(ROUND_FLOOR))
    points = [float(step * place) for place in range(first, last + 1)]
    return np.unique(np.array([low, *points, high], np.float64)) + 0.0


def month_ends(first: Any, last: Any) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64]]:
    """First and last days of all months around two days; none where they are fewer than a hundred."""
    months = np.arange(np.datetime64(first, "M"), np.datetime64(last, "M") + 1)
    months = months if len(months) >= PARTS else months[:0]
    return months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]") - 1


def _around(attribute: QuasiIdentifier, values: Floats) -> Floats:
    """The grid of numbers: inside their range, or around them, but not beyond bands."""
    values = values[np.isfinite(values)]
    if not len(values):
        return values
    whole = is_whole(values)
    if attribute.range is not None:
        low, high = map(float, attribute.range)
        points = number_grid(low, high, whole=whole and is_whole(np.array([low, high])))
        return values[:0] if points is None or not ((values >= low) & (values <= high)).all() else points
    edges = attribute.bands or (-math.inf, math.inf)
    low, high = float(values.min()), float(values.max())
    while (step := _step(low, high, whole=whole)) is not None:
        wider = max(_rounded(low, step, ROUND_FLOOR), edges[0]), min(_rounded(high, step, ROUND_CEILING), edges[-1])
        if wider == (low, high):
            break
        low, high = wider
    points = number_grid(low, high, whole=whole and is_whole(np.array([low, high])))
    return values[:0] if points is None else points


def _marks(domain: Hierarchy) -> tuple[Codes, Codes] | None:
    """The codes at which intervals may begin and end; None where that is every code."""
    kind, values = kind_of(domain), domain.values
    if not kind.measured or len(values) < 2:
        return None
    if kind.numeric:
        return _number_marks(values.tobytes())
    if domain.height < 2 and not domain.aliases:
        return None
    marks = [sorted_places(values, days) for days in month_ends(values[0], values[-1])]
    return None if not len(marks[0]) or any((mark < 0).any() for mark in marks) else (marks[0], marks[1])


@lru_cache(maxsize=64)
def _number_marks(leaves: bytes) -> tuple[Codes, Codes] | None:
    """The same of numbers, kept: a release asks for it several times."""
    values = np.frombuffer(leaves, np.float64)
    points = number_grid(float(values[0]), float(values[-1]), whole=is_whole(values))
    if points is None:
        return None
    places = sorted_places(values, points)
    return None if (places < 0).any() else (places, places)


def _step(low: float, high: float, *, whole: bool) -> Decimal | None:
    """The largest step of 1, 2, 5 times a power of ten that is at most a hundredth of what is between two numbers."""
    span = _EXACT.subtract(_decimal(high), _decimal(low))
    if span <= 0 or not math.isfinite(high - low):
        return None
    limit = span / PARTS
    power = Decimal(1).scaleb(limit.adjusted())
    step = next(times * power for times in _STEPS if times * power <= limit)
    return max(step, Decimal(1)) if whole else step


def _rounded(number: float, step: Decimal, how: str) -> float:
    rounded = float((_decimal(number) / step).to_integral_value(how) * step)
    return rounded if math.isfinite(rounded) else number


def _decimal(number: float) -> Decimal:
    """The decimal number that was written, not its binary neighbour."""
    return Decimal(repr(float(number)))


def is_whole(numbers: Floats) -> bool:
    """Whether all numbers are integers, and small enough to be exact."""
    return bool(((numbers == np.floor(numbers)) & (np.abs(numbers) < _WHOLE)).all())


def _has_levels(levels: Any) -> bool:
    """Whether days are generalized by the calendar: as they are unless the policy says that they are not."""
    return levels is None or any(level != "day" for level in levels)
