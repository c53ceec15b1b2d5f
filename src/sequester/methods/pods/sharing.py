"""Classes of pods, shared out again: pods move to near classes, and people with the same seat change places.

Whoever has the same type and seat (and lineage, where that is bounded) as somebody in another class can change places
with her: both classes stay unions of pods. Rows about nobody have no place of their own, and widen no box.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.pods.shelves import lost, move, shelve


@kernel
def share_pods(member: Any, pods: Any, k: int, passes: int) -> Any:
    """Move pods to near classes, or exchange two, while that loses less; classes keep k rows. Changes `member`."""
    shelves, classes = shelve(member, pods, 0)
    now = np.empty(classes)
    for cls in range(classes):
        now[cls] = lost(cls, -1, -1, shelves, pods)
    changed = np.int64(0)
    for _ in range(passes):
        moved = np.int64(0)
        for pod in range(member.size):
            here = member[pod]
            to, back = _better_place(np.int64(pod), member, shelves, pods, k, now)
            if to < 0:
                continue
            moved += 1
            move(pod, to, member, shelves, pods)
            if back >= 0:
                move(back, here, member, shelves, pods)
            now[here], now[to] = lost(here, -1, -1, shelves, pods), lost(to, -1, -1, shelves, pods)
        changed += moved
        if moved == 0:
            break
    return changed


@helper
def _better_place(pod: Any, member: Any, shelves: Any, pods: Any, k: int, now: Any) -> Any:
    """The class where a pod loses least, and the pod that leaves it in exchange; -1 for none."""
    here, rows, size = member[pod], shelves.rows, pods.size
    left = lost(here, pod, -1, shelves, pods)
    best, best_to, best_back = -1e-9, np.int64(-1), np.int64(-1)
    for place in range(pods.near.shape[1]):
        other = pods.near[pod, place]
        if other < 0:
            break
        to = member[other]
        if to == here:
            continue
        both = now[here] + now[to]
        if rows[here] - size[pod] >= k:
            gain = left + lost(to, -1, pod, shelves, pods) - both
            if gain < best:
                best, best_to, best_back = gain, to, np.int64(-1)
        third = shelves.head[to]
        while third >= 0:
            if rows[here] - size[pod] + size[third] >= k and rows[to] - size[third] + size[pod] >= k:
                gain = lost(here, pod, third, shelves, pods) + lost(to, third, pod, shelves, pods) - both
                if gain < best:
                    best, best_to, best_back = gain, to, third
            third = shelves.follows[third]
    return best_to, best_back


@helper
def _class_width(cls, skip, add, start, rows, place, real):  # type: ignore[no-untyped-def]
    """Summed widths of a class of rows, with one of them in another's place; rows about nobody have none."""
    total = 0.0
    for axis in range(place.shape[1]):
        least, most = np.inf, -np.inf
        for at in range(start[cls], start[cls + 1]):
            row = rows[at]
            if row == skip:
                row = add
            if real[row]:
                least, most = min(least, place[row, axis]), max(most, place[row, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


@kernel
def exchange(member, pod, start, rows, at, place, real, order, begin, near, passes):  # type: ignore[no-untyped-def]
    """People with the same seat change places while that loses less. Changes `member`, `pod`, `rows` and `at`.

    start, rows   rows by class; `at` is every row's place among them
    order, begin  rows by seat: those from begin[i] to begin[i + 1] may change places
    near          (rows, any) with whom somebody may, -1 for none; without columns, everybody with the same seat
    """
    classes = start.size - 1
    persons = np.zeros(classes, np.int64)
    width = np.zeros(classes)
    for row in range(member.size):
        persons[member[row]] += real[row]
    for cls in range(classes):
        width[cls] = _class_width(cls, -1, -1, start, rows, place, real)
    changed = 0
    columns = near.shape[1]
    for _ in range(passes):
        moved = 0
        for group in range(begin.size - 1):
            last = begin[group + 1]
            for i in range(begin[group], last):
                one = order[i]
                for j in range(columns if columns else last - i - 1):
                    other = near[one, j] if columns else order[i + 1 + j]
                    if other < 0:
                        break
                    here, there = member[one], member[other]
                    if here == there or not (real[one] or real[other]):
                        continue
                    first = _class_width(here, one, other, start, rows, place, real)
                    second = _class_width(there, other, one, start, rows, place, real)
                    more = np.int64(real[other]) - np.int64(real[one])
                    now = width[here] * persons[here] + width[there] * persons[there]
                    if first * (persons[here] + more) + second * (persons[there] - more) < now - 1e-9:
                        rows[at[one]], rows[at[other]] = other, one
                        at[one], at[other] = at[other], at[one]
                        member[one], member[other] = there, here
                        pod[one], pod[other] = pod[other], pod[one]
                        persons[here] += more
                        persons[there] -= more
                        width[here], width[there] = first, second
                        moved += 1
        changed += moved
        if moved == 0:
            break
    return changed
