"""One node of the generalization lattice: how good and how safe is the table with these levels?"""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import compares_with_table, safe


@helper
def classify(keys, span, table):  # type: ignore[no-untyped-def]
    """Number the distinct keys (cells, words) in order of appearance; returns the number of each cell, and how many.

    `span` is the number of possible keys where that is small enough to index by, 0 to hash; `table` is room to work.
    """
    count, words = keys.shape
    member = np.empty(count, np.int32)
    owner = np.empty(count, np.int32)
    found = 0
    if span > 0:
        table[:span] = -1
        for cell in range(count):
            slot = keys[cell, 0]
            if table[slot] < 0:
                table[slot] = found
                found += 1
            member[cell] = table[slot]
        return member, found
    table[:] = -1
    mask = table.size - 1
    for cell in range(count):
        mixed = np.uint64(0)
        for word in range(words):
            mixed = (mixed ^ np.uint64(keys[cell, word])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed & np.uint64(mask))
        while True:
            other = table[slot]
            if other < 0:
                table[slot] = found
                owner[found] = cell
                member[cell] = found
                found += 1
                break
            same = True
            for word in range(words):
                if keys[owner[other], word] != keys[cell, word]:
                    same = False
            if same:
                member[cell] = other
                break
            slot = (slot + 1) & mask
    return member, found


@kernel
def classify_cells(keys: Any, span: int, table: Any):  # type: ignore[no-untyped-def]
    """`classify`, to be called from outside."""
    return classify(keys, span, table)


@helper
def _cell_of(member, number, size):  # type: ignore[no-untyped-def]
    for cell in range(member.size):
        if member[cell] == number and size[cell] > 0:
            return cell
    return -1


@kernel
def forbid_nodes(  # type: ignore[no-untyped-def]
    cells: Any,
    size: Any,
    known: Any,
    pair_start: Any,
    pair_value: Any,
    pair_count: Any,
    joined: Any,
    first_leaf: Any,
    shape: Any,
    by_value: bool,
    needed: int,
    limits: Any,
):
    """All nodes at which the class of one cell, the witness, is not safe.

    A cell joins the class of the witness as soon as every level is high enough: `joined` has, per leaf, the first level
    at which it is in one group with the witness's. So the classes of the witness at all nodes are running sums over
    the lattice, whose nodes are numbered in C order. `by_value` says whether values must be looked at, or sizes do.
    """
    width, count = cells.shape
    nodes = 1
    for attribute in range(width):
        nodes *= shape[attribute]
    values = limits.numerator.size if by_value else 0
    sums = np.zeros((nodes, 2 + values), np.int64)
    for cell in range(count):
        node = 0
        for attribute in range(width):
            node = node * shape[attribute] + joined[first_leaf[attribute] + cells[attribute, cell]]
        sums[node, 0] += size[cell]
        sums[node, 1] += known[cell]
        if by_value:
            for pair in range(pair_start[cell], pair_start[cell + 1]):
                sums[node, 2 + pair_value[pair]] += pair_count[pair]
    stride = 1
    for attribute in range(width - 1, -1, -1):
        block = stride * shape[attribute]
        for begin in range(0, nodes, block):
            for node in range(begin + stride, begin + block):
                for column in range(2 + values):
                    sums[node, column] += sums[node - stride, column]
        stride = block
    forbidden = np.zeros(nodes, np.bool_)
    for node in range(nodes):
        forbidden[node] = sums[node, 0] < limits.k or sums[node, 1] < needed
        if by_value and not forbidden[node]:
            forbidden[node] = not safe(sums[node, 2:], sums[node, 0], limits)
    return forbidden


@kernel
def judge_node(  # type: ignore[no-untyped-def]
    cells: Any,
    size: Any,
    known: Any,
    pair_start: Any,
    pair_value: Any,
    pair_count: Any,
    key: Any,
    word: Any,
    words: int,
    span: int,
    table: Any,
    first_leaf: Any,
    cost: Any,
    lost: Any,
    may_suppress: bool,
    needed: int,
    limits: Any,
    hereditary: Any,
):
    """Judge the table recoded by one node; `cells` are its distinct quasi-identifiers (attributes, cells).

    key, word     per leaf, what it adds to which word of a class's key at this node's levels
    cost, lost    per leaf, what publishing a record at this node's levels loses, and what leaving it out loses
    needed        people of the population that every class must fit, with `known` of them in each cell
    hereditary    the criteria under which every part of an unsafe class is unsafe; the search may reason with those
    Returns whether all is safe, records suppressed (by all and by hereditary criteria), what suppression costs beyond
    generalization (by all and by hereditary), classes, safe classes, sums of squared sizes (all and suppressed, the
    latter by all and by hereditary), and the cells kept. Where nothing may be suppressed and not all is safe, the
    second is a cell of an unsafe class instead, a witness, and the third whether its size alone tells.
    """
    width, count = cells.shape
    keys = np.zeros((count, words), np.int64)
    for attribute in range(width):
        base = first_leaf[attribute]
        w = word[attribute]
        for cell in range(count):
            keys[cell, w] += key[base + cells[attribute, cell]]
    member, classes = classify(keys, span, table)
    totals = np.zeros(classes, np.int64)
    around = np.zeros(classes, np.int64)
    for cell in range(count):
        totals[member[cell]] += size[cell]
        around[member[cell]] += known[cell]
    kept = np.ones(count, np.bool_)
    result = np.zeros(10, np.float64)
    if not may_suppress:
        # The smallest class is the most telling witness.
        worst: Any = np.int64(-1)
        for number in range(classes):
            bad = totals[number] > 0 and (totals[number] < limits.k or around[number] < needed)
            if bad and (worst < 0 or totals[number] < totals[worst]):
                worst = number
        if worst >= 0:
            result[1] = _cell_of(member, worst, size)
            result[2] = 1
            return result, kept
    # Cells in the order of their classes, so that one small array of counts serves all classes in turn.
    begin = np.zeros(classes + 1, np.int64)
    for cell in range(count):
        begin[member[cell] + 1] += 1
    for number in range(classes):
        begin[number + 1] += begin[number]
    place = begin[:-1].copy()
    ordered = np.empty(count, np.int32)
    for cell in range(count):
        ordered[place[member[cell]]] = cell
        place[member[cell]] += 1
    values = limits.numerator.size
    counts = np.zeros(values, np.int64)
    close = compares_with_table(limits)
    dropped = np.zeros(classes, np.bool_)
    for number in range(classes):
        dropped[number] = totals[number] == 0
    changed = True
    while changed:
        # Closeness compares with the published table, so what is suppressed changes what is compared with.
        changed = False
        for number in range(classes):
            if dropped[number]:
                continue
            ok = totals[number] >= limits.k and around[number] >= needed
            by_heritage = not ok
            if ok and values > 0:
                counts[:] = 0
                for i in range(begin[number], begin[number + 1]):
                    cell = ordered[i]
                    for pair in range(pair_start[cell], pair_start[cell + 1]):
                        counts[pair_value[pair]] += pair_count[pair]
                ok = safe(counts, totals[number], limits)
                by_heritage = not ok and not safe(counts, totals[number], hereditary)
            if ok:
                continue
            if not may_suppress:
                result[1] = _cell_of(member, number, size)
                return result, kept
            dropped[number] = True
            changed = close
            square = float(totals[number]) ** 2
            result[1] += totals[number]
            result[8] += square
            if by_heritage:
                result[2] += totals[number]
                result[9] += square
            for i in range(begin[number], begin[number + 1]):
                cell = ordered[i]
                kept[cell] = False
                saved = 0.0
                for attribute in range(width):
                    leaf = first_leaf[attribute] + cells[attribute, cell]
                    saved += lost[leaf] - cost[leaf]
                result[3] += size[cell] * saved
                if by_heritage:
                    result[4] += size[cell] * saved
        if changed:
            limits.reference[:] = 0
            for cell in range(count):
                if kept[cell]:
                    for pair in range(pair_start[cell], pair_start[cell + 1]):
                        limits.reference[pair_value[pair]] += pair_count[pair]
            for view in range(limits.first.size - 1):
                total = 0.0
                for value in range(limits.first[view], limits.first[view + 1]):
                    total += limits.reference[value]
                for value in range(limits.first[view], limits.first[view + 1]):
                    limits.reference[value] /= max(total, 1.0)
    result[0] = 1
    for number in range(classes):
        if totals[number] > 0:
            result[5] += 1
            result[6] += not dropped[number]
            result[7] += float(totals[number]) ** 2
    return result, kept
