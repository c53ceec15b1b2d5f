"""Operations on arrays that several rooms need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_KEY = 1 << 62
# Of fewer numbers, NumPy's own sorting takes less time.
_MANY = 10_000

Integers = NDArray[np.int64]


def numbered(key: NDArray[np.integer[Any]]) -> tuple[Integers, Integers, Integers]:
    """What `np.unique` says with indices and inverse: the numbers there are, where each is first, which one each is.

    Many numbers are counted where they lie close together, and hashed where they do not: only those that differ are
    sorted.
    """
    if len(key) < _MANY:
        values, first, place = np.unique(key, return_index=True, return_inverse=True)
        return values.astype(np.int64), first.astype(np.int64), place.ravel().astype(np.int64)
    low = int(key.min())
    span = int(key.max()) - low + 1
    if span <= 2 * len(key):
        close = key - low
        there = np.zeros(span, np.bool_)
        there[close] = True
        values = np.flatnonzero(there)
        place = (np.cumsum(there) - 1)[close]
        values += low
    else:
        import pyarrow as pa

        hashed = pa.array(key.astype(np.int64, copy=False)).dictionary_encode()
        found = hashed.dictionary.to_numpy()
        order = np.argsort(found)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        values, place = found[order], rank[hashed.indices.to_numpy()]
    first = np.empty(len(values), np.int64)
    # The last that is assigned stays.
    first[place[::-1]] = np.arange(len(key) - 1, -1, -1)
    return values, first, place


def row_groups(codes: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For a (attributes, records) array: the group of every record, and the first record of every group.

    Records are in one group exactly when they agree on all attributes. Groups are numbered in lexicographic order.
    """
    key, span = np.zeros(codes.shape[1], np.int64), 1
    for row in codes if codes.shape[1] else ():
        low = int(row.min())
        size = int(row.max()) - low + 1
        if span * size > _LARGEST_KEY:
            # Renumbered, in the same order, keys are small again.
            key = numbered(key)[2]
            span = int(key.max()) + 1
        key, span = key * size + (row.astype(np.int64) - low), span * size
    _, first, group = numbered(key)
    return group, first
