"""Deniability over all releases: the linear program of what an insider can believe, of many blocks at once."""

from __future__ import annotations

import numpy as np

from sequester.deferred import coo_array, hstack, linprog
from sequester.methods.series_guard.proposed import Mask, ProposedRelease, WatchedView

_NOISE = 1e-6


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
    beyond = np.flatnonzero(over[rows[t], s])
    found = linprog(
        np.concatenate([np.zeros(len(t)), np.ones(len(beyond))]),
        A_eq=hstack([matrix, matrix[:, beyond]], format="csc"),
        b_eq=totals[used],
        bounds=np.column_stack([np.zeros(len(t) + len(beyond)), np.append(upper, np.full(len(beyond), np.inf))]),
        method="highs-ds",
    )
    if found.status != 0:
        # Also when the solver gives up: what is not known to be safe is not.
        bad[proposed.block[rows]] = True
        return bad
    price = np.bincount(proposed.block[rows[t[beyond]]], weights=found.x[len(t) :], minlength=proposed.blocks)
    return np.asarray(price > _NOISE)
