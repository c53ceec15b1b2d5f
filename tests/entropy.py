"""The belief of largest entropy about tiny series, by a convex program solved directly."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from series import Series


def direct(one: Series, known: list[bool]) -> np.ndarray:
    """(people, values) the belief of largest entropy, person by person: no trajectories, no scaling.

    Programs find which cells can be above nothing; a descent by Newton within all that is possible does the rest.
    """
    people, values = len(one.value), one.values
    rows, right = [], []
    for person in range(people):
        row = np.zeros((people, values))
        row[person] = 1
        rows.append(row.ravel())
        right.append(1)
        if known[person]:
            row = np.zeros((people, values))
            row[person, one.value[person]] = 1
            rows.append(row.ravel())
            right.append(1)
    for member in one.member:
        for number, value in product(range(int(member.max()) + 1), range(values)):
            row = np.zeros((people, values))
            row[member == number, value] = 1
            rows.append(row.ravel())
            right.append(int(np.sum((member == number) & (one.value == value))))
    equal, total = np.array(rows), np.array(right, float)
    corners = []
    for cell in range(people * values):
        found = linprog(-np.eye(people * values)[cell], A_eq=equal, b_eq=total, bounds=(0, 1), method="highs")
        assert found.status == 0
        corners.append(found.x)
    inside = np.mean(corners, axis=0)
    inside[np.max(corners, axis=0) < 1e-7] = 0
    free = inside > 0
    ways = null_space(equal[:, free])
    x = inside[free]

    def entropy(at: np.ndarray) -> float:
        return float(at @ np.log(at))

    for _ in range(200):
        if not ways.shape[1]:
            break
        gradient = ways.T @ (np.log(x) + 1)
        step = -ways @ np.linalg.solve(ways.T @ (ways / x[:, None]), gradient)
        length = 1.0
        while (x + length * step).min() <= 0 or entropy(x + length * step) > entropy(x) + 1e-15:
            length /= 2
            if length < 1e-12:
                break
        if length < 1e-12 or np.abs(step).max() < 1e-12:
            break
        x = x + length * step
    inside[free] = x
    return inside.reshape(people, values)
