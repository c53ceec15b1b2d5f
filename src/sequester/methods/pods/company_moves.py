"""Classes in which every label has company: as many rows as are promised of whatever is inferred across releases.

Whoever sits in a pod with a label has it in one of the shifts of her type, so the rows of a class that show a label may
be anybody's who sits there in a pod with it: its *company*. Where every label of every class of every release has
enough of it, no row is ever traced to fewer, whatever else is published. A union of such classes is one, too.

Classes are joined, pods move and classes are split while that costs less: what is lost, and a price for every row that
company lacks. The price rises until nothing is lacking. Who changes places with somebody of the same seat (`exchange`)
changes no company.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.pods.shelves import link, unlink, width_of

Integers = NDArray[np.int64]
Places = NDArray[np.float64]


class Pods(NamedTuple):
    """Pods to be put into classes.

    low, high     (pods, attributes) boxes of their people
    size, people  rows and people
    label         (pods, seats) labels, each once, -1 after the last
    """

    low: Places
    high: Places
    size: Integers
    people: Integers
    label: Integers


class Chains(NamedTuple):
    """Classes as chains of pods; an empty class has no head.

    head           per class, its first pod
    follows, leads per pod, the next and the one before
    rows, people   per class
    width          per class, the summed widths of its box
    """

    head: Integers
    follows: Integers
    leads: Integers
    rows: Integers
    people: Integers
    width: Places


class Asked(NamedTuple):
    """What classes must have: rows, and company of every label; and the price of each row that is lacking."""

    k: int
    company: int
    price: float


@helper
def _chained(member, pods):  # type: ignore[no-untyped-def]
    count = member.size
    head, rows, people = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    follows, leads = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    for pod in range(count):
        link(pod, member[pod], head, follows, leads)
        rows[member[pod]] += pods.size[pod]
        people[member[pod]] += pods.people[pod]
    width = np.zeros(count)
    for cls in range(count):
        if head[cls] >= 0:
            width[cls] = width_of(cls, -1, -1, head, follows, pods.low, pods.high)
    return Chains(head, follows, leads, rows, people, width)


@helper
def _has(pods, pod, label):  # type: ignore[no-untyped-def]
    found = False
    for seat in range(pods.label.shape[1]):
        found |= pods.label[pod, seat] == label
    return found


@helper
def _company(chains, pods, cls, label):  # type: ignore[no-untyped-def]
    """Rows of the pods of a class that have a label."""
    found = 0
    pod = chains.head[cls]
    while pod >= 0:
        if _has(pods, pod, label):
            found += pods.size[pod]
        pod = chains.follows[pod]
    return found


@helper
def _short(company, asked):  # type: ignore[no-untyped-def]
    return 0 if company == 0 else max(0, asked.company - company)


@helper
def _few(rows, people, asked):  # type: ignore[no-untyped-def]
    """Rows that a class lacks whatever they show; one without people counts as if it had none."""
    return 0 if rows == 0 else max(0, asked.k - (rows if people else 0))


@helper
def _lacks_more(chains, pods, asked, cls, out, into):  # type: ignore[no-untyped-def]
    """How many more rows a class lacks without one pod and with another (-1: none)."""
    rows, people = chains.rows[cls], chains.people[cls]
    if out >= 0:
        rows, people = rows - pods.size[out], people - pods.people[out]
    if into >= 0:
        rows, people = rows + pods.size[into], people + pods.people[into]
    more = _few(rows, people, asked) - _few(chains.rows[cls], chains.people[cls], asked)
    for turn in range(2):
        moving = out if turn == 0 else into
        if moving < 0:
            continue
        for seat in range(pods.label.shape[1]):
            label = pods.label[moving, seat]
            if label < 0:
                break
            if turn == 1 and out >= 0 and _has(pods, out, label):
                # Looked at already.
                continue
            now = _company(chains, pods, cls, label)
            then = now
            if out >= 0 and _has(pods, out, label):
                then -= pods.size[out]
            if into >= 0 and _has(pods, into, label):
                then += pods.size[into]
            more += _short(then, asked) - _short(now, asked)
    return more


@helper
def _lack(chains, pods, asked, cls):  # type: ignore[no-untyped-def]
    """Rows that a class lacks."""
    if chains.head[cls] < 0:
        return 0
    found = _few(chains.rows[cls], chains.people[cls], asked)
    pod = chains.head[cls]
    while pod >= 0:
        for seat in range(pods.label.shape[1]):
            label = pods.label[pod, seat]
            if label < 0:
                break
            # Every label once: at the first pod of the chain that has it.
            earlier = chains.head[cls]
            while earlier != pod and not _has(pods, earlier, label):
                earlier = chains.follows[earlier]
            if earlier == pod:
                found += _short(_company(chains, pods, cls, label), asked)
        pod = chains.follows[pod]
    return found


@helper
def _lack_of_both(chains, pods, asked, one, other):  # type: ignore[no-untyped-def]
    """Rows that two classes lack when they are joined."""
    found = _few(chains.rows[one] + chains.rows[other], chains.people[one] + chains.people[other], asked)
    for turn in range(2):
        own, beside = (one, other) if turn == 0 else (other, one)
        pod = chains.head[own]
        while pod >= 0:
            for seat in range(pods.label.shape[1]):
                label = pods.label[pod, seat]
                if label < 0:
                    break
                earlier = chains.head[own]
                while earlier != pod and not _has(pods, earlier, label):
                    earlier = chains.follows[earlier]
                if earlier != pod:
                    continue
                there = _company(chains, pods, beside, label)
                if turn == 0 or there == 0:
                    found += _short(_company(chains, pods, own, label) + there, asked)
            pod = chains.follows[pod]
    return found


@helper
def _width_of_both(chains, pods, one, other):  # type: ignore[no-untyped-def]
    total = 0.0
    for axis in range(pods.low.shape[1]):
        least, most = np.inf, -np.inf
        for turn in range(2):
            pod = chains.head[one if turn == 0 else other]
            while pod >= 0:
                least, most = min(least, pods.low[pod, axis]), max(most, pods.high[pod, axis])
                pod = chains.follows[pod]
        if most > least:
            total += min(most - least, 1.0)
    return total


@helper
def _move(chains, pods, member, pod, to):  # type: ignore[no-untyped-def]
    here = member[pod]
    unlink(pod, here, chains.head, chains.follows, chains.leads)
    link(pod, to, chains.head, chains.follows, chains.leads)
    member[pod] = to
    chains.rows[here] -= pods.size[pod]
    chains.rows[to] += pods.size[pod]
    chains.people[here] -= pods.people[pod]
    chains.people[to] += pods.people[pod]


@helper
def _measure(chains, pods, cls):  # type: ignore[no-untyped-def]
    chains.width[cls] = width_of(cls, -1, -1, chains.head, chains.follows, pods.low, pods.high)


@kernel
def join_classes(member, pods, near, asked):  # type: ignore[no-untyped-def]
    """Join classes in which something is lacking with those beside them where that costs less. Changes `member`."""
    chains = _chained(member, pods)
    joined = 0
    seen = np.full(member.size, -1, np.int64)
    for first in range(member.size):
        here = member[first]
        lack = _lack(chains, pods, asked, here)
        if lack == 0 or chains.head[here] != first:
            continue
        now_here = chains.width[here] * chains.people[here] + asked.price * lack
        best, best_to = -1e-9, -1
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
                now = now_here + chains.width[to] * chains.people[to] + asked.price * _lack(chains, pods, asked, to)
                width = _width_of_both(chains, pods, here, to)
                then = width * (chains.people[here] + chains.people[to])
                then += asked.price * _lack_of_both(chains, pods, asked, here, to)
                if then - now < best:
                    best, best_to = then - now, to
            pod = chains.follows[pod]
        if best_to < 0:
            continue
        joined += 1
        while chains.head[here] >= 0:
            _move(chains, pods, member, chains.head[here], best_to)
        _measure(chains, pods, here)
        _measure(chains, pods, best_to)
    return joined


@helper
def _best_move(member, chains, pods, near, asked, pod, when):  # type: ignore[no-untyped-def]
    """The class to which a pod goes, and the pod it is exchanged for, -1 for none.

    when  (last tried per pod, last changed per class, last looked at per class): what has not changed is not tried
    """
    tried, changed, seen = when
    low, high, head, follows = pods.low, pods.high, chains.head, chains.follows
    width, persons = chains.width, chains.people
    here, own = member[pod], pods.people[pod]
    left = width_of(here, pod, -1, head, follows, low, high) * (persons[here] - own)
    fewer = asked.price * _lacks_more(chains, pods, asked, here, pod, -1)
    best, best_to, best_swap = -1e-9, -1, -1
    for place in range(near.shape[1]):
        other = near[pod, place]
        if other < 0 or member[other] == here or seen[member[other]] == pod:
            continue
        to = member[other]
        seen[to] = pod
        if changed[to] < tried[pod] and changed[here] < tried[pod]:
            continue
        now = width[here] * persons[here] + width[to] * persons[to]
        then = left + width_of(to, -1, pod, head, follows, low, high) * (persons[to] + own) + fewer - now
        then += asked.price * _lacks_more(chains, pods, asked, to, -1, pod)
        if then < best:
            best, best_to, best_swap = then, to, -1
        third = head[to]
        while third >= 0:
            more = pods.people[third] - own
            lacking = _lacks_more(chains, pods, asked, here, pod, third)
            lacking += _lacks_more(chains, pods, asked, to, third, pod)
            then = asked.price * lacking - now
            if then < best:
                then += width_of(here, pod, third, head, follows, low, high) * (persons[here] + more)
            if then < best:
                then += width_of(to, third, pod, head, follows, low, high) * (persons[to] - more)
                if then < best:
                    best, best_to, best_swap = then, to, third
            third = follows[third]
    return best_to, best_swap


@kernel
def move_pods(member, pods, near, asked, passes):  # type: ignore[no-untyped-def]
    """Move pods to classes nearby, or exchange two, where that costs less. Changes `member`."""
    chains = _chained(member, pods)
    count = member.size
    tried, changed, seen = np.zeros(count, np.int64), np.ones(count, np.int64), np.full(count, -1, np.int64)
    clock, moves = 1, 0
    for _ in range(passes):
        moved = 0
        seen[:] = -1
        for pod in range(count):
            here = member[pod]
            to, swap = _best_move(member, chains, pods, near, asked, pod, (tried, changed, seen))
            clock += 1
            tried[pod] = clock
            if to < 0:
                continue
            moved += 1
            clock += 1
            _move(chains, pods, member, pod, to)
            if swap >= 0:
                _move(chains, pods, member, swap, here)
            _measure(chains, pods, here)
            _measure(chains, pods, to)
            changed[here], changed[to] = clock, clock
        moves += moved
        if moved == 0:
            break
    return moves


@kernel
def split_classes(member, pods, asked):  # type: ignore[no-untyped-def]
    """Split classes at some place of some attribute where that costs less. Changes `member`."""
    chains = _chained(member, pods)
    count = member.size
    free = 0
    own = np.empty(count, np.int64)
    center = np.empty(count)
    splits = 0
    for start in range(count):
        here = start
        inside = 0
        pod = chains.head[here]
        while pod >= 0:
            own[inside] = pod
            inside += 1
            pod = chains.follows[pod]
        if inside < 2 or chains.rows[here] < 2 * asked.k:
            continue
        while free < count and chains.head[free] >= 0:
            free += 1
        if free == count:
            break
        now = chains.width[here] * chains.people[here] + asked.price * _lack(chains, pods, asked, here)
        best, best_axis, best_at = now - 1e-9, -1, 0
        everybody = own[:inside].copy()
        for axis in range(pods.low.shape[1]):
            for place in range(inside):
                center[place] = pods.low[everybody[place], axis] + pods.high[everybody[place], axis]
            ranked = np.argsort(center[:inside], kind="mergesort")
            for at in range(inside - 1):
                _move(chains, pods, member, everybody[ranked[at]], free)
                if chains.rows[free] < asked.k or chains.rows[here] < asked.k:
                    continue
                then = width_of(free, -1, -1, chains.head, chains.follows, pods.low, pods.high) * chains.people[free]
                then += width_of(here, -1, -1, chains.head, chains.follows, pods.low, pods.high) * chains.people[here]
                if then < best:
                    lacking = _lack(chains, pods, asked, free) + _lack(chains, pods, asked, here)
                    if then + asked.price * lacking < best:
                        best, best_axis, best_at = then + asked.price * lacking, axis, at + 1
            for at in range(inside - 1):
                _move(chains, pods, member, everybody[ranked[at]], here)
        if best_axis >= 0:
            for place in range(inside):
                center[place] = pods.low[everybody[place], best_axis] + pods.high[everybody[place], best_axis]
            ranked = np.argsort(center[:inside], kind="mergesort")
            for at in range(best_at):
                _move(chains, pods, member, everybody[ranked[at]], free)
            _measure(chains, pods, free)
            splits += 1
        _measure(chains, pods, here)
    return splits
