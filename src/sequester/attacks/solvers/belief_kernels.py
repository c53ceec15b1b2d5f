"""Iterative scaling: how many of a group of people have each value, as even as published counts allow.

People who were in the same class of every release are one unit; only values that all its classes still have are cells
of it, so that everything is linear in what can be. Classes of all releases are numbered through: release r has the
classes [first[r], first[r + 1]), and counts (classes, values) are their rows of people whose value is not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import kernel


@kernel
def possible(path: Any, size: Any, counts: Any):  # type: ignore[no-untyped-def]
    """Per unit where its cells begin, and the value of every cell: those that all its classes have."""
    start = np.zeros(size.size + 1, np.int64)
    value = np.empty(4 * size.size + counts.shape[1] + 16, np.int32)
    found = 0
    for t in range(size.size):
        first = -1
        for r in range(path.shape[1]):
            if path[t, r] >= 0:
                first = r
                break
        if size[t] > 0 and first >= 0:
            if found + counts.shape[1] > value.size:
                value = np.append(value, value)
            for s in range(counts.shape[1]):
                fits = counts[path[t, first], s] > 0
                for r in range(first + 1, path.shape[1]):
                    if not fits:
                        break
                    fits = path[t, r] < 0 or counts[path[t, r], s] > 0
                if fits:
                    value[found] = s
                    found += 1
        start[t + 1] = found
    return start, value[:found]


@kernel
def settle(path: Any, size: Any, counts: Any, start: Any, value: Any, passes: int):  # type: ignore[no-untyped-def]
    """Per cell, whether it is still open: plain counting closes what scaling would only come near to.

    Whoever has one value left takes rows of it from the others of her classes; rows that are as many as those who can
    have them are theirs.
    """
    is_open = np.ones(value.size, np.bool_)
    left = np.diff(start)
    for _ in range(passes):
        taken, wanted = np.zeros(counts.shape, np.int64), np.zeros(counts.shape, np.int64)
        for t in range(size.size):
            for cell in range(start[t], start[t + 1]):
                if is_open[cell]:
                    for r in range(path.shape[1]):
                        if path[t, r] >= 0:
                            wanted[path[t, r], value[cell]] += size[t]
                            if left[t] == 1:
                                taken[path[t, r], value[cell]] += size[t]
        changed = False
        for t in range(size.size):
            if left[t] < 2:
                continue
            only = -1
            for cell in range(start[t], start[t + 1]):
                if not is_open[cell]:
                    continue
                for r in range(path.shape[1]):
                    c = path[t, r]
                    if c < 0:
                        continue
                    if wanted[c, value[cell]] == counts[c, value[cell]]:
                        only = cell
                    elif taken[c, value[cell]] == counts[c, value[cell]] and left[t] > 1:
                        is_open[cell] = False
                        left[t] -= 1
                        changed = True
                        break
            if only >= 0 and is_open[only] and left[t] > 1:
                for cell in range(start[t], start[t + 1]):
                    is_open[cell] = cell == only
                left[t] = 1
                changed = True
        if not changed:
            break
    return is_open


@kernel
def scale(  # type: ignore[no-untyped-def]  # noqa: PLR0913 - a compiled loop over plain arrays
    path: Any, first: Any, size: Any, counts: Any, start: Any, value: Any, expected: Any, rounds: int, tolerance: float
):
    """Change `expected`, people per cell, until all published counts are met; returns rounds done and what is missed.

    Each release in turn: every (class, value) is scaled to its count, then every unit to its size. What is missed is
    the mean difference to a count before it was scaled, per row.
    """
    releases, values = path.shape[1], counts.shape[1]
    widest = 0
    for r in range(releases):
        widest = max(widest, first[r + 1] - first[r])
    factor, total = np.zeros((widest, values)), np.zeros((widest, values))
    for t in range(size.size):
        if path[t, 0] >= 0:
            for cell in range(start[t], start[t + 1]):
                total[path[t, 0], value[cell]] += expected[cell]
    missed = 0.0
    for done in range(rounds):
        missed, rows = 0.0, 0.0
        for r in range(releases):
            for c in range(first[r + 1] - first[r]):
                for s in range(values):
                    count, sum_ = counts[first[r] + c, s], total[c, s]
                    factor[c, s] = count / sum_ if sum_ > 0.0 else 0.0
                    if sum_ > 0.0:
                        missed += abs(count - sum_)
                        rows += count
                    total[c, s] = 0.0
            following = (r + 1) % releases
            for t in range(size.size):
                here = path[t, r]
                if here >= 0:
                    here -= first[r]
                    sum_ = 0.0
                    for cell in range(start[t], start[t + 1]):
                        expected[cell] *= factor[here, value[cell]]
                        sum_ += expected[cell]
                    if sum_ > 0.0:
                        for cell in range(start[t], start[t + 1]):
                            expected[cell] *= size[t] / sum_
                there = path[t, following]
                if there >= 0:
                    there -= first[following]
                    for cell in range(start[t], start[t + 1]):
                        total[there, value[cell]] += expected[cell]
        missed /= rows
        if missed < tolerance:
            return done + 1, missed
    return rounds, missed
