"""What the maker of pods is given, and what it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.seats import Seats

Numbers = NDArray[np.int32]


class Least(NamedTuple):
    """What every class keeps: so many rows, and so many of them about somebody."""

    rows: int
    people: int


@dataclass(frozen=True, eq=False, repr=False)
class LabelBounds:
    """What is promised about labels.

    answers  (views, labels) the answer that a label gives in every view with a bound, -1 where it has none
    shares   per view, per answer, the largest share of a pod's seats that may have it
    """

    answers: Numbers
    shares: tuple[tuple[Fraction, ...], ...]

    def __len__(self) -> int:
        """Number of labels."""
        return int(self.answers.shape[1])

    def needs(self, times: int = 1) -> NDArray[np.int64]:
        """Per label, the fewest seats of a pod that has it so often."""
        found = np.ones(len(self), np.int64)
        for row, shares in zip(self.answers, self.shares, strict=True):
            least = np.array([-(-times * share.denominator // share.numerator) for share in shares] + [1], np.int64)
            np.maximum(found, least[row], out=found)
        return found

    def seats(self) -> NDArray[np.int64]:
        """Per label, the fewest seats of a pod that has it once, made of the labels there are.

        More than it needs by itself where those that fit need more. Where no pod is found it is as many as any needs.
        """
        return self._seats

    @cached_property
    def _seats(self) -> NDArray[np.int64]:
        if not len(self.answers):
            return self.needs()
        _, first, kind = np.unique(self.answers, axis=1, return_index=True, return_inverse=True)
        needs, clash = self.needs()[first], self.clash()[np.ix_(first, first)]
        bounded = np.asarray((self.answers[:, first] >= 0).any(axis=0))
        order = np.argsort(needs, kind="stable")
        found = needs.copy()
        for one in np.flatnonzero(bounded).tolist():
            # Those that need fewest seats first, so that a pod need not grow.
            chosen, fits = 1, ~clash[one]
            while chosen < found[one] and fits.any():
                near = int(order[fits[order]][0])
                found[one], chosen = max(found[one], needs[near]), chosen + 1
                fits &= ~clash[near]
                fits[near] &= not bounded[near]
            if chosen < found[one]:
                found[one] = needs.max()
        return np.asarray(found[kind.ravel()])

    def clash(self) -> NDArray[np.bool_]:
        """(labels, labels) whether two labels give the same bounded answer somewhere."""
        every = np.arange(len(self))
        return self.clashing(every[:, None], every[None, :])

    def clashing(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether labels give the same bounded answer somewhere, pair by pair."""
        found = np.zeros(np.broadcast_shapes(one.shape, other.shape), np.bool_)
        for row in self.answers:
            found |= (row[one] == row[other]) & (row[one] >= 0)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class PodTask:
    """The table to publish, and everything published before.

    codes     (attributes, records)
    label     per record, everything permanent that its row shows beside the box
    person    per record, its person among those before, -1 for one who is new
    before    everybody published so far, decoys included; `label_before` their labels, in the same numbering
    k         fewest rows of a class, and `people` fewest people; `inferred`: rows of anything inferred across releases
    decoys    at most this share of rows is about nobody, but for what a promise cannot do without
    lineage   most people linked through pods; None: no limit
    barred    (records, labels) what cannot be, as everybody knows; None: nothing is
    one_type  whether all pods of a class have the same labels (after m-invariance)
    seed      of everything that is drawn
    part_of_many  whether these are a few of many people, and to be dealt with by the same quick loops
    """

    codes: Numbers
    domains: tuple[Hierarchy, ...]
    label: Numbers
    bounds: LabelBounds
    person: NDArray[np.int64]
    before: Seats
    label_before: Numbers
    k: int
    people: int = 1
    inferred: int = 2
    decoys: float = 0.05
    lineage: int | None = None
    barred: NDArray[np.bool_] | None = None
    blind: bool = False
    one_type: bool = False
    seed: int = 0
    part_of_many: bool = False

    def __len__(self) -> int:
        """Number of records."""
        return len(self.label)

    @property
    def least(self) -> Least:
        """What every class keeps."""
        return Least(self.k, self.people)

    @property
    def accompanied(self) -> bool:
        """Whether more is promised of what is inferred than pods keep by themselves, and classes see to it."""
        fewest = max(int(self.bounds.seats().min(initial=self.inferred)), min(self.inferred, 2))
        return not self.blind and not self.one_type and self.inferred > fewest

    def of(self, rows: NDArray[np.int64]) -> PodTask:
        """The same of some of the records."""
        barred = None if self.barred is None else self.barred[rows]
        codes = np.ascontiguousarray(self.codes[:, rows])
        return replace(self, codes=codes, label=self.label[rows], person=self.person[rows], barred=barred)


@dataclass(frozen=True, eq=False, repr=False)
class MadePods:
    """Classes of the records and, after them, of decoys.

    member, pod, type, seat  per row: the records, then the decoys
    decoy_person  per decoy, the decoy before that goes on, -1 for a new one
    decoy_label   per decoy, its label
    decoy_like    per decoy, the record whose quasi-identifiers it has in this release
    facts         about the choice made, for the plan
    """

    member: Numbers
    lo: Numbers
    hi: Numbers
    pod: Numbers
    type: Numbers
    seat: Numbers
    decoy_person: NDArray[np.int64]
    decoy_label: Numbers
    decoy_like: NDArray[np.int64]
    facts: Mapping[str, float] = field(default_factory=dict)
