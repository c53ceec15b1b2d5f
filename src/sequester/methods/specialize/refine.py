"""Top-down specialization of taxonomy cuts, one cut per attribute for the whole table (Fung, Wang and Yu).

Everything starts as `*`. The value of a cut whose specialization scores best is replaced by its children as long as
every class stays safe. A specialization that is not safe is dropped for good: the criteria are monotone, so it would
not be safe later either, and the result is maximal. Numbers and dates without levels of their own are halved at the
median of their records.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import is_halved
from sequester.errors import PolicyError, Problem
from sequester.methods.cells import Cells
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.costs import penalty
from sequester.methods.series_guard.guard import Answer

if TYPE_CHECKING:
    from sequester.ingest.snapshot import Snapshot
    from sequester.policy.methods import Specialize

Loss = Literal["ncp", "precision", "entropy"]
Score = Literal["loss", "discernibility", "information-gain", "loss-per-anonymity"]
Integers = NDArray[np.int64]


def specialize(
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    loss: Loss = "ncp",
    score: Score = "loss",
    label: NDArray[np.int32] | None = None,
) -> Classes:
    """Recode records (attributes, records) by cuts that no safe specialization can refine.

    score  which specialization comes first: the one that saves most loss; that splits the largest classes
           (discernibility); that tells most about `label`, a code per record (information-gain); or that saves most
           loss for what it takes from the smallest class
    """
    return refined(codes, guard, taxonomies_of(codes, domains, loss=loss), score=score, label=label)


def refined(
    codes: NDArray[np.int32],
    guard: ClassGuard,
    taxonomies: Sequence[Taxonomy],
    *,
    score: Score,
    label: NDArray[np.int32] | None,
    judge: Callable[[Classes], Answer] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Classes:
    """The cuts that no specialization of these taxonomies can refine that is safe by itself, and for the judge.

    What a judge does not allow now is tried again after every step. Whether one class is safe is not asked.
    """
    from sequester.methods.specialize.refine_kernels import keep_limits

    domains = [taxonomy.domain for taxonomy in taxonomies]
    cells = Cells.of(codes, domains, guard)
    grid = CutCells.of(cells.codes, cells.size, domains)
    offers = Offers(Rating.of(score, taxonomies, grid, codes=codes, label=label))
    for attribute, domain in enumerate(domains):
        offers.offer(attribute, 0, domain.size - 1)
    later: list[Offer] = []
    steps = 0
    while (offer := offers.pop()) is not None:
        ordered, begin = grid.parts(offer)
        if not keep_limits(cells.table, ordered, begin, guard.known, guard.limits):
            continue
        answer = Answer.YES if judge is None else judge(cells.classes(*grid.sides(offer)))
        if answer is Answer.NOT_NOW:
            later.append(offer)
        if answer is not Answer.YES:
            continue
        grid.refine(offer, ordered, begin)
        for start, end in offer.parts():
            offers.offer(offer.attribute, start, end)
        for waiting in later:
            offers.put(waiting)
        later.clear()
        steps += 1
        if progress is not None:
            progress("specializing", steps, steps + 1 + len(offers))
    return cells.classes(grid.lo, grid.hi)


def label_of(records: Snapshot, method: Specialize) -> NDArray[np.int32] | None:
    """Per record the code of the label that refinements should tell about; None when the score needs none."""
    import pyarrow.compute as pc

    needed, name = method.score == "information-gain", method.label
    if name is None and not needed:
        return None
    columns = (*records.sensitive_names, *records.insensitive.column_names)
    if name is None or not needed or name not in columns:
        message = (
            "is only for score information-gain; leave it out"
            if not needed
            else f"must name a sensitive or insensitive column that information is gained about: {', '.join(columns)}"
        )
        raise PolicyError(Problem(message, key="method.label"))
    if name in records.sensitive_names:
        return records.codes(name)
    # Nothing is known of people who left and are kept in the release: that is a label of its own.
    found = pc.dictionary_encode(records.insensitive[name].combine_chunks(), null_encoding="encode")
    return np.asarray(found.indices.to_numpy(zero_copy_only=False), np.int32)


class Offer(NamedTuple):
    """A value of a cut, as an interval of codes, and where its children begin."""

    attribute: int
    first: int
    last: int
    starts: Integers

    def parts(self) -> list[tuple[int, int]]:
        """The children as intervals."""
        return list(zip(self.starts.tolist(), [*(self.starts[1:] - 1).tolist(), self.last], strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class CutCells:
    """Distinct records (attributes, cells) in the classes of the cuts so far.

    order   per attribute the cells in the order of their codes: those of a value of a cut are one slice
    begin   per attribute and code, where its cells begin in the order
    lo, hi  per attribute and code, the value of the cut it is published as
    """

    codes: NDArray[np.int32]
    size: Integers
    member: NDArray[np.int32]
    order: list[Integers]
    begin: list[Integers]
    lo: list[NDArray[np.int32]]
    hi: list[NDArray[np.int32]]

    @classmethod
    def of(cls, codes: NDArray[np.int32], size: Integers, domains: Sequence[Hierarchy]) -> CutCells:
        """All cells in one class."""
        # Short codes are sorted by counting, not by comparing.
        short = [np.int16 if domain.size < 1 << 15 else np.int32 for domain in domains]
        order = [np.argsort(row.astype(kind), kind="stable") for row, kind in zip(codes, short, strict=True)]
        return cls(
            codes,
            size,
            np.zeros(codes.shape[1], np.int32),
            order,
            [
                np.searchsorted(row[place], np.arange(domain.size + 1))
                for row, place, domain in zip(codes, order, domains, strict=True)
            ],
            [np.zeros(domain.size, np.int32) for domain in domains],
            [np.full(domain.size, domain.size - 1, np.int32) for domain in domains],
        )

    def touched(self, offer: Offer) -> Integers:
        """The cells of a value of a cut: whole classes."""
        begin = self.begin[offer.attribute]
        found: Integers = self.order[offer.attribute][begin[offer.first] : begin[offer.last + 1]]
        return found

    def children(self, offer: Offer) -> NDArray[np.int32]:
        """Per touched cell, the number of the child it goes to."""
        code = self.codes[offer.attribute][self.touched(offer)]
        return np.asarray(np.searchsorted(offer.starts, code, side="right") - 1, np.int32)

    def parts(self, offer: Offer) -> tuple[Integers, Integers]:
        """The touched cells by class and child, and where each of the parts they would be begins, and the last ends."""
        touched = self.touched(offer)
        key = self.member[touched].astype(np.int64) * len(offer.starts) + self.children(offer)
        order = np.argsort(key, kind="stable")
        return touched[order], np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), len(order))

    def sides(self, offer: Offer) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """Per attribute and code what would be published with the children in place of the value."""
        lo, hi = list(self.lo), list(self.hi)
        lo[offer.attribute], hi[offer.attribute] = lo[offer.attribute].copy(), hi[offer.attribute].copy()
        for start, end in offer.parts():
            lo[offer.attribute][start : end + 1], hi[offer.attribute][start : end + 1] = start, end
        return lo, hi

    def refine(self, offer: Offer, ordered: Integers, begin: Integers) -> None:
        """Publish the children in place of the value; of every class the first part keeps its number."""
        self.lo[:], self.hi[:] = self.sides(offer)
        split = self.member[ordered[begin[:-1]]]
        new = np.diff(split, prepend=-1) == 0
        number = np.where(new, int(self.member.max()) + np.cumsum(new), split)
        self.member[ordered] = np.repeat(number, np.diff(begin))

    def sizes(self, offer: Offer) -> Integers:
        """Records of every class with this value."""
        touched = self.touched(offer)
        return _positive(np.bincount(self.member[touched], weights=self.size[touched]))

    def part_sizes(self, offer: Offer) -> Integers:
        """Records of every class that the specialization would make."""
        ordered, begin = self.parts(offer)
        return _positive(np.add.reduceat(self.size[ordered], begin[:-1]))


def _positive(sizes: NDArray[Any]) -> Integers:
    return sizes[sizes > 0].astype(np.int64)


class Offers:
    """Specializations that may be tried, best first; equal ones in the order of attributes and codes."""

    def __init__(self, rating: Rating) -> None:
        self._rating = rating
        self._heap: list[tuple[float, int, int, int]] = []
        self._starts: dict[tuple[int, int, int], Integers] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, attribute: int, first: int, last: int) -> None:
        """Offer the specialization of an interval, if it has records and children."""
        starts = self._rating.taxonomies[attribute].choices(first, last)
        if starts is not None:
            self.put(Offer(attribute, first, last, starts))

    def put(self, offer: Offer) -> None:
        """Offer a specialization, perhaps once more."""
        self._starts[offer[:3]] = offer.starts
        heapq.heappush(self._heap, (-self._rating.of_offer(offer), *offer[:3]))

    def pop(self) -> Offer | None:
        """The best one by its score now; None when there is none left."""
        if self._rating.changes == "freely":
            self._heap = [(-self._rating.of_offer(self._whole(entry)), *entry[1:]) for entry in self._heap]
            heapq.heapify(self._heap)
        while self._heap:
            entry = heapq.heappop(self._heap)
            offer = self._whole(entry)
            if self._rating.changes == "falls":
                now = (-self._rating.of_offer(offer), *entry[1:])
                if self._heap and now > self._heap[0]:
                    heapq.heappush(self._heap, now)
                    continue
            del self._starts[offer[:3]]
            return offer
        return None

    def _whole(self, entry: tuple[float, int, int, int]) -> Offer:
        return Offer(*entry[1:], self._starts[entry[1:]])


@dataclass(frozen=True, eq=False, repr=False)
class Rating:
    """How specializations are scored, and how the score of one may change while others are carried out."""

    taxonomies: Sequence[Taxonomy]
    of_offer: Callable[[Offer], float]
    changes: Literal["never", "falls", "freely"]

    @classmethod
    def of(
        cls,
        score: Score,
        taxonomies: Sequence[Taxonomy],
        grid: CutCells,
        *,
        codes: NDArray[np.int32],
        label: NDArray[np.int32] | None,
    ) -> Rating:
        """The rating of this name; `codes` and `label` are of records."""

        def saved(offer: Offer) -> float:
            return taxonomies[offer.attribute].saved(offer)

        def discernible(offer: Offer) -> float:
            sizes = grid.sizes(offer)
            return float(sizes @ sizes)

        def per_anonymity(offer: Offer) -> float:
            lost = int(grid.sizes(offer).min()) - int(grid.part_sizes(offer).min())
            return saved(offer) / (1 + lost)

        match score:
            case "loss":
                return cls(taxonomies, saved, "never")
            case "discernibility":
                return cls(taxonomies, discernible, "falls")
            case "loss-per-anonymity":
                return cls(taxonomies, per_anonymity, "freely")
            case "information-gain":
                if label is None:
                    raise ValueError("information gain needs a label")
                gains = [
                    Gains.of(row, taxonomy.domain.size, label) for row, taxonomy in zip(codes, taxonomies, strict=True)
                ]
                return cls(taxonomies, lambda offer: gains[offer.attribute].gain(offer), "never")


@dataclass(frozen=True, eq=False, repr=False)
class Gains:
    """What the values of one attribute tell about a label: counts (codes + 1, labels) below every code."""

    below: Integers

    @classmethod
    def of(cls, codes: NDArray[np.int32], size: int, label: NDArray[np.int32]) -> Gains:
        labels = int(label.max(initial=0)) + 1
        counts = np.bincount(codes.astype(np.int64) * labels + label, minlength=size * labels).reshape(size, labels)
        return cls(np.vstack([np.zeros((1, labels), np.int64), np.cumsum(counts, axis=0)]))

    def gain(self, offer: Offer) -> float:
        """Bits about the labels of all records that the children tell and the value does not."""
        ends = np.append(offer.starts[1:], offer.last + 1)
        parts = self.below[ends] - self.below[offer.starts]
        return _bits(parts.sum(axis=0, keepdims=True)) - _bits(parts)


def _bits(counts: Integers) -> float:
    """What it takes to tell the label of every record, given the row it is in."""
    size = counts.sum(axis=1)
    return float((size * np.log2(np.maximum(size, 1))).sum() - (counts * np.log2(np.maximum(counts, 1))).sum())


def taxonomies_of(
    codes: NDArray[np.int32],
    domains: Sequence[Hierarchy],
    *,
    loss: Loss,
    edges: Sequence[Sequence[NDArray[np.int64]]] | None = None,
    blocked: Sequence[NDArray[np.bool_]] | None = None,
) -> list[Taxonomy]:
    """One taxonomy per attribute of these records (attributes, records)."""
    return [
        Taxonomy(
            domain,
            np.bincount(row, minlength=domain.size),
            loss,
            edges=() if edges is None else edges[place],
            blocked=None if blocked is None else blocked[place],
        )
        for place, (domain, row) in enumerate(zip(domains, codes, strict=True))
    ]


class Taxonomy:
    """The values of one attribute as a tree of intervals, with what each loses.

    edges    per earlier release, where its values of this attribute begin and end: a number without levels is cut
             there first, so that its values and the earlier ones are nested
    blocked  per code, whether no value may begin there
    """

    def __init__(
        self,
        domain: Hierarchy,
        frequency: NDArray[np.int64],
        loss: str,
        *,
        edges: Sequence[NDArray[np.int64]] = (),
        blocked: NDArray[np.bool_] | None = None,
    ) -> None:
        self.domain, self.loss, self._edges, self._blocked = domain, loss, edges, blocked
        self._below = np.append(0, np.cumsum(frequency))
        # sum of f log f, so that the entropy inside any interval is two look-ups
        self._bits = np.append(0.0, np.cumsum(frequency * np.log2(np.maximum(frequency, 1))))
        self.halved = is_halved(domain)

    def children(self, first: int, last: int) -> NDArray[np.int64]:
        """Where the parts of an interval begin; only its own beginning when it cannot be cut."""
        if self.halved:
            return self._halves(first, last)
        for level in range(self.domain.height - 1, -1, -1):
            starts = self.domain.starts[level]
            inside = starts[np.searchsorted(starts, first) : np.searchsorted(starts, last, side="right")]
            if len(inside) > 1:
                return inside.astype(np.int64)
        return np.array([first])

    def _halves(self, first: int, last: int) -> NDArray[np.int64]:
        before = [edges[(edges > first) & (edges <= last)] for edges in self._edges]
        before = [edges for edges in before if len(edges)]
        allowed = reduce(np.intersect1d, before) if before else None
        if self.domain.missing and last == self.domain.size - 1:
            return np.array([first, last] if allowed is None or last in allowed else [first])
        half = (self._below[first] + self._below[last + 1]) / 2
        if allowed is None:
            middle = int(np.searchsorted(self._below, half, side="left"))
            return np.array([first, min(max(middle, first + 1), last)])
        if not len(allowed):
            return np.array([first])
        return np.array([first, allowed[np.argmin(np.abs(self._below[allowed] - half))]])

    def choices(self, first: int, last: int) -> NDArray[np.int64] | None:
        """The children of an interval as something to try; None for a leaf, no records, or a cut that is blocked."""
        if last == first or self._below[last + 1] == self._below[first]:
            return None
        starts = self.children(first, last)
        if len(starts) < 2 or (self._blocked is not None and self._blocked[starts[1:]].any()):
            return None
        return starts

    def saved(self, offer: Offer) -> float:
        """How much less all records of an interval lose in this attribute as its children."""
        ends = np.append(offer.starts[1:] - 1, offer.last)
        before = self._cost(np.array([offer.first]), np.array([offer.last])).sum()
        return float(before - self._cost(offer.starts, ends).sum())

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
