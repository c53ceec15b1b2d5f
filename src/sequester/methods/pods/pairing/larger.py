"""Newcomers in pods of as many seats as are promised of what is inferred, which are company enough by themselves.

*Those with rare labels* (`gather`): a label few people have finds no company of its own nearby. Three couples with one
rare label are far from each other, and everybody in their class with them; a larger pod has the label once. Its labels
are rare ones all, so that few people are drawn in, and decided by how many have each of them, so that there are few
types: who is left by those who leave finds others.

*Whole neighborhoods* (`settled`), where hardly anybody leaves: such a pod of any people who are near each other costs
no more than a class does. What it costs is what becomes of it: every seat that somebody leaves must be taken by
somebody with the same label, who is rarely near, or by a decoy. So it is for tables that grow; couples of earlier
releases find company in classes with such pods.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.grouping import group
from sequester.methods.pods.pairing.couples import PodPeople
from sequester.methods.pods.pairing.seats import PodSeats, join, may_join, possible, take_seats
from sequester.methods.pods.task import LabelBounds, Least, PodTask

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_RARE = 0.005
"""Share of the people below which a label is rare."""

_ANY_PRICE = 1e3
"""More than any two people are apart: whoever can sit there does."""

_LEAVING = 0.01
"""Share of people who leave, up to which whole neighborhoods are pods."""


def gather(task: PodTask, place: Places, label: Integers, new: Integers) -> tuple[PodSeats, Integers]:
    """Pods of as many seats as are asked for, of newcomers with rare labels; and the newcomers who are in none."""
    bounds, seats, barred = task.bounds, task.inferred, task.barred
    few = new[rare_labels(label, bounds, seats)[label[new]]]
    if task.lineage is not None and task.lineage < seats:
        # So many people may not be linked.
        few = few[:0]
    if not len(few):
        return PodSeats(np.zeros((0, seats), np.int64), np.zeros((0, seats), np.int64)), new
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
    found = PodSeats(planned.taken[full], planned.label[full])
    return found, np.sort(np.concatenate([others, rest, back[back >= 0]]))


def rare_labels(label: Integers, bounds: LabelBounds, company: int) -> NDArray[np.bool_]:
    """Which labels few people have, or too few to have company in smaller pods."""
    count, seats = np.bincount(label, minlength=len(bounds)), bounds.seats()
    few = np.maximum(_RARE * len(label), -(-company // np.maximum(seats, 2)))
    return np.asarray((count > 0) & (count < few) & (seats <= company))


def _planned(label: Integers, bounds: LabelBounds, seats: int) -> PodSeats:
    """Empty pods with labels by how many have them, the most frequent of those left first, as bounds allow."""
    left = np.bincount(label, minlength=len(bounds)).astype(np.int64)
    found = []
    while left.any():
        pod = PodSeats(np.full((1, seats), -1, np.int64), np.full((1, seats), -1, np.int64))
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
    return PodSeats(np.full(label_of.shape, -1, np.int64), label_of)


def settled(task: PodTask, people: PodPeople) -> PodSeats:
    """Pods of newcomers who are near each other, where bounds allow; none where people leave."""
    seats = task.inferred
    none = PodSeats(np.zeros((0, seats), np.int64), np.zeros((0, seats), np.int64))
    new = np.flatnonzero(people.kind < 0)
    stay = bool(task.before.pods) and people.leaving <= _LEAVING
    if not task.accompanied or not stay or len(new) < seats:
        return none
    own = np.arange(len(new))
    member, _ = group(people.place[new], len(new), own, own, Least(seats, seats))
    size = np.bincount(member)
    order = np.argsort(member, kind="stable")
    taken = np.full((len(size), int(size.max())), -2, np.int64)
    taken[member[order], own - (np.cumsum(size) - size)[member[order]]] = new[order]
    most = 2 * seats - 1
    # Whoever shares a pod is linked.
    taken = taken[size <= (most if task.lineage is None else min(most, task.lineage))]
    label = np.where(taken >= 0, people.label[taken], -2)
    fits = _fits(task, PodSeats(taken, label))
    return PodSeats(taken[fits], label[fits]) if fits.any() else none


def _fits(task: PodTask, full: PodSeats) -> NDArray[np.bool_]:
    """Whether whole pods keep every bound, and everybody could have every label of hers: as if each came last."""
    found = np.ones(len(full), np.bool_)
    for seat, sits in enumerate(full.taken.T):
        pods = np.flatnonzero(sits >= 0)
        people, label = sits[pods], full.label[pods, seat]
        others = PodSeats(full.taken.copy(), full.label.copy())
        others.taken[pods, seat] = others.label[pods, seat] = -1
        found[pods] &= may_join(others, pods, label, task.bounds)
        found[pods] &= possible(others, pods, people, task.label.astype(np.int64), task.barred)
    return found
