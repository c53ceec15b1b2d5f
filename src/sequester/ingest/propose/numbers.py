"""Round numbers for a policy: ranges, widths and bands that hold the cells and give none of them away."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_FINEST = 24
"""So many of the narrowest bands there are in a range."""
_BANDS = 5


def range_of(low: float, high: float, *, age: bool = False, room: float = 0.0) -> tuple[float, float]:
    """Bounds rounded outwards, never the lowest (unless 0) or highest value itself.

    room  the share of the span that is added at both ends first, for values that move
    """
    if age and low >= 0 and high < 120:
        return 0, 120
    first, last = low, high
    if room:
        first, last = low - room * (high - low), high + room * (high - low)
        first = max(first, 0.0) if low >= 0 else first
    step = round_up(max(last - first, abs(last) * 1e-6, 1e-6) / 10)
    start, end = math.floor(first / step) * step, math.ceil(last / step) * step
    if 0 <= low < high - low:
        start = 0.0
    elif start == low:
        start -= step
    return tidy(start), tidy(end + step if end == high else end)


def widths_of(low: float, high: float, *, whole: bool) -> list[float]:
    """Widths of bands over a range, each twice the one before."""
    finest = round_up((high - low) / _FINEST)
    return [max(finest, 1.0) * times if whole else finest * times for times in (1, 2, 4)]


def even_bands(low: float, high: float) -> list[float]:
    """Edges of a few bands of one width over a range."""
    step = round_up((high - low) / _BANDS)
    return [tidy(low + step * n) for n in range(math.ceil((high - low) / step - 1e-9) + 1)]


def full_bands(numbers: NDArray[np.float64], low: float, high: float) -> list[float]:
    """Inner edges of bands that each hold about as many of these numbers, on a grid of round ones."""
    step = round_up((high - low) / _FINEST)
    edges = [tidy(low + step * n) for n in range(1, math.ceil((high - low) / step - 1e-9))]
    below = np.searchsorted(np.sort(numbers), edges) / max(len(numbers), 1)
    inner, filled = [], 0.0
    for edge, share in zip(edges, below.tolist(), strict=True):
        if share - filled >= 1 / (_BANDS + 1) and 1 - share >= 1 / (_BANDS + 1):
            inner.append(edge)
            filled = share
    return inner


def step_of(low: float, high: float) -> tuple[int, int]:
    """The least and the most that something moves from wave to wave, in whole numbers and with room."""
    least, most = math.floor(low), math.ceil(high)
    if least >= 0:
        return max(0, least - 1), most + 1
    return (least - 1, max(0, most + 1)) if most <= 0 else (least - 1, most + 1)


def share_above(share: float, *, room: float = 0.03) -> float:
    """The next twentieth, with room."""
    return min(math.ceil(round((share + room) * 20, 6)) / 20, 0.95)


def round_up(width: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return tidy(next(times * power for times in (1, 2, 5, 10) if times * power >= width * (1 - 1e-9)))


def tidy(number: float) -> float:
    """Without the noise of arithmetic."""
    return float(f"{number:.12g}")


def flow(numbers: Sequence[float]) -> str:
    """A list of numbers as YAML."""
    return "[" + ", ".join(f"{number:.12g}" for number in numbers) + "]"


def open_flow(inner: Sequence[float]) -> str:
    """Edges of bands as YAML, of which the first and the last band have no end."""
    return "[" + ", ".join(["-.inf", *(f"{edge:.12g}" for edge in inner), ".inf"]) + "]"
