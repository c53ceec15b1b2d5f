"""The table as its distinct quasi-identifiers, for methods that recode values and not records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes

if TYPE_CHECKING:
    from sequester.methods.full_domain.node_kernels import CellTable

_LARGEST_WORD = 2**62
"""Sums of codes below this fit into 64 bits with room to spare."""


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Distinct quasi-identifiers (attributes, cells) with their records, people of the population and value counts.

    The values of cell i and their counts are at `pair_start[i]` to `pair_start[i + 1]`.
    """

    codes: NDArray[np.int32]
    size: NDArray[np.int64]
    known: NDArray[np.int64]
    pair_start: NDArray[np.int64]
    pair_value: NDArray[np.int32]
    pair_count: NDArray[np.int64]
    of_record: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.size)

    @classmethod
    def of(cls, codes: NDArray[np.int32], domains: Sequence[Hierarchy], guard: ClassGuard) -> Cells:
        """Group records (attributes, records), and the population with them, by their quasi-identifier."""
        records = codes.shape[1]
        everyone = np.hstack([codes, guard.population.T]) if guard.known else codes
        member, count = classify(everyone, [domain.size for domain in domains])
        first = np.zeros(count, np.int64)
        first[member[::-1]] = np.arange(len(member))[::-1]
        width = max(guard.limits.numerator.size, 1)
        flat = (member[:records].astype(np.int64)[:, None] * width + guard.values).ravel()
        pairs, pair_count = np.unique(flat, return_counts=True)
        return cls(
            codes=np.ascontiguousarray(everyone[:, first]),
            size=np.bincount(member[:records], minlength=count).astype(np.int64),
            known=np.bincount(member[records:], minlength=count).astype(np.int64),
            pair_start=np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * width).astype(np.int64),
            pair_value=(pairs % width).astype(np.int32),
            pair_count=pair_count.astype(np.int64),
            of_record=member[:records],
        )

    def merged(self, groups: Sequence[NDArray[np.int64]]) -> Cells:
        """The same with cells together that are in the same group of leaves in every attribute."""
        codes = np.array([group[row] for group, row in zip(groups, self.codes, strict=True)], np.int32)
        member, count = classify(codes, [int(group[-1]) + 1 for group in groups])
        first = np.zeros(count, np.int64)
        first[member[::-1]] = np.arange(len(member))[::-1]
        width = int(self.pair_value.max(initial=0)) + 1
        flat = np.repeat(member.astype(np.int64), np.diff(self.pair_start)) * width + self.pair_value
        pairs, place = np.unique(flat, return_inverse=True)
        return Cells(
            codes=np.ascontiguousarray(self.codes[:, first]),
            size=np.bincount(member, self.size, count).astype(np.int64),
            known=np.bincount(member, self.known, count).astype(np.int64),
            pair_start=np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * width).astype(np.int64),
            pair_value=(pairs % width).astype(np.int32),
            pair_count=np.bincount(place, self.pair_count).astype(np.int64),
            of_record=member[self.of_record],
        )

    @cached_property
    def table(self) -> CellTable:
        """The same for compiled loops."""
        from sequester.methods.full_domain.node_kernels import CellTable

        return CellTable(self.codes, self.size, self.known, self.pair_start, self.pair_value, self.pair_count)

    def classes(
        self,
        lo: Sequence[NDArray[np.int32]],
        hi: Sequence[NDArray[np.int32]],
        *,
        kept: NDArray[np.bool_] | None = None,
        levels: tuple[int, ...] | None = None,
    ) -> Classes:
        """The classes when every leaf of an attribute is published as the interval lo[leaf] to hi[leaf].

        Records of cells that are not kept are in no class.
        """
        used = self.size > 0 if kept is None else kept & (self.size > 0)
        sides = np.array([low[codes] for low, codes in zip(lo, self.codes, strict=True)], np.int32)
        member, count = classify(sides[:, used], [len(low) for low in lo])
        of_cell = np.full(len(self), -1, np.int32)
        of_cell[used] = member
        first = np.zeros(count, np.int64)
        first[member] = np.flatnonzero(used)
        ends = np.array([high[codes[first]] for high, codes in zip(hi, self.codes, strict=True)], np.int32)
        return Classes(of_cell[self.of_record], sides[:, first], ends.reshape(len(lo), count), levels)


def classify(codes: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int32], int]:
    """Number the distinct columns of `codes`, whose row i is below sizes[i]; returns the numbers and how many."""
    from sequester.methods.full_domain.node_kernels import classify_cells

    scale, word, words, span = pack(sizes)
    keys = np.zeros((codes.shape[1], words), np.int64)
    for row, factor, place in zip(codes, scale, word.tolist(), strict=True):
        keys[:, place] += row * np.int64(factor)
    room = make_room(codes.shape[1])
    member, count = classify_cells(keys, span if span <= room.size else 0, room)
    return member, int(count)


def pack(sizes: Sequence[int]) -> tuple[list[int], NDArray[np.int64], int, int]:
    """Factors that make sums of codes unique, spread over as few 64-bit words as hold them.

    Returns the factors, the word of each attribute, the number of words, and how many sums one word can have (0 when
    there are several words).
    """
    scale, word = [], np.zeros(len(sizes), np.int64)
    words, radix = 0, 1
    for attribute, size in enumerate(sizes):
        if radix * size > _LARGEST_WORD:
            words, radix = words + 1, 1
        scale.append(radix)
        word[attribute] = words
        radix *= size
    return scale, word, words + 1, radix if words == 0 else 0


def make_room(cells: int) -> NDArray[np.int32]:
    """Room to number cells in: a power of two, at least twice as many places, so that hashing always ends."""
    return np.empty(1 << (2 * cells).bit_length(), np.int32)
