"""What a published sensitive cell says where that is more than one value: the values that its person has or may have.

A cell with a set of values has each of them; a cell with a node of a taxonomy may be any value below it; and `*`, a
value that was suppressed, may be any that it could hide. Either way such an attribute is protected value by value: a
record has (or may have) it, or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, Codes, Hierarchy
from sequester.domain.nodes import is_value, may_be, spans


@dataclass(frozen=True, eq=False)
class Cover:
    """Elements of cells: single values, or values that no cell tells apart.

    elements  their names, and `members` the values of each
    holds     (codes, elements) whether a cell with this code has, or may have, this element
    apart     per code, where no cell has two elements: its element, or the number of elements for none of them
    tops      per code, where cells may have several: a number that is the same for all codes that share an element,
              directly or through others; it tells fewer values apart than there are
    """

    elements: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    holds: NDArray[np.bool_]
    apart: Codes | None = None
    tops: Codes | None = None

    def only(self, wanted: Iterable[str]) -> Cover:
        """The same for the elements that have one of these values."""
        asked = set(wanted)
        places = [place for place, members in enumerate(self.members) if asked.intersection(members)]
        elements = tuple(self.elements[place] for place in places)
        members = tuple(self.members[place] for place in places)
        apart = self.apart
        if apart is not None:
            number = np.full(len(self.elements) + 1, len(places), np.int32)
            number[places] = np.arange(len(places))
            apart = number[apart]
        return Cover(elements, members, self.holds[:, places], apart, self.tops)

    def answers(self, place: int) -> Codes:
        """Per code, 0 when a cell with it has, or may have, the element, else 1."""
        answers: Codes = np.where(self.holds[:, place], 0, 1).astype(np.int32)
        return answers

    def starred(self, domain: Hierarchy, stays: Iterable[str]) -> Cover:
        """The same where `*` may have every element; but for values that stay with a person, which it does not hide."""
        if EVERYTHING not in domain.names[0]:
            return self
        holds, fixed = self.holds.copy(), set(stays)
        holds[domain.names[0].index(EVERYTHING)] = [not fixed.issuperset(members) for members in self.members]
        return replace(self, holds=holds)


def of_values(domain: Hierarchy) -> Cover:
    """Every value by itself."""
    values = tuple(name for name in domain.names[0] if name != EVERYTHING)
    codes = [code for code, name in enumerate(domain.names[0]) if name != EVERYTHING]
    return Cover(values, tuple((value,) for value in values), np.eye(domain.size, dtype=np.bool_)[:, codes])


def of_sets(domain: Hierarchy, separator: str) -> Cover:
    """The elements of sets, sorted."""
    cells = [[] if name == EVERYTHING else name.split(separator) for name in domain.names[0]]
    elements = sorted({element for cell in cells for element in cell})
    place = {element: number for number, element in enumerate(elements)}
    holds = np.zeros((len(cells), len(elements)), np.bool_)
    for code, cell in enumerate(cells):
        holds[code, [place[element] for element in cell]] = True
    return Cover(tuple(elements), tuple((element,) for element in elements), holds)


def of_nodes(domain: Hierarchy, published: Codes, *, blank: bool) -> Cover:
    """The values that nodes stand for, where only these codes are ever published.

    Values that the same published codes stand for cannot be told apart: they are one element. `blank`: `*` is no node
    that is published, but a value that was suppressed.
    """
    names, (low, high) = domain.names[0], spans(domain)
    may = may_be(domain)
    leaves = np.flatnonzero(is_value(domain))
    used = np.zeros(domain.size, np.bool_)
    used[published] = True
    if blank and EVERYTHING in names:
        may[names.index(EVERYTHING)] = used[names.index(EVERYTHING)] = False
    columns, first, inverse = np.unique(may[used][:, leaves], axis=1, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    members = tuple(tuple(names[code] for code in leaves[inverse == number]) for number in range(columns.shape[1]))
    holds = may[:, leaves[first]]
    by_first = np.argsort(first, kind="stable")
    holds, members = holds[:, by_first], tuple(members[place] for place in by_first.tolist())
    elements = tuple(_called(domain, group, low, high) for group in members)
    apart = tops = None
    if (holds[used].sum(axis=1) <= 1).all():
        apart = np.where(holds.any(axis=1), np.argmax(holds, axis=1), len(elements)).astype(np.int32)
    else:
        tops = _tops(holds, used)
    return Cover(elements, members, holds, apart, tops)


def _called(domain: Hierarchy, members: Sequence[str], low: Codes, high: Codes) -> str:
    """One value by its name, several by that of the node that has just these, or one after the other."""
    if len(members) == 1:
        return members[0]
    names = domain.names[0]
    places = {names.index(member) for member in members}
    for code in np.flatnonzero(high > low)[np.argsort((high - low)[high > low], kind="stable")].tolist():
        inside = {c for c in range(low[code], high[code] + 1) if low[c] == high[c]}
        if inside == places:
            return str(names[code])
    return " or ".join(members)


def _tops(holds: NDArray[np.bool_], used: NDArray[np.bool_]) -> Codes:
    """Nodes are nested, so that codes that share an element lie below the widest of them."""
    top = np.arange(len(holds), dtype=np.int32)
    for code in np.flatnonzero(used)[np.argsort(holds[used].sum(axis=1), kind="stable")].tolist():
        below = (holds & holds[code]).any(axis=1)
        if holds[code].any():
            top[below] = code
    return np.unique(top, return_inverse=True)[1].astype(np.int32).reshape(-1)
