"""Making, finding and opening the file of a ledger, and bringing an older one up to date."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from sequester.errors import LedgerError, Problem
from sequester.ledger import schema
from sequester.ledger.connection import Connection, Encrypted
from sequester.ledger.key import Key, flush_names
from sequester.ledger.store import Store

_NEEDED = {"series", "fingerprint", "policy_text", "created", "key_check", "schema"}


def open_store(
    path: Path, key: Key | None, *, read_only: bool, series: str | None, timeout: float
) -> tuple[Store, dict[str, str], bool]:
    """An open ledger, what it says about itself, and whether it is encrypted."""
    left = _has_log(path)
    connection, encrypted = _connect(path, key, read_only=read_only, timeout=timeout)
    try:
        facts = _facts(connection)
        _refuse_foreign(facts, key, series, path)
        version = _version(facts, path)
        if version < schema.VERSION and read_only:
            connection.close()
            connection, _ = _connect(path, key, read_only=False, timeout=timeout)
            _migrate(connection, version)
            connection.close()
            connection, _ = _connect(path, key, read_only=True, timeout=timeout)
            facts = _facts(connection)
        elif version < schema.VERSION:
            facts = _migrate(connection, version)
        store = Store(connection)
        if left and not read_only:
            with connection.transaction():
                store.record("recovered", None, "the command before did not end in good order")
    except BaseException:
        connection.close()
        raise
    return store, facts, encrypted


@contextlib.contextmanager
def new_store(path: Path, key: Key, *, encrypted: bool) -> Iterator[Store]:
    """A ledger file to fill in one transaction; it gets its name afterwards, if all went well and the name is free."""
    place = path.resolve()
    if place.exists():
        raise LedgerError(Problem("exists already; choose another place", file=str(path)))
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    reason = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"its folder cannot be made: {error.strerror}"
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(path)))
    try:
        connection = Connection(draft, create=True, cipher=key.cipher if encrypted else None)
        try:
            with connection.transaction():
                for statement in schema.creation():
                    connection.execute(statement)
                yield Store(connection)
        finally:
            connection.close()
        os.link(draft, place)
    except FileExistsError:
        reason = "exists already; choose another place"
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
    finally:
        for name in (draft, draft.with_name(draft.name + ".wal")):
            with contextlib.suppress(OSError):
                name.unlink()
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(path)))
    flush_names(place.parent)


def _connect(path: Path, key: Key | None, *, read_only: bool, timeout: float) -> tuple[Connection, bool]:
    try:
        return Connection(path, read_only=read_only, timeout=timeout), False
    except Encrypted:
        if key is None:
            raise
    return Connection(path, read_only=read_only, timeout=timeout, cipher=key.cipher), True


def _facts(connection: Connection) -> dict[str, str]:
    sql = "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'ledger' AND table_name = 'meta'"
    if not connection.execute(sql)[0][0]:
        raise LedgerError(Problem("this is a DuckDB file, but no ledger", file=str(connection.path)))
    facts = Store(connection).facts()
    if not facts.keys() >= _NEEDED:
        raise connection.damaged()
    return facts


def _refuse_foreign(facts: Mapping[str, str], key: Key | None, series: str | None, path: Path) -> None:
    problems = []
    if key is not None and facts["key_check"] != key.check:
        problems.append(Problem("the key is not the one of this ledger", file=str(path)))
    if series is not None and facts["series"] != series:
        message = "this is the ledger of another series; give the policy of that series, or another ledger"
        problems.append(Problem(message, file=str(path)))
    if problems:
        raise LedgerError(problems)


def _version(facts: Mapping[str, str], path: Path) -> int:
    version = int(facts["schema"]) if facts["schema"].isdecimal() else -1
    if not 0 <= version <= schema.VERSION:
        raise LedgerError(Problem("the ledger was written by a newer Sequester; upgrade the package", file=str(path)))
    return version


def _migrate(connection: Connection, version: int) -> dict[str, str]:
    """Bring an older ledger to the shape of this version, all of it or nothing."""
    with connection.transaction():
        for statement in schema.steps_from(version):
            connection.execute(statement)
        connection.execute("UPDATE meta SET value = ? WHERE fact = 'schema'", [str(schema.VERSION)])
        Store(connection).record("migrated", None, f"from version {version} to {schema.VERSION}")
    return _facts(connection)


def _has_log(path: Path) -> bool:
    """Whether the command before left DuckDB's own log behind, which it does only when it was killed."""
    with contextlib.suppress(OSError):
        place = path.resolve()
        return place.with_name(place.name + ".wal").stat().st_size > 0
    return False
