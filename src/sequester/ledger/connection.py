"""One connection to one ledger file: locks, transactions, and DuckDB's errors in our own words.

DuckDB lets one process write to a file, or several read it. Its messages may quote what is stored, so none of them is
passed on. Nothing here opens the file itself: on Linux that would drop the locks that DuckDB holds on it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from sequester.errors import Busy, LedgerError, Problem, SequesterError

Result = TypeVar("Result")

# The first storage that can be encrypted; blocks of a quarter of the usual size keep small ledgers small.
_STORAGE = "STORAGE_VERSION 'v1.4.0', BLOCK_SIZE 65536"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Nothing is fetched from anywhere, no Python variable is taken for a table, nothing is spilled to other files.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
_POLL = 0.05


class Connection:
    """An attached ledger file. With `create` the file is made, and must not exist."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        cipher: str | None = None,
        create: bool = False,
        timeout: float = 0.0,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._cipher = cipher
        self._database: Any = None
        if not create and not path.exists():
            raise LedgerError(Problem("there is no ledger here", file=str(path)))
        patience = time.monotonic() + timeout
        while True:
            try:
                self._open(create=create)
                return
            except Busy:
                if time.monotonic() >= patience:
                    raise
            time.sleep(_POLL)

    def _open(self, *, create: bool) -> None:
        self._database = self._careful(lambda: duckdb.connect(":memory:", config=_SETTINGS))
        options = [_STORAGE] if create else ["TYPE duckdb"]
        if self.read_only:
            options.append("READ_ONLY")
        if self._cipher is not None:
            if not self.read_only:
                self._careful(lambda: load_cipher(self._database))
            options.append(f"ENCRYPTION_KEY '{self._cipher}'")
        # Under one name: DuckDB keeps its log beside the name it is given.
        place = str(self.path.resolve()).replace("'", "''")
        try:
            with private():
                self.execute(f"ATTACH '{place}' AS ledger ({', '.join(options)})")
            self.execute("USE ledger")
        except BaseException:
            self.close()
            raise

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement."""
        return self._careful(lambda: self._database.execute(sql, list(parameters)).fetchall())

    def table(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """The rows of a query."""
        return self._careful(lambda: self._database.sql(sql, params=list(parameters)).to_arrow_table())

    def insert(self, name: str, rows: pa.Table) -> None:
        """Append rows to a table; columns in its order."""

        def append() -> None:
            self._database.register("incoming", rows)
            try:
                self._database.execute(f"INSERT INTO {name} SELECT * FROM incoming").fetchall()
            finally:
                self._database.unregister("incoming")

        if len(rows):
            self._careful(append)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing; on disk when it ends, in the file itself and not only in the log beside it."""
        with private():
            self.execute("BEGIN")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(SequesterError):
                    self.execute("ROLLBACK")
                raise
            # The commit is durable by now: a checkpoint that fails is made up for by the next command.
            with contextlib.suppress(SequesterError):
                self.execute("CHECKPOINT ledger")

    def close(self) -> None:
        """Let others have the file."""
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(duckdb.Error):
                database.close()

    def damaged(self) -> LedgerError:
        """What to say when rows are not what was written."""
        return _damaged(self.path)

    def _careful(self, action: Callable[[], Result]) -> Result:
        """Run something of DuckDB; its errors become ours, and are not kept as their cause."""
        try:
            return action()
        except (duckdb.Error, pa.ArrowException, UnicodeDecodeError, RuntimeError, MemoryError) as error:
            failure = _explain(error, self.path)
        except AttributeError:
            if self._database is not None:
                raise
            failure = LedgerError(Problem("the ledger is closed", file=str(self.path)))
        raise failure


def load_cipher(database: Any) -> None:
    """What DuckDB encrypts with: OpenSSL, which comes with its httpfs extension; reading needs none."""
    database.execute("LOAD httpfs")


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Files that are made meanwhile are for their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


class Encrypted(LedgerError):
    """The file is encrypted, and was opened without a key."""


def _explain(error: Exception, path: Path) -> SequesterError:
    text = str(error).lower()
    said = [failure for words, failure in _FAILURES if any(word in text for word in words)]
    return said[0](path) if said else _damaged(path)


def _busy(path: Path) -> Busy:
    return Busy(f"{path}: another command has the ledger; wait until it is done, or try again")


def _problem(message: str) -> Callable[[Path], SequesterError]:
    return lambda path: LedgerError(Problem(message, file=str(path)))


def _damaged(path: Path) -> LedgerError:
    message = "the ledger is damaged; restore it from a backup or an export. Nothing was changed"
    return LedgerError(Problem(message, file=str(path)))


_FAILURES: tuple[tuple[tuple[str, ...], Callable[[Path], SequesterError]], ...] = (
    (("could not set lock", "conflicting lock", "unique file handle conflict", "already attached"), _busy),
    (
        ("without a key",),
        lambda path: Encrypted(Problem("the ledger is encrypted; its key is needed", file=str(path))),
    ),
    (("wrong encryption key",), _problem("the key is not the one of this ledger")),
    (
        ("crypto module", "httpfs"),
        _problem(
            "writing an encrypted ledger needs DuckDB's httpfs extension, which has OpenSSL: run `INSTALL httpfs` in "
            "DuckDB once, or keep the ledger on an encrypted disk without `encrypted`"
        ),
    ),
    (
        ("no space left", "file too large", "disk quota", "could not write", "failed to write"),
        _problem("there is no room left on the disk; make some and try again. Nothing was recorded"),
    ),
    (("has been invalidated",), _problem("the ledger cannot go on after the error before; open it again")),
    (("permission denied", "read-only file system"), _problem("the ledger may not be opened or written by you")),
    (("out of memory", "failed to allocate"), _problem("there is not enough memory for this ledger")),
    (
        ("not a valid duckdb", "is not a duckdb"),
        _problem("this is no ledger, or it is damaged; restore it from a backup or an export. Nothing was changed"),
    ),
    (("newer version of duckdb",), _problem("the ledger was written with a newer DuckDB; upgrade the package duckdb")),
)
