"""Fragments of pods become whole: nearest first, of one type, in different seats, within the cap on lineages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.kernels import kernel
from sequester.methods.pods.classes.grouping import boxes_of

Integers = NDArray[np.int64]
Places = NDArray[np.float64]
NEIGHBORS = 8
"""How many fragments are looked at around each, in every round."""
APART = 1e-7
"""How far the random order draws fragments of one place apart."""


@dataclass(frozen=True, eq=False)
class Fragments:
    """Beginnings of pods, numbered by their first records in the random order.

    type, taken, lineage  what they are, the seats they have as bits, and whom they are linked to
    low, high             the box around them
    seats                 how many seats a pod of every type has
    """

    type: Integers
    taken: Integers
    lineage: Integers
    low: Places
    high: Places
    seats: Integers

    @classmethod
    def of(
        cls,
        fragment: Integers,
        *,
        type_: Integers,
        seat: Integers,
        place: Places,
        rank: Integers,
        lineage: Integers,
        seats: Integers,
    ) -> Fragments:
        """Of records; the last column of a place tells fragments of one place apart."""
        kind = np.empty(len(lineage), np.int64)
        kind[fragment] = type_
        taken = np.zeros(len(lineage), np.int64)
        np.bitwise_or.at(taken, fragment, np.int64(1) << seat)
        spread = rank * (APART / max(1, len(rank)))
        low, high = boxes_of(fragment, np.column_stack([place, spread]))
        return cls(kind, taken, lineage, low, high, seats)

    def lacking(self) -> Integers:
        """Empty seats of each."""
        return self.seats[self.type] - np.array([int(one).bit_count() for one in self.taken.tolist()], np.int64)


def joined(given: Fragments, people: Integers, *, most: int | None, allowed: int) -> Integers:
    """Per fragment the one it becomes a part of; no more are joined than it takes for `allowed` empty seats."""
    whole = np.arange(len(given.type))
    taken, low, high = given.taken.copy(), given.low.copy(), given.high.copy()
    lacking = given.lacking()
    above, size = np.arange(len(people)), people.copy()
    while lacking.sum() > allowed:
        here = np.flatnonzero((whole == np.arange(len(whole))) & (lacking > 0))
        one, other = _near(given.type[here], taken[here], low[here] + high[here])
        one, other = here[one], here[other]
        cost = (np.maximum(high[one], high[other]) - np.minimum(low[one], low[other])).sum(1)
        order = np.lexsort((other, one, cost))
        chosen = order[
            _take(
                one[order],
                other[order],
                given.seats[given.type[one[order]]],
                given.lineage,
                above,
                size,
                -1 if most is None else most,
                int(lacking.sum()) - allowed,
                len(whole),
            )
        ]
        one, other = one[chosen], other[chosen]
        if not len(one):
            break
        whole[other] = one
        taken[one] |= taken[other]
        lacking[one] += lacking[other] - given.seats[given.type[one]]
        lacking[other] = 0
        low[one], high[one] = np.minimum(low[one], low[other]), np.maximum(high[one], high[other])
    while (whole != whole[whole]).any():
        whole = whole[whole]
    return whole


def _near(type_: Integers, taken: Integers, middle: Places) -> tuple[Integers, Integers]:
    """Pairs that could be joined, the smaller number first: the nearest of each in either direction."""
    from scipy.spatial import cKDTree

    order = np.lexsort((taken, type_))
    kind, bits = type_[order], taken[order]
    starts = np.flatnonzero(np.diff(kind, prepend=-1) | np.diff(bits, prepend=-1))
    ends = np.append(starts[1:], len(order))
    cells: dict[int, list[tuple[int, int]]] = {}
    for number, start in enumerate(starts.tolist()):
        cells.setdefault(int(kind[start]), []).append((int(bits[start]), number))
    pairs: list[Integers] = []
    for found in cells.values():
        trees: dict[int, cKDTree] = {}
        for (mine, first), (theirs, second) in combinations(found, 2):
            if mine & theirs:
                continue
            for asking, asked in ((first, second), (second, first)):
                if asked not in trees:
                    trees[asked] = cKDTree(middle[order[starts[asked] : ends[asked]]])
                who, whom = order[starts[asking] : ends[asking]], order[starts[asked] : ends[asked]]
                count = min(NEIGHBORS, len(whom))
                near = trees[asked].query(middle[who], k=count, p=1)[1].reshape(len(who), count)
                pairs.append(np.column_stack([np.repeat(who, count), whom[near.ravel()]]))
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    both = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
    return both[:, 0], both[:, 1]


@kernel
def _take(  # noqa: PLR0913 - a compiled loop over plain arrays
    one: Integers,
    other: Integers,
    seats: Integers,
    lineage: Integers,
    above: Integers,
    size: Integers,
    most: int,
    excess: int,
    count: int,
) -> NDArray[np.bool_]:
    """Of pairs in order, those that are joined now; nobody twice. `above` and `size` of lineages are kept up."""
    used = np.zeros(count, np.bool_)
    found = np.zeros(len(one), np.bool_)
    for at in range(len(one)):
        if excess <= 0:
            break
        if used[one[at]] or used[other[at]]:
            continue
        mine, theirs = lineage[one[at]], lineage[other[at]]
        while above[mine] != mine:
            above[mine] = above[above[mine]]
            mine = above[mine]
        while above[theirs] != theirs:
            above[theirs] = above[above[theirs]]
            theirs = above[theirs]
        if mine != theirs:
            if most >= 0 and size[mine] + size[theirs] > most:
                continue
            above[theirs] = mine
            size[mine] += size[theirs]
        used[one[at]], used[other[at]] = True, True
        found[at] = True
        excess -= seats[at]
    return found
