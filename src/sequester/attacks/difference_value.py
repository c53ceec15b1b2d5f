"""Difference attack on a value: too many of those left by subtracting classes must have it.

Byun et al., section 4.3, add up classes of one release and take away classes of another that lie within them. Taking
away any classes proves as much: of the people in added classes E but not in taken classes F at least n(E) - n(F) have
a value that occurs n(E) and n(F) times, and if that is more than the bound c of |E - F| people, the bound is broken
whatever the adversary believes. For two releases and one value against the rest the converse holds too: where no such
pair of sets exists, in either direction, some belief consistent with both releases gives everybody at most c. The
nested sets of the paper are a special case, and miss people.

Both are one minimum cut instead of a search through all sets of classes. A broken set holds a broken cell (a mean is
at most the largest), so only connected components with such a cell are looked at.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.difference_cells import Cells, Numbers, Remainder, pieces
from sequester.attacks.flow import INFINITE, min_cut

Mask = NDArray[np.bool_]


def generalized(cells: Cells, value: int, bound: Fraction) -> list[Remainder]:
    """Sets E - F in which the value is proved to be more frequent than its bound, F arbitrary; F empty is left out.

    One per connected group of classes: the smallest sets with the largest excess. None are missed in this sense: if
    there is any such pair of sets, then here is one, or a class of the outer release breaks the bound by itself.
    """
    open_outer, open_inner = _open(cells, value, bound)
    if not open_outer.any():
        return []
    p, q = bound.numerator, bound.denominator
    outer, inner = np.flatnonzero(open_outer), np.flatnonzero(open_inner)
    here = (cells.outer_class >= 0) & np.append(open_outer, False)[cells.outer_class]
    sink = 1 + len(outer) + len(inner)
    number = np.append(1 + len(outer) + np.cumsum(open_inner) - 1, sink)
    tails = np.concatenate(
        [
            np.zeros(len(outer), np.int64),
            1 + np.searchsorted(outer, cells.outer_class[here]),
            1 + len(outer) + np.arange(len(inner)),
        ]
    )
    heads = np.concatenate(
        [1 + np.arange(len(outer)), number[cells.inner_class[here]], np.full(len(inner), sink, np.int64)]
    )
    capacities = np.concatenate(
        [q * cells.outer_counts[outer, value], p * cells.size[here], q * cells.inner_counts[inner, value]]
    )
    cost, side = min_cut(tails, heads, capacities, 0, sink)
    if cost == q * int(cells.outer_counts[outer, value].sum()):
        return []
    return _remainders(cells, value, chosen=(outer, inner, side))


def nested(cells: Cells, value: int, bound: Fraction) -> list[Remainder]:
    """Sets E - F with F within E (Byun et al., Figure 5) in which the value is more frequent than its bound.

    A largest closed set of classes: taking an inner class away requires every outer class with one of its people.
    """
    open_outer, open_inner = _open(cells, value, bound)
    open_inner &= cells.selectable
    if not open_outer.any():
        return []
    p, q = bound.numerator, bound.denominator
    outer, inner = np.flatnonzero(open_outer), np.flatnonzero(open_inner)
    here = cells.shared & np.append(open_outer, False)[cells.outer_class]
    here &= np.append(open_inner, False)[cells.inner_class]
    weight = np.concatenate(
        [
            q * cells.outer_counts[outer, value] - p * cells.outer_counts[outer].sum(axis=1),
            p * cells.inner_counts[inner].sum(axis=1) - q * cells.inner_counts[inner, value],
        ]
    )
    sink = 1 + len(weight)
    gain, loss = np.flatnonzero(weight > 0), np.flatnonzero(weight < 0)
    tails = np.concatenate(
        [np.zeros(len(gain), np.int64), 1 + loss, 1 + len(outer) + np.searchsorted(inner, cells.inner_class[here])]
    )
    heads = np.concatenate(
        [1 + gain, np.full(len(loss), sink, np.int64), 1 + np.searchsorted(outer, cells.outer_class[here])]
    )
    capacities = np.concatenate([weight[gain], -weight[loss], np.full(int(here.sum()), INFINITE, np.int64)])
    cost, side = min_cut(tails, heads, capacities, 0, sink)
    if cost == int(weight[gain].sum()):
        return []
    return _remainders(cells, value, chosen=(outer, inner, side))


def _open(cells: Cells, value: int, bound: Fraction) -> tuple[Mask, Mask]:
    """Outer and inner classes of the components with a cell where the value may be more frequent than its bound."""
    outer, inner = len(cells.outer_counts), len(cells.inner_counts)
    if cells.counts is not None:
        most = cells.counts[:, value]
    else:
        unlimited = np.int64(INFINITE)
        most = np.minimum(
            np.append(cells.outer_counts[:, value], unlimited)[cells.outer_class],
            np.append(cells.inner_counts[:, value], unlimited)[cells.inner_class],
        )
    broken = (cells.outer_class >= 0) & (bound.denominator * most > bound.numerator * cells.size)
    if not broken.any():
        return np.zeros(outer, np.bool_), np.zeros(inner, np.bool_)
    label = cells.component
    touched = np.zeros(outer + inner, np.bool_)
    touched[label[cells.outer_class[broken]]] = True
    found = touched[label]
    return found[:outer], found[outer:]


def _remainders(
    cells: Cells, value: int, *, chosen: tuple[NDArray[np.intp], NDArray[np.intp], Mask]
) -> list[Remainder]:
    """The source side of a cut, split into connected groups of classes; those that take nothing away are dropped."""
    outer, inner, side = chosen
    added = np.zeros(len(cells.outer_counts), np.bool_)
    taken = np.zeros(len(cells.inner_counts), np.bool_)
    added[outer[side[1 : 1 + len(outer)]]] = True
    taken[inner[side[1 + len(outer) : 1 + len(outer) + len(inner)]]] = True
    found = []
    for one_added, one_taken in pieces(cells, added, taken):
        if len(one_taken) == 0:
            continue
        left = cells.left(one_added, one_taken)
        found.append(
            Remainder(
                cells,
                one_added,
                one_taken,
                people=int(cells.size[left].sum()),
                with_value=int(cells.outer_counts[one_added, value].sum() - cells.inner_counts[one_taken, value].sum()),
                nested=_is_nested(cells, one_added, one_taken),
            )
        )
    return found


def _is_nested(cells: Cells, added: Numbers, taken: Numbers) -> bool:
    """Whether everybody in a class taken away is in an added class."""
    inside = cells.by_outer.members(added)
    within = np.zeros(len(cells.inner_counts) + 1, np.bool_)
    within[taken] = True
    met = int(cells.size[inside[within[cells.inner_class[inside]]]].sum())
    return met == int(cells.inner_counts[taken].sum())
