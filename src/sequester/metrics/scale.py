"""Numbers and dates along an axis: where a leaf lies, and round steps between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.ticks import nice

# Months up to which dates are counted by months, not by years.
_MONTHS = 36


@dataclass(frozen=True, eq=False)
class ValueScale:
    """An axis: `at` is where every leaf with a value begins, `wide` how far it reaches, `text` what a place is called.

    `whole`: places are counted in whole steps, so that what lies between two of them ends one before the second.
    """

    at: NDArray[np.float64]
    wide: float
    text: Callable[[float], str]
    whole: bool

    def edges(self, most: int) -> list[float]:
        """Round places that cover all leaves."""
        low, high = float(self.at.min()), float(self.at.max()) + self.wide
        return nice(low, high, most=most, least=1.0 if self.whole else 0.0)

    def between(self, start: float, end: float) -> str:
        """What a step is called."""
        if not self.whole:
            return f"{self.text(start)} to {self.text(end)}"
        return self.text(start) if end - start <= 1 else f"{self.text(start)} to {self.text(end - 1)}"


def scale_of(domain: Hierarchy) -> ValueScale:
    """The axis of a domain of numbers or dates; dates lie by their months, or by their years where these are many."""
    values = domain.values
    if values.dtype.kind != "M":
        whole = bool(np.all(values == np.round(values)))
        return ValueScale(values.astype(np.float64), float(whole), lambda place: f"{place:.10g}", whole)
    months = values.astype("datetime64[M]")
    at = months.astype(np.int64) + (values - months).astype(np.int64) / 31
    if at.max() - at.min() > _MONTHS:
        return ValueScale(1970 + at / 12, 1 / 372, lambda place: f"{place:.0f}", True)
    return ValueScale(at, 1 / 31, lambda place: str(np.datetime64(int(place), "M")), True)
