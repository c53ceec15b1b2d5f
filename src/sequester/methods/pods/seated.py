"""From pods that are filled to rows in classes: everybody's pod, type, seat and class, and the decoys beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.methods.pods.classes.boxes import boxes_of
from sequester.methods.pods.classes.company import group_company, spared
from sequester.methods.pods.classes.grouping import group
from sequester.methods.pods.classes.one_type import group_types
from sequester.methods.pods.many.company import group_types_of_many
from sequester.methods.pods.many.grouping import group_many
from sequester.methods.pods.pairing.benches import Benches
from sequester.methods.pods.pairing.couples import Singles
from sequester.methods.pods.task import MadePods, PodTask
from sequester.methods.pods.types import Types

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class _Seated:
    """Rows by pod: records, then decoys."""

    pod: Integers
    kind: Integers
    seat: Integers
    decoy_label: Integers


def _seated(benches: Benches, types: Types, people: Singles) -> _Seated:
    """Every row's pod, type and seat. New pods get a type: their labels in order."""
    records = len(people)
    order = np.argsort(np.where(benches.label >= 0, benches.label, 1 << 40), axis=1, kind="stable")
    kind = np.full(len(benches), -1, np.int64)
    for who in benches.taken.T:
        kind = np.maximum(kind, np.where(who >= 0, people.kind[np.maximum(who, 0)], -1))
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    fresh = np.flatnonzero(kind < 0)
    if len(fresh):
        ordered = np.take_along_axis(benches.label[fresh], order[fresh], axis=1)
        unique, which = _different(ordered)
        numbers = [types.number([one for one in row if one >= 0]) for row in unique.tolist()]
        kind[fresh] = np.array(numbers, np.int64)[which]
    # The benches of those who have a seat are in the order of their type.
    seat = np.broadcast_to(np.arange(order.shape[1]), order.shape).copy()
    seat[fresh] = rank[fresh]
    pod, column = np.nonzero(benches.taken >= -1)
    sits = benches.taken[pod, column]
    decoy = np.flatnonzero(sits < 0)
    sits[decoy] = records + np.arange(len(decoy))
    row = np.empty_like(sits)
    row[sits] = np.arange(len(sits))
    pod, column = pod[row], column[row]
    return _Seated(pod, kind[pod], seat[pod, column], benches.label[pod[records:], column[records:]])


def _different(rows: Integers) -> tuple[Integers, Integers]:
    """The different rows in order, and which of them each is; one number per row where there are few of them."""
    least, wide = int(rows.min()), int(rows.max()) - int(rows.min()) + 1
    if wide ** rows.shape[1] > 1 << 24:
        unique, which = np.unique(rows, axis=0, return_inverse=True)
        return unique, which.ravel()
    key = np.zeros(len(rows), np.int64)
    for column in rows.T:
        key = key * wide + (column - least)
    there = np.bincount(key, minlength=wide ** rows.shape[1]) > 0
    found = np.flatnonzero(there)
    digits = found[:, None] // wide ** np.arange(rows.shape[1] - 1, -1, -1) % wide
    return digits + least, (np.cumsum(there) - 1)[key]


def classes_of(task: PodTask, types: Types, people: Singles, benches: Benches, *, large: bool) -> MadePods:
    """Classes of the pods, and everything there is to say about them; `large`: by quick loops."""
    seated = _seated(benches, types, people)
    records = len(task)
    shown = np.concatenate([people.label, seated.decoy_label])
    if large and not task.one_type:
        member, pod = _grouped_quickly(task, people, seated, shown), seated.pod
    else:
        member, pod = _grouped(task, people, seated, shown, most_seats=max(map(len, types)))
    idle = _idle(member, pod, np.arange(len(pod)) < records, task.k)
    if task.accompanied and idle.any():
        idle = spared(member, pod, shown, idle, task.inferred)
    kept = np.flatnonzero(~idle)
    rows = len(kept)
    member, pod = (_numbered(one[kept]) for one in (member, pod))
    lonely = np.bincount(pod[:records], minlength=int(pod.max()) + 1)[pod[records:]] == 0
    like = np.where(lonely, _like(member, records), _like(pod, records))
    lo, hi = boxes_of(member[:records], task.codes.T)
    return MadePods(
        member=member.astype(np.int32),
        lo=np.ascontiguousarray(lo.T),
        hi=np.ascontiguousarray(hi.T),
        pod=pod.astype(np.int32),
        type=seated.kind[kept].astype(np.int32),
        seat=seated.seat[kept].astype(np.int32),
        decoy_person=np.full(rows - records, -1, np.int64),
        decoy_label=seated.decoy_label[kept[records:] - records].astype(np.int32),
        decoy_like=like,
        facts={"decoys": float(rows - records)},
    )


def _grouped_quickly(task: PodTask, people: Singles, seated: _Seated, shown: Integers) -> Integers:
    """The class of every row, of many people; `shown` is every row's label."""
    if task.accompanied:
        least = task.least._replace(rows=max(task.k, task.inferred))
        return group_types_of_many(people.place, seated.pod, seated.kind, shown, least)
    return group_many(people.place, seated.pod, task.least)


def _grouped(
    task: PodTask, people: Singles, seated: _Seated, shown: Integers, *, most_seats: int
) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places."""
    pod, records = seated.pod, len(task)
    # Whoever has the same type and seat may change places, and the same lineage where that is bounded.
    key = seated.kind * most_seats + seated.seat
    if task.lineage is not None:
        linked = _linked_now(people, pod)
        key = np.unique(key * (int(linked.max()) + 1) + linked, return_inverse=True)[1].ravel()
    real = np.arange(len(pod)) < records
    where = np.vstack([people.place, people.place[_like(pod, records)]])
    if task.one_type:
        return group_types(where, real, pod, key, task.least, seated.kind)
    if task.accompanied:
        return group_company(where, real, pod, key, shown, task.least, task.inferred)
    return group(where, real, pod, key, task.least)


def _numbered(keys: Integers) -> Integers:
    """The same keys, from 0 on and without gaps."""
    there = np.zeros(int(keys.max()) + 1, np.bool_)
    there[keys] = True
    return np.asarray((np.cumsum(there) - 1)[keys])


def _idle(member: Integers, pod: Integers, real: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """Rows of pods in which people have found each other and left decoys alone, where the class has k rows without."""
    size, people = np.bincount(pod), np.bincount(pod[real], minlength=int(pod.max()) + 1)
    rows, of_pod = np.bincount(member), np.zeros(len(size), np.int64)
    of_pod[pod] = member
    idle = np.zeros(len(size), np.bool_)
    for one in np.flatnonzero((people == 0) & (size > 0)).tolist():
        if rows[of_pod[one]] - size[one] >= k:
            idle[one] = True
            rows[of_pod[one]] -= size[one]
    return np.asarray(idle[pod])


def _like(pod: Integers, records: int) -> Integers:
    """Per decoy, a record of its pod; anybody where there is none."""
    of = np.zeros(int(pod.max(initial=-1)) + 1, np.int64)
    of[pod[:records][::-1]] = np.arange(records)[::-1]
    found: Integers = of[pod[records:]]
    return found


def _linked_now(people: Singles, pod: Integers) -> Integers:
    """The lineage of every row, this release's pods included."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pods, rows = int(pod.max()) + 1, len(pod)
    old = np.flatnonzero(people.lineage >= 0)
    one = np.concatenate([np.arange(rows), old])
    other = np.concatenate([rows + pod, rows + pods + people.lineage[old]])
    size = rows + pods + int(people.lineage.max(initial=-1)) + 1
    links = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    found: Integers = connected_components(links, directed=False)[1][:rows].astype(np.int64)
    return found
