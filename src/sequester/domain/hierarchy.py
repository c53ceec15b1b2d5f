"""Ordered leaves with nested levels, so that every generalized value is one interval of leaf codes.

A taxonomy lists its leaves depth-first; numbers, dates and codes list theirs in sorted order. Level 0 keeps the
leaves apart and the last level is the single group `*`. Because levels are nested partitions into intervals, a level
is stored as nothing but the sorted first codes of its groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]

EVERYTHING = "*"
MISSING = "missing"
UNSEEN = "\N{NO-BREAK SPACE}"
"""Stands for the values of a column of which none is shown."""


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """The domain of one attribute. Frozen: a series keeps it for all its releases.

    kind      what the leaves are, by its name in `kinds`: bands and sets are categories
    leaves    raw values in code order: str for categories and codes, float64 numbers, datetime64[D] dates.
              When `missing` is true the last leaf stands for a missing value.
    starts    per level, the first code of every group, ascending; `starts[0]` is every code, `starts[-1]` is [0].
    names     per level, the published name of every group; names[0] are the leaves as text.
    position  where each leaf lies on [0, 1], for measuring how wide an interval is. A missing leaf lies at 2, so
              that mixing it with anything else counts as losing everything once widths are capped at 1.
    aliases   further names that are understood but never published: a root's label, a level that repeats another.
    """

    kind: str
    leaves: NDArray[Any]
    starts: tuple[Codes, ...]
    names: tuple[tuple[str, ...], ...]
    position: NDArray[np.float64]
    missing: bool = False
    aliases: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.leaves)
        assert n > 0
        assert len(self.position) == n
        assert len(self.starts[0]) == n
        assert len(self.starts[-1]) == 1
        assert all(len(s) == len(names) for s, names in zip(self.starts, self.names, strict=True))

    def __repr__(self) -> str:
        return f"<Hierarchy {self.kind}: {self.size} leaves, {self.height + 1} levels>"

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    @property
    def height(self) -> int:
        """The level at which everything is one group; 0 when there is only one leaf."""
        return len(self.starts) - 1

    @property
    def values(self) -> NDArray[Any]:
        """The leaves without the one that stands for a missing value."""
        return self.leaves[:-1] if self.missing else self.leaves

    def groups(self, level: int) -> Codes:
        """For every leaf, the number of its group at this level."""
        marks = np.zeros(self.size, np.int32)
        marks[self.starts[level][1:]] = 1
        return np.cumsum(marks, dtype=np.int32)

    def bounds(self, level: int) -> tuple[Codes, Codes]:
        """For every group of this level, its first and its last code."""
        first = self.starts[level]
        last = np.append(first[1:], self.size).astype(np.int32) - np.int32(1)
        return first, last

    @cached_property
    def group_names(self) -> dict[tuple[int, int], str]:
        """(first, last) code of every group, at any level, to the name it is published under (finest level wins)."""
        names: dict[tuple[int, int], str] = {}
        for level in range(self.height + 1):
            first, last = self.bounds(level)
            for group, name in zip(zip(first.tolist(), last.tolist(), strict=True), self.names[level], strict=True):
                names.setdefault(group, name)
        return names

    @cached_property
    def labels(self) -> dict[str, tuple[int, int]]:
        """Every name a group can be read by, to its (first, last) code.

        The leaves of numbers and dates are left out: there are many, and they are read as numbers and dates.
        """
        spans = {EVERYTHING: (0, self.size - 1)}
        if self.missing:
            spans[MISSING] = (self.size - 1, self.size - 1)
        for name, group in self.named_groups():
            spans.setdefault(name, group)
        return spans

    def named_groups(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Every name of every group, finest first, then the aliases; without the leaves of numbers and dates."""
        for level in range(0 if self.leaves.dtype == object else 1, self.height + 1):
            first, last = self.bounds(level)
            yield from zip(self.names[level], zip(first.tolist(), last.tolist(), strict=True), strict=True)
        yield from self.aliases.items()

    def is_group(self, lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which intervals are a leaf, or a group that has a name."""
        found = np.zeros(len(lo), np.bool_)
        for level in range(self.height + 1):
            first, last = self.bounds(level)
            group = np.searchsorted(first, lo, side="right") - 1
            found |= (first[group] == lo) & (last[group] == hi)
        return found

    def width(self, lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """How much of the domain each interval spans: 0 for one leaf, 1 for everything (Byun et al., Definition 4)."""
        spans: NDArray[np.float64] = np.minimum(self.position[hi] - self.position[lo], 1.0)
        return spans

    def level_of(self, lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The lowest level at which each interval lies inside one group."""
        level = np.zeros(len(lo), np.int32)
        for step in range(self.height):
            groups = self.groups(step)
            level += ((level == step) & (groups[lo] != groups[hi])).astype(np.int32)
        return level


def side_by_side(domains: Sequence[Hierarchy]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The positions of all leaves, one domain after the other, and where each domain begins: for compiled loops."""
    first = np.cumsum([0, *(domain.size for domain in domains)]).astype(np.int64)
    return np.concatenate([domain.position for domain in domains]), first


def nested(
    kind: str,
    leaves: NDArray[Any],
    levels: Sequence[tuple[Codes, tuple[str, ...]]],
    *,
    position: NDArray[np.float64] | None = None,
    missing: bool = False,
) -> Hierarchy:
    """A hierarchy from its levels, finest first; adds `*` on top and the missing leaf at the end.

    A level that is no coarser than the one below it, or that is one group, is no level of its own: its names become
    aliases.
    """
    names = [tuple(level[1]) for level in levels]
    starts = [np.asarray(level[0], np.int32) for level in levels]
    if leaves.dtype.kind == "U":
        # A fixed width would cut the name of the missing leaf.
        leaves = leaves.astype(object)
    if missing:
        # A category's missing leaf is one more leaf; elsewhere it is off the scale (see `position`).
        leaves = np.append(leaves, np.array([_absent(leaves)], leaves.dtype))
        starts = [np.append(s, np.int32(len(leaves) - 1)) for s in starts]
        names = [(*n, MISSING) for n in names]
        if position is not None:
            position = np.append(position, 2.0)
    if position is None:
        position = np.arange(len(leaves)) / max(len(leaves) - 1, 1)
    kept: list[tuple[Codes, tuple[str, ...]]] = [(starts[0], names[0])]
    aliases: dict[str, tuple[int, int]] = {}
    for start, name in zip(starts[1:], names[1:], strict=True):
        if 1 < len(start) < len(kept[-1][0]):
            kept.append((start, name))
        else:
            last = np.append(start[1:], len(leaves)) - 1
            aliases.update(zip(name, zip(start.tolist(), last.tolist(), strict=True), strict=True))
    if len(kept[-1][0]) > 1:
        kept.append((np.zeros(1, np.int32), (EVERYTHING,)))
    return Hierarchy(
        kind=kind,
        leaves=leaves,
        starts=tuple(start for start, _ in kept),
        names=tuple(name for _, name in kept),
        position=np.asarray(position, np.float64),
        missing=missing,
        aliases=aliases,
    )


def with_blank(domain: Hierarchy) -> Hierarchy:
    """The same with `*` as one more leaf, before the missing one: what is published of a value that is suppressed."""
    if EVERYTHING in domain.names[0]:
        return domain
    at = domain.size - 1 if domain.missing else domain.size
    place = [len(starts) - 1 if domain.missing else len(starts) for starts in domain.starts[:-1]]
    shifted = [np.where(starts >= at, starts + 1, starts).astype(np.int32) for starts in domain.starts[:-1]]
    starts = [np.insert(below, spot, np.int32(at)) for below, spot in zip(shifted, place, strict=True)]
    names = [(*n[:spot], EVERYTHING, *n[spot:]) for n, spot in zip(domain.names[:-1], place, strict=True)]
    if not starts:
        starts, names = [np.arange(2, dtype=np.int32)], [(*domain.names[0], EVERYTHING)]
    return Hierarchy(
        kind=domain.kind,
        leaves=np.insert(domain.leaves.astype(object), at, EVERYTHING),
        starts=(*starts, np.zeros(1, np.int32)),
        names=(*names, (EVERYTHING,)),
        position=np.insert(domain.position, at, 0.0),
        missing=domain.missing,
        aliases=domain.aliases,
    )


def sorted_places(known: NDArray[Any], wanted: NDArray[Any]) -> Codes:
    """Where values are among others in order; -1 for those that are not."""
    if not len(known):
        return np.full(len(wanted), -1, np.int32)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int32)
    places[known[places] != wanted] = -1
    return places


def _absent(leaves: NDArray[Any]) -> Any:
    if leaves.dtype.kind == "f":
        return np.nan
    if leaves.dtype.kind == "M":
        return np.datetime64("NaT")
    return MISSING
