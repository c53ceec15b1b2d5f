"""The tables of a ledger.

    meta          one row per fact about the series: its name, its policy, when it was created, how to tell a wrong key;
                  sealed with the key as a whole
    log           what happened to the ledger, each row chained to the one before and sealed with the key
    releases      one row per release, chained to the one before by a hash over everything recorded of it, and sealed
    domains       the domain of an attribute, in the releases in which it is new or changed
    classes       the published boxes: first and last leaf of every quasi-identifier, in the domains of that release
    counts        the published values: how often each combination of sensitive values is in each class
    people        everybody, when first published: keyed hash, keyed digests of what must not change, and the codes of
                  her sensitive values, then of her insensitive cells
    trajectories  per release the trajectories after it: the one of the release before that it is part of (-1: of people
                  who are new), and its class (-1: of people who are not in this release)
    state         per release and person, her trajectory: the last release's rows are all that the next one needs
    changes       codes of people in a release that are not those they were first published with
    queue         people held back so far, by keyed hash, and the first release that held them back
    retained      people who left, but are kept in the release
    seats         where pods made it: type and seat of everybody who is new, and whether that is a decoy (1)
    pods          where pods made it: the pod of everybody in the release
    aliases       people who got another id: the keyed hash that they are recorded with, the one of the id that they
                  have now, and the row of the log that says so

Rows of a release are written once, in one transaction. People are numbered from 0 as they are first published, classes
and trajectories from 0 in each release, releases from 1.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 5

# The tables with numbers of one release; the columns are hashed in this order. `release` comes first in each of them.
TABLES: Final[dict[str, dict[str, str]]] = {
    "classes": {"class": "INTEGER", "lo": "INTEGER[]", "hi": "INTEGER[]"},
    "counts": {"class": "INTEGER", "codes": "INTEGER[]", "n": "INTEGER"},
    "people": {"person": "INTEGER", "high": "UBIGINT", "low": "UBIGINT", "digests": "BIGINT[]", "codes": "INTEGER[]"},
    "trajectories": {"trajectory": "INTEGER", "parent": "INTEGER", "class": "INTEGER"},
    "state": {"person": "INTEGER", "trajectory": "INTEGER"},
    "changes": {"person": "INTEGER", "attribute": "INTEGER", "code": "INTEGER"},
    "queue": {"high": "UBIGINT", "low": "UBIGINT", "since": "INTEGER"},
    "retained": {"person": "INTEGER"},
    "seats": {"person": "INTEGER", "type": "INTEGER", "seat": "INTEGER", "decoy": "INTEGER"},
    "pods": {"person": "INTEGER", "pod": "INTEGER"},
}

# Columns of `releases` that a release's hash covers, and their types; status comes later, and the log has it.
COVERED: Final[dict[str, str]] = {
    "number": "INTEGER",
    "name": "VARCHAR",
    "created": "VARCHAR",
    "recipient": "VARCHAR",
    "purpose": "VARCHAR",
    "fingerprint": "VARCHAR",
    "policy_text": "VARCHAR",
    "input_digest": "VARCHAR",
    "output_digest": "VARCHAR",
    "method": "VARCHAR",
    "seed": "VARCHAR",
    "versions": "VARCHAR",
    "summary": "VARCHAR",
    "quasi": "VARCHAR",
    "sensitive": "VARCHAR",
    "classes": "INTEGER",
    "records": "INTEGER",
    "people": "INTEGER",
    "insensitive": "VARCHAR",
    "content": "VARCHAR",
    "previous": "VARCHAR",
    "tables": "VARCHAR",
    "files": "VARCHAR",
}
RELEASES: Final[dict[str, str]] = {**COVERED, "hash": "VARCHAR", "seal": "VARCHAR", "status": "VARCHAR"}
META: Final[dict[str, str]] = {"fact": "VARCHAR", "value": "VARCHAR"}
LOG: Final[dict[str, str]] = {
    "number": "INTEGER",
    "at": "VARCHAR",
    "action": "VARCHAR",
    "release": "INTEGER",
    "detail": "VARCHAR",
    "hash": "VARCHAR",
    "seal": "VARCHAR",
}
ALIASES: Final[dict[str, str]] = {
    "change": "INTEGER",
    "high": "UBIGINT",
    "low": "UBIGINT",
    "now_high": "UBIGINT",
    "now_low": "UBIGINT",
}
DOMAINS: Final[dict[str, str]] = {"release": "INTEGER", "attribute": "VARCHAR", "json": "VARCHAR"}

EVERY_TABLE: Final[dict[str, dict[str, str]]] = {
    "meta": META,
    "log": LOG,
    "releases": RELEASES,
    "domains": DOMAINS,
    "aliases": ALIASES,
    **{name: {"release": "INTEGER", **columns} for name, columns in TABLES.items()},
}


def creation() -> list[str]:
    """The statements that make the tables of an empty ledger."""
    return [f"CREATE TABLE {name} ({_columns(columns)})" for name, columns in EVERY_TABLE.items()]


def _columns(columns: dict[str, str]) -> str:
    return ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
