"""A ledger as files that any tool can read, and back: Parquet per table, with a manifest of digests.

An export holds all that the ledger holds, in the clear; it does not hold the key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from sequester.drafts import draft_beside
from sequester.errors import LedgerError, Problem
from sequester.ledger import chain, schema
from sequester.ledger.connection import private
from sequester.ledger.key import Key, flush_names
from sequester.ledger.opening import new_store
from sequester.ledger.place import Place
from sequester.ledger.store import Store, quoted
from sequester.ledger.verify import verify
from sequester.regular import bytes_of, digest_of

MANIFEST = "ledger.json"
_FORMAT = 1


def export(store: Store, head: str, folder: Path) -> Path:
    """Write every table and the manifest, whole or not at all."""
    place = folder.resolve()
    if place.exists():
        raise LedgerError(Problem("exists already; choose another place", file=str(folder)))
    reason = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft_beside(place) as staged, private():
            draft = staged / place.name
            draft.mkdir()
            _write(store, head, draft)
            draft.rename(place)
        flush_names(place.parent)
    except OSError as error:
        reason = f"could not be written, nothing was left behind: {error.strerror or 'disk error'}"
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(folder)))
    return folder


def _write(store: Store, head: str, folder: Path) -> None:
    tables = {}
    for name, columns in schema.EVERY_TABLE.items():
        rows = store.connection.table(f"SELECT {quoted(columns)} FROM {name}")
        file = folder / f"{name}.parquet"
        parquet.write_table(rows, file, compression="zstd", use_dictionary=False)
        tables[name] = {"file": file.name, "rows": len(rows), "sha256": digest_of(file)}
    manifest = {"sequester-ledger": _FORMAT, "schema": schema.VERSION, "head": head, "tables": tables}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for file in folder.iterdir():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def import_(folder: Path, place: Place, key: Key, *, encrypted: bool = False, finish: Callable[[Store], None]) -> None:
    """Make a ledger of an export; nothing is left behind when anything in it is not what was exported.

    `finish` sees the ledger before it gets its name, and may refuse it.
    """
    manifest = _manifest(folder)
    tables = _tables(folder, manifest)
    facts = dict(zip(tables["meta"]["fact"].to_pylist(), tables["meta"]["value"].to_pylist(), strict=True))
    if facts.get("key_check") != key.check:
        raise LedgerError(Problem("the key is not the one of this ledger", file=str(folder)))
    with new_store(place, key, encrypted=encrypted) as store:
        for name, rows in tables.items():
            store.connection.insert(name, rows)
        verified = verify(store, facts=facts)
        if verified.problems or verified.head != manifest["head"]:
            problems = verified.problems or ("the last release is not the one of the manifest",)
            raise LedgerError(Problem(problem, file=str(folder)) for problem in problems)
        store.record("imported", None, f"{verified.releases} releases")
        finish(store)


def carry_over(store: Store, facts: Mapping[str, str], place: Place, key: Key, *, encrypted: bool = False) -> None:
    """Make the ledger of a new series that goes on from an open one: every release of that, and these facts.

    Releases, people and log are copied as they are, so that the chain is the same up to here. The log says when, and
    hashes what the new series is.
    """
    genesis = chain.genesis(store.facts())
    with new_store(place, key, encrypted=encrypted) as new:
        for name, columns in schema.EVERY_TABLE.items():
            if name != "meta":
                new.connection.insert(name, store.connection.table(f"SELECT {quoted(columns)} FROM {name}"))
        kept = {**facts, "after_genesis": genesis, "after_releases": str(len(store.entries()))}
        new.state_facts(kept)
        new.record("carried over", None, chain.root(facts))
        new.check_rows(new.entries())


def _manifest(folder: Path) -> dict[str, Any]:
    message = None
    try:
        manifest: dict[str, Any] = json.loads(bytes_of(folder / MANIFEST))
        if manifest["sequester-ledger"] != _FORMAT or manifest["schema"] != schema.VERSION:
            message = "was exported by another version of Sequester; import it with that version, and open it with this"
        elif not {"head", "tables"} <= manifest.keys() or set(manifest["tables"]) != set(schema.EVERY_TABLE):
            message = "does not list the tables of a ledger"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError):
        message = "is not the manifest of an exported ledger"
    if message is not None:
        raise LedgerError(Problem(message, file=str(folder / MANIFEST)))
    return manifest


def _tables(folder: Path, manifest: Mapping[str, Any]) -> dict[str, pa.Table]:
    problems, tables = [], {}
    for name, columns in schema.EVERY_TABLE.items():
        file = folder / f"{name}.parquet"
        try:
            if digest_of(file) != manifest["tables"][name]["sha256"]:
                problems.append(Problem("is not what was exported", file=str(file)))
                continue
            tables[name] = parquet.read_table(file).select(list(columns))
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror or 'disk error'}", file=str(file)))
        except (pa.ArrowException, KeyError, TypeError):
            problems.append(Problem("is not a table of a ledger", file=str(file)))
    if problems:
        raise LedgerError(problems)
    return tables
