"""Classes of many pods in which every label has company: of one type each, where a type has people enough.

In a class of one type every row may have any of its labels, so as many rows as are asked for are company for all of
them. Of many people there are many of every type, so that those are near each other. Pods of a type that few people
have join the nearest classes that have their labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.boxes import boxes_of
from sequester.methods.pods.classes.company import labels_of
from sequester.methods.pods.classes.shelf_kernels import Least
from sequester.methods.pods.many.grouping import group_many

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_APART = 64.0
"""How far apart classes are put that do not have the label which is looked for."""


def group_types_of_many(place: Places, pod: Integers, kind: Integers, label: Integers, least: Least) -> Integers:
    """The class of every row; `place` is of the people, who come first, `kind` the type of every row.

    least  of a class; its rows are those of the company of every label, too
    """
    member = np.full(len(pod), -1, np.int64)
    order = np.argsort(kind, kind="stable")
    classes = 0
    for rows in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
        people = rows[rows < len(place)]
        if len(rows) < least.rows or len(people) < least.people:
            continue
        own = np.unique(pod[rows], return_inverse=True)[1].ravel()
        many = len(people) and len(rows) >= 2 * least.rows
        into = group_many(place[people], own, least) if many else np.zeros_like(rows)
        member[rows] = classes + into
        classes += int(into.max()) + 1
    rest = np.flatnonzero(member < 0)
    return member if not len(rest) else _attached(place, pod, label, member, classes)


def _attached(place: Places, pod: Integers, label: Integers, member: Integers, classes: int) -> Integers:
    """The pods that are in no class yet, each with a class that has each of its labels, and those joined by it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not classes:
        return np.zeros(len(pod), np.int64)
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
