"""Who may be whose buddy in the releases of a tiny series: every assignment, and the rows that each leaves a target."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from series import Series


class World:
    """The published rows of a series by brute force; worlds are assignments of every row to its buddy."""

    def __init__(self, truth: Series) -> None:
        self.truth = truth
        self.people = range(len(truth.value))

    def rows(self, release: int, value: int) -> list[int]:
        """Classes of the published rows with a value."""
        member = self.truth.member[release]
        return sorted(int(member[p]) for p in self.people if member[p] >= 0 and self.truth.value[p] == value)

    def meets(self, *places: tuple[int, int]) -> bool:
        """Whether some raw record is in all these (release, class) boxes."""
        lo = np.max([self.truth.boxes[release][0][:, number] for release, number in places], axis=0)
        hi = np.min([self.truth.boxes[release][1][:, number] for release, number in places], axis=0)
        return bool((lo <= hi).all())

    def generators(self, first: int, second: int, value: int) -> set[tuple[tuple[int, int], ...]]:
        """Every assignment, as sorted pairs of classes; rows go without a buddy only where people left in between."""
        found = set()
        leaving = self.deleted(first, second)

        def go(left: list[int], free: list[int], pairs: list[tuple[int, int]]) -> None:
            if not left:
                found.add(tuple(sorted(pairs)))
                return
            if leaving:
                go(left[1:], free, pairs)
            for other in set(free):
                if self.meets((first, left[0]), (second, other)):
                    rest = free.copy()
                    rest.remove(other)
                    go(left[1:], rest, [*pairs, (left[0], other)])

        go(self.rows(first, value), self.rows(second, value), [])
        return found

    def deleted(self, first: int, second: int) -> bool:
        return bool(((self.truth.member[first] >= 0) & (self.truth.member[second] < 0)).any())

    def remaining(self, first: int, second: int, pair: tuple[int, int]) -> list[int]:
        """Definitions 3.1 and 3.3: most rows of the group that have the target's quasi-identifier, over all worlds."""
        return [
            max(world.count(pair) for world in self.generators(first, second, value))
            for value in range(self.truth.values)
        ]

    def unforced(self, first: int, second: int, number: int) -> list[int]:
        """Definition 3.5: most rows of the group that have no buddy, over all worlds."""
        return [
            max(
                self.rows(second, s).count(number) - sum(b == number for _, b in world)
                for world in self.generators(first, second, s)
            )
            for s in range(self.truth.values)
        ]

    def left(self, first: int, second: int, pair: tuple[int, int]) -> set[tuple[int, ...]]:
        """Per value the rows that are a target's in her classes (-1: she joined), in every world of all values."""
        a, b = pair
        of_value: list[set[int]] = []
        for value in range(self.truth.values):
            rows = self.rows(second, value).count(b)
            worlds = self.generators(first, second, value)
            of_value.append({world.count(pair) if a >= 0 else rows - sum(q == b for _, q in world) for world in worlds})
        return set(product(*of_value))

    def pairs(self, first: int, second: int) -> dict[tuple[int, int], set[int]]:
        found: dict[tuple[int, int], set[int]] = {}
        for person in self.people:
            a, b = int(self.truth.member[first][person]), int(self.truth.member[second][person])
            if b >= 0:
                found.setdefault((a, b), set()).add(person)
        return found

    def releases(self) -> Iterator[tuple[int, int]]:
        for second in range(len(self.truth.member)):
            for first in range(second):
                yield first, second
