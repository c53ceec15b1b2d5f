"""Positions by the class they are in, for attacks that look at a few classes at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Positions sorted by their class, to take those of a few classes without looking at the others.

    Plain lists: what is taken is mostly a handful, for which arrays are slow.
    """

    order: list[int]
    ends: list[int]

    @classmethod
    def of(cls, classes: NDArray[np.integer[Any]], count: int) -> Index:
        """Of the class of every position, -1 for none."""
        order = np.argsort(classes, kind="stable")
        return cls(order.tolist(), np.searchsorted(classes[order], np.arange(count + 1)).tolist())

    def members(self, classes: Iterable[int]) -> list[int]:
        """Positions of these classes, class by class."""
        return [position for one in classes for position in self.order[self.ends[one] : self.ends[one + 1]]]
