"""Bounds on the share of a sensitive value in a class, decided in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, UNSEEN
from sequester.guarantees.criterion import Blame, Combined, Counts, Criterion, Declaration, Subject, shares
from sequester.guarantees.lifetime import rests_on_lifetime
from sequester.policy.protect import ALPHA, CONFIDENCE
from sequester.rational import exact, plain

if TYPE_CHECKING:
    from sequester.guarantees.criterion import Places, View
    from sequester.history import History
    from sequester.policy.model import Policy

FREE = Fraction(1)
"""The bound of a value that may be that of a whole class."""


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
        share = shares(counts)
        tightest = self._tightest(share)
        held: NDArray[np.float64] = share[np.arange(len(counts)), tightest] if self._bounded.any() else share[:, 0] * 0
        return held

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        size = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.all(counts * self.denominators <= self.numerators * size, axis=1))

    def worst(self, counts: Counts) -> tuple[float, float]:
        share = shares(counts)
        if not self._bounded.any():
            return self.required, 0.0
        row, value = np.unravel_index(int(np.argmax(self._strain(share))), share.shape)
        return float(self.bounds[value]), float(share[row, value])

    def blame(self, counts: Counts) -> Blame:
        value = int(np.argmax(np.where(self._bounded, counts, 0) * (self.denominators / self.numerators)))
        return Blame(value, float(self.bounds[value]), int(counts[value]) / int(counts.sum()), self.name)

    def on(self, view: View) -> Self | None:
        return None if view.bounds is None else self._of(view.bounds)

    @classmethod
    def together(cls, asked: Sequence[Self | None], view: View, parts: Sequence[Combined]) -> Self | None:
        """A combination reveals all its parts, so it is bounded as its strictest part."""
        bounds = [(one._of(part.bounds).bounds, part.codes) for one, part in zip(asked, parts, strict=True) if one]
        steps = sorted({FREE, *(bound for limits, _ in bounds for bound in limits)})
        rank = np.full(view.size, len(steps) - 1)
        for limits, codes in bounds:
            rank = np.minimum(rank, np.array([steps.index(bound) for bound in limits])[codes])
        return cls(tuple(steps[place] for place in rank.tolist())) if bounds else None

    def _of(self, places: Places) -> Self:
        """The bounds of values that must keep these, the strictest of several; those of none are free."""
        if places == "all":
            return self
        return type(self)(tuple(min((self.bounds[place] for place in some), default=FREE) for some in places))

    @property
    def _bounded(self) -> NDArray[np.bool_]:
        return self.numerators < self.denominators

    def _strain(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        strain: NDArray[np.float64] = share * self.denominators / np.maximum(self.numerators, 1)
        return np.where(self._bounded, strain, -1.0)

    def _tightest(self, share: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.asarray(np.argmax(self._strain(share), axis=1))

    def _limits(self) -> str:
        limits = sorted({bound for bound in self.bounds if bound < 1})
        return " or ".join(plain(limit) for limit in limits) if limits else "1"


@dataclass(frozen=True)
class Confidence(ShareBound):
    """Confidence bounding (Wang, Fung and Yu 2005, 2007), the c of (k,c)-anonymity (Byun et al. 2009)."""

    name: ClassVar[str] = "confidence"
    protects: ClassVar[str] = "a bounded value: whoever knows the target's quasi-identifiers is no surer than its bound"
    does_not_protect: ClassVar[str] = (
        "what is known of people like her; ordinary values; learning that a value is *not* held; against someone who "
        "knows values of others in the class; against two releases"
    )

    def describe(self) -> str:
        return f"no bounded value has more than {self._limits()} of a class"


@dataclass(frozen=True)
class AlphaK(ShareBound):
    """The alpha of (alpha,k)-anonymity (Wong, Li, Fu and Wang 2006), for all values or for those named; k is apart."""

    name: ClassVar[str] = "alpha"
    protects: ClassVar[str] = "as confidence, ordinary values, too"
    does_not_protect: ClassVar[str] = "values that are not named, where some are; otherwise as confidence"

    @classmethod
    def of(cls, alpha: float | Mapping[str, float], values: Sequence[str]) -> Self:
        """One alpha for every value, or one for each named value (with `*` for the others)."""
        return cls(bounds_of(alpha, values, ordinary=(EVERYTHING,)))

    def describe(self) -> str:
        return f"no value has more than alpha = {self._limits()} of a class"


@dataclass(frozen=True)
class StrictestShares(Confidence):
    """Several bounds on the same shares, judged as one: each value by the strictest, and told by whose that is."""

    of: tuple[ShareBound, ...]

    @classmethod
    def strictest(cls, *of: ShareBound) -> StrictestShares:
        """The first of equally strict ones is told."""
        return cls(tuple(map(min, *(one.bounds for one in of))) if len(of) > 1 else of[0].bounds, of)

    def blame(self, counts: Counts) -> Blame:
        told = super().blame(counts)
        whose = next(one.name for one in self.of if one.bounds[told.value] == self.bounds[told.value])
        return replace(told, promise=whose)


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
    return tuple(exact(named[v]) if v in named else FREE if v in free else other for v in values)


def _strictest_of(
    given: float | Mapping[str, float], subject: Subject, ordinary: Sequence[str]
) -> tuple[Fraction, ...]:
    """Per value or element the bound of the strictest of what it stands for."""
    return tuple(min(bounds_of(given, values, ordinary=ordinary), default=FREE) for values in subject.values)


def _ask_confidence(subject: Subject) -> Confidence | None:
    own = subject.attribute.confidence
    given = subject.policy.protect.confidence if own is None else own
    ordinary = (*subject.attribute.ordinary, EVERYTHING, UNSEEN)
    return None if given is None else Confidence(_strictest_of(given, subject, ordinary))


def _ask_alpha(subject: Subject) -> AlphaK | None:
    given = subject.policy.protect.alpha
    return None if given is None else AlphaK(_strictest_of(given, subject, (EVERYTHING,)))


def judged_shares(
    bounds: tuple[Fraction, ...], values: Sequence[str], alpha: float | Mapping[str, float] | None
) -> StrictestShares | None:
    """Confidence and alpha together, each value by the stricter of its two bounds; None where nothing is bounded."""
    also = () if alpha is None else (AlphaK.of(alpha, values),)
    strictest = StrictestShares.strictest(Confidence(bounds), *also)
    return strictest if any(bound < 1 for bound in strictest.bounds) else None


def _judged(history: History, policy: Policy) -> StrictestShares | None:
    # Policies name values only where there is one sensitive attribute, so names need no more than this history.
    return judged_shares(history.bounds, history.values, policy.protect.alpha if history.attribute else None)


CRITERIA = (
    Declaration(
        promise=CONFIDENCE,
        forms=(Confidence,),
        ask=_ask_confidence,
        title="Share of one sensitive value in a class",
        judged=_judged,
        required=lambda policy, bound: bound,
        left_to=rests_on_lifetime,
    ),
    Declaration(promise=ALPHA, forms=(AlphaK,), ask=_ask_alpha),
)
