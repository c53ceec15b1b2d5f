"""What remains of a lineage for somebody who is told all pods, types and seats: one choice, exactly.

A lineage is everybody who is linked through pods. All its people at one seat have one label, so that its worlds are the
ways to lay its type's labels on its seats, and without a reason to prefer one they are equally likely. (The proof that
pods are safe needs the cyclic shifts only; an adversary who ruled out the other ways would need a reason to. Between
two seats there is no difference.) Then a person has a value with its share of the seats; whoever's value is known tells
her seat, and what is left is shared out among the others: of a couple, everybody's. Decoys have seats like everybody.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.belief import Belief
from sequester.history import History
from sequester.history.label import Labels
from sequester.history.seats import Seats

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
