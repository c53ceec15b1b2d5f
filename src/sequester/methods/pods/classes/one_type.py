"""Classes of one type: all pods of a class share out the same labels (after m-invariance, Xiao and Tao 2007).

Everybody's classes then show the same values, equally often, in every release she is in: her signature. To the letter a
class of m-invariance has each value once, which is a class of a single pod; here it may be several of one type, so that
k can be larger than m. It is for comparison: near people rarely share a type, so boxes are wide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.grouping import group
from sequester.methods.pods.classes.shelf_kernels import Least
from sequester.methods.pods.pairing.benches import Benches

Integers = NDArray[np.int64]
Places = NDArray[np.float64]


def group_types(
    place: Places, real: NDArray[np.bool_], pod: Integers, key: Integers, least: Least, kind: Integers
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
        into, moved = group(place[rows], real[rows], own.ravel().astype(np.int64), key[rows], least)
        member[rows], found[rows] = classes + into, pods[moved]
        classes += int(into.max()) + 1
    return member, found


def add_company(benches: Benches, k: int) -> None:
    """Where a type has fewer than k rows, pods of decoys of the same type beside it."""
    ordered = np.sort(benches.label, axis=1)
    types, first, pods = np.unique(ordered, axis=0, return_index=True, return_counts=True)
    seats = (types >= 0).sum(axis=1)
    more = np.maximum(-(-(k - pods * seats) // seats), 0)
    labels = benches.label[np.repeat(first, more)]
    if len(labels):
        benches.add(np.where(labels == -2, -2, -1), labels)
