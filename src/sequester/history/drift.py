"""How far a value may move from release to release, and boxes as numbers that can be compared across releases.

A value that stays is compared by its leaf codes. One that moves by a known step is compared by what the leaves are
worth: codes are places among the values seen, and a step is not the same number of places everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.policy.attributes import Drift
from sequester.policy.model import Policy

Codes = NDArray[np.integer]
Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]

_SLACK = 1e-12
"""Of the numbers involved: what the rounding of a step may add, so that it never tells two boxes apart."""


def links_of(policy: Policy) -> NDArray[np.bool_]:
    """Which quasi-identifiers are the same for a person in every release, and published so that this shows."""
    told = bounded_by_cells(policy)
    linking = [not a.changes and shown for a, shown in zip(policy.quasi_identifiers.values(), told, strict=True)]
    return np.array(linking, np.bool_)


def steps_of(policy: Policy) -> Floats:
    """(quasi-identifiers, 2) the least and the most change from one release to the next; NaN where nothing is known."""
    steps = np.full((len(policy.quasi_identifiers), 2), np.nan)
    for place, (attribute, shown) in enumerate(
        zip(policy.quasi_identifiers.values(), bounded_by_cells(policy), strict=True)
    ):
        if isinstance(attribute.changes, Drift) and shown:
            steps[place] = attribute.changes.by
        elif not attribute.changes and shown:
            steps[place] = 0
    return steps


def bounded_by_cells(policy: Policy) -> list[bool]:
    """Whether cells bound the values behind them: midpoints do not."""
    midpoints = policy.output.numbers == "midpoint"
    return [not (midpoints and kind_of(attribute).numeric) for attribute in policy.quasi_identifiers.values()]


def comparable(domains: Sequence[Hierarchy], moves: NDArray[np.bool_], lo: Codes, hi: Codes) -> Sides:
    """Boxes (attributes, boxes) as numbers: codes of what stays, values of what moves."""
    sides = np.array(lo, np.float64), np.array(hi, np.float64)
    for axis in np.flatnonzero(moves).tolist():
        sides[0][axis], sides[1][axis] = worth(domains[axis], lo[axis], hi[axis])
    return sides


def worth(domain: Hierarchy, lo: Codes, hi: Codes) -> Sides:
    """The least and the most that intervals of codes are worth, of dates in days.

    An interval that reaches an end of the domain has no bound there: `*` and `>=50` exclude nobody, also no value that
    was not seen. A missing value may have been anything, and become anything.
    """
    last = domain.size - 1 - int(domain.missing)
    low, high = exact(domain, np.minimum(lo, last)), exact(domain, np.minimum(hi, last))
    unknown = hi > last
    return (
        np.where((lo == 0) | unknown, -np.inf, low),
        np.where((hi >= last) | unknown, np.inf, high),
    )


def exact(domain: Hierarchy, codes: Codes) -> Floats:
    """What leaves are worth, of dates in days; NaN for a missing value."""
    worths: Floats = np.append(kind_of(domain).worth(domain.values).astype(np.float64), np.nan)
    return worths[codes]


def reach(sides: Sides, steps: Floats, releases: int) -> Sides:
    """Where values between these sides can be so many releases later (before, if negative); axes come first."""
    ahead = np.sort(steps * releases, axis=-1)
    least, most = (ahead[..., end].reshape(-1, *(1,) * (sides[0].ndim - 1)) for end in (0, 1))
    slack = _SLACK * (np.abs(least) + np.abs(most) + _size(sides[0]) + _size(sides[1])) * ((least != 0) | (most != 0))
    return sides[0] + least - slack, sides[1] + most + slack


def _size(side: Floats) -> Floats:
    return np.where(np.isfinite(side), np.abs(side), 0.0)
