"""How sure somebody could be: beliefs of many people in few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = (0.5, 0.7, 0.9)
NOISE = 1e-3
"""What a fitted belief may be off: only more than that above a step is above it."""


@dataclass(frozen=True)
class BeliefSpread:
    """The largest belief in a bounded value, over people.

    people  how many it is about
    most    the largest; `mean` the mean
    above   share of the people who are believed above .5, .7, .9
    right   share of those above .9 who have the value; None where nobody is, or values are not known
    """

    people: int
    most: float
    mean: float
    above: tuple[float, float, float]
    right: float | None = None

    @classmethod
    def of(cls, largest: NDArray[np.float64], truth: NDArray[np.float64] | None = None) -> BeliefSpread:
        """Of everybody's largest belief, and beliefs in what is true."""
        if not len(largest):
            return cls(0, 0.0, 0.0, (0.0, 0.0, 0.0))
        above = [largest > step + NOISE for step in STEPS]
        sure, right = above[-1], None
        if truth is not None and sure.any():
            right = float((truth[sure] >= largest[sure] - NOISE).mean())
        low, middle, high = (float(one.mean()) for one in above)
        return cls(len(largest), float(largest.max()), float(largest.mean()), (low, middle, high), right)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        above = {str(step): round(share, 6) for step, share in zip(STEPS, self.above, strict=True)}
        right = None if self.right is None else round(self.right, 6)
        return {
            "people": self.people,
            "most": round(self.most, 4),
            "mean": round(self.mean, 4),
            "above": above,
            "right": right,
        }


def mean_of(spreads: list[BeliefSpread]) -> BeliefSpread:
    """The mean of several draws; the largest of all is the largest."""
    right = [(one.right, one.above[-1] * one.people) for one in spreads if one.right is not None]
    low, middle, high = (float(np.mean([one.above[step] for one in spreads])) for step in range(3))
    return BeliefSpread(
        people=round(float(np.mean([one.people for one in spreads]))),
        most=max(one.most for one in spreads),
        mean=float(np.mean([one.mean for one in spreads])),
        above=(low, middle, high),
        right=float(np.average([r for r, _ in right], weights=[w for _, w in right])) if right else None,
    )
