"""Tables and queries of databases: DuckDB and SQLite files, and PostgreSQL. Nothing is ever written to them.

A query comes from a command line, a view from whoever made the file; neither may do anything but read the database that
is named. So each is opened for reading only, takes exactly one SELECT as the database itself parses it, and reaches no
other file, extension or server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from sequester.errors import DataError, MissingLibrary, Problem
from sequester.ingest.frames import open_frame
from sequester.ingest.named import BETWEEN, InputName
from sequester.ingest.source import Source, Wanted, once, quietly

SUFFIXES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
_SQLITE = b"SQLite format 3\0"
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    # No variable of this program is a table, and no row is left in a file that others can read.
    "python_enable_replacements": False,
    "temp_directory": "",
}
# Catalogs of DuckDB's own.
_TAKEN = ("memory", "system", "temp", "main")
_ROWS = 50_000


def open_database(name: InputName, wanted: Wanted) -> Source:
    """Open a table or a query; where the file has one table only, it need not be named."""
    if name.is_address:
        return _of_cursor(name, wanted, lambda: _postgres(name))
    return _of_cursor(name, wanted, lambda: _sqlite(name)) if _is_sqlite(name) else _duckdb(name, wanted)


def _duckdb(name: InputName, wanted: Wanted) -> Source:
    opened = open_frame(relation(name), wanted)
    if opened is None:
        raise DataError(_unreadable(name))
    return opened


def relation(name: InputName) -> Any:
    """A table or a query of a DuckDB file, as a relation of DuckDB."""
    connection = quietly(lambda: _locked(Path(name.place)), lambda _: _unreadable(name))
    listed = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    query = _query(name, lambda: connection.execute(listed).fetchall())
    statements = quietly(lambda: connection.extract_statements(query), lambda error: _wrong(name, error))
    if [statement.type.name for statement in statements] != ["SELECT"]:
        raise DataError(Problem("the query is not one SELECT alone; leave out the rest", file=name.place))
    return quietly(lambda: connection.sql(statements[0]), lambda error: _wrong(name, error))


def _locked(path: Path) -> Any:
    """A DuckDB file, and no way out of it; another process may be writing to it."""
    import duckdb

    connection = duckdb.connect(":memory:", config=_LOCKED)
    alias = _quoted(f"{path.stem}_db" if path.stem.lower() in _TAKEN else path.stem)
    place = str(path.resolve()).replace("'", "''")
    connection.execute(f"ATTACH '{place}' AS {alias} (TYPE duckdb, READ_ONLY)")
    connection.execute(f"USE {alias}")
    # Once both are off, no statement can turn them on again.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


@contextlib.contextmanager
def _sqlite(name: InputName, *, counted: bool = False) -> Iterator[Any]:
    import sqlite3

    path = Path(name.place).resolve()
    connection = quietly(lambda: sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True), lambda _: _unreadable(name))
    with contextlib.closing(connection) as opened:
        opened.execute("PRAGMA trusted_schema = OFF")
        opened.set_authorizer(_only_reads)
        listed = "SELECT NULL, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        query = _query(name, lambda: opened.execute(listed).fetchall(), counted=counted)
        yield quietly(lambda: opened.execute(query), lambda error: _wrong(name, error))


def _only_reads(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    """What a statement of SQLite, or a view that it reads, may do."""
    import sqlite3

    reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reads and second != "load_extension" else sqlite3.SQLITE_DENY


@contextlib.contextmanager
def _postgres(name: InputName, *, counted: bool = False) -> Iterator[Any]:
    try:
        import psycopg
    except ImportError:
        message = "tables of PostgreSQL need the extra `postgres`: pip install 'sequester[postgres]'"
        raise MissingLibrary(Problem(message, file=name.place)) from None
    connection = quietly(lambda: psycopg.connect(name.place, connect_timeout=10), lambda _: _unreachable(name))
    with connection as opened:
        opened.read_only = True
        listed = (
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        query = _query(name, lambda: opened.execute(listed).fetchall(), counted=counted)
        # The server takes one statement for a cursor, and nothing but SELECT.
        with opened.cursor(name="sequester") as cursor:
            cursor.itersize = _ROWS
            yield quietly(lambda: cursor.execute(query), lambda error: _wrong(name, error))


def _query(name: InputName, tables: Callable[[], Sequence[tuple[str | None, str]]], *, counted: bool = False) -> str:
    """What is asked of the database: the query as it is, or everything of one table; or how many rows that is."""
    if counted:
        # A comment at its end would hide what follows.
        return f"SELECT count(*) FROM ({_query(name, tables)}\n) AS asked"
    if name.is_query:
        return str(name.table).strip().rstrip(";")
    if name.table is not None:
        return f"SELECT * FROM {'.'.join(map(_quoted, name.table.split('.')))}"
    found = quietly(tables, lambda _: _unreadable(name))
    if len(found) != 1:
        message = f"has {len(found):,} tables; say which one, or a query: {Path(name.place).name}{BETWEEN}TABLE"
        raise DataError(Problem(message, file=name.place))
    return f"SELECT * FROM {'.'.join(_quoted(part) for part in found[0] if part is not None)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _of_cursor(name: InputName, wanted: Wanted, connected: Callable[[], Any]) -> Source:
    """Names now, rows when they are asked for, by two connections: nothing is held open in between."""
    with connected() as cursor:
        names = _names(cursor)

    def read() -> dict[str, pa.ChunkedArray]:
        with connected() as cursor:
            places = {column: names.index(column) for column in wanted.among(names)}
            parts = [_part(rows, places) for rows in _blocks(name, cursor)]
        if not parts:
            return {column: pa.chunked_array([], pa.string()) for column in places}
        table = quietly(lambda: pa.concat_tables(parts, promote_options="permissive"), lambda _: _mixed(name))
        return dict(zip(table.column_names, table.columns, strict=True))

    return Source(names, once(read))


def count(name: InputName) -> int:
    """How many rows a table or a query has."""
    if not name.is_address and not _is_sqlite(name):
        found = quietly(lambda: relation(name).aggregate("count(*)").fetchall(), lambda error: _wrong(name, error))
        return int(found[0][0])
    with _postgres(name, counted=True) if name.is_address else _sqlite(name, counted=True) as cursor:
        return int(next(_blocks(name, cursor))[0][0])


def _is_sqlite(name: InputName) -> bool:
    with Path(name.place).open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def stream_database(name: InputName, wanted: Wanted) -> Iterator[pa.Table] | None:
    """The wanted columns of a table or a query on a server or in a file of SQLite, some rows at a time; None for a file
    of DuckDB, which streams by itself."""
    if not name.is_address and not _is_sqlite(name):
        return None

    def read() -> Iterator[pa.Table]:
        with _postgres(name) if name.is_address else _sqlite(name) as cursor:
            names = _names(cursor)
            places = {column: names.index(column) for column in wanted.among(names)}
            for rows in _blocks(name, cursor):
                yield _part(rows, places)

    return read()


def _names(cursor: Any) -> tuple[str, ...]:
    # A cursor on a server knows its columns when the first rows are there.
    if cursor.description is None:
        cursor.fetchmany(0)
    return tuple(str(column[0]) for column in cursor.description)


def _blocks(name: InputName, cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
    while rows := quietly(lambda: cursor.fetchmany(_ROWS), lambda _: _unreadable(name)):
        yield rows


def _part(rows: list[tuple[Any, ...]], places: dict[str, int]) -> pa.Table:
    return pa.table({column: _cells([row[place] for row in rows], column) for column, place in places.items()})


def _cells(cells: list[Any], column: str) -> pa.Array:
    mixed = Problem("has values of several types; make it one with CAST in a query", column=column)
    if any(isinstance(cell, UUID) for cell in cells):
        cells = [str(cell) if isinstance(cell, UUID) else cell for cell in cells]
    return quietly(lambda: pa.array(cells), lambda _: mixed)


def _mixed(name: InputName) -> Problem:
    message = "has columns with values of several types; make each one type with CAST in a query"
    return Problem(message, file=name.place)


def _wrong(name: InputName, error: Exception) -> Problem:
    if type(error).__name__ == "PermissionException" or str(error) == "not authorized":
        message = "asks for more than the tables of its database; copy what it reads into a table there"
        return Problem(message, file=name.place)
    what = "the query is not understood" if name.is_query else "has no table of that name"
    return Problem(f"{what}; try it on its own to see why", file=name.place)


def _unreadable(name: InputName) -> Problem:
    return Problem("is no database that can be read, or another program has it; close that", file=name.place)


def _unreachable(name: InputName) -> Problem:
    return Problem("the server cannot be reached, or does not let you in; try it with psql to see why", file=name.place)
