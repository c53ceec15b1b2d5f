"""Clusters of similar records (Reddy, Raju and Valli Kumari, incremental cluster-based generalization).

A record joins the cluster that it widens least if they are similar enough, and starts one otherwise; a cluster that is
not safe merges with the one it costs least to merge with, and is judged again, until no cluster is unsafe. One distance
serves numbers and taxonomies: the loss, that is how much wider the box becomes for everybody in it.

Nobody is compared with everybody. Safe classes of gain cuts put the records in order, and windows of near classes are
clustered, each on its own; where clusters do not lose less, the classes stay. Then records that their cluster can spare
move to where they cost less, in windows that begin in the middle of others, and the clusters of small tables are
regrouped. So clusters lose no more than gain cuts do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy, side_by_side
from sequester.errors import GuaranteeError, PolicyError
from sequester.methods.classes import Classes
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.regroup import regrouped

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

SMALL = 100_000
"""Records up to which windows are wide and clusters are regrouped; beyond, that would take too long."""

WIDE, NARROW, NEAR = 2048, 256, 256
"""Units per window in which clusters merge, of small tables and of large ones; and records among which one moves."""

LARGEST_K, PARTS = 32, 8
"""Beyond this k the units are not records, but runs of near ones, so many or more to a cluster."""

# Looks at everybody who might move: in a third one hardly anybody does.
_PASSES = 2


def cluster(
    codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, *, similarity: float | None = None
) -> Classes:
    """Clusters of the records, given as codes (attributes, records), each of them safe.

    `similarity` of records is 1 less the mean width of the box around them, from 0 to 1: records join a cluster as
    long as all in it are so similar, and only what is not safe then becomes wider. Without it equal records join, and
    clusters are not much larger than they have to be.
    """
    made = clusters(codes, domains, guard, similarity=similarity)
    if len(made) == 1 and not _is_safe(made, guard):
        raise GuaranteeError(
            "the whole table as one cluster is not safe; require less, call frequent values ordinary, or collect more "
            "records. Nothing was published.",
            guarantee="cluster",
        )
    return made


def clusters(
    codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, *, similarity: float | None = None
) -> Classes:
    """As `cluster`; records that are not safe even together are one cluster."""
    from sequester.methods.cluster.box_kernels import Records, Windows
    from sequester.methods.cluster.merge_kernels import JoinRules, merge_windows
    from sequester.methods.cluster.move_kernels import move_windows
    from sequester.methods.cluster.near_kernels import bound_members

    if guard.known:
        raise PolicyError("k_map needs classes whose boxes do not overlap: use method mondrian")
    if similarity is not None and not 0 <= similarity <= 1:
        raise PolicyError("similarity must be between 0 and 1")
    base = mondrian(codes, domains, guard)
    width, records = codes.shape
    if not records or (len(base) == 1 and similarity is None):
        return base
    position, first_leaf = side_by_side(domains)
    rows = np.ascontiguousarray(codes.T)
    table = Records(rows, guard.values, position.astype(np.float32), first_leaf)
    order, unit = _units(base, codes, domains, guard)
    fresh = np.concatenate([[True], np.diff(base.member[order]) > 0])
    starts = np.flatnonzero(fresh)
    counted = np.cumsum(np.concatenate([[True], (np.diff(unit[order]) != 0) | fresh[1:]]))
    edges = _edges(starts, counted[starts] - 1, WIDE if records <= SMALL else NARROW, end=records)
    widest = 0.0 if similarity is None else (1 - similarity) * width
    joining = JoinRules(widest, 4 * WIDE, similarity is None)
    member = np.empty(records, np.int32)

    def merge(begin: Longs, end: Longs) -> None:
        merge_windows(table, unit, base.member, Windows(order, begin, end), guard.limits, joining, member)

    def move(begin: Longs, end: Longs) -> None:
        move_windows(table, Windows(order, begin, end), guard.limits, _PASSES, member)

    _share(merge, edges)
    if similarity is None:
        starts = np.flatnonzero(member[order] == np.arange(records))
        _share(move, _edges(starts, starts + NEAR // 2, NEAR, end=records))
    used = np.zeros(records, np.int32)
    used[member] = 1
    compact: Ints = (np.cumsum(used, dtype=np.int32) - 1)[member]
    made = Classes(compact, *bound_members(compact, rows, int(compact.max()) + 1))
    return regrouped(made, codes, domains, guard) if similarity is None and records <= SMALL else made


def _units(base: Classes, codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard) -> tuple[Longs, Ints]:
    """The records by classes of gain cuts, and what is not torn apart: single records, or of a large k runs in them."""
    if guard.limits.k <= LARGEST_K:
        unit = np.arange(len(base.member), dtype=np.int32)
        return np.argsort(base.member, kind="stable"), unit
    runs = in_order(codes, domains, guard, guard.limits.k // PARTS)
    return np.lexsort((runs, base.member)), runs


def in_order(codes: Ints, domains: tuple[Hierarchy, ...], guard: ClassGuard, size: int) -> Ints:
    """Per record the number of its run: gain cuts down to so many records, near runs with near numbers."""
    free = Limits.only(size)
    values = np.zeros((codes.shape[1], 0), np.int32)
    return mondrian(codes, domains, replace(guard, limits=free, values=values, known=0)).member


def _is_safe(made: Classes, guard: ClassGuard) -> bool:
    from sequester.methods.loops.tree import safe_classes

    return bool(safe_classes(made.member.astype(np.int64), guard.values, len(made), guard.limits).all())


def _edges(starts: Longs, place: Longs, size: int, *, end: int) -> Longs:
    """Where windows of about this size begin and end, all at starts; `place` is where a start is along the order."""
    first = np.flatnonzero(np.diff(place // size, prepend=-1))
    return np.append(starts[first], end)


def _share(work: Callable[[Longs, Longs], None], edges: Longs) -> None:
    """Do the work in all windows, shared by threads: windows do not touch each other's records."""
    threads = min(os.cpu_count() or 1, 8)
    begin, end = edges[:-1], edges[1:]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda thread: work(begin[thread::threads].copy(), end[thread::threads].copy()), range(threads)))
