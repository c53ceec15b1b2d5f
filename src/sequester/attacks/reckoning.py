"""Proofs as findings a person can check by hand: add these published counts, subtract those, see who remains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding
from sequester.attacks.program import Integers, Program
from sequester.attacks.refutation import Refutation
from sequester.history import History

Roster = Callable[[Integers], tuple[Any, ...]]
Absence = tuple[int, int, int]


def report(history: History, program: Program, proofs: list[tuple[Refutation, Refutation]]) -> Iterator[Finding]:
    """A finding per proof: the people of the second, tightest part; the first is added where it names more people."""
    if not proofs:
        return
    people = _roster(history)
    absences = _absences(history, program, [one for pair in proofs for one in pair])
    for number, (proof, best) in enumerate(proofs):
        absent = absences[2 * number + 1]
        value, observed = _confidence(history, best)
        published = [(release, name) for _, release, name, _ in best.labels.tolist() if release >= 0]
        used = sorted({*published, *((release, name) for release, name, _ in absent)})
        witness = _describe(history, best, absent)
        if len(proof.trajectory) > len(best.trajectory):
            wider = _describe(history, proof, absences[2 * number])
            witness["wider"] = wider | {"people": list(people(proof.trajectory))}
        yield Finding(
            attack="deniability",
            adversary="insider",
            releases=tuple(sorted({release + 1 for release, _ in used})),
            required=float(history.bounds[value]),
            observed=float(observed),
            value=history.values[value],
            classes=tuple((release + 1, name + 1) for release, name in used),
            people=people(best.trajectory),
            witness=witness,
            attribute=history.attribute,
        )


def _confidence(history: History, proof: Refutation) -> tuple[int, Fraction]:
    """The value that weighs most, and the share of it that is unavoidable for someone who remains.

    With several values the share is the common multiple of the bounds, as it applies to that value.
    """
    assert history.trajectories is not None
    mass = np.zeros(len(history.values), np.int64)
    np.add.at(mass, proof.value, proof.weight * history.trajectories.size[proof.trajectory])
    value = int(mass.argmax())
    if (proof.value == value).all():
        return value, Fraction(proof.least, int(mass[value]))
    return value, min(Fraction(1), (proof.strain or Fraction(1)) * history.bounds[value])


def _describe(history: History, proof: Refutation, absent: list[Absence]) -> dict[str, Any]:
    """The sum, in plain values.

    added, subtracted  published counts, each `times` over
    absent             counts of 0: nobody of this class has this value, so nobody of it remains
    sizes              people who are counted whatever their value, `times` over (negative: subtracted)
    remaining          people for whom the value is counted, `times` over; for all others the sum is 0 or less
    at_least, allowed  the sum in every world, and the most that the bounds allow for those who remain
    """
    found = history.trajectories
    assert found is not None
    divisor = math.gcd(*proof.times.tolist())
    counts, sizes = [], []
    rows = zip(proof.labels.tolist(), (proof.times // divisor).tolist(), proof.total.tolist(), strict=True)
    for (trajectory, release, number, value), times, total in rows:
        if trajectory >= 0:
            sizes.append({"classes": _classes(found.path[trajectory]), "people": total, "times": times})
        else:
            name = history.values[value]
            counts.append({"release": release + 1, "class": number + 1, "value": name, "count": total, "times": times})
    weights = zip(proof.trajectory.tolist(), proof.value.tolist(), (proof.weight // divisor).tolist(), strict=True)
    return {
        "added": [one for one in counts if one["times"] > 0],
        "subtracted": [one | {"times": -one["times"]} for one in counts if one["times"] < 0],
        "absent": [
            {"release": release + 1, "class": number + 1, "value": history.values[value]}
            for release, number, value in absent
        ],
        "sizes": sizes,
        "remaining": [
            {"classes": _classes(found.path[t]), "value": history.values[s], "people": int(found.size[t]), "times": n}
            for t, s, n in weights
        ],
        "at_least": proof.least // divisor,
        "allowed": float(proof.allowed / divisor),
    }


def _classes(path: NDArray[np.int32]) -> list[list[int]]:
    return [[release, number + 1] for release, number in enumerate(path.tolist(), start=1) if number >= 0]


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


def _roster(history: History) -> Roster:
    """Ids of the people of some trajectories, in the order of the history."""
    found = history.trajectories
    assert found is not None
    order = np.argsort(found.of, kind="stable")
    starts = np.searchsorted(found.of[order], np.arange(len(found) + 1))

    def people(trajectories: Integers) -> tuple[Any, ...]:
        parts = [order[starts[t] : starts[t + 1]] for t in sorted(set(trajectories.tolist()))]
        return tuple(history.people[person] for person in np.sort(np.concatenate(parts)).tolist())

    return people
