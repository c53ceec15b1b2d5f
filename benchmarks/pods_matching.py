"""How near the matching of pods is to the best, and how fast: against a dense assignment, a lower bound, and a flow.

Two sides: people of one type, with a price for a decoy; the best is found by SciPy's dense assignment. One side:
newcomers of several labels among themselves; half the cheapest assignment of everybody to somebody else is a lower
bound of the best matching. At size: 40,000 people of one type, paired cell by cell as a release is, against the
cheapest flow over all near pairs (OR-Tools).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from experiments.podded import plain
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.methods.pods.pairing.couples import PodPeople, pair
from sequester.methods.pods.pairing.matching import match

PEOPLE, NEAR, PRICE = 2_000, 24, 1.5
MANY, MANY_NEAR, AXES = 40_000, 15, 6
SCALE = 1_000_000
"""Flows cost whole numbers."""


def run() -> list[Figure]:
    """Cost and time of both."""
    draws = np.random.default_rng(5)
    place = draws.random((PEOPLE, 4))
    apart = np.abs(place[:, None, :] - place[None, :, :]).sum(axis=2)
    side = np.arange(PEOPLE) % 2
    label = draws.integers(0, 6, PEOPLE)
    match(4, np.array([0]), np.array([1]), np.array([1.0]), np.full(4, PRICE))  # compiled
    figures = []
    # Everybody to somebody else goes round in threes where a matching cannot: that bound is loose.
    for what, fits, known, most in (
        ("people of one type", side[:, None] != side[None, :], "best", 1.03),
        ("newcomers of six labels", label[:, None] != label[None, :], "lower bound", None),
    ):
        cost = np.where(fits, apart, np.inf)
        taken, partner = seconds(lambda cost=cost: _matched(cost))  # type: ignore[misc]
        dense, best = seconds(lambda cost=cost: _best(cost))  # type: ignore[misc]
        figures += [
            Figure(f"{what}: cost / {known}", _total(cost, partner) / best, at_most=most),
            Figure(f"{what}: seconds / SciPy's dense assignment", taken / dense),
        ]
    return [*figures, *_at_size()]


def _at_size() -> list[Figure]:
    """People of one type, half of them at either seat."""
    place = np.random.default_rng(6).random((MANY, AXES))
    seat = np.arange(MANY) % 2
    none = np.full(MANY, -1, np.int64)
    people = PodPeople(
        place=place,
        label=seat,
        want=1 - seat,
        kind=np.zeros(MANY, np.int64),
        seat=seat,
        lineage=none,
        linked=np.ones(MANY, np.int64),
        alone=np.full(MANY, PRICE),
    )
    bounds = plain(2, Fraction(1, 2))
    taken, partner = seconds(lambda: pair(people, bounds, None, None))
    paired = np.flatnonzero(partner >= 0)
    apart = np.abs(place[paired] - place[partner[paired]]).sum()
    cost = float(apart / 2 + PRICE * (MANY - len(paired)))
    flow, best = seconds(lambda: _flow(place, seat))
    return [
        Figure(f"{MANY:,} people of one type: cost / cheapest flow", cost / best, at_most=1.1),
        Figure(f"{MANY:,} people of one type: seconds / OR-Tools", taken / flow, note=f"{taken:.1f} and {flow:.1f} s"),
    ]


def _flow(place: np.ndarray, seat: np.ndarray) -> float:
    """The least cost of pairs of near people and of decoys, by OR-Tools."""
    from ortools.graph.python import min_cost_flow

    left, right = np.flatnonzero(seat == 0), np.flatnonzero(seat == 1)
    pairs = []
    for one, other, is_left in ((left, right, True), (right, left, False)):
        far, found = cKDTree(place[other]).query(place[one], k=MANY_NEAR, p=1)
        near = np.column_stack([np.repeat(np.arange(len(one)), MANY_NEAR), found.ravel()])
        pairs.append(np.column_stack([near if is_left else near[:, ::-1], far.ravel()]))
    arcs = np.vstack(pairs)
    source, sink, count = 2 * len(left), 2 * len(left) + 1, len(left)
    start = np.concatenate([np.full(count, source), arcs[:, 0], count + np.arange(count), np.arange(count)])
    end = np.concatenate([np.arange(count), count + arcs[:, 1], np.full(count, sink), np.full(count, sink)])
    cost = np.concatenate([np.zeros(count), arcs[:, 2], np.zeros(count), np.full(count, 2 * PRICE)])
    solver = min_cost_flow.SimpleMinCostFlow()
    ones = np.ones(len(start), np.int64)
    solver.add_arcs_with_capacity_and_unit_cost(start.astype(np.int32), end.astype(np.int32), ones,
                                                np.rint(cost * SCALE).astype(np.int64))  # fmt: skip
    solver.set_nodes_supplies(np.array([source, sink]), np.array([count, -count]))
    if solver.solve() != solver.OPTIMAL:
        raise AssertionError("the flow was not found")
    return float(solver.optimal_cost() / SCALE)


def _matched(cost: np.ndarray) -> np.ndarray:
    near = np.argpartition(cost, NEAR, axis=1)[:, :NEAR]
    one = np.repeat(np.arange(len(cost)), NEAR)
    other = near.ravel()
    pairs = np.unique(np.column_stack([np.minimum(one, other), np.maximum(one, other)]), axis=0)
    return match(len(cost), pairs[:, 0], pairs[:, 1], cost[pairs[:, 0], pairs[:, 1]], np.full(len(cost), PRICE))


def _total(cost: np.ndarray, partner: np.ndarray) -> float:
    paired = np.flatnonzero(partner >= 0)
    return float(cost[paired, partner[paired]].sum() / 2 + PRICE * (len(cost) - len(paired)))


def _best(cost: np.ndarray) -> float:
    """Of everybody to somebody else, or to a decoy at its price; each pair counts twice."""
    whole = cost.copy()
    np.fill_diagonal(whole, 2 * PRICE)
    rows, columns = linear_sum_assignment(np.minimum(whole, 1e6))
    return float(whole[rows, columns].sum() / 2)
