"""Who shares a pod with whom: partners at least cost, where being left without one has a price.

A matching in any graph, not only one with two sides: everybody is once on the left and once on the right, and the
cheapest assignment (shortest augmenting paths over sparse arcs) is made of cycles. An even cycle is the cheaper of its
two matchings; of an odd one somebody is left, and tried again. To be alone is an arc to oneself.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import kernel

Integers = NDArray[np.int64]
Costs = NDArray[np.float64]

_ROUNDS = 3


def match(count: int, one: Integers, other: Integers, cost: Costs, alone: Costs) -> Integers:
    """The partner of each of `count` people, -1 for nobody, given pairs at a cost and the price of being alone."""
    partner = np.full(count, -1, np.int64)
    for _ in range(_ROUNDS):
        free = np.flatnonzero(partner < 0)
        place = np.full(count, -1, np.int64)
        place[free] = np.arange(len(free))
        kept = (place[one] >= 0) & (place[other] >= 0)
        if not kept.any():
            break
        found = _assigned(len(free), place[one[kept]], place[other[kept]], cost[kept], alone[free])
        found = split_cycles(found, *_rows(len(free), place[one[kept]], place[other[kept]], cost[kept]), alone[free])
        matched = found >= 0
        if not matched.any():
            break
        partner[free[matched]] = free[found[matched]]
    if len(one):
        exchange_partners(partner, *_rows(count, one, other, cost), alone)
    return partner


@kernel
def exchange_partners(partner: Integers, start: Integers, partners: Integers, cost: Costs, alone: Costs) -> int:
    """Two couples exchange partners, or somebody alone takes one's place, while that costs less. Changes `partner`."""
    changed = 0
    for _ in range(30):
        moved = 0
        for one in range(partner.size):
            for arc in range(start[one], start[one + 1]):
                other, mine = partners[arc], partner[one]
                if other == mine:
                    continue
                theirs = partner[other]
                now = 0.0
                if mine < 0:
                    now += alone[one]
                if theirs < 0:
                    now += alone[other]
                rest = 0.0
                joined = False
                if mine >= 0 and theirs >= 0:
                    rest = alone[mine] + alone[theirs]
                    for third in range(start[mine], start[mine + 1]):
                        if partners[third] == theirs and cost[third] < rest:
                            rest, joined = cost[third], True
                elif mine >= 0:
                    rest = alone[mine]
                elif theirs >= 0:
                    rest = alone[theirs]
                if mine >= 0:
                    for third in range(start[one], start[one + 1]):
                        if partners[third] == mine:
                            now += cost[third]
                            break
                if theirs >= 0:
                    for third in range(start[other], start[other + 1]):
                        if partners[third] == theirs:
                            now += cost[third]
                            break
                if cost[arc] + rest < now - 1e-9:
                    partner[one], partner[other] = other, one
                    if mine >= 0:
                        partner[mine] = theirs if joined else -1
                    if theirs >= 0:
                        partner[theirs] = mine if joined else -1
                    moved += 1
        changed += moved
        if moved == 0:
            break
    return changed


def _assigned(count: int, one: Integers, other: Integers, cost: Costs, alone: Costs) -> Integers:
    own = np.arange(count)
    left, right = np.concatenate([one, other, own]), np.concatenate([other, one, own])
    order = np.argsort(left, kind="stable")
    start = np.searchsorted(left[order], np.arange(count + 1)).astype(np.int64)
    return assign(start, right[order].astype(np.int64), np.concatenate([cost, cost, 2 * alone])[order])


@kernel
def assign(start: Integers, column: Integers, cost: Costs) -> NDArray[np.int64]:
    """The cheapest assignment of rows to as many columns over sparse arcs: shortest augmenting paths, with potentials.

    Row r has the arcs from start[r] to start[r + 1]; an assignment of all rows must exist.
    """
    count = start.size - 1
    of_row, of_column = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    u, v = np.zeros(count), np.zeros(count)
    for row in range(count):
        u[row] = cost[start[row] : start[row + 1]].min()
        for arc in range(start[row], start[row + 1]):
            if cost[arc] == u[row] and of_column[column[arc]] < 0:
                of_row[row], of_column[column[arc]] = column[arc], row
                break
    far = np.full(count, np.inf)
    before = np.full(count, -1, np.int64)
    done = np.zeros(count, np.bool_)
    for source in range(count):
        if of_row[source] >= 0:
            continue
        touched = [np.int64(0) for _ in range(0)]
        settled = [np.int64(0) for _ in range(0)]
        heap = [(0.0, np.int64(0)) for _ in range(0)]
        row, reached, end = source, 0.0, np.int64(-1)
        while end < 0:
            for arc in range(start[row], start[row + 1]):
                to = column[arc]
                if done[to]:
                    continue
                length = reached + max(cost[arc] - u[row] - v[to], 0.0)
                if length < far[to]:
                    if far[to] == np.inf:
                        touched.append(to)
                    far[to], before[to] = length, row
                    heapq.heappush(heap, (length, to))
            reached, to = heapq.heappop(heap)
            while done[to]:
                reached, to = heapq.heappop(heap)
            if of_column[to] < 0:
                end = to
            else:
                done[to] = True
                settled.append(to)
                row = of_column[to]
        u[source] += reached
        for to in settled:
            u[of_column[to]] += reached - far[to]
            v[to] -= reached - far[to]
        at = end
        while True:
            row = before[at]
            following = of_row[row]
            of_row[row], of_column[at] = at, row
            if row == source:
                break
            at = following
        for to in touched:
            far[to], done[to] = np.inf, False
    return of_row


def _rows(count: int, one: Integers, other: Integers, cost: Costs) -> tuple[Integers, Integers, Costs]:
    """Pairs both ways, by the first of them."""
    left, right = np.concatenate([one, other]), np.concatenate([other, one])
    both = np.concatenate([cost, cost])
    order = np.argsort(left, kind="stable")
    start = np.searchsorted(left[order], np.arange(count + 1))
    return start.astype(np.int64), right[order].astype(np.int64), both[order]


@kernel
def split_cycles(
    follows: Integers, start: Integers, partners: Integers, cost: Costs, alone: Costs
) -> NDArray[np.int64]:
    """The cheaper half of every cycle of an assignment; of an odd one the person is left whose loss is least."""
    count = len(follows)
    partner = np.full(count, -1, np.int64)
    seen = np.zeros(count, np.bool_)
    cycle = np.empty(count, np.int64)
    price = np.empty(count)
    for first in range(count):
        if seen[first]:
            continue
        length, at = 0, first
        while not seen[at]:
            seen[at] = True
            cycle[length] = at
            length += 1
            at = follows[at]
        if length == 1:
            continue
        for place in range(length):
            here, then = cycle[place], cycle[(place + 1) % length]
            price[place] = np.inf
            for arc in range(start[here], start[here + 1]):
                if partners[arc] == then:
                    price[place] = min(price[place], cost[arc])
        best, skip = np.inf, 0
        # Of an even cycle begin at the first or the second; of an odd one after each who is left out.
        for begin in range(2 if length % 2 == 0 else length):
            total = 0.0 if length % 2 == 0 else alone[cycle[begin]]
            offset = begin if length % 2 == 0 else begin + 1
            for step in range(length // 2):
                total += price[(offset + 2 * step) % length]
            if total < best:
                best, skip = total, offset
        for step in range(length // 2):
            here, then = cycle[(skip + 2 * step) % length], cycle[(skip + 2 * step + 1) % length]
            if price[(skip + 2 * step) % length] < alone[here] + alone[then]:
                partner[here], partner[then] = then, here
    return partner


def fill(seats: int, people: int, seat: Integers, person: Integers, cost: Costs, empty: float) -> Integers:
    """Who takes each of these seats, -1 for a decoy at the price `empty`, given pairs of a seat and a person."""
    if not len(seat):
        return np.full(seats, -1, np.int64)
    # Rows are seats, then one for everybody who may be left; columns are people, then one for every seat left empty.
    own, left = np.arange(seats), np.arange(people)
    rows = np.concatenate([seat, own, seats + left, seats + person])
    columns = np.concatenate([person, people + own, left, people + seat])
    price = np.concatenate([cost, np.full(seats, empty), np.zeros(people), np.zeros(len(seat))])
    order = np.lexsort((columns, rows))
    start = np.searchsorted(rows[order], np.arange(seats + people + 1)).astype(np.int64)
    found = assign(start, columns[order].astype(np.int64), price[order])[:seats]
    return np.where(found < people, found, -1)
