"""The compiled loops of `matching`: cheapest assignments, couples out of their cycles, and partners exchanged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel

Integers = NDArray[np.int64]
Costs = NDArray[np.float64]

_PASSES = 30
"""How often partners are exchanged at most. It ends by itself, since each exchange costs less; this bounds the time."""

_LESS = 1e-9
"""What must be saved for partners to be exchanged: sums in another order differ by less."""


class Arcs(NamedTuple):
    """Who may go with whom: those from start[i] to start[i + 1] are i's, each with a cost."""

    start: Integers
    to: Integers
    cost: Costs


class Search(NamedTuple):
    """What is known of a cheapest assignment so far.

    of_row, of_column  whom each is assigned to, -1
    u, v               potentials of rows and columns: no arc costs less than both together
    far, before        per column the way to it, and the row it is reached from
    state              per column 0, or 1 if it is reached, or 2 if no shorter way to it is left
    touched            the columns that are reached
    """

    of_row: Integers
    of_column: Integers
    u: Costs
    v: Costs
    far: Costs
    before: Integers
    state: Integers
    touched: Integers


class Heap(NamedTuple):
    """Columns by the way to them, the nearest first; of equal ways the lower number."""

    way: Costs
    column: Integers


@helper
def _before(heap: Heap, one: int, other: int) -> bool:
    """Whether an entry of a heap is nearer than another."""
    here, there = heap.way[one], heap.way[other]
    return bool(here < there or (here == there and heap.column[one] < heap.column[other]))


@helper
def _swap(heap: Heap, one: int, other: int) -> None:
    heap.way[one], heap.way[other] = heap.way[other], heap.way[one]
    heap.column[one], heap.column[other] = heap.column[other], heap.column[one]


@helper
def _push(heap: Heap, size: int, way: float, column: int) -> None:
    """Add an entry to a heap that has so many."""
    heap.way[size], heap.column[size] = way, column
    at = size
    while at > 0 and _before(heap, at, (at - 1) // 2):
        _swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@helper
def _drop(heap: Heap, size: int) -> None:
    """Take the nearest out of a heap that has so many."""
    _swap(heap, 0, size - 1)
    at = 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and _before(heap, child + 1, child):
            child += 1
        if not _before(heap, child, at):
            break
        _swap(heap, child, at)
        at = child


@helper
def _assign_at_once(arcs: Arcs, search: Search) -> None:
    """Every row gets a cheapest column that is still free, if there is one."""
    for row in range(search.of_row.size):
        least = np.inf
        for arc in range(arcs.start[row], arcs.start[row + 1]):
            least = min(least, arcs.cost[arc])
        search.u[row] = least
        for arc in range(arcs.start[row], arcs.start[row + 1]):
            if arcs.cost[arc] == least and search.of_column[arcs.to[arc]] < 0:
                search.of_row[row], search.of_column[arcs.to[arc]] = arcs.to[arc], row
                break


@helper
def _outbid(arcs: Arcs, search: Search) -> None:
    """Rows without a column take their cheapest, at a price by which it is as dear as their next; who had it goes on.

    Spares most of the searches for a way to a free column (augmenting row reduction, Jonker and Volgenant 1987).
    """
    cost, ends, u, v = arcs.cost, arcs.to, search.u, search.v
    bids = 4 * search.of_row.size
    for first in range(search.of_row.size):
        row = first if search.of_row[first] < 0 else -1
        while row >= 0 and bids > 0:
            bids -= 1
            least, more, to = np.inf, np.inf, -1
            for arc in range(arcs.start[row], arcs.start[row + 1]):
                price = cost[arc] - v[ends[arc]]
                if price < least:
                    least, more, to = price, least, ends[arc]
                elif price < more:
                    more = price
            holder = search.of_column[to]
            if more == np.inf or (holder >= 0 and more - least < _LESS):
                break
            u[row], v[to] = more, v[to] - (more - least)
            search.of_row[row], search.of_column[to] = to, row
            if holder >= 0:
                search.of_row[holder] = -1
            row = holder


@helper
def _nearest_free(arcs: Arcs, search: Search, heap: Heap, source: int) -> tuple[int, int]:
    """The free column that is nearest to a row along arcs and back, and how many columns were reached."""
    far, state, before, u, v = search.far, search.state, search.before, search.u, search.v
    ends, cost = arcs.to, arcs.cost
    row, reached, size, touched = source, 0.0, 0, 0
    while True:
        for arc in range(arcs.start[row], arcs.start[row + 1]):
            to = ends[arc]
            if state[to] == 2:
                continue
            way = reached + max(cost[arc] - u[row] - v[to], 0.0)
            if way < far[to]:
                if state[to] == 0:
                    state[to], search.touched[touched] = 1, to
                    touched += 1
                far[to], before[to] = way, row
                _push(heap, size, way, to)
                size += 1
        # Columns that were pushed again wait behind, with the longer way.
        while state[heap.column[0]] == 2:
            _drop(heap, size)
            size -= 1
        reached, to = heap.way[0], heap.column[0]
        _drop(heap, size)
        size -= 1
        if search.of_column[to] < 0:
            return to, touched
        state[to] = 2
        row = search.of_column[to]


@kernel
def assign(arcs: Arcs, search: Search, heap: Heap) -> None:
    """The cheapest assignment of all rows, by shortest augmenting paths; there must be one. Changes `search`."""
    of_row, of_column, far = search.of_row, search.of_column, search.far
    _assign_at_once(arcs, search)
    _outbid(arcs, search)
    for source in range(of_row.size):
        if of_row[source] >= 0:
            continue
        at, touched = _nearest_free(arcs, search, heap, source)
        reached = far[at]
        search.u[source] += reached
        for place in range(touched):
            to = search.touched[place]
            if search.state[to] == 2:
                search.u[of_column[to]] += reached - far[to]
                search.v[to] -= reached - far[to]
        for place in range(touched):
            to = search.touched[place]
            far[to], search.state[to] = np.inf, 0
        row = -1
        while row != source:
            row = search.before[at]
            following = of_row[row]
            of_row[row], of_column[at] = at, row
            at = following


@helper
def _cost_between(arcs: Arcs, one: int, other: int) -> float:
    """What a pair costs; infinite if it may not be."""
    # Arrays by themselves: a tuple of arrays in the innermost loop counts references.
    to, cost = arcs.to, np.inf
    for arc in range(arcs.start[one], arcs.start[one + 1]):
        if to[arc] == other:
            cost = arcs.cost[arc]
            break
    return cost


@helper
def _cheaper_half(cycle: Integers, price: Costs, length: int, alone: Costs) -> int:
    """Where the couples of a cycle begin: of an even one at the first or the second, of an odd one after anybody."""
    is_odd = length % 2
    best, best_begin = np.inf, 0
    for first in range(length if is_odd else 2):
        total, begin = (alone[cycle[first]], first + 1) if is_odd else (0.0, first)
        for place in range(begin, begin + length - 1, 2):
            total += price[place % length]
        if total < best:
            best, best_begin = total, begin
    return best_begin


@kernel
def split_cycles(follows: Integers, arcs: Arcs, alone: Costs, partner: Integers, cycle: Integers, price: Costs) -> None:
    """The cheaper half of every cycle of an assignment; of an odd one the person is left whose loss is least.

    follows         whom everybody is assigned to
    partner         -1 for everybody, and is changed
    cycle, price    room for those of one cycle, and what each costs with the next
    """
    for first in range(follows.size):
        length, at = 0, first
        while follows[at] >= 0:
            cycle[length] = at
            length += 1
            following = follows[at]
            # Whoever was seen follows nobody.
            follows[at] = -1
            at = following
        if length < 2:
            continue
        for place in range(length):
            price[place] = _cost_between(arcs, cycle[place], cycle[(place + 1) % length])
        begin = _cheaper_half(cycle, price, length, alone)
        for place in range(begin, begin + length - 1, 2):
            here, then = cycle[place % length], cycle[(place + 1) % length]
            if price[place % length] < alone[here] + alone[then]:
                partner[here], partner[then] = then, here


@helper
def _exchange(partner: Integers, arcs: Arcs, alone: Costs, paid: Costs, one: int, arc: int) -> int:
    """Make a couple along an arc, and of those whom they leave if they fit, if that costs less; returns whether."""
    other = arcs.to[arc]
    now = paid[one] + paid[other]
    if arcs.cost[arc] >= now - _LESS:
        # Whoever is left costs something, too: no need to look whether they fit.
        return 0
    mine, theirs = partner[one], partner[other]
    left, joined = 0.0, np.inf
    for mate in (mine, theirs):
        left += alone[mate] if mate >= 0 else 0.0
    if mine >= 0 and theirs >= 0:
        joined = _cost_between(arcs, mine, theirs)
    if arcs.cost[arc] + min(left, joined) >= now - _LESS:
        return 0
    partner[one], partner[other] = other, one
    paid[one] = paid[other] = arcs.cost[arc]
    for mate, next_ in ((mine, theirs), (theirs, mine)):
        if mate >= 0:
            partner[mate] = next_ if joined < left else -1
            paid[mate] = joined if joined < left else alone[mate]
    return 1


@kernel
def exchange_partners(partner: Integers, arcs: Arcs, alone: Costs, paid: Costs) -> int:
    """Two couples exchange partners, or somebody alone takes one's place, while that costs less. Changes `partner`.

    paid  room for what everybody costs with her partner, whom both pay for
    """
    for one in range(partner.size):
        paid[one] = alone[one] if partner[one] < 0 else _cost_between(arcs, one, partner[one])
    changed = 0
    for _ in range(_PASSES):
        moved = 0
        for one in range(partner.size):
            for arc in range(arcs.start[one], arcs.start[one + 1]):
                if arcs.to[arc] != partner[one]:
                    moved += _exchange(partner, arcs, alone, paid, one, arc)
        changed += moved
        if moved == 0:
            break
    return changed
