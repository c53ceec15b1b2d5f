"""Record tracing as printed: Figure 10 of Byun et al. and the rule for its Figure 9 (ii).

It misses rows that several classes must share among themselves, so it can find more candidates than there are.
Row groups stand for their records: an edge becomes definite only together with all edges to equal records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding, Result
from sequester.attacks.tracing.graph import Network, network
from sequester.history.history import History

Mask = NDArray[np.bool_]


def find_as_printed(history: History) -> Result:
    """Records with fewer than k candidates, for pairs of releases between which nobody left, as the paper assumes."""
    if history.trajectories is None or history.value is None or len(history) < 2:
        return Result([], None)
    path = history.trajectories.path
    findings: list[Finding] = []
    fewest: list[int] = []
    for second in range(1, len(history)):
        for first in range(second):
            if ((path[:, first] >= 0) & (path[:, second] < 0)).any():
                continue
            told, least = _trace(network(history, first, second))
            findings += told
            fewest += least
    return Result(findings, float(min(fewest)) if fewest else None)


def _trace(rows: Network) -> tuple[list[Finding], list[int]]:
    kept, definite = remove_infeasible_edges(rows)
    # Each record of a group with definite edges has its own, by an arbitrary choice.
    alone = np.flatnonzero(definite)
    shared = np.flatnonzero(kept & ~definite)
    places = [*alone[:, None], *rows.by_group(shared)]
    candidates = [int(rows.people[arcs].sum()) for arcs in places]
    findings = [
        rows.report(arcs, required=rows.history.fewest, observed=least)
        for arcs, least in zip(places, candidates, strict=True)
        if least < rows.history.fewest
    ]
    return findings, candidates


def remove_infeasible_edges(rows: Network) -> tuple[Mask, Mask]:
    """Edges that remain, and which of them are definite; both per arc of the network."""
    kept = np.ones(len(rows.tail), np.bool_)
    reachable = np.bincount(rows.tail, rows.offered, minlength=rows.groups)
    definite = reachable[rows.tail] == 1
    changed = True
    while changed:
        taken = np.zeros(rows.sink + 1, np.bool_)
        taken[rows.head[definite]] = True
        infeasible = kept & ~definite & taken[rows.head]
        kept &= ~infeasible
        left = np.bincount(rows.tail[kept], rows.offered[kept], minlength=rows.groups)
        single = kept & ~definite & (left[rows.tail] == 1)
        definite |= single
        changed = bool(infeasible.any() and single.any())
    # Figure 9 (ii): a group with as many records as all its compatible classes. After the loop and without another
    # round, as printed.
    supply = np.bincount(rows.tail, rows.rows, minlength=rows.groups)
    definite |= kept & (reachable == supply)[rows.tail]
    return kept, definite
