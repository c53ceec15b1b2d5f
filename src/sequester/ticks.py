"""Round numbers along an axis."""

from __future__ import annotations

import math


def nice(lowest: float, highest: float, *, most: int = 5, least: float = 0.0) -> list[float]:
    """Round numbers in equal steps that cover a range, about `most` steps of at least `least`."""
    if not highest > lowest:
        highest = lowest + (abs(lowest) or 1.0)
    rough = max((highest - lowest) / max(most, 1), least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    if least >= 1:
        step = float(math.ceil(step))
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
