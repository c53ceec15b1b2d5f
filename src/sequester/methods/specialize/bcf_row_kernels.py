"""Rows that can still be a target's, counted in one new class, and what they have to keep; for use in other kernels.

What is read is described in `bcf`: atoms, what was published before, the demand, and room to work in.
"""

from __future__ import annotations

import numpy as np

from sequester.kernels import helper
from sequester.methods.class_guard.limits import keeps_view

YES, NO, NOT_NOW = 0, 1, 2
MANY = np.int64(1 << 40)


@helper
def any_excess(pasts, atoms, demand, room):  # type: ignore[no-untyped-def]
    """Whether a value is too frequent among the people of one past."""
    limits = demand.limits
    found = False
    for past in pasts:
        atom = room.head[past]
        while atom >= 0:
            for pair in range(atoms.seen_start[atom], atoms.seen_start[atom + 1]):
                room.left[atoms.seen_value[pair]] += atoms.seen_count[pair]
            atom = room.after[atom]
        atom = room.head[past]
        while atom >= 0:
            for pair in range(atoms.seen_start[atom], atoms.seen_start[atom + 1]):
                value = atoms.seen_value[pair]
                if limits.denominator[value] > 0 and room.left[value] * limits.denominator[value] > (
                    limits.numerator[value] * room.size[past]
                ):
                    found = True
                room.left[value] = 0
            atom = room.after[atom]
        if found:
            break
    return found


@helper
def count_values(inside, atoms, room, values):  # type: ignore[no-untyped-def]
    """The values of a part: counts are in room.counts."""
    used = 0
    for atom in inside:
        for pair in range(atoms.seen_start[atom], atoms.seen_start[atom + 1]):
            value = atoms.seen_value[pair]
            if room.counts[value] == 0:
                values[used] = value
                used += 1
            room.counts[value] += atoms.seen_count[pair]
    return used


@helper
def count_newcomers(inside, own_branch, atoms, before, joins, splits, branch, room):  # type: ignore[no-untyped-def]
    """Per release, the values of all who joined since and could be anywhere in the part's group of classes."""
    for release in range(before.joins.size):
        if not before.joins[release]:
            continue
        group = -1
        for atom in inside:
            if joins.group[release, atom] >= 0:
                group = joins.group[release, atom]
                break
        if group < 0:
            continue
        for place in range(joins.begin[release, group], joins.end[release, group]):
            atom = joins.order[release, place]
            if splits[release] and branch[release, room.child[atom]] != own_branch[release]:
                continue
            if before.path[atoms.past[atom], release] >= 0:
                continue
            for pair in range(atoms.seen_start[atom], atoms.seen_start[atom + 1]):
                room.fresh[release, atoms.seen_value[pair]] += atoms.seen_count[pair]


@helper
def _view_of(value, view, first):  # type: ignore[no-untyped-def]
    """The view of a value, looked for from a view near it."""
    while value >= first[view + 1]:
        view += 1
    while value < first[view]:
        view -= 1
    return view


@helper
def rows_left(past, values, before, room, totals):  # type: ignore[no-untyped-def]
    """Per view, rows that can be of somebody with this past: all attacks on one target together, per value."""
    releases = before.path.shape[1]
    was, joined = False, False
    for release in range(releases):
        if before.path[past, release] >= 0:
            was = True
        elif before.joins[release]:
            joined = True
    totals[:, 0] = 0 if was else MANY
    totals[:, 1] = 0 if joined else MANY
    view = np.int64(0)
    for value in values:
        view = _view_of(value, view, before.first)
        joining, between = MANY, room.counts[value]
        for one in range(releases):
            place = before.path[past, one]
            if place >= 0:
                between = min(between, before.table[place, value])
                continue
            if before.joins[one]:
                joining = min(joining, room.counts[value], room.fresh[one, value])
            for other in range(one + 1, releases):
                there = before.path[past, other]
                if there >= 0 and before.pair[one, other] >= 0:
                    row = before.pair[one, other] + there - before.start[other]
                    joining = min(joining, before.alone[row, value])
        if was:
            totals[view, 0] += min(between, joining)
        if joined:
            totals[view, 1] += joining


@helper
def fewest_fresh(values, before, room, totals):  # type: ignore[no-untyped-def]
    """The fewest rows of a part that can be a newcomer's, over releases and views."""
    fewest = MANY
    for release in range(before.joins.size):
        if not before.joins[release]:
            continue
        totals[:, 1] = 0
        view = np.int64(0)
        for value in values:
            view = _view_of(value, view, before.first)
            totals[view, 1] += min(room.counts[value], room.fresh[release, value])
        fewest = min(fewest, totals[:, 1].min())
    return fewest


@helper
def _keeps_meet(rows, view, values, before, demand, room):  # type: ignore[no-untyped-def]
    """Whether what a part has in common with these rows keeps the criteria of a view."""
    total = np.int64(0)
    for value in values:
        if before.first[view] <= value < before.first[view + 1]:
            room.left[value] = min(room.counts[value], rows[value])
            total += room.left[value]
    kept = keeps_view(room.left, total, view, demand.limits)
    for value in values:
        room.left[value] = 0
    return kept


@helper
def keeps_remaining(pasts, values, before, demand, room):  # type: ignore[no-untyped-def]
    """Whether what remains of each pair of releases, and of every subset, keeps the criteria of its view."""
    releases = before.path.shape[1]
    for view in range(before.first.size - 1):
        if not demand.bound[view]:
            continue
        for past in pasts:
            present = 0
            for release in range(releases):
                place = before.path[past, release]
                if place >= 0:
                    present += 1
                    if not _keeps_meet(before.table[place], view, values, before, demand, room):
                        return NOT_NOW, False
                elif before.joins[release] and not _keeps_meet(room.fresh[release], view, values, before, demand, room):
                    return NOT_NOW, True
            if present > 1 and not keeps_subsets(past, view, values, before, demand, room):
                return NOT_NOW, False
    return YES, False


@helper
def keeps_subsets(past, view, values, before, demand, room):  # type: ignore[no-untyped-def]
    """Whether no value is too frequent in what this class and any classes before have in common.

    For one value and one least number of its rows it is best to use every release that has so many.
    """
    releases = before.path.shape[1]
    limits = demand.limits
    full = 0
    for value in values:
        if before.first[view] <= value < before.first[view + 1]:
            common = room.counts[value]
            for release in range(releases):
                place = before.path[past, release]
                if place >= 0:
                    common = min(common, before.table[place, value])
            full += common
    for value in values:
        if not before.first[view] <= value < before.first[view + 1] or limits.denominator[value] == 0:
            continue
        most = 0
        for release in range(releases):
            place = before.path[past, release]
            if place >= 0:
                most = max(most, min(before.table[place, value], room.counts[value]))
        if most * limits.denominator[value] <= limits.numerator[value] * full:
            continue
        for pivot in range(releases):
            place = before.path[past, pivot]
            if place < 0:
                continue
            least = min(before.table[place, value], room.counts[value])
            if least == 0:
                continue
            total = 0
            for other in values:
                if not before.first[view] <= other < before.first[view + 1]:
                    continue
                common = room.counts[other]
                for release in range(releases):
                    there = before.path[past, release]
                    if there >= 0 and before.table[there, value] >= least:
                        common = min(common, before.table[there, other])
                total += common
            if least * limits.denominator[value] > limits.numerator[value] * total:
                return False
    return True
