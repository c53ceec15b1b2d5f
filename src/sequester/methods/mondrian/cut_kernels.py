"""Mondrian: rows are cut in place, so that every class ends as one run of neighbouring rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper, kernel
from sequester.methods.class_guard.limits import safe

GAIN, MEDIAN, RELAXED = 0, 1, 2
"""How cuts are chosen: see `cut`."""

NEARNESS = 1e-9
"""Small enough never to outweigh the width of an attribute, large enough to order the cuts within one."""

_PER_ROW, _AT_LEAST = 16, 64
"""A range of more codes than this per row of a run, and this many more, is cheaper to sort than to count: counting
touches every code of the range. Wrong choices cost time only; `benchmarks mondrian_scale` has both kinds of columns."""

_DEPTH = 128
"""Runs that wait at most: the larger side of a cut waits, so that every one on top of it is at most half as long."""

_FAR = int(np.iinfo(np.int32).max)


class Deck(NamedTuple):
    """Records that are reordered in place while they are cut, like cards.

    rows    (records, attributes) codes
    values  (records, views) positions in the flat value counts
    order   which record each row is
    """

    rows: NDArray[np.int32]
    values: NDArray[np.int32]
    order: NDArray[np.int32]


class Scale(NamedTuple):
    """Where each leaf lies on [0, 1], all attributes side by side; `first_leaf` says where each attribute begins."""

    position: NDArray[np.float64]
    first_leaf: NDArray[np.int64]


class KnownPeople(NamedTuple):
    """A population (people, attributes), reordered in place: every box must fit at least `needed` of them."""

    people: NDArray[np.int32]
    needed: int


NOBODY = KnownPeople(np.zeros((0, 0), np.int32), 0)


class _Run(NamedTuple):
    """Rows from start to stop, the known people from first to last that are in its box, and a box around its rows."""

    start: int
    stop: int
    first: int
    last: int
    low: NDArray[np.int32]
    high: NDArray[np.int32]


class _Aim(NamedTuple):
    """Which cuts of so many rows are looked for: how, with at least k on both sides, and whether the best of an
    attribute will do.

    It will where size alone counts: then every cut that is listed is safe.
    """

    mode: int
    k: int
    only_best: bool
    size: int


class _CutRoom(NamedTuple):
    """Room to work in.

    histogram    per leaf, rows of the run; zero between runs
    codes        the distinct codes of one attribute, in order
    score, cut   a heap of cuts to try: the best score first; a cut is the last leaf below it
    total, left  value counts of the run, and of one side of a cut
    low, high    the box around one side
    """

    histogram: NDArray[np.int32]
    codes: NDArray[np.int32]
    score: NDArray[np.float64]
    cut: NDArray[np.int64]
    total: NDArray[np.int64]
    left: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


@helper(inline="always")
def _sort(items, count):
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
def _list_sorted(rows, start, stop, attribute, histogram, base, codes):
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
def _list_counted(histogram, base, lowest, highest, codes):
    """The distinct codes between two, from counts already made."""
    distinct = 0
    for code in range(lowest, highest + 1):
        codes[distinct] = code
        distinct += histogram[base + code] > 0
    return distinct


@helper(inline="always")
def _is_wide(lowest, highest, size):
    return highest - lowest > _PER_ROW * size + _AT_LEAST


@helper(inline="always")
def _score_cuts(codes, histogram, heap, base, distinct, aim, position, cuts):
    """List cuts of one attribute with at least k rows on both sides, all or the best one; returns how many there are.

    Gain cuts: what is saved of the summed ranges. Median cuts: the widest attribute first, and in it the position
    nearest to the median.
    """
    heap_score, heap_cut = heap
    size, k = aim.size, aim.k
    origin, end = position[base + codes[0]], position[base + codes[distinct - 1]]
    full = min(end - origin, 1.0)
    best, best_code, below = -1.0, -1, 0
    for i in range(distinct - 1):
        code = codes[i]
        below += histogram[base + code]
        if below < k:
            continue
        if size - below < k:
            break
        if aim.mode == GAIN:
            left = position[base + code] - origin
            right = min(end - position[base + codes[i + 1]], 1.0)
            score = size * full - below * left - (size - below) * right
        else:
            score = full - NEARNESS * abs(2 * below - size) / size
        if not aim.only_best:
            heap_score[cuts], heap_cut[cuts] = score, base + code
            cuts += 1
        elif score > best:
            best, best_code = score, code
    if best_code >= 0:
        heap_score[cuts], heap_cut[cuts] = best, base + best_code
        cuts += 1
    return cuts


@helper(inline="always")
def _median(codes, histogram, base, size):
    """The median code of one attribute."""
    below = at = 0
    while 2 * (below + histogram[base + codes[at]]) < size:
        below += histogram[base + codes[at]]
        at += 1
    return codes[at]


@helper(inline="always")
def _list_cuts(rows, run, room, scale, aim):
    """Put the cuts that may be tried into the heap, not yet in order, and make the run's box tight; how many.

    Fields that loops use are bound to names before: Numba counts references whenever a tuple is asked for an array.
    """
    codes, histogram, score, cut = room.codes, room.histogram, room.score, room.cut
    low, high, first_leaf, position = run.low, run.high, scale.first_leaf, scale.position
    start, stop, size = run.start, run.stop, aim.size
    counted = True
    for attribute in range(low.size):
        counted = counted and not _is_wide(low[attribute], high[attribute], size)
    if counted:
        for i in range(start, stop):
            for attribute in range(low.size):
                histogram[first_leaf[attribute] + rows[i, attribute]] += 1
    cuts = np.int64(0)
    for attribute in range(low.size):
        base = first_leaf[attribute]
        if _is_wide(low[attribute], high[attribute], size):
            distinct = _list_sorted(rows, start, stop, attribute, histogram, base, codes)
        else:
            for i in range(start, start if counted else stop):
                histogram[base + rows[i, attribute]] += 1
            distinct = _list_counted(histogram, base, low[attribute], high[attribute], codes)
        low[attribute], high[attribute] = codes[0], codes[distinct - 1]
        if distinct > 1 and aim.mode == RELAXED:
            wide = position[base + high[attribute]] - position[base + low[attribute]]
            score[cuts], cut[cuts] = min(wide, 1.0), base + _median(codes, histogram, base, size)
            cuts += 1
        elif distinct > 1:
            cuts = _score_cuts(codes, histogram, (score, cut), base, distinct, aim, position, cuts)
        for i in range(distinct):
            histogram[base + codes[i]] = 0
    return cuts


@helper
def _sift(score, cut, root, count):
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
def _both_safe(left, below, total, size, limits):
    """Whether both sides of a cut satisfy the limits, given the counts of one and of the whole run."""
    if not safe(left, below, limits):
        return False
    for value in range(total.size):
        left[value] = total[value] - left[value]
    return safe(left, size - below, limits)


@helper(inline="always")
def _swap(deck, i, j):
    rows, values, order = deck.rows, deck.values, deck.order
    for attribute in range(rows.shape[1]):
        rows[i, attribute], rows[j, attribute] = rows[j, attribute], rows[i, attribute]
    for view in range(values.shape[1]):
        values[i, view], values[j, view] = values[j, view], values[i, view]
    order[i], order[j] = order[j], order[i]


@helper
def _part(deck, start, stop, attribute, code):
    """Move rows with at most `code` to the front of the run; returns where the others begin."""
    rows = deck.rows
    i, j = start, stop - 1
    while True:
        while i <= j and rows[i, attribute] <= code:
            i += 1
        while i <= j and rows[j, attribute] > code:
            j -= 1
        if i >= j:
            return i
        _swap(deck, i, j)
        i += 1
        j -= 1


@helper(inline="always")
def _inside(people, i, low, high):
    for attribute in range(low.size):
        if people[i, attribute] < low[attribute] or people[i, attribute] > high[attribute]:
            return False
    return True


@helper
def _count_known(rows, run, attribute, code, below, people, room):
    """How many known people of a run fit the tight box of one side of a cut, which is left in the room."""
    low, high = room.low, room.high
    for a in range(low.size):
        low[a], high[a] = _FAR, -1
    for i in range(run.start, run.stop):
        if (rows[i, attribute] <= code) == below:
            for a in range(low.size):
                low[a] = min(low[a], rows[i, a])
                high[a] = max(high[a], rows[i, a])
    fits = 0
    for i in range(run.first, run.last):
        fits += _inside(people, i, low, high)
    return fits


@helper(inline="always")
def _count_below(deck, start, stop, attribute, code, left):
    """Count the values of rows with at most `code`; returns how many rows there are."""
    rows, values = deck.rows, deck.values
    left[:] = 0
    below = np.int64(0)
    for i in range(start, stop):
        if rows[i, attribute] <= code:
            below += 1
            for view in range(values.shape[1]):
                left[values[i, view]] += 1
    return below


@helper(inline="always")
def _share_known(run, people, room):
    """Move the known people in the lower side's box to the front; boxes do not overlap. Where the others begin."""
    between = run.first
    for i in range(run.first, run.last):
        if _inside(people, i, room.low, room.high):
            for a in range(room.low.size):
                people[i, a], people[between, a] = people[between, a], people[i, a]
            between += 1
    return between


@helper(inline="always")
def _cut_best(deck, run, cuts, room, scale, mode, known, limits):
    """Carry out the best cut with two safe sides; returns where the upper one begins (-1: none), and the cut."""
    score, cut, left, total, first_leaf = room.score, room.cut, room.left, room.total, scale.first_leaf
    start, stop, counts = run.start, run.stop, mode == RELAXED or deck.values.shape[1] > 0
    for root in range(cuts // 2 - 1, -1, -1):
        _sift(score, cut, root, cuts)
    while cuts > 0:
        chosen = cut[0]
        cuts -= 1
        score[0], cut[0] = score[cuts], cut[cuts]
        _sift(score, cut, np.int64(0), cuts)
        attribute = 0
        while first_leaf[attribute + 1] <= chosen:
            attribute += 1
        code = chosen - first_leaf[attribute]
        last, most = stop, code
        if mode == RELAXED:
            # Ties at the median may go to either side, so that the halves are equal: all rows of the first are below.
            _part(deck, _part(deck, start, stop, attribute, code - 1), stop, attribute, code)
            last, most = start + (stop - start) // 2, np.int64(_FAR)
        if counts:
            below = _count_below(deck, start, last, attribute, most, left)
            if not _both_safe(left, below, total, stop - start, limits):
                continue
        # The box of the lower side is looked at last, and stays in the room for `_share_known`.
        few = False
        for side in range(2 if known.needed > 0 else 0):
            fits = _count_known(deck.rows, run, attribute, code, side == 1, known.people, room)
            few = few or fits < known.needed
        if not few:
            return last if mode == RELAXED else _part(deck, start, stop, attribute, code), attribute, code
    return -1, 0, np.int64(0)


@helper(inline="always")
def _longer(starts):
    longer = np.empty(2 * starts.size, np.int64)
    for i in range(starts.size):
        longer[i] = starts[i]
    return longer


@helper(inline="always")
def _count_values(values, run, total):
    shape = values.shape
    total[:] = 0
    for i in range(run.start, run.stop):
        for view in range(shape[1]):
            total[values[i, view]] += 1


@kernel
def cut_rows(deck, begin, end, coarse, mode, scale, known, limits):
    """Cut the run [begin, end) as long as both sides stay safe; returns where the resulting runs begin.

    coarse  runs of at most this many rows are left as they are: they become tasks for other threads
    mode    GAIN: any position of any attribute, best reduction of the summed ranges first;
            MEDIAN: in the widest attribute, the cut nearest to the median; RELAXED: equal halves, where
            records with the median value may go to either side (LeFevre et al.)
    """
    rows = deck.rows
    width, leaves = deck.rows.shape[1], scale.first_leaf[deck.rows.shape[1]]
    guarded = deck.values.shape[1] > 0 or known.needed > 0
    cuts_room, values = leaves if guarded else width, limits.numerator.size
    longest_list = min(leaves, _PER_ROW * (end - begin) + _AT_LEAST + 1) + 1
    room = _CutRoom(
        histogram=np.zeros(leaves, np.int32),
        codes=np.empty(longest_list, np.int32),
        score=np.empty(cuts_room, np.float64),
        cut=np.empty(cuts_room, np.int64),
        total=np.zeros(values, np.int64),
        left=np.zeros(values, np.int64),
        low=np.empty(width, np.int32),
        high=np.empty(width, np.int32),
    )
    starts, runs = np.empty(1024, np.int64), 0
    waiting = np.empty((_DEPTH, 4), np.int64)
    low, high = np.empty((_DEPTH, width), np.int32), np.empty((_DEPTH, width), np.int32)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = begin, end, 0, known.people.shape[0]
    for attribute in range(width):
        low[0, attribute], high[0, attribute] = _FAR, -1
    for i in range(begin, end):
        for attribute in range(width):
            low[0, attribute] = min(low[0, attribute], rows[i, attribute])
            high[0, attribute] = max(high[0, attribute], rows[i, attribute])
    top = 1
    while top > 0:
        top -= 1
        run = _Run(waiting[top, 0], waiting[top, 1], waiting[top, 2], waiting[top, 3], low[top], high[top])
        size = run.stop - run.start
        middle, attribute, code = -1, 0, np.int64(0)
        if size >= 2 * limits.k and size >= 2 and size > coarse:
            if guarded:
                _count_values(deck.values, run, room.total)
            cuts = _list_cuts(deck.rows, run, room, scale, _Aim(mode, limits.k, not guarded, size))
            middle, attribute, code = _cut_best(deck, run, cuts, room, scale, mode, known, limits)
        if middle < 0:
            if runs == starts.size:
                starts = _longer(starts)
            starts[runs] = run.start
            runs += 1
            continue
        between = _share_known(run, known.people, room) if known.needed > 0 else run.last
        # The larger side waits.
        lower_first = middle - run.start > run.stop - middle
        lower, upper = (top, top + 1) if lower_first else (top + 1, top)
        for a in range(width):
            low[top + 1, a], high[top + 1, a] = low[top, a], high[top, a]
        waiting[lower, 0], waiting[lower, 1], waiting[lower, 2], waiting[lower, 3] = (
            run.start,
            middle,
            run.first,
            between,
        )
        waiting[upper, 0], waiting[upper, 1], waiting[upper, 2], waiting[upper, 3] = middle, run.stop, between, run.last
        if mode != RELAXED:
            high[lower, attribute], low[upper, attribute] = code, code + 1
        top += 2
    return starts[:runs]


@kernel
def bound_runs(rows, order, starts):
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
