"""What an attack returns: findings with witnesses that a person can check by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from sequester.policy.adversaries import AdversaryName
from sequester.viewable import Viewable

Semantics = Literal["exact", "paper"]


@dataclass(frozen=True)
class Finding(Viewable):
    """An attack that works.

    attack     its name; adversary says who can do it
    releases   the releases that are combined, counted from 1
    value      the sensitive value that is inferred; None when identity is what is exposed
    required   the limit that is broken: a confidence at most this, or at least this many people (or rows)
    observed   what the attack reaches
    classes    the classes involved, as (release, class), both counted from 1
    people     ids of those exposed, as given; empty when nobody is known
    witness    what to check by hand, in plain values
    """

    attack: str
    adversary: AdversaryName
    releases: tuple[int, ...]
    required: float
    observed: float
    value: str | None = field(default=None, repr=False)
    classes: tuple[tuple[int, int], ...] = ()
    people: tuple[Any, ...] = field(default=(), repr=False)
    witness: Mapping[str, Any] = field(default_factory=dict, repr=False)
    attribute: str | None = None

    @property
    def about_value(self) -> bool:
        """Whether a value is tied to people too surely; otherwise too few people (or rows) remain."""
        return self.value is not None and self.required <= 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values. Holds sensitive values and person ids: for the publisher, never for a public report."""
        return {
            "attack": self.attack,
            "adversary": self.adversary,
            "releases": list(self.releases),
            "attribute": self.attribute,
            "value": self.value,
            "required": self.required,
            "observed": self.observed,
            "classes": [list(pair) for pair in self.classes],
            "people": list(self.people),
            "witness": dict(self.witness),
        }


class LazyWitness(Mapping[str, Any]):
    """A witness that is put into plain values when somebody first looks at it: of thousands, few are read."""

    def __init__(self, tell: Callable[[], dict[str, Any]]) -> None:
        self._tell = tell

    @cached_property
    def _plain(self) -> dict[str, Any]:
        return self._tell()

    def __getitem__(self, key: str) -> Any:
        return self._plain[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Stored and copied as a plain one, without what it is told from."""
        return dict, (self._plain,)


@dataclass(frozen=True)
class Result:
    """The findings of one attack on one history, and the number it is measured by; None when it cannot be tried.

    unsolved  how much was too large to be decided: rows, or groups of people
    """

    findings: list[Finding] = field(default_factory=list)
    measure: float | None = None
    unsolved: int = field(default=0, kw_only=True)
