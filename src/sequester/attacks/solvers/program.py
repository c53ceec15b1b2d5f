"""The linear program of all worlds: how many people of each trajectory have each value, given what was published.

The solver works in floating point. What it returns are multipliers of the rows, from which `refutation` makes proofs
in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import coo_array, csr_array, diags_array, hstack
from scipy.sparse.csgraph import connected_components

from sequester.attacks.trajectory import bounds_of, excess
from sequester.history import History

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Unknowns x >= 0 with matrix @ x = total, to be kept at most cap / scale where capped.

    trajectory, value  per unknown; x is how many people of the trajectory have the value
    exceeded           where the true values are, or may be, above the cap; everywhere else they are a solution
    matrix, total      per row: a published count, or the size of a trajectory
    labels             (rows, 4) trajectory or -1, release or -1, class or -1, value or -1
    path               (trajectories, releases) the classes whose counts are used, -1 elsewhere

    A value that is not published in a class of a trajectory has no unknown there.
    """

    trajectory: Integers
    value: Integers
    cap: Integers
    scale: int
    capped: Mask
    exceeded: Mask
    matrix: csr_array
    total: Integers
    labels: Integers
    path: NDArray[np.int32]

    def take(self, rows: Mask | Integers) -> Program:
        """Fewer constraints, and the unknowns they mention: whatever this refutes, the whole refutes."""
        matrix = self.matrix[np.flatnonzero(rows) if rows.dtype == np.bool_ else rows]
        used = np.zeros(matrix.shape[1], np.bool_)
        used[matrix.indices] = True
        kept = np.flatnonzero(used)
        return Program(
            self.trajectory[kept],
            self.value[kept],
            self.cap[kept],
            self.scale,
            self.capped[kept],
            self.exceeded[kept],
            matrix[:, kept],
            self.total[rows],
            self.labels[rows],
            self.path,
        )

    def without_caps(self, trajectory: Integers, value: Integers) -> Program:
        """These unknowns may be as large as they like."""
        width = int(max(self.value.max(initial=0), value.max(initial=0))) + 1
        free = np.isin(self.trajectory * width + self.value, trajectory * width + value)
        return replace(self, capped=self.capped & ~free)

    def blocks(self) -> tuple[int, NDArray[np.int32]]:
        """How many independent parts there are, and the part of every row."""
        return _parts(self.matrix)

    def spread(self, block: NDArray[np.int32]) -> Integers:
        """The block of every unknown, given those of the rows."""
        of = np.zeros(len(self.capped), np.int64)
        of[self.matrix.indices] = np.repeat(block, np.diff(self.matrix.indptr))
        return of


def program_of(history: History, trajectories: Mask) -> Program:
    """The program of these trajectories; they must be whole components.

    A class counts only where its known members are as many as its rows and, if their values are known, have exactly
    the published values: anything else (people not found, a value that changed) would make worlds contradictory.
    """
    found = history.trajectories
    assert found is not None
    path = fitting_path(history)
    possible = np.repeat(trajectories[:, None], len(history.values), axis=1)
    for number, release in enumerate(history.releases):
        inside = np.flatnonzero(path[:, number] >= 0)
        possible[inside] &= release.counts[path[inside, number]] > 0
    t, s = np.nonzero(possible)
    rows, columns = [t], [np.arange(len(t))]
    labels, totals = [_label(len(found), trajectory=np.arange(len(found)))], [found.size]
    start, values = len(found), len(history.values)
    for number, release in enumerate(history.releases):
        inside = np.flatnonzero(path[t, number] >= 0)
        rows.append(start + path[t[inside], number].astype(np.int64) * values + s[inside])
        columns.append(inside)
        cells = np.arange(len(release) * values)
        labels.append(_label(len(cells), release=number, classes=cells // values, value=cells % values))
        totals.append(release.counts.reshape(-1))
        start += len(cells)
    row, column = np.concatenate(rows), np.concatenate(columns)
    used, row = np.unique(row, return_inverse=True)
    matrix = coo_array((np.ones(len(row), np.int64), (row, column)), shape=(len(used), len(t))).tocsr()
    numerator, scale, bounded = bounds_of(history)
    return Program(
        trajectory=t,
        value=s,
        cap=numerator[s] * found.size[t],
        scale=scale,
        capped=bounded[s],
        exceeded=excess(history)[t, s],
        matrix=matrix,
        total=np.concatenate(totals)[used],
        labels=np.concatenate(labels)[used],
        path=path,
    )


def relax(program: Program) -> Floats | None:
    """Row multipliers of the least total excess over the caps; None when no world exists at all.

    Only what the true values exceed may exceed its cap: they are a solution then, and the program is small.
    """
    beyond = np.flatnonzero(program.capped & program.exceeded)
    unknowns = len(program.capped)
    upper = np.where(program.capped, program.cap / program.scale, np.inf)
    found = linprog(
        np.concatenate([np.zeros(unknowns), np.ones(len(beyond))]),
        A_eq=hstack([program.matrix, program.matrix[:, beyond]], format="csc"),
        b_eq=program.total,
        bounds=np.column_stack([np.zeros(unknowns + len(beyond)), np.append(upper, np.full(len(beyond), np.inf))]),
        method="highs-ds",
    )
    return np.asarray(found.eqlin.marginals) if _solved(found) else None


def stretch(program: Program, block: NDArray[np.int32]) -> tuple[Floats, Floats] | None:
    """Per block of rows the least multiple of the caps that admits a world, and the row multipliers that prove it."""
    unknowns, count = len(program.capped), int(block.max(initial=-1)) + 1
    of = program.spread(block)
    held = np.flatnonzero(program.capped & (program.cap > 0))
    cap = program.cap / program.scale
    pick = coo_array((-cap[held], (np.arange(len(held)), of[held])), shape=(len(held), count))
    own = diags_array(np.ones(unknowns), format="csr")[held]
    found = linprog(
        np.concatenate([np.zeros(unknowns), np.ones(count)]),
        A_ub=hstack([own, pick], format="csc"),
        b_ub=np.zeros(len(held)),
        A_eq=hstack([program.matrix, csr_array((len(program.total), count))], format="csc"),
        b_eq=program.total,
        method="highs-ds",
    )
    if not _solved(found):
        return None
    largest = np.full(count, 1e-300)
    np.maximum.at(largest, block, np.abs(found.eqlin.marginals))
    return np.asarray(found.x[unknowns:]), np.asarray(found.eqlin.marginals / largest[block])


def _solved(found: OptimizeResult) -> bool:
    """Whether there is a solution; a solver that gave up must not look like an answer."""
    if found.status not in (0, 2):
        raise ArithmeticError(f"the solver of the deniability program gave up ({found.message})")
    return bool(found.status == 0)


def _label(
    rows: int,
    *,
    trajectory: Integers | int = -1,
    release: int = -1,
    classes: Integers | int = -1,
    value: Integers | int = -1,
) -> Integers:
    parts = (trajectory, release, classes, value)
    return np.column_stack([np.broadcast_to(part, rows) for part in parts]).astype(np.int64)


def fitting_path(history: History) -> NDArray[np.int32]:
    """The path of every trajectory, without the classes that contradict what is known of their members."""
    found, own = history.trajectories, history.trajectory_counts()
    assert found is not None
    path = found.path.copy()
    for number, release in enumerate(history.releases):
        inside = np.flatnonzero(path[:, number] >= 0)
        classes = path[inside, number]
        size = np.zeros(len(release), np.int64)
        np.add.at(size, classes, found.size[inside])
        fits = size == release.size
        if own is not None:
            counted = np.zeros_like(release.counts)
            np.add.at(counted, classes, own[inside])
            fits &= (counted == release.counts).all(axis=1)
        path[inside[~fits[classes]], number] = -1
    return path


def _parts(matrix: csr_array) -> tuple[int, NDArray[np.int32]]:
    rows, unknowns = matrix.shape
    joined = matrix.tocoo()
    ends = (joined.row, rows + joined.col)
    graph = coo_array((np.ones(joined.nnz, np.int8), ends), shape=(rows + unknowns, rows + unknowns))
    _, label = connected_components(graph, directed=False)
    seen, part = np.unique(label[:rows], return_inverse=True)
    return len(seen), part.astype(np.int32)
