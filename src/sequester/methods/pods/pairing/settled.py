"""Newcomers of a table that hardly anybody leaves: whole neighborhoods as pods.

A pod of as many seats as are promised of what is inferred is company enough for all its labels, and of any people who
are near each other: it costs no more than a class does. What it costs is what becomes of it: every seat that somebody
leaves must be taken by somebody with the same label, who is rarely near, or by a decoy. So it is for tables that grow;
couples of earlier releases find company in classes with such pods.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.grouping import group
from sequester.methods.pods.classes.shelf_kernels import Least
from sequester.methods.pods.pairing.benches import Benches
from sequester.methods.pods.pairing.couples import Singles
from sequester.methods.pods.task import PodTask

Integers = NDArray[np.int64]

_LEAVING = 0.01
"""Share of people who leave, up to which pods are that large."""


def settled(task: PodTask, people: Singles) -> Benches:
    """Pods of newcomers who are near each other, where bounds allow; none where people leave."""
    seats = task.inferred
    none = Benches(np.zeros((0, seats), np.int64), np.zeros((0, seats), np.int64))
    new = np.flatnonzero(people.kind < 0)
    if not task.accompanied or not _stay(task, people) or len(new) < seats:
        return none
    own = np.arange(len(new))
    member, _ = group(people.place[new], np.ones(len(new), np.bool_), own, own, Least(seats, seats))
    size = np.bincount(member)
    order = np.argsort(member, kind="stable")
    taken = np.full((len(size), int(size.max())), -2, np.int64)
    taken[member[order], own - (np.cumsum(size) - size)[member[order]]] = new[order]
    most = 2 * seats - 1
    # Whoever shares a pod is linked.
    taken = taken[size <= (most if task.lineage is None else min(most, task.lineage))]
    label = np.where(taken >= 0, people.label[taken], -2)
    fits = _within_bounds(task, label) & _possible(task, taken, label)
    return Benches(taken[fits], label[fits]) if fits.any() else none


def _stay(task: PodTask, people: Singles) -> bool:
    """Whether hardly anybody leaves, as earlier releases tell; of the first nothing is known."""
    return bool(task.before.pods) and people.leaving <= _LEAVING


def _within_bounds(task: PodTask, label: Integers) -> NDArray[np.bool_]:
    """Whether no value has more than its share of a pod."""
    fits = np.ones(len(label), np.bool_)
    seats = (label >= 0).sum(axis=1)
    for row, shares in zip(task.bounds.answers, task.bounds.shares, strict=True):
        answer = np.where(label >= 0, row[label], -1)
        top = np.array([share.numerator for share in shares] + [1], np.int64)
        below = np.array([share.denominator for share in shares] + [1], np.int64)
        for column in answer.T:
            count = (answer == column[:, None]).sum(axis=1)
            fits &= (column < 0) | (count * below[column] <= top[column] * seats)
    return fits


def _possible(task: PodTask, taken: Integers, label: Integers) -> NDArray[np.bool_]:
    """Whether everybody could have every label of her pod, as far as others know."""
    fits = np.ones(len(label), np.bool_)
    if task.barred is None:
        return fits
    for sits, own in zip(taken.T, label.T, strict=True):
        for there in label.T:
            both = (sits >= 0) & (there >= 0) & (there != own)
            fits &= ~(both & task.barred[np.maximum(sits, 0), np.maximum(there, 0)])
    return fits
