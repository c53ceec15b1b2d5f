"""Clusters of similar records (Reddy, Raju and Valli Kumari, incremental cluster-based generalization).

A record joins the cluster that it widens least if they are similar enough, and starts one otherwise; a cluster that is
not safe merges with the one it costs least to merge with, and is judged again, until no cluster is unsafe. One distance
serves numbers and taxonomies: the loss, that is how much wider the box becomes for everybody in it.

Nobody is compared with everybody. Safe classes of gain cuts put the records in order, and windows of near classes are
clustered, each on its own; where clusters do not lose less, the classes stay. Then the clusters of small tables are
regrouped. So clusters lose no more than gain cuts do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError, PolicyError
from sequester.methods.classes import Classes, compact
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.regroup import regrouped

if TYPE_CHECKING:
    from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Shorts = NDArray[np.float32]

SMALL = 100_000
"""Records up to which windows are wide and clusters are regrouped; beyond, that would take too long."""

WIDE, NARROW = 2048, 256
"""Units per window in which clusters merge, of small tables and of large ones."""

LARGEST_K, PARTS = 32, 16
"""Beyond this k the units are not records, but runs of near ones, so many or more to a cluster."""


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
    if guard.known:
        raise PolicyError("k_map needs classes whose boxes do not overlap: use method mondrian")
    if similarity is not None and not 0 <= similarity <= 1:
        raise PolicyError("similarity must be between 0 and 1")
    base = mondrian(codes, domains, guard)
    records = codes.shape[1]
    if not records or (len(base) == 1 and similarity is None):
        return base
    place = np.column_stack([domain.position[row] for domain, row in zip(domains, codes, strict=True)])
    order, unit = _units(base, codes, domains, guard)
    starts = np.flatnonzero(np.diff(base.member[order], prepend=-1))
    counted = np.cumsum((np.diff(unit[order], prepend=-1) != 0) | (np.diff(base.member[order], prepend=-1) != 0))
    edges = _edges(starts, counted[starts] - 1, WIDE if records <= SMALL else NARROW, end=records)
    window = _Window(place.astype(np.float32), unit, base.member, guard, similarity)
    found = np.empty(records, np.int64)

    def merge(begin: Longs, end: Longs) -> None:
        for first, last in zip(begin.tolist(), end.tolist(), strict=True):
            found[order[first:last]] = first + window.clusters(order[first:last])

    _share(merge, edges)
    made = Classes.around(compact(found), codes)
    return regrouped(made, codes, domains, guard) if similarity is None and records <= SMALL else made


@dataclass(frozen=True, eq=False, repr=False)
class _Window:
    """Records by where they lie (records, attributes), their units, which are not torn apart, and classes they have."""

    place: Shorts
    unit: Ints
    base: Ints
    guard: ClassGuard
    similarity: float | None

    def clusters(self, people: Longs) -> Longs:
        """The clusters of people whose classes are side by side, and in them their units; all in one must be safe.

        Their classes are taken where they cost no more, and where they are so many that they cannot be cut.
        """
        from sequester.methods.cluster.merge_kernels import Clusters, merge_units

        number = np.cumsum(np.diff(self.unit[people], prepend=self.unit[people[0]]) != 0)
        own = np.cumsum(np.diff(self.base[people], prepend=self.base[people[0]]) != 0)
        if number[-1] >= 4 * WIDE:
            return own
        counts = np.zeros((int(number[-1]) + 1, self.guard.limits.numerator.size), np.int64)
        for values in self.guard.values[people].T:
            np.add.at(counts, (number, values), 1)
        widest = 0.0 if self.similarity is None else (1 - self.similarity) * self.place.shape[1]
        merged, cost = merge_units(Clusters(*self._boxes(people, number), counts), self.guard.limits, widest)
        if self.similarity is None and self._boxes(people, own)[3].sum() <= cost:
            return own
        return np.asarray(merged[number])

    def _boxes(self, people: Longs, number: Longs) -> tuple[Shorts, Shorts, Shorts, Shorts]:
        """Of runs of people with the same number (attributes, runs) where boxes begin and end, people, and costs."""
        starts, place = np.flatnonzero(np.diff(number, prepend=-1)), self.place[people]
        low, high = (operate.reduceat(place, starts, axis=0) for operate in (np.minimum, np.maximum))
        size = np.bincount(number).astype(np.float32)
        cost = np.asarray(size * np.minimum(high - low, np.float32(1)).sum(axis=1), np.float32)
        return np.ascontiguousarray(low.T), np.ascontiguousarray(high.T), size, cost


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
