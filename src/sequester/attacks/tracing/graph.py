"""Where the rows of an earlier release may be in a later one: the network that record tracing works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.finding import Finding
from sequester.history.history import History

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Rows with one value in one class of the earlier release are a row group; every arc is a place it may go.

    A row group can go to rows with the same value in a compatible class, and to "left" where people of its class
    left. Arrays are parallel, one entry per arc, sorted by class, later class and value.

    first, second  the earlier class, and the later one or -1 for "left"
    value          the sensitive value of the row group
    tail, head     nodes: row groups, then (later class, value), then one "left" per earlier class, then the sink
    rows           how many rows really go there: a feasible flow, because it is the truth
    people         how many people of the earlier class are there, whatever their value
    offered        per arc, rows with this value in the later class; for "left" the people who left
    """

    releases: tuple[int, int]
    history: History
    first: Integers
    second: Integers
    value: Integers
    tail: Integers
    head: Integers
    rows: Integers
    people: Integers
    offered: Integers

    @property
    def values(self) -> int:
        """Number of sensitive values."""
        return len(self.history.values)

    @property
    def groups(self) -> int:
        """Number of nodes that stand for row groups, with or without rows."""
        return len(self.history.releases[self.releases[0]]) * self.values

    @property
    def sink(self) -> int:
        """The node where all rows end."""
        first, second = self.releases
        return self.groups + len(self.history.releases[second]) * self.values + len(self.history.releases[first])

    @cached_property
    def columns(self) -> tuple[list[int], ...]:
        """Class, later class, value, rows and people of every arc, for those who look at few arcs at a time."""
        return tuple(part.tolist() for part in (self.first, self.second, self.value, self.rows, self.people))

    @cached_property
    def _people(self) -> tuple[list[int], list[int], list[int]]:
        """People of the earlier release sorted by their two classes; where those of every arc begin and end there."""
        first, second = (self.history.releases[number].known_member for number in self.releases)
        width = len(self.history.releases[self.releases[1]]) + 1
        here = np.flatnonzero(first >= 0)
        cell = first[here].astype(np.int64) * width + second[here] + 1
        order = np.argsort(cell, kind="stable")
        ends = (np.searchsorted(cell[order], self.first * width + self.second + 1, side) for side in ("left", "right"))
        begin, end = (side.tolist() for side in ends)
        return here[order].tolist(), begin, end

    def by_group(self, arcs: Integers) -> list[Integers]:
        """These arcs, one array per row group."""
        order = arcs[np.argsort(self.tail[arcs], kind="stable")]
        return np.split(order, np.flatnonzero(np.diff(self.tail[order])) + 1) if len(order) else []

    def owners(self, arcs: Sequence[int]) -> tuple[int, ...]:
        """People of the earlier class who are where these arcs of one row group lead."""
        people, begin, end = self._people
        return tuple(sorted(person for arc in arcs for person in people[begin[arc] : end[arc]]))

    def report(self, arcs: Sequence[int], *, required: float, observed: float) -> Finding:
        """A finding about one row group: it can only be where these arcs lead."""
        first, second = self.releases
        groups, later, values, rows, people = self.columns
        group, value = groups[arcs[0]], self.history.values[values[arcs[0]]]
        places = [later[arc] + 1 if later[arc] >= 0 else None for arc in arcs]
        return Finding(
            attack="tracing",
            adversary="insider",
            releases=(first + 1, second + 1),
            required=required,
            observed=observed,
            value=value,
            classes=((first + 1, group + 1), *((second + 1, place) for place in places if place is not None)),
            people=tuple([self.history.people[person] for person in self.owners(arcs)]),
            witness={
                "row": (first + 1, group + 1, value),
                "feasible": places,
                "rows": sum([rows[arc] for arc in arcs]),
                "candidates": sum([people[arc] for arc in arcs]),
            },
            attribute=self.history.attribute,
        )


def network(history: History, first: int, second: int) -> Network:
    """The network of two releases, numbered from 0, of a history that knows its people and their permanent values.

    Compatible are boxes that intersect, and the classes that really share a person, should her boxes not.
    """
    known = history.overlap(first, second)
    assert known.counts is not None
    inside = known.first >= 0
    values, later = len(history.values), history.releases[second]
    classes, width = len(history.releases[first]), len(later) + 1
    true = known.first[inside].astype(np.int64) * width + known.second[inside] + 1
    one, other = history.compatible(first, second)
    pairs = np.union1d(true, one.astype(np.int64) * width + other + 1)
    a, b = pairs // width, pairs % width - 1
    of_pair = np.full(len(pairs), -1, np.int64)
    of_pair[np.searchsorted(pairs, true)] = np.arange(len(true))
    supply = np.zeros((classes, values), np.int64)
    np.add.at(supply, known.first[inside], known.counts[inside])
    offered = np.vstack([later.counts, np.zeros((1, values), np.int64)])
    # Nobody's row can be in a class without its value; anybody's may have left where somebody did.
    pair, value = np.nonzero((supply[a] > 0) & ((offered[b] > 0) | (b < 0)[:, None]))
    truth, a, b = of_pair[pair], a[pair], b[pair]
    size, counts = known.size[inside], known.counts[inside]
    people = np.where(truth >= 0, size[truth], 0)
    tail = a * values + value
    stays = classes * values + b * values + value
    left = (classes + len(later)) * values + a
    return Network(
        releases=(first, second),
        history=history,
        first=a,
        second=b,
        value=value,
        tail=tail,
        head=np.where(b >= 0, stays, left),
        rows=np.where(truth >= 0, counts[truth, value], 0),
        people=people,
        offered=np.where(b >= 0, offered[b, value], people),
    )
