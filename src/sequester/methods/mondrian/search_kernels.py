"""The search for safe cuts within the nodes of the tree: from one class downwards, several times in different ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe
from sequester.methods.mondrian.node_kernels import acceptable, all_in_one, load_node, make_node, part, rejoin

_BITS = 20
_MASK = (1 << _BITS) - 1


@helper
def _noise(seed, a, b, c):  # type: ignore[no-untyped-def]
    """A number in [0, 1) that depends on nothing but its arguments."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xBF58476D1CE4E5B9)
    x += np.uint64(b) * np.uint64(0x94D049BB133111EB) + np.uint64(c) * np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


@helper
def _rest_gains(rows, inside, keys, size, axis, position, first_leaf, gain):  # type: ignore[no-untyped-def]
    """What every cut of one attribute shortens in the others; `keys` are its codes in order, with whose they are."""
    for i in range(size - 1):
        gain[i] = 0.0
    for other in range(rows.shape[1]):
        if other == axis:
            continue
        at = first_leaf[other]
        low, high = np.inf, -np.inf
        for i in range(size - 1):
            place = position[at + rows[inside[keys[i] & _MASK], other]]
            low, high = min(low, place), max(high, place)
            gain[i] -= (i + 1) * min(high - low, 1.0)
        low, high = np.inf, -np.inf
        for i in range(size - 1, -1, -1):
            if i < size - 1:
                gain[i] -= (size - i - 1) * min(high - low, 1.0)
            place = position[at + rows[inside[keys[i] & _MASK], other]]
            low, high = min(low, place), max(high, place)
        full = size * min(high - low, 1.0)
        for i in range(size - 1):
            gain[i] += full


@helper
def _list_cuts(rows, inside, size, k, position, first_leaf, wide, noise, seed, cuts, keys, gain):  # type: ignore[no-untyped-def]
    """Every cut of a leaf with k people on both sides and how much it shortens, in its attribute or (`wide`) in all.

    `noise` is the largest share by which scores are raised at random, so that other cuts come first.
    """
    score, cut_axis, cut_code = cuts
    found = 0
    for axis in range(rows.shape[1]):
        for i in range(size):
            keys[i] = (np.int64(rows[inside[i], axis]) << _BITS) + i
        for i in range(1, size):
            item, j = keys[i], i
            while j > 0 and keys[j - 1] > item:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = item
        lowest, highest = keys[0] >> _BITS, keys[size - 1] >> _BITS
        if lowest == highest:
            continue
        at = first_leaf[axis]
        origin, last = position[at + lowest], position[at + highest]
        full = min(last - origin, 1.0)
        if wide:
            _rest_gains(rows, inside, keys, size, axis, position, first_leaf, gain)
        for i in range(size - 1):
            code, following, below = keys[i] >> _BITS, keys[i + 1] >> _BITS, i + 1
            if code == following or below < k or size - below < k:
                continue
            value = size * full - below * (position[at + code] - origin)
            value -= (size - below) * min(last - position[at + following], 1.0)
            if wide:
                value += gain[i]
            if noise > 0:
                value *= 1.0 + noise * _noise(seed, axis, code, size)
            score[found], cut_axis[found], cut_code[found] = value, axis, code
            found += 1
    return found


@helper
def _take_sides(rows, inside, size, axis, code, unit, whole, side, half, full):  # type: ignore[no-untyped-def]
    """Who is above a cut; `whole` units go where most of their people are. Returns how many."""
    if whole:
        for i in range(size):
            half[unit[inside[i]]] = full[unit[inside[i]]] = 0
        for i in range(size):
            full[unit[inside[i]]] += 1
            half[unit[inside[i]]] += rows[inside[i], axis] > code
    above = 0
    for i in range(size):
        p = inside[i]
        side[p] = 2 * half[unit[p]] > full[unit[p]] if whole else rows[p, axis] > code
        above += side[p]
    return above


@helper
def _both_safe(static, inside, size, side, above, limits, counts):  # type: ignore[no-untyped-def]
    """Whether both sides satisfy the static limits."""
    if above < limits.k or size - above < limits.k:
        return False
    for upper in (True, False):
        counts[:] = 0
        for i in range(size):
            if side[inside[i]] == upper:
                for view in range(static.shape[1]):
                    counts[static[inside[i], view]] += 1
        if not safe(counts, above if upper else size - above, limits):
            return False
    return True


@helper
def _loss(rows, leaf_of, leaf_size, people, leaves, position, first_leaf):  # type: ignore[no-untyped-def]
    """People times the widths of the boxes, summed over the leaves."""
    width = rows.shape[1]
    total = 0.0
    for leaf in range(leaves):
        for axis in range(width):
            low, high = np.inf, -np.inf
            for p in range(people):
                if leaf_of[p] == leaf:
                    place = position[first_leaf[axis] + rows[p, axis]]
                    low, high = min(low, place), max(high, place)
            total += leaf_size[leaf] * min(high - low, 1.0)
    return total


@helper
def _keep(node, total, costs, label, begin):  # type: ignore[no-untyped-def]
    """Remember a result among the best few different ones."""
    kept = costs.size
    place = 0
    while place < kept and costs[place] <= total + 1e-9:
        if abs(costs[place] - total) <= 1e-9:
            return
        place += 1
    if place == kept:
        return
    people = node.shape[0]
    for i in range(kept - 1, place, -1):
        costs[i] = costs[i - 1]
        for p in range(begin, begin + people):
            label[i, p] = label[i - 1, p]
    costs[place] = total
    for p in range(people):
        label[place, begin + p] = node.leaf[p]


@kernel
def search_nodes(  # type: ignore[no-untyped-def]
    number: Any,
    begin: Any,
    end: Any,
    slot: Any,
    known: Any,
    crowd: Any,
    rule: Any,
    limits: Any,
    position: Any,
    first_leaf: Any,
    trials: int,
    tries: int,
    seed: int,
    cost: Any,
    label: Any,
):
    """Cut the people of every node from one class downwards, several times; keep the best few different results.

    number      per node, what its noise depends on beside the seed
    begin, end  per node, its people in the crowd; slot is where its labels begin
    known       per node, the cost that must be beaten
    tries       how many of the best cuts of a leaf are tried
    cost        (nodes, kept) filled with the cost of every result, best first, infinity for none
    label       (kept, slots) filled with the class of every person, counted from 0, -1 for those who left

    Trials differ: every second scores cuts by all attributes, every fourth moves whole units, another fourth hopes
    where the tests are in doubt; from the fifth on the order of the cuts is disturbed.
    """
    longest = np.int64(0)
    for n in range(begin.size):
        longest = max(longest, end[n] - begin[n])
    most = longest // max(limits.k, 1) + 2
    node = make_node(longest, crowd.column.shape[1], crowd.value.shape[1], rule.numerator.size, most)
    names, unit = np.empty(longest + 1, np.int64), np.empty(longest, np.int64)
    half, full = np.zeros(longest, np.int64), np.zeros(longest, np.int64)
    inside, stack = np.empty(longest, np.int64), np.empty(most + 1, np.int64)
    side = np.zeros(longest, np.bool_)
    room = longest * crowd.rows.shape[1] + 1
    cuts = (np.empty(room, np.float64), np.empty(room, np.int64), np.empty(room, np.int64))
    keys, gain = np.empty(longest, np.int64), np.empty(longest, np.float64)
    counts = np.zeros(limits.numerator.size, np.int64)
    for n in range(begin.size):
        base, people = begin[n], end[n] - begin[n]
        cost[n, :] = np.inf
        load_node(node, crowd, base, people, names)
        rows, static = crowd.rows[base : base + people].copy(), crowd.static[base : base + people].copy()
        _number_units(crowd, base, people, names, unit)
        for trial in range(trials):
            whole, hopeful, wide = trial % 4 == 3, trial % 4 == 2, trial % 2 == 1
            noise = 0.0 if trial < 4 else 0.4
            all_in_one(node)
            leaves, top = np.int64(1), np.int64(1)
            stack[0] = 0
            while top > 0:
                top -= 1
                x = stack[top]
                size = np.int64(0)
                for p in range(people):
                    if node.leaf[p] == x:
                        inside[size] = p
                        size += 1
                if size < 2 * limits.k or size < 2:
                    continue
                chance = seed + 1000003 * trial + 7919 * number[n] + 104729 * x
                found = _list_cuts(
                    rows, inside, size, limits.k, position, first_leaf, wide, noise, chance, cuts, keys, gain
                )
                for _ in range(tries):
                    best = -1
                    for i in range(found):
                        if cuts[0][i] > 0 and (best < 0 or cuts[0][i] > cuts[0][best]):
                            best = i
                    if best < 0:
                        break
                    cuts[0][best] = -1.0
                    axis, code = cuts[1][best], cuts[2][best]
                    above = _take_sides(rows, inside, size, axis, code, unit, whole, side, half, full)
                    if not _both_safe(static, inside, size, side, above, limits, counts):
                        continue
                    y = leaves
                    part(node, inside, size, side, x, y)
                    if acceptable(node, rule, inside, size, x, y, leaves + 1, hopeful):
                        leaves += 1
                        stack[top], stack[top + 1] = x, y
                        top += 2
                        break
                    rejoin(node, inside, size, side, x)
            total = _loss(rows, node.leaf, node.leaf_size, people, leaves, position, first_leaf)
            if total < known[n] - 1e-9:
                _keep(node, total, cost[n], label, slot[n])


@helper
def _number_units(crowd, base, people, names, unit):  # type: ignore[no-untyped-def]
    """Units of a node numbered from 0."""
    count = 0
    for p in range(people):
        found = -1
        for i in range(count):
            if names[i] == crowd.unit[base + p]:
                found = i
                break
        if found < 0:
            names[count] = crowd.unit[base + p]
            found = count
            count += 1
        unit[p] = found
