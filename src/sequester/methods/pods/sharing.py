"""Classes of pods, shared out again: pods move to near classes, and people with the same seat change places.

Whoever has the same type and seat (and lineage, where that is bounded) as somebody in another class can change places
with her: both classes stay unions of pods. Rows about nobody have no place of their own, and widen no box.
"""

from __future__ import annotations

import numba
import numpy as np

from sequester.kernels import kernel


@numba.njit(cache=True, nogil=True)
def _width(cls, skip, add, add2, head, follows, low, high):  # type: ignore[no-untyped-def]
    """Summed widths of the box of a class, without one pod (-1: none) and with up to two more."""
    total = 0.0
    for axis in range(low.shape[1]):
        least, most = np.inf, -np.inf
        pod = head[cls]
        while pod >= 0:
            if pod != skip:
                least, most = min(least, low[pod, axis]), max(most, high[pod, axis])
            pod = follows[pod]
        if add >= 0:
            least, most = min(least, low[add, axis]), max(most, high[add, axis])
        if add2 >= 0:
            least, most = min(least, low[add2, axis]), max(most, high[add2, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


@numba.njit(cache=True, nogil=True)
def _unlink(pod, cls, head, follows, leads):  # type: ignore[no-untyped-def]
    if leads[pod] >= 0:
        follows[leads[pod]] = follows[pod]
    else:
        head[cls] = follows[pod]
    if follows[pod] >= 0:
        leads[follows[pod]] = leads[pod]


@numba.njit(cache=True, nogil=True)
def _link(pod, cls, head, follows, leads):  # type: ignore[no-untyped-def]
    follows[pod], leads[pod] = head[cls], -1
    if head[cls] >= 0:
        leads[head[cls]] = pod
    head[cls] = pod


@kernel
def share_pods(member, low, high, size, people, near, kind, k, passes):  # type: ignore[no-untyped-def]
    """Move pods to near classes, or exchange two, while that loses less; classes keep k rows. Changes `member`.

    low, high     (pods, attributes) boxes of the pods' people
    size, people  rows and people per pod
    near          (pods, any) pods nearby, -1 for none
    kind          per pod; only pods of one kind share a class
    """
    pods = member.size
    classes = 0
    for pod in range(pods):
        classes = max(classes, member[pod] + 1)
    head = np.full(classes, -1, np.int64)
    follows, leads = np.full(pods, -1, np.int64), np.full(pods, -1, np.int64)
    rows, persons = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for pod in range(pods):
        _link(pod, member[pod], head, follows, leads)
        rows[member[pod]] += size[pod]
        persons[member[pod]] += people[pod]
    width = np.zeros(classes)
    for cls in range(classes):
        width[cls] = _width(cls, -1, -1, -1, head, follows, low, high)
    changed = 0
    for _ in range(passes):
        moved = 0
        for pod in range(pods):
            here = member[pod]
            left = _width(here, pod, -1, -1, head, follows, low, high)
            now_here = width[here] * persons[here]
            may_leave = rows[here] - size[pod] >= k
            best, best_to, best_swap = -1e-9, -1, -1
            for place in range(near.shape[1]):
                other = near[pod, place]
                if other < 0:
                    break
                to = member[other]
                if to == here or kind[other] != kind[pod]:
                    continue
                now = now_here + width[to] * persons[to]
                if may_leave:
                    joined = _width(to, -1, pod, -1, head, follows, low, high)
                    gain = left * (persons[here] - people[pod]) + joined * (persons[to] + people[pod]) - now
                    if gain < best:
                        best, best_to, best_swap = gain, to, -1
                third = head[to]
                while third >= 0:
                    if rows[here] - size[pod] + size[third] >= k and rows[to] - size[third] + size[pod] >= k:
                        one = _width(here, pod, third, -1, head, follows, low, high)
                        two = _width(to, third, pod, -1, head, follows, low, high)
                        more = people[third] - people[pod]
                        gain = one * (persons[here] + more) + two * (persons[to] - more) - now
                        if gain < best:
                            best, best_to, best_swap = gain, to, third
                    third = follows[third]
            if best_to < 0:
                continue
            moved += 1
            _unlink(pod, here, head, follows, leads)
            _link(pod, best_to, head, follows, leads)
            member[pod] = best_to
            rows[here] -= size[pod]
            rows[best_to] += size[pod]
            persons[here] -= people[pod]
            persons[best_to] += people[pod]
            if best_swap >= 0:
                _unlink(best_swap, best_to, head, follows, leads)
                _link(best_swap, here, head, follows, leads)
                member[best_swap] = here
                rows[here] += size[best_swap]
                rows[best_to] -= size[best_swap]
                persons[here] += people[best_swap]
                persons[best_to] -= people[best_swap]
            width[here] = _width(here, -1, -1, -1, head, follows, low, high)
            width[best_to] = _width(best_to, -1, -1, -1, head, follows, low, high)
        changed += moved
        if moved == 0:
            break
    return changed


@numba.njit(cache=True, nogil=True)
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
