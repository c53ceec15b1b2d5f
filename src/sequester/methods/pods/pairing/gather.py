"""Newcomers with rare labels in larger pods: a label few people have finds no company of its own nearby.

Three couples with one rare label are far from each other, and everybody in their class with them. A pod of as many
seats as are promised of what is inferred is company enough by itself, with the label once. Its labels are rare ones
all, so that few people are drawn in, and decided by how many have each of them, so that there are few types: who is
left by those who leave finds others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.pairing.benches import Benches, join, may_join, take_seats
from sequester.methods.pods.task import LabelBounds, PodTask

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_RARE = 0.005
"""Share of the people below which a label is rare."""

_ANY_PRICE = 1e3
"""More than any two people are apart: whoever can sit there does."""


def gather(task: PodTask, place: Places, label: Integers, new: Integers) -> tuple[Benches, Integers]:
    """Pods of as many seats as are asked for, of newcomers with rare labels; and the newcomers who are in none."""
    bounds, seats, barred = task.bounds, task.inferred, task.barred
    few = new[rare_labels(label, bounds, seats)[label[new]]]
    if task.lineage is not None and task.lineage < seats:
        # So many people may not be linked.
        few = few[:0]
    if not len(few):
        return Benches(np.zeros((0, seats), np.int64), np.zeros((0, seats), np.int64)), new
    planned, rest = _planned(label[few], bounds, seats), few
    for pod in range(len(planned)):
        first = rest[label[rest] == planned.label[pod, 0]][0]
        planned.taken[pod, 0] = first
        rest = rest[rest != first]
    rest = take_seats(planned, place, rest, label, None, _ANY_PRICE, barred)
    planned.label[planned.taken < 0] = -1
    # Whoever has the rarest of the other labels sits where nobody does.
    others = np.setdiff1d(new, few)
    count = np.bincount(label)
    for one in np.unique(label[others])[np.argsort(count[np.unique(label[others])], kind="stable")].tolist():
        if not (planned.taken == -1).any():
            break
        own = others[label[others] == one]
        left = join(planned, place, own, label, bounds, _ANY_PRICE, barred)
        others = np.setdiff1d(others, np.setdiff1d(own, left))
    # A pod with empty seats would need decoys, as many as company for smaller ones does.
    full = (planned.taken >= 0).all(axis=1)
    back = planned.taken[~full]
    found = Benches(planned.taken[full], planned.label[full])
    return found, np.sort(np.concatenate([others, rest, back[back >= 0]]))


def rare_labels(label: Integers, bounds: LabelBounds, company: int) -> NDArray[np.bool_]:
    """Which labels few people have, or too few to have company in smaller pods."""
    count, seats = np.bincount(label, minlength=len(bounds)), bounds.seats()
    few = np.maximum(_RARE * len(label), -(-company // np.maximum(seats, 2)))
    return np.asarray((count > 0) & (count < few) & (seats <= company))


def _planned(label: Integers, bounds: LabelBounds, seats: int) -> Benches:
    """Empty pods with labels by how many have them, the most frequent of those left first, as bounds allow."""
    left = np.bincount(label, minlength=len(bounds)).astype(np.int64)
    found = []
    while left.any():
        pod = Benches(np.full((1, seats), -1, np.int64), np.full((1, seats), -1, np.int64))
        for seat in range(seats):
            having = np.flatnonzero(left)
            fits = having[may_join(pod, np.zeros(len(having), np.int64), having, bounds)]
            if not len(fits):
                break
            own = (pod.label[0] == fits[:, None]).sum(axis=1)
            best = fits[np.argmax(left[fits] / (own + 1))]
            pod.label[0, seat] = best
            left[best] -= 1
        found.append(pod.label)
    label_of = np.vstack(found)
    return Benches(np.full(label_of.shape, -1, np.int64), label_of)
