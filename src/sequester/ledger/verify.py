"""Whether a ledger is what was written: every hash, every sum, and the data of the releases.

Hashes tell that something was changed; the sums tell that what was recorded makes sense: members are as many as rows,
their values are the published ones, nobody's past was rewritten. Problems name releases and counts, never values or
people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.errors import LedgerError
from sequester.ledger import chain
from sequester.ledger.domains import from_json, lost_leaves
from sequester.ledger.key import Key
from sequester.ledger.rows import Columns, Rows, count_cells, join_hashes, joining_values
from sequester.ledger.schema import TABLES
from sequester.ledger.state import Entry, Verification
from sequester.ledger.store import Store


def verify(
    store: Store, *, genesis: str, key: Key | None, folder: Path | None, carried: int = 0, goes_on: bool = False
) -> Verification:
    """Everything that is wrong with a ledger that can be read.

    The folders of its first `carried` releases, of the series before, may be elsewhere; where another series `goes_on`
    from this one, its folders may be here.
    """
    entries = store.entries()
    problems = [*_chain(store, entries, genesis, key), *_log(store, entries), *_strays(store, len(entries))]
    problems += _contents(store, entries)
    if folder is not None:
        problems += _folders(folder, entries, carried=carried, goes_on=goes_on)
    head = entries[-1].hash if entries else genesis
    return Verification(len(entries), entries[-1].people if entries else 0, head, tuple(problems))


def _chain(store: Store, entries: Sequence[Entry], genesis: str, key: Key | None) -> Iterator[str]:
    """Each entry is the next, is chained to the one before, and is signed."""
    previous = genesis
    for place, (entry, columns) in enumerate(zip(entries, store.listing(), strict=True), 1):
        if entry.number != place:
            yield f"release {place} is missing from the list"
        if entry.previous != previous:
            yield f"release {place} is not chained to the one before it"
        if chain.entry(columns) != entry.hash:
            yield f"release {place}: the entry was changed"
        if key is not None and key.sign("entry", entry.hash.encode()).hex() != entry.seal:
            yield f"release {place}: the entry was not made with this key"
        if entry.status != "published" and (entry.status != "begun" or place < len(entries)):
            yield f"release {place}: the status is not one that it can have"
        previous = entry.hash


def _log(store: Store, entries: Sequence[Entry]) -> Iterator[str]:
    """The log is chained, and has seen what the list of releases says."""
    previous = ""
    seen: dict[str, set[str]] = {"begun": set(), "published": set()}
    for place, event in enumerate(store.events(), 1):
        if event.number != place or chain.event(previous, asdict(event)) != event.hash:
            yield f"row {place} of the log was changed"
        previous = event.hash
        seen.get(event.action, set()).add(event.detail)
    for entry in entries:
        visible = entry.status == "published"
        if entry.hash not in seen["begun"] or visible != (entry.hash in seen["published"]):
            yield f"release {entry.number}: the log does not know it as {'published' if visible else 'begun'}"


def _strays(store: Store, releases: int) -> Iterator[str]:
    for table in ("domains", *TABLES):
        if stray := store.strays(table, releases):
            yield f"{stray} rows of {table} belong to no release"


def _contents(store: Store, entries: Sequence[Entry]) -> Iterator[str]:
    """What is recorded of every release has its hash, and adds up."""
    versions = store.versions()
    known = _Known()
    for entry in entries:
        new = versions.get(entry.number, {})
        try:
            rows = store.rows(entry, tuple(TABLES))
        except LedgerError:
            yield f"release {entry.number}: the rows do not fit together, so this and later ones are not looked at"
            return
        if chain.content(rows, new) != entry.content:
            yield f"release {entry.number}: what is recorded was changed"
        try:
            for problem in _sensible(store, known.add(entry, rows, new)):
                yield f"release {entry.number}: {problem}"
        except LedgerError:
            yield f"release {entry.number}: what is recorded makes no sense, so later ones are not looked at"
            return
    if twice := known.twice():
        yield f"{twice} people are in the ledger more than once"


def _sensible(store: Store, problems: Iterator[str]) -> Iterator[str]:
    """Problems one by one, up to rows that make no sense."""
    while (problem := store.decode(lambda: next(problems, None))) is not None:
        yield problem


class _Known:
    """What the releases so far say, to hold the next one to."""

    def __init__(self) -> None:
        self.domains: dict[str, Hierarchy] = {}
        self.joined: list[Columns] = []
        self.joined_in: list[list[Hierarchy]] = []
        self.trajectory: Codes = np.zeros(0, np.int32)

    def add(self, entry: Entry, rows: Rows, new: Mapping[str, str]) -> Iterator[str]:
        """What does not add up in one more release."""
        before, self.domains = self.domains, {**self.domains, **{name: from_json(text) for name, text in new.items()}}
        if lost_leaves(before, self.domains):
            yield "a domain lost values"
        kept = [self.domains[name] for name in entry.kept_names]
        self.joined.append(rows["people"])
        self.joined_in.append(kept)
        old, self.trajectory = self.trajectory, rows["state"]["trajectory"]
        yield from _people(entry, rows, known=len(old))
        yield from _members(entry, rows, old)
        yield from _boxes(entry, rows["classes"], [self.domains[name] for name in entry.quasi])
        codes, changes = joining_values(self.joined, self.joined_in, kept), rows["changes"]
        codes[changes["attribute"], changes["person"]] = changes["code"]
        sizes = [domain.size for domain in kept]
        if ((codes < 0) | (codes >= np.array(sizes)[:, None])).any():
            yield "cells are outside the domains of their columns"
        member, wide = rows["trajectories"]["class"][self.trajectory], len(entry.sensitive)
        counted = count_cells(member, codes[:wide], sizes[:wide])
        if not all(np.array_equal(counted[name], rows["counts"][name]) for name in counted):
            yield "the published values are not those of the people in the classes"

    def twice(self) -> int:
        """How many hashes are there more than once."""
        if not self.joined:
            return 0
        hashes: pa.Array = join_hashes(
            np.concatenate([rows["high"] for rows in self.joined]),
            np.concatenate([rows["low"] for rows in self.joined]),
        )
        return len(hashes) - len(hashes.unique())


def _people(entry: Entry, rows: Rows, *, known: int) -> Iterator[str]:
    if not np.array_equal(rows["people"]["person"], np.arange(known, entry.people)):
        yield "the people who are new are not numbered one after the other"
    if not np.array_equal(rows["state"]["person"], np.arange(entry.people)):
        yield "not everybody has one trajectory"


def _members(entry: Entry, rows: Rows, before: Codes) -> Iterator[str]:
    """Nobody's past is rewritten, and classes are as large as they say."""
    steps, trajectory = rows["trajectories"], rows["state"]["trajectory"]
    member: Codes = steps["class"][trajectory]
    parents = np.append(before, np.full(len(trajectory) - len(before), -1, np.int32))
    if moved := int(np.count_nonzero(steps["parent"][trajectory] != parents)):
        yield f"{moved} people have another past than in the release before"
    if len(np.unique(trajectory)) != len(steps["parent"]):
        yield "there are trajectories that nobody has"
    size = np.bincount(member[member >= 0], minlength=entry.classes)
    if len(rows["classes"]["class"]) != entry.classes or len(size) != entry.classes or not size.all():
        yield "the classes are not those that people are in"
    if int(size.sum()) != entry.records:
        yield "there are not as many people in the classes as rows"
    if (member[len(before) :] < 0).any():
        yield "people are in the ledger who were not published"
    gone = rows["retained"]["person"]
    if (gone >= len(before)).any() or (member[gone] < 0).any():
        yield "people are retained who were not published before, or are not now"
    if (rows["queue"]["since"] > entry.number).any():
        yield "people wait who have not begun to"


def _boxes(entry: Entry, classes: Columns, domains: Sequence[Hierarchy]) -> Iterator[str]:
    lo, hi = classes["lo"].T, classes["hi"].T
    for name, low, high, domain in zip(entry.quasi, lo, hi, domains, strict=True):
        if wrong := int(np.count_nonzero((low < 0) | (low > high) | (high >= domain.size))):
            yield f"{wrong} boxes are outside the domain of '{name}'"


def _folders(folder: Path, entries: Sequence[Entry], *, carried: int, goes_on: bool) -> Iterator[str]:
    """The data of every published release is what was recorded, and there is no other."""
    places: dict[int, list[Path]] = {}
    for place in sorted(folder.glob("[0-9][0-9][0-9][0-9]*-*")) if folder.is_dir() else []:
        if place.name.split("-")[0].isdecimal():
            places.setdefault(int(place.name.split("-")[0]), []).append(place)
    for entry in entries:
        found = places.pop(entry.number, [])
        data = [file for place in found for file in sorted(place.glob("data.*"))]
        if not found:
            if entry.status == "published" and entry.number > carried:
                yield f"release {entry.number}: its folder is not there"
        elif len(data) != 1 or _digest(data[0]) != entry.output_digest:
            yield f"release {entry.number}: the data in its folder are not what was recorded"
    for number in sorted(places) if not goes_on else ():
        yield f"release {number} has a folder, but the ledger does not know it"


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
