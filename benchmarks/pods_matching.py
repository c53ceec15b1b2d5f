"""How near the matching of pods is to the best, and how fast: against a dense assignment, and a lower bound.

Two sides: people of one type, with a price for a decoy; the best is found by SciPy's dense assignment. One side:
newcomers of several labels among themselves; half the cheapest assignment of everybody to somebody else is a lower
bound of the best matching.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.methods.pods.matching import match

PEOPLE, NEAR, PRICE = 2_000, 24, 1.5


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
    return figures


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
