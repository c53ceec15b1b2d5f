"""Cells that must not change and did: which columns and rows, and who is held out for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import DataError, Problem
from sequester.ingest.snapshot import Snapshot
from sequester.ingest.validate import places
from sequester.ledger.state import State
from sequester.policy.model import Policy

Mask = NDArray[np.bool_]

_FIX = (
    "correct the cells, or leave these people out as a set with `corrections: hold-out`. Under another id, or in a "
    "series that does not know what was published, the releases together would show who they are"
)


@dataclass(frozen=True, eq=False, repr=False)
class Corrections:
    """Records of people published before whose cells that do not change are not what they were.

    quasi  per record, whether a quasi-identifier is not; raw cells are not kept, so only boxes can tell which one
    cells  per other column, the same
    """

    quasi: Mask
    cells: dict[str, Mask]

    @property
    def records(self) -> Mask:
        """All of them."""
        records: Mask = np.logical_or.reduce([self.quasi, *self.cells.values()])
        return records

    @classmethod
    def find(
        cls,
        number: NDArray[np.int64],
        digests: tuple[NDArray[np.int64], NDArray[np.int64]],
        cells: dict[str, tuple[NDArray[np.int32], NDArray[np.int32]]],
    ) -> Corrections:
        """What differs, given per record its person, -1 for a new one.

        cells    per column, the codes of everybody published before, and of every record now
        digests  the same of all permanent quasi-identifiers together
        """
        known = number >= 0

        def differs(before: NDArray[np.generic], now: NDArray[np.generic]) -> Mask:
            differing: Mask = known & (before[number] != now)
            return differing

        return cls(differs(*digests), {name: differs(before, now) for name, (before, now) in cells.items()})

    def refuse(self, snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> None:
        """Raise DataError if there are any, with the columns and the numbers of the rows: an error is private."""
        problems = [_problem(rows, name, snapshot) for name, rows in self._quasi(snapshot, number, state, policy)]
        problems += [_problem(rows, name, snapshot) for name, rows in self.cells.items()]
        there = [problem for problem in problems if problem is not None]
        if there:
            raise DataError(there)

    def _quasi(
        self, snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy
    ) -> Sequence[tuple[str | None, Mask]]:
        """Columns with cells outside a box that their people were published with; None for cells inside all of them."""
        rows = np.flatnonzero(self.quasi)
        told, columns = np.zeros(len(self.quasi), np.bool_), []
        for axis, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
            if attribute.changes:
                continue
            outside = np.zeros(len(self.quasi), np.bool_)
            names = snapshot.quasi_domains[axis].names[0]
            now = [names[code] for code in snapshot.quasi[axis, rows].tolist()]
            for release, memory in enumerate(state.releases):
                at = state.path[state.trajectory[number[rows]], release]
                code = _codes(memory.domains[name], now)
                outside[rows] |= (at >= 0) & ((code < memory.lo[axis, at]) | (code > memory.hi[axis, at]))
            told |= outside
            columns.append((name, outside))
        return [*columns, (None, self.quasi & ~told)]


def _codes(domain: Hierarchy, names: Sequence[str]) -> NDArray[np.int64]:
    """The codes of leaves by name; -1 for what was no leaf then, so that nobody can have had it."""
    place = {name: code for code, name in enumerate(domain.names[0])}
    return np.array([place.get(name, -1) for name in names], np.int64)


def _problem(rows: Mask, name: str | None, snapshot: Snapshot) -> Problem | None:
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    who = "1 person has" if count == 1 else f"{count:,} people have"
    what = "" if name else "permanent quasi-identifiers, inside the boxes published so far: "
    # Rows that were left out while reading are not counted, so the numbers of the others are not those of the table.
    where = f" ({places(rows)})" if not snapshot.left_out + snapshot.withheld else ""
    return Problem(f"{what}{who} other values than in an earlier release{where}; {_FIX}", column=name, rows=count)
