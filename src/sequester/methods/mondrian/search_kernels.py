"""The search for safe cuts within the nodes of the tree: from one class downwards, several times in different ways."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe
from sequester.methods.mondrian.node_kernels import (
    acceptable,
    clear_leaf,
    find_name,
    load_node,
    make_node,
    move_people,
)

_BITS = 20
_MASK = (1 << _BITS) - 1
"""A key is a code and, in its last bits, whose it is: one sort gives both. Nodes have far fewer people."""

_SAME = 1e-9
"""Losses that differ by less are of the same classes, or not worth another choice; sums of floats differ by less."""


class Spans(NamedTuple):
    """The nodes to search.

    number      what their noise depends on beside the seed
    begin, end  their people in the lineup; `slot` is where their labels begin
    known       the cost that must be beaten
    """

    number: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    slot: NDArray[np.int64]
    known: NDArray[np.float64]


class Ways(NamedTuple):
    """Per trial, how it differs from the others.

    wide     cuts are scored by what they shorten in all attributes, not only in their own
    whole    units are not cut: all their people go where most of them are
    hopeful  where the tests are in doubt a cut is accepted
    noise    the largest share by which scores are raised at random, so that other cuts come first
    tries    how many of the best cuts of a leaf are tried
    """

    wide: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    hopeful: NDArray[np.bool_]
    noise: NDArray[np.float64]
    tries: int
    seed: int


class Results(NamedTuple):
    """The best few different results of every node.

    cost   (nodes, kept) best first, infinity for none
    label  (kept, slots) the class of every person, counted from 0, -1 for those who left
    """

    cost: NDArray[np.float64]
    label: NDArray[np.int16]


class CutList(NamedTuple):
    """Every cut of a leaf; keys and gain are for listing them.

    ranked  (attributes, people) everybody of the node in the order of the codes: one sort serves all leaves
    """

    score: NDArray[np.float64]
    axis: NDArray[np.int64]
    code: NDArray[np.int64]
    keys: NDArray[np.int64]
    gain: NDArray[np.float64]
    ranked: NDArray[np.int64]


class NodeUnits(NamedTuple):
    """Per person the unit she is of; per unit, how many of its people are on the upper side of a cut, and all."""

    of: NDArray[np.int64]
    upper: NDArray[np.int64]
    all: NDArray[np.int64]


class Sides(NamedTuple):
    """Of the people of a leaf, in their order, the side of a cut that each is on (1: above), and those above it."""

    of: NDArray[np.int64]
    above: NDArray[np.int64]


class _Trial(NamedTuple):
    """How one trial lists cuts; see `Ways`."""

    wide: bool
    noise: float
    chance: int


@helper(inline="always")
def _noise(seed, a, b, c):
    """A number in [0, 1) that depends on nothing but its arguments."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xBF58476D1CE4E5B9)
    x += np.uint64(b) * np.uint64(0x94D049BB133111EB) + np.uint64(c) * np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


@helper(inline="always")
def _rest_gains(rows, size, axis, scale, cuts):
    """What every cut of one attribute shortens in the others; the keys are its codes in order, with whose they are."""
    shape, first_leaf, position = rows.shape, scale.first_leaf, scale.position
    keys, gain = cuts.keys, cuts.gain
    for i in range(size - 1):
        gain[i] = 0.0
    for other in range(shape[1]):
        if other == axis:
            continue
        at = first_leaf[other]
        low, high = np.inf, -np.inf
        for i in range(size - 1):
            place = position[at + rows[keys[i] & _MASK, other]]
            low, high = min(low, place), max(high, place)
            gain[i] -= (i + 1) * min(high - low, 1.0)
        low, high = np.inf, -np.inf
        for i in range(size - 1, -1, -1):
            if i < size - 1:
                gain[i] -= (size - i - 1) * min(high - low, 1.0)
            place = position[at + rows[keys[i] & _MASK, other]]
            low, high = min(low, place), max(high, place)
        full = size * min(high - low, 1.0)
        for i in range(size - 1):
            gain[i] += full


@helper(inline="always")
def _rank_people(rows, people, ranked):
    """The codes of a node in every attribute, in order, each with whose it is; nodes are small."""
    for axis in range(rows.shape[1]):
        keys = ranked[axis]
        for p in range(people):
            item, j = (np.int64(rows[p, axis]) << _BITS) + p, p
            while j > 0 and keys[j - 1] > item:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = item


@helper(inline="always")
def _take_ranked(ranked, people, leaf_of, leaf, keys):
    """Those of one leaf, in the same order."""
    size = 0
    for i in range(people):
        keys[size] = ranked[i]
        size += leaf_of[ranked[i] & _MASK] == leaf


@helper
def _list_cuts(rows, leaf_of, leaf, size, k, scale, trial, cuts):
    """Every cut of a leaf with k people on both sides and how much it shortens, in its attribute or (`wide`) in all."""
    cuts_axis, cuts_code, gain, score, shape = cuts.axis, cuts.code, cuts.gain, cuts.score, rows.shape
    first_leaf, position = scale.first_leaf, scale.position
    count, keys, ranked = np.int64(0), cuts.keys, cuts.ranked
    for axis in range(shape[1]):
        _take_ranked(ranked[axis], shape[0], leaf_of, leaf, keys)
        lowest, highest = keys[0] >> _BITS, keys[size - 1] >> _BITS
        if lowest == highest:
            continue
        at = first_leaf[axis]
        origin, last = position[at + lowest], position[at + highest]
        full = min(last - origin, 1.0)
        if trial.wide:
            _rest_gains(rows, size, axis, scale, cuts)
        for i in range(size - 1):
            code, following, below = keys[i] >> _BITS, keys[i + 1] >> _BITS, i + 1
            if code == following or below < k or size - below < k:
                continue
            value = size * full - below * (position[at + code] - origin)
            value -= (size - below) * min(last - position[at + following], 1.0)
            if trial.wide:
                value += gain[i]
            if trial.noise > 0:
                value *= 1.0 + trial.noise * _noise(trial.chance, axis, code, size)
            score[count], cuts_axis[count], cuts_code[count] = value, axis, code
            count += 1
    return count


@helper(inline="always")
def _take_sides(rows, inside, size, axis, code, whole, units, sides):
    """Who is above a cut; `whole` units go where most of their people are. Returns how many.

    No branch depends on the side: the processor could not guess it.
    """
    units_all, units_of, upper, side, moving = units.all, units.of, units.upper, sides.of, sides.above
    if whole:
        for i in range(size):
            upper[units_of[inside[i]]] = units_all[units_of[inside[i]]] = 0
        for i in range(size):
            units_all[units_of[inside[i]]] += 1
            upper[units_of[inside[i]]] += rows[inside[i], axis] > code
    above = 0
    for i in range(size):
        p = inside[i]
        is_above = 2 * upper[units_of[p]] > units_all[units_of[p]] if whole else rows[p, axis] > code
        side[i] = 1 if is_above else 0
        moving[above] = p
        above += side[i]
    return above


@helper(inline="always")
def _both_safe(inside, size, side, above, static, limits, counts):
    """Whether both sides of a cut satisfy the static limits."""
    shape = static.shape
    counts[:] = 0
    for i in range(size):
        for view in range(shape[1]):
            counts[side[i], static[inside[i], view]] += 1
    return safe(counts[0], size - above, limits) and safe(counts[1], above, limits)


@helper(inline="always")
def _loss(rows, leaves, people, count, scale):
    """People times the widths of the boxes, summed over the leaves."""
    leaves_of, size, shape, first_leaf = leaves.of, leaves.size, rows.shape, scale.first_leaf
    position = scale.position
    total = 0.0
    for leaf in range(count):
        for axis in range(shape[1]):
            low, high = np.inf, -np.inf
            for p in range(people):
                if leaves_of[p] == leaf:
                    place = position[first_leaf[axis] + rows[p, axis]]
                    low, high = min(low, place), max(high, place)
            total += size[leaf] * min(high - low, 1.0)
    return total


@helper(inline="always")
def _keep(costs, label, total, leaf_of, people, slot):
    """Remember a result among the best few different ones."""
    kept = costs.size
    place = 0
    while place < kept and costs[place] < total - _SAME:
        place += 1
    if place == kept or costs[place] <= total + _SAME:
        return
    for i in range(kept - 1, place, -1):
        costs[i] = costs[i - 1]
        for p in range(slot, slot + people):
            label[i, p] = label[i - 1, p]
    costs[place] = total
    for p in range(people):
        label[place, slot + p] = leaf_of[p]


@helper(inline="always")
def _number_units(units, base, people, unit, names):
    """Units of a node numbered from 0."""
    count = np.int64(0)
    for p in range(people):
        name = np.int64(units[base + p])
        which = find_name(names, count, name)
        if which < 0:
            names[count] = name
            which = count
            count += 1
        unit[p] = which


@helper(inline="always")
def _list_people(leaf_of, people, leaf, inside):
    size = np.int64(0)
    for p in range(people):
        if leaf_of[p] == leaf:
            inside[size] = p
            size += 1
    return size


@helper(inline="always")
def _best(score, cuts):
    """The best cut that was not tried yet; -1 where none saves anything."""
    best = -1
    for i in range(cuts):
        if score[i] > 0 and (best < 0 or score[i] > score[best]):
            best = i
    return best


@helper(inline="always")
def _list_here(here, base, people, leaf_of, inside):
    """Everybody who is in the table, to be moved to the first leaf; returns how many."""
    size = np.int64(0)
    for p in range(people):
        leaf_of[p] = -1
        if here[base + p]:
            inside[size] = p
            size += 1
    return size


@helper(inline="always")
def _forget(failed, listed):
    """No cut of this node failed yet."""
    for kind in range(failed.shape[0]):
        for i in range(listed):
            failed[kind, i] = False


@helper(inline="always")
def _failed_before(fails, best, undivided):
    """Whether this cut of the undivided node failed in an earlier trial; what is tried now fails until it does not."""
    before = undivided and fails[best]
    fails[best] = fails[best] or undivided
    return before


@kernel
def search_nodes(spans, lineup, required, limits, scale, ways, results):
    """Cut the people of every node from one class downwards, once per way; keep the best few different results.

    required  what the series asks for, `limits` what every class must keep by itself
    results   filled
    """
    lineup_rows, lineup_static, cost, begin, end = lineup.rows, lineup.static, results.cost, spans.begin, spans.end
    known, spans_number, slot, hopeful, noise = spans.known, spans.number, spans.slot, ways.hopeful, ways.noise
    whole, wide = ways.whole, ways.wide
    k, most = limits.k, np.int64(0)
    for n in range(spans.begin.size):
        most = max(most, end[n] - begin[n])
    most_leaves, most_cuts = most // max(k, 1) + 2, most * lineup.rows.shape[1] + 1
    node = make_node(most, most_leaves, lineup.column.shape[1], lineup.value.shape[1], required.numerator.size)
    leaves, value, of = node.leaves, node.value, node.earlier.of
    cuts = CutList(
        np.zeros(most_cuts), np.zeros(most_cuts, np.int64), np.zeros(most_cuts, np.int64), np.zeros(most, np.int64),
        np.zeros(most), np.zeros((lineup.rows.shape[1], most), np.int64),
    )  # fmt: skip
    inside, names = np.zeros(most, np.int64), np.zeros(most + 1, np.int64)
    sides = Sides(np.zeros(most, np.int64), np.zeros(most, np.int64))
    units = NodeUnits(np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64))
    waiting, counts = np.zeros(most_leaves + 1, np.int64), np.zeros((2, limits.numerator.size), np.int64)
    # Cuts of the whole node that failed, per kind of trial: all begin with the same people and list the same cuts, so
    # that most of what they try was tried before.
    failed = np.zeros((4, most_cuts), np.bool_)
    for n in range(spans.begin.size):
        base, people = begin[n], end[n] - begin[n]
        load_node(node, lineup, base, people, names)
        columns = node.shape[1]
        rows, static = lineup_rows[base : base + people].copy(), lineup_static[base : base + people].copy()
        _rank_people(rows, people, cuts.ranked)
        _number_units(lineup.unit, base, people, units.of, names)
        for number in range(ways.wide.size):
            fails = failed[(2 if whole[number] else 0) + (1 if hopeful[number] else 0)]
            clear_leaf(leaves, columns, 0)
            size = _list_here(lineup.here, base, people, leaves.of, inside)
            move_people(value, of, columns, leaves, inside, size, (np.int64(-1), np.int64(0)))
            count, top = np.int64(1), np.int64(1)
            waiting[0] = 0
            while top > 0:
                top -= 1
                leaf = waiting[top]
                size = _list_people(leaves.of, people, leaf, inside)
                if size < 2 * k or size < 2:
                    continue
                chance = ways.seed + 1000003 * number + 7919 * spans_number[n] + 104729 * leaf
                trial = _Trial(wide[number], noise[number], chance)
                listed = _list_cuts(rows, leaves.of, leaf, size, k, scale, trial, cuts)
                if count == 1 and number == 0:
                    _forget(failed, listed)
                for _ in range(ways.tries):
                    best = _best(cuts.score, listed)
                    if best < 0:
                        break
                    cuts.score[best] = -1.0
                    if _failed_before(fails, best, count == 1):
                        continue
                    above = _take_sides(
                        rows, inside, size, cuts.axis[best], cuts.code[best], whole[number], units, sides
                    )
                    few = above < k or size - above < k
                    if few or not _both_safe(inside, size, sides.of, above, static, limits, counts):
                        continue
                    clear_leaf(leaves, columns, count)
                    move_people(value, of, columns, leaves, sides.above, above, (leaf, count))
                    if acceptable(node, required, inside, size, (leaf, count), count + 1, hopeful[number]):
                        fails[best] = fails[best] and count > 1
                        waiting[top], waiting[top + 1] = leaf, count
                        top += 2
                        count += 1
                        break
                    move_people(value, of, columns, leaves, sides.above, above, (count, leaf))
            total = _loss(rows, leaves, people, count, scale)
            if total < known[n] - _SAME:
                _keep(cost[n], results.label, total, leaves.of, people, slot[n])
