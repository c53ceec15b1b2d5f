"""What every criterion of one release answers: what is observed in each class, and whether that is enough."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

Name = Literal["k", "confidence", "diversity", "closeness", "alpha", "k-map"]

# Slack for criteria over logarithms and distances, where equality is allowed but not exactly representable.
TOLERANCE = 1e-9


class Criterion(ABC):
    """One promise about every class of a release, over the value counts of one sensitive view.

    name        what findings and measures call it
    monotone    the union of two safe classes is safe, so an unsafe whole has an unsafe part and cuts can be pruned
    hereditary  every non-empty part of an unsafe class is unsafe, so an unsafe class can be given up at once
    at_least    the observed number must not fall below the required one; otherwise it must not exceed it
    """

    name: ClassVar[Name]
    monotone: ClassVar[bool]
    hereditary: ClassVar[bool]
    at_least: ClassVar[bool]

    @property
    @abstractmethod
    def required(self) -> float:
        """The number promised."""

    @abstractmethod
    def observed(self, counts: Counts) -> NDArray[np.float64]:
        """The number found in each class; `counts` has one row per class and one column per value."""

    @abstractmethod
    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        """Whether each class keeps the promise."""

    @abstractmethod
    def describe(self) -> str:
        """The promise as one sentence."""

    def worst(self, counts: Counts) -> tuple[float, float]:
        """What is required and what is observed in the class that is nearest to failing, or fails most."""
        observed = self.observed(counts)
        return self.required, float(observed.min() if self.at_least else observed.max())


@dataclass(frozen=True)
class Outcome:
    """One promise, as found. `observed` is of the class nearest to failing, None when nothing was published."""

    name: Name
    view: str | None
    required: float
    observed: float | None
    holds: bool
    failing: int
    promise: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite ratio (too few different values) is None."""
        observed = None if self.observed is None or math.isinf(self.observed) else self.observed
        return {**self.__dict__, "observed": observed}


def judge(criteria: Sequence[Criterion], counted: Iterable[Counts], *, view: str | None) -> list[Outcome]:
    """Every criterion over the counts of all classes, given some classes at a time."""
    failing = [0] * len(criteria)
    worst: list[list[tuple[float, float]]] = [[] for _ in criteria]
    for counts in counted:
        for index, criterion in enumerate(criteria):
            failing[index] += int(np.count_nonzero(~criterion.holds(counts)))
            worst[index].append(criterion.worst(counts))
    outcomes = []
    for criterion, bad, pairs in zip(criteria, failing, worst, strict=True):
        pick = min if criterion.at_least else max
        required, observed = pick(pairs, key=_strain) if pairs else (criterion.required, None)
        outcomes.append(Outcome(criterion.name, view, required, observed, bad == 0, bad, criterion.describe()))
    return outcomes


def _strain(pair: tuple[float, float]) -> float:
    required, observed = pair
    return observed / required if required else observed


def shares(counts: Counts) -> NDArray[np.float64]:
    """The share of every value in its class; zeros for an empty class."""
    found: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return found
