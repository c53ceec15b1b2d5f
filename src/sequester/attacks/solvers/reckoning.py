"""Proofs as findings a person can check by hand: add these published counts, subtract those, see who remains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sequester.attacks.finding import Finding, Told
from sequester.attacks.index import Index
from sequester.attacks.solvers.program import Program
from sequester.attacks.solvers.refutation import Refutation
from sequester.history import History

Absence = tuple[int, int, int]


def report(history: History, program: Program, proofs: list[tuple[Refutation, Refutation]]) -> Iterator[Finding]:
    """A finding per proof: the people of the second, tightest part; the first is added where it names more people."""
    if not proofs:
        return
    truth = _Truth(history)
    absences = _absences(history, program, [one for pair in proofs for one in pair])
    for number, (proof, best) in enumerate(proofs):
        absent = absences[2 * number + 1]
        value, observed = truth.confidence(best)
        published = {(release, name) for _, release, name, _ in best.labels.tolist() if release >= 0}
        wider = (proof, absences[2 * number]) if len(proof.trajectory) > len(best.trajectory) else ()
        used = sorted(published | {(release, name) for release, name, _ in absent})
        yield Finding(
            attack="deniability",
            adversary="insider",
            releases=tuple(sorted({release + 1 for release, _ in used})),
            required=float(history.bounds[value]),
            observed=observed,
            value=history.values[value],
            classes=tuple([(release + 1, name + 1) for release, name in used]),
            people=truth.people(best),
            witness=Told(partial(truth.witness, best, absent, *wider)),
            attribute=history.attribute,
        )


class _Truth:
    """The trajectories as plain lists, to put proofs into plain values."""

    def __init__(self, history: History) -> None:
        found = history.trajectories
        assert found is not None
        self.history = history
        self.size: list[int] = found.size.tolist()
        self.path: list[list[int]] = found.path.tolist()
        self.members = Index.of(found.of, len(found))

    def people(self, proof: Refutation) -> tuple[Any, ...]:
        """Ids of those who remain, in the order of the history."""
        positions = sorted(self.members.members(set(proof.trajectory.tolist())))
        return tuple([self.history.people[person] for person in positions])

    def confidence(self, proof: Refutation) -> tuple[int, float]:
        """The value that weighs most, and the share of it that is unavoidable for someone who remains.

        With several values the share is the common multiple of the bounds, as it applies to that value.
        """
        mass = dict.fromkeys(sorted(proof.value.tolist()), 0)
        for trajectory, value, weight in proof.remaining():
            mass[value] += weight * self.size[trajectory]
        value = max(mass, key=mass.__getitem__)
        if len(mass) == 1:
            return value, proof.least / mass[value]
        return value, float(min(Fraction(1), (proof.strain or Fraction(1)) * self.history.bounds[value]))

    def witness(
        self, best: Refutation, absent: list[Absence], proof: Refutation | None = None, others: Sequence[Absence] = ()
    ) -> dict[str, Any]:
        """The best part of a proof, and the whole where it names more people."""
        told = self._describe(best, absent)
        if proof is not None:
            told["wider"] = self._describe(proof, others) | {"people": list(self.people(proof))}
        return told

    def _describe(self, proof: Refutation, absent: Sequence[Absence]) -> dict[str, Any]:
        """The sum, in plain values.

        added, subtracted  published counts, each `times` over
        absent             counts of 0: nobody of this class has this value, so nobody of it remains
        sizes              people who are counted whatever their value, `times` over (negative: subtracted)
        remaining          people for whom the value is counted, `times` over; for all others the sum is 0 or less
        at_least, allowed  the sum in every world, and the most that the bounds allow for those who remain
        """
        names, divisor = self.history.values, math.gcd(*proof.times.tolist())
        added: list[dict[str, Any]] = []
        subtracted: list[dict[str, Any]] = []
        sizes = []
        rows = zip(proof.labels.tolist(), (proof.times // divisor).tolist(), proof.total.tolist(), strict=True)
        for (trajectory, release, number, value), times, total in rows:
            if trajectory >= 0:
                sizes.append({"classes": self._classes(trajectory), "people": total, "times": times})
            else:
                count = {"release": release + 1, "class": number + 1, "value": names[value], "count": total}
                (added if times > 0 else subtracted).append(count | {"times": abs(times)})
        return {
            "added": added,
            "subtracted": subtracted,
            "absent": [
                {"release": release + 1, "class": number + 1, "value": names[value]}
                for release, number, value in absent
            ],
            "sizes": sizes,
            "remaining": [
                {"classes": self._classes(t), "value": names[s], "people": self.size[t], "times": n // divisor}
                for t, s, n in proof.remaining()
            ],
            "at_least": proof.least // divisor,
            "allowed": proof.allowed / (proof.scale * divisor),
        }

    def _classes(self, trajectory: int) -> list[list[int]]:
        path = enumerate(self.path[trajectory], start=1)
        return [[release, number + 1] for release, number in path if number >= 0]


def _absences(history: History, program: Program, proofs: list[Refutation]) -> list[list[Absence]]:
    """Per proof, the (release, class, value) with a count of 0 that rule out whoever else would remain.

    The program leaves such people out from the start; whoever checks the sum has to see why.
    """
    values = len(history.values)
    proof = np.repeat(np.arange(len(proofs)), [len(one.times) for one in proofs])
    times = np.concatenate([one.times for one in proofs])
    labels = np.concatenate([one.labels for one in proofs])
    whole = np.flatnonzero(labels[:, 0] >= 0)
    keys = [(proof[whole, None] * len(program.path) + labels[whole, 0, None]) * values + np.arange(values)]
    sums = [np.repeat(times[whole], values)]
    for release in range(len(history)):
        rows = np.flatnonzero(labels[:, 1] == release)
        order = np.argsort(program.path[:, release], kind="stable")
        sizes = program.path[order, release]
        first, last = (np.searchsorted(sizes, labels[rows, 2], side) for side in ("left", "right"))
        row = np.repeat(rows, last - first)
        offset = np.arange(len(row)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
        member = order[np.repeat(first, last - first) + offset]
        keys.append((proof[row] * len(program.path) + member) * values + labels[row, 3])
        sums.append(times[row])
    found, inverse = np.unique(np.concatenate([key.reshape(-1) for key in keys]), return_inverse=True)
    weight = np.zeros(len(found), np.int64)
    np.add.at(weight, inverse, np.concatenate(sums))
    possible = program.trajectory * values + program.value
    left = found[(weight > 0) & ~np.isin(found % (len(program.path) * values), possible)]
    number, trajectory, value = left // (len(program.path) * values), left // values % len(program.path), left % values
    zero = np.zeros((len(left), len(history)), np.bool_)
    for release, one in enumerate(history.releases):
        inside = np.flatnonzero(program.path[trajectory, release] >= 0)
        zero[inside, release] = one.counts[program.path[trajectory[inside], release], value[inside]] == 0
    earliest = zero.argmax(axis=1)
    cells = np.unique(np.column_stack([number, earliest, program.path[trajectory, earliest], value]), axis=0)
    result: list[list[Absence]] = [[] for _ in proofs]
    for index, *cell in cells.tolist():
        result[index].append((cell[0], cell[1], cell[2]))
    return result
