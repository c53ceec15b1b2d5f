"""F-attack (Fung et al., sections 3.1.1 and 4.1): a target's row in an earlier release, cracked with a later one.

A row of the target's class q1 can be the target's only if its buddy can be in q2, the target's class in the later
release. `remaining` counts per value the rows of q1 for which that holds in one world. F-anonymity, the measure, is
the least total over all targets; a requirement of k people asks for at least k.
"""

from __future__ import annotations

from collections.abc import Sequence

from sequester.attacks.cracks.compose import declare, search
from sequester.attacks.cracks.left import Asked, asked_of
from sequester.attacks.finding import Result, Semantics
from sequester.history import History


def find(history: History, *, semantics: Semantics = "exact", kept: Sequence[Asked] | None = None) -> Result:
    """Targets of whose rows in the earlier release fewer remain than is required."""
    return search(history, "forward", semantics=semantics, kept=asked_of(history) if kept is None else kept)


ATTACK = declare("forward", "Rows left to an earlier target (forward)", find)
