"""Reading and writing the rows of an open ledger; rows that make no sense are damage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import SequesterError
from sequester.ledger import chain, schema
from sequester.ledger.connection import Connection
from sequester.ledger.domains import from_json
from sequester.ledger.rows import Columns, Rows, from_arrow, join_hashes, to_arrow
from sequester.ledger.state import Entry, Event

Result = TypeVar("Result")
Versions = dict[int, dict[str, str]]

_NONSENSE = (ValueError, KeyError, TypeError, IndexError, AttributeError, AssertionError, OverflowError)


class Store:
    """The tables of one open ledger."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

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

    def versions(self) -> Versions:
        """Per release, the domains that are new or changed in it, as text."""
        found: Versions = {}
        rows = self.connection.execute("SELECT release, attribute, json FROM domains ORDER BY release, attribute")
        for number, name, text in rows:
            found.setdefault(number, {})[name] = text
        return found

    def rows(self, entry: Entry, tables: Sequence[str]) -> Rows:
        """Rows of one release."""
        found = {}
        for table in tables:
            sql = f"SELECT {quoted(schema.TABLES[table])} FROM {table} WHERE release = ?"
            stored = self.connection.table(sql, [entry.number])
            found[table] = self.decode(lambda table=table, stored=stored: _arrays(table, stored, entry))  # type: ignore[misc]
        return found

    def by_release(self, table: str, last: Entry) -> list[Columns]:
        """Rows of all releases, one after the other."""
        stored = self.connection.table(f"SELECT release, {quoted(schema.TABLES[table])} FROM {table}")
        return self.decode(lambda: _split(table, stored, last))

    def hashes(self) -> pa.Array:
        """The keyed hash of everybody, by number."""
        stored = self.connection.table("SELECT person, high, low FROM people")

        def read() -> pa.Array:
            must(np.array_equal(stored["person"].to_numpy(), np.arange(len(stored))))
            return join_hashes(stored["high"].to_numpy(), stored["low"].to_numpy())

        return self.decode(read)

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

    def remove(self, number: int) -> None:
        """Everything about one release, in the current transaction."""
        for table in ("domains", *schema.TABLES):
            self.connection.execute(f"DELETE FROM {table} WHERE release = ?", [number])
        self.connection.execute("DELETE FROM releases WHERE number = ?", [number])

    def record(self, action: str, release: int | None, detail: str) -> None:
        """One more row of the log, in the current transaction."""
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
        self.connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", list(row.values()))


def to_entry(columns: Mapping[str, Any]) -> Entry:
    """A row of `releases`, read."""
    found = dict(columns)
    for name in ("versions", "summary"):
        found[name] = json.loads(found[name])
    for name in ("quasi", "sensitive", "insensitive"):
        found[name] = tuple(json.loads(found[name] or "[]"))
    found["seed"] = None if found["seed"] is None else int(found["seed"])
    return Entry(**found)


def paths(steps: Sequence[Columns]) -> NDArray[np.int32]:
    """(trajectories, releases): the class in every release, from each release's trajectories and those before them."""
    place = np.arange(len(steps[-1]["parent"]))
    found = np.full((len(place), len(steps)), -1, np.int32)
    for number in range(len(steps) - 1, -1, -1):
        born = place >= 0
        found[born, number] = steps[number]["class"][place[born]]
        place[born] = steps[number]["parent"][place[born]]
    must(bool((place == -1).all()))
    return found


def domains_by_release(versions: Versions, count: int) -> list[dict[str, Hierarchy]]:
    """The domains of all attributes in every release; one that did not change is the same object."""
    found: list[dict[str, Hierarchy]] = []
    for number in range(1, count + 1):
        new = {name: from_json(text) for name, text in versions.get(number, {}).items()}
        found.append({**(found[-1] if found else {}), **new})
    return found


def latest(versions: Versions) -> dict[str, str]:
    """The domains of the last release, as text."""
    found: dict[str, str] = {}
    for number in sorted(versions):
        found.update(versions[number])
    return found


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
