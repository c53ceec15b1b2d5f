"""Making, finding and opening a ledger, and bringing an older one up to date."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from sequester.errors import LedgerError, Problem
from sequester.ledger import chain, schema
from sequester.ledger.connection import Connection, Encrypted, Outdated
from sequester.ledger.duck import DuckFile, has_log, new_file
from sequester.ledger.key import Key
from sequester.ledger.place import Place
from sequester.ledger.postgres import Postgres, new_schema
from sequester.ledger.store import Store, digests_of, must, seal_of_event
from sequester.ledger.verify import facts_problems, verify
from sequester.ledger.witness import remember

_NEEDED = {"series", "fingerprint", "policy_text", "created", "key_check", "schema"}


def open_store(
    place: Place, key: Key | None, *, read_only: bool, series: str | None, timeout: float
) -> tuple[Store, dict[str, str], bool]:
    """An open ledger, what it says about itself, and whether it is encrypted."""
    left = place.is_file and has_log(place)
    connection, encrypted = _connect(place, key, read_only=read_only, timeout=timeout)
    try:
        facts = _facts(connection)
        _refuse_foreign(facts, key, series, place)
        version = _version(facts, place)
        if version < schema.VERSION and read_only:
            # Whoever has no key only looks, and opens nothing to be written.
            _need_key(key, place)
            connection.close()
            connection, _ = _connect(place, key, read_only=False, timeout=timeout)
            # Another command may have done it while the file was closed.
            version = _version(_facts(connection), place)
            if version < schema.VERSION:
                _migrate(connection, version, key)
            connection.close()
            connection, _ = _connect(place, key, read_only=True, timeout=timeout)
            facts = _facts(connection)
        elif version < schema.VERSION:
            facts = _migrate(connection, version, key)
        store = Store(connection, key)
        if left and not read_only and key is not None:
            with connection.transaction():
                store.record("recovered", None, "the command before did not end in good order")
    except BaseException:
        connection.close()
        raise
    return store, facts, encrypted


@contextlib.contextmanager
def new_store(place: Place, key: Key, *, encrypted: bool) -> Iterator[Store]:
    """A ledger to fill in one transaction; it is there afterwards if all went well and the place is free."""
    with _new(place, key.cipher if encrypted else None) as connection, connection.transaction():
        for statement in schema.creation():
            connection.execute(statement)
        yield Store(connection, key)


def remove_ledger(connection: Connection) -> None:
    """Remove an open ledger, with which nothing was published."""
    if isinstance(connection, Postgres):
        connection.drop()
    else:
        connection.place.file.unlink()


def _new(place: Place, cipher: str | None) -> AbstractContextManager[Connection]:
    if place.is_file:
        return new_file(place, cipher=cipher)
    if cipher is not None:
        message = "a ledger on a server is encrypted by the server, on its disk, and not with the key; leave it out"
        raise LedgerError(Problem(message, file=str(place)))
    return new_schema(place)


def _connect(place: Place, key: Key | None, *, read_only: bool, timeout: float) -> tuple[Connection, bool]:
    if not place.is_file:
        return Postgres(place, read_only=read_only, timeout=timeout), False
    try:
        return DuckFile(place, read_only=read_only, timeout=timeout), False
    except Encrypted:
        if key is None:
            raise
    return DuckFile(place, read_only=read_only, timeout=timeout, cipher=key.cipher), True


def _facts(connection: Connection) -> dict[str, str]:
    connection.refuse_unfit()
    if not connection.has("meta"):
        raise LedgerError(Problem("this is a DuckDB file, but no ledger", file=str(connection.place)))
    facts = Store(connection).facts()
    if not facts.keys() >= _NEEDED:
        raise connection.damaged()
    return facts


def _refuse_foreign(facts: Mapping[str, str], key: Key | None, series: str | None, place: Place) -> None:
    problems = []
    if key is not None and facts["key_check"] != key.check:
        problems.append(Problem("the key is not the one of this ledger", file=str(place)))
    if series is not None and facts["series"] != series:
        message = "this is the ledger of another series; give the policy of that series, or another ledger"
        problems.append(Problem(message, file=str(place)))
    if problems:
        raise LedgerError(problems)


def _version(facts: Mapping[str, str], place: Place) -> int:
    version = int(facts["schema"]) if facts["schema"].isdecimal() else -1
    if not 0 <= version <= schema.VERSION:
        raise LedgerError(Problem("the ledger was written by a newer Sequester; upgrade the package", file=str(place)))
    return version


def _need_key(key: Key | None, place: Place) -> Key:
    if key is None:
        message = "was written by an older Sequester, and is brought up to date with its key"
        raise Outdated(Problem(message, file=str(place)))
    return key


def _migrate(connection: Connection, version: int, key: Key | None) -> dict[str, str]:
    """Bring an older ledger to the shape of this version, all of it or nothing, if it is what was written."""
    key = _need_key(key, connection.place)
    store = Store(connection, key)
    if chain.SEAL in store.facts() and (changed := [*facts_problems(store.facts(), key)]):
        raise connection.damaged("; ".join(changed))
    with connection.transaction():
        for statement in schema.steps_from(version):
            connection.execute(statement)
        facts = {**store.facts(), "schema": str(schema.VERSION)}
        facts |= store.decode(lambda: _digests(store)) if version < 3 else {}
        store.state_facts(facts)
        for event in store.events() if version < 3 else ():
            seal = seal_of_event(key, event.hash)
            connection.execute("UPDATE log SET seal = ? WHERE number = ?", [seal, event.number])
        if problems := verify(store, facts=store.facts()).problems:
            raise LedgerError(Problem(problem, file=str(connection.place)) for problem in problems)
        store.record("migrated", None, f"from version {version} to {schema.VERSION}")
    remember(store, facts["series"])
    return _facts(connection)


def _digests(store: Store) -> dict[str, str]:
    """The digests of releases that were recorded before version 3, as facts."""
    digests, versions = {}, store.versions()
    for entry in store.entries():
        rows, domains = store.rows(entry, tuple(schema.TABLES), compare=False), versions.get(entry.number, {})
        must(chain.old_content(rows, domains) == entry.content)
        digests[digests_of(entry.number)] = json.dumps(chain.digests(rows, domains), sort_keys=True)
    return digests
