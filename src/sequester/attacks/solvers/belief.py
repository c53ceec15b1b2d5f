"""What would somebody without prejudice believe, given everything published?

Deniability says that a belief within the bounds exists. This is the plainest one: of all numbers of people of each
trajectory with each value that add up to what classes show, those of the largest entropy. They are a product of one
factor per (class, value) of a person, found by iterative scaling. With one release they are the shares of her class. It
stands in for all worlds being equally likely, which cannot be computed at size, and understates what chains of people
tell (`attacks.belief` has what is exact where pods are known). Decoys are people here: nobody can tell.

Whole rows are believed as one, and a value by all the rows that have it: with the labels of a history that counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.belief_kernels import possible, scale, settle
from sequester.history import History
from sequester.history.label import Labels, Question
from sequester.history.trajectory import number_through

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDS = 1000
TOLERANCE = 1e-4
"""Mean difference to a published count, per row. Where values are ruled out by several people together, scaling comes
near that slowly, and from the careful side: of 15 waves made one by one the beliefs of everybody are short by .003 in
the mean after 1,000 rounds, those of a few by more, and the share above .9 by half a point."""


_POSSIBLE = 1e-12
"""A prior rules nothing out: what is published may be what nobody expected."""


@dataclass(frozen=True, eq=False, repr=False)
class Belief:
    """Per person of the history how surely she is believed to have a bounded value.

    questions  the bounded values
    largest    the largest belief in one of them; 0 for those about whom nothing is said
    question   that one, -1 for none
    truth      the largest belief in one that she has; None where values are not known
    told       whether she was in a class that counts, and is not known already
    rounds     of scaling, and `missed`: by how much published counts were missed in the last, per row
    """

    questions: tuple[Question, ...]
    largest: Floats
    question: NDArray[np.int32]
    truth: Floats | None
    told: Mask
    rounds: int = 0
    missed: float = 0.0

    def __repr__(self) -> str:
        return f"<Belief about {int(self.told.sum())} people: at most {self.largest.max(initial=0):.2f}>"

    def spread(self, among: Mask | None = None) -> BeliefSpread:
        """The distribution over people, or over these of them: decoys should not be counted."""
        chosen = self.told if among is None else self.told & among
        return BeliefSpread.of(self.largest[chosen], None if self.truth is None else self.truth[chosen])


def believe(
    history: History,
    *,
    labels: Labels | None = None,
    known: Mask | None = None,
    prior: Floats | None = None,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
) -> Belief:
    """The belief of largest entropy given all class counts, and the values of those who are `known`.

    Needs values that stay, and to know who is in which class. `labels` are those of a history that counts
    whole rows. `prior` are shares of every value, (trajectories, values): the entropy is then relative to them, so that
    with one release they are scaled to the rows of each class.
    Scaling ends when published counts are missed by less than the tolerance, per row, or after so many rounds.
    """
    trajectories = history.trajectories
    if trajectories is None or not history.permanent:
        raise ValueError("belief needs values that stay, and to know who is in which class")
    if known is not None and known.any() and history.value is None:
        raise ValueError("values can be known only where it is known who has which")
    sizes = [len(release) for release in history.releases]
    path, _ = number_through(history.fitting_path(), sizes)
    counts = np.concatenate([np.zeros((0, len(history.values)), np.int64), *(r.counts for r in history.releases)])
    size, told = trajectories.size, trajectories.of >= 0
    if known is not None and known.any():
        counts, size, told = _without(history, known & told, path, counts)
    # Nobody's trajectory is -1, which finds the last place.
    told &= np.append((path >= 0).any(axis=1), False)[trajectories.of]
    start, value = possible(path, size, counts)
    is_open = settle(path, size, counts, start, value, rounds)
    whose = np.repeat(np.arange(len(trajectories)), np.diff(start))[is_open]
    start, value = np.searchsorted(whose, np.arange(len(trajectories) + 1)), value[is_open]
    expected = (size[whose] / np.diff(start)[whose]).astype(np.float64)
    if prior is not None:
        expected *= np.maximum(prior[whose, value], _POSSIBLE)
    done, missed = 0, 0.0
    if len(value):
        first = np.cumsum([0, *sizes])
        done, missed = scale(path, first, size, counts, start, value, expected, rounds, tolerance)
    cells = _Cells(whose, value, expected / size[whose])
    return _answer(history, labels or Labels.of_history(history), cells, told, fitted=(int(done), float(missed)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Belief that somebody of a trajectory has a value (or row), cell by cell."""

    trajectory: NDArray[np.int64]
    value: NDArray[np.int32]
    share: Floats


def _without(
    history: History, known: Mask, path: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Mask]:
    """Rows and people that are left when some people's values are known; and whom something is said about then."""
    assert history.value is not None
    found, left = history.known_trajectories, counts.copy()
    person = np.flatnonzero(known & (history.value >= 0))
    for column in path[found.of[person]].T:
        inside = column >= 0
        np.subtract.at(left, (column[inside], history.value[person[inside]]), 1)
    size = found.size - np.bincount(found.of[person], minlength=len(found))
    told = found.of >= 0
    told[person] = False
    return left, size, told


def _answer(history: History, labels: Labels, cells: _Cells, told: Mask, *, fitted: tuple[int, float]) -> Belief:
    """What everybody is believed to have, value by value that has a bound."""
    of, trajectories = history.known_trajectories.of, len(history.known_trajectories)
    width = max(len(labels.questions), 1)
    place, asked = labels.questions_of(cells.value)
    key, inverse = np.unique(cells.trajectory[place] * width + asked, return_inverse=True)
    share = np.bincount(inverse, weights=cells.share[place], minlength=len(key))
    largest, question = np.zeros(trajectories + 1), np.full(trajectories + 1, -1, np.int32)
    order = np.argsort(share, kind="stable")
    # Of equal places the last one stays: the largest share.
    largest[key[order] // width], question[key[order] // width] = share[order], key[order] % width
    truth = None
    if history.value is not None:
        truth = np.zeros(len(of))
        person = np.flatnonzero(told & (history.value >= 0))
        whom, asked = labels.questions_of(history.value[person])
        wanted = of[person[whom]].astype(np.int64) * width + asked
        at = np.searchsorted(key, wanted)
        there = np.append(key, -1)[at] == wanted
        np.maximum.at(truth, person[whom], np.where(there, np.append(share, 0.0)[at], 0.0))
    largest, question = np.where(told, largest[of], 0.0), np.where(told, question[of], -1)
    return Belief(labels.questions, largest, question, truth, told, *fitted)


STEPS = (0.5, 0.7, 0.9)
NOISE = 1e-3
"""What a fitted belief may be off: only more than that above a step is above it."""


@dataclass(frozen=True)
class BeliefSpread:
    """The largest belief in a bounded value, over people.

    people  how many it is about
    most    the largest; `mean` the mean
    above   share of the people who are believed above .5, .7, .9
    right   share of those above .9 who have the value; None where nobody is, or values are not known
    """

    people: int
    most: float
    mean: float
    above: tuple[float, float, float]
    right: float | None = None

    @classmethod
    def of(cls, largest: NDArray[np.float64], truth: NDArray[np.float64] | None = None) -> BeliefSpread:
        """Of everybody's largest belief, and beliefs in what is true."""
        if not len(largest):
            return cls(0, 0.0, 0.0, (0.0, 0.0, 0.0))
        above = [largest > step + NOISE for step in STEPS]
        sure, right = above[-1], None
        if truth is not None and sure.any():
            right = float((truth[sure] >= largest[sure] - NOISE).mean())
        low, middle, high = (float(one.mean()) for one in above)
        return cls(len(largest), float(largest.max()), float(largest.mean()), (low, middle, high), right)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        above = {str(step): round(share, 6) for step, share in zip(STEPS, self.above, strict=True)}
        right = None if self.right is None else round(self.right, 6)
        return {
            "people": self.people,
            "most": round(self.most, 4),
            "mean": round(self.mean, 4),
            "above": above,
            "right": right,
        }


def mean_of(spreads: list[BeliefSpread]) -> BeliefSpread:
    """The mean of several draws; the largest of all is the largest."""
    right = [(one.right, one.above[-1] * one.people) for one in spreads if one.right is not None]
    low, middle, high = (float(np.mean([one.above[step] for one in spreads])) for step in range(3))
    return BeliefSpread(
        people=round(float(np.mean([one.people for one in spreads]))),
        most=max(one.most for one in spreads),
        mean=float(np.mean([one.mean for one in spreads])),
        above=(low, middle, high),
        right=float(np.average([r for r, _ in right], weights=[w for _, w in right])) if right else None,
    )
