"""Values that move by a known step: whoever was published before must be where she can be by now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.errors import DataError, Problem
from sequester.history.drift import exact, reach, worth
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.state import State
from sequester.policy.attributes import Drift
from sequester.policy.model import Policy

# Whoever is published on after leaving stays where she was, and may return from further away than a step.
_FIX = (
    "correct the cells, or, where people were published on after they left and have returned, publish these as near as "
    "they can be with `corrections: keep`"
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Reach(NamedTuple):
    """Where the values of one quasi-identifier can be by now, of the records of people who were published before.

    axis       its place among the quasi-identifiers
    records    these records
    low, high  per such record, the least and the most that all boxes of hers allow
    outside    per such record, whether its value is not between them
    """

    axis: int
    name: str
    records: NDArray[np.int64]
    low: Floats
    high: Floats
    outside: Mask


def reaches(snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> Iterator[Reach]:
    """Of every quasi-identifier that moves by a known step: the ledger has boxes, and each must be in reach.

    number  per record, its person among everybody published before, -1 for newcomers
    """
    known = np.flatnonzero(number >= 0)
    for axis, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
        if not isinstance(attribute.changes, Drift):
            continue
        step = np.array([attribute.changes.by], np.float64)
        now = exact(snapshot.quasi_domains[axis], snapshot.quasi[axis, known])
        low, high = np.full(len(known), -np.inf), np.full(len(known), np.inf)
        for release, memory in enumerate(state.releases):
            at = state.path[state.trajectory[number[known]], release]
            box = worth(memory.domains[name], memory.lo[axis, at], memory.hi[axis, at])
            least, most = reach((box[0][None], box[1][None]), step, len(state.releases) - release)
            low = np.where(at >= 0, np.maximum(low, least[0]), low)
            high = np.where(at >= 0, np.minimum(high, most[0]), high)
        yield Reach(axis, name, known, low, high, (now < low) | (now > high))


def check_moves(snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> None:
    """Refuse values that moved further than the policy says."""
    problems = []
    for there in reaches(snapshot, number, state, policy):
        if count := int(np.count_nonzero(there.outside)):
            who = "1 person has" if count == 1 else f"{count:,} people have"
            message = f"{who} moved further since an earlier release than the policy says; {_FIX}"
            problems.append(Problem(message, column=there.name, rows=count))
    if problems:
        raise DataError(problems)


def keep_in_reach(
    snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy
) -> tuple[Snapshot, dict[str, Mask]]:
    """The table, values that moved too far at the nearest place in reach that the domain has, and which they are."""
    quasi, moved = snapshot.quasi.copy(), {}
    for there in reaches(snapshot, number, state, policy):
        domain = snapshot.quasi_domains[there.axis]
        leaves = exact(domain, np.arange(domain.size - int(domain.missing)))
        first = np.searchsorted(leaves, there.low, "left")
        last = np.searchsorted(leaves, there.high, "right") - 1
        some = there.outside & (first <= last)
        rows = there.records[some]
        quasi[there.axis, rows] = np.clip(quasi[there.axis, rows], first[some], last[some])
        mask: Mask = np.zeros(len(snapshot), np.bool_)
        mask[rows] = True
        moved[there.name] = mask
    return replace(snapshot, quasi=quasi), moved
