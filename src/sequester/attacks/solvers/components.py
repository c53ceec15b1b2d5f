"""Connected components of trajectories: what is published about one says nothing about the people of another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.attacks.trajectory import certified
from sequester.history import History

Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """Trajectories linked by shared classes; being absent together links nobody.

    count        how many there are, numbered from 0
    trajectory   per trajectory, its component
    classes      per release, the component of every class; a class without known people has one of its own
    uncertified  per component, whether one of its trajectories is too small or holds too much of a value
    """

    count: int
    trajectory: Numbers
    classes: tuple[Numbers, ...]
    uncertified: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"<Components: {self.count}, {int(self.uncertified.sum())} uncertified>"

    def touched(self, trajectories: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Per component, whether it holds one of these trajectories (a mask)."""
        found = np.zeros(self.count, np.bool_)
        found[self.trajectory[trajectories]] = True
        return found


def components(history: History, *, releases: tuple[int, ...] | None = None) -> Components:
    """The components of a history, by all releases or by some of them (numbered from 0).

    With some of the releases only, a trajectory that is in none of them has a component of its own.
    """
    trajectories = history.trajectories
    if trajectories is None:
        raise ValueError("components need to know who is in which class")
    used = tuple(range(len(history))) if releases is None else releases
    starts = len(trajectories) + np.cumsum([0, *(len(history.releases[number]) for number in used)])
    ends, classes = [], []
    for start, number in zip(starts[:-1], used, strict=True):
        inside = np.flatnonzero(trajectories.path[:, number] >= 0)
        ends.append(inside)
        classes.append(start + trajectories.path[inside, number])
    nodes = int(starts[-1])
    first, second = (np.concatenate(part) if part else np.zeros(0, np.int64) for part in (ends, classes))
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(nodes, nodes))
    count, label = connected_components(graph, directed=False)
    label = label.astype(np.int32)
    uncertified = np.zeros(count, np.bool_)
    uncertified[label[certified(history).open]] = True
    per_release = tuple(label[start:stop] for start, stop in pairwise(starts))
    return Components(int(count), label[: len(trajectories)], per_release, uncertified)
