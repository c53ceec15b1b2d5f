"""A ledger in a database of PostgreSQL: one schema per series, with the tables that a file has.

One command writes, or several read, as with a file: they hold advisory locks, which the server lets go when their
connection ends. Rows go to the server by COPY alone, so that they are in no log of statements, whatever it logs.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sequester.errors import LedgerError, MissingLibrary, Problem, SequesterError
from sequester.ledger.connection import PUT_BACK, Connection, busy
from sequester.ledger.place import Place, is_series
from sequester.ledger.postgres_rows import (
    INT4S,
    INT8,
    INT8S,
    NUMBERS,
    UNSIGNED,
    encode,
    packing,
    to_signed,
    to_unsigned,
    unpack,
)
from sequester.ledger.postgres_words import (
    explain,
    explain_connecting,
    is_unknown,
    no_rights,
    unknown_outcome,
)
from sequester.ledger.schema import EVERY_TABLE

if TYPE_CHECKING:
    import psycopg

    Connected = psycopg.Connection[Any]

Result = TypeVar("Result")

PREFIX = "sequester_"
# Names of PostgreSQL are silently cut beyond this many bytes.
_LONGEST = 63
_POLL = 0.05
_SETTINGS = {
    # The server lets go of the locks of a machine that is gone after about a minute, not after hours.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "10s",
    # A plan may take long, with the ledger open for reading.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "lock_timeout": "10s",
    "work_mem": "64MB",
    "client_min_messages": "error",
}
_CONNECTING = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
# A second line of defence: whatever happens to the locks, nothing gets one number twice.
_KEYS = {"meta": "fact", "log": "number", "releases": "number", "people": "person"}
_LEDGERS = (
    "SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relname = 'meta' AND c.relkind NOT IN ('i', 'S')"
)
# To read a view, or a table with policies, may run what somebody else wrote.
_PLAIN = "AND c.relkind = 'r' AND NOT c.relrowsecurity"
# What keeps a table from keeping what is put into it, for each table of a schema; of several the first.
_UNFIT = """
SELECT c.relname::text, CASE
  WHEN c.relkind = 'v' THEN 'view'
  WHEN c.relkind <> 'r' THEN 'kind'
  WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid) THEN 'trigger'
  WHEN EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid) THEN 'rule'
  WHEN c.relrowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) THEN 'policy'
  WHEN EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)) THEN 'inherits'
  WHEN c.relpersistence <> 'p' THEN 'unlogged'
END FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind NOT IN ('i', 'I', 'S', 't', 'c')
"""
_WHY_UNFIT = {
    "view": f"is a view; {PUT_BACK}",
    "kind": f"is no ordinary table, but in partitions or elsewhere; {PUT_BACK}",
    "trigger": "has a trigger or a foreign key, so that what is written need not be what is kept; drop it",
    "rule": "has a rule, so that what is written need not be what is kept; drop it",
    "policy": "has row-level security, so that rows may be hidden; drop the policies and DISABLE ROW LEVEL SECURITY",
    "inherits": "inherits from another table, or another from it; end that with NO INHERIT",
    "unlogged": "is unlogged, and would be empty after the server went down; make it safe with SET LOGGED",
}
_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*)\)", re.DOTALL)
_VALUES = re.compile(r"INSERT INTO (\w+ ?(?:\([^()]*\))?) ?VALUES \([?, ]+\)")


class Postgres(Connection):
    """A connection that has the ledger of one series. With `create` the ledger is made, and must not be there."""

    def __init__(self, place: Place, *, read_only: bool = False, create: bool = False, timeout: float = 0.0) -> None:
        url, series = place.database
        self.place = place
        self.read_only = read_only
        self.schema = schema_of(series)
        self._create = create
        self._server: Connected | None = connect(url, str(place))
        try:
            self._settle()
            self._lock(timeout)
            there = self.has("meta") or bool(self.unfit())
            if there and create:
                raise LedgerError(Problem("exists already; choose another place", file=str(place)))
            if not there and not create:
                raise LedgerError(Problem("there is no ledger here", file=str(place)))
            if there and not self.execute("SELECT has_schema_privilege(?, 'USAGE')", [self.schema])[0][0]:
                # Tables that one may not see look as if they were not there.
                raise no_rights(str(place))
            if read_only:
                self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except BaseException:
            self.close()
            raise

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement."""
        values = _VALUES.fullmatch(sql)
        if values is not None:
            self._copy_rows(values[1], [parameters])
            return []

        def run() -> list[tuple[Any, ...]]:
            cursor = self._open.execute(*_translated(sql, parameters))
            return cursor.fetchall() if cursor.description else []

        return self._careful(run)

    def table(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """The rows of a query."""
        columns = self._careful(lambda: self._columns(sql, parameters))
        names, types = [name for name, _ in columns], [oid for _, oid in columns]
        if set(types) <= NUMBERS:
            packed = self._careful(lambda: self._packed(sql, parameters, names, types))
            if packed is not None:
                return packed
        return _from_rows(self.execute(sql, parameters), names, types)

    def insert(self, name: str, rows: pa.Table) -> None:
        """Append rows to a table; columns in its order."""
        kinds = list(EVERY_TABLE[name].values())
        if not len(rows):
            return
        whole = None if "VARCHAR" in kinds else self._careful(lambda: encode(rows, kinds))
        if whole is None:
            self._copy_rows(name, _to_rows(rows, kinds))
            return
        data = whole

        def append() -> None:
            with self._open.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
                copy.write(data)

        self._careful(append)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing; on the server's disk when it ends."""
        if self.read_only:
            raise LedgerError(Problem("the ledger was opened only to be read", file=str(self.place)))
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE")
        try:
            if self._create:
                self._make_schema()
            yield
            if self._open.info.transaction_status.name == "INTRANS":
                self._refuse_unfit_since()
        except BaseException:
            with contextlib.suppress(SequesterError):
                self.execute("ROLLBACK")
            raise
        self._commit()

    def close(self) -> None:
        """Let others have the ledger, at once: the server notices the end of a connection a little later."""
        server, self._server = self._server, None
        if server is None:
            return
        import psycopg

        with contextlib.suppress(psycopg.Error, OSError):
            if not server.broken:
                server.execute("ROLLBACK")
                server.execute("SELECT pg_advisory_unlock_all()")
        with contextlib.suppress(psycopg.Error, OSError):
            server.close()

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        sql = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = ? AND tablename = ?"
        return bool(self.execute(sql, [self.schema, table])[0][0])

    def unfit(self) -> dict[str, str]:
        """Whatever is no ordinary table, or lets others change or hide what is put into it."""
        rows = self.execute(_UNFIT, [self.schema])
        return {name: _WHY_UNFIT[what] for name, what in rows if name in EVERY_TABLE and what is not None}

    def _refuse_unfit_since(self) -> None:
        """As `refuse_unfit`, as tables are now: a transaction sees them as they were when it first looked.

        What it wrote to is held until it ends, and can get no trigger any more.
        """
        own, self._server = self._server, connect(self.place.database[0], str(self.place))
        try:
            self.refuse_unfit()
        finally:
            self._server, other = own, self._server
            if other is not None:
                other.close()

    def drop(self) -> None:
        """Remove the tables of the ledger, all or none."""
        with self.transaction():
            for name in EVERY_TABLE:
                self.execute(f"DROP TABLE IF EXISTS {name}")

    @property
    def _open(self) -> Connected:
        if self._server is None:
            raise LedgerError(Problem("the ledger is closed", file=str(self.place)))
        return self._server

    def _settle(self) -> None:
        """Settings of this connection; those that the server does not know yet are left out."""
        settings = {**_SETTINGS, "search_path": quoted_name(self.schema)}
        rows = ", ".join("(?, ?)" for _ in settings)
        self.execute(
            f"SELECT set_config(name, value, false) FROM (VALUES {rows}) AS s (name, value) "
            "WHERE current_setting(name, true) IS NOT NULL",
            [part for setting in settings.items() for part in setting],
        )
        # More than that may be asked for by the server; less may not.
        self.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
        )
        behind, encoding = self.execute("SELECT pg_is_in_recovery(), current_setting('server_encoding')")[0]
        problem = None
        if behind:
            problem = "this server is a copy, which may lag behind; give the address of the one that is written to"
        elif encoding != "UTF8":
            problem = "the database cannot keep every text; make one with the encoding UTF8"
        if problem is not None:
            raise LedgerError(Problem(problem, file=str(self.place)))

    def _lock(self, timeout: float) -> None:
        """One writer, or several readers."""
        kind = "_shared" if self.read_only else ""
        patience = time.monotonic() + timeout
        while not self.execute(f"SELECT pg_try_advisory_lock{kind}(?)", [lock_of(self.schema)])[0][0]:
            if time.monotonic() >= patience:
                raise busy(str(self.place))
            time.sleep(_POLL)

    def _make_schema(self) -> None:
        """The schema may be there without tables: where nobody else may make one, the administrator does."""
        if not self.execute("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = ?", [self.schema])[0][0]:
            self.execute(f"CREATE SCHEMA {quoted_name(self.schema)}")

    def _commit(self) -> None:
        import psycopg

        failure: SequesterError | None = None
        try:
            done = self._open.execute("COMMIT").statusmessage
        except (psycopg.Error, OSError) as error:
            lost = self._open.broken or self._open.closed
            unknown = is_unknown(error, lost=lost)
            failure = unknown_outcome(str(self.place)) if unknown else explain(error, str(self.place), lost=lost)
        else:
            if done != "COMMIT":
                message = "the server did not record this, because of the error before"
                failure = LedgerError(Problem(message, file=str(self.place)))
        if failure is not None:
            raise failure

    def _columns(self, sql: str, parameters: Sequence[Any]) -> list[tuple[str, int]]:
        """Names and types of what a query gives."""
        statement, values = _translated(f"SELECT * FROM ({sql}) AS q LIMIT 0", parameters)
        return [(column.name, column.type_code) for column in self._open.execute(statement, values).description or ()]

    def _packed(
        self, sql: str, parameters: Sequence[Any], names: Sequence[str], types: Sequence[int]
    ) -> pa.Table | None:
        """The rows of a query of numbers, many in one; None when they are not all equally long."""
        statement, values = _translated(packing(sql, names, types), parameters)
        parts = self._open.execute(statement, values, binary=True).fetchall()
        return unpack(parts, names, types)

    def _copy_rows(self, target: str, rows: Sequence[Sequence[Any]]) -> None:
        def append() -> None:
            with self._open.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

        self._careful(append)

    def _careful(self, action: Callable[[], Result]) -> Result:
        """Run something on the server; its errors become ours, and are not kept as their cause."""
        import psycopg

        try:
            return action()
        except (psycopg.Error, OSError, UnicodeError) as error:
            lost = self._server is None or self._server.broken or self._server.closed
            encoding = isinstance(error, UnicodeError) or type(error) is psycopg.DataError
            failure = (
                LedgerError(Problem("a text has characters that cannot be kept", file=str(self.place)))
                if encoding
                else explain(error, str(self.place), lost=lost)
            )
        except (pa.ArrowException, MemoryError):
            failure = LedgerError(Problem("there is not enough memory for this ledger", file=str(self.place)))
        raise failure


def connect(url: str, shown: str) -> Connected:
    """A connection to a server, or why there is none."""
    psycopg = _library()
    failure: SequesterError
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        options = {**_CONNECTING, **given, "application_name": "sequester", "client_encoding": "UTF8"}
        made: Connected = psycopg.connect(autocommit=True, prepare_threshold=None, **options)
        return made
    except psycopg.ProgrammingError:
        failure = LedgerError("the address of the ledger is not one that PostgreSQL understands; see its options")
    except (psycopg.Error, OSError, UnicodeError) as error:
        failure = explain_connecting(error, shown)
    raise failure


def exists(place: Place) -> bool:
    """Whether there is the ledger of a series in a database."""
    url, series = place.database
    schema, sql = schema_of(series), f"{_LEDGERS} AND n.nspname = %s"
    return bool(_ask(url, str(place), lambda server: server.execute(sql, [schema]).fetchall()))


def only_series(url: str, shown: str) -> str:
    """The series whose ledger is the only one in a database; an error, with the names of all, when there are more."""
    names = _ask(url, shown, _names)
    if not names:
        raise LedgerError(Problem("there is no ledger here", file=shown))
    if len(names) > 1:
        message = f"there are several ledgers in this database; say which by #series at the end: {', '.join(names)}"
        raise LedgerError(Problem(message, file=shown))
    return names[0]


@contextlib.contextmanager
def new_schema(place: Place) -> Iterator[Postgres]:
    """A schema to fill in one transaction."""
    connection = Postgres(place, create=True)
    try:
        yield connection
    finally:
        connection.close()


def schema_of(series: str) -> str:
    """The schema of a series; of a name that is too long the beginning, and a digest."""
    name = f"{PREFIX}{series}"
    if len(name.encode()) <= _LONGEST:
        return name
    digest = hashlib.sha256(series.encode()).hexdigest()[:16]
    return f"{name.encode()[: _LONGEST - 17].decode(errors='ignore')}~{digest}"


def lock_of(schema: str) -> int:
    """The number of the lock on a schema."""
    return int.from_bytes(hashlib.sha256(f"sequester ledger {schema}".encode()).digest()[:8], "big", signed=True)


def quoted_name(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _names(server: Connected) -> list[str]:
    """The series whose ledgers are in a database and may be read."""
    may = "AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
    series = []
    for (schema,) in server.execute(f"{_LEDGERS} {_PLAIN} {may} AND starts_with(n.nspname, %s)", [PREFIX]).fetchall():
        query: Any = f"SELECT value FROM {quoted_name(schema)}.meta WHERE fact = 'series'"
        named = server.execute(query).fetchone()
        # Whoever may make schemas may put any text there.
        if named is not None and is_series(named[0]) and schema_of(named[0]) == schema:
            series.append(named[0])
    return sorted(series)


def _ask(url: str, shown: str, read: Callable[[Connected], Result]) -> Result:
    """What a database says, over a connection of its own."""
    server = connect(url, shown)
    import psycopg

    try:
        return read(server)
    except (psycopg.Error, OSError) as error:
        failure = explain(error, shown, lost=server.broken)
    finally:
        with contextlib.suppress(psycopg.Error, OSError):
            server.close()
    raise failure


def _library() -> Any:
    with contextlib.suppress(ImportError):
        import psycopg

        return psycopg
    raise MissingLibrary("a ledger on a server of PostgreSQL needs psycopg: pip install 'sequester[postgres]'")


def _translated(sql: str, parameters: Sequence[Any]) -> tuple[Any, list[Any] | None]:
    """A statement as psycopg takes it."""
    made = _TABLE.fullmatch(sql)
    if made is not None:
        key = f', PRIMARY KEY ("{_KEYS[made[1]]}")' if made[1] in _KEYS else ""
        sql = f"CREATE TABLE {made[1]} ({made[2].replace('UBIGINT', 'BIGINT')}{key})"
    if not parameters:
        return sql, None
    return sql.replace("%", "%%").replace("?", "%s"), list(parameters)


def _to_rows(rows: pa.Table, kinds: Sequence[str]) -> list[list[Any]]:
    """Rows of text, or of numbers that are not what they should be, one by one; they are few."""
    columns = [
        [None if cell is None else to_signed(cell) for cell in rows[name].to_pylist()]
        if kind == "UBIGINT"
        else rows[name].to_pylist()
        for name, kind in zip(rows.column_names, kinds, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _from_rows(rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[int]) -> pa.Table:
    """The same, back."""
    arrow = {INT8: pa.int64(), INT4S: pa.large_list(pa.int32()), INT8S: pa.large_list(pa.int64())}
    columns: dict[str, pa.Array] = {}
    for place, (name, oid) in enumerate(zip(names, types, strict=True)):
        cells = [row[place] for row in rows]
        if oid == INT8 and name in UNSIGNED:
            columns[name] = pa.array([None if cell is None else to_unsigned(cell) for cell in cells], pa.uint64())
        else:
            kind = arrow.get(oid, pa.int32() if oid in NUMBERS else pa.string())
            columns[name] = pa.array(cells, kind)
    return pa.table(columns)
