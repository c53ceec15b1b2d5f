"""Exposed people gathered by what exposes them: one value, and one combination of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.history import History


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

    @property
    def releases(self) -> tuple[int, ...]:
        """Counted from 1, as in findings."""
        return tuple(release + 1 for release, _ in self.classes)

    @property
    def numbered(self) -> tuple[tuple[int, int], ...]:
        """The classes counted from 1, as in findings."""
        return tuple((release + 1, number + 1) for release, number in self.classes)


def gather(
    history: History,
    value: NDArray[np.int64],
    *,
    classes: NDArray[np.int32],
    weight: NDArray[np.int64],
    trajectory: NDArray[np.int64] | None = None,
) -> Iterator[Exposure]:
    """Entries with equal value and equal row of `classes` (entries, releases; -1 where none is used) become one."""
    if not len(value):
        return
    keys = np.column_stack([value, classes])
    # Plain lists from here on: there can be many small groups, and a call into numpy for each would cost the most.
    found, entry, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    starts = np.searchsorted(inverse.reshape(-1)[order], np.arange(len(found) + 1)).tolist()
    weights = np.add.reduceat(weight[order], starts[:-1]).tolist()
    whose = None if trajectory is None else trajectory[order].tolist()
    people = _Roster(history)
    for number, (key, first) in enumerate(zip(found.tolist(), entry.tolist(), strict=True)):
        yield Exposure(
            value=key[0],
            classes=tuple((release, place) for release, place in enumerate(key[1:]) if place >= 0),
            entry=first,
            weight=weights[number],
            people=() if whose is None else people.of(whose[starts[number] : starts[number + 1]]),
        )


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
