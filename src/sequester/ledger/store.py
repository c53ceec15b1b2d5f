"""Reading and writing the rows of an open ledger; rows that make no sense are damage."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import LedgerError, SequesterError
from sequester.ledger import chain, schema
from sequester.ledger.connection import Connection, Damaged
from sequester.ledger.domains import from_json
from sequester.ledger.key import Key
from sequester.ledger.rows import ORDER, Columns, Rows, from_arrow, to_arrow
from sequester.ledger.state import Entry, Event
from sequester.log import tell

Result = TypeVar("Result")
Versions = dict[int, dict[str, str]]

_NONSENSE = (ValueError, KeyError, TypeError, IndexError, AttributeError, AssertionError, OverflowError)


class Store:
    """The tables of one open ledger. What is written is sealed with the key; without it nothing is."""

    def __init__(self, connection: Connection, key: Key | None = None) -> None:
        self.connection = connection
        self.key = key
        self._people: tuple[str, list[Columns]] | None = None

    def decode(self, read: Callable[[], Result]) -> Result:
        """Read something; if it makes no sense, the ledger is damaged."""
        try:
            return read()
        except SequesterError:
            raise
        except _NONSENSE:
            failure = self.connection.damaged()
        raise failure

    def facts(self) -> dict[str, str]:
        """What `meta` says."""
        return dict(self.connection.execute("SELECT fact, value FROM meta"))

    def state_facts(self, facts: Mapping[str, str]) -> None:
        """All of `meta`, sealed, in the current transaction."""
        self.connection.execute("DELETE FROM meta")
        sealed = {**facts, chain.SEAL: need(self.key).sign("meta", chain.facts_to_seal(facts)).hex()}
        self.connection.insert("meta", pa.table({"fact": [*sealed], "value": [*sealed.values()]}))

    def listing(self) -> list[dict[str, Any]]:
        """The rows of `releases` as they are stored."""
        names = list(schema.RELEASES)
        rows = self.connection.execute(f"SELECT {quoted(names)} FROM releases ORDER BY number")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def entries(self) -> list[Entry]:
        """The same, read."""
        rows = self.listing()
        return self.decode(lambda: [to_entry(row) for row in rows])

    def events(self) -> list[Event]:
        """The log."""
        return [Event(*row) for row in self.connection.execute(f"SELECT {quoted(schema.LOG)} FROM log ORDER BY number")]

    def versions(self, entries: Sequence[Entry] | None = None) -> Versions:
        """Per release, the domains that are new or changed in it, as text; given the entries, compared with them."""
        versions: Versions = {}
        rows = self.connection.execute("SELECT release, attribute, json FROM domains ORDER BY release, attribute")
        for number, name, text in rows:
            versions.setdefault(number, {})[name] = text
        if entries is not None and not versions.keys() <= {entry.number for entry in entries}:
            raise self.connection.damaged(f"rows of {chain.DOMAINS} belong to no release")
        for entry in entries or ():
            same = entry.tables.get(chain.DOMAINS) == chain.of_domains(versions.get(entry.number, {}))
            self._refuse_changed(entry, chain.DOMAINS, same=same)
        return versions

    def rows(self, entry: Entry, tables: Sequence[str], *, compare: bool = True) -> Rows:
        """Rows of one release; they are what was recorded, unless nobody asks for that."""
        return {table: self._rows_of(entry, table, compare=compare) for table in tables}

    def _rows_of(self, entry: Entry, table: str, *, compare: bool) -> Columns:
        sql = f"SELECT {quoted(schema.TABLES[table])} FROM {table} WHERE release = ?"

        def read(order: str, *, compare: bool) -> Columns:
            stored = self.connection.table(sql + order, [entry.number])
            columns = self.decode(lambda: _arrays(table, stored, entry))
            if compare:
                self._refuse_changed(entry, table, same=chain.fits(entry.tables, table, columns))
            return columns

        if compare and self.connection.keeps_order:
            # To sort takes longer than all the rest; the digest tells whether that was needed.
            with contextlib.suppress(LedgerError):
                return read("", compare=True)
        return read(f" ORDER BY {quoted(ORDER[table])}", compare=compare)

    def by_release(self, table: str, entries: Sequence[Entry]) -> list[Columns]:
        """Rows of all releases, one after the other; they are what was recorded."""
        if table == "people" and self._people is not None and self._people[0] == entries[-1].hash:
            return self._people[1]
        releases = self._all_rows(table, entries)
        if table == "people":
            # Recognising, checking and recording all need everybody: read once, and the rows are never changed.
            self._people = (entries[-1].hash, releases)
        return releases

    def _all_rows(self, table: str, entries: Sequence[Entry]) -> list[Columns]:
        columns, order = quoted(schema.TABLES[table]), quoted(ORDER[table])
        sql = f"SELECT release, {columns} FROM {table}"
        if self.connection.keeps_order:
            # Sorting all releases takes longer the more there are; the digests tell whether that was needed.
            with contextlib.suppress(LedgerError):
                return self._compared(table, self.connection.table(sql), entries)
        return self._compared(table, self.connection.table(f"{sql} ORDER BY release, {order}"), entries)

    def _compared(self, table: str, stored: pa.Table, entries: Sequence[Entry]) -> list[Columns]:
        """Rows by release, if they are those that were recorded."""
        releases = self.decode(lambda: _split(table, stored, entries[-1]))
        for entry, rows in zip(entries, releases, strict=True):
            self._refuse_changed(entry, table, same=chain.fits(entry.tables, table, rows))
        return releases

    def _refuse_changed(self, entry: Entry, table: str, *, same: bool) -> None:
        """Stop where rows are not those that were recorded."""
        if not same:
            raise self.connection.damaged(f"what is recorded of release {entry.number} was changed ({table})")

    def strays(self, table: str, releases: int) -> int:
        """Rows of a table that belong to no release."""
        sql = f"SELECT count(*) FROM {table} WHERE release IS NULL OR release < 1 OR release > ?"
        return int(self.connection.execute(sql, [releases])[0][0])

    def append(self, columns: Mapping[str, Any], rows: Rows, domains: Mapping[str, str]) -> None:
        """Everything about one release, in the current transaction."""
        number = columns["number"]
        for table, arrays in rows.items():
            self.connection.insert(table, to_arrow(arrays, number))
        for name, text in domains.items():
            self.connection.execute("INSERT INTO domains VALUES (?, ?, ?)", [number, name, text])
        marks = ", ".join("?" for _ in columns)
        self.connection.execute(f"INSERT INTO releases ({quoted(columns)}) VALUES ({marks})", list(columns.values()))

    def check_kept(self, entry: Entry) -> None:
        """Raise LedgerError unless all that was written about a release is there, to be asked before that is durable.

        A database need not say that it kept less than it was given: a trigger, a rule, a disk may have a say in it.
        """
        missing = ["releases"] if self.entries()[-1:] != [entry] else []
        domains = self.connection.execute("SELECT attribute, json FROM domains WHERE release = ?", [entry.number])
        missing += [] if entry.tables[chain.DOMAINS] == chain.of_domains(dict(domains)) else [chain.DOMAINS]
        for table in schema.TABLES:
            try:
                self.rows(entry, (table,))
            except Damaged:
                missing.append(table)
        if missing:
            raise self.connection.not_kept(", ".join(missing))

    def check_rows(self, entries: Sequence[Entry], tables: Sequence[str] = tuple(schema.TABLES)) -> None:
        """Raise LedgerError unless all rows of these releases are what was recorded, and there are none of others."""
        for table in tables:
            if self.strays(table, len(self.entries())):
                raise self.connection.damaged(f"rows of {table} belong to no release")
            for entry in entries:
                self.rows(entry, (table,))

    def remove(self, number: int) -> None:
        """Everything about one release, in the current transaction."""
        for table in ("domains", *schema.TABLES):
            self.connection.execute(f"DELETE FROM {table} WHERE release = ?", [number])
        self.connection.execute("DELETE FROM releases WHERE number = ?", [number])

    def record(self, action: str, release: int | None, detail: str) -> None:
        """One more row of the log, in the current transaction."""
        key = need(self.key)
        last = self.connection.execute("SELECT number, hash FROM log ORDER BY number DESC LIMIT 1")
        number, previous = last[0] if last else (0, "")
        row: dict[str, Any] = {
            "number": number + 1,
            "at": now(),
            "action": action,
            "release": release,
            "detail": detail,
        }
        row["hash"] = chain.event(previous, row)
        row["seal"] = seal_of_event(key, row["hash"])
        self.connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", list(row.values()))
        kept = self.connection.execute(f"SELECT {quoted(schema.LOG)} FROM log WHERE number = ?", [number + 1])
        if [*map(tuple, kept)] != [tuple(row.values())]:
            raise self.connection.not_kept("log")
        tell("ledger", f"records: {action}", release=release, row=number + 1)


def seal_of_event(key: Key, digest: str) -> str:
    """The seal of a row of the log."""
    return key.sign("log", digest.encode()).hex()


def need(key: Key | None) -> Key:
    """A key without which nothing is written."""
    if key is None:
        raise LedgerError("this needs the key of the ledger; it was opened without")
    return key


def to_entry(columns: Mapping[str, Any]) -> Entry:
    """A row of `releases`, read."""
    fields = dict(columns)
    fields["files"] = fields["files"] or "{}"
    for name in ("versions", "summary", "tables", "files"):
        fields[name] = json.loads(fields[name])
    for name in ("quasi", "sensitive", "insensitive"):
        fields[name] = tuple(json.loads(fields[name] or "[]"))
    fields["seed"] = None if fields["seed"] is None else int(fields["seed"])
    return Entry(**fields)


def paths(steps: Sequence[Columns]) -> NDArray[np.int32]:
    """(trajectories, releases): the class in every release, from each release's trajectories and those before them."""
    place = np.arange(len(steps[-1]["parent"]))
    path = np.full((len(place), len(steps)), -1, np.int32)
    for number in range(len(steps) - 1, -1, -1):
        born = place >= 0
        path[born, number] = steps[number]["class"][place[born]]
        place[born] = steps[number]["parent"][place[born]]
    must(bool((place == -1).all()))
    return path


def domains_by_release(versions: Versions, count: int) -> list[dict[str, Hierarchy]]:
    """The domains of all attributes in every release; one that did not change is the same object."""
    domains: list[dict[str, Hierarchy]] = []
    for number in range(1, count + 1):
        new = {name: from_json(text) for name, text in versions.get(number, {}).items()}
        domains.append({**(domains[-1] if domains else {}), **new})
    return domains


def latest(versions: Versions) -> dict[str, str]:
    """The domains of the last release, as text."""
    texts: dict[str, str] = {}
    for number in sorted(versions):
        texts.update(versions[number])
    return texts


def must(fits: bool) -> None:
    """What was written this way must be found this way."""
    if not fits:
        raise ValueError("rows do not fit together")


def quoted(names: Sequence[str] | Mapping[str, Any]) -> str:
    """Names of columns for a statement."""
    return ", ".join(f'"{name}"' for name in names)


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _arrays(table: str, stored: pa.Table, entry: Entry) -> Columns:
    return from_arrow(
        table,
        stored,
        quasi=len(entry.quasi),
        sensitive=len(entry.sensitive),
        insensitive=len(entry.insensitive),
    )


def _split(table: str, stored: pa.Table, last: Entry) -> list[Columns]:
    columns, number = _arrays(table, stored, last), stored["release"].to_numpy()
    must(len(number) == 0 or bool((np.diff(number) >= 0).all() and number[0] >= 1 and number[-1] <= last.number))
    ends = np.searchsorted(number, np.arange(1, last.number + 2))
    return [
        {name: array[ends[place] : ends[place + 1]] for name, array in columns.items()} for place in range(last.number)
    ]
