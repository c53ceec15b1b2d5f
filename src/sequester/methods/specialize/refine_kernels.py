"""One step of top-down specialization: split every class that holds a value of the cut, if all parts stay safe."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import kernel
from sequester.methods.class_guard.limits import safe


@kernel
def split_classes(
    touched: Any,
    child: Any,
    children: int,
    member: Any,
    classes: int,
    local: Any,
    size: Any,
    known: Any,
    pair_start: Any,
    pair_value: Any,
    pair_count: Any,
    needed: int,
    limits: Any,
):
    """Split the classes of the touched cells by child; returns the new number of classes, -1 if a part is not safe.

    member  the class of every cell, changed in place when all parts are safe
    local   room to work, one place per class, -1 everywhere and left that way
    """
    found = 0
    for cell in touched:
        if local[member[cell]] < 0:
            local[member[cell]] = found
            found += 1
    begin = np.zeros(found * children + 1, np.int64)
    for i in range(touched.size):
        begin[local[member[touched[i]]] * children + child[i] + 1] += 1
    for part in range(found * children):
        begin[part + 1] += begin[part]
    place = begin[:-1].copy()
    ordered = np.empty(touched.size, np.int64)
    for i in range(touched.size):
        part = local[member[touched[i]]] * children + child[i]
        ordered[place[part]] = touched[i]
        place[part] += 1
    for cell in touched:
        local[member[cell]] = -1
    counts = np.zeros(limits.numerator.size, np.int64)
    for part in range(found * children):
        total: Any = np.int64(0)
        around = 0
        counts[:] = 0
        for i in range(begin[part], begin[part + 1]):
            total += size[ordered[i]]
            around += known[ordered[i]]
        if total == 0:
            continue
        if total < limits.k or around < needed:
            return -1
        if counts.size > 0:
            for i in range(begin[part], begin[part + 1]):
                for pair in range(pair_start[ordered[i]], pair_start[ordered[i] + 1]):
                    counts[pair_value[pair]] += pair_count[pair]
            if not safe(counts, total, limits):
                return -1
    for number in range(found):
        fresh = False
        for part in range(number * children, (number + 1) * children):
            if begin[part] == begin[part + 1]:
                continue
            if fresh:
                for i in range(begin[part], begin[part + 1]):
                    member[ordered[i]] = classes
                classes += 1
            fresh = True
    return classes
