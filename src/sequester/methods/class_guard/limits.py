"""Is one class safe? All static criteria on the value counts of a single class, for use inside other kernels.

A class is described by its size and by one flat array of counts: the values of all sensitive views side by side.
The same criteria exist, in plain NumPy and sharing nothing with this, in `guarantees`; tests hold them together. How
their parameters come here is in `guard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import helper

EQUAL, ORDERED, HIERARCHICAL = 0, 1, 2
TOLERANCE = 1e-9


class Limits(NamedTuple):
    """What every class must satisfy. Views are separated by `first`; absent criteria are 0 (closeness: -1)."""

    k: int
    first: NDArray[np.int64]  # views + 1: where each view's values start in the flat arrays
    numerator: NDArray[np.int64]  # per value: count * denominator <= numerator * size
    denominator: NDArray[np.int64]  # 0: this value is not bounded
    distinct: NDArray[np.int64]  # per view
    entropy: NDArray[np.float64]  # per view: log l
    recursive_l: NDArray[np.int64]  # per view: r1 * denominator < numerator * (r_l + ... + r_m)
    recursive_numerator: NDArray[np.int64]
    recursive_denominator: NDArray[np.int64]
    closeness: NDArray[np.float64]  # per view: t
    distance: NDArray[np.int64]  # per view: EQUAL, ORDERED or HIERARCHICAL
    reference: NDArray[np.float64]  # per value: its share in the whole table
    groups: NDArray[np.int32]  # levels x values: the group of a value at each level of its hierarchy
    heights: NDArray[np.int64]  # per view: the level at which all its values are one group

    @classmethod
    def only(cls, k: int, sizes: Sequence[int] = ()) -> Limits:
        """Nothing but k, over views with so many values each: arrays to be filled in."""
        views, values = len(sizes), sum(sizes)
        return cls(
            k=k,
            first=np.cumsum([0, *sizes]).astype(np.int64),
            numerator=np.ones(values, np.int64),
            denominator=np.zeros(values, np.int64),
            distinct=np.zeros(views, np.int64),
            entropy=np.zeros(views, np.float64),
            recursive_l=np.zeros(views, np.int64),
            recursive_numerator=np.zeros(views, np.int64),
            recursive_denominator=np.ones(views, np.int64),
            closeness=np.full(views, -1.0),
            distance=np.full(views, EQUAL, np.int64),
            reference=np.zeros(values, np.float64),
            groups=np.zeros((1, values), np.int32),
            heights=np.zeros(views, np.int64),
        )

    def with_shares(self, shares: Sequence[NDArray[np.float64]]) -> Limits:
        """The same with more views, whose values are bounded by these shares alone; 1 leaves a value free."""
        whole = 1 << 30  # Finer than shares in classes of a million, and a billion people do not overflow.
        share = np.concatenate([np.zeros(0), *shares])
        more = Limits.only(0, [len(part) for part in shares])
        more = more._replace(
            numerator=(share * whole).astype(np.int64), denominator=np.where(share < 1, whole, 0).astype(np.int64)
        )
        more = more._replace(groups=np.zeros((len(self.groups), len(share)), np.int32))
        beside: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(more, name)], axis=-1) for name in self._fields[2:]
        }
        return Limits(k=self.k, first=np.append(self.first, self.first[-1] + more.first[1:]), **beside)


@helper
def safe(counts, size, limits):  # type: ignore[no-untyped-def]
    """Whether a class of this size with these value counts satisfies every criterion."""
    if size < limits.k:
        return False
    for view in range(limits.first.size - 1):  # noqa: SIM110 - a loop compiles to less than a generator
        if not keeps_view(counts, size, view, limits):
            return False
    return True


@helper(inline="always")
def keeps_view(counts, size, view, limits):  # type: ignore[no-untyped-def]
    """Whether it satisfies the criteria of one view."""
    start, stop = limits.first[view], limits.first[view + 1]
    for value in range(start, stop):
        if limits.denominator[value] > 0 and counts[value] * limits.denominator[value] > (
            limits.numerator[value] * size
        ):
            return False
    if limits.distinct[view] > 1:
        seen = 0
        for value in range(start, stop):
            seen += counts[value] > 0
        if seen < limits.distinct[view]:
            return False
    if not keeps_frequencies(counts[start:stop], size, view, limits, TOLERANCE):
        return False
    return not (
        limits.closeness[view] >= 0 and _distance(counts, size, view, limits) > limits.closeness[view] + TOLERANCE
    )


@helper(inline="always")
def keeps_frequencies(counts, size, view, limits, tolerance):  # type: ignore[no-untyped-def]
    """Whether the values of one view are as evenly frequent as entropy and recursive diversity demand."""
    if limits.entropy[view] > 0:
        entropy = 0.0
        for value in range(counts.size):
            if counts[value] > 0:
                share = counts[value] / size
                entropy -= share * np.log(share)
        if entropy < limits.entropy[view] - tolerance:
            return False
    return limits.recursive_l[view] == 0 or _recursive(counts, size, view, limits)


@helper(inline="always")
def compares_with_table(limits):  # type: ignore[no-untyped-def]
    """Whether a criterion compares classes with the whole table (`reference`)."""
    close = False
    for view in range(limits.closeness.size):
        close = close or limits.closeness[view] >= 0
    return close


@helper(inline="always")
def _recursive(counts, size, view, limits):  # type: ignore[no-untyped-def]
    # The l - 1 most frequent values are found by repeated selection: l is small.
    length = limits.recursive_l[view]
    taken = np.zeros(counts.size, np.bool_)
    most, tail = 0, size
    for step in range(length - 1):
        best = -1
        for value in range(counts.size):
            if not taken[value] and (best < 0 or counts[value] > counts[best]):
                best = value
        if best < 0:
            break
        taken[best] = True
        if step == 0:
            most = counts[best]
        tail -= counts[best]
    if length == 1:
        for value in range(counts.size):
            most = max(most, counts[value])
    return most * limits.recursive_denominator[view] < limits.recursive_numerator[view] * tail


@helper(inline="always")
def _distance(counts, size, view, limits):  # type: ignore[no-untyped-def]
    """Earth mover's distance of a class to the whole table (Li, Li and Venkatasubramanian)."""
    start, stop = limits.first[view], limits.first[view + 1]
    total = 0.0
    if limits.distance[view] == EQUAL:
        for value in range(start, stop):
            total += abs(counts[value] / size - limits.reference[value])
        return total / 2
    if limits.distance[view] == ORDERED:
        carried = 0.0
        for value in range(start, stop):
            carried += counts[value] / size - limits.reference[value]
            total += abs(carried)
        return total / max(stop - start - 1, 1)
    height = limits.heights[view]
    for level in range(1, height + 1):
        # Surplus and lack of the children meet at this level's groups, and travel level/height to do so.
        value = start
        while value < stop:
            group = limits.groups[level, value]
            surplus = lack = 0.0
            while value < stop and limits.groups[level, value] == group:
                child, extra = limits.groups[level - 1, value], 0.0
                while (
                    value < stop and limits.groups[level - 1, value] == child and (limits.groups[level, value] == group)
                ):
                    extra += counts[value] / size - limits.reference[value]
                    value += 1
                if extra > 0:
                    surplus += extra
                else:
                    lack -= extra
            total += min(surplus, lack) * level / height
    return total
