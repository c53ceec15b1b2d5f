"""l-diversity (Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007) in its three forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sequester.errors import PolicyError, Problem
from sequester.guarantees.criterion import TOLERANCE, Counts, Criterion, Declaration, Subject, among, shares
from sequester.policy.protect import DIVERSITY
from sequester.rational import exact, plain

if TYPE_CHECKING:
    from sequester.policy.model import Policy


@dataclass(frozen=True)
class DistinctDiversity(Criterion):
    """Distinct l-diversity: every class has at least l different sensitive values."""

    l: float  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[str] = "diversity"
    kind: ClassVar[str] = "distinct"
    protects: ClassVar[str] = "the exact value, from someone who can rule out fewer than l - 1 values"
    does_not_protect: ClassVar[str] = "against guessing, since one value may hold nearly all of a class"
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
    The whole table must reach log l.
    """

    l: float  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[str] = "diversity"
    kind: ClassVar[str] = "entropy"
    protects: ClassVar[str] = "against confident guessing, on average over the values of a class"
    does_not_protect: ClassVar[str] = "a single rare and grave value"
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
    """

    c: Fraction
    l: int  # noqa: E741 - the name of the parameter everywhere

    name: ClassVar[str] = "diversity"
    kind: ClassVar[str] = "recursive"
    protects: ClassVar[str] = "the most frequent value, which stays uncertain even after l - 2 others are ruled out"
    does_not_protect: ClassVar[str] = "rare values, which may all be grave"
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
    share = shares(counts)
    share = np.where(share > 0, share, 1.0)
    total: NDArray[np.float64] = -(share * np.log(share)).sum(axis=1)
    return total + 0.0


def _ask(subject: Subject) -> Criterion | None:
    options = subject.policy.protect.diversity
    if options is None:
        return None
    match options.kind:
        case "distinct":
            return DistinctDiversity(options.l)
        case "entropy":
            return EntropyDiversity(options.l)
        case "recursive":
            if options.c is None:
                raise PolicyError(Problem("recursive diversity needs c", key="protect.diversity.c"))
            return RecursiveDiversity.of(options.c, options.l)


def _counts_values(policy: Policy) -> bool:
    """Whether what is measured is a number of values, and not a ratio that must stay small."""
    asked = policy.protect.diversity
    return asked is None or asked.kind != "recursive"


def _required(policy: Policy, bound: float | None) -> float | None:
    asked = policy.protect.diversity
    if asked is None:
        return None
    return asked.l if _counts_values(policy) else asked.c


CRITERION = Declaration(
    promise=DIVERSITY,
    forms=(DistinctDiversity, EntropyDiversity, RecursiveDiversity),
    ask=_ask,
    title="Diversity of the sensitive values in a class",
    judged=among(DistinctDiversity),
    smallest=_counts_values,
    required=_required,
)
