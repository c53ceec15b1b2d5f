"""Who cannot be hidden, whatever the classes.

Whoever holds two releases knows who came and who left in between, as a set. If those who came (or left) are fewer
than may be inferred, or too many of them have one value with a bound, then no release of the whole table hides them:
the table as one class shows it (docs/theory.md, section 5). This looks at all of them together and says yes or no; it
never says who: to choose people by their values would publish these values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Requirement


def may_be_hidden(requirement: Requirement, sensitive: NDArray[np.int32], *, guarded: bool, fewest: int) -> bool:
    """Whether these people, given by their (attributes, people) codes, can be seen to come or go as a set.

    Less than the `fewest` that may be inferred may where none of them has a bounded value, though values are bounded
    (`guarded`). Nobody always may.
    """
    people = sensitive.shape[1]
    views = requirement.views(sensitive) if requirement.names and people else []
    bounds = [(view, bound) for view in views if (bound := view.criterion(Confidence)) is not None]
    if 0 < people < fewest:
        limits = [np.array([bound < 1 for bound in confidence.bounds])[view.codes] for view, confidence in bounds]
        return guarded and not any(limit.any() for limit in limits)
    return all(
        bool(confidence.holds(np.bincount(view.codes, minlength=view.size)[None, :]).all())
        for view, confidence in bounds
    )
