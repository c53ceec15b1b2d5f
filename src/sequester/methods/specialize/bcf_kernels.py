"""One specialization of the next table of a series: what every new class leaves for targets, and carrying it out.

The table is given as atoms: records with the same quasi-identifier and the same past. Every class that holds the
value is split by its children into parts; only these parts are looked at, and only people with too few companions of
the same past are counted exactly. With cuts of one taxonomy the classes of two releases that one person can be in
form complete groups (`joins`), so that the rows that remain are smaller counts (Fung et al., Theorems 4.2 to 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import Limits, safe
from sequester.methods.specialize.bcf_row_kernels import (
    MANY,
    NO,
    NOT_NOW,
    YES,
    any_excess,
    count_newcomers,
    count_values,
    fewest_fresh,
    keeps_remaining,
    rows_left,
)


class Atoms(NamedTuple):
    """Records with the same quasi-identifier and the same past, and how often each value occurs among them.

    The values of atom i are at `start[i]` to `start[i + 1]`, of the views of the static criteria (`own`) and of the
    permanent views of the history (`seen`), each numbered through over its views.
    """

    size: NDArray[np.int64]
    known: NDArray[np.int64]
    past: NDArray[np.int64]  # trajectory before; the last one stands for people who are new
    own_start: NDArray[np.int64]
    own_value: NDArray[np.int32]
    own_count: NDArray[np.int64]
    seen_start: NDArray[np.int64]
    seen_value: NDArray[np.int32]
    seen_count: NDArray[np.int64]


class Before(NamedTuple):
    """What was published before.

    path     (trajectories, releases) classes of all releases numbered through, -1 for absence; newcomers are last
    table    (classes, values) published counts, the views side by side
    first    views + 1: where the values of each view begin
    joins    per release, whether rows of newcomers since then can be told by counting
    pair     (releases, releases) row of `alone` for the first class of the later one, -1 where nothing can be told
    alone    (classes of pairs, values) rows that can be a newcomer's between two earlier releases
    start    first class of every release
    """

    path: NDArray[np.int64]
    table: NDArray[np.int64]
    first: NDArray[np.int64]
    joins: NDArray[np.bool_]
    pair: NDArray[np.int64]
    alone: NDArray[np.int64]
    start: NDArray[np.int64]


class Demand(NamedTuple):
    """What is demanded beside the static criteria.

    neighbor     at least k rows remain for everybody who exists
    printed      also for newcomers nobody is, of every class (Theorem 4.4 as printed)
    remaining    what remains keeps the criteria of its view (`limits`), and so does every subset of releases
    certificate  everybody has k companions with the same past and the same class, no value too frequent among them
    companions   whether they do is to be told, demanded or not
    exact        all counts are wanted, also where companions show that they suffice
    """

    k: int
    needed: int
    neighbor: bool
    printed: bool
    remaining: bool
    certificate: bool
    companions: bool
    exact: bool
    limits: Limits
    bound: NDArray[np.bool_]  # per view, whether it has any criterion


class Joiners(NamedTuple):
    """Newcomers since each release by the group of classes they are counted in.

    group    (releases, atoms) the group of every newcomer, -1 for others; or of everybody, where all groups count
    begin, end   (releases, groups) where its newcomers are in `order` (releases, atoms)
    """

    group: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    order: NDArray[np.int32]


class Room(NamedTuple):
    """Room to work in, always left as it was found."""

    local: NDArray[np.int32]  # classes, -1
    child: NDArray[np.int32]  # atoms
    size: NDArray[np.int64]  # trajectories, 0
    head: NDArray[np.int64]  # trajectories, -1
    after: NDArray[np.int64]  # atoms
    counts: NDArray[np.int64]  # values, 0
    left: NDArray[np.int64]  # values, 0
    fresh: NDArray[np.int64]  # (releases, values), 0


class Split(NamedTuple):
    """A split that was looked at: parts are touched atoms `ordered[begin[i]:begin[i + 1]]`, children by class.

    verdict  YES, NO (never again) or NOT_NOW, and then the class that stands in the way, -1 when it may be any
    left     (parts, 2) fewest rows left for people who were there before and for newcomers; MANY where there are none
    small    per part, whether somebody has fewer than k companions
    open     per part, whether somebody's companions are too few, or have too much of a value
    """

    verdict: int
    witness: int
    ordered: NDArray[np.int64]
    begin: NDArray[np.int64]
    left: NDArray[np.int64]
    small: NDArray[np.bool_]
    open: NDArray[np.bool_]


@kernel
def list_values(atom, values, atoms, width):
    """Per atom the values (records, views) of its records, and how often: where it begins, values, counts."""
    records, views = values.shape
    first = np.zeros(atoms + 1, np.int64)
    for record in range(records):
        first[atom[record] + 1] += 1
    for i in range(atoms):
        first[i + 1] += first[i]
    place, order = first[:-1].copy(), np.empty(records, np.int64)
    for record in range(records):
        order[place[atom[record]]] = record
        place[atom[record]] += 1
    start = np.zeros(atoms + 1, np.int64)
    value, count = np.empty(records * views, np.int32), np.empty(records * views, np.int64)
    where = np.full(width, -1, np.int64)
    used = 0
    for i in range(atoms):
        for j in range(first[i], first[i + 1]):
            for view in range(views):
                code = values[order[j], view]
                if where[code] < start[i]:
                    where[code] = used
                    value[used], count[used] = code, 0
                    used += 1
                count[where[code]] += 1
        start[i + 1] = used
    return start, value[:used].copy(), count[:used].copy()


@kernel
def weigh_split(touched, child, children, member, atoms, own, before, demand, joins, splits, branch, room):
    """Whether the touched atoms may be split by child.

    own             limits of the static criteria
    splits, branch  per release whether groups of newcomers are split, and (releases, children) the branch of each child
    """
    found, ordered, begin = _arrange(touched, child, children, member, room)
    parts = found * children
    left = np.full((parts, 2), MANY)
    small, is_open = np.zeros(parts, np.bool_), np.zeros(parts, np.bool_)
    counts = np.zeros(own.numerator.size, np.int64)
    for part in range(parts):
        if not _keeps_own(ordered[begin[part] : begin[part + 1]], atoms, own, demand.needed, counts):
            return NO, -1, ordered, begin, left, small, is_open
    if before.path.shape[1] == 0:
        return YES, -1, ordered, begin, left, small, is_open
    values = np.empty(before.table.shape[1], np.int64)
    pasts = np.empty(before.path.shape[0], np.int64)
    totals = np.empty((before.first.size - 1, 2), np.int64)
    verdict, witness = YES, -1
    for part in range(parts):
        inside = ordered[begin[part] : begin[part + 1]]
        number = _meet_people(inside, atoms, room, pasts, demand.companions)
        if number == 0:
            continue
        for i in range(number):
            if room.size[pasts[i]] < demand.k:
                small[part] = True
        is_open[part] = small[part]
        if demand.companions and not small[part]:
            is_open[part] = any_excess(pasts[:number], atoms, demand, room)
        if demand.certificate and is_open[part]:
            verdict = NO
        looks = (demand.neighbor and (small[part] or demand.exact)) or demand.remaining or demand.printed
        used = 0
        if verdict != NO and looks:
            used = count_values(inside, atoms, room, values)
            count_newcomers(inside, branch[:, part % children], atoms, before, joins, splits, branch, room)
        if verdict != NO and demand.neighbor and (small[part] or demand.exact):
            for i in range(number):
                if room.size[pasts[i]] >= demand.k and not demand.exact:
                    continue
                rows_left(pasts[i], values[:used], before, room, totals)
                for view in range(totals.shape[0]):
                    for side in range(2):
                        left[part, side] = min(left[part, side], totals[view, side])
            if min(left[part, 0], left[part, 1]) < demand.k:
                verdict = NO
        if verdict != NO and demand.printed and fewest_fresh(values[:used], before, room, totals) < demand.k:
            verdict = NO
        if verdict == YES and demand.remaining:
            verdict, anywhere = keeps_remaining(pasts[:number], values[:used], before, demand, room)
            if verdict == NOT_NOW:
                witness = -1 if anywhere else member[inside[0]]
        _leave(pasts[:number], room, values[:used])
        if verdict == NO and not demand.exact:
            witness = -1
            break
    if verdict == NO:
        witness = -1
    return verdict, witness, ordered, begin, left, small, is_open


@helper
def _arrange(touched, child, children, member, room):
    """Touched atoms by class and child; a class and its children stay together."""
    found = 0
    for i in range(touched.size):
        room.child[touched[i]] = child[i]
        if room.local[member[touched[i]]] < 0:
            room.local[member[touched[i]]] = found
            found += 1
    begin = np.zeros(found * children + 1, np.int64)
    for i in range(touched.size):
        begin[room.local[member[touched[i]]] * children + child[i] + 1] += 1
    for part in range(found * children):
        begin[part + 1] += begin[part]
    place = begin[:-1].copy()
    ordered = np.empty(touched.size, np.int64)
    for i in range(touched.size):
        part = room.local[member[touched[i]]] * children + child[i]
        ordered[place[part]] = touched[i]
        place[part] += 1
    for atom in touched:
        room.local[member[atom]] = -1
    return found, ordered, begin


@helper
def _keeps_own(inside, atoms, own, needed, counts):
    """Whether a part keeps the static criteria; nobody in it is fine."""
    total = np.int64(0)
    around = 0
    for atom in inside:
        total += atoms.size[atom]
        around += atoms.known[atom]
    if total == 0:
        return True
    if total < own.k or around < needed:
        return False
    if counts.size == 0:
        return True
    counts[:] = 0
    for atom in inside:
        for pair in range(atoms.own_start[atom], atoms.own_start[atom + 1]):
            counts[atoms.own_value[pair]] += atoms.own_count[pair]
    return safe(counts, total, own)


@helper
def _meet_people(inside, atoms, room, pasts, linked):
    """The different pasts of a part: sizes are in room.size; if `linked`, the atoms of each start at room.head."""
    number = 0
    for atom in inside:
        if atoms.size[atom] == 0:
            continue
        past = atoms.past[atom]
        if room.size[past] == 0:
            pasts[number] = past
            number += 1
        room.size[past] += atoms.size[atom]
        if linked:
            room.after[atom] = room.head[past]
            room.head[past] = atom
    return number


@helper
def _leave(pasts, room, values):
    """Put the room in order after a part."""
    for past in pasts:
        room.size[past] = 0
        room.head[past] = -1
    for value in values:
        room.counts[value] = 0
    if values.size > 0:
        room.fresh[:] = 0


@kernel
def carry_out(ordered, begin, children, member, classes, splits, branch, joins, groups, room):
    """Number the parts as classes and split the groups of newcomers; returns the class of every part and the counts.

    The first part of a class keeps its number. `groups` is how many groups there are per release, changed in place.
    """
    parts = begin.size - 1
    number = np.full(parts, -1, np.int64)
    for base in range(0, parts, children):
        fresh = False
        for part in range(base, base + children):
            if begin[part] == begin[part + 1]:
                continue
            number[part] = classes if fresh else member[ordered[begin[part]]]
            if fresh:
                classes += 1
            fresh = True
    for part in range(parts):
        for i in range(begin[part], begin[part + 1]):
            member[ordered[i]] = number[part]
    for release in range(splits.size):
        if not splits[release]:
            continue
        branches = branch[release].max() + 1
        done = np.zeros(groups[release], np.bool_)
        for atom in ordered:
            group = joins.group[release, atom]
            # New groups hold only newcomers that were moved already.
            if group < 0 or group >= done.size or done[group]:
                continue
            done[group] = True
            start, end = joins.begin[release, group], joins.end[release, group]
            place = np.zeros(branches + 1, np.int64)
            for i in range(start, end):
                place[branch[release, room.child[joins.order[release, i]]] + 1] += 1
            for i in range(branches):
                place[i + 1] += place[i]
            to = np.full(branches, -1, np.int64)
            for i in range(branches):
                if place[i] == place[i + 1]:
                    continue
                to[i] = group
                if place[i] > 0:
                    to[i] = groups[release]
                    groups[release] += 1
                joins.begin[release, to[i]] = start + place[i]
                joins.end[release, to[i]] = start + place[i + 1]
            segment = joins.order[release, start:end].copy()
            for one in segment:
                side = branch[release, room.child[one]]
                joins.order[release, start + place[side]] = one
                place[side] += 1
                joins.group[release, one] = to[side]
    return number, classes
