"""Deniability over all releases: the linear program of what an insider can believe, of many blocks at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sequester.deferred import coo_array, csc_array, hstack, linprog
from sequester.methods.series_guard.proposed import Mask, ProposedRelease, WatchedView

Longs = NDArray[np.int64]

_NOISE = 1e-6

_SOLVED = 10_000
"""Unknowns of a program, about: one program of everything takes far longer than many."""


def undeniable(proposed: ProposedRelease, view: WatchedView, live: Mask) -> Mask:
    """Per block, whether under every belief somebody is tied to a value with more than its bound.

    Only trajectories whose own values exceed a bound may exceed it at a price: the true values are then a solution,
    and a block is deniable when its price is nothing.
    """
    bad = np.zeros(proposed.blocks, np.bool_)
    counts = proposed.counts(view)
    over = view.excess(counts, proposed.size)
    bounded = view.numerator < view.denominator
    touched = np.zeros(int(proposed.component.max(initial=-1)) + 1, np.bool_)
    touched[proposed.component[over.any(axis=1) & live[proposed.block]]] = True
    rows = np.flatnonzero(touched[proposed.component])
    if len(rows) == 0:
        return bad
    after = proposed.after_counts(view)
    classes = len(proposed.past_classes.lo)
    columns = np.column_stack(
        [proposed.same[rows], np.where(proposed.after[rows] >= 0, proposed.after[rows] + classes, -1)]
    )
    table = np.concatenate([view.table, after])
    possible = np.ones((len(rows), view.values), np.bool_)
    for column in columns.T:
        inside = column >= 0
        possible[inside] &= table[column[inside]] > 0
    t, s = np.nonzero(possible)
    matrix_rows, matrix_columns = [t], [np.arange(len(t))]
    for number, column in enumerate(columns.T):
        # A class that an earlier column has already says nothing new.
        repeated = (columns[:, :number] == column[:, None]).any(axis=1) if number else np.zeros(len(rows), np.bool_)
        inside = np.flatnonzero((column[t] >= 0) & ~repeated[t])
        matrix_rows.append(len(rows) + column[t[inside]] * view.values + s[inside])
        matrix_columns.append(inside)
    totals = np.concatenate([proposed.size[rows], table.reshape(-1)])
    used, row = np.unique(np.concatenate(matrix_rows), return_inverse=True)
    matrix = coo_array(
        (np.ones(len(row)), (row.ravel(), np.concatenate(matrix_columns))), shape=(len(used), len(t))
    ).tocsc()
    upper = np.where(bounded[s], view.numerator[s] * proposed.size[rows[t]] / view.denominator, np.inf)
    price = np.zeros(proposed.blocks)
    for own in _batches(proposed.component[rows[t]]):
        more = over[rows[t[own]], s[own]]
        excess = _excess(matrix[:, own], totals[used], upper[own], np.flatnonzero(more))
        if excess is None:
            # Also when the solver gives up: what is not known to be safe is not.
            bad[proposed.block[rows[t[own]]]] = True
        else:
            price += np.bincount(proposed.block[rows[t[own[more]]]], weights=excess, minlength=proposed.blocks)
    return np.asarray(bad | (price > _NOISE))


def _batches(component: NDArray[np.int32]) -> Iterator[Longs]:
    """Unknowns of whole components, about so many at a time."""
    if len(component) <= _SOLVED:
        yield np.arange(len(component))
        return
    order = np.argsort(component, kind="stable")
    size = np.bincount(component)
    begin = np.cumsum(size) - size
    ends = begin[np.flatnonzero(np.diff(begin // _SOLVED, prepend=0))]
    yield from (part for part in np.split(order, ends) if len(part))


def _excess(matrix: csc_array, total: Longs, upper: NDArray[np.float64], beyond: Longs) -> NDArray[np.float64] | None:
    """What exceeds the upper bounds of some unknowns in a solution that exceeds them least; None without any."""
    lines, row = np.unique(matrix.indices, return_inverse=True)
    matrix = csc_array((matrix.data, row.ravel(), matrix.indptr), shape=(len(lines), matrix.shape[1]))
    unknowns = matrix.shape[1]
    found = linprog(
        np.concatenate([np.zeros(unknowns), np.ones(len(beyond))]),
        A_eq=hstack([matrix, matrix[:, beyond]], format="csc"),
        b_eq=total[lines],
        bounds=np.column_stack([np.zeros(unknowns + len(beyond)), np.append(upper, np.full(len(beyond), np.inf))]),
        method="highs-ds",
    )
    return np.asarray(found.x[unknowns:]) if found.status == 0 else None
