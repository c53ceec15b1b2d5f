"""Exposed people gathered by what exposes them: one value, and one combination of classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding, Result
from sequester.history import History
from sequester.policy.adversaries import AdversaryName

MOST = 10_000
"""The most findings that an attack tells of one sensitive attribute: of more, the worst; the rest is counted."""


@dataclass(frozen=True)
class Noted(Result):
    """A result with what a reader must know about it: one line each, without cells."""

    notes: tuple[str, ...] = ()


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
    people = _Roster(history)
    told = (
        Exposure(
            value=key[0],
            classes=tuple((release, place) for release, place in enumerate(key[1:]) if place >= 0),
            entry=first,
            weight=heavy,
            people=() if whose is None else people.of(whose[start:end]),
        )
        for key, first, heavy, start, end in groups
    )
    return told, len(found) - len(kept)


def worst(degree: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places of the `MOST` largest degrees, in their order; the first of equal ones."""
    if len(degree) <= MOST:
        return np.arange(len(degree))
    return np.sort(np.argsort(-degree, kind="stable")[:MOST])


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


class _Roster:
    """People by trajectory, sorted once."""

    def __init__(self, history: History) -> None:
        self._ids = history.people
        if history.trajectories is not None:
            of = history.trajectories.of
            order = np.argsort(of, kind="stable")
            self._order: list[int] = order.tolist()
            self._starts: list[int] = np.searchsorted(of[order], np.arange(len(history.trajectories) + 1)).tolist()

    def of(self, trajectories: Sequence[int]) -> tuple[Any, ...]:
        """Ids of the people of these trajectories, in the order of the history."""
        persons = [person for t in trajectories for person in self._order[self._starts[t] : self._starts[t + 1]]]
        return tuple(self._ids[person] for person in sorted(persons))
