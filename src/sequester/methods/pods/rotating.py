"""Pods of three near classes, moved at once: one into the second, one of that into the third, and one of that back."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.pods.shelves import lost, move, shelve


@helper
def _best_turn(one: Any, member: Any, shelves: Any, pods: Any, k: int, now: Any) -> Any:
    """Whom a pod replaces, and whom that replaces, where it loses least; -1 for nobody.

    The third is a pod that comes back, or -1 - the class in which the second just stays.
    """
    a, near, size, rows = member[one], pods.near, pods.size, shelves.rows
    left = lost(a, one, -1, shelves, pods)
    best, second, third = -1e-9, np.int64(-1), np.int64(-1)
    for place in range(near.shape[1]):
        two = near[one, place]
        if two < 0:
            break
        b = member[two]
        if b == a or rows[b] - size[two] + size[one] < k:
            continue
        so_far = lost(b, two, one, shelves, pods) - now[a] - now[b]
        for other in range(near.shape[1]):
            three = near[two, other]
            if three < 0:
                break
            c = member[three]
            if c in (a, b):
                continue
            if rows[a] - size[one] >= k:
                gain = so_far + left + lost(c, -1, two, shelves, pods) - now[c]
                if gain < best:
                    best, second, third = gain, two, -1 - c
            if rows[a] - size[one] + size[three] < k or rows[c] - size[three] + size[two] < k:
                continue
            gain = so_far + lost(c, three, two, shelves, pods) - now[c]
            if gain < best:
                gain += lost(a, one, three, shelves, pods)
                if gain < best:
                    best, second, third = gain, two, three
    return second, third


@kernel
def rotate_pods(member: Any, pods: Any, k: int) -> Any:
    """Move pods along three classes while that loses less. Changes `member`; returns how often."""
    shelves, classes = shelve(member, pods, 0)
    now = np.empty(classes)
    for cls in range(classes):
        now[cls] = lost(cls, -1, -1, shelves, pods)
    turned = np.int64(0)
    for one in range(member.size):
        a = member[one]
        # Whoever widens nothing has no reason to go.
        if lost(a, one, -1, shelves, pods) >= now[a] - 1e-9:
            continue
        two, three = _best_turn(one, member, shelves, pods, k, now)
        if two < 0:
            continue
        turned += 1
        b = member[two]
        c = member[three] if three >= 0 else -1 - three
        move(one, b, member, shelves, pods)
        move(two, c, member, shelves, pods)
        if three >= 0:
            move(three, a, member, shelves, pods)
        for cls in (a, b, c):
            now[cls] = lost(cls, -1, -1, shelves, pods)
    return turned
