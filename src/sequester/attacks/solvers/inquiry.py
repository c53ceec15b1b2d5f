"""What is asked of everybody's labels, and the program of all worlds that answers it.

Unknowns are how many people of a trajectory have each label. Labels add up over classes to what was published, and
every value with a bound is a cap on all labels that have it, or may have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from sequester.attacks.solvers.pairs import Known, Pairs, shown_pairs, sums
from sequester.attacks.solvers.program import Floats, Integers, Mask, Program
from sequester.deferred import coo_array
from sequester.history.label import Labels


class Share(NamedTuple):
    """How many people of a trajectory have a value that is asked about; parallel arrays."""

    trajectory: Integers
    question: Integers
    people: Integers


@dataclass(frozen=True, eq=False, repr=False)
class LabelProgram:
    """A program and what it says.

    pairs       trajectory and label of every unknown
    trajectory  of every cap, and the `question` it is about
    """

    program: Program
    pairs: Pairs
    trajectory: Integers
    question: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Inquiry:
    """Labels that are known by what is published, and the values that nobody may be tied to too surely.

    somebody  per trajectory, whether it is asked about at all
    """

    known: Known
    labels: Labels
    somebody: Mask

    @cached_property
    def bounds(self) -> tuple[Integers, int]:
        """Per question the bound, in parts of a common denominator."""
        scale = lcm(*(question.bound.denominator for question in self.labels.questions))
        return np.array([int(question.bound * scale) for question in self.labels.questions], np.int64), scale

    @cached_property
    def share(self) -> Share:
        """Who truly has what is asked about; where that is not known, at most so many have."""
        known, width = self.known, len(self.labels.questions)
        pair, question = self._of_people(known.trajectory, known.label)
        key, number = np.unique(known.trajectory[pair] * width + question, return_inverse=True)
        count = np.bincount(number, weights=known.count[pair], minlength=len(key)).astype(np.int64)
        trajectory = key // width
        return Share(trajectory, key % width, np.minimum(count, known.size[trajectory]))

    @cached_property
    def exceeds(self) -> Mask:
        """Per share, whether it is above its bound."""
        top, scale = self.bounds
        return np.asarray(self.share.people * scale > top[self.share.question] * self.known.size[self.share.trajectory])

    @property
    def strain(self) -> Floats:
        """Per share, the multiple of its bound that it is."""
        return self._multiple(self.share.question, self.share.people / self.known.size[self.share.trajectory])

    def in_one_class(self) -> float:
        """The largest multiple of a bound in any single class: nobody can avoid that."""
        known, width = self.known, len(self.labels.questions)
        place, question = self.labels.questions_of(known.key % known.labels)
        key, number = np.unique(known.key[place] // known.labels * width + question, return_inverse=True)
        having = np.bincount(number, weights=known.rows[place], minlength=len(key))
        size = np.bincount(known.key // known.labels, weights=known.rows, minlength=known.classes)
        return float(self._multiple(key % width, having / size[key // width]).max(initial=0.0))

    def breadth(self) -> Integers:
        """Per trajectory, the fewest labels that one of its classes shows: it has no more unknowns than that."""
        known = self.known
        shown = np.bincount(known.key // known.labels, minlength=known.classes)
        return np.asarray(np.where(known.path >= 0, shown[known.path], known.labels).min(axis=1))

    def state(self, trajectories: Mask) -> LabelProgram:
        """The program of these trajectories, which must be whole components."""
        known, width = self.known, len(self.labels.questions)
        pairs = shown_pairs(known, trajectories)
        row, matrix = sums(known, pairs)
        unknown, question = self._of_people(pairs.trajectory, pairs.label)
        held, number = np.unique(pairs.trajectory[unknown] * width + question, return_inverse=True)
        caps = coo_array((np.ones(len(unknown), np.int64), (number, unknown)), shape=(len(held), len(pairs))).tocsr()
        trajectory, question = held // width, held % width
        top, scale = self.bounds
        above = (self.share.trajectory * width + self.share.question)[self.exceeds]
        program = Program(
            matrix=matrix,
            total=np.concatenate([known.size, known.rows])[row],
            caps=caps,
            cap=top[question] * known.size[trajectory],
            scale=scale,
            exceeded=np.isin(held, above),
            row=row,
            held=np.arange(len(held)),
        )
        return LabelProgram(program, pairs, trajectory, question)

    def suspected(self, stated: LabelProgram) -> Mask:
        """Rows of published counts of labels with a value that exceeds its bound somewhere in the component.

        Proofs from these alone are about one value and read as a difference: add these classes, subtract those.
        """
        known, width, program = self.known, len(self.labels.questions), stated.program
        first = program.matrix.indices[program.matrix.indptr[:-1]]
        counted = np.flatnonzero(program.row >= len(known.size))
        label = known.key[program.row[counted] - len(known.size)] % known.labels
        place, question = self.labels.questions_of(label)
        part = known.part[stated.pairs.trajectory[first[counted[place]]]].astype(np.int64)
        above = known.part[self.share.trajectory[self.exceeds]].astype(np.int64) * width
        suspected = np.zeros(len(program.row), np.bool_)
        suspected[counted[place[np.isin(part * width + question, above + self.share.question[self.exceeds])]]] = True
        return suspected

    def _of_people(self, trajectory: Integers, label: Integers) -> tuple[Integers, Integers]:
        """Pairs of somebody, by their place, and every question that their labels answer with yes."""
        pair, question = self.labels.questions_of(label)
        people = self.somebody[trajectory[pair]]
        return pair[people], question[people]

    def _multiple(self, question: Integers, share: Floats) -> Floats:
        """The multiples of their questions' bounds that shares are; of a bound of 0 there is none."""
        top, scale = self.bounds
        return np.divide(share * scale, top[question], out=np.zeros(len(question)), where=top[question] > 0)
