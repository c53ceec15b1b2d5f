"""One step of top-down specialization: whether every class that it would make is safe by itself."""

from __future__ import annotations

import numpy as np

from sequester.kernels import kernel
from sequester.methods.class_guard.limits import safe


@kernel
def keep_limits(cells, ordered, begin, needed, limits):
    """Whether the parts ordered[begin[i]:begin[i + 1]] of the cells keep the criteria; nobody in a part is fine.

    needed  people of the population that every part must have
    """
    counts = np.zeros(limits.numerator.size, np.int64)
    for part in range(begin.size - 1):
        inside = ordered[begin[part] : begin[part + 1]]
        total, around = np.int64(0), np.int64(0)
        for cell in inside:
            total += cells.size[cell]
            around += cells.known[cell]
        if total == 0:
            continue
        if total < limits.k or around < needed:
            return False
        if counts.size > 0:
            counts[:] = 0
            for cell in inside:
                for pair in range(cells.pair_start[cell], cells.pair_start[cell + 1]):
                    counts[cells.pair_value[pair]] += cells.pair_count[pair]
            if not safe(counts, total, limits):
                return False
    return True
