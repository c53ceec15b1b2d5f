"""New classes out of what old ones can spare.

Cuts leave classes of up to twice as many rows as they need, and moving pods between them never makes one more. Here a
pod and the nearest pods whose classes stay large enough without them open a class of their own, where that loses less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.pods.shelves import lost, move, shelve


@helper
def _next_to_come(first: Any, opened: Any, member: Any, shelves: Any, pods: Any, k: int) -> Any:
    """The pod near the first whose coming costs least: it widens the new class, and is no longer in its own."""
    best, found = np.inf, np.int64(-1)
    for place in range(pods.near.shape[1]):
        pod = pods.near[first, place]
        if pod < 0:
            break
        here = member[pod]
        if here == opened or shelves.rows[here] - pods.size[pod] < k:
            continue
        spared = lost(here, -1, -1, shelves, pods) - lost(here, pod, -1, shelves, pods)
        cost = lost(opened, -1, pod, shelves, pods) - spared
        if cost < best:
            best, found = cost, np.int64(pod)
    return found


@kernel
def open_classes(member: Any, pods: Any, k: int) -> Any:
    """Open classes while that loses less, and every class keeps k rows. Changes `member`; returns how many."""
    shelves, classes = shelve(member, pods, member.size)
    came, came_from = np.empty(member.size, np.int64), np.empty(member.size, np.int64)
    opened = np.int64(0)
    for first in range(member.size):
        if shelves.rows[member[first]] - pods.size[first] < k:
            continue
        gain, count, pod = 0.0, np.int64(0), np.int64(first)
        while pod >= 0:
            here = member[pod]
            gain += lost(here, -1, -1, shelves, pods) - lost(here, pod, -1, shelves, pods)
            came[count], came_from[count] = pod, here
            count += 1
            move(pod, classes, member, shelves, pods)
            if shelves.rows[classes] >= k:
                break
            pod = _next_to_come(first, classes, member, shelves, pods, k)
        if shelves.rows[classes] >= k and lost(classes, -1, -1, shelves, pods) < gain - 1e-9:
            classes += 1
            opened += 1
        else:
            for place in range(count):
                move(came[place], came_from[place], member, shelves, pods)
    return opened
