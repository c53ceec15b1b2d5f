"""Operations on arrays that several rooms need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_KEY = 1 << 62


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
            key = np.unique(key, return_inverse=True)[1].ravel()
            span = int(key.max()) + 1
        key, span = key * size + (row.astype(np.int64) - low), span * size
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group.ravel(), first.astype(np.int64)
