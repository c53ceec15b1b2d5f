"""What every criterion of one release answers: what is observed in each class, and whether that is enough."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

Name = Literal["k", "confidence", "diversity", "closeness", "alpha", "k-map"]

# Slack for criteria over logarithms and distances, where equality is allowed but not exactly representable.
TOLERANCE = 1e-9

_LARGEST_DENOMINATOR = 10**9


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


def exact(number: float | Fraction) -> Fraction:
    """The rational that was meant by a decimal: 0.7 is 7/10, and the float nearest to 1/3 is 1/3.

    Numerator and denominator stay small enough for products with counts to fit 64 bits. A number with more digits
    than that is rounded down, which for a bound is the stricter side.
    """
    if isinstance(number, Fraction):
        meant = number
    else:
        meant = Fraction(repr(float(number)))
        if meant.denominator > _LARGEST_DENOMINATOR:
            simple = Fraction(number).limit_denominator(10**6)
            meant = simple if float(simple) == number else meant
    if meant.denominator > _LARGEST_DENOMINATOR:
        meant = Fraction(int(meant * _LARGEST_DENOMINATOR), _LARGEST_DENOMINATOR)
    return meant


def shares(counts: Counts) -> NDArray[np.float64]:
    """The share of every value in its class; zeros for an empty class."""
    found: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return found


def plain(number: float | Fraction) -> str:
    """A number without needless digits."""
    return f"{float(number):.10g}"


_LARGEST_KEY = 1 << 62


def row_groups(codes: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For a (attributes, records) array: the group of every record, and the first record of every group.

    Records are in one group exactly when they agree on all attributes. Groups are numbered in lexicographic order.
    """
    key, span = np.zeros(codes.shape[1], np.int64), 1
    for row in codes if codes.shape[1] else ():
        low = int(row.min())
        size = int(row.max()) - low + 1
        if span * size > _LARGEST_KEY:
            # Renumbered, in the same order, keys are small again.
            key = np.unique(key, return_inverse=True)[1].ravel()
            span = int(key.max()) + 1
        key, span = key * size + (row.astype(np.int64) - low), span * size
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group.ravel(), first.astype(np.int64)
