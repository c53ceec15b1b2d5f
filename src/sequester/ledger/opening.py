"""Making, finding and opening a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from sequester.errors import LedgerError, Problem
from sequester.ledger import schema
from sequester.ledger.connection import Connection, Encrypted
from sequester.ledger.duck import DuckFile, has_log, new_file
from sequester.ledger.key import Key
from sequester.ledger.place import Place
from sequester.ledger.postgres import Postgres, new_schema
from sequester.ledger.store import Store
from sequester.ledger.verify import facts_problems

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
        _refuse_other_version(connection, facts, key)
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


def _refuse_other_version(connection: Connection, facts: Mapping[str, str], key: Key | None) -> None:
    if facts["schema"] == str(schema.VERSION):
        return
    older = facts["schema"].isdecimal() and int(facts["schema"]) < schema.VERSION
    if older and key is not None and (changed := [*facts_problems(facts, key)]):
        raise connection.damaged("; ".join(changed))
    written, fix = ("an older", "open it with that version") if older else ("a newer", "upgrade the package")
    message = f"the ledger was written by {written} Sequester; {fix}"
    raise LedgerError(Problem(message, file=str(connection.place)))
