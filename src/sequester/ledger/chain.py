"""Hashes over everything recorded: of a release's rows, of an entry and the one before it, of a log row.

A change anywhere changes the hash of its release, and with it the head of the chain, which plans, exports and the
publisher's own notes remember.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sequester.ledger.rows import Columns, Rows
from sequester.ledger.schema import COVERED, TABLES

DOMAINS = "domains"

# Facts of `meta` that never change; the others are about the file, not about the series. The nonce keeps others from
# guessing a policy by the head that its first release shows.
ROOT = ("series", "fingerprint", "policy_text", "created", "nonce")
SEAL = "seal"


def genesis(facts: Mapping[str, str]) -> str:
    """The head of a ledger without releases; of one that goes on from another ledger, that of the other."""
    return facts.get("after_genesis") or root(facts)


def root(facts: Mapping[str, str]) -> str:
    """What a ledger is of, hashed."""
    return _of({name: facts.get(name) for name in ROOT})


def digests(rows: Rows, domains: Mapping[str, str]) -> dict[str, str]:
    """Of every table of one release, so that each can be checked alone, and of the domains new or changed in it."""
    return {DOMAINS: of_domains(domains), **{table: of_table(table, rows[table]) for table in TABLES}}


def content(kept: Mapping[str, str]) -> str:
    """Of everything recorded of one release, by its digests."""
    return _of(kept)


def of_table(table: str, columns: Columns) -> str:
    """Of the rows of one table and one release."""
    return of_columns(table, TABLES[table], columns)


def of_columns(table: str, names: Iterable[str], columns: Columns) -> str:
    """Of some rows of one table."""
    digest = hashlib.sha256()
    for column in names:
        array = np.ascontiguousarray(columns[column])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        # How long the lists of a table without rows would be is not stored.
        shape = list(array.shape) if len(array) else [0]
        digest.update(_bytes([table, column, array.dtype.str, shape]))
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def fits(kept: Mapping[str, str], table: str, columns: Columns) -> bool:
    """Whether rows are those of a release with these digests."""
    return kept.get(table) == of_table(table, columns)


def of_domains(domains: Mapping[str, str]) -> str:
    """Of the domains that are new or changed in one release."""
    return _of(dict(domains))


def entry(columns: Mapping[str, Any]) -> str:
    """Of one row of `releases`, without what is said later; absent facts are left out, so that columns can be added."""
    return _of({name: columns[name] for name in COVERED if columns.get(name) is not None})


def event(previous: str, columns: Mapping[str, Any]) -> str:
    """Of one row of the log and the hash of the row before."""
    covered = {name: value for name, value in columns.items() if name not in ("hash", "seal")}
    return _of({"previous": previous, **covered})


def facts_to_seal(facts: Mapping[str, str]) -> bytes:
    """What the seal of `meta` is over: all of it."""
    return _bytes({name: value for name, value in facts.items() if name != SEAL})


def _of(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(_bytes(facts)).hexdigest()


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"
