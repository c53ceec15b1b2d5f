"""Mondrian: rows are cut in place, so that every class ends as one run of neighbouring rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe

GAIN, MEDIAN, RELAXED = 0, 1, 2

# Small enough never to outweigh the width of an attribute, large enough to order the cuts within one.
NEARNESS = 1e-9

_FAR = int(np.iinfo(np.int32).max)


@helper(inline="always")
def _sort(items, count):  # type: ignore[no-untyped-def]
    """Shell sort of a short buffer; far cheaper to compile than the library's."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            item, j = items[i], i
            while j >= gap and items[j - gap] > item:
                items[j] = items[j - gap]
                j -= gap
            items[j] = item
        gap //= 3


@helper
def _list_sorted(rows, start, stop, attribute, histogram, base, codes):  # type: ignore[no-untyped-def]
    """The distinct codes of a run and their counts, by sorting."""
    for i in range(start, stop):
        codes[i - start] = rows[i, attribute]
    _sort(codes, stop - start)
    distinct = 0
    for i in range(stop - start):
        if distinct == 0 or codes[i] != codes[distinct - 1]:
            codes[distinct] = codes[i]
            distinct += 1
        histogram[base + codes[distinct - 1]] += 1
    return distinct


@helper(inline="always")
def _list_counted(histogram, base, lo, hi, codes):  # type: ignore[no-untyped-def]
    """The distinct codes between lo and hi, from counts already made."""
    distinct = 0
    for code in range(lo, hi + 1):
        codes[distinct] = code
        distinct += histogram[base + code] > 0
    return distinct


@helper(inline="always")
def _score(below, size, full, left, right, mode):  # type: ignore[no-untyped-def]
    """How good a cut is. Median cuts: the widest attribute first, and in it the position nearest to the median."""
    if mode == GAIN:
        return size * full - below * left - (size - below) * right
    return full - NEARNESS * abs(2 * below - size) / size


@helper
def _best_cut(codes, histogram, base, distinct, size, mode, k, position):  # type: ignore[no-untyped-def]
    """The best cut of one attribute with at least k rows on both sides."""
    origin, end = position[base + codes[0]], position[base + codes[distinct - 1]]
    full = min(end - origin, 1.0)
    best, best_code, below = -1.0, -1, 0
    for i in range(distinct - 1):
        below += histogram[base + codes[i]]
        if below >= k:
            if size - below < k:
                break
            left = position[base + codes[i]] - origin
            right = min(end - position[base + codes[i + 1]], 1.0)
            score = _score(below, size, full, left, right, mode)
            if score > best:
                best, best_code = score, codes[i]
    return best, best_code


@helper
def _all_cuts(codes, histogram, base, distinct, size, mode, k, position, score, cut, found):  # type: ignore[no-untyped-def]
    """Every cut of one attribute with at least k rows on both sides."""
    origin, end = position[base + codes[0]], position[base + codes[distinct - 1]]
    full = min(end - origin, 1.0)
    below = 0
    for i in range(distinct - 1):
        below += histogram[base + codes[i]]
        if below >= k and size - below >= k:
            left = position[base + codes[i]] - origin
            right = min(end - position[base + codes[i + 1]], 1.0)
            score[found], cut[found] = _score(below, size, full, left, right, mode), base + codes[i]
            found += 1
    return found


@helper(inline="always")
def _halving(codes, histogram, base, distinct, size, position):  # type: ignore[no-untyped-def]
    """The median value of one attribute, scored by how wide the attribute is here."""
    below = at = 0
    while 2 * (below + histogram[base + codes[at]]) < size:
        below += histogram[base + codes[at]]
        at += 1
    return min(position[base + codes[distinct - 1]] - position[base + codes[0]], 1.0), codes[at]


@helper
def _sift(score, cut, root, count):  # type: ignore[no-untyped-def]
    """Restore the heap order below `root`: best score first, then the lowest attribute and code."""
    while True:
        child = 2 * root + 1
        if child >= count:
            return
        if child + 1 < count and (
            score[child + 1] > score[child] or (score[child + 1] == score[child] and cut[child + 1] < cut[child])
        ):
            child += 1
        if score[root] > score[child] or (score[root] == score[child] and cut[root] < cut[child]):
            return
        score[root], score[child] = score[child], score[root]
        cut[root], cut[child] = cut[child], cut[root]
        root = child


@helper
def _both_safe(rows, values, start, stop, attribute, code, left, total, limits):  # type: ignore[no-untyped-def]
    """Whether both sides of a cut satisfy the limits; `total` holds the counts of the whole run."""
    left[:] = 0
    size = np.int64(0)
    for i in range(start, stop):
        if rows[i, attribute] <= code:
            size += 1
            for view in range(values.shape[1]):
                left[values[i, view]] += 1
    if not safe(left, size, limits):
        return False
    for value in range(total.size):
        left[value] = total[value] - left[value]
    return safe(left, stop - start - size, limits)


@helper(inline="always")
def _swap(rows, values, order, i, j):  # type: ignore[no-untyped-def]
    for attribute in range(rows.shape[1]):
        rows[i, attribute], rows[j, attribute] = rows[j, attribute], rows[i, attribute]
    for view in range(values.shape[1]):
        values[i, view], values[j, view] = values[j, view], values[i, view]
    order[i], order[j] = order[j], order[i]


@helper
def _part(rows, values, order, start, stop, attribute, code):  # type: ignore[no-untyped-def]
    """Move rows with at most `code` to the front of the run; returns where the others begin."""
    i, j = start, stop - 1
    while True:
        while i <= j and rows[i, attribute] <= code:
            i += 1
        while i <= j and rows[j, attribute] > code:
            j -= 1
        if i >= j:
            return i
        _swap(rows, values, order, i, j)
        i += 1
        j -= 1


@helper(inline="always")
def _inside(population, i, low, high):  # type: ignore[no-untyped-def]
    for attribute in range(low.size):
        if population[i, attribute] < low[attribute] or population[i, attribute] > high[attribute]:
            return False
    return True


@helper
def _known(rows, population, start, stop, first, last, attribute, code, below, low, high):  # type: ignore[no-untyped-def]
    """How many of a run of the population fit the tight box of one side of a cut, which is left in low, high."""
    for a in range(rows.shape[1]):
        low[a], high[a] = _FAR, -1
    for i in range(start, stop):
        if (rows[i, attribute] <= code) == below:
            for a in range(rows.shape[1]):
                low[a] = min(low[a], rows[i, a])
                high[a] = max(high[a], rows[i, a])
    found = 0
    for i in range(first, last):
        found += _inside(population, i, low, high)
    return found


@kernel
def cut_rows(  # type: ignore[no-untyped-def]
    rows: Any,
    values: Any,
    order: Any,
    begin: int,
    end: int,
    coarse: int,
    mode: int,
    position: Any,
    first_leaf: Any,
    population: Any,
    known: int,
    limits: Any,
):
    """Cut the run [begin, end) as long as both sides stay safe; returns where the resulting runs begin.

    rows        int32 (records, attributes), reordered in place together with `values` and `order`
    values      int32 (records, views), positions in the flat value counts
    coarse      runs of at most this many rows are left as they are: they become tasks for other threads
    mode        GAIN: any position of any attribute, best reduction of the summed ranges first;
                MEDIAN: in the widest attribute, the cut nearest to the median; RELAXED: equal halves, where
                records with the median value may go to either side (LeFevre et al.)
    position    where each leaf lies on [0, 1], all attributes side by side; first_leaf says where each begins
    population  int32 (people, attributes), reordered in place; every box must fit at least `known` of them
    """
    width = rows.shape[1]
    views = values.shape[1]
    guarded = views > 0 or known > 0
    leaves = first_leaf[width]
    histogram = np.zeros(leaves, np.int32)
    total = np.zeros(limits.numerator.size, np.int64)
    left = np.zeros(limits.numerator.size, np.int64)
    codes = np.empty(min(leaves, 16 * (end - begin) + 65) + 1, np.int32)
    score = np.empty(leaves if guarded else width, np.float64)
    cut = np.empty(leaves if guarded else width, np.int64)
    starts = np.empty(1024, np.int64)
    found = 0
    depth = 128
    stack = np.empty((depth, 4), np.int64)
    low = np.empty((depth, width), np.int32)
    high = np.empty((depth, width), np.int32)
    side_low = np.empty(width, np.int32)
    side_high = np.empty(width, np.int32)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = begin, end, 0, population.shape[0]
    for attribute in range(width):
        low[0, attribute] = _FAR
        high[0, attribute] = -1
    for i in range(begin, end):
        for attribute in range(width):
            low[0, attribute] = min(low[0, attribute], rows[i, attribute])
            high[0, attribute] = max(high[0, attribute], rows[i, attribute])
    top = 1
    while top > 0:
        top -= 1
        start, stop, first, last = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        size = stop - start
        middle = -1
        if size >= 2 * limits.k and size >= 2 and size > coarse:
            if guarded:
                total[:] = 0
                for i in range(start, stop):
                    for view in range(views):
                        total[values[i, view]] += 1
            counted = True
            for attribute in range(width):
                # A range much wider than the run is cheaper to sort than to count.
                if high[top, attribute] - low[top, attribute] > 16 * size + 64:
                    counted = False
            if counted:
                for i in range(start, stop):
                    for attribute in range(width):
                        histogram[first_leaf[attribute] + rows[i, attribute]] += 1
            candidates = np.int64(0)
            for attribute in range(width):
                base = first_leaf[attribute]
                lo, hi = low[top, attribute], high[top, attribute]
                if hi - lo > 16 * size + 64:
                    distinct = _list_sorted(rows, start, stop, attribute, histogram, base, codes)
                else:
                    if not counted:
                        for i in range(start, stop):
                            histogram[base + rows[i, attribute]] += 1
                    distinct = _list_counted(histogram, base, lo, hi, codes)
                low[top, attribute], high[top, attribute] = codes[0], codes[distinct - 1]
                if distinct > 1:
                    if mode != RELAXED and guarded:
                        candidates = _all_cuts(
                            codes, histogram, base, distinct, size, mode, limits.k, position, score, cut, candidates
                        )
                    else:
                        if mode == RELAXED:
                            value, code = _halving(codes, histogram, base, distinct, size, position)
                        else:
                            value, code = _best_cut(codes, histogram, base, distinct, size, mode, limits.k, position)
                        if code >= 0:
                            score[candidates], cut[candidates] = value, base + code
                            candidates += 1
                for i in range(distinct):
                    histogram[base + codes[i]] = 0
            for root in range(candidates // 2 - 1, -1, -1):
                _sift(score, cut, root, candidates)
            while candidates > 0:
                chosen = cut[0]
                candidates -= 1
                score[0], cut[0] = score[candidates], cut[candidates]
                _sift(score, cut, np.int64(0), candidates)
                attribute = 0
                while first_leaf[attribute + 1] <= chosen:
                    attribute += 1
                code = chosen - first_leaf[attribute]
                if mode == RELAXED:
                    # Ties at the median may go to either side, so that the halves are equal.
                    under = _part(rows, values, order, start, stop, attribute, code - 1)
                    _part(rows, values, order, under, stop, attribute, code)
                    middle = start + size // 2
                    left[:] = 0
                    for i in range(start, middle):
                        for view in range(views):
                            left[values[i, view]] += 1
                    ok = safe(left, middle - start, limits)
                    for value_ in range(total.size):
                        left[value_] = total[value_] - left[value_]
                    if ok and safe(left, stop - middle, limits):
                        break
                    middle = -1
                    continue
                if views > 0 and not _both_safe(rows, values, start, stop, attribute, code, left, total, limits):
                    continue
                few = False
                for side in range(2 if known > 0 else 0):
                    few = few or known > _known(
                        rows, population, start, stop, first, last, attribute, code, side == 0, side_low, side_high
                    )
                if few:
                    continue
                middle = _part(rows, values, order, start, stop, attribute, code)
                break
        if middle < 0:
            if found == starts.size:
                longer = np.empty(2 * found, np.int64)
                for i in range(found):
                    longer[i] = starts[i]
                starts = longer
            starts[found] = start
            found += 1
            continue
        between = last
        if known > 0:
            # The population is shared out between the two tight boxes, which do not overlap.
            between = first
            for i in range(start, middle):
                for a in range(width):
                    if i == start:
                        side_low[a], side_high[a] = rows[i, a], rows[i, a]
                    else:
                        side_low[a], side_high[a] = min(side_low[a], rows[i, a]), max(side_high[a], rows[i, a])
            for i in range(first, last):
                if _inside(population, i, side_low, side_high):
                    for a in range(width):
                        population[i, a], population[between, a] = population[between, a], population[i, a]
                    between += 1
        # The larger side waits on the stack, which therefore stays shallow.
        smaller_left = middle - start <= stop - middle
        for a in range(width):
            low[top + 1, a], high[top + 1, a] = low[top, a], high[top, a]
        for side in range(2):
            is_left = (side == 1) == smaller_left
            if is_left:
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = start, middle, first, between
            else:
                stack[top, 0], stack[top, 1] = middle, stop
                stack[top, 2], stack[top, 3] = (between if known > 0 else first), last
            if mode != RELAXED:
                if is_left:
                    high[top, attribute] = code
                else:
                    low[top, attribute] = code + 1
            top += 1
    return starts[:found]


@kernel
def bound_runs(rows: Any, order: Any, starts: Any):  # type: ignore[no-untyped-def]
    """The run each record is in, and the tight box of every run, (attributes, runs)."""
    count, width = rows.shape
    member = np.empty(count, np.int32)
    low = np.empty((width, starts.size), np.int32)
    high = np.empty((width, starts.size), np.int32)
    for run in range(starts.size):
        stop = starts[run + 1] if run + 1 < starts.size else count
        for attribute in range(width):
            low[attribute, run] = high[attribute, run] = rows[starts[run], attribute]
        for i in range(starts[run], stop):
            member[order[i]] = run
            for attribute in range(width):
                low[attribute, run] = min(low[attribute, run], rows[i, attribute])
                high[attribute, run] = max(high[attribute, run], rows[i, attribute])
    return member, low, high
