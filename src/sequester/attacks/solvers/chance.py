"""How likely rows agree in order by chance, when one of two tables is shuffled: upper bounds, as logarithms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def log_chance(degree: Integers, agreeing: int, *, of: int) -> float:
    """An upper bound of the log of the chance that at least so many rows agree.

    Row r agrees with `degree[r]` of the `of` rows of a shuffled table. For s <= t the chance of at least t agreeing
    rows is at most E[C(A, s)] / C(t, s), by Markov; E[C(A, s)] is the number of ways to place s agreeing rows, times
    (of - s)! / of!. These ways are a permanent once rows and columns that agree with everything fill the table up.
    """
    kinds, times = np.unique(degree[degree > 0], return_counts=True)
    rows = int(times.sum())
    if agreeing > rows:
        return -math.inf
    best = 0.0
    for chosen in sorted({round(agreeing * step / 64) for step in range(1, 65)} - {0}):
        spare = rows - chosen
        full = kinds.astype(np.float64) + spare
        ways = float((times * _log_factorial(full) / full).sum())
        ways += (of - chosen) / of * math.lgamma(of + 1) - math.lgamma(spare + 1) - math.lgamma(of - chosen + 1)
        moment = ways + math.lgamma(of - chosen + 1) - math.lgamma(of + 1)
        choices = math.lgamma(agreeing + 1) - math.lgamma(chosen + 1) - math.lgamma(agreeing - chosen + 1)
        best = min(best, moment - choices)
    return best


def _log_factorial(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    return np.asarray(gammaln(numbers + 1))


def log_equal_runs(rows: NDArray[np.int32], places: int, held: Integers, *, length: int) -> float:
    """An upper bound of the log of how many equal runs are expected when the other release is shuffled.

    It has a given run at a given place with a chance of at most the product of held[v] over the run's values, divided
    by the number of ways to choose so many of its rows in order.
    """
    of = int(held.sum())
    weight = np.append(0.0, np.cumsum(np.log(np.maximum(held, 1e-300))[rows]))
    runs = weight[length:] - weight[:-length]
    most = float(runs.max())
    total = most + math.log(float(np.exp(runs - most).sum())) + math.log(places - length + 1)
    return total - math.lgamma(of + 1) + math.lgamma(of - length + 1)
