"""What is recorded of a large release, part by part, as Parquet beside the ledger.

The rows are those of `schema.TABLES`, for the people of one part; a part is in every respect the ledger of its people,
and is read as one. The entry of the release has a digest of the list of parts, the list a digest of every table of
every part, so the chain covers all of it. Files are written before the entry, under a hidden name, and never changed;
their folder gets its name once the release is published. So one with a hidden name that no entry knows is swept, since
whoever made it died; one with a name that no entry knows is of a newer ledger, and a witness (`evidence.of_parts`).

    SERIES.ledger.parts/.0002.draft                 until release 2 is published
    SERIES.ledger.parts/0002/parts.json             how people are divided, and what there is of each part
    SERIES.ledger.parts/0002/00017/people.parquet   rows of one table and one part
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sequester.drafts import flush, remove
from sequester.errors import LedgerError, Problem
from sequester.ledger import chain
from sequester.ledger.connection import Damaged
from sequester.ledger.evidence import Trouble
from sequester.ledger.key import flush_names
from sequester.ledger.place import Place
from sequester.ledger.rows import Columns, Rows, from_arrow, to_arrow
from sequester.ledger.schema import TABLES
from sequester.ledger.state import Entry, Event
from sequester.ledger.store import Store, Versions
from sequester.regular import bytes_of

LIST = "parts.json"
# Under this name the entry of a release has the digest of its list of parts.
PARTS = "parts"


@dataclass(frozen=True)
class Card:
    """What the list says of one part in one release.

    records, classes  rows published, and their classes
    people            everybody numbered in this part so far, decoys included
    ever              of those, decoys
    tables            digests of its rows, table by table
    """

    part: int
    records: int
    classes: int
    people: int
    ever: int
    tables: Mapping[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class PartList:
    """All parts of one release, and how people are divided, in the domains of that release."""

    cards: tuple[Card, ...]
    division: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<PartList: {len(self.cards)} parts>"

    def to_bytes(self) -> bytes:
        """As it is written; the same for the same parts."""
        raw = {"cards": [asdict(card) for card in self.cards], "division": self.division}
        return json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """What the entry of the release has."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def from_bytes(cls, text: bytes) -> PartList:
        """The reverse of `to_bytes`."""
        raw = json.loads(text)
        return cls(tuple(Card(**card) for card in raw["cards"]), raw["division"])


class Shelf:
    """The folder of parts beside a ledger."""

    def __init__(self, place: Place) -> None:
        if not place.is_file:
            message = "large tables are made in parts, which are kept beside the file of a ledger; use one"
            raise LedgerError(Problem(message, file=str(place)))
        self.folder = place.parts
        self.place = place

    def draft(self, number: int) -> Path:
        """The folder of a release until it is published."""
        return self.folder / f".{number:04d}.draft"

    def of_release(self, entry: Entry) -> Path:
        """The folder of a release, under the name that it has now."""
        draft, known = self.draft(entry.number), entry.tables.get(PARTS)
        is_draft = known is not None and _list_digest(draft) == known
        return draft if is_draft else self.folder / f"{entry.number:04d}"

    def read_list(self, entry: Entry) -> PartList:
        """The parts of a release, if the list is the one that was recorded."""
        try:
            text = bytes_of(self.of_release(entry) / LIST)
        except OSError:
            text = b""
        if hashlib.sha256(text).hexdigest() != entry.tables.get(PARTS):
            raise self.damaged(f"the list of parts of release {entry.number} is not what was recorded, or is gone")
        return PartList.from_bytes(text)

    def lists(self, entries: Sequence[Entry]) -> list[PartList]:
        """Of all releases, in order."""
        refuse_readable(self.folder, "the parts of the ledger; make their folder yours alone with `chmod 700`")
        return [self.read_list(entry) for entry in entries]

    def troubles(self, entries: Sequence[Entry]) -> list[Trouble]:
        """Lists of parts that are not what was recorded, or are gone."""
        found = []
        for entry in entries:
            try:
                self.read_list(entry)
            except LedgerError as error:
                problem = error.problems[0]
                found.append(Trouble(f"parts of release {entry.number}", problem.message, str(self.folder)))
        return found

    def put(self, number: int, made: Path, listed: PartList) -> None:
        """Move the parts of a release here, all on disk when this returns; `made` has a folder per part. OSError."""
        place = self.draft(number)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        remove(place)
        (made / LIST).write_bytes(listed.to_bytes())
        # From another disk they are copied, and on this one only then.
        shutil.move(made, place)
        for path in [*place.rglob("*"), place]:
            path.chmod(0o700 if path.is_dir() else 0o600)
            flush(path)
        for folder in (self.folder, self.folder.parent):
            flush_names(folder)

    def check_kept(self, entry: Entry, listed: PartList) -> None:
        """Raise LedgerError unless the parts of a release are here, on the disk, as they are about to be recorded."""

        def check(card: Card) -> None:
            part = PartStore(self, card.part, [entry], [card], {})
            part.check_rows(part.entries())

        try:
            self.read_list(entry)
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                for _ in pool.map(check, listed.cards):
                    pass
            return
        except Damaged:
            message = (
                f"the parts of release {entry.number} are not what was just written, though nothing was said to have "
                "failed. Nothing was recorded or published; see the disk"
            )
        raise LedgerError(Problem(message, file=str(self.folder)))

    def show(self, entry: Entry) -> None:
        """Give the parts of a published release their name; a folder that has it is of a ledger that was lost."""
        draft, place = self.of_release(entry), self.folder / f"{entry.number:04d}"
        # Until the next command tries again they are found under the name that they have.
        with contextlib.suppress(OSError):
            if draft != place:
                if place.exists():
                    place.rename(place.with_name(f"{place.name}.lost-{secrets.token_hex(4)}"))
                draft.rename(place)
                flush_names(self.folder)

    def sweep(self, entries: Sequence[Entry]) -> None:
        """Remove what belongs to no release: whoever put it here died, or what it was for was withdrawn."""
        for entry in entries:
            if entry.status == "published":
                self.show(entry)
        kept = {self.of_release(entry) for entry in entries}
        for draft in self.folder.glob(".*.draft") if self.folder.is_dir() else ():
            if draft not in kept:
                remove(draft)

    def damaged(self, why: str) -> LedgerError:
        """The error for parts that are not what was recorded."""
        message = f"{why}; put the folder back from where ledger and parts were"
        return Damaged(Problem(message, file=str(self.folder)))


def _list_digest(folder: Path) -> str | None:
    """Of the list of parts in a folder; None where there is none."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(bytes_of(folder / LIST)).hexdigest()
    return None


def refuse_readable(folder: Path, what: str) -> None:
    """Stop where others than the owner may enter a private folder, or list it."""
    if os.name == "posix" and folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        raise LedgerError(Problem(f"others can read {what}", file=str(folder)))


def is_parted(entries: Sequence[Entry]) -> bool:
    """Whether a series is kept in parts."""
    return bool(entries) and PARTS in entries[-1].tables


def write_rows(folder: Path, rows: Rows) -> dict[str, str]:
    """Write the rows of one part and one release; returns their digests. OSError where there is no room."""
    # Whoever was at it before may have died, on a cluster.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    for table, columns in rows.items():
        if len(next(iter(columns.values()))):
            stored = to_arrow(columns, 0).drop_columns("release")
            place = folder / f"{table}.parquet"
            place.touch(0o600)
            parquet.write_table(_flat(stored), place, compression="zstd", use_dictionary=False)
    return {table: chain.of_table(table, columns) for table, columns in rows.items()}


def _flat(table: pa.Table) -> pa.Table:
    """Lists of one length as columns of their own, which Parquet packs several times closer."""
    columns: dict[str, pa.Array] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_large_list(column.type):
            columns[name] = column
            continue
        cells = column.combine_chunks()
        wide = len(cells.values) // max(len(cells), 1)
        values = cells.values.to_numpy().reshape(len(cells), wide)
        columns |= {f"{name}.{place}": pa.array(np.ascontiguousarray(values[:, place])) for place in range(wide)}
    return pa.table(columns)


def _listed(table: str, stored: pa.Table) -> pa.Table:
    """The reverse of `_flat`."""
    columns: dict[str, pa.Array] = {}
    for name, kind in TABLES[table].items():
        if not kind.endswith("[]"):
            columns[name] = stored[name]
            continue
        parts = [stored[one].to_numpy() for one in stored.column_names if one.startswith(f"{name}.")]
        count, wide = stored.num_rows, len(parts)
        values = np.stack(parts, axis=1).ravel() if parts else np.zeros(0, np.int32)
        ends = pa.array(np.arange(count + 1, dtype=np.int64) * wide)
        columns[name] = pa.LargeListArray.from_arrays(ends, pa.array(values))
    return pa.table(columns)


class _NoFile:
    """In place of a connection: parts are files of their own, and nothing is written to them."""

    read_only = True

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.place = shelf.place

    def damaged(self, why: str = "the rows of a part do not fit together") -> LedgerError:
        """The error for rows that are not what was recorded."""
        return self._shelf.damaged(why)

    def close(self) -> None:
        """Nothing is open."""


class PartStore(Store):
    """The rows of one part, release by release."""

    def __init__(
        self, shelf: Shelf, part: int, entries: Sequence[Entry], cards: Sequence[Card], versions: Versions
    ) -> None:
        super().__init__(_NoFile(shelf))  # type: ignore[arg-type]
        self._shelf, self._versions = shelf, versions
        self._folders = {entry.number: shelf.of_release(entry) / f"{part:05d}" for entry in entries}
        self._entries = [
            replace(
                entry,
                records=card.records,
                classes=card.classes,
                people=card.people,
                tables={**card.tables, chain.DOMAINS: entry.tables[chain.DOMAINS]},
                summary={"pods": {"ever": card.ever}},
            )
            for entry, card in zip(entries, cards, strict=True)
        ]

    def entries(self) -> list[Entry]:
        """Its releases: those of the series, with the numbers of this part."""
        return self._entries

    def events(self) -> list[Event]:
        """The log is the ledger's."""
        return []

    def versions(self, entries: Sequence[Entry] | None = None) -> Versions:
        """The domains of the series, which its ledger has compared."""
        return self._versions

    def strays(self, table: str, releases: int) -> int:
        """None: what no release knows of is swept."""
        return 0

    def rows(self, entry: Entry, tables: Sequence[str], *, compare: bool = True) -> Rows:
        """Rows of one release; they are what was recorded, unless nobody asks for that."""
        found = {table: self._read(table, entry) for table in tables}
        for table, columns in found.items() if compare else ():
            self._refuse_changed(entry, table, same=chain.fits(entry.tables, table, columns))
        return found

    def by_release(self, table: str, entries: Sequence[Entry]) -> list[Columns]:
        """Rows of all releases, one after the other; they are what was recorded."""
        if table == "people" and self._people is not None:
            return self._people[1]
        found = [self.rows(entry, (table,))[table] for entry in entries]
        if table == "people":
            self._people = ("", found)
        return found

    def _read(self, table: str, entry: Entry) -> Columns:
        path = self._folders[entry.number] / f"{table}.parquet"
        wide = {"quasi": len(entry.quasi), "sensitive": len(entry.sensitive), "insensitive": len(entry.insensitive)}

        def read() -> Columns:
            # A table without rows has no file; its digest says whether that is right.
            stored = _listed(table, parquet.read_table(path)) if path.is_file() else _nothing(table)
            return from_arrow(table, stored, **wide)

        try:
            return self.decode(read)
        except (OSError, pa.ArrowException):
            failure = self._shelf.damaged(f"rows of release {entry.number} cannot be read")
        raise failure


def _nothing(table: str) -> pa.Table:
    kinds = {"INTEGER": pa.int32(), "BIGINT": pa.int64(), "UBIGINT": pa.uint64()}
    empty = {
        name: pa.array([], pa.large_list(kinds[kind[:-2]]) if kind.endswith("[]") else kinds[kind])
        for name, kind in TABLES[table].items()
    }
    return pa.table(empty)
