"""One step of top-down specialization: split every class that holds a value of the cut, if all parts stay safe."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe


class Step(NamedTuple):
    """A specialization: the cells (or atoms) that have the value, which child each goes to, and how many there are."""

    touched: NDArray[np.int64]
    child: NDArray[np.int32]
    children: int


@helper
def arrange(step, member, local):
    """Touched cells by class and child, a class and its children together: how many classes, cells, where parts begin.

    local  room to work, one place per class, -1 everywhere and left that way
    """
    touched, child, children = step.touched, step.child, step.children
    classes = 0
    for cell in touched:
        if local[member[cell]] < 0:
            local[member[cell]] = classes
            classes += 1
    begin = np.zeros(classes * children + 1, np.int64)
    for i in range(touched.size):
        begin[local[member[touched[i]]] * children + child[i] + 1] += 1
    for part in range(classes * children):
        begin[part + 1] += begin[part]
    place = begin[:-1].copy()
    ordered = np.empty(touched.size, np.int64)
    for i in range(touched.size):
        part = local[member[touched[i]]] * children + child[i]
        ordered[place[part]] = touched[i]
        place[part] += 1
    for cell in touched:
        local[member[cell]] = -1
    return classes, ordered, begin


@helper(inline="always")
def _keeps(cells, inside, needed, limits, counts):
    """Whether a part keeps the criteria; nobody in it is fine."""
    known, pair_count, pair_start, pair_value = cells.known, cells.pair_count, cells.pair_start, cells.pair_value
    size = cells.size
    total = np.int64(0)
    around = 0
    for cell in inside:
        total += size[cell]
        around += known[cell]
    if total == 0:
        return True
    if total < limits.k or around < needed:
        return False
    if counts.size == 0:
        return True
    counts[:] = 0
    for cell in inside:
        for pair in range(pair_start[cell], pair_start[cell + 1]):
            counts[pair_value[pair]] += pair_count[pair]
    return safe(counts, total, limits)


@kernel
def split_classes(step, member, classes, local, cells, needed, limits):
    """Split the classes of the touched cells by child; returns the new number of classes, -1 if a part is not safe.

    member  the class of every cell, changed in place when all parts are safe
    local   as for `arrange`
    """
    split, ordered, begin = arrange(step, member, local)
    counts = np.zeros(limits.numerator.size, np.int64)
    for part in range(split * step.children):
        if not _keeps(cells, ordered[begin[part] : begin[part + 1]], needed, limits, counts):
            return -1
    for number in range(split):
        is_first = True
        for part in range(number * step.children, (number + 1) * step.children):
            if begin[part] == begin[part + 1]:
                continue
            if not is_first:
                for i in range(begin[part], begin[part + 1]):
                    member[ordered[i]] = classes
                classes += 1
            is_first = False
    return classes
