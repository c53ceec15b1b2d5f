"""What a kind of attribute is: one object per kind knows everything about its values.

It says which options of the policy go with it and how they must fit, reads cells, builds domains, writes intervals and
reads what was published, by us or by others, and puts itself into words. Everything else asks it, or one of its
traits; nothing outside this folder compares kinds by name.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.policy.attributes import QuasiIdentifier, Sensitive

Mask = NDArray[np.bool_]
Span = tuple[int, int]
Issue = tuple[tuple[str | int, ...], str]
"""What is wrong with a policy: the key below the attribute, and a sentence."""


class Fault(NamedTuple):
    """Distinct cells that are no values of their kind: which, what one row of them or many are, and what to do."""

    wrong: Mask
    one: str
    many: str
    fix: str


class Parsed(NamedTuple):
    """Distinct cells as values (text as an Arrow array, numbers as float64, dates as datetime64[D]), and the faults."""

    values: Any
    faults: tuple[Fault, ...] = ()


class Kind:
    """The defaults are those of values that are words.

    options   keys of the policy that only go with this kind, or another that has them too
    ordered   values have an order of their own: an interval is written by its ends, and a new value has its place.
              Otherwise an interval is a set of names, and new values come last
    measured  values lie on a scale: what an interval loses is its width, a value may move by a step, and a domain
              without levels is cut in halves
    numeric   values can be published as two bounds or a middle
    several   a cell has several values
    between   what stands between the ends of an interval
    written   how a published cell says what it is, in a word for programs
    unit      what a step is counted in
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    ordered: ClassVar[bool] = True
    measured: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    several: ClassVar[bool] = False
    between: ClassVar[str] = "-"
    written: ClassVar[str] = "group"
    unit: ClassVar[str] = ""

    # The policy.

    def check(self, given: Mapping[str, Any]) -> Iterator[Issue]:
        """What is wrong with the options of an attribute, as they are given; those of the wrong type are skipped."""
        yield from ()

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        """What happens to a column, in a few words."""
        yield from ()

    def without_levels(self, attribute: QuasiIdentifier) -> str | None:
        """What an attribute needs to have levels between its values and `*`; None when it has them."""
        return None

    def notes(self, name: str, attribute: QuasiIdentifier) -> Iterator[str]:
        """What is allowed but may not be meant."""
        yield from ()

    # The dictionary, in which letters stand for values.

    def notation(self, attribute: QuasiIdentifier) -> str:
        """How a generalized cell is written."""
        raise NotImplementedError

    def levels(self, attribute: QuasiIdentifier, path: Callable[[str], Path]) -> str:
        """The steps by which cells become more general."""
        raise NotImplementedError

    def sensitive_notation(self, attribute: Sensitive) -> str:
        """How a sensitive cell is written."""
        return "a value"

    # Domains.

    def declared(self, attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
        """The domain that the policy alone fixes, if it does."""
        return None

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        """The domain of these distinct values, as they are parsed."""
        raise NotImplementedError

    def worth(self, leaves: NDArray[Any]) -> NDArray[Any]:
        """Leaves as what they are compared by: words as they are, dates as days."""
        return leaves

    # The cells of a private table.

    def parse(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array, present: Mask) -> Parsed:
        """Distinct cells as values; those that are not `present` mean no value and are never at fault."""
        from sequester.domain.codec import to_text

        return Parsed(to_text(cells))

    def codes(self, attribute: QuasiIdentifier | Sensitive, domain: Hierarchy, values: Any) -> Codes:
        """The code of every value; -1 for what the domain does not have."""
        from sequester.domain.codec import to_codes

        return to_codes(domain, values)

    # The cells of a published table.

    def texts(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array) -> list[str | None]:
        """Distinct published cells, raw or generalized, as the text that `span` understands."""
        from sequester.domain.codec import to_text

        return list(to_text(cells).to_pylist())

    def span(self, text: str, scale: Sequence[Any]) -> Span | None:
        """The first and last place among what leaves are worth that a text stands for, if it is no name."""
        return None

    def raw_codes(self, attribute: Sensitive, texts: Sequence[str]) -> Codes:
        """The codes of raw sensitive values where they are published by other names; -1 for what is none."""
        return np.full(len(texts), -1, np.int32)

    def may_list(self, text: str) -> bool:
        """Whether a text with commas may be a list of values."""
        return True

    def is_open(self, text: str) -> bool:
        """Whether a text such as `>=65` has no end on some side, so that the values seen do not bound it."""
        return False

    def ends(self, attribute: QuasiIdentifier, texts: Sequence[str]) -> Any:
        """The distinct values at the ends of what published texts say: what is known of an undeclared domain."""
        raise NotImplementedError

    def explains(self, ends: Any) -> bool:
        """Whether a domain that is declared can have these ends."""
        return True

    def with_another(self, attribute: QuasiIdentifier, ends: Any) -> Any:
        """The same ends and one more, where something else must be possible."""
        raise NotImplementedError


def between(scale: Sequence[Any], low: Any, high: Any) -> Span | None:
    """The places of all that lies from `low` to `high`, both included; None for nothing."""
    return span_of(bisect_left(scale, low), bisect_right(scale, high) - 1)


def span_of(first: int, last: int) -> Span | None:
    """Both, unless nothing is between them."""
    return (first, last) if first <= last else None


def amount(count: int, noun: str) -> str:
    """'1 band', '2 bands'."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def numbers_in(given: object) -> list[float] | None:
    """A list of the policy as numbers; None when it is no list of at least one, or not all of them are numbers."""
    if not isinstance(given, list | tuple) or not given:
        return None
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in given):
        return None
    try:
        return [float(item) for item in given]
    except OverflowError:
        return None


def finite_in(given: object) -> list[float] | None:
    """The same where all of them are finite."""
    numbers = numbers_in(given)
    return numbers if numbers and all(map(math.isfinite, numbers)) else None
