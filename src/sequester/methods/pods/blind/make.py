"""Pods for readers who know the method: every decision stays the same when the labels of a type are permuted.

Whoever can run a maker rules worlds out: only some assignments of the labels lead to what was published. Here all that
is decided is a function of quasi-identifiers, of who is in the table, and of whether two people of one type have the
same label; never of which label it is. Then, for everybody who ever had a type, its labels can be permuted and the same
tables are published with the same chance: nobody has a label with more than 1/seats, to a reader for whom the labels of
a type were equally likely before.

Newcomers are grouped by quasi-identifiers alone; their type is the set of their labels, filled up at random. Fragments
of pods of one type whose seats do not clash are joined, nearest first, until decoys are within the budget.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.methods.pods.blind.join import Fragments, joined
from sequester.methods.pods.blind.types import Draws, types_of_newcomers
from sequester.methods.pods.classes.grouping import boxes_of, cut
from sequester.methods.pods.task import MadePods, PodTask

Integers = NDArray[np.int64]
MOST_SEATS = 60
"""Seats of a pod are the bits of a number."""


class Shuffling(Draws, Protocol):
    """What is drawn: a random order of the records, and labels."""

    def permutation(self, n: int, /) -> Integers:
        """Numbers below n in random order."""
        ...


def make_blind(task: PodTask, draws: Shuffling | None = None) -> MadePods:
    """Pods and classes of the records of a task, by decisions that no permutation of a type's labels changes."""
    draws = np.random.default_rng(task.seed) if draws is None else draws
    # All ties are broken by a random order: that of the table may follow values.
    rank = np.asarray(draws.permutation(len(task)), np.int64)
    known = _known_types(task)
    old = task.person >= 0
    type_, seat = np.full(len(task), -1, np.int64), np.full(len(task), -1, np.int64)
    type_[old], seat[old] = task.before.type[task.person[old]], task.before.seat[task.person[old]]
    new = np.flatnonzero(~old)
    group, rows, own = types_of_newcomers(task, new, rank, draws)
    known, type_[new] = _numbered(known, rows)
    seat[new] = own
    seats = (known >= 0).sum(1)
    if seats.max(initial=1) > MOST_SEATS:
        raise GuaranteeError(f"blind pods have at most {MOST_SEATS} seats. Nothing was published.", guarantee="series")
    fragment = _fragments(task, group, seat, rank)
    place = np.column_stack([domain.position[row] for domain, row in zip(task.domains, task.codes, strict=True)])
    lineage, people = _lineages(task, fragment)
    whole = joined(
        Fragments.of(fragment, type_=type_, seat=seat, place=place, rank=rank, lineage=lineage, seats=seats),
        people,
        most=task.lineage,
        allowed=int(task.decoys * len(task) / (1 - task.decoys)) if task.decoys < 1 else len(task) * MOST_SEATS,
    )
    # Pods are numbered by the first of their records in the random order: cuts may depend on numbers.
    pod = _by_first(whole[fragment], rank)
    pod_row, seat_row, type_row, like = _with_decoys(pod, seat, type_, rank, seats, task.k)
    member, lo, hi = _classes(task, place, pod_row, like)
    label = known[type_row, seat_row][len(task) :].astype(np.int32)
    return MadePods(
        member=member,
        lo=lo,
        hi=hi,
        pod=pod_row,
        type=type_row,
        seat=seat_row,
        decoy_person=_going_on(task, like, type_row[len(task) :], seat_row[len(task) :]),
        decoy_label=label,
        decoy_like=like,
        facts={"decoys": float(len(like))},
    )


def _known_types(task: PodTask) -> Integers:
    """The labels of every type so far by seat, -1 after its last."""
    before = task.before
    kinds, most = int(before.type.max(initial=-1)) + 1, int(before.seat.max(initial=-1)) + 1
    found = np.full((kinds, most), -1, np.int64)
    found[before.type, before.seat] = task.label_before
    return found


def _numbered(known: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """All types, and the type of everybody new: one that has just these labels, if there is one."""
    width = max(known.shape[1], rows.shape[1])
    every = np.concatenate(
        [np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=-1) for one in (known, rows)]
    )
    _, first, inverse = np.unique(every, axis=0, return_index=True, return_inverse=True)
    fresh = first >= len(known)
    number = np.where(fresh, len(known) + np.cumsum(fresh) - 1, first)
    return np.concatenate([every[: len(known)], every[first[fresh]]]), number[inverse.ravel()[len(known) :]]


def _fragments(task: PodTask, group: Integers, seat: Integers, rank: Integers) -> Integers:
    """Who begins in one pod: those left of a last pod, and newcomers of a group, the r-th of each label together."""
    old = task.person >= 0
    new = np.flatnonzero(~old)
    key = np.zeros((len(task), 3), np.int64)
    person = task.person[old]
    when, where = np.zeros(len(person), np.int64), np.zeros(len(person), np.int64)
    for number, pods in enumerate(task.before.pods):
        there = pods[person] >= 0
        when[there], where[there] = number, pods[person][there]
    key[old, 0], key[old, 1] = when, where
    key[new, 0], key[new, 1] = -1, group
    order = new[np.lexsort((rank[new], seat[new], group))]
    key[order, 2] = _rank_within(np.column_stack([key[order, 1], seat[order]]))
    return _by_first(np.unique(key, axis=0, return_inverse=True)[1].ravel(), rank)


def _rank_within(key: Integers) -> Integers:
    """Of every row, how many equal ones stand before it; equal rows stand together."""
    begins = np.ones(len(key), np.bool_)
    begins[1:] = (key[1:] != key[:-1]).any(1)
    here = np.arange(len(key))
    return here - np.maximum.accumulate(np.where(begins, here, 0)) if len(key) else here


def _by_first(group: Integers, rank: Integers) -> Integers:
    """Groups numbered in the order of their first records."""
    order = np.argsort(rank)
    _, first, inverse = np.unique(group[order], return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    found = np.empty(len(group), np.int64)
    found[order] = number[inverse.ravel()]
    return found


def _lineages(task: PodTask, fragment: Integers) -> tuple[Integers, Integers]:
    """Per fragment its lineage, and per lineage how many people it has."""
    before = task.before.lineages().astype(np.int64)
    size = np.bincount(before, weights=~task.before.decoy).astype(np.int64)
    old = task.person >= 0
    count = int(fragment.max(initial=-1)) + 1
    lineage = np.full(count, -1, np.int64)
    lineage[fragment[old]] = before[task.person[old]]
    fresh = np.flatnonzero(lineage < 0)
    lineage[fresh] = len(size) + np.arange(len(fresh))
    return lineage, np.concatenate([size, np.bincount(fragment, minlength=count)[fresh]])


def _with_decoys(
    pod: Integers, seat: Integers, type_: Integers, rank: Integers, seats: Integers, k: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Integers]:
    """Pod, seat and type of all rows: the records, then a decoy for every empty seat; and whom decoys are like."""
    order = np.argsort(rank)
    count = int(pod.max(initial=-1)) + 1
    first = np.empty(count, np.int64)
    first[pod[order[::-1]]] = order[::-1]
    # A table of fewer than k rows gets whole pods of decoys, of the type of one who is there.
    rows = int(seats[type_[first]].sum())
    lacking = max(0, -(-(k - rows) // int(seats[type_[order[0]]]))) if len(order) else 0
    first = np.append(first, np.repeat(order[:1], lacking))
    kinds = type_[first]
    taken = np.zeros((len(first), int(seats.max(initial=1))), np.bool_)
    taken[pod, seat] = True
    empty = ~taken & (np.arange(taken.shape[1]) < seats[kinds][:, None])
    at, place = np.nonzero(empty)
    pods = np.append(pod, at)
    return (
        pods.astype(np.int32),
        np.append(seat, place).astype(np.int32),
        kinds[pods].astype(np.int32),
        first[at],
    )


def _classes(
    task: PodTask, place: NDArray[np.float64], pod: NDArray[np.int32], like: Integers
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The class of every row, and the boxes of the classes; cuts look at places and numbers of pods only."""
    low, high = boxes_of(pod, np.concatenate([place, place[like]]))
    size, people = np.bincount(pod), np.bincount(pod[: len(task)], minlength=int(pod.max()) + 1)
    member = cut(low, high, np.column_stack([size, people]).astype(np.int32), task.least)[pod]
    lo, hi = boxes_of(member, np.hstack([task.codes, task.codes[:, like]]).T)
    return member.astype(np.int32), np.ascontiguousarray(lo.T), np.ascontiguousarray(hi.T)


def _going_on(task: PodTask, like: Integers, type_: NDArray[np.int32], seat: NDArray[np.int32]) -> Integers:
    """Decoys of before in the seats of now, where they sat in the same lineage: no decoy links people anew."""
    found = np.full(len(like), -1, np.int64)
    wanted = np.flatnonzero(task.person[like] >= 0)
    there = np.flatnonzero(task.before.decoy)
    if not len(wanted) or not len(there):
        return found
    lineage = task.before.lineages()
    keys = []
    for number, key in (
        (there, (lineage[there], task.before.type[there], task.before.seat[there])),
        (wanted, (lineage[task.person[like[wanted]]], type_[wanted], seat[wanted])),
    ):
        order = np.lexsort((number, *key))
        table = np.column_stack(key)[order].astype(np.int64)
        keys.append((number[order], np.column_stack([table, _rank_within(table)])))
    (before, had), (now, asked) = keys
    _, inverse = np.unique(np.concatenate([had, asked]), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    of = np.full(int(inverse.max()) + 1, -1, np.int64)
    of[inverse[: len(had)]] = before
    found[now] = of[inverse[len(had) :]]
    return found
