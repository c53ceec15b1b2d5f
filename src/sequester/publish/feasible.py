"""Who cannot be hidden, whatever the classes.

Whoever holds two releases knows who came and who left in between, as a set. If those who came (or left) are fewer
than k, or too many of them have one value, then no release of the whole table hides them: the table as one class shows
it (Sequester's theory: the checks are monotone). This looks at all of them together and says yes or no; it never says
who: to choose people by their values would publish these values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.requirement import Requirement


def may_be_hidden(requirement: Requirement, sensitive: NDArray[np.int32]) -> bool:
    """Whether these people, given by their (attributes, people) codes, keep as one class every promise that does not
    depend on boxes or on the whole table. Nobody is always hidden."""
    people = sensitive.shape[1]
    if people == 0:
        return True
    if people < requirement.k.k:
        return False
    for view in requirement.views(sensitive) if requirement.names else []:
        counts = np.bincount(view.codes, minlength=view.size)[None, :]
        for criterion in (view.confidence, view.alpha, view.diversity):
            if criterion is not None and not criterion.holds(counts).all():
                return False
    return True
