"""Values that move by a known step: whoever was published before must be where she can be by now."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.errors import DataError, Problem
from sequester.history.drift import exact, reach, worth
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.policy.attributes import Drift
from sequester.policy.model import Policy


def check_moves(snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> None:
    """Refuse values that moved further than the policy says: the ledger has boxes, and each must be in reach.

    number  per record, its person among everybody published before, -1 for newcomers
    """
    known = np.flatnonzero(number >= 0)
    problems = []
    for axis, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
        if not isinstance(attribute.changes, Drift):
            continue
        step = np.array([attribute.changes.by], np.float64)
        now = exact(snapshot.quasi_domains[axis], snapshot.quasi[axis, known])
        outside = np.zeros(len(known), np.bool_)
        for release, memory in enumerate(state.releases):
            at = state.path[state.trajectory[number[known]], release]
            box = worth(memory.domains[name], memory.lo[axis, at], memory.hi[axis, at])
            low, high = reach((box[0][None], box[1][None]), step, len(state.releases) - release)
            outside |= (at >= 0) & ((now < low[0]) | (now > high[0]))
        if count := int(np.count_nonzero(outside)):
            who = "1 person has" if count == 1 else f"{count:,} people have"
            fix = "correct the cells"
            message = f"{who} moved further since an earlier release than the policy says; {fix}"
            problems.append(Problem(message, column=name, rows=count))
    if problems:
        raise DataError(problems)
