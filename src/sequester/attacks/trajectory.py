"""The trajectory certificate: if every trajectory is large and diverse enough, no combination of releases hurts.

Every set of people that a combination of releases can determine is a union of trajectories. So with at least k people
in each of them no determined set is smaller than k, and tracing, forward, cross and backward attacks leave at least k
candidates; with no value above its bound in any of them the true values themselves are a world in which everyone can
deny, whichever releases are combined. Multiset intersection and changing values are not covered. The certificate is
sufficient, not necessary: it never yields a finding, it tells the other attacks where to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Result, Semantics
from sequester.history import History


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What the trajectories alone prove.

    identity  no trajectory has fewer people than are required of what is inferred
    values    in no trajectory does a value exceed its bound
    open      trajectories that are too small or hold too much of a value: where attacks have to look
    """

    identity: bool
    values: bool
    open: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<Certificate: identity {self.identity}, values {self.values}, {len(self.open)} trajectories open>"


def find(history: History, *, semantics: Semantics = "exact") -> Result:
    """No findings; the measure is the size of the smallest trajectory. Both semantics are the same."""
    if history.trajectories is None or len(history.trajectories) == 0:
        return Result()
    return Result([], float(history.trajectories.size.min()))


def certified(history: History) -> Certificate:
    """Whether the trajectories certify identity and values, and which of them do not."""
    if history.trajectories is None:
        raise ValueError("a certificate needs to know who is in which class")
    small = history.trajectories.size < history.fewest
    too_much = excess(history).any(axis=1)
    return Certificate(not small.any(), not too_much.any(), np.flatnonzero(small | too_much))


def excess(history: History) -> NDArray[np.bool_]:
    """(trajectories, values) whether a value exceeds its bound, or may do so for all that is known."""
    trajectories = history.trajectories
    assert trajectories is not None
    size = trajectories.size[:, None]
    numerator, denominator, bounded = bounds_of(history)
    counts = history.trajectory_counts()
    # A person without a value may have any.
    most = _most(history) if counts is None else counts + size - counts.sum(axis=1, keepdims=True)
    return np.asarray((most * denominator > numerator * size) & bounded)


def bounds_of(history: History) -> tuple[NDArray[np.int64], int, NDArray[np.bool_]]:
    """Numerators of the bounds over one common denominator, that denominator, and which values have a bound."""
    denominator = lcm(*(bound.denominator for bound in history.bounds))
    numerators = np.array([int(bound * denominator) for bound in history.bounds], np.int64)
    return numerators, denominator, numerators < denominator


def _most(history: History) -> NDArray[np.int64]:
    """(trajectories, values) the most people that can have a value when nobody's is known: exact for whole classes."""
    trajectories = history.trajectories
    assert trajectories is not None
    most = np.repeat(trajectories.size[:, None], len(history.values), axis=1)
    for number, release in enumerate(history.releases):
        inside = np.flatnonzero(trajectories.path[:, number] >= 0)
        most[inside] = np.minimum(most[inside], release.counts[trajectories.path[inside, number]])
    return most
