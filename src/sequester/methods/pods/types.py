"""Types of pods: the labels that its seats have, in order. One number per type, in all releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import numbered
from sequester.history.seats import Seats

Numbers = NDArray[np.int32]


class Types:
    """Every type so far, and new ones as they are needed."""

    def __init__(self, before: Seats, label: Numbers) -> None:
        """Of everybody published so far, with their labels."""
        self._labels: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}
        seats: dict[int, dict[int, int]] = {}
        if len(before):
            width = int(before.seat.max()) + 1
            _, first, _ = numbered(before.type.astype(np.int64) * width + before.seat)
            columns = (before.type[first].tolist(), before.seat[first].tolist(), label[first].tolist())
            for kind, seat, own in zip(*columns, strict=True):
                seats.setdefault(kind, {})[seat] = own
        for kind in range(len(seats)):
            self._add(tuple(seats[kind][seat] for seat in range(len(seats[kind]))))

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self._labels)

    def __getitem__(self, number: int) -> tuple[int, ...]:
        """The labels of a type's seats."""
        return self._labels[number]

    def number(self, labels: Iterable[int]) -> int:
        """The type with these labels, whatever their order."""
        wanted = tuple(sorted(labels))
        found = self._number.get(wanted)
        return self._add(wanted) if found is None else found

    def _add(self, labels: tuple[int, ...]) -> int:
        self._number[labels] = len(self._labels)
        self._labels.append(labels)
        return len(self._labels) - 1
