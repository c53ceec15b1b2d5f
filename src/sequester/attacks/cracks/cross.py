"""C-attack (Fung et al., sections 3.1.2 and 4.2): a target's row in a later release, cracked with an earlier one.

The target was in both releases, so a row of her class q2 can be hers only if its buddy can be in q1. As many rows of
q2 remain as rows of q1 remain in the F-attack, for every recoding: C-anonymity equals F-anonymity.
"""

from __future__ import annotations

from collections.abc import Sequence

from sequester.attacks.cracks.compose import declare, search
from sequester.attacks.cracks.left import Asked, asked_of
from sequester.attacks.finding import Result, Semantics
from sequester.history import History


def find(history: History, *, semantics: Semantics = "exact", kept: Sequence[Asked] | None = None) -> Result:
    """Targets of whose rows in the later release fewer remain than is required."""
    return search(history, "cross", semantics=semantics, kept=asked_of(history) if kept is None else kept)


ATTACK = declare("cross", "Rows left to an earlier target (cross)", find)
