"""How far background knowledge carries: what is believed of the others when some people's values are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.belief.lineages import believe_lineages
from sequester.attacks.solvers.belief import ROUNDS, TOLERANCE, believe
from sequester.attacks.solvers.spread import BeliefSpread, mean_of
from sequester.history import History
from sequester.history.label import Labels
from sequester.history.seats import Seats

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
