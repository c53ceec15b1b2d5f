"""Who shares a pod with whom: partners at least cost, where being left without one has a price.

A matching in any graph, not only one with two sides: everybody is once on the left and once on the right, and the
cheapest assignment (shortest augmenting paths over sparse arcs) is made of cycles. An even cycle is the cheaper of its
two matchings; of an odd one somebody is left, and tried again. To be alone is an arc to oneself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.pairing.matching_kernels import (
    Arcs,
    Heap,
    Search,
    assign,
    exchange_partners,
    split_cycles,
)

Integers = NDArray[np.int64]
Costs = NDArray[np.float64]

_ROUNDS = 3
"""How often people are matched: those who are left of odd cycles are tried again, among themselves."""


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
        mate = _couples(place[one[kept]], place[other[kept]], cost[kept], alone[free])
        matched = mate >= 0
        if not matched.any():
            break
        partner[free[matched]] = free[mate[matched]]
    if len(one):
        exchange_partners(partner, _both_ways(count, one, other, cost), alone, np.empty(count))
    return partner


def _couples(one: Integers, other: Integers, cost: Costs, alone: Costs) -> Integers:
    """Everybody's partner by a cheapest assignment of everybody to somebody, or to herself; -1 for nobody."""
    count = len(alone)
    own = np.arange(count)
    left, right = np.concatenate([one, other, own]), np.concatenate([other, one, own])
    follows = _assignment(_arcs(count, left, right, np.concatenate([cost, cost, 2 * alone])))
    partner = np.full(count, -1, np.int64)
    split_cycles(
        follows, _both_ways(count, one, other, cost), alone, partner, np.empty(count, np.int64), np.empty(count)
    )
    return partner


def _assignment(arcs: Arcs) -> Integers:
    """The cheapest assignment of rows to as many columns; one of all rows must exist."""
    count, most = len(arcs.start) - 1, len(arcs.to)
    of_row, of_column, before, touched = (np.full(count, -1, np.int64) for _ in range(4))
    far, state = np.full(count, np.inf), np.zeros(count, np.int64)
    search = Search(of_row, of_column, np.zeros(count), np.zeros(count), far, before, state, touched)
    assign(arcs, search, Heap(np.empty(most), np.empty(most, np.int64)))
    return of_row


def _arcs(count: int, left: Integers, right: Integers, cost: Costs) -> Arcs:
    """Arcs by their left ends."""
    order = np.argsort(left, kind="stable")
    start = np.searchsorted(left[order], np.arange(count + 1))
    return Arcs(start.astype(np.int64), right[order].astype(np.int64), cost[order])


def _both_ways(count: int, one: Integers, other: Integers, cost: Costs) -> Arcs:
    """Pairs both ways."""
    return _arcs(count, np.concatenate([one, other]), np.concatenate([other, one]), np.concatenate([cost, cost]))


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
    taken = _assignment(_arcs(seats + people, rows[order], columns[order], price[order]))[:seats]
    return np.where(taken < people, taken, -1)
