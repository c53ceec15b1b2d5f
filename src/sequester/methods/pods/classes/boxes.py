"""The least and largest of every group: boxes of pods and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def boxes_of(group: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and largest of every column of `values` (rows, columns), per group; groups are numbered from 0."""
    order = np.argsort(group, kind="stable")
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    sides = values[order]
    return np.minimum.reduceat(sides, start, axis=0), np.maximum.reduceat(sides, start, axis=0)
