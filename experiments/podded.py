"""Pods over several tables without files, ledger or policy: who has which seat is carried from release to release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.seats import Seats
from sequester.methods.pods.make import make
from sequester.methods.pods.task import LabelBounds, MadePods, PodTask

Maker = Callable[[PodTask], MadePods]


@dataclass
class Series:
    """What was published so far; people are known by any number of theirs.

    number   per id of a person, her number in `seats`
    label    per person and decoy, her label
    who      per release, the number of every row's person or decoy: the records, then the decoys
    """

    domains: tuple[Hierarchy, ...]
    bounds: LabelBounds
    k: int
    make: Maker = make
    options: dict[str, Any] = field(default_factory=dict)
    seats: Seats = field(default_factory=Seats.none)
    label: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    number: dict[int, int] = field(default_factory=dict)
    who: list[NDArray[np.int64]] = field(default_factory=list)
    made: list[MadePods] = field(default_factory=list)

    def task(self, ids: Sequence[int], codes: NDArray[Any], label: NDArray[Any], *, seed: int) -> PodTask:
        """The next table as the maker is given it."""
        return PodTask(
            codes=np.asarray(codes, np.int32),
            domains=self.domains,
            label=np.asarray(label, np.int32),
            bounds=self.bounds,
            person=np.array([self.number.get(one, -1) for one in ids], np.int64),
            before=self.seats,
            label_before=self.label,
            k=self.k,
            seed=seed,
            **self.options,
        )

    def publish(self, ids: Sequence[int], codes: NDArray[Any], label: NDArray[Any], *, seed: int = 0) -> MadePods:
        """One more release."""
        task = self.task(ids, codes, label, seed=seed)
        made = self.make(task)
        whose = np.concatenate([task.person, made.decoy_person])
        new = np.flatnonzero(whose < 0)
        whose[new] = len(self.seats) + np.arange(len(new))
        pod = np.full(len(self.seats) + len(new), -1, np.int32)
        pod[whose] = made.pod
        labels = np.concatenate([task.label, made.decoy_label])
        self.seats = self.seats.extend(new >= len(task), made.type[new], made.seat[new], pod)
        self.label = np.append(self.label, labels[new]).astype(np.int32)
        self.number.update(zip(ids, whose[: len(task)].tolist(), strict=True))
        self.who.append(whose)
        self.made.append(made)
        return made


def plain(labels: int, confidence: Fraction) -> LabelBounds:
    """One sensitive column, all of whose values are bounded alike."""
    return LabelBounds(np.arange(labels, dtype=np.int32)[None, :], ((confidence,) * labels,))
