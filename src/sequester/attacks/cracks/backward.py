"""B-attack (Fung et al., sections 3.1.3 and 4.3): the row of somebody who joined between two releases.

Rows of the target's class that must be buddies of earlier rows are not the target's. `remaining` counts per value the
rows that can be without a buddy in one world. B-anonymity, the measure, is the least total over the classes with a
newcomer; None when nobody joined, or when people left between all pairs of releases somebody joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from sequester.attacks.cracks.compose import declare, search, unknown_neighbors
from sequester.attacks.cracks.left import Asked, asked_of
from sequester.attacks.finding import Result, Semantics
from sequester.history import History


def find(history: History, *, semantics: Semantics = "exact", kept: Sequence[Asked] | None = None) -> Result:
    """Classes with a newcomer for whom too few rows remain."""
    return search(history, "backward", semantics=semantics, kept=asked_of(history) if kept is None else kept)


def _nothing(history: History) -> str:
    if history.trajectories is None:
        return unknown_neighbors(history)
    return "between every two releases nobody joined, or somebody left"


ATTACK = declare("backward", "Rows left to a newcomer (backward)", find, _nothing)
