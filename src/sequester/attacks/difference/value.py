"""Difference attack on a value: too many of those left by subtracting classes must have it.

Byun et al., section 4.3, add up classes of one release and take away classes of another that lie within them. Taking
away any classes proves as much: of the people in added classes E but not in taken classes F at least n(E) - n(F) have
a value that occurs n(E) and n(F) times, and if that is more than the bound c of |E - F| people, the bound is broken
whatever the adversary believes. For two releases and one value against the rest the converse holds too: where no such
pair of sets exists, in either direction, some belief consistent with both releases gives everybody at most c. The
nested sets of the paper are a special case, and miss people.

Both are one minimum cut instead of a search through all sets of classes, and one for all values together, since what
is chosen for one value says nothing about another. A broken set holds a broken cell (a mean is at most the largest), so
only connected components with such a cell are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.difference.cells import Numbers, Remainder, Subtraction, components
from sequester.attacks.solvers.flow import INFINITE, min_cut

Mask = NDArray[np.bool_]


def generalized(cells: Subtraction, bounds: Mapping[int, Fraction]) -> list[Remainder]:
    """Sets E - F in which a value is proved to be more frequent than its bound, F arbitrary; F empty is left out.

    One per value and connected group of classes: the smallest sets with the largest excess. None are missed in this
    sense: if there is any such pair of sets, then here is one, or a class of the outer release breaks the bound by
    itself.
    """
    choice = _open(cells, bounds)
    source, sink = choice.ends
    v, cell = np.nonzero(choice.open[:, cells.outer_class])
    outer, inner = np.flatnonzero(choice.is_outer), np.flatnonzero(~choice.is_outer)
    tails = [np.full(len(outer), source), choice.node[v, cells.outer_class[cell]], inner]
    heads = [outer, choice.node[v, choice.inner_class[cell]], np.full(len(inner), sink)]
    capacities = [choice.having[outer], choice.numerator[v] * cells.size[cell], choice.having[inner]]
    return _remainders(choice, _cut(choice, tails, heads, capacities))


def nested(cells: Subtraction, bounds: Mapping[int, Fraction]) -> list[Remainder]:
    """Sets E - F with F within E (Byun et al., Figure 5) in which a value is more frequent than its bound.

    A largest closed set of classes: taking an inner class away requires every outer class with one of its people.
    """
    choice = _open(cells, bounds, takeable=cells.selectable)
    source, sink = choice.ends
    v, cell = np.nonzero(choice.open[:, cells.outer_class] & choice.open[:, choice.inner_class])
    excess = choice.having - choice.allowed
    weight = np.where(choice.is_outer, excess, -excess)
    gain, loss = np.flatnonzero(weight > 0), np.flatnonzero(weight < 0)
    tails = [np.full(len(gain), source), loss, choice.node[v, choice.inner_class[cell]]]
    heads = [gain, np.full(len(loss), sink), choice.node[v, cells.outer_class[cell]]]
    capacities = [weight[gain], -weight[loss], np.full(len(cell), INFINITE)]
    return _remainders(choice, _cut(choice, tails, heads, capacities))


@dataclass(frozen=True, eq=False, repr=False)
class _Choice:
    """Classes to choose from, for every value by itself, as nodes of one network.

    codes, numerator, denominator  the values and their bounds
    open                           (values, classes + 1) whether there is a node; outer classes first, absence last
    v, number                      per node the value, as a row of `open`, and the class, as a column
    """

    cells: Subtraction
    codes: Numbers
    numerator: Numbers
    denominator: Numbers
    open: Mask
    v: Numbers
    number: Numbers

    @property
    def ends(self) -> tuple[int, int]:
        """Source and sink, after the nodes."""
        return len(self.v), len(self.v) + 1

    @cached_property
    def node(self) -> Numbers:
        """(values, classes + 1) the node, the sink where there is none."""
        depth = np.full(self.open.shape, len(self.v) + 1)
        depth[self.v, self.number] = np.arange(len(self.v))
        return depth

    @property
    def is_outer(self) -> Mask:
        return np.asarray(self.number < len(self.cells.outer_counts))

    @property
    def inner_class(self) -> Numbers:
        """Per cell, its inner class as a column of `open`."""
        inner = self.cells.inner_class
        return np.where(inner >= 0, inner + len(self.cells.outer_counts), -1)

    @cached_property
    def counts(self) -> Numbers:
        """(classes, values) as published."""
        return np.concatenate([self.cells.outer_counts, self.cells.inner_counts])

    @cached_property
    def having(self) -> Numbers:
        """Per node, how many of the class have the value, times the bound's denominator."""
        return self.counts[self.number, self.codes[self.v]] * self.denominator[self.v]

    @property
    def allowed(self) -> Numbers:
        """Per node, how many of the class may have the value, times the bound's denominator."""
        return np.asarray(self.counts.sum(axis=1)[self.number] * self.numerator[self.v])


def _open(cells: Subtraction, bounds: Mapping[int, Fraction], *, takeable: Mask | None = None) -> _Choice:
    """The classes of the components with a cell where the value may be more frequent than its bound."""
    codes = np.array(list(bounds), np.int64)
    numerator = np.array([bound.numerator for bound in bounds.values()], np.int64)
    denominator = np.array([bound.denominator for bound in bounds.values()], np.int64)
    if cells.counts is not None:
        most = cells.counts[:, codes]
    else:
        unlimited = np.full((1, len(codes)), INFINITE)
        most = np.minimum(
            np.concatenate([cells.outer_counts[:, codes], unlimited])[cells.outer_class],
            np.concatenate([cells.inner_counts[:, codes], unlimited])[cells.inner_class],
        )
    broken = denominator * most > numerator * cells.size[:, None]
    cell, v = np.nonzero(broken & (cells.outer_class >= 0)[:, None])
    label = cells.component
    touched = np.zeros((len(codes), label.max(initial=0) + 1), np.bool_)
    touched[v, label[cells.outer_class[cell]]] = True
    reached = np.concatenate([touched[:, label], np.zeros((len(codes), 1), np.bool_)], axis=1)
    if takeable is not None:
        reached[:, len(cells.outer_counts) : -1] &= takeable
    return _Choice(cells, codes, numerator, denominator, reached, *np.nonzero(reached))


def _cut(choice: _Choice, tails: list[Numbers], heads: list[Numbers], capacities: list[Numbers]) -> Numbers:
    """The nodes on the source side of a smallest cut."""
    source, sink = choice.ends
    tail, head, capacity = (np.concatenate(part) for part in (tails, heads, capacities))
    _, side = min_cut(tail, head, capacity, source, sink)
    return np.flatnonzero(side[:source])


def _remainders(choice: _Choice, chosen: Numbers) -> list[Remainder]:
    """The chosen classes of every value, split where they share nobody; what takes nothing away is dropped."""
    if len(chosen) == 0:
        return []
    cells, outer = choice.cells, choice.is_outer[chosen]
    v, number = choice.v[chosen], choice.number[chosen]
    place = np.full(choice.open.shape, -1)
    place[v, number] = np.arange(len(chosen))
    row, cell = np.nonzero((place >= 0)[:, cells.outer_class])
    tail, head = place[row, cells.outer_class[cell]], place[row, choice.inner_class[cell]]
    met = head >= 0
    label = components(tail[met], head[met], len(chosen))
    size = cells.size[cell]
    having, people = choice.counts[number, choice.codes[v]], choice.counts.sum(axis=1)[number]

    def total(weight: Numbers | Mask, part: NDArray[np.int32]) -> list[int]:
        sums: list[int] = np.bincount(part, weight, minlength=len(chosen)).astype(np.int64).tolist()
        return sums

    left, inside = total(size[~met], label[tail[~met]]), total(size[met], label[tail[met]])
    with_value, taken = total(np.where(outer, having, -having), label), total(people[~outer], label[~outer])
    order = np.argsort(label, kind="stable")
    classes = np.where(outer, number, number - len(cells.outer_counts))[order].tolist()
    codes = choice.codes[v[order]].tolist()
    ends = np.searchsorted(label[order], np.arange(label.max() + 2)).tolist()
    added = total(outer, label)
    return [
        Remainder(
            cells,
            classes[start : start + added[one]],
            classes[start + added[one] : stop],
            people=left[one],
            value=codes[start],
            with_value=with_value[one],
            nested=inside[one] == taken[one],
        )
        for one, (start, stop) in enumerate(pairwise(ends))
        if start + added[one] < stop
    ]
