"""Where a test keeps its ledgers: in files, or in schemas of a server. One test body is for both."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb

from postgres import OWNER, SERVER
from sequester.ledger import Place
from sequester.ledger.postgres import quoted_name, schema_of

STORES = ("file", "postgres")
_NUMBERS = itertools.count(1)


class Books:
    """`books / "x.ledger"` is the place of a ledger, wherever this test keeps them."""

    def __init__(self, store: str, home: Path) -> None:
        self.store, self.home = store, home
        self.prefix = f"t{next(_NUMBERS)}."

    def __truediv__(self, name: str) -> Place:
        if self.store == "file":
            return Place.of(self.home / name)
        return Place.of(SERVER.url(), home=self.home, series=self.prefix + name.removesuffix(".ledger"))

    def there(self) -> list[str]:
        """What there is of ledgers, whole or not; exports and heads lie beside them."""
        if self.store == "file":
            beside = ("export", "releases")
            return sorted(
                entry.name for entry in self.home.iterdir() if entry.name not in beside and entry.suffix != ".head"
            )
        start = schema_of(self.prefix)
        sql = f"SELECT DISTINCT schemaname::text FROM pg_tables WHERE starts_with(schemaname, '{start}') ORDER BY 1"
        return [f"{str(name).removeprefix(start)}.ledger" for (name,) in SERVER.sql(sql, "books")]


def tamper(place: Path | Place, *statements: str) -> None:
    """Change what is stored behind the ledger's back; lists are written as DuckDB does."""
    place = Place.of(place)
    if place.is_file:
        with duckdb.connect(place.file) as database:
            for statement in statements:
                database.execute(statement).fetchall()
        return
    import psycopg

    assert place.url is not None
    assert place.series is not None
    address = SERVER.address(place.url.rpartition("/")[2], OWNER)
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(f"SET search_path TO {quoted_name(schema_of(place.series))}")
        for statement in statements:
            server.execute(statement.replace("= [", "= ARRAY["))
