"""Belief as an attack: who is believed to have a value more surely than promised, and what is told of everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import UNPROMISED, Attack, unbounded
from sequester.attacks.belief.informed import Informed, inform
from sequester.attacks.belief.resilience import Resilience, resilience
from sequester.attacks.exposure import Noted, name_counts, say_more, worst
from sequester.attacks.finding import Finding
from sequester.attacks.solvers.belief import Belief, believe
from sequester.attacks.solvers.spread import NOISE, BeliefSpread
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

    def find(self, history: History, limit: float | None) -> Noted:
        """A finding for people of one history who are believed to have a value by more than the limit.

        What scaling may be off is not held against a release. The measure is the largest belief in a bounded value.
        """
        if limit is None or history.trajectories is None or not history.permanent:
            return Noted()
        belief = self._of(history)
        if not belief.questions:
            return Noted()
        told = belief.told & self._people(history)
        too_sure = np.flatnonzero(told & (belief.largest > limit + NOISE))
        trajectory, first = np.unique(history.trajectories.of[too_sure], return_index=True)
        kept = worst(belief.largest[too_sure[first]])
        order = np.argsort(history.trajectories.of[too_sure], kind="stable")
        people = np.split(too_sure[order], np.searchsorted(history.trajectories.of[too_sure][order], trajectory[1:]))
        findings = [_finding(history, belief, people[one].tolist(), limit) for one in kept.tolist()]
        more = say_more("belief", history.attribute, len(trajectory) - len(kept))
        return Noted(findings, round(float(belief.largest[told].max(initial=0.0)), 6), more)

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
