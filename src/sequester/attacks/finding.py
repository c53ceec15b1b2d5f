"""What an attack returns: findings with witnesses that a person can check by hand.

Exposed people are gathered by what exposes them: one value, and one combination of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.history import History
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

    notes     what a reader must know about it: one line each, without cells
    unsolved  how much was too large to be decided: rows, or groups of people
    """

    findings: list[Finding] = field(default_factory=list)
    measure: float | None = None
    notes: tuple[str, ...] = ()
    unsolved: int = field(default=0, kw_only=True)


MOST = 10_000
"""The most findings that an attack tells of one sensitive attribute: of more, the worst; the rest is counted."""


@dataclass(frozen=True)
class Exposure:
    """A value and the classes, as (release, class) counted from 0, that together tie people to it.

    entry   the first of the entries it was gathered from
    weight  how many people, where entries come with a weight; people are their ids, where they are known
    """

    value: int
    classes: tuple[tuple[int, int], ...]
    entry: int
    weight: int
    people: tuple[Any, ...]

    def tell(
        self,
        history: History,
        attack: str,
        adversary: AdversaryName,
        *,
        required: Fraction,
        observed: Fraction,
        witness: Mapping[str, Any],
    ) -> Finding:
        """The finding it makes."""
        return Finding(
            attack=attack,
            adversary=adversary,
            releases=tuple(release + 1 for release, _ in self.classes),
            required=float(required),
            observed=float(observed),
            value=history.values[self.value],
            classes=tuple((release + 1, number + 1) for release, number in self.classes),
            people=self.people,
            witness=witness,
            attribute=history.attribute,
        )


def gather(
    history: History,
    value: NDArray[np.int64],
    *,
    classes: NDArray[np.int32],
    weight: NDArray[np.int64],
    degree: NDArray[np.float64],
    trajectory: NDArray[np.int64] | None = None,
) -> tuple[Iterator[Exposure], int]:
    """Entries with equal value and equal row of `classes` (entries, releases; -1 where none is used) become one.

    Of more than `MOST` those of the largest `degree` are told, in the same order; the number is of those left out.
    """
    if not len(value):
        return iter(()), 0
    keys = np.column_stack([value, classes])
    found, entry, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    kept = worst(degree[entry])
    order = np.argsort(inverse.reshape(-1), kind="stable")
    starts = np.searchsorted(inverse.reshape(-1)[order], np.arange(len(found) + 1))
    weights = np.add.reduceat(weight[order], starts[:-1])[kept]
    whose = None if trajectory is None else trajectory[order].tolist()
    # Plain lists from here on: there can be many small groups, and a call into numpy for each would cost the most.
    groups = zip(
        found[kept].tolist(),
        entry[kept].tolist(),
        weights.tolist(),
        starts[kept].tolist(),
        starts[kept + 1].tolist(),
        strict=True,
    )
    told = (
        Exposure(
            value=key[0],
            classes=tuple((release, place) for release, place in enumerate(key[1:]) if place >= 0),
            entry=first,
            weight=heavy,
            people=() if whose is None else history.people_of(whose[start:end]),
        )
        for key, first, heavy, start, end in groups
    )
    return told, len(found) - len(kept)


def worst(degree: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places of the `MOST` largest degrees, in their order; the first of equal ones."""
    if len(degree) <= MOST:
        return np.arange(len(degree))
    return np.sort(np.argsort(-degree, kind="stable")[:MOST])


def leaves_out(found: int) -> bool:
    """Whether so many findings may be the worst of more."""
    return found >= MOST


def keep_worst(findings: list[Finding]) -> tuple[list[Finding], int]:
    """The `MOST` findings that miss what is required by the most, in their order; the number is of the others."""
    if len(findings) <= MOST:
        return findings, 0
    told = worst(np.array([degree_of(finding) for finding in findings]))
    return [findings[place] for place in told.tolist()], len(findings) - len(told)


def degree_of(finding: Finding) -> float:
    """By which factor it misses what is required, whether that is a least or a largest number."""
    low, high = sorted((finding.required, finding.observed))
    return high / low if low > 0 else float("inf")


def say_more(attack: str, attribute: str, more: int) -> tuple[str, ...]:
    """The note about findings that are counted but not told."""
    about = f"{attack} ({attribute})" if attribute else attack
    return (f"{about}: the {MOST:,} worst findings are told; there are {more:,} more",) if more else ()


def name_counts(history: History, counts: Sequence[int]) -> dict[str, int]:
    """The values that occur, by name, with their numbers."""
    return {name: count for name, count in zip(history.values, counts, strict=True) if count}
