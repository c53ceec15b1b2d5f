"""How the people of a large table are divided into parts, once and for good.

A part is a union of boxes of quasi-identifiers that stay with a person, so whoever is published in a part is in it
ever after: no class, pod or lineage crosses parts, and everything that is promised holds of the whole when it holds of
each. Cuts look at how many people there are and at nothing else; who has which sensitive value does not move them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Hierarchy

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]

# Cells of a grid over few attributes, fine enough to cut a hundred million people into parts of a million.
_ATTRIBUTES = 4
_STEPS = 16
# A side with fewer people than this share of a part is not cut off: small parts lose more than they save.
_SMALLEST = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class StepGrid:
    """Cells over some attributes: `edges` are, per attribute, the first codes of its steps, from 0."""

    names: tuple[str, ...]
    edges: tuple[Codes, ...]

    @classmethod
    def over(cls, spread: Mapping[str, Counts]) -> StepGrid:
        """A grid over the attributes with most values, in steps of about as many people; given people per code."""
        chosen = sorted(spread, key=lambda name: (-len(spread[name]), name))[:_ATTRIBUTES]
        return cls(tuple(chosen), tuple(_steps(spread[name]) for name in chosen))

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps per attribute."""
        return tuple(len(edges) for edges in self.edges)

    def steps(self, name: str, codes: Codes) -> Codes:
        """The step of every code of an attribute."""
        edges = self.edges[self.names.index(name)]
        return np.maximum(np.searchsorted(edges, codes, "right") - 1, 0).astype(np.int32)

    def within(self, before: Mapping[str, Hierarchy], now: Mapping[str, Hierarchy]) -> StepGrid:
        """The same cells in later domains, which have more values."""
        pairs = zip(self.names, self.edges, strict=True)
        return StepGrid(self.names, tuple(places(before[name], now[name])[edges] for name, edges in pairs))


@dataclass(frozen=True, eq=False, repr=False)
class Division:
    """The cells of a grid, each in one of `parts` parts."""

    grid: StepGrid
    part: Codes
    parts: int

    def __repr__(self) -> str:
        return f"<Division: {self.parts} parts over {len(self.grid.names)} attributes>"

    @classmethod
    def of(cls, grid: StepGrid, people: Counts, *, most: int) -> Division:
        """Cut the grid until no part has more than `most` people, or cannot be cut; `people` has its shape."""
        part = np.zeros(people.shape, np.int32)
        boxes, parts = [tuple((0, size) for size in people.shape)], 0
        while boxes:
            box = boxes.pop()
            inside = tuple(slice(*side) for side in box)
            cut = _cut(people[inside], most)
            if cut is None:
                part[inside] = parts
                parts += 1
                continue
            axis, at = cut
            first, last = box[axis]
            for side in ((first + at, last), (first, first + at)):
                boxes.append((*box[:axis], side, *box[axis + 1 :]))
        return cls(grid, part, parts)

    def part_of(self, codes: Mapping[str, Codes]) -> Codes:
        """The part of every record, by its codes of the attributes of the grid."""
        steps = [self.grid.steps(name, codes[name]) for name in self.grid.names]
        return self.part[tuple(steps)] if steps else np.zeros(len(next(iter(codes.values()))), np.int32)

    def within(self, before: Mapping[str, Hierarchy], now: Mapping[str, Hierarchy]) -> Division:
        """The same division in later domains."""
        return Division(self.grid.within(before, now), self.part, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the ledger."""
        return {
            "names": list(self.grid.names),
            "edges": [edges.tolist() for edges in self.grid.edges],
            "part": self.part.ravel().tolist(),
            "parts": self.parts,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`."""
        grid = StepGrid(tuple(raw["names"]), tuple(np.array(edges, np.int32) for edges in raw["edges"]))
        return cls(grid, np.array(raw["part"], np.int32).reshape(grid.shape), int(raw["parts"]))


def _steps(people: Counts) -> Codes:
    """The first codes of steps with about as many people each."""
    before = np.concatenate([[0], np.cumsum(people)[:-1]])
    step = before * _STEPS // max(int(people.sum()), 1)
    return np.flatnonzero(np.diff(step, prepend=-1) > 0).astype(np.int32)


def _cut(people: Counts, most: int) -> tuple[int, int] | None:
    """Where to cut a box of cells: the axis and the step that begins the upper side; None to leave it whole.

    The most even cut of each axis; among those that are nearly as even as the best, of the axis with most steps left.
    """
    total = int(people.sum())
    if total <= most:
        return None
    found: list[tuple[int, int, int, int]] = []
    for axis, steps in enumerate(people.shape):
        if steps < 2:
            continue
        below = np.cumsum(people.sum(axis=_others(people.ndim, axis)))[:-1]
        at = int(np.argmin(np.abs(2 * below - total)))
        smaller = int(min(below[at], total - below[at]))
        if smaller >= max(_SMALLEST * most, 1):
            found.append((smaller, steps, axis, at + 1))
    if not found:
        return None
    even = max(smaller for smaller, *_ in found)
    _, _, axis, at = max((one for one in found if 4 * one[0] >= 3 * even), key=lambda one: (one[1], one[0], -one[2]))
    return axis, at


def _others(count: int, axis: int) -> tuple[int, ...]:
    return tuple(place for place in range(count) if place != axis)


def codes_of(names: Sequence[str], codes: Codes) -> dict[str, Codes]:
    """Rows of codes by the names of their attributes."""
    return dict(zip(names, codes, strict=True))
