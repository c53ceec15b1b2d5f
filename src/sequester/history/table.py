"""Byun's history table H, as a view: what follows for the people of each trajectory from the releases they were in.

Byun et al. keep one row per record (first release, inferable sensitive values, inferable quasi-identifier). People of
one trajectory share that row, so there is one per trajectory; Wong's survival probabilities are shared as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.history.history import History


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """One row per trajectory, in the order of the history's trajectories.

    first     TS: the first release they were in, from 0
    values    IS: (trajectories, values) the multiset meet of their classes' values
    lo, hi    IQ: (quasi-identifiers, trajectories) the meet of their boxes; lo > hi when boxes do not meet
    survival  (trajectories, values) Wong: the probability of never having been linked to the value, when the values
              of different releases are independent
    """

    first: NDArray[np.int64]
    values: NDArray[np.int64]
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    survival: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"<Table: {len(self)} trajectories>"


def table(history: History) -> Table:
    """The history table after all releases.

    An attribute that may change over time is not met across releases: its side is the one of the last box.
    IS is the meet over all releases; a subset of them may tell more about one value, so attacks look at the classes.
    """
    trajectories = history.trajectories
    if trajectories is None:
        raise ValueError("the history table needs to know who is in which class")
    path = trajectories.path
    first = np.argmax(path >= 0, axis=1)
    values = np.full((len(path), len(history.values)), np.iinfo(np.int64).max)
    lo = np.full((len(history.links), len(path)), np.iinfo(np.int32).min, np.int32)
    hi = np.full((len(history.links), len(path)), np.iinfo(np.int32).max, np.int32)
    survival = np.ones((len(path), len(history.values)))
    links = history.links[:, None]
    for number, release in enumerate(history.releases):
        here = np.flatnonzero(path[:, number] >= 0)
        classes = path[here, number]
        values[here] = np.minimum(values[here], release.counts[classes])
        survival[here] *= 1 - release.counts[classes] / release.size[classes][:, None]
        lo[:, here] = np.where(links, np.maximum(lo[:, here], release.lo[:, classes]), release.lo[:, classes])
        hi[:, here] = np.where(links, np.minimum(hi[:, here], release.hi[:, classes]), release.hi[:, classes])
    return Table(first, values, lo, hi, survival)
