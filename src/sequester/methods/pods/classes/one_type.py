"""Classes of one type: all pods of a class share out the same labels (after m-invariance, Xiao and Tao 2007).

Everybody's classes then show the same values, equally often, in every release she is in: her signature. To the letter a
class of m-invariance has each value once, which is a class of a single pod; here it may be several of one type, so that
k can be larger than m. For few people it is for comparison: near people rarely share a type, so boxes are wide. Of many
there are many of every type who are near each other, and in a class of one type as many rows as are asked for are
company for all of its labels. Pods of a type that few people have join the nearest classes that have their labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.company import labels_of
from sequester.methods.pods.classes.grouping import boxes_of, group
from sequester.methods.pods.pairing.seats import PodSeats
from sequester.methods.pods.task import Least

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_APART = 64.0
"""How far apart classes are put that do not have the label which is looked for."""


def group_types(
    place: Places, people: int, pod: Integers, key: Integers, least: Least, kind: Integers
) -> tuple[Integers, Integers]:
    """As `group`, of the rows of each type (`kind`, per row) apart."""
    member, found = np.empty(len(pod), np.int64), pod.copy()
    classes = 0
    for one in np.unique(kind).tolist():
        rows = np.flatnonzero(kind == one)
        if len(rows) < 2 * least.rows:
            member[rows] = classes
            classes += 1
            continue
        pods, own = np.unique(pod[rows], return_inverse=True)
        into, moved = group(place[rows], int((rows < people).sum()), own.ravel(), key[rows], least)
        member[rows], found[rows] = classes + into, pods[moved]
        classes += int(into.max()) + 1
    return member, found


def group_types_of_many(
    place: Places, people: int, pod: Integers, key: Integers, least: Least, kind: Integers, label: Integers
) -> tuple[Integers, Integers]:
    """The same where a type has people enough; `label` per row. The least rows are company of every label, too."""
    rows, real = np.bincount(kind), np.bincount(kind[:people], minlength=int(kind.max()) + 1)
    some = np.flatnonzero(((rows >= least.rows) & (real >= least.people))[kind])
    member, found = np.full(len(pod), -1, np.int64), pod.copy()
    if not len(some):
        return np.zeros(len(pod), np.int64), found
    about = int((some < people).sum())
    member[some], found[some] = group_types(place[some], about, pod[some], key[some], least, kind[some])
    if len(some) < len(pod):
        member = _attached(place[:people], found, label, member, int(member.max()) + 1)
    return member, found


def add_company(filled: PodSeats, k: int) -> None:
    """Where a type has fewer than k rows, pods of decoys of the same type beside it."""
    ordered = np.sort(filled.label, axis=1)
    types, first, pods = np.unique(ordered, axis=0, return_index=True, return_counts=True)
    seats = (types >= 0).sum(axis=1)
    more = np.maximum(-(-(k - pods * seats) // seats), 0)
    filled.add_decoys(filled.label[np.repeat(first, more)])


def _attached(place: Places, pod: Integers, label: Integers, member: Integers, classes: int) -> Integers:
    """The pods that are in no class yet, each with a class that has each of its labels, and those joined by it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, row = np.unique(pod[member < 0], return_index=True)
    shown = labels_of(pod, label)[left]
    where = place[np.minimum(np.flatnonzero(member < 0)[row], len(place) - 1)]
    one, other = [], []
    there = _centers(place, member, classes)
    having, having_label = _labels_of_classes(member, label)
    for column in shown.T:
        asks = np.flatnonzero(column >= 0)
        known = np.isin(column[asks], having_label)
        near = _nearest(where[asks[known]], column[asks[known]], there[having], having_label)
        one.append(classes + asks[known])
        other.append(having[near])
        # A label that no class has: all pods with it are together, which is company enough, beside any class.
        for own in np.unique(column[asks[~known]]).tolist():
            with_it = np.flatnonzero((shown == own).any(axis=1))
            one.append(classes + with_it)
            other.append(np.full(len(with_it), _nearest(where[with_it[:1]], np.zeros(1, np.int64), there, None)[0]))
    start, end = np.concatenate(one), np.concatenate(other)
    size = classes + len(left)
    links = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(size, size))
    joined = connected_components(links, directed=False)[1].astype(np.int64)
    node = np.where(member >= 0, member, classes + np.searchsorted(left, pod))
    return np.unique(joined[node], return_inverse=True)[1].ravel().astype(np.int64)


def _centers(place: Places, member: Integers, classes: int) -> Places:
    """Where every class is; one of decoys only is at the origin."""
    found = np.zeros((classes, place.shape[1]))
    own = np.flatnonzero(member[: len(place)] >= 0)
    there, index = np.unique(member[own], return_inverse=True)
    low, high = boxes_of(index.ravel(), place[own])
    found[there] = (low + high) / 2
    return found


def _labels_of_classes(member: Integers, label: Integers) -> tuple[Integers, Integers]:
    """Every class with every label it has."""
    width = int(label.max()) + 1
    own = np.flatnonzero(member >= 0)
    pairs = np.unique(member[own] * width + label[own])
    return pairs // width, pairs % width


def _nearest(here: Places, asked: Integers, there: Places, having: Integers | None) -> Integers:
    """Per place, the nearest of the others, of those that have what is asked for."""
    from scipy.spatial import cKDTree

    if having is not None:
        here, there = np.column_stack([here, asked * _APART]), np.column_stack([there, having * _APART])
    return np.asarray(cKDTree(there).query(here, p=1)[1], np.int64).reshape(-1)
