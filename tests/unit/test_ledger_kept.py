"""What is recorded is read back before that counts, on every store; and whatever is no ledger is told in true words."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from books import Books, tamper
from ledgers import KEY, draft, new, publish, three_releases
from parted import SEED as PARTED_SEED
from parted import begin, policy, waves
from postgres import SERVER, STEWARD
from sequester.errors import LedgerError
from sequester.ledger import Ledger, Place, WaitingList
from sequester.ledger.connection import Connection
from sequester.ledger.duck import DuckFile
from sequester.ledger.postgres import Postgres, quoted_name

needs_server = pytest.mark.skipif(SERVER.why_not is not None, reason=SERVER.why_not or "")
_NUMBERS = count(1)


@pytest.mark.parametrize(
    ("table", "loses"), [("people", "a row"), ("state", "a cell"), ("counts", "all of it"), ("queue", "a row")]
)
def test_a_release_of_which_something_was_not_kept_is_not_recorded(
    books: Books, monkeypatch: pytest.MonkeyPatch, table: str, loses: str
) -> None:
    def losing(insert: Any) -> Any:
        def inserted(self: Connection, name: str, rows: pa.Table) -> None:
            if name == table and loses == "a cell":
                column = rows.column_names[-1]
                rows = rows.set_column(rows.num_columns - 1, column, rows[column].take(pa.array([0] * len(rows))))
            elif name == table:
                rows = rows.slice(0, 0 if loses == "all of it" else len(rows) - 1)
            insert(self, name, rows)

        return inserted

    path = books / "x.ledger"
    with three_releases(path) as ledger:
        made = draft(ledger, [1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 2])
        made = draft(ledger, made.member.tolist(), queue=waiting(ledger))
        before = (ledger.head, [event.hash for event in ledger.log()])
        with monkeypatch.context() as patched:
            for store in (DuckFile, Postgres):
                patched.setattr(store, "insert", losing(store.insert))
            with pytest.raises(
                LedgerError, match=rf"did not keep what was written to it \({table}\).*This step was not recorded"
            ):
                ledger.begin(made)
        assert (ledger.head, [event.hash for event in ledger.log()]) == before
        assert ledger.verify().holds
        ledger.finish(ledger.begin(made).number)
        assert ledger.verify().holds


def waiting(ledger: Ledger) -> WaitingList:
    ids = pa.array(["w1", "w2"])
    return WaitingList(ledger.identify(ids), pa.array([2, 4], pa.int32()).to_numpy())


def test_parts_that_were_not_kept_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series, (first, second) = begin(tmp_path, policy("mondrian")), waves()
    series.publish(first, name="w1", seed=PARTED_SEED)
    write = parquet.write_table

    def short(table: pa.Table, place: Any, **how: Any) -> None:
        write(table.slice(0, len(table) - ("state" in str(place))), place, **how)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_table", short)
        with pytest.raises(LedgerError, match="the parts of release 2 are not what was just written"):
            series.publish(second, name="w2", seed=PARTED_SEED)
    assert [entry.name for entry in series.releases()] == ["w1"]
    assert not (series.folder / "towns" / "0002-w2").exists()
    series.publish(second, name="w2", seed=PARTED_SEED)
    # Nothing loads the state of the first release any more, and nothing is built upon what it became.
    for spoil in (lambda file: file.unlink(), lambda file: write(parquet.read_table(file).slice(1), file)):
        state = next((tmp_path / "towns.ledger.parts" / "0001").glob("*/state.parquet"))
        kept = state.read_bytes()
        spoil(state)
        with pytest.raises(LedgerError, match="what is recorded of release 1 was changed"):
            series.plan(second, name="w3", seed=PARTED_SEED)
        state.write_bytes(kept)
    assert series.plan(second, name="w3", seed=PARTED_SEED).number == 3


@pytest.mark.parametrize("table", ["meta", "log", "queue"])
def test_a_view_in_place_of_a_table_is_called_one(books: Books, table: str) -> None:
    path = books / "x.ledger"
    three_releases(path).close()
    tamper(path, f"ALTER TABLE {table} RENAME TO other", f"CREATE VIEW {table} AS SELECT * FROM other")
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=f"the table {table} of the ledger is a view; put the table back"):
            Ledger.open(path, key=KEY, read_only=read_only)


@pytest.mark.parametrize("seal", ["kept", "removed"])
@pytest.mark.parametrize("version", ["0", "2", "3"])
def test_a_version_that_somebody_wrote_into_a_ledger_is_damage(books: Books, version: str, seal: str) -> None:
    path = books / "x.ledger"
    three_releases(path).close()
    gone = ["DELETE FROM meta WHERE fact = 'seal'"] if seal == "removed" else []
    tamper(path, f"UPDATE meta SET value = '{version}' WHERE fact = 'schema'", *gone)
    with pytest.raises(LedgerError, match=r"the ledger is damaged"):
        Ledger.open(path, key=KEY)


# What an administrator may do to a table, what undoes it, and what is said meanwhile.
UNFIT = {
    "CREATE TRIGGER t BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION public.nothing()": (
        "DROP TRIGGER t ON people",
        "the table people of the ledger has a trigger",
    ),
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON people DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
    "EXECUTE FUNCTION public.nothing()": ("DROP TRIGGER t ON people", "the table people of the ledger has a trigger"),
    "ALTER TABLE retained ADD CONSTRAINT f FOREIGN KEY (person) REFERENCES people (person)": (
        "ALTER TABLE retained DROP CONSTRAINT f",
        "the table retained of the ledger has a trigger or a foreign key",
    ),
    "CREATE RULE r AS ON UPDATE TO releases DO INSTEAD NOTHING": (
        "DROP RULE r ON releases",
        "the table releases of the ledger has a rule",
    ),
    "ALTER TABLE state ENABLE ROW LEVEL SECURITY": (
        "ALTER TABLE state DISABLE ROW LEVEL SECURITY",
        "the table state of the ledger has row-level security",
    ),
    "ALTER TABLE state SET UNLOGGED": ("ALTER TABLE state SET LOGGED", "the table state of the ledger is unlogged"),
    "CREATE TABLE more () INHERITS (state)": ("DROP TABLE more", "the table state of the ledger inherits"),
    "ALTER TABLE queue RENAME TO q; CREATE TABLE queue (LIKE q) PARTITION BY LIST (release); "
    "ALTER TABLE queue OWNER TO steward": (
        "DROP TABLE queue; ALTER TABLE q RENAME TO queue",
        "the table queue of the ledger is no ordinary table",
    ),
}


@needs_server
@pytest.mark.parametrize("statement", UNFIT)
def test_a_schema_that_may_change_what_is_written_is_refused(tmp_path: Path, statement: str) -> None:
    undo, said = UNFIT[statement]
    place = Place.of(SERVER.url(), home=tmp_path, series=f"unfit{next(_NUMBERS)}")
    SERVER.sql(
        "CREATE OR REPLACE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "books",
    )
    with three_releases(place) as ledger:
        made = draft(ledger, [0] * 9)
        # Whatever comes while the ledger is open is seen before anything counts.
        for each in statement.split("; "):
            tamper(place, each)
        with pytest.raises(LedgerError, match=rf"{said}|did not keep what was written|damaged"):
            ledger.begin(made)
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=said):
            Ledger.open(place, key=KEY, read_only=read_only)
    for each in undo.split("; "):
        tamper(place, each)
    with Ledger.open(place, key=KEY) as ledger:
        assert [entry.status for entry in ledger.releases()] == ["published"] * 3
        assert ledger.verify().holds
        publish(ledger, [0] * 9)


@needs_server
def test_a_trigger_that_came_while_a_release_was_recorded_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction would not see it, and it would run."""
    import psycopg

    place = Place.of(SERVER.url(), home=tmp_path, series=f"unfit{next(_NUMBERS)}")
    insert, body = Postgres.insert, "BEGIN DELETE FROM people; RETURN NULL; END"
    SERVER.sql(f"CREATE OR REPLACE FUNCTION public.empty() RETURNS trigger LANGUAGE plpgsql AS '{body}'", "books")

    def by_somebody_else(self: Postgres, statement: str) -> None:
        with psycopg.connect(SERVER.address("books"), autocommit=True) as other:
            other.execute(f"SET search_path TO {quoted_name(self.schema)}")
            other.execute(statement)

    def inserted(self: Postgres, name: str, rows: pa.Table) -> None:
        if name == "people":
            by_somebody_else(
                self,
                "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON people DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
                "EXECUTE FUNCTION public.empty()",
            )
        insert(self, name, rows)

    with three_releases(place) as ledger:
        made = draft(ledger, [0] * 10)
        with monkeypatch.context() as patched:
            patched.setattr(Postgres, "insert", inserted)
            with pytest.raises(LedgerError, match="has a trigger"):
                ledger.begin(made)
        by_somebody_else(ledger._store.connection, "DROP TRIGGER t ON people")
        assert len(ledger.releases()) == 3
        assert ledger.verify().holds
        ledger.finish(ledger.begin(made).number)
        assert ledger.verify().holds


@needs_server
def test_a_view_that_somebody_calls_a_ledger_is_not_read_when_ledgers_are_looked_for(tmp_path: Path) -> None:
    """Whoever may make schemas in the database could run what they like as whoever looks."""
    url = SERVER.url(f"views{next(_NUMBERS)}")
    database = url.rpartition("/")[2]
    new(Place.of(url, home=tmp_path, series="clinic"), series="clinic").close()
    for statement in (
        "CREATE TABLE public.seen (who text)",
        "GRANT ALL ON public.seen TO PUBLIC",
        "CREATE FUNCTION public.look() RETURNS text LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.seen VALUES (current_user); RETURN ''evil''; END'",
        "CREATE SCHEMA sequester_evil",
        "CREATE VIEW sequester_evil.meta AS SELECT 'series' AS fact, public.look() AS value",
        f"GRANT ALL ON SCHEMA sequester_evil TO {STEWARD}",
        f"GRANT ALL ON sequester_evil.meta TO {STEWARD}",
    ):
        SERVER.sql(statement, database)
    assert Place.of(url, home=tmp_path).series == "clinic"
    assert SERVER.sql("SELECT count(*) FROM public.seen", database) == [(0,)]
