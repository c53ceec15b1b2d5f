"""One node of the generalization lattice: how good and how safe is the table with these levels?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import compares_with_table, safe
from sequester.methods.full_domain.part_kernels import most_kept

SAFE, SUPPRESSED, BELOW, EXTRA, EXTRA_BELOW, CLASSES, KEPT, SQUARES, SQUARES_OUT, SQUARES_BELOW = range(10)
"""What a judged node is told by, in this order; see `judge_node`."""
WITNESS, BY_SIZE = SUPPRESSED, BELOW
"""Where nothing may be suppressed and not all is safe, these are in the place of what is suppressed."""


class CellTable(NamedTuple):
    """The distinct quasi-identifiers of a table: see `Cells`."""

    codes: NDArray[np.int32]
    size: NDArray[np.int64]
    known: NDArray[np.int64]
    pair_start: NDArray[np.int64]
    pair_value: NDArray[np.int32]
    pair_count: NDArray[np.int64]


class Recoding(NamedTuple):
    """The levels of one node.

    first_leaf  where the leaves of each attribute begin when all lie side by side
    key, word   per leaf, what it adds to a class's key; per attribute, to which of the `words` of the key
    span        number of possible keys where that is small enough to index by, 0 to hash; `table` is room to work
    cost, lost  per leaf, what publishing a record at these levels loses, and what leaving it out loses
    """

    first_leaf: NDArray[np.int64]
    key: NDArray[np.int64]
    word: NDArray[np.int64]
    words: int
    span: int
    table: NDArray[np.int32]
    cost: NDArray[np.float64]
    lost: NDArray[np.float64]


@helper
def classify(keys, span, table):
    """Number the distinct keys (cells, words) in order of appearance; returns the number of each cell, and how many.

    `span` is the number of possible keys where that is small enough to index by, 0 to hash; `table` is room to work.
    """
    count, words = keys.shape
    member = np.empty(count, np.int32)
    owner = np.empty(count, np.int32)
    classes = 0
    if span > 0:
        table[:span] = -1
        for cell in range(count):
            slot = keys[cell, 0]
            if table[slot] < 0:
                table[slot] = classes
                classes += 1
            member[cell] = table[slot]
        return member, classes
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
                table[slot] = classes
                owner[classes] = cell
                member[cell] = classes
                classes += 1
                break
            same = True
            for word in range(words):
                if keys[owner[other], word] != keys[cell, word]:
                    same = False
            if same:
                member[cell] = other
                break
            slot = (slot + 1) & mask
    return member, classes


@kernel
def classify_cells(keys, span, table):
    """`classify`, to be called from outside."""
    return classify(keys, span, table)


@helper
def _cell_of(member, number, size):
    for cell in range(member.size):
        if member[cell] == number and size[cell] > 0:
            return cell
    return -1


@kernel
def forbid_nodes(cells, first_leaf, joined, shape, by_value, needed, limits):
    """All nodes at which the class of one cell, the witness, is not safe.

    A cell joins the class of the witness as soon as every level is high enough: `joined` has, per leaf, the first level
    at which it is in one group with the witness's. So the classes of the witness at all nodes are running sums over
    the lattice, whose nodes are numbered in C order. `by_value` says whether values must be looked at, or sizes do.
    """
    codes, known, pair_count, pair_start = cells.codes, cells.known, cells.pair_count, cells.pair_start
    pair_value, size = cells.pair_value, cells.size
    width, count = cells.codes.shape
    nodes = 1
    for attribute in range(width):
        nodes *= shape[attribute]
    values = limits.numerator.size if by_value else 0
    sums = np.zeros((nodes, 2 + values), np.int64)
    for cell in range(count):
        node = 0
        for attribute in range(width):
            node = node * shape[attribute] + joined[first_leaf[attribute] + codes[attribute, cell]]
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


@helper(inline="always")
def _recode(cells, recoding):
    """The class of every cell at these levels, and how many there are."""
    codes, first_leaf, key, word = cells.codes, recoding.first_leaf, recoding.key, recoding.word
    keys = np.zeros((cells.size.size, recoding.words), np.int64)
    for attribute in range(cells.codes.shape[0]):
        base, place = first_leaf[attribute], word[attribute]
        for cell in range(cells.size.size):
            keys[cell, place] += key[base + codes[attribute, cell]]
    return classify(keys, recoding.span, recoding.table)


@helper(inline="always")
def _too_small(totals, around, k, needed):
    """Of classes that are too small or fit too few of the population: their records, and the smallest; -1: none."""
    worst, records = -1, 0
    for number in range(totals.size):
        if totals[number] > 0 and (totals[number] < k or around[number] < needed):
            records += totals[number]
            if worst < 0 or totals[number] < totals[worst]:
                worst = number
    return worst, records


@helper(inline="always")
def _by_class(member, classes):
    """Cells in the order of their classes, and where each class begins."""
    begin = np.zeros(classes + 1, np.int64)
    for cell in range(member.size):
        begin[member[cell] + 1] += 1
    for number in range(classes):
        begin[number + 1] += begin[number]
    place = begin[:-1].copy()
    ordered = np.empty(member.size, np.int64)
    for cell in range(member.size):
        ordered[place[member[cell]]] = cell
        place[member[cell]] += 1
    return begin, ordered


@helper(inline="always")
def _count_values(cells, inside, counts):
    pair_count, pair_start, pair_value = cells.pair_count, cells.pair_start, cells.pair_value
    counts[:] = 0
    for cell in inside:
        for pair in range(pair_start[cell], pair_start[cell + 1]):
            counts[pair_value[pair]] += pair_count[pair]


@helper(inline="always")
def _drop(cells, recoding, inside, kept, below, result):
    """Leave out a class, and count what that costs here, and what it costs where at most `below` records stay."""
    codes, size, cost, first_leaf, lost = cells.codes, cells.size, recoding.cost, recoding.first_leaf, recoding.lost
    total, least = 0, np.inf
    for cell in inside:
        kept[cell] = False
        total += size[cell]
        spared = 0.0
        for attribute in range(cells.codes.shape[0]):
            leaf = first_leaf[attribute] + codes[attribute, cell]
            spared += lost[leaf] - cost[leaf]
        result[EXTRA] += size[cell] * spared
        least = min(least, spared) if size[cell] > 0 else least
    gone = total - below
    result[SUPPRESSED] += total
    result[SQUARES_OUT] += float(total) ** 2
    result[BELOW] += gone
    result[EXTRA_BELOW] += gone * least
    result[SQUARES_BELOW] += float(gone) * total


@helper(inline="always")
def _compare_with_kept(cells, kept, first, reference):
    """Make the kept cells what closeness compares with."""
    pair_count, pair_start, pair_value = cells.pair_count, cells.pair_start, cells.pair_value
    reference[:] = 0
    for cell in range(kept.size):
        if kept[cell]:
            for pair in range(pair_start[cell], pair_start[cell + 1]):
                reference[pair_value[pair]] += pair_count[pair]
    for view in range(first.size - 1):
        total = 0.0
        for value in range(first[view], first[view + 1]):
            total += reference[value]
        for value in range(first[view], first[view + 1]):
            reference[value] /= max(total, 1.0)


@kernel
def judge_node(cells, recoding, budget, needed, limits):
    """Judge the table recoded by one node.

    budget    records that may be suppressed
    needed    people of the population that every class must fit
    Returns whether all is safe, records suppressed (here, and at least at every node below), what suppression costs
    beyond generalization (here, and at least below), classes, safe classes, sums of squared sizes (all, suppressed,
    and at least suppressed below), and the cells kept. Counting ends where more is suppressed than may be. Where
    nothing may be and not all is safe, the second is a cell of an unsafe class instead, a witness, and the third
    whether its size alone tells.
    """
    known, size = cells.known, cells.size
    count, k = cells.size.size, limits.k
    member, classes = _recode(cells, recoding)
    totals, around = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for cell in range(count):
        totals[member[cell]] += size[cell]
        around[member[cell]] += known[cell]
    kept, result = np.ones(count, np.bool_), np.zeros(10, np.float64)
    for number in range(classes):
        result[CLASSES] += totals[number] > 0
        result[SQUARES] += float(totals[number]) ** 2
    # Sizes tell most, and cost least to look at.
    worst, gone = _too_small(totals, around, k, needed)
    if gone > budget > 0:
        result[SUPPRESSED] = result[BELOW] = gone
        return result, kept
    if worst >= 0 and budget == 0:
        # The smallest class tells most.
        result[WITNESS], result[BY_SIZE] = _cell_of(member, worst, cells.size), 1
        return result, kept
    # In the order of their classes, so that one small array of counts serves all classes in turn.
    begin, ordered = _by_class(member, classes)
    counts = np.zeros(limits.numerator.size, np.int64)
    is_dropped, close = np.zeros(classes, np.bool_), compares_with_table(limits)
    slack = budget / max(totals.sum(), 1)
    for number in range(classes):
        is_dropped[number] = totals[number] == 0
    changed, rounds = True, 0
    while changed and result[SUPPRESSED] <= budget:
        # Closeness compares with the published table, so what is suppressed changes what is compared with.
        changed = False
        for number in range(classes):
            if is_dropped[number]:
                continue
            ok, below = totals[number] >= k and around[number] >= needed, np.int64(0)
            inside = ordered[begin[number] : begin[number + 1]]
            if ok and counts.size > 0:
                _count_values(cells, inside, counts)
                ok = safe(counts, totals[number], limits)
                if not ok and budget > 0:
                    # Later rounds compare with another table.
                    below = most_kept(counts, totals[number], limits, slack) if rounds == 0 else totals[number]
            if ok:
                continue
            if budget == 0:
                result[WITNESS] = _cell_of(member, number, cells.size)
                return result, kept
            is_dropped[number], changed = True, close
            _drop(cells, recoding, inside, kept, below, result)
            if result[BELOW] > budget:
                return result, kept
        if changed:
            _compare_with_kept(cells, kept, limits.first, limits.reference)
        rounds += 1
    result[SAFE] = 1
    result[KEPT] = classes - is_dropped.sum()
    return result, kept
