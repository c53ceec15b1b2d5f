"""A ledger in a file of DuckDB: its locks, its transactions, and how it comes to be.

DuckDB lets one process write to a file, or several read it. Nothing here opens the file itself: on Linux that would
drop the locks that DuckDB holds on it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from sequester.drafts import draft_beside, sweep
from sequester.errors import Busy, LedgerError, Problem, SequesterError, Unsettled
from sequester.ledger import before
from sequester.ledger.connection import PUT_BACK, Connection, Damaged, busy, private
from sequester.ledger.failures import ERRORS, explain, of_writing
from sequester.ledger.key import flush_names
from sequester.ledger.place import Place
from sequester.ledger.schema import EVERY_TABLE

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


class DuckFile(Connection):
    """An attached ledger file. With `create` the file is made, and must not exist; errors call it `named`."""

    keeps_order = True

    def __init__(
        self,
        place: Place,
        *,
        read_only: bool = False,
        cipher: str | None = None,
        create: bool = False,
        timeout: float = 0.0,
        named: Place | None = None,
    ) -> None:
        self.place = place
        self._named = place if named is None else named
        self.read_only = read_only
        self._cipher = cipher
        self._database: Any = None
        self._path = place.file.resolve()
        self._create = create
        patience = time.monotonic() + timeout
        while True:
            try:
                self._open_whole()
                break
            except Busy:
                if time.monotonic() >= patience:
                    raise
            except Damaged:
                if create or not before.place_of(self._path).exists():
                    raise
                self._put_back()
                continue
            time.sleep(_POLL)
        if not create and self.has("meta"):
            self._refuse_readable()
        if not create and not read_only:
            # Whoever died while making this ledger or its key left a draft.
            sweep(self._path)
            sweep(place.key)
            before.drop(self._path)

    def _open_whole(self) -> None:
        """Open the file, and read all of it if whoever had it last died in the middle of something."""
        if self._create:
            self._open(create=True)
            return
        inode = _inode(self.place)
        # Asked each time: DuckDB would make a file that another command has removed meanwhile.
        if inode is None:
            raise LedgerError(Problem("there is no ledger here", file=str(self.place)))
        self._open(create=False)
        try:
            if _inode(self.place) != inode:
                # The name is another file's by now: whatever is written to this one would be lost.
                raise busy(self.place)
            if before.place_of(self._path).exists():
                for name in self.sizes():
                    self.execute(f'SELECT sum(hash(rows)) FROM "{name}" AS rows')
        except BaseException:
            self.close()
            raise

    def _put_back(self) -> None:
        """Make what was kept before the last command the ledger, unless another command does."""
        with before.alone(self._path):
            try:
                self._open_whole()
                self.close()
            except Busy:
                return
            except Damaged:
                with contextlib.suppress(OSError):
                    before.put_back(self._path)

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
        path = str(self._path).replace("'", "''")
        try:
            with private():
                self.execute(f"ATTACH '{path}' AS ledger ({', '.join(options)})")
            self.execute("USE ledger")
            # Where a ledger is large it would draw a bar among the results.
            self.execute("SET enable_progress_bar = false")
        except BaseException:
            self.close()
            raise

    def _refuse_readable(self) -> None:
        """What is known about everybody is there in the clear, in the file and in the log beside it."""
        path = self._path
        for file in (path, path.with_name(path.name + ".wal")) if os.name == "posix" else ():
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IMODE(file.stat().st_mode) & 0o077:
                    self.close()
                    message = "others can read the ledger; make it yours alone with `chmod 600`"
                    raise LedgerError(Problem(message, file=str(self._named if file == path else file)))

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
            self._keep()
            self.execute("BEGIN")
            try:
                yield
            except BaseException:
                with contextlib.suppress(SequesterError):
                    self.execute("ROLLBACK")
                before.drop(self._path)
                raise
            self._settle("COMMIT")
            # A ledger that is copied without the log beside it must be whole. The commit is durable by now.
            self._settle("CHECKPOINT ledger")
            before.drop(self._path)

    def _keep(self) -> None:
        """Keep the file as it is now, should the machine stop before all is written."""
        failure = None
        try:
            if not self._create and self._database is not None:
                before.keep(self._path)
        except OSError as error:
            before.drop(self._path)
            failure = of_writing(error, self._named)
        if failure is not None:
            raise failure

    def _settle(self, sql: str) -> None:
        """Run what makes rows durable. When it fails, they are there or not, unless DuckDB took them back."""
        try:
            self.execute(sql)
            return
        except SequesterError as error:
            failure = error
        if sql != "COMMIT" or not self._took_back():
            why = "; ".join(problem.message for problem in getattr(failure, "problems", ())) or str(failure)
            failure = Unsettled(why.removesuffix(". Nothing was changed"), file=str(self._named))
        raise failure

    def _took_back(self) -> bool:
        """Whether a failed commit left nothing behind: DuckDB is well only if it could undo it."""
        with contextlib.suppress(SequesterError):
            self.execute("ROLLBACK")
        try:
            self.execute("BEGIN")
            self.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'ledger'")
            self.execute("ROLLBACK")
        except SequesterError:
            return False
        return True

    def close(self) -> None:
        """Let others have the file."""
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(duckdb.Error):
                database.close()

    def sizes(self) -> dict[str, int]:
        """How many rows every table has."""
        tables = self.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'ledger'")
        return {name: int(self.execute(f'SELECT count(*) FROM "{name}"')[0][0]) for (name,) in tables}

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        sql = "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'ledger' AND table_name = ?"
        return bool(self.execute(sql, [table])[0][0])

    def unfit(self) -> dict[str, str]:
        """Views in place of tables; DuckDB has no triggers, rules or policies."""
        views = self.execute("SELECT view_name FROM duckdb_views() WHERE database_name = 'ledger' AND NOT internal")
        return {name: f"is a view; {PUT_BACK}" for (name,) in views if name in EVERY_TABLE}

    def _careful(self, action: Callable[[], Result]) -> Result:
        """Run something of DuckDB; its errors become ours, and are not kept as their cause."""
        try:
            return action()
        except ERRORS as error:
            failure = explain(error, self.place, self._named)
        except AttributeError:
            if self._database is not None:
                raise
            failure = LedgerError(Problem("the ledger is closed", file=str(self._named)))
        raise failure


def load_cipher(database: Any) -> None:
    """What DuckDB encrypts with: OpenSSL, which comes with its httpfs extension; reading needs none."""
    database.execute("LOAD httpfs")


@contextlib.contextmanager
def new_file(place: Place, *, cipher: str | None) -> Iterator[DuckFile]:
    """A file to fill; it gets its name afterwards, if all went well, all of it is there, and the name is free."""
    path = place.file.resolve()
    if path.exists():
        raise LedgerError(Problem("exists already; choose another place", file=str(place)))
    reason = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"its folder cannot be made: {error.strerror}"
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(place)))
    try:
        with draft_beside(path) as folder:
            draft = Place.of(folder / path.name)
            connection = DuckFile(draft, create=True, cipher=cipher, named=place)
            try:
                yield connection
                held = connection.sizes()
            finally:
                connection.close()
            _check_whole(draft, held, cipher=cipher, named=place)
            os.link(draft.file, path)
    except FileExistsError:
        reason = "exists already; choose another place"
    except OSError as error:
        reason = f"cannot be written: {error.strerror}; nothing was made"
    except Unsettled as error:
        reason = f"{error.why}. No ledger was made"
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(place)))
    flush_names(path.parent)


def _inode(place: Place) -> tuple[int, int] | None:
    """Which file has the name of the ledger; None for no file."""
    there, path = None, place.file.resolve()
    for file in (path, path.with_name(f"{path.name}.wal")):
        with contextlib.suppress(OSError):
            status = file.stat()
            there = there or (status.st_dev, status.st_ino)
            # DuckDB would wait for whoever writes to a pipe.
            if not stat.S_ISREG(status.st_mode):
                shown = place.file if file == path else file
                raise LedgerError(Problem("is a folder, a pipe or a device, and no ledger", file=str(shown)))
    return there


def _check_whole(draft: Place, held: dict[str, int], *, cipher: str | None, named: Place) -> None:
    """Raise unless a closed file is on disk with all that was put into it, and needs no log beside it."""
    connection = DuckFile(draft, read_only=True, cipher=cipher, named=named)
    try:
        whole = not has_log(draft) and connection.sizes() == held
    finally:
        connection.close()
    if not whole:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    handle = os.open(draft.file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def has_log(place: Place) -> bool:
    """Whether the command before left DuckDB's own log behind, which it does only when it was killed."""
    with contextlib.suppress(OSError):
        path = place.file.resolve()
        return path.with_name(path.name + ".wal").stat().st_size > 0
    return False
