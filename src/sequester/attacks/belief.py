"""Belief as an attack: who is believed to have a value more surely than promised, and what is told of everybody.

Told is also how far background knowledge carries (`Resilience`): what is believed of the others when some people's
values are known; and what remains of a lineage for somebody who is told all pods, types and seats: one choice, exactly.

A lineage is everybody who is linked through pods. All its people at one seat have one label, so that its worlds are the
ways to lay its type's labels on its seats, and without a reason to prefer one they are equally likely. (The proof that
pods are safe needs the cyclic shifts only; an adversary who ruled out the other ways would need a reason to. Between
two seats there is no difference.) Then a person has a value with its share of the seats; whoever's value is known tells
her seat, and what is left is shared out among the others: of a couple, everybody's. Decoys have seats like everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import UNPROMISED, Attack, unbounded
from sequester.attacks.finding import Finding, Result, name_counts, say_more, worst
from sequester.attacks.informed import Informed, inform
from sequester.attacks.solvers.belief import NOISE, ROUNDS, TOLERANCE, Belief, BeliefSpread, believe, mean_of
from sequester.domain.hierarchy import Codes
from sequester.history import History
from sequester.history.label import WHOLE_ROW, Labels, Rows
from sequester.history.seats import Seats


@dataclass(frozen=True)
class Believed:
    """How sure somebody without prejudice could be about one attribute, or about any value of a whole row.

    spread      over the people, decoys left out
    resilience  the same of the others, by the share of people whose values are known; empty where it was not asked
    over        the same as `spread` after each release; empty where it was not asked, and of whole rows
    informed    the same by a reader who has learnt from the releases; None where it was not asked, and of whole rows
    beyond      people who are believed to have a value more surely than its bound
    """

    attribute: str
    spread: BeliefSpread
    resilience: Mapping[float, Resilience]
    over: tuple[BeliefSpread, ...] = ()
    informed: Informed | None = None
    beyond: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        plain: dict[str, Any] = {"attribute": self.attribute, **self.spread.to_dict(), "beyond": self.beyond}
        plain |= {"resilience": [one.to_dict() for one in self.resilience.values()]}
        plain |= {"over": [one.to_dict() for one in self.over]} if self.over else {}
        return plain | ({} if self.informed is None else {"informed": self.informed.to_dict()})


class Beliefs:
    """Beliefs about everything an audit looks at, each fitted once."""

    def __init__(self, rows: Rows | None, seats: Seats | None) -> None:
        self._labels = None if rows is None else rows.labels
        self._seats = seats
        self._fitted: dict[str, Belief] = {}

    def find(self, history: History, limit: float | None) -> Result:
        """A finding for people of one history who are believed to have a value by more than the limit.

        What scaling may be off is not held against a release. The measure is the largest belief in a bounded value.
        """
        if limit is None or history.trajectories is None or not history.permanent:
            return Result()
        belief = self._of(history)
        if not belief.questions:
            return Result()
        told = belief.told & self._people(history)
        too_sure = np.flatnonzero(told & (belief.largest > limit + NOISE))
        trajectory, first = np.unique(history.trajectories.of[too_sure], return_index=True)
        kept = worst(belief.largest[too_sure[first]])
        order = np.argsort(history.trajectories.of[too_sure], kind="stable")
        people = np.split(too_sure[order], np.searchsorted(history.trajectories.of[too_sure][order], trajectory[1:]))
        findings = [_finding(history, belief, people[one].tolist(), limit) for one in kept.tolist()]
        more = say_more("belief", history.attribute, len(trajectory) - len(kept))
        return Result(findings, round(float(belief.largest[told].max(initial=0.0)), 6), more)

    def tell(
        self, histories: Sequence[History], *, known: bool, informed: Sequence[Codes] | None = None
    ) -> tuple[Believed, ...]:
        """What is believed, history by history where something can be.

        known     also when some people's values are known
        informed  also by a reader who has learnt from the releases, given everybody's exact values where they are known
        """
        told = []
        for history in histories:
            if history.trajectories is None or not history.permanent or not self._of(history).questions:
                continue
            spread = self._of(history).spread(self._people(history))
            carries: dict[float, Resilience] = {}
            over: tuple[BeliefSpread, ...] = ()
            if known and history.value is not None:
                carries = resilience(history, self._seats, labels=self._asked(history))
            if known and history.attribute != WHOLE_ROW:
                over = (*self._over(history), spread)
            learnt = None
            if informed is not None and history.attribute != WHOLE_ROW:
                learnt = inform(history, self._people(history), informed)
            told.append(Believed(history.attribute, spread, carries, over, learnt, self._beyond(history)))
        return tuple(told)

    def _beyond(self, history: History) -> int:
        belief = self._of(history)
        bounds = np.array([*(float(question.bound) for question in belief.questions), 1.0])
        beyond = belief.told & self._people(history) & (belief.largest > bounds[belief.question] + NOISE)
        return int(np.count_nonzero(beyond))

    def _over(self, history: History) -> Iterator[BeliefSpread]:
        """After each release but the last."""
        for releases in range(1, len(history)):
            yield believe(history.until(releases)).spread(self._people(history))

    def _of(self, history: History) -> Belief:
        if history.attribute not in self._fitted:
            self._fitted[history.attribute] = believe(history, labels=self._asked(history))
        return self._fitted[history.attribute]

    def _asked(self, history: History) -> Labels | None:
        return self._labels if history.attribute == WHOLE_ROW else None

    def _people(self, history: History) -> NDArray[np.bool_]:
        return np.ones(len(history.people), np.bool_) if self._seats is None else ~self._seats.decoy


def believable(histories: Sequence[History], rows: Rows | None) -> tuple[History, ...]:
    """What beliefs are about: the attributes and, where rows show more than one and are not too many, whole rows."""
    if rows is None:
        return tuple(histories)
    counted = rows.counted
    if counted is None and rows.people.trajectories is not None:
        counted = Rows.of_people(rows.people, rows.labels, counted=True).counted
    return tuple(histories) if counted is None else (*histories, counted)


def _finding(history: History, belief: Belief, people: Sequence[int], limit: float) -> Finding:
    path = history.known_trajectories.path[history.known_trajectories.of[people[0]]].tolist()
    classes = [(release, number) for release, number in enumerate(path) if number >= 0]
    question = belief.questions[belief.question[people[0]]]
    published = [name_counts(history, history.releases[r].counts[c].tolist()) for r, c in classes]
    return Finding(
        attack="belief",
        adversary="insider",
        releases=tuple(release + 1 for release, _ in classes),
        required=limit,
        observed=round(float(belief.largest[people[0]]), 6),
        value=question.value,
        classes=tuple((release + 1, number + 1) for release, number in classes),
        people=tuple(history.people[person] for person in people),
        witness={"published": published, "rounds": belief.rounds, "missed": belief.missed},
        attribute=question.attribute,
    )


def _story(finding: Finding, history: History) -> str:
    return (
        "Whoever knows who is in which class and prefers no value to another believes that "
        f"{words.names(finding.people)} has {finding.value} with {words.share(finding.observed)}: of all beliefs that "
        "add up to the rows of every class of every release this is the most even one. The rows of the classes below "
        "alone need not show it."
    )


KNOWN = (0.0, 0.05, 0.20)
DRAWS = 3


@dataclass(frozen=True)
class Resilience:
    """The others' beliefs when a share of the people is known.

    belief   by somebody without prejudice who looks at all class counts
    lineage  by somebody who is told all pods, types and seats; None where they are not known
    linked   share of the others in a lineage with somebody who is known; None likewise
    """

    known: float
    belief: BeliefSpread
    lineage: BeliefSpread | None = None
    linked: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        plain: dict[str, Any] = {"known": self.known, "belief": self.belief.to_dict()}
        if self.lineage is not None:
            plain |= {"lineage": self.lineage.to_dict(), "linked": round(self.linked or 0.0, 6)}
        return plain


def resilience(
    history: History,
    seats: Seats | None = None,
    *,
    labels: Labels | None = None,
    known: Sequence[float] = KNOWN,
    draws: int = DRAWS,
    seed: int = 0,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
) -> dict[float, Resilience]:
    """Per share of people whose values are known: what is believed of the others, the mean of several draws.

    Decoys are never known and never counted. Who is known is drawn from the seed, more people for larger shares;
    `labels` as in `believe`.
    """
    if history.trajectories is None or history.value is None:
        raise ValueError("resilience needs to know who is where and has which value")
    people = (history.trajectories.of >= 0) & (history.value >= 0)
    if seats is not None:
        people &= ~seats.decoy
    number = np.flatnonzero(people)
    orders = [np.random.default_rng([seed, draw]).permutation(number) for draw in range(draws)]
    by_share = {}
    for share in known:
        count = round(share * len(number))
        beliefs, lineages, linked = [], [], []
        for order in orders if count else orders[:1]:
            told = np.zeros(len(people), np.bool_)
            told[order[:count]] = True
            beliefs.append(_spread(history, people, labels=labels, known=told, rounds=rounds, tolerance=tolerance))
            if seats is not None:
                lineages.append(believe_lineages(history, seats, labels=labels, known=told).spread(people))
                linked.append(_linked(seats.lineages(), told, people))
        by_share[share] = Resilience(
            share,
            mean_of(beliefs),
            mean_of(lineages) if lineages else None,
            float(np.mean(linked)) if linked else None,
        )
    return by_share


def _spread(history: History, people: NDArray[np.bool_], **question: Any) -> BeliefSpread:
    return believe(history, **question).spread(people)


def _linked(lineage: NDArray[np.int32], known: NDArray[np.bool_], people: NDArray[np.bool_]) -> float:
    """Share of the others who are in a lineage with somebody who is known."""
    touched = np.zeros(int(lineage.max(initial=-1)) + 1, np.bool_)
    touched[lineage[known]] = True
    others = people & ~known
    return float(touched[lineage[others]].mean()) if others.any() else 0.0


Mask = NDArray[np.bool_]


def believe_lineages(
    history: History, seats: Seats, *, labels: Labels | None = None, known: Mask | None = None
) -> Belief:
    """Everybody's exact posterior given the seats, and the values of those who are `known`; `labels` as in `believe`.

    The seats must be proven (every pod whole, one label per seat for ever); of others nothing follows.
    """
    if history.trajectories is None or history.value is None or not history.permanent:
        raise ValueError("lineages need values that stay, and to know who is where and has which")
    about = (history.trajectories.of >= 0) & (history.value >= 0)
    person, labels = np.flatnonzero(about), labels or Labels.of_history(history)
    width, values = int(seats.seat.max(initial=0)) + 1, max(len(labels.questions), 1)
    key = seats.lineages()[person].astype(np.int64) * width + seats.seat[person]
    place, first, of = np.unique(key, return_index=True, return_inverse=True)
    lineage = place // width
    is_known = np.zeros(len(place), np.bool_)
    if known is not None:
        is_known[of[known[person]]] = True
        about &= ~known
    # Every seat with every bounded value that it has.
    seat, asked = labels.questions_of(history.value[person[first]])
    cell = lineage[seat] * values + asked
    # What is left of every lineage: seats nobody is known at, and how many of them have each value.
    free = np.bincount(lineage[~is_known], minlength=int(lineage.max(initial=-1)) + 1)
    left, count = np.unique(cell[~is_known[seat]], return_counts=True)
    share = count / free[left // values]
    order = np.argsort(share, kind="stable")
    # Of equal places the last one stays: the largest share.
    largest, best = np.zeros(len(free)), np.full(len(free), -1, np.int32)
    largest[left[order] // values], best[left[order] // values] = share[order], left[order] % values
    own, which = np.zeros(len(place)), best[lineage]
    at = np.searchsorted(left, cell)
    np.maximum.at(own, seat, np.where(is_known[seat], 1.0, np.append(share, 0.0)[at]))
    which[is_known] = -1
    which[seat[is_known[seat]]] = asked[is_known[seat]]
    told, reached = about[person], np.zeros((2, len(about)))
    reached[:, person[told]] = np.array([np.where(is_known, own, largest[lineage]), own])[:, of[told]]
    question = np.full(len(about), -1, np.int32)
    question[person[told]] = which[of[told]]
    return Belief(labels.questions, reached[0], question, reached[1], about)


ATTACK = Attack(
    name="belief",
    adversary="insider",
    title="Belief of somebody without prejudice",
    find=lambda history, asked: asked.beliefs.find(history, asked.policy.protect.belief),
    smallest=False,
    required=lambda policy, bound: None if policy.protect.belief is None else float(policy.protect.belief),
    values="permanent",
    releases=1,
    knows_people=True,
    looks_at=believable,
    story=_story,
    unpromised=lambda policy: UNPROMISED if policy.protect.belief is None else None,
    settled=unbounded,
)
