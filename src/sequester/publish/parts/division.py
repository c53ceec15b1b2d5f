"""How the people of a large table are divided into parts, once and for good.

A part is a union of boxes of quasi-identifiers that stay with a person, so whoever is published in a part is in it
ever after: no class, pod or lineage crosses parts, and everything that is promised holds of the whole when it holds of
each. Cuts look at how many people there are and at nothing else; who has which sensitive value does not move them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.attacks.attack import Audited
from sequester.domain.codec import spread
from sequester.domain.extend import places
from sequester.domain.hierarchy import Hierarchy
from sequester.engine.engine import PART, read_dealt
from sequester.errors import DataError, Problem
from sequester.ingest.encode import encode
from sequester.ingest.snapshot import Snapshot
from sequester.ledger.part_ledger import Parts
from sequester.ledger.rows import join_hashes, split_hashes
from sequester.policy.model import Policy
from sequester.publish.census import Identified
from sequester.publish.plan import Plan

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]

# Cells of a grid over few attributes, fine enough to cut a hundred million people into parts of a million.
_ATTRIBUTES = 4
_STEPS = 16
# A side with fewer people than this share of a part is not cut off: small parts lose more than they save.
_SMALLEST = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class StepGrid:
    """Cells over some attributes: `edges` are, per attribute, the first codes of its steps, from 0."""

    names: tuple[str, ...]
    edges: tuple[Codes, ...]

    @classmethod
    def over(cls, spread: Mapping[str, Counts]) -> StepGrid:
        """A grid over the attributes with most values, in steps of about as many people; given people per code."""
        chosen = sorted(spread, key=lambda name: (-len(spread[name]), name))[:_ATTRIBUTES]
        return cls(tuple(chosen), tuple(_steps(spread[name]) for name in chosen))

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps per attribute."""
        return tuple(len(edges) for edges in self.edges)

    def steps(self, name: str, codes: Codes) -> Codes:
        """The step of every code of an attribute."""
        edges = self.edges[self.names.index(name)]
        return np.maximum(np.searchsorted(edges, codes, "right") - 1, 0).astype(np.int32)

    def within(self, before: Mapping[str, Hierarchy], now: Mapping[str, Hierarchy]) -> StepGrid:
        """The same cells in later domains, which have more values."""
        pairs = zip(self.names, self.edges, strict=True)
        return StepGrid(self.names, tuple(places(before[name], now[name])[edges] for name, edges in pairs))


@dataclass(frozen=True, eq=False, repr=False)
class Division:
    """The cells of a grid, each in one of `parts` parts."""

    grid: StepGrid
    part: Codes
    parts: int

    def __repr__(self) -> str:
        return f"<Division: {self.parts} parts over {len(self.grid.names)} attributes>"

    @classmethod
    def of(cls, grid: StepGrid, people: Counts, *, most: int) -> Division:
        """Cut the grid until no part has more than `most` people, or cannot be cut; `people` has its shape."""
        part = np.zeros(people.shape, np.int32)
        boxes, parts = [tuple((0, size) for size in people.shape)], 0
        while boxes:
            box = boxes.pop()
            inside = tuple(slice(*side) for side in box)
            cut = _cut(people[inside], most)
            if cut is None:
                part[inside] = parts
                parts += 1
                continue
            axis, at = cut
            first, last = box[axis]
            for side in ((first + at, last), (first, first + at)):
                boxes.append((*box[:axis], side, *box[axis + 1 :]))
        return cls(grid, part, parts)

    def part_of(self, codes: Mapping[str, Codes]) -> Codes:
        """The part of every record, by its codes of the attributes of the grid."""
        steps = [self.grid.steps(name, codes[name]) for name in self.grid.names]
        return self.part[tuple(steps)] if steps else np.zeros(len(next(iter(codes.values()))), np.int32)

    def within(self, before: Mapping[str, Hierarchy], now: Mapping[str, Hierarchy]) -> Division:
        """The same division in later domains."""
        return Division(self.grid.within(before, now), self.part, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the ledger."""
        return {
            "names": list(self.grid.names),
            "edges": [edges.tolist() for edges in self.grid.edges],
            "part": self.part.ravel().tolist(),
            "parts": self.parts,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`."""
        grid = StepGrid(tuple(raw["names"]), tuple(np.array(edges, np.int32) for edges in raw["edges"]))
        return cls(grid, np.array(raw["part"], np.int32).reshape(grid.shape), int(raw["parts"]))


def _steps(people: Counts) -> Codes:
    """The first codes of steps with about as many people each."""
    before = np.concatenate([[0], np.cumsum(people)[:-1]])
    step = before * _STEPS // max(int(people.sum()), 1)
    return np.flatnonzero(np.diff(step, prepend=-1) > 0).astype(np.int32)


def _cut(people: Counts, most: int) -> tuple[int, int] | None:
    """Where to cut a box of cells: the axis and the step that begins the upper side; None to leave it whole.

    The most even cut of each axis; among those that are nearly as even as the best, of the axis with most steps left.
    """
    total = int(people.sum())
    if total <= most:
        return None
    found: list[tuple[int, int, int, int]] = []
    for axis, steps in enumerate(people.shape):
        if steps < 2:
            continue
        below = np.cumsum(people.sum(axis=tuple(place for place in range(people.ndim) if place != axis)))[:-1]
        at = int(np.argmin(np.abs(2 * below - total)))
        smaller = int(min(below[at], total - below[at]))
        if smaller >= max(_SMALLEST * most, 1):
            found.append((smaller, steps, axis, at + 1))
    if not found:
        return None
    even = max(smaller for smaller, *_ in found)
    _, _, axis, at = max((one for one in found if 4 * one[0] >= 3 * even), key=lambda one: (one[1], one[0], -one[2]))
    return axis, at


def codes_of(names: Sequence[str], codes: Codes) -> dict[str, Codes]:
    """Rows of codes by the names of their attributes."""
    return dict(zip(names, codes, strict=True))


_HIGH, _LOW, _DIGEST = "high", "low", "digest"


@dataclass(frozen=True, eq=False, repr=False)
class Coder:
    """Codes some rows of a table; every cell is checked once more on the way."""

    errand: Errand

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The same rows, dealt."""
        errand = self.errand
        snapshot = encode(rows, errand.policy, hierarchies=errand.domains)
        people = Identified.of(errand.parts.open(0), snapshot, errand.policy)
        high, low = split_hashes(people.hashes)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            PART: pa.array(errand.division.part_of(codes_of(snapshot.quasi_names, snapshot.quasi))),
            _HIGH: pa.array(high),
            _LOW: pa.array(low),
            _DIGEST: pa.array(people.digests),
        }
        for mark, codes, domains in (
            ("q", snapshot.quasi, snapshot.quasi_domains),
            ("s", snapshot.sensitive, snapshot.sensitive_domains),
        ):
            for place, (row, domain) in enumerate(zip(codes, domains, strict=True)):
                columns[f"{mark}{place}"] = narrow(row, domain.size)
        for place, name in enumerate(snapshot.plain_names):
            columns[f"p{place}"] = spread(snapshot.insensitive[name])
        return pa.table(columns)


def twins(errand: Errand, count: int) -> DataError:
    """The error for people who are in the table twice, or in two parts."""
    names = ", ".join(errand.division.grid.names)
    who = "1 person is" if count == 1 else f"{count:,} people are"
    message = (
        f"{who} in the table twice, or with other values of {names} than when first published; correct the rows, or "
        "put back what does not change"
    )
    return DataError(Problem(message, column=errand.policy.person, rows=count))


def identified(errand: Errand, part: int) -> Identified:
    """The people of a part, by their hashes: whatever order their rows came in, it is the same."""
    rows = read_dealt(errand.place("dealt"), part)
    rows = _no_rows(errand.policy) if rows is None else rows.combine_chunks()
    high, low = rows[_HIGH].to_numpy(), rows[_LOW].to_numpy()
    order = np.lexsort((low, high))
    rows = rows.take(pa.array(order))
    high, low = high[order], low[order]
    if again := int(np.count_nonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))):
        raise twins(errand, again)
    hashes = join_hashes(high, low)
    return Identified(_snapshot(errand, rows, hashes), hashes, hashes, rows[_DIGEST].to_numpy())


def _no_rows(policy: Policy) -> pa.Table:
    """Nobody, dealt: of a part whose people have all left."""
    kinds = {_HIGH: pa.uint64(), _LOW: pa.uint64(), _DIGEST: pa.int64()}
    for mark, names in (("q", policy.quasi_identifiers), ("s", policy.sensitive)):
        kinds |= {f"{mark}{place}": pa.int32() for place in range(len(names))}
    kinds |= {f"p{place}": pa.string() for place in range(len(policy.insensitive))}
    return pa.schema(kinds.items()).empty_table()


def _snapshot(errand: Errand, rows: pa.Table, hashes: pa.Array) -> Snapshot:
    from sequester.domain.plain import plain_codes

    policy, domains = errand.policy, errand.domains
    quasi, sensitive, plain = tuple(policy.quasi_identifiers), tuple(policy.sensitive), policy.insensitive
    cells = pa.table({name: rows[f"p{place}"] for place, name in enumerate(plain)})
    coded = [plain_codes(cells[name], domains[name])[1] for name in plain]
    codes = _codes(rows, "s", len(sensitive))
    return Snapshot(
        quasi_names=quasi,
        quasi=_codes(rows, "q", len(quasi)),
        quasi_domains=tuple(domains[name] for name in quasi),
        sensitive_names=sensitive,
        sensitive=codes,
        sensitive_domains=tuple(domains[name] for name in sensitive),
        person=hashes,
        insensitive=cells,
        plain=np.array(coded, np.int32).reshape(len(plain), rows.num_rows),
        plain_domains=tuple(domains[name] for name in plain),
        exact=codes,
    )


def _codes(rows: pa.Table, mark: str, count: int) -> NDArray[np.int32]:
    codes = np.empty((count, rows.num_rows), np.int32)
    for place in range(count):
        codes[place] = rows[f"{mark}{place}"].to_numpy()
    return codes


Between = Literal["dealt", "recorded", "rows", "people", "written"]
"""Rows that are dealt out; those for the ledger, a folder per part; those to be published, a file per part; hashes of
everybody ever in a part, a file per part; and the files of the release."""


@dataclass(frozen=True, eq=False, repr=False)
class Errand:
    """One release to be made.

    plan       of the release, as far as it is known before it is made
    domains    of all columns, with every value that there is
    division   of its people into parts, in these domains
    spill      the private folder for what is in between
    slices     in how many files the release is written
    parts      what the ledger has of them
    """

    policy: Policy
    plan: Plan
    domains: Mapping[str, Hierarchy]
    division: Division
    spill: Path
    slices: int
    parts: Parts
    audited: Audited | None = None

    def place(self, what: Between) -> Path:
        """The folder of what is in between."""
        return self.spill / what


def narrow(codes: NDArray[np.int32], size: int) -> pa.Array:
    """Codes below `size` in as few bytes as they need."""
    kind = np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32
    return pa.array(codes.astype(kind))
