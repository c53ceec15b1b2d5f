"""Classes of pods, shared out again: each kernel repeats one kind of change while that loses less.

A pod moves to a near class, or two are exchanged (`share_pods`). Three classes pass a pod on, each to the next
(`rotate_pods`). Cuts leave classes of up to twice as many rows as they need, and neither of these makes one more: a pod
and the nearest pods whose classes stay large enough without them open a class of their own (`open_classes`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.pods.classes.shelf_kernels import Least, Sharing, keeps, lost, move

Integers = NDArray[np.int64]

_LESS = 1e-9
"""What must be saved for anything to change: sums in another order differ by less."""


@helper
def _move(pods: Sharing, pod: int, to: int) -> None:
    move(pod, to, pods.member, pods.shelves, pods.boxes)


@helper
def _keeps(pods: Sharing, cls: int, out: int, into: int, least: Least) -> bool:
    enough: bool = keeps(cls, out, into, least, pods.shelves, pods.boxes)
    return enough


@helper
def _measure_all(pods: Sharing) -> None:
    for cls in range(pods.lost.size):
        pods.lost[cls] = lost(pods, cls, -1, -1)


@helper
def _better_place(pods: Sharing, pod: int, least: Least) -> tuple[int, int]:
    """The class where a pod loses least, and the pod that leaves it in exchange; -1 for none."""
    member, now = pods.member, pods.lost
    here = member[pod]
    left, may_leave = lost(pods, here, pod, -1), _keeps(pods, here, pod, -1, least)
    best, best_to, best_back = -_LESS, -1, -1
    for place in range(pods.near.shape[1]):
        other = pods.near[pod, place]
        if other < 0:
            break
        to = member[other]
        if to == here:
            continue
        both = now[here] + now[to]
        if may_leave:
            gain = left + lost(pods, to, -1, pod) - both
            if gain < best:
                best, best_to, best_back = gain, to, -1
        third = pods.shelves.head[to]
        while third >= 0:
            if _keeps(pods, here, pod, third, least) and _keeps(pods, to, third, pod, least):
                gain = lost(pods, here, pod, third) + lost(pods, to, third, pod) - both
                if gain < best:
                    best, best_to, best_back = gain, to, third
            third = pods.shelves.follows[third]
    return best_to, best_back


@kernel
def share_pods(pods: Sharing, least: Least, passes: int) -> int:
    """Move pods to near classes, or exchange two; classes stay large enough. Returns how often; changes `pods`."""
    _measure_all(pods)
    changed = 0
    for _ in range(passes):
        moved = 0
        for pod in range(pods.member.size):
            here = pods.member[pod]
            to, back = _better_place(pods, pod, least)
            if to < 0:
                continue
            moved += 1
            _move(pods, pod, to)
            if back >= 0:
                _move(pods, back, here)
            pods.lost[here], pods.lost[to] = lost(pods, here, -1, -1), lost(pods, to, -1, -1)
        changed += moved
        if moved == 0:
            break
    return changed


@helper
def _best_turn(pods: Sharing, one: int, least: Least) -> tuple[int, int]:
    """Whom a pod replaces, and whom that replaces, where it loses least; -1 for nobody.

    The third is a pod that comes back, or -1 - the class in which the second just stays.
    """
    member, near, now = pods.member, pods.near, pods.lost
    home = member[one]
    left, may_leave = lost(pods, home, one, -1), _keeps(pods, home, one, -1, least)
    best, second, third = -_LESS, -1, -1
    for place in range(near.shape[1]):
        two = near[one, place]
        if two < 0:
            break
        next_ = member[two]
        if next_ == home or not _keeps(pods, next_, two, one, least):
            continue
        so_far = lost(pods, next_, two, one) - now[home] - now[next_]
        for other in range(near.shape[1]):
            three = near[two, other]
            if three < 0:
                break
            last = member[three]
            if last in (home, next_):
                continue
            if may_leave:
                gain = so_far + left + lost(pods, last, -1, two) - now[last]
                if gain < best:
                    best, second, third = gain, two, -1 - last
            if not (_keeps(pods, home, one, three, least) and _keeps(pods, last, three, two, least)):
                continue
            gain = so_far + lost(pods, last, three, two) - now[last]
            if gain < best:
                gain += lost(pods, home, one, three)
                if gain < best:
                    best, second, third = gain, two, three
    return second, third


@kernel
def rotate_pods(pods: Sharing, least: Least) -> int:
    """Pass pods on along three near classes; classes stay large enough. Returns how often; changes `pods`."""
    _measure_all(pods)
    turned = 0
    for one in range(pods.member.size):
        home = pods.member[one]
        # Whoever widens nothing has no reason to go.
        if lost(pods, home, one, -1) >= pods.lost[home] - _LESS:
            continue
        two, three = _best_turn(pods, one, least)
        if two < 0:
            continue
        turned += 1
        next_ = pods.member[two]
        last = pods.member[three] if three >= 0 else -1 - three
        _move(pods, one, next_)
        _move(pods, two, last)
        if three >= 0:
            _move(pods, three, home)
        for cls in (home, next_, last):
            pods.lost[cls] = lost(pods, cls, -1, -1)
    return turned


@helper
def _next_to_come(pods: Sharing, first: int, opened: int, least: Least) -> int:
    """The pod near the first whose coming costs least: it widens the new class, and is no longer in its own."""
    best, nearest = np.inf, -1
    for place in range(pods.near.shape[1]):
        pod = pods.near[first, place]
        if pod < 0:
            break
        here = pods.member[pod]
        if here == opened or not _keeps(pods, here, pod, -1, least):
            continue
        spared = lost(pods, here, -1, -1) - lost(pods, here, pod, -1)
        cost = lost(pods, opened, -1, pod) - spared
        if cost < best:
            best, nearest = cost, pod
    return nearest


@kernel
def open_classes(pods: Sharing, classes: int, least: Least, came: Integers) -> int:
    """Open classes, as large as every other stays. Returns how many; changes `pods`.

    classes  how many there are; behind them there is room for more
    came     (pods, 2) room for who came, and from which class
    """
    opened = classes
    for first in range(pods.member.size):
        if not _keeps(pods, pods.member[first], first, -1, least):
            continue
        gain, count, pod = 0.0, 0, first
        while pod >= 0:
            here = pods.member[pod]
            gain += lost(pods, here, -1, -1) - lost(pods, here, pod, -1)
            came[count, 0], came[count, 1] = pod, here
            count += 1
            _move(pods, pod, opened)
            if _keeps(pods, opened, -1, -1, least):
                break
            pod = _next_to_come(pods, first, opened, least)
        if _keeps(pods, opened, -1, -1, least) and lost(pods, opened, -1, -1) < gain - _LESS:
            opened += 1
        else:
            for at in range(count):
                _move(pods, came[at, 0], came[at, 1])
    return opened - classes
