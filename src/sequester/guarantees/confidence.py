"""Bounds on the share of a sensitive value in a class, decided in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING
from sequester.guarantees.criterion import Counts, Criterion, Name, shares
from sequester.rational import exact, plain


@dataclass(frozen=True)
class ShareBound(Criterion):
    """No value's share of a class exceeds its bound: n_s <= c_s |e|. A bound of 1 leaves a value free."""

    bounds: tuple[Fraction, ...]

    monotone: ClassVar[bool] = True
    # A class with too much of one value may be cut into a safe part and a worse one.
    hereditary: ClassVar[bool] = False
    at_least: ClassVar[bool] = False

    @classmethod
    def uniform(cls, bound: float | Fraction, values: int) -> Self:
        """The same bound for all values."""
        return cls((exact(bound),) * values)

    @cached_property
    def numerators(self) -> NDArray[np.int64]:
        """Of each value's bound."""
        return np.array([bound.numerator for bound in self.bounds], np.int64)

    @cached_property
    def denominators(self) -> NDArray[np.int64]:
        """Of each value's bound."""
        return np.array([bound.denominator for bound in self.bounds], np.int64)

    @property
    def required(self) -> float:
        """The strictest bound; with different bounds `worst` says which one is at stake."""
        return float(min(self.bounds, default=Fraction(1)))

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        """In each class the share of the bounded value that is largest for its bound; 0 when no value is bounded."""
        found = shares(counts)
        tightest = self._tightest(found)
        held: NDArray[np.float64] = found[np.arange(len(counts)), tightest] if self._bounded.any() else found[:, 0] * 0
        return held

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        size = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.all(counts * self.denominators <= self.numerators * size, axis=1))

    def worst(self, counts: Counts) -> tuple[float, float]:
        found = shares(counts)
        if not self._bounded.any():
            return self.required, 0.0
        row, value = np.unravel_index(int(np.argmax(self._strain(found))), found.shape)
        return float(self.bounds[value]), float(found[row, value])

    @property
    def _bounded(self) -> NDArray[np.bool_]:
        return self.numerators < self.denominators

    def _strain(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        strain: NDArray[np.float64] = found * self.denominators / np.maximum(self.numerators, 1)
        return np.where(self._bounded, strain, -1.0)

    def _tightest(self, found: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.asarray(np.argmax(self._strain(found), axis=1))

    def _limits(self) -> str:
        limits = sorted({bound for bound in self.bounds if bound < 1})
        return " or ".join(plain(limit) for limit in limits) if limits else "1"


@dataclass(frozen=True)
class Confidence(ShareBound):
    """Confidence bounding (Wang, Fung and Yu 2005, 2007), the c of (k,c)-anonymity (Byun et al. 2009).

    Protects: nobody who knows the target's quasi-identifiers is surer of a bounded value than its bound.
    Does not protect: values declared ordinary (their bound is 1), learning that a value is *not* held, someone who
    knows other members' values, nor against two releases.
    """

    name: ClassVar[Name] = "confidence"

    def describe(self) -> str:
        return f"no bounded value has more than {self._limits()} of a class"


@dataclass(frozen=True)
class AlphaK(ShareBound):
    """The alpha of (alpha,k)-anonymity (Wong, Li, Fu and Wang 2006), for all values or for those named; k is apart.

    Protects and does not protect: as `Confidence`; values not named are free.
    """

    name: ClassVar[Name] = "alpha"

    @classmethod
    def of(cls, alpha: float | Mapping[str, float], values: Sequence[str]) -> Self:
        """One alpha for every value, or one for each named value (with `*` for the others)."""
        return cls(bounds_of(alpha, values, ordinary=(EVERYTHING,)))

    def describe(self) -> str:
        return f"no value has more than alpha = {self._limits()} of a class"


def bounds_of(
    given: float | Mapping[str, float], values: Sequence[str], *, ordinary: Sequence[str] = ()
) -> tuple[Fraction, ...]:
    """One bound per value from a number or a mapping; `*` in a mapping stands for the values it does not name.

    A value named in the mapping is bounded as named even when it is ordinary; without a name, ordinary values and
    values that no `*` covers are free.
    """
    named = dict(given) if isinstance(given, Mapping) else {"*": given}
    other = exact(named.pop("*", 1.0))
    free = set(ordinary)
    return tuple(exact(named[v]) if v in named else Fraction(1) if v in free else other for v in values)
