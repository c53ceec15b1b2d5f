"""Who cannot be hidden, whatever the classes.

Whoever holds two releases knows who came and who left in between, as a set. If those who came (or left) are fewer
than may be inferred, or too many of them have one value with a bound, then no release of the whole table hides them:
the table as one class shows it (docs/theory.md, section 5). This looks at all of them together and says yes or no; it
never says who: to choose people by their values would publish these values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Requirement


class Obstacle(NamedTuple):
    """Why people cannot be seen as a set: too few are `observed`, or the share of a value of an attribute is."""

    attribute: str
    required: float
    observed: float


def obstacles(
    requirement: Requirement, sensitive: NDArray[np.int32], *, guarded: bool, fewest: int
) -> tuple[Obstacle, ...]:
    """What keeps these people, given by their (attributes, people) codes, from being seen to come or go as a set.

    Less than the `fewest` that may be inferred may where none of them has a bounded value, though values are bounded
    (`guarded`). Nobody always may.
    """
    people = sensitive.shape[1]
    views = requirement.views(sensitive) if requirement.names and people else []
    bounds = [(view, bound) for view in views if (bound := view.criterion(Confidence)) is not None]
    if 0 < people < fewest:
        limits = [np.array([bound < 1 for bound in confidence.bounds])[view.codes] for view, confidence in bounds]
        may = guarded and not any(limit.any() for limit in limits)
        return () if may else (Obstacle("", float(fewest), float(people)),)
    found = []
    for view, confidence in bounds:
        counts = np.bincount(view.codes, minlength=view.size)[None, :]
        if not bool(confidence.holds(counts).all()):
            found.append(Obstacle(view.name, *confidence.worst(counts)))
    return tuple(found)


def may_be_hidden(requirement: Requirement, sensitive: NDArray[np.int32], *, guarded: bool, fewest: int) -> bool:
    """Whether nothing keeps these people from being seen to come or go as a set."""
    return not obstacles(requirement, sensitive, guarded=guarded, fewest=fewest)
