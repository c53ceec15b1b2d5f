"""Whether a ledger is what was written: every hash, every seal, every sum.

Hashes tell that something was changed; the sums tell that what was recorded makes sense: members are as many as rows,
their values are the published ones, nobody's past was rewritten. Problems name releases and counts, never values or
people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.errors import LedgerError
from sequester.ledger import aliases, chain
from sequester.ledger.domains import from_json, lost_leaves
from sequester.ledger.key import Key
from sequester.ledger.life import release_hash
from sequester.ledger.parts import PartStore, Shelf, is_parted
from sequester.ledger.rows import Columns, Rows, count_cells, join_hashes, joining_values
from sequester.ledger.schema import TABLES
from sequester.ledger.state import Entry, Verification
from sequester.ledger.store import Store, seal_of_event


def verify(
    store: Store, *, facts: Mapping[str, str], around: Callable[[Sequence[Entry]], Sequence[str]] | None = None
) -> Verification:
    """Everything that is wrong with a ledger that can be read, and, by `around`, with what must agree with it."""
    entries = store.entries()
    problems = [*chained(store, entries, facts), *_strays(store, len(entries)), *_contents(store, entries)]
    problems += aliases.problems(store, store.events())
    problems += around(entries) if around is not None else ()
    head = entries[-1].hash if entries else chain.genesis(facts)
    return Verification(len(entries), entries[-1].persons if entries else 0, head, tuple(problems))


def chained(store: Store, entries: Sequence[Entry], facts: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with list, log and meta: each row is chained to the one before, and sealed."""
    yield from facts_problems(facts, store.key)
    yield from _chain(store, entries, chain.genesis(facts))
    yield from _log(store, entries)


def facts_problems(facts: Mapping[str, str], key: Key | None) -> Iterator[str]:
    """Whether what the ledger says about itself has its seal."""
    if key is not None and facts.get(chain.SEAL) != key.sign("meta", chain.facts_to_seal(facts)).hex():
        yield "what the ledger says about itself was changed"


def _chain(store: Store, entries: Sequence[Entry], genesis: str) -> Iterator[str]:
    """Each entry is the next, is chained to the one before, and is sealed."""
    previous, key = genesis, store.key
    for place, (entry, columns) in enumerate(zip(entries, store.listing(), strict=True), 1):
        if entry.number != place:
            yield f"release {place} is missing from the list"
        if entry.previous != previous:
            yield f"release {place} is not chained to the one before it"
        if chain.entry(columns) != entry.hash or (columns["tables"] and chain.content(entry.tables) != entry.content):
            yield f"release {place}: the entry was changed"
        if key is not None and key.sign("entry", entry.hash.encode()).hex() != entry.seal:
            yield f"release {place}: the entry was not made with this key"
        if entry.status != "published" and (entry.status != "begun" or place < len(entries)):
            yield f"release {place}: the status is not one that it can have"
        previous = entry.hash


def _log(store: Store, entries: Sequence[Entry]) -> Iterator[str]:
    """The log is chained and sealed, and has seen what the list of releases says, and no other release."""
    previous, key = "", store.key
    begun: dict[str, str] = {}
    listed = {(entry.number, entry.hash) for entry in entries}
    for place, event in enumerate(store.events(), 1):
        if event.number != place or chain.event(previous, asdict(event)) != event.hash:
            yield f"row {place} of the log was changed"
        elif key is not None and event.seal != seal_of_event(key, event.hash):
            yield f"row {place} of the log was not made with this key"
        previous = event.hash
        if event.action in ("begun", "published", "withdrawn"):
            begun[event.detail] = event.action
        if (known := release_hash(event)) is not None and (event.release, known) not in listed:
            yield f"row {place} of the log withdraws a release that is not in the list"
    for entry in entries:
        if begun.pop(entry.hash, None) != entry.status:
            yield f"release {entry.number}: the log does not know it as {entry.status}"
    if lost := sum(action != "withdrawn" for action in begun.values()):
        yield f"{lost} releases of the log are missing from the list"


def _strays(store: Store, releases: int) -> Iterator[str]:
    for table in ("domains", *TABLES):
        if stray := store.strays(table, releases):
            yield f"{stray} rows of {table} belong to no release"


def _contents(store: Store, entries: Sequence[Entry]) -> Iterator[str]:
    """What is recorded of every release has its hash, and adds up."""
    if is_parted(entries):
        yield from _parts(store, entries)
        return
    versions = store.versions()
    known = _Known()
    for entry in entries:
        new = versions.get(entry.number, {})
        try:
            rows = store.rows(entry, tuple(TABLES), compare=False)
        except LedgerError:
            yield f"release {entry.number}: the rows do not fit together, so this and later ones are not looked at"
            return
        known_domains = entry.tables.get(chain.DOMAINS) == chain.of_domains(new)
        if not known_domains or not all(chain.fits(entry.tables, table, rows[table]) for table in TABLES):
            yield f"release {entry.number}: what is recorded was changed"
        try:
            for problem in _sensible(store, known.add(entry, rows, new)):
                yield f"release {entry.number}: {problem}"
        except LedgerError:
            yield f"release {entry.number}: what is recorded makes no sense, so later ones are not looked at"
            return
    if twice := known.twice():
        yield f"{twice} people are in the ledger more than once"


def _parts(store: Store, entries: Sequence[Entry]) -> Iterator[str]:
    """The same of every part, each of which is a ledger of its people."""
    shelf, versions = Shelf(store.connection.place), store.versions()
    try:
        store.check_rows(entries)
        lists = shelf.lists(entries)
    except LedgerError as error:
        yield error.problems[0].message
        return
    for cards in zip(*(listed.cards for listed in lists), strict=True):
        part = PartStore(shelf, cards[0].part, entries, cards, versions)
        yield from (f"part {cards[0].part}: {problem}" for problem in _contents(part, part.entries()))


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
        yield from _seats(entry, rows, known=len(old))
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


def _seats(entry: Entry, rows: Rows, *, known: int) -> Iterator[str]:
    """Where there are pods, everybody who is new has a seat, and everybody in the release is in a pod of one class."""
    seats, pods = rows["seats"], rows["pods"]
    if not len(seats["person"]) and not len(pods["person"]):
        return
    if not np.array_equal(seats["person"], np.arange(known, entry.people)):
        yield "not everybody who is new has a seat"
    if any((seats[name] < 0).any() for name in ("type", "seat")) or (seats["decoy"] | 1 != 1).any():
        yield "seats have numbers that no seat has"
    member: Codes = rows["trajectories"]["class"][rows["state"]["trajectory"]]
    here = np.flatnonzero(member >= 0)
    if not np.array_equal(pods["person"], here) or (pods["pod"] < 0).any() or (pods["pod"] >= len(here)).any():
        yield "not everybody in the release is in a pod"
        return
    pod_class = np.full(len(here), -1, np.int32)
    pod_class[pods["pod"]] = member[here]
    if (pod_class[pods["pod"]] != member[here]).any():
        yield "a pod is in several classes"


def _boxes(entry: Entry, classes: Columns, domains: Sequence[Hierarchy]) -> Iterator[str]:
    lo, hi = classes["lo"].T, classes["hi"].T
    for name, low, high, domain in zip(entry.quasi, lo, hi, domains, strict=True):
        if wrong := int(np.count_nonzero((low < 0) | (low > high) | (high >= domain.size))):
            yield f"{wrong} boxes are outside the domain of '{name}'"
