"""What every criterion of one release answers: what is observed in each class, and whether that is enough.

Every module of a criterion ends with its declaration, and `requirement` lists them. Requirements, attacks on single
releases, rows of reports and the documentation are derived from it.

What is looked at as one sensitive value, and how, is a view: criteria are over its value counts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy

if TYPE_CHECKING:
    from sequester.history import History
    from sequester.policy.attributes import Sensitive
    from sequester.policy.model import Policy
    from sequester.policy.protect import ClassPromise

Counts = NDArray[np.int64]

# Slack for criteria over logarithms and distances, where equality is allowed but not exactly representable.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Blame:
    """The value that makes one class fail, by its code, and the promise that it breaks."""

    value: int
    required: float
    observed: float
    promise: str


class Criterion(ABC):
    """One promise about every class of a release, over the value counts of one sensitive view.

    name          what findings and measures call it
    kind          its form, where it has several
    protects      what from whom, and `does_not_protect` what a reader might expect and does not get
    monotone      the union of two safe classes is safe, so an unsafe whole has an unsafe part and cuts can be pruned
    hereditary    every non-empty part of an unsafe class is unsafe, so an unsafe class can be given up at once
    at_least      the observed number must not fall below the required one; otherwise it must not exceed it
    about_values  it is over sensitive values, otherwise over people alone
    whole_domain  values that nobody has matter, too
    """

    name: ClassVar[str]
    kind: ClassVar[str] = ""
    protects: ClassVar[str]
    does_not_protect: ClassVar[str]
    monotone: ClassVar[bool]
    hereditary: ClassVar[bool]
    at_least: ClassVar[bool]
    about_values: ClassVar[bool] = True
    whole_domain: ClassVar[bool] = False

    @property
    @abstractmethod
    def required(self) -> float:
        """The number promised."""

    @abstractmethod
    def observed(self, counts: Counts) -> NDArray[np.float64]:
        """The number in each class; `counts` has one row per class and one column per value."""

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

    def blame(self, counts: Counts) -> Blame | None:
        """The value that is nearest to failing in a class with these counts; None where it is not about one value."""
        return None

    def on(self, view: View) -> Criterion | None:
        """The same over the values of a view; None where it is not defined on them."""
        return self if view.apart else None

    @classmethod
    def together(cls, asked: Sequence[Self | None], view: View, parts: Sequence[Combined]) -> Criterion | None:
        """The same over combinations of attributes, of each of which this is asked."""
        return next((one for one in asked if one is not None), None)

    def in_table(self, counts: Counts) -> Criterion:
        """The same for classes of another table, which has these counts."""
        return self


@dataclass(frozen=True, eq=False)
class Combined:
    """One attribute among combinations: the code that each has, and which bounds the codes must keep."""

    codes: NDArray[np.integer[Any]]
    bounds: Places


@dataclass(frozen=True, eq=False)
class Subject:
    """One sensitive attribute of a policy, of which something may be asked.

    values  what is bounded: its values, or the elements of its cells, each with the values that it stands for
    """

    policy: Policy
    attribute: Sensitive
    domain: Hierarchy
    values: Sequence[Sequence[str]]


def _nothing(*given: Any) -> None:
    return None


@dataclass(frozen=True)
class Declaration:
    """A criterion as everything else knows it.

    promise     as it stands in a policy: its key, words and checks
    forms       the classes that judge it, one for each kind
    ask         what a policy asks of one attribute; None where it asks nothing of the kind
    title       of its row in a report; None where no attack of its own tries it
    judged      what classes of published tables must keep, given one history of these; None where nothing is asked
    smallest    whether fewer is worse in reports, given the policy where that depends on it
    required    the number in reports, given the bound on shares where there is only one
    left_to     given policy and attribute, whether a promise about the series takes its place where nobody knows who is
                in a class
    """

    promise: ClassPromise
    forms: tuple[type[Criterion], ...]
    ask: Callable[[Subject], Criterion | None] = _nothing
    title: str | None = None
    judged: Callable[[History, Policy], Criterion | None] = _nothing
    smallest: bool | Callable[[Policy], bool] = False
    required: Callable[[Policy, float | None], float | None] = _nothing
    left_to: Callable[[Policy, str], bool] = lambda policy, attribute: False

    @property
    def name(self) -> str:
        """What findings and measures call it."""
        return self.forms[0].name


def among(form: type[Criterion]) -> Callable[[History, Policy], Criterion | None]:
    """What a history keeps of criteria with this name."""

    def judged(history: History, policy: Policy) -> Criterion | None:
        return next((one for one in history.criteria if one.name == form.name), None)

    return judged


@dataclass(frozen=True)
class Outcome:
    """One promise, as it turned out. `observed` is of the class nearest to failing, None when nothing was published."""

    name: str
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
    share: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return share


C = TypeVar("C", bound=Criterion)

Places = Sequence[Sequence[int]] | Literal["all"]
"""Per value, which of the bounds that are asked for it must keep; `all`: every value has its own."""


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """An attribute, one element of its sets, or the combination of all.

    codes     one value per record, below `size`
    place     the number of the attribute, None for a combination
    of        per code of the attribute, that of the view
    element   which of the attribute's elements it is about: code 0 says that a record has it, 1 that it does not
    first     of a combination, a record with each
    names     of the values, where they are not those of the attribute
    criteria  what every class must keep

    How its values are looked at decides which criteria are defined on them:

    bounds    which bounds of the attribute its values must keep; None: bounds are about other views of it
    apart     whether its values exclude each other, so that different ones can be counted
    own       whether its values are those of the attribute, in their order
    """

    name: str
    codes: Codes
    size: int
    place: int | None = None
    of: Codes | None = None
    element: str | None = None
    first: NDArray[np.int64] | None = None
    names: tuple[str, ...] | None = None
    criteria: tuple[Criterion, ...] = ()
    bounds: Places | None = None
    apart: bool = False
    own: bool = False

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often the table has each value."""
        return np.bincount(self.codes, minlength=self.size)

    def criterion(self, kind: type[C]) -> C | None:
        """The one of this kind, where it is asked for."""
        return next((one for one in self.criteria if isinstance(one, kind)), None)

    def under(self, asked: Iterable[Criterion]) -> View:
        """The same with those of these criteria that are defined on it."""
        return replace(self, criteria=tuple(seen for one in asked if (seen := one.on(self)) is not None))
