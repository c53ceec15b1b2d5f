"""Groups of people in compiled loops."""

from __future__ import annotations

import numpy as np

from sequester.kernels import helper
from sequester.methods.class_guard.limits import safe


@helper
def all_safe(people, count, group, groups, values, limits, counts):
    """Whether every group of the first so many people satisfies the static limits; `group` is beside `people`."""
    for number in range(groups):
        counts[:] = 0
        size = np.int64(0)
        for i in range(count):
            if group[i] == number:
                size += 1
                for view in range(values.shape[1]):
                    counts[values[people[i], view]] += 1
        if not safe(counts, size, limits):
            return False
    return True
