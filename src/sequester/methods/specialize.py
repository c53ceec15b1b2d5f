"""Top-down specialization of taxonomy cuts, one cut per attribute for the whole table (Fung, Wang and Yu).

Everything starts as `*`. The value of a cut whose specialization saves most is replaced by its children as long as
every class stays safe. A specialization that is not safe is dropped for good: the criteria are monotone, so it would
not be safe later either, and the result is maximal. Numbers and dates without levels of their own are halved at the
median of their records.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.methods.cells import Cells
from sequester.methods.classes import Classes
from sequester.methods.costs import penalty
from sequester.methods.guard import Guard


def specialize(
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: Guard,
    *,
    loss: Literal["ncp", "precision", "entropy"] = "ncp",
) -> Classes:
    """Recode records (attributes, records) by cuts that no safe specialization can refine."""
    from sequester.kernels.specialize import split_classes

    cells = Cells.of(codes, domains, guard)
    taxonomies = [
        Taxonomy(domain, np.bincount(row, minlength=domain.size), loss)
        for domain, row in zip(domains, codes, strict=True)
    ]
    # Cells in the order of each attribute: the cells of a value of the cut are then one slice.
    orders = [np.argsort(row, kind="stable") for row in cells.codes]
    begins = [
        np.searchsorted(row[order], np.arange(domain.size + 1))
        for row, order, domain in zip(cells.codes, orders, domains, strict=True)
    ]
    lo = [np.zeros(domain.size, np.int32) for domain in domains]
    hi = [np.full(domain.size, domain.size - 1, np.int32) for domain in domains]
    member = np.zeros(len(cells), np.int32)
    local = np.full(len(cells) + 1, -1, np.int32)
    classes = 1
    queue: list[tuple[float, int, int, int]] = []
    for attribute, taxonomy in enumerate(taxonomies):
        queue += taxonomy.offers(attribute, 0, domains[attribute].size - 1)
    heapq.heapify(queue)
    while queue:
        _, attribute, first, last = heapq.heappop(queue)
        starts = taxonomies[attribute].children(first, last)
        touched = orders[attribute][begins[attribute][first] : begins[attribute][last + 1]]
        child = np.searchsorted(starts, cells.codes[attribute][touched], side="right") - 1
        split = split_classes(
            touched, child.astype(np.int32), len(starts), member, classes, local, cells.size, cells.known,
            cells.pair_start, cells.pair_value, cells.pair_count, guard.known, guard.limits,
        )  # fmt: skip
        if split < 0:
            continue
        classes = split
        for start, end in zip(starts.tolist(), [*(starts[1:] - 1).tolist(), last], strict=True):
            lo[attribute][start : end + 1], hi[attribute][start : end + 1] = start, end
            for offer in taxonomies[attribute].offers(attribute, start, end):
                heapq.heappush(queue, offer)
    return cells.classes(lo, hi)


class Taxonomy:
    """The values of one attribute as a tree of intervals, with what each loses."""

    def __init__(self, domain: Hierarchy, frequency: NDArray[np.int64], loss: str) -> None:
        self.domain, self.loss = domain, loss
        self._below = np.append(0, np.cumsum(frequency))
        # sum of f log f, so that the entropy inside any interval is two look-ups
        self._bits = np.append(0.0, np.cumsum(frequency * np.log2(np.maximum(frequency, 1))))
        self._halved = domain.height == 1 and domain.kind in ("number", "date")

    def children(self, first: int, last: int) -> NDArray[np.int64]:
        """Where the parts of an interval begin."""
        if self._halved:
            if self.domain.missing and last == self.domain.size - 1:
                return np.array([first, last])
            half = (self._below[first] + self._below[last + 1]) / 2
            middle = int(np.searchsorted(self._below, half, side="left"))
            return np.array([first, min(max(middle, first + 1), last)])
        for level in range(self.domain.height - 1, -1, -1):
            starts = self.domain.starts[level]
            inside = starts[np.searchsorted(starts, first) : np.searchsorted(starts, last, side="right")]
            if len(inside) > 1:
                return inside.astype(np.int64)
        return np.array([first])

    def offers(self, attribute: int, first: int, last: int) -> Iterator[tuple[float, int, int, int]]:
        """The specialization of an interval as an entry of the queue, best first; nothing for a leaf or no records."""
        if last > first and self._below[last + 1] > self._below[first]:
            starts = self.children(first, last)
            ends = np.append(starts[1:] - 1, last)
            saved = self._cost(np.array([first]), np.array([last])).sum() - self._cost(starts, ends).sum()
            yield -float(saved), attribute, first, last

    def _cost(self, lo: NDArray[np.int64], hi: NDArray[np.int64]) -> NDArray[np.float64]:
        """What all records of each interval lose in this attribute."""
        records = self._below[hi + 1] - self._below[lo]
        if self.loss == "entropy":
            cost: NDArray[np.float64] = records * np.log2(np.maximum(records, 1)) - (
                self._bits[hi + 1] - self._bits[lo]
            )
            return cost
        lost: NDArray[np.float64] = records * penalty(self.loss, self.domain, lo, hi)
        return lost
