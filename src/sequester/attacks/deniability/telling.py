"""Proofs as findings a person can check by hand: add these published counts, subtract those, see who remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.deniability.inquiry import Inquiry, LabelProgram
from sequester.attacks.finding import Finding, LazyWitness
from sequester.attacks.solvers.index import Index
from sequester.attacks.solvers.program import Integers
from sequester.attacks.solvers.refutation import Refutation
from sequester.history import History
from sequester.history.label import WHOLE_ROW, Question

Place = tuple[int, int]
Absence = tuple[int, int, int]

_NOTHING = 1e-6
"""Weights up to this are the solver's noise, where they are not whole."""

_SEEN = 5_000_000
"""People counted whatever they have, times labels, up to which a witness says which of these they cannot have."""


class Teller:
    """Puts proofs into plain values. Plain lists: there can be many small ones."""

    def __init__(self, history: History, asked: Inquiry, stated: LabelProgram) -> None:
        trajectories = history.known_trajectories
        self.history, self.asked, self.stated = history, asked, stated
        self.members = Index.of(trajectories.of, len(trajectories))
        self.size: list[int] = trajectories.size.tolist()
        self.path: list[list[int]] = trajectories.path.tolist()
        self.start = np.cumsum([0, *(len(one) for one in history.releases)])

    def findings(self, proofs: Sequence[tuple[Refutation, Refutation]]) -> Iterator[Finding]:
        """One per proof: the people of the second, tightest part; the first is added where it names more people."""
        absences = self._absences([one for pair in proofs for one in pair])
        for number, (proof, best) in enumerate(proofs):
            absent = absences[2 * number + 1]
            wider = (proof, absences[2 * number]) if len(proof.caps) > len(best.caps) else ()
            yield self._finding(best, absent, partial(self._witness, best, absent, *wider))

    def _finding(self, proof: Refutation, absent: Sequence[Absence], witness: partial[dict[str, Any]]) -> Finding:
        question, observed = self._confidence(proof)
        used = sorted({place for place, _, _, _ in self._counts(proof)} | {place[:2] for place in absent})
        return Finding(
            attack="deniability",
            adversary="insider",
            releases=tuple(sorted({release + 1 for release, _ in used})),
            required=float(question.bound),
            observed=observed,
            value=question.value,
            classes=tuple([(release + 1, name + 1) for release, name in used]),
            people=self._people(proof),
            witness=LazyWitness(witness),
            attribute=question.attribute,
        )

    def _confidence(self, proof: Refutation) -> tuple[Question, float]:
        """The value that weighs most, and the share of it that is unavoidable for someone who remains.

        With several values the share is the common multiple of the bounds, as it applies to that value.
        """
        mass: dict[int, float] = dict.fromkeys(sorted(self.stated.question[proof.caps].tolist()), 0)
        for trajectory, number, weight in self._remaining(proof):
            mass[number] += weight * self.size[trajectory]
        number = max(mass, key=mass.__getitem__)
        question = self.asked.labels.questions[number]
        if len(mass) == 1:
            return question, proof.least / mass[number]
        return question, float(min(Fraction(1), proof.strain * question.bound))

    def _remaining(self, proof: Refutation) -> Iterator[tuple[int, int, Any]]:
        """Trajectory, question and weight of what remains."""
        trajectory, question = self.stated.trajectory[proof.caps], self.stated.question[proof.caps]
        return zip(trajectory.tolist(), question.tolist(), proof.weight.tolist(), strict=True)

    def _counts(self, proof: Refutation) -> Iterator[tuple[Place, int, Any, int]]:
        """Of every published count that is used: where, the label, how often, and the count."""
        known = self.asked.known
        counted = np.flatnonzero(proof.rows >= len(known.size))
        place = proof.rows[counted] - len(known.size)
        columns = (*self._places(known.key[place]), proof.times[counted].tolist(), known.rows[place].tolist())
        return zip(*columns, strict=True)

    def _places(self, key: Integers) -> tuple[list[Place], list[int]]:
        """Release and class, from 0, and label, of published rows by their key."""
        number, label = np.divmod(key, self.asked.known.labels)
        release = np.searchsorted(self.start, number, side="right") - 1
        return list(zip(release.tolist(), (number - self.start[release]).tolist(), strict=True)), label.tolist()

    def _people(self, proof: Refutation) -> tuple[Any, ...]:
        """Ids of those who remain, in the order of the history."""
        positions = sorted(self.members.members(set(self.stated.trajectory[proof.caps].tolist())))
        return tuple([self.history.people[person] for person in positions])

    def _witness(
        self, best: Refutation, absent: list[Absence], proof: Refutation | None = None, others: Sequence[Absence] = ()
    ) -> dict[str, Any]:
        """The best part of a proof, and the whole where it names more people."""
        told = self._describe(best, absent)
        if proof is not None:
            told["wider"] = self._describe(proof, others) | {"people": list(self._people(proof))}
        if self.history.attribute == WHOLE_ROW:
            told["cells"] = list(self.asked.labels.columns)
        return told

    def _describe(self, proof: Refutation, absent: Sequence[Absence]) -> dict[str, Any]:
        """The sum, in plain values.

        added, subtracted  published counts, each `times` over
        absent             counts of 0: nobody of this class has this value, so nobody of it remains
        sizes              people who are counted whatever their value, `times` over (negative: subtracted)
        remaining          people for whom the value is counted, `times` over; for all others the sum is 0 or less
        at_least, allowed  the sum in every world, and the most that the bounds allow for those who remain
        whole numbers      whether all of this was checked in whole numbers
        """
        labels, known = self.asked.labels, self.asked.known
        divisor = gcd(*proof.times.tolist(), *proof.weight.tolist()) if proof.exact else 1
        added: list[dict[str, Any]] = []
        subtracted: list[dict[str, Any]] = []
        for (release, number), label, times, count in self._counts(proof):
            row = {"release": release + 1, "class": number + 1, "value": labels.name(label), "count": count}
            (added if times > 0 else subtracted).append(row | {"times": _over(abs(times), divisor)})
        whole = np.flatnonzero(proof.rows < len(known.size))
        return {
            "added": added,
            "subtracted": subtracted,
            "absent": [
                {"release": release + 1, "class": number + 1, "value": labels.name(label)}
                for release, number, label in absent
            ],
            "sizes": [
                {"classes": self._classes(t), "people": self.size[t], "times": _over(times, divisor)}
                for t, times in zip(proof.rows[whole].tolist(), proof.times[whole].tolist(), strict=True)
            ],
            "remaining": [
                {
                    "classes": self._classes(t),
                    "value": labels.questions[q].value,
                    "bound": float(labels.questions[q].bound),
                    "people": self.size[t],
                    "times": _over(weight, divisor),
                }
                for t, q, weight in self._remaining(proof)
            ],
            "at_least": _over(proof.least, divisor),
            "allowed": proof.allowed / (proof.scale * divisor),
            "whole numbers": proof.exact,
        }

    def _classes(self, trajectory: int) -> list[list[int]]:
        path = enumerate(self.path[trajectory], start=1)
        return [[release, number + 1] for release, number in path if number >= 0]

    def _absences(self, proofs: Sequence[Refutation]) -> list[list[Absence]]:
        """Per proof, the (release, class, label) with a count of 0 that rule out whoever else would remain.

        The program leaves such people out from the start; whoever checks the sum has to see why.
        """
        absent: list[list[Absence]] = [[] for _ in proofs]
        if not proofs:
            return absent
        known, pairs = self.asked.known, self.stated.pairs
        people, width = len(known.size), known.labels
        key, weight = self._weighed(proofs)
        impossible = ~np.isin(key % (people * width), pairs.trajectory * width + pairs.label)
        left = key[(weight > _NOTHING) & impossible]
        number, trajectory, label = left // (people * width), left // width % people, left % width
        path = known.path[trajectory]
        lacking = np.zeros(path.shape, np.bool_)
        for release, column in enumerate(path.T):
            inside = np.flatnonzero(column >= 0)
            lacking[inside, release] = ~known.shows(column[inside], label[inside])
        where = path[np.arange(len(path)), lacking.argmax(axis=1)]
        cells = np.unique(np.column_stack([number, where * width + label]), axis=0)
        for proof, (release, own), code in zip(cells[:, 0].tolist(), *self._places(cells[:, 1]), strict=True):
            absent[proof].append((release, own, code))
        return absent

    def _weighed(self, proofs: Sequence[Refutation]) -> tuple[Integers, NDArray[Any]]:
        """(proof * trajectories + trajectory) * labels + label of all that proofs count, and how often they do."""
        known = self.asked.known
        people, width = len(known.size), known.labels
        proof = np.repeat(np.arange(len(proofs)), [len(one.times) for one in proofs])
        row, times = np.concatenate([one.rows for one in proofs]), np.concatenate([one.times for one in proofs])
        whole, counted = np.flatnonzero(row < people), np.flatnonzero(row >= people)
        member, release = np.nonzero(known.path >= 0)
        order = np.argsort(known.path[member, release], kind="stable")
        classes, key = known.path[member, release][order], known.key[row[counted] - people]
        first, last = (np.searchsorted(classes, key // width, side) for side in ("left", "right"))
        entry = np.repeat(np.arange(len(counted)), last - first)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
        whose = member[order[np.repeat(first, last - first) + offset]]
        keys = (proof[counted[entry]] * people + whose) * width + key[entry] % width
        sums = times[counted[entry]]
        own = proof[whole] * people + row[whole]
        added = np.flatnonzero(times[whole] > 0)
        if len(added) * width <= _SEEN:
            every = (own[added, None] * width + np.arange(width)).reshape(-1)
            keys, sums = np.append(keys, every), np.append(sums, np.zeros(len(every), sums.dtype))
        found, inverse = np.unique(keys, return_inverse=True)
        weight = np.zeros(len(found), sums.dtype)
        np.add.at(weight, inverse, sums)
        if len(own):
            order = np.argsort(own)
            place = np.minimum(np.searchsorted(own, found // width, sorter=order), len(own) - 1)
            weight += np.where(own[order[place]] == found // width, times[whole[order[place]]], 0)
        return found, weight


def _over(times: Any, divisor: int) -> Any:
    """In lowest terms: whole numbers stay whole."""
    return times // divisor if isinstance(times, int) else times / divisor
