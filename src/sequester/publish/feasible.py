"""Who cannot be hidden yet.

Whoever holds two releases knows who came and who left in between, as a set. If those who came (or left) are fewer
than k, or too many of them have one value, then no release of the whole table hides them, whatever its classes: the
table as one class shows it (Sequester's theory: the checks are monotone). The rest of the table is published, and they
wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.requirement import Requirement

Numbers = NDArray[np.int64]


def hidden_together(
    requirement: Requirement, sensitive: NDArray[np.int32], patience: Numbers, *, seed: list[int]
) -> NDArray[np.bool_]:
    """Per person, whether she can be published with the others of this set: all, as many as bounds allow, or none.

    sensitive  (attributes, people) codes
    patience   how long each waits already: of those with a value that is too frequent, the newest wait on
    """
    people = sensitive.shape[1]
    chosen = np.ones(people, np.bool_)
    if people == 0 or _holds(requirement, sensitive):
        return chosen
    # Lots decide between people who wait equally long, so that no order of the input is published.
    lots = np.random.default_rng([*seed, 1]).permutation(people)
    order = np.lexsort((lots, -patience))
    while chosen.any():
        excess = _excess(requirement, sensitive[:, chosen])
        if excess is None:
            break
        codes, value, too_many = excess
        have = order[chosen[order]]
        full = np.zeros(people, np.int32)
        full[chosen] = codes
        with_value = have[full[have] == value]
        chosen[with_value[-too_many:]] = False
    if not chosen.any() or not _holds(requirement, sensitive[:, chosen]):
        chosen[:] = False
    return chosen


def _holds(requirement: Requirement, sensitive: NDArray[np.int32]) -> bool:
    """Whether these people as one class keep every promise that does not depend on boxes or on the whole table."""
    people = sensitive.shape[1]
    if people < requirement.k.k:
        return False
    for view in requirement.views(sensitive) if requirement.names else []:
        counts = np.bincount(view.codes, minlength=view.size)[None, :]
        for criterion in (view.confidence, view.alpha, view.diversity):
            if criterion is not None and not criterion.holds(counts).all():
                return False
    return True


def _excess(requirement: Requirement, sensitive: NDArray[np.int32]) -> tuple[NDArray[np.int32], int, int] | None:
    """The codes of a view, a value that is too frequent in it, and by how many people; None when there is none."""
    people = sensitive.shape[1]
    for view in requirement.views(sensitive) if requirement.names else []:
        counts = np.bincount(view.codes, minlength=view.size)
        for bound in (view.confidence, view.alpha):
            if bound is None:
                continue
            over = counts * bound.denominators > bound.numerators * people
            if over.any():
                value = int(np.argmax(np.where(over, counts, -1)))
                share = bound.bounds[value]
                # The others stay: at most share / (1 - share) times as many may have the value.
                most = int((people - int(counts[value])) * share / (1 - share))
                return view.codes, value, int(counts[value]) - most
    return None
