"""Cells that must not change and did: which columns and rows, and what is published of their people instead.

A corrected cell beside the old one tells: the two were of one person. So the table is an error, or these people are
left out as if they had left, or they stay in the release as they were published, and the correction is held back. Of
what was published the ledger has the codes of sensitive and insensitive cells; of quasi-identifiers it has only boxes,
so whoever has one outside of them is put at the nearest place that lies in all of them. Where values move by a known
step, whoever was published before must be where she can be by now. First values, and nodes in place of values, stay as
they were published, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.nodes import coarser, nesting
from sequester.errors import DataError, Problem
from sequester.history.drift import exact, reach, worth
from sequester.ingest.snapshot import Snapshot
from sequester.ingest.validate import places
from sequester.ledger.state import Memory, State
from sequester.policy.attributes import Drift
from sequester.policy.model import Policy
from sequester.publish.recall import boxes_of, continued

Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

_FIX = (
    "put the cells back, or publish these people as they were with `corrections: keep`, or leave them out as a set "
    "with `corrections: hold-out`. Under another id, or in a series that does not know what was published, the "
    "releases together would show who they are"
)

_DONE = {
    "keep": "they are published as they were, and what was corrected is held back",
    "hold-out": "they are left out, as if they had left",
}


@dataclass(frozen=True, eq=False, repr=False)
class Corrections:
    """Records of people published before whose cells that do not change are not what they were.

    quasi  per record, whether a quasi-identifier is not; raw cells are not kept, so only boxes can tell which one
    cells  per other column, the same
    moved  per quasi-identifier that moves by a known step, who moved further
    """

    quasi: Mask
    cells: dict[str, Mask]
    moved: dict[str, Mask] = field(default_factory=dict)

    @property
    def records(self) -> Mask:
        """All of them."""
        records: Mask = np.logical_or.reduce([self.quasi, *self.cells.values(), *self.moved.values()])
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

    def note(self, snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> tuple[str, ...]:
        """How many people were corrected, per column, and what is done about it; fewer than k are not counted."""
        corrected = [*self._quasi(snapshot, number, state, policy), *self.moved.items(), *self.cells.items()]
        k, done = policy.protect.k, _DONE.get(policy.corrections)
        if done is None or not self.records.any():
            return ()
        told = [
            f"{name or 'quasi-identifiers inside the boxes published so far'}: {_some(rows, k)}"
            for name, rows in corrected
            if rows.any()
        ]
        who = f"{_some(self.records, k)} people have cells that must not change and are not what was published"
        return (f"{who} ({'; '.join(told)}); {done}",)

    def keep(
        self, snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy, before: tuple[Codes, Codes]
    ) -> Snapshot:
        """The table with these cells as they were published.

        before  (sensitive attributes, people), (insensitive columns, people): codes published, in the table's domains
        """
        sensitive, plain, table = snapshot.sensitive.copy(), snapshot.plain.copy(), snapshot.insensitive
        exact = None if snapshot.exact is None else snapshot.exact.copy()
        for name, corrected in self.cells.items():
            rows = np.flatnonzero(corrected)
            if name in snapshot.sensitive_names:
                place = snapshot.sensitive_names.index(name)
                sensitive[place, rows] = before[0][place, number[rows]]
                if exact is not None:
                    exact[place, rows] = sensitive[place, rows]
            elif len(rows):
                place = snapshot.plain_names.index(name)
                plain[place, rows] = before[1][place, number[rows]]
                both = continued(table[name], snapshot.plain_domains[place], plain[place, rows])
                chosen = np.arange(len(snapshot))
                chosen[rows] = len(snapshot) + np.arange(len(rows))
                table = table.set_column(table.column_names.index(name), name, both.take(pa.array(chosen)))
        quasi, rows = snapshot.quasi.copy(), np.flatnonzero(self.quasi)
        lasting = np.flatnonzero([not attribute.changes for attribute in policy.quasi_identifiers.values()])
        for memory, at in _visits(state, number[rows]):
            lo, hi = boxes_of(memory, snapshot.quasi_names, snapshot.domains)
            here, box = np.ix_(lasting, rows[at >= 0]), np.ix_(lasting, at[at >= 0])
            quasi[here] = np.clip(quasi[here], lo[box], hi[box])
        return replace(snapshot, sensitive=sensitive, plain=plain, insensitive=table, quasi=quasi, exact=exact)

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
            for memory, at in _visits(state, number[rows]):
                code = _codes(memory.domains[name], now)
                outside[rows] |= (at >= 0) & ((code < memory.lo[axis, at]) | (code > memory.hi[axis, at]))
            told |= outside
            columns.append((name, outside))
        return [*columns, (None, self.quasi & ~told)]


def _visits(state: State, people: NDArray[np.int64]) -> Iterator[tuple[Memory, Codes]]:
    """Every release, and the class that each of these people had in it, -1 for none."""
    for release, memory in enumerate(state.releases):
        yield memory, state.path[state.trajectory[people], release]


def _codes(domain: Hierarchy, names: Sequence[str]) -> NDArray[np.int64]:
    """The codes of leaves by name; -1 for what was no leaf then, so that nobody can have had it."""
    place = {name: code for code, name in enumerate(domain.names[0])}
    return np.array([place.get(name, -1) for name in names], np.int64)


def _some(rows: Mask, k: int) -> str:
    count = int(np.count_nonzero(rows))
    return f"{count:,}" if count >= k else f"fewer than {k}"


def _problem(rows: Mask, name: str | None, snapshot: Snapshot) -> Problem | None:
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    who = "1 person has" if count == 1 else f"{count:,} people have"
    what = "" if name else "permanent quasi-identifiers, inside the boxes published so far: "
    where = ""
    if snapshot.row is not None:
        there = np.zeros(int(snapshot.row.max()) + 1, np.bool_)
        there[snapshot.row[rows]] = True
        where = f" ({places(there)})"
    return Problem(f"{what}{who} other values than in an earlier release{where}; {_FIX}", column=name, rows=count)


# Whoever is published on after leaving stays where she was, and may return from further away than a step.
_FIX_MOVED = (
    "correct the cells, or, where people were published on after they left and have returned, publish these as near as "
    "they can be with `corrections: keep`"
)

Floats = NDArray[np.float64]


class Reach(NamedTuple):
    """Where the values of one quasi-identifier can be by now, of the records of people who were published before.

    axis       its place among the quasi-identifiers
    records    these records
    low, high  per such record, the least and the most that all boxes of hers allow
    outside    per such record, whether its value is not between them
    """

    axis: int
    name: str
    records: NDArray[np.int64]
    low: Floats
    high: Floats
    outside: Mask


def reaches(snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> Iterator[Reach]:
    """Of every quasi-identifier that moves by a known step: the ledger has boxes, and each must be in reach.

    number  per record, its person among everybody published before, -1 for newcomers
    """
    known = np.flatnonzero(number >= 0)
    for axis, (name, attribute) in enumerate(policy.quasi_identifiers.items()):
        if not isinstance(attribute.changes, Drift):
            continue
        step = np.array([attribute.changes.by], np.float64)
        now = exact(snapshot.quasi_domains[axis], snapshot.quasi[axis, known])
        low, high = np.full(len(known), -np.inf), np.full(len(known), np.inf)
        for release, memory in enumerate(state.releases):
            at = state.path[state.trajectory[number[known]], release]
            box = worth(memory.domains[name], memory.lo[axis, at], memory.hi[axis, at])
            least, most = reach((box[0][None], box[1][None]), step, len(state.releases) - release)
            low = np.where(at >= 0, np.maximum(low, least[0]), low)
            high = np.where(at >= 0, np.minimum(high, most[0]), high)
        yield Reach(axis, name, known, low, high, (now < low) | (now > high))


def check_moves(snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy) -> None:
    """Refuse values that moved further than the policy says."""
    problems = []
    for there in reaches(snapshot, number, state, policy):
        if count := int(np.count_nonzero(there.outside)):
            who = "1 person has" if count == 1 else f"{count:,} people have"
            message = f"{who} moved further since an earlier release than the policy says; {_FIX_MOVED}"
            problems.append(Problem(message, column=there.name, rows=count))
    if problems:
        raise DataError(problems)


def keep_in_reach(
    snapshot: Snapshot, number: NDArray[np.int64], state: State, policy: Policy
) -> tuple[Snapshot, dict[str, Mask]]:
    """The table, values that moved too far at the nearest place in reach that the domain has, and which they are."""
    quasi, moved = snapshot.quasi.copy(), {}
    for there in reaches(snapshot, number, state, policy):
        domain = snapshot.quasi_domains[there.axis]
        leaves = exact(domain, np.arange(domain.size - int(domain.missing)))
        first = np.searchsorted(leaves, there.low, "left")
        last = np.searchsorted(leaves, there.high, "right") - 1
        some = there.outside & (first <= last)
        rows = there.records[some]
        quasi[there.axis, rows] = np.clip(quasi[there.axis, rows], first[some], last[some])
        mask: Mask = np.zeros(len(snapshot), np.bool_)
        mask[rows] = True
        moved[there.name] = mask
    return replace(snapshot, quasi=quasi), moved


def as_published(
    snapshot: Snapshot, policy: Policy, number: NDArray[np.int64], before: NDArray[np.int32]
) -> tuple[Snapshot, int]:
    """The snapshot with first values, and permanent graded ones, as they were published before, and for how many graded
    ones that is too fine now.

    What was published about a person stays as it was: a node in place of a value that is known hides nothing, and two
    versions of one value would say which row is hers. `number` is the person of each record, -1 for a new one;
    `before` (sensitive attributes, people) what was published.
    """
    snapshot = _first_values(snapshot, policy, number, before)
    graded = [p for p, a in enumerate(policy.sensitive.values()) if a.is_graded and a.stays]
    known = np.flatnonzero(number >= 0)
    if not graded or not len(known) or snapshot.exact is None:
        return snapshot, 0
    sensitive, late = snapshot.sensitive.copy(), np.zeros(len(known), np.bool_)
    for place in graded:
        domain = snapshot.sensitive_domains[place]
        old, value, new = before[place, number[known]], snapshot.exact[place, known], sensitive[place, known]
        # Whoever has another value than was published is left as she is: that is an error, told elsewhere.
        _, fits = coarser(domain, old, value)
        sensitive[place, known] = np.where(fits, old, new)
        late |= fits & (new != old) & nesting(domain, new, old)[0]
    return replace(snapshot, sensitive=sensitive), int(np.count_nonzero(late))


def _first_values(snapshot: Snapshot, policy: Policy, number: NDArray[np.int64], before: NDArray[np.int32]) -> Snapshot:
    """The snapshot in which everybody published before has what was published of values of which the first is kept."""
    kept = [place for place, attribute in enumerate(policy.sensitive.values()) if attribute.values == "first"]
    known = np.flatnonzero(number >= 0)
    if not kept or not len(known):
        return snapshot
    sensitive, exact = snapshot.sensitive.copy(), None if snapshot.exact is None else snapshot.exact.copy()
    for place in kept:
        sensitive[place, known] = before[place, number[known]]
        if exact is not None:
            exact[place, known] = sensitive[place, known]
    return replace(snapshot, sensitive=sensitive, exact=exact)
