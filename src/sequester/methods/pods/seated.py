"""From pods that are filled to rows in classes: everybody's pod, type, seat and class, and the decoys beside them.

A type is the labels that the seats of a pod have, in order: one number per type, in all releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import numbered, row_groups
from sequester.history.seats import Seats
from sequester.methods.pods.classes.company import group_company, spared
from sequester.methods.pods.classes.grouping import boxes_of, group
from sequester.methods.pods.classes.one_type import group_types, group_types_of_many
from sequester.methods.pods.pairing.couples import PodPeople
from sequester.methods.pods.pairing.seats import PodSeats
from sequester.methods.pods.task import MadePods, PodTask

Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]


class Types:
    """Every type so far, and new ones as they are needed."""

    def __init__(self, before: Seats, label: Numbers) -> None:
        """Of everybody published so far, with their labels."""
        self._labels: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}
        seats: dict[int, dict[int, int]] = {}
        if len(before):
            width = int(before.seat.max()) + 1
            _, first, _ = numbered(before.type.astype(np.int64) * width + before.seat)
            columns = (before.type[first].tolist(), before.seat[first].tolist(), label[first].tolist())
            for kind, seat, own in zip(*columns, strict=True):
                seats.setdefault(kind, {})[seat] = own
        for kind in range(len(seats)):
            self._add(tuple(seats[kind][seat] for seat in range(len(seats[kind]))))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self._labels)

    def number(self, labels: Iterable[int]) -> int:
        """The type with these labels, whatever their order."""
        wanted = tuple(sorted(labels))
        found = self._number.get(wanted)
        return self._add(wanted) if found is None else found

    def _add(self, labels: tuple[int, ...]) -> int:
        self._number[labels] = len(self._labels)
        self._labels.append(labels)
        return len(self._labels) - 1


@dataclass(frozen=True, eq=False, repr=False)
class _Seated:
    """Rows by pod: records, then decoys."""

    pod: Integers
    kind: Integers
    seat: Integers
    decoy_label: Integers


def _seated(filled: PodSeats, types: Types, people: PodPeople) -> _Seated:
    """Every row's pod, type and seat. New pods get a type: their labels in order."""
    records = len(people)
    order = np.argsort(np.where(filled.label >= 0, filled.label, 1 << 40), axis=1, kind="stable")
    kind = np.full(len(filled), -1, np.int64)
    for who in filled.taken.T:
        kind = np.maximum(kind, np.where(who >= 0, people.kind[np.maximum(who, 0)], -1))
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    fresh = np.flatnonzero(kind < 0)
    if len(fresh):
        ordered = np.take_along_axis(filled.label[fresh], order[fresh], axis=1)
        which, first = row_groups(ordered.T)
        numbers = [types.number([one for one in row if one >= 0]) for row in ordered[first].tolist()]
        kind[fresh] = np.array(numbers, np.int64)[which]
    # The filled of those who have a seat are in the order of their type.
    seat = np.broadcast_to(np.arange(order.shape[1]), order.shape).copy()
    seat[fresh] = rank[fresh]
    pod, column = np.nonzero(filled.taken >= -1)
    sits = filled.taken[pod, column]
    decoy = np.flatnonzero(sits < 0)
    sits[decoy] = records + np.arange(len(decoy))
    row = np.empty_like(sits)
    row[sits] = np.arange(len(sits))
    pod, column = pod[row], column[row]
    return _Seated(pod, kind[pod], seat[pod, column], filled.label[pod[records:], column[records:]])


def classes_of(task: PodTask, types: Types, people: PodPeople, filled: PodSeats, *, large: bool) -> MadePods:
    """Classes of the pods, and everything there is to say about them; `large`: by quick loops."""
    seated = _seated(filled, types, people)
    records = len(task)
    shown = np.concatenate([people.label, seated.decoy_label])
    member, pod = _grouped(task, people, seated, shown, large=large)
    idle = _idle(member, pod, np.arange(len(pod)) < records, task.k)
    if task.accompanied and idle.any():
        idle = spared(member, pod, shown, idle, task.inferred)
    kept = np.flatnonzero(~idle)
    rows = len(kept)
    member, pod = (numbered(one[kept])[2] for one in (member, pod))
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


def _grouped(
    task: PodTask, people: PodPeople, seated: _Seated, shown: Integers, *, large: bool
) -> tuple[Integers, Integers]:
    """The class of every row, and its pod after people have changed places; `shown` is every row's label."""
    pod, records = seated.pod, len(task)
    # Whoever has the same type and seat may change places, and the same lineage where that is bounded.
    key = seated.kind * (int(seated.seat.max()) + 1) + seated.seat
    if task.lineage is not None:
        linked = _linked_now(people, pod)
        key = np.unique(key * (int(linked.max()) + 1) + linked, return_inverse=True)[1].ravel()
    where = np.vstack([people.place, people.place[_like(pod, records)]])
    if task.one_type:
        return group_types(where, records, pod, key, task.least, seated.kind)
    if task.accompanied and large:
        least = task.least._replace(rows=max(task.k, task.inferred))
        return group_types_of_many(where, records, pod, key, least, seated.kind, shown)
    if task.accompanied:
        return group_company(where, records, pod, key, shown, task.least, task.inferred)
    return group(where, records, pod, key, task.least)


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


def _linked_now(people: PodPeople, pod: Integers) -> Integers:
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
