"""l-diversity (Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007) in its three forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.criterion import TOLERANCE, Counts, Criterion, Name, shares
from sequester.rational import exact, plain


@dataclass(frozen=True)
class DistinctDiversity(Criterion):
    """Distinct l-diversity: every class has at least l different sensitive values.

    Protects: the exact value from someone who can rule out fewer than l - 1 values.
    Does not protect: against guessing, since one value may hold nearly all of a class.
    """

    l: float  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[Name] = "diversity"
    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    at_least: ClassVar[bool] = True

    @property
    def required(self) -> float:
        return self.l

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        return np.asarray(np.count_nonzero(counts, axis=1), np.float64)

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        return np.asarray(self.observed(counts) >= self.l)

    def describe(self) -> str:
        return f"every class has at least {plain(self.l)} different values"


@dataclass(frozen=True)
class EntropyDiversity(Criterion):
    """Entropy l-diversity: the entropy of every class is at least log l, so that l equally frequent values suffice.

    What is observed is exp(entropy), the number of equally frequent values that would be as uncertain.
    Protects: against confident guessing on average over the values of a class.
    Does not protect: a single rare and grave value; and the whole table must reach log l.
    """

    l: float  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[Name] = "diversity"
    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    at_least: ClassVar[bool] = True

    @property
    def required(self) -> float:
        return self.l

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        return np.exp(entropies(counts))

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        # Exactly l equally frequent values are enough; their entropy may come out a hair below log l.
        return np.asarray(entropies(counts) >= math.log(self.l) - TOLERANCE)

    def describe(self) -> str:
        return f"the entropy of every class is at least log {plain(self.l)}"


@dataclass(frozen=True)
class RecursiveDiversity(Criterion):
    """Recursive (c,l)-diversity: r_1 < c (r_l + ... + r_m), with the counts of a class in descending order.

    What is observed is r_1 / (r_l + ... + r_m), infinite for a class with fewer than l values.
    Protects: the most frequent value stays uncertain even after an adversary rules out l - 2 others.
    Does not protect: rare values, which may all be grave.
    """

    c: Fraction
    l: int  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[Name] = "diversity"
    monotone: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    at_least: ClassVar[bool] = False

    @classmethod
    def of(cls, c: float, l: float) -> RecursiveDiversity:  # noqa: E741
        """From numbers as written; an l that is not whole is rounded up, which is stricter."""
        return cls(exact(c), math.ceil(l))

    @property
    def required(self) -> float:
        return float(self.c)

    def observed(self, counts: Counts) -> NDArray[np.float64]:
        top, tail = self._top_and_tail(counts)
        ratio = np.full(len(counts), np.inf)
        np.divide(top, tail, out=ratio, where=tail > 0)
        return ratio

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        top, tail = self._top_and_tail(counts)
        return np.asarray(top * self.c.denominator < tail * self.c.numerator)

    def describe(self) -> str:
        return (
            f"in every class the most frequent value is rarer than {plain(self.c)} times those from the {self.l}th on"
        )

    def _top_and_tail(self, counts: Counts) -> tuple[Counts, Counts]:
        ordered = -np.sort(-counts, axis=1)
        return ordered[:, 0], ordered[:, self.l - 1 :].sum(axis=1)


def entropies(counts: Counts) -> NDArray[np.float64]:
    """The entropy of every class, in nats."""
    found = shares(counts)
    found = np.where(found > 0, found, 1.0)
    total: NDArray[np.float64] = -(found * np.log(found)).sum(axis=1)
    return total + 0.0
