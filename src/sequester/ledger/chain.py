"""Hashes over everything recorded: of a release's rows, of an entry and the one before it, of a log row.

A change anywhere changes the hash of its release, and with it the head of the chain, which plans, exports and the
publisher's own notes remember.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sequester.ledger.rows import Rows
from sequester.ledger.schema import COVERED, TABLES

# Facts of `meta` that never change; the others are about the file, not about the series.
ROOT = ("series", "fingerprint", "policy_text", "created")


def genesis(facts: Mapping[str, str]) -> str:
    """The head of a ledger without releases; of one that goes on from another ledger, that of the other."""
    return facts.get("after_genesis") or root(facts)


def root(facts: Mapping[str, str]) -> str:
    """What a ledger is of, hashed."""
    return _of({name: facts[name] for name in ROOT})


def content(rows: Rows, domains: Mapping[str, str]) -> str:
    """Of all rows of one release, and the domains that are new or changed in it."""
    digest = hashlib.sha256()
    for name in sorted(domains):
        digest.update(_bytes(["domain", name, domains[name]]))
    for table, columns in TABLES.items():
        for column in columns:
            array = np.ascontiguousarray(rows[table][column])
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            # How long the lists of a table without rows would be is not stored.
            shape = list(array.shape) if len(array) else [0]
            digest.update(_bytes([table, column, array.dtype.str, shape]))
            digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def entry(columns: Mapping[str, Any]) -> str:
    """Of one row of `releases`, without what is said later; absent facts are left out, so that columns can be added."""
    return _of({name: columns[name] for name in COVERED if columns.get(name) is not None})


def event(previous: str, columns: Mapping[str, Any]) -> str:
    """Of one row of the log and the hash of the row before."""
    return _of({"previous": previous, **{name: value for name, value in columns.items() if name != "hash"}})


def _of(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(_bytes(facts)).hexdigest()


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"
