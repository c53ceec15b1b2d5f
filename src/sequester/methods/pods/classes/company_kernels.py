"""Classes in which every label has company: as many rows as are promised of whatever is inferred across releases.

Whoever sits in a pod with a label has it in one of the shifts of her type, so the rows of a class that show a label may
be anybody's who sits there in a pod with it: its *company*. Where every label of every class of every release has
enough of it, no row is ever traced to fewer, whatever else is published. A union of such classes is one, too.

Classes are joined, pods move and classes are split while that costs less: what is lost, and a price for every row that
company lacks. The price rises until nothing is lacking. Who changes places with somebody of the same seat
(`exchange_kernels`) changes no company.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Places = NDArray[np.float64]

_LESS = 1e-9
"""What must be saved for anything to change: sums in another order differ by less."""


_PASSES = 4
"""How often pods are moved at one price at most; those left are moved at the next."""


class PodBoxes(NamedTuple):
    """Pods to be put into classes.

    low, high     (pods, attributes) boxes of their people; of a pod without any from infinity to minus infinity
    size, people  rows and people of each
    """

    low: Places
    high: Places
    size: Integers
    people: Integers


class ClassLists(NamedTuple):
    """The pods of every class as a linked list, -1 at its ends, and how many rows and people a class has."""

    head: Integers
    follows: Integers
    leads: Integers
    rows: Integers
    people: Integers


class Company(NamedTuple):
    """Pods in classes, as they are by now; a class may be empty.

    member   per pod, its class
    label    (pods, seats) labels, each once, -1 after the last
    width    per class, the summed widths of its box
    """

    member: Integers
    lists: ClassLists
    boxes: PodBoxes
    label: Integers
    width: Places


class Asked(NamedTuple):
    """What classes must have: rows, people, and company of every label; and the price of each that is lacking."""

    k: int
    people: int
    company: int
    price: float


class Times(NamedTuple):
    """When a pod was last tried, and a class last changed; and by which pod a class was last looked at."""

    tried: Integers
    changed: Integers
    seen: Integers


class Ranking(NamedTuple):
    """Room for the pods of one class as they were, and by place; and for their places."""

    pods: Integers
    ranked: Integers
    center: Places


def list_pods(member: Integers, boxes: PodBoxes, classes: int) -> ClassLists:
    """The lists of so many classes, given every pod's class; the last pod of each comes first."""
    count = len(member)
    order = np.argsort(member, kind="stable")[::-1]
    own = member[order]
    begins = np.flatnonzero(np.diff(own, prepend=-1))
    head, follows, leads = (np.full(size, -1, np.int64) for size in (classes, count, count))
    head[own[begins]] = order[begins]
    inside = np.flatnonzero(np.diff(own, append=-1) == 0)
    follows[order[inside]], leads[order[inside + 1]] = order[inside + 1], order[inside]
    rows, people = (np.bincount(member, each, classes).astype(np.int64) for each in (boxes.size, boxes.people))
    return ClassLists(head, follows, leads, rows, people)


@helper
def _move(pod: int, to: int, member: Integers, lists: ClassLists, boxes: PodBoxes) -> None:
    """Move a pod to the front of another class."""
    here, before, after = member[pod], lists.leads[pod], lists.follows[pod]
    if before >= 0:
        lists.follows[before] = after
    else:
        lists.head[here] = after
    if after >= 0:
        lists.leads[after] = before
    first = lists.head[to]
    lists.follows[pod], lists.leads[pod] = first, -1
    if first >= 0:
        lists.leads[first] = pod
    lists.head[to] = pod
    lists.rows[here] -= boxes.size[pod]
    lists.rows[to] += boxes.size[pod]
    lists.people[here] -= boxes.people[pod]
    lists.people[to] += boxes.people[pod]
    member[pod] = to


@helper
def _width_of(cls: int, skip: int, add: int, lists: ClassLists, boxes: PodBoxes) -> float:
    """Summed widths of the box of a class, without one of its pods and with another; -1: none."""
    # Arrays by themselves: a tuple of arrays in the innermost loop counts references.
    follows, low, high = lists.follows, boxes.low, boxes.high
    total = 0.0
    for axis in range(low.shape[1]):
        least, most = np.inf, -np.inf
        pod = lists.head[cls]
        while pod >= 0:
            if pod != skip:
                least, most = min(least, low[pod, axis]), max(most, high[pod, axis])
            pod = follows[pod]
        if add >= 0:
            least, most = min(least, low[add, axis]), max(most, high[add, axis])
        if most > least:
            total += min(most - least, 1.0)
    return total


@helper
def _measure(company: Company, cls: int) -> None:
    company.width[cls] = _width_of(cls, -1, -1, company.lists, company.boxes)


@helper
def _measure_all(company: Company) -> None:
    for cls in range(company.width.size):
        _measure(company, cls)


@helper
def _lost(company: Company, cls: int) -> float:
    lost: float = company.width[cls] * company.lists.people[cls]
    return lost


@helper
def _has(label: Integers, pod: int, wanted: int) -> bool:
    has = False
    for seat in range(label.shape[1]):
        has |= label[pod, seat] == wanted
    return has


@helper
def _rows_with(company: Company, cls: int, label: int) -> int:
    """Rows of the pods of a class that have a label; no class (-1) has any."""
    # Arrays by themselves: a tuple of arrays in the innermost loop counts references.
    labels, size, follows = company.label, company.boxes.size, company.lists.follows
    rows = 0
    pod = company.lists.head[cls] if cls >= 0 else -1
    while pod >= 0:
        for seat in range(labels.shape[1]):
            if labels[pod, seat] == label:
                rows += size[pod]
        pod = follows[pod]
    return rows


@helper
def _short(rows: int, asked: Asked) -> int:
    """Rows that a label lacks which has so many."""
    return 0 if rows == 0 else max(0, asked.company - rows)


@helper
def _few(rows: int, people: int, asked: Asked) -> int:
    """Rows that a class lacks whatever they show; one without people counts as if it had none."""
    return 0 if rows == 0 else max(0, asked.k - (rows if people else 0), asked.people - people)


@helper
def _lacks_more(company: Company, asked: Asked, cls: int, out: int, into: int) -> int:
    """How many more rows a class lacks without one pod and with another (-1: none)."""
    boxes, labels = company.boxes, company.label
    rows, people = company.lists.rows[cls], company.lists.people[cls]
    more: int = -_few(rows, people, asked)
    if out >= 0:
        rows, people = rows - boxes.size[out], people - boxes.people[out]
    if into >= 0:
        rows, people = rows + boxes.size[into], people + boxes.people[into]
    more += _few(rows, people, asked)
    for pod in (out, into):
        if pod < 0:
            continue
        for seat in range(labels.shape[1]):
            label = labels[pod, seat]
            if label < 0:
                break
            leaves, comes = out >= 0 and _has(labels, out, label), into >= 0 and _has(labels, into, label)
            if pod == into and leaves:
                # Looked at already.
                continue
            now = _rows_with(company, cls, label)
            then = now - (boxes.size[out] if leaves else 0) + (boxes.size[into] if comes else 0)
            more += _short(then, asked) - _short(now, asked)
    return more


@helper
def _labels_lack(company: Company, asked: Asked, own: int, beside: int, both: bool) -> int:
    """Rows that the labels of a class lack, with those of another beside it; not `both`: of its labels alone."""
    labels, head, follows = company.label, company.lists.head, company.lists.follows
    lack = 0
    pod = head[own]
    while pod >= 0:
        for seat in range(labels.shape[1]):
            label = labels[pod, seat]
            if label < 0:
                break
            # Every label once: at the first pod of the list that has it.
            earlier = head[own]
            while earlier != pod and not _has(labels, earlier, label):
                earlier = follows[earlier]
            if earlier != pod:
                continue
            there = _rows_with(company, beside, label)
            if both or there == 0:
                lack += _short(_rows_with(company, own, label) + there, asked)
        pod = follows[pod]
    return lack


@helper
def _lack(company: Company, asked: Asked, one: int, other: int) -> int:
    """Rows that a class lacks, or two when they are joined (-1: one alone)."""
    rows, people = company.lists.rows[one], company.lists.people[one]
    lack: int = _labels_lack(company, asked, one, other, True)
    if other >= 0:
        rows, people = rows + company.lists.rows[other], people + company.lists.people[other]
        lack += _labels_lack(company, asked, other, one, False)
    lack += _few(rows, people, asked)
    return lack


@helper
def _width_of_both(company: Company, one: int, other: int) -> float:
    follows, low, high = company.lists.follows, company.boxes.low, company.boxes.high
    total = 0.0
    for axis in range(low.shape[1]):
        least, most = np.inf, -np.inf
        for cls in (one, other):
            pod = company.lists.head[cls]
            while pod >= 0:
                least, most = min(least, low[pod, axis]), max(most, high[pod, axis])
                pod = follows[pod]
        if most > least:
            total += min(most - least, 1.0)
    return total


@helper
def _best_union(company: Company, asked: Asked, near: Integers, first: int, seen: Integers) -> int:
    """The class nearby with which that of a pod, the first of its list, is cheapest; -1 for none. Changes `seen`."""
    member, people = company.member, company.lists.people
    here = member[first]
    lack = _lack(company, asked, here, -1)
    if lack == 0:
        return -1
    now_here = _lost(company, here) + asked.price * lack
    best, best_to = -_LESS, -1
    pod = first
    while pod >= 0:
        for place in range(near.shape[1]):
            other = near[pod, place]
            if other < 0:
                continue
            to = member[other]
            if to == here or seen[to] == first:
                continue
            seen[to] = first
            now = now_here + _lost(company, to) + asked.price * _lack(company, asked, to, -1)
            then = _width_of_both(company, here, to) * (people[here] + people[to])
            then += asked.price * _lack(company, asked, here, to)
            if then - now < best:
                best, best_to = then - now, to
        pod = company.lists.follows[pod]
    return best_to


@kernel
def join_classes(company: Company, asked: Asked, near: Integers, seen: Integers) -> int:
    """Join classes in which something is lacking with those beside them where that costs less; returns how often.

    near  (pods, any) other pods nearby, -1 for none
    seen  room per class, -1 everywhere
    """
    member, lists, boxes = company.member, company.lists, company.boxes
    _measure_all(company)
    joined = 0
    for first in range(member.size):
        here = member[first]
        if lists.head[here] != first:
            continue
        to = _best_union(company, asked, near, first, seen)
        if to < 0:
            continue
        joined += 1
        while lists.head[here] >= 0:
            _move(lists.head[here], to, member, lists, boxes)
        _measure(company, here)
        _measure(company, to)
    return joined


@helper
def _best_move(company: Company, asked: Asked, near: Integers, pod: int, times: Times) -> tuple[int, int]:
    """The class to which a pod goes, and the pod it is exchanged for, -1: none. What has not changed is not tried."""
    member, lists, boxes = company.member, company.lists, company.boxes
    people, tried = lists.people, times.tried[pod]
    here, own = member[pod], boxes.people[pod]
    left = _width_of(here, pod, -1, lists, boxes) * (people[here] - own)
    fewer = asked.price * _lacks_more(company, asked, here, pod, -1)
    best, best_to, best_swap = -_LESS, -1, -1
    for place in range(near.shape[1]):
        other = near[pod, place]
        if other < 0 or member[other] == here or times.seen[member[other]] == pod:
            continue
        to = member[other]
        times.seen[to] = pod
        if times.changed[to] < tried and times.changed[here] < tried:
            continue
        now = _lost(company, here) + _lost(company, to)
        then = left + _width_of(to, -1, pod, lists, boxes) * (people[to] + own) + fewer - now
        then += asked.price * _lacks_more(company, asked, to, -1, pod)
        if then < best:
            best, best_to, best_swap = then, to, -1
        third = lists.head[to]
        while third >= 0:
            more = boxes.people[third] - own
            lacking = _lacks_more(company, asked, here, pod, third) + _lacks_more(company, asked, to, third, pod)
            then = asked.price * lacking - now
            if then < best:
                then += _width_of(here, pod, third, lists, boxes) * (people[here] + more)
            if then < best:
                then += _width_of(to, third, pod, lists, boxes) * (people[to] - more)
                if then < best:
                    best, best_to, best_swap = then, to, third
            third = lists.follows[third]
    return best_to, best_swap


@kernel
def move_pods(company: Company, asked: Asked, near: Integers, times: Times) -> None:
    """Move pods to classes nearby, or exchange two, where that costs less.

    times  room: every class changed at 1, nothing was tried or seen before
    """
    member, lists, boxes = company.member, company.lists, company.boxes
    _measure_all(company)
    time = 1
    for _ in range(_PASSES):
        moved = 0
        for cls in range(times.seen.size):
            times.seen[cls] = -1
        for pod in range(member.size):
            here = member[pod]
            to, swap = _best_move(company, asked, near, pod, times)
            time += 1
            times.tried[pod] = time
            if to < 0:
                continue
            moved += 1
            time += 1
            _move(pod, to, member, lists, boxes)
            if swap >= 0:
                _move(swap, here, member, lists, boxes)
            _measure(company, here)
            _measure(company, to)
            times.changed[here], times.changed[to] = time, time
        if moved == 0:
            break


@helper
def _rank(company: Company, room: Ranking, count: int, axis: int) -> None:
    """Put so many pods in the order of their places on an axis; those at one place stay in theirs. Changes `room`."""
    low, high = company.boxes.low, company.boxes.high
    for at in range(count):
        pod = room.pods[at]
        # A pod of decoys is nowhere: behind all others. A class has few pods, so that they are sorted by inserting.
        here = low[pod, axis] + high[pod, axis] if low[pod, axis] <= high[pod, axis] else np.inf
        while at > 0 and room.center[at - 1] > here:
            room.ranked[at], room.center[at] = room.ranked[at - 1], room.center[at - 1]
            at -= 1
        room.ranked[at], room.center[at] = pod, here


@helper
def _best_split(company: Company, asked: Asked, here: int, free: int, room: Ranking, count: int) -> tuple[int, int]:
    """The axis (-1: none) and the number of pods by which a class is split, where that costs less. Changes `room`."""
    member, lists, boxes = company.member, company.lists, company.boxes
    best = _lost(company, here) + asked.price * _lack(company, asked, here, -1) - _LESS
    best_axis, best_at = -1, 0
    for axis in range(boxes.low.shape[1]):
        _rank(company, room, count, axis)
        for at in range(count - 1):
            _move(room.ranked[at], free, member, lists, boxes)
            if _few(lists.rows[free], lists.people[free], asked) or _few(lists.rows[here], lists.people[here], asked):
                continue
            then = _width_of(free, -1, -1, lists, boxes) * lists.people[free]
            then += _width_of(here, -1, -1, lists, boxes) * lists.people[here]
            if then < best:
                then += asked.price * (_lack(company, asked, free, -1) + _lack(company, asked, here, -1))
                if then < best:
                    best, best_axis, best_at = then, axis, at + 1
        for at in range(count - 1):
            _move(room.ranked[at], here, member, lists, boxes)
    return best_axis, best_at


@kernel
def split_classes(company: Company, asked: Asked, room: Ranking) -> None:
    """Split classes at some place of some attribute where that costs less."""
    member, lists, boxes = company.member, company.lists, company.boxes
    _measure_all(company)
    classes, free = member.size, 0
    for here in range(classes):
        count = 0
        pod = lists.head[here]
        while pod >= 0:
            room.pods[count] = pod
            count += 1
            pod = lists.follows[pod]
        if count < 2 or lists.rows[here] < 2 * asked.k:
            continue
        while free < classes and lists.head[free] >= 0:
            free += 1
        if free == classes:
            break
        axis, first = _best_split(company, asked, here, free, room, count)
        if axis >= 0:
            _rank(company, room, count, axis)
            for at in range(first):
                _move(room.ranked[at], free, member, lists, boxes)
            _measure(company, free)
        _measure(company, here)
