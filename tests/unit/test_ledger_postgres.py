"""What a server does that a file does not: schemas, rights, lost connections, and a log of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from books import tamper
from ledgers import KEY, crowd, draft, new, publish, three_releases
from postgres import OWNER, SERVER, STEWARD
from sequester.domain.tree import from_values
from sequester.errors import Busy, LedgerError
from sequester.ledger import Ledger, Place
from sequester.ledger.postgres import Postgres, new_schema, quoted_name, schema_of
from sequester.ledger.postgres_rows import decode, encode, oid_of, packing, unpack
from sequester.ledger.schema import EVERY_TABLE

pytestmark = pytest.mark.skipif(SERVER.why_not is not None, reason=SERVER.why_not or "")
_NUMBERS = count(1)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place for a ledger that no other test has."""
    return Place.of(SERVER.url(), home=tmp_path, series=f"p{next(_NUMBERS)}")


@pytest.fixture
def database() -> Iterator[str]:
    """A database of its own, whose steward may make no schema there."""
    name = f"small{next(_NUMBERS)}"
    SERVER.url(name)
    SERVER.sql(f'REVOKE CREATE ON DATABASE "{name}" FROM {STEWARD}')
    yield name
    SERVER.sql(f'DROP DATABASE "{name}" WITH (FORCE)')


def backend(ledger: Ledger) -> int:
    """The process of the server that serves this ledger."""
    return int(ledger._store.connection.execute("SELECT pg_backend_pid()")[0][0])


def terminate(ledger: Ledger) -> None:
    """What an administrator, or a network that fails, does to a connection."""
    SERVER.sql(f"SELECT pg_terminate_backend({backend(ledger)}, 5000)")


def test_one_writes_or_several_read(place: Place) -> None:
    new(place).close()
    with Ledger.open(place, key=KEY, read_only=True), Ledger.open(place, key=KEY, read_only=True, timeout=0):
        with pytest.raises(Busy, match="another command has the ledger") as error:
            Ledger.open(place, key=KEY, timeout=0)
        assert error.value.exit_code == 5
    # The end of a command lets the next one in at once.
    with Ledger.open(place, key=KEY, timeout=0):
        for read_only in (True, False):
            with pytest.raises(Busy):
                Ledger.open(place, key=KEY, read_only=read_only, timeout=0.1)
    Ledger.open(place, key=KEY, timeout=0).close()


def test_a_reader_changes_nothing(place: Place) -> None:
    new(place).close()
    with Ledger.open(place, key=KEY, read_only=True) as ledger:
        made = draft(ledger, [0, 0])
        with pytest.raises(LedgerError, match="opened only to be read"):
            ledger.begin(made)
        with pytest.raises(LedgerError, match="only lets the ledger be read"):
            ledger._store.connection.execute("DELETE FROM meta")
    with Ledger.open(place, key=KEY) as ledger:
        assert ledger.releases() == []


def test_series_in_one_database_do_not_know_of_each_other(place: Place, tmp_path: Path) -> None:
    other = Place.of(SERVER.url(), home=tmp_path, series=f"{place.series}.other")
    with three_releases(place) as one, new(other) as two:
        publish(two, [0, 0])
        assert (len(one.releases()), len(two.releases())) == (3, 1)
        assert one.verify().holds
        assert two.verify().holds


def test_an_address_without_a_series_means_the_only_one(tmp_path: Path) -> None:
    url = SERVER.url(f"few{next(_NUMBERS)}")
    with pytest.raises(LedgerError, match="there is no ledger here"):
        Place.of(url)
    new(Place.of(url, home=tmp_path, series="clinic"), series="clinic").close()
    assert Place.of(url, home=tmp_path) == Place.of(url, home=tmp_path, series="clinic")
    new(Place.of(url, home=tmp_path, series="abc"), series="abc").close()
    with pytest.raises(LedgerError, match=r"several ledgers in this database; say which by #series.*: abc, clinic$"):
        Place.of(url)
    assert Place.of(f"{url}#abc").series == "abc"
    # What somebody else calls a ledger is not shown.
    SERVER.sql("CREATE SCHEMA sequester_evil", url.rpartition("/")[2])
    SERVER.sql("CREATE TABLE sequester_evil.meta AS SELECT 'series' fact, E'\\x1b[2J' AS value", url.rpartition("/")[2])
    SERVER.sql(f"GRANT ALL ON SCHEMA sequester_evil TO {STEWARD}", url.rpartition("/")[2])
    SERVER.sql(f"GRANT ALL ON sequester_evil.meta TO {STEWARD}", url.rpartition("/")[2])
    with pytest.raises(LedgerError, match=r": abc, clinic$"):
        Place.of(url)


def test_a_ledger_is_made_whole_or_not_at_all(place: Place) -> None:
    def fail() -> None:
        with new_schema(place) as connection, connection.transaction():
            connection.execute("CREATE TABLE meta (fact VARCHAR, value VARCHAR)")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert not place.exists()
    assert SERVER.sql(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema_of(place.series or '')}'", "books") == []
    new(place).close()
    assert place.exists()
    with pytest.raises(LedgerError, match="exists already"):
        new(place)


def test_of_two_who_make_a_ledger_one_is_told_to_wait(place: Place) -> None:
    with new_schema(place) as connection:
        with connection.transaction(), pytest.raises(Busy):
            new(place)
        with pytest.raises(Busy):
            new(place)
    new(place).close()


def test_a_ledger_without_releases_is_removed_and_made_anew(place: Place) -> None:
    with new(place) as ledger:
        ledger.remove()
    assert not place.exists()
    with three_releases(place) as ledger, pytest.raises(LedgerError, match="it stays"):
        ledger.remove()
    assert place.exists()


def test_encryption_is_the_servers_business(place: Place) -> None:
    with pytest.raises(LedgerError, match="encrypted by the server"):
        new(place, encrypted=True)
    assert not place.exists()


def test_who_may_make_no_schema_is_told_and_an_empty_one_made_by_the_owner_will_do(
    database: str, tmp_path: Path
) -> None:
    place = Place.of(SERVER.address(database), home=tmp_path, series="clinic")
    with pytest.raises(LedgerError, match="must own the schema of the series, or have the right to create one"):
        new(place)
    SERVER.sql(f"CREATE SCHEMA sequester_clinic AUTHORIZATION {STEWARD}", database)
    with new(place) as ledger:
        publish(ledger, [0, 0])
        assert ledger.verify().holds


def test_who_may_only_read_reads_and_is_told_when_writing(database: str, tmp_path: Path) -> None:
    SERVER.sql(f"CREATE SCHEMA sequester_clinic AUTHORIZATION {STEWARD}", database)
    place = Place.of(SERVER.address(database), home=tmp_path, series="clinic")
    three_releases(place).close()
    for statement in (
        "DROP ROLE IF EXISTS auditor",
        "CREATE ROLE auditor LOGIN",
        "GRANT USAGE ON SCHEMA sequester_clinic TO auditor",
        "GRANT SELECT ON ALL TABLES IN SCHEMA sequester_clinic TO auditor",
    ):
        SERVER.sql(statement, database)
    theirs = Place.of(SERVER.address(database, "auditor"), home=tmp_path, series="clinic")
    with Ledger.open(theirs, key=KEY, read_only=True) as ledger:
        assert ledger.verify().holds
    with (
        Ledger.open(theirs, key=KEY) as ledger,
        pytest.raises(LedgerError, match="the server does not let you do this"),
    ):
        publish(ledger, [0] * 9)
    SERVER.sql("DROP OWNED BY auditor", database)
    with pytest.raises(LedgerError, match="the server does not let you do this"):
        Ledger.open(theirs, key=KEY, read_only=True)


def test_wrong_passwords_users_and_databases_are_told_apart_from_a_server_that_is_not_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    SERVER.sql("DROP ROLE IF EXISTS guarded")
    SERVER.sql("CREATE ROLE guarded LOGIN PASSWORD 'the right one'")
    SERVER.sql("GRANT CREATE ON DATABASE books TO guarded")
    guarded = SERVER.address("books", "guarded")
    for address, reason in (
        (guarded, "does not let you in"),
        (guarded.replace("guarded@", "guarded:wrong@"), "does not let you in"),
        (SERVER.address("books", "nobody"), "does not let you in"),
        (SERVER.address("no such book".replace(" ", "%20")), "there is no such database"),
    ):
        with pytest.raises(LedgerError, match=reason) as error:
            Place.of(address, series="x").exists()
        assert "wrong" not in str(error.value)
    monkeypatch.setenv("PGPASSWORD", "the right one")
    theirs = Place.of(guarded, home=place.home, series=f"{place.series}.guarded")
    new(theirs).close()
    assert theirs.exists()
    SERVER.sql("DROP OWNED BY guarded", "books")
    SERVER.sql("DROP ROLE guarded")


def test_a_database_that_cannot_keep_every_text_is_refused(tmp_path: Path) -> None:
    SERVER.url()
    SERVER.sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    SERVER.sql(f"GRANT CREATE ON DATABASE latin TO {STEWARD}")
    with pytest.raises(LedgerError, match="encoding UTF8"):
        new(Place.of(SERVER.address("latin"), home=tmp_path, series="clinic"))
    SERVER.sql("DROP DATABASE latin WITH (FORCE)")


def test_text_of_every_kind_comes_back_and_what_cannot_be_kept_is_said(place: Place) -> None:
    odd = "tab\t, \"quotes\", back\\slash, \\N, {1,2}, nothing: '', \u2603 \U0001f600\r\n end"
    with new(place, policy_text=odd) as ledger:
        publish(ledger, [0, 0], purpose=odd, recipient="")
        entry = ledger.releases()[0]
        assert (ledger.policy_text, entry.purpose, entry.recipient) == (odd, odd, "")
        assert ledger.verify().holds
        for bad in ("a\0b", "a\udc80b"):
            with pytest.raises(LedgerError) as error:
                publish(ledger, [0, 0], purpose=bad)
            assert "characters that cannot be kept" in str(error.value) or "cannot keep a text" in str(error.value)
        assert len(ledger.releases()) == 1


def test_rows_come_back_in_their_order_wherever_the_server_puts_them(place: Place) -> None:
    """A server puts new rows where old ones were removed."""
    with new(place) as ledger:
        publish(ledger, crowd(ledger, 3000, 0).member.tolist())
        entry = ledger.begin(crowd(ledger, 3000, 500))
        ledger.withdraw(entry.number)
    tamper(place, "VACUUM")
    with Ledger.open(place, key=KEY) as ledger:
        publish(ledger, crowd(ledger, 3000, 500).member.tolist())
    tamper(place, "CLUSTER people USING people_pkey", "UPDATE state SET release = release WHERE person % 3 = 0")
    with Ledger.open(place, key=KEY) as ledger:
        assert ledger.load().people == 3500
        assert ledger.verify().holds


def test_nothing_gets_one_number_twice_whatever_happens_to_the_locks(place: Place) -> None:
    import psycopg

    three_releases(place).close()
    for table in ("releases", "log", "people", "meta"):
        with pytest.raises(psycopg.errors.UniqueViolation):
            tamper(place, f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    with Ledger.open(place, key=KEY) as one:
        # A lock that is lost without the connection: somebody pools connections.
        one._store.connection.execute("SELECT pg_advisory_unlock_all()")
        with Ledger.open(place, key=KEY, timeout=0) as two, pytest.raises(LedgerError, match=r"twice|another command"):
            publish_both(one, two)
    with Ledger.open(place, key=KEY) as ledger:
        assert len(ledger.releases()) == 4
        assert ledger.verify().holds


def publish_both(one: Ledger, two: Ledger) -> None:
    """Two publishers at once, each of which read the ledger before the other wrote to it."""
    with one._store.connection.transaction():
        one.log()
        publish(two, [0] * 9)
        one._store.record("begun", 4, "x")


@pytest.mark.parametrize("act", ["load", "begin", "record"])
def test_a_writer_whose_connection_ended_does_not_go_on(place: Place, act: str) -> None:
    with new(place) as ledger:
        publish(ledger, [0, 0])
        made = draft(ledger, [0, 0, 0])
        actions: dict[str, Callable[[], object]] = {
            "load": ledger.load,
            "begin": lambda: ledger.begin(made),
            "record": lambda: ledger._store.connection.insert("retained", pa.table({"release": [1], "person": [0]})),
        }
        terminate(ledger)
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"server went down, or ended the connection|connection .* was lost"):
                actions[act]()
        # Somebody else has it meanwhile: the lock went with the connection.
        with Ledger.open(place, key=KEY, timeout=0) as other:
            assert len(other.releases()) == 1
            assert other.verify().holds


def test_a_connection_that_ends_in_a_transaction_leaves_nothing_of_it(place: Place) -> None:
    def record_and_lose(ledger: Ledger) -> None:
        with ledger._store.connection.transaction():
            ledger._store.record("begun", 1, "half of it")
            terminate(ledger)
            ledger._store.record("begun", 1, "the other half")

    with new(place) as ledger, pytest.raises(LedgerError, match=r"ended the connection|was lost"):
        record_and_lose(ledger)
    with Ledger.open(place, key=KEY) as ledger:
        assert [event.action for event in ledger.log()] == ["created"]


def test_a_commit_that_the_server_did_not_make_is_no_commit(place: Place) -> None:
    """COMMIT after an error is no error to the server: it undoes everything and says so in passing."""

    def record_and_fail(ledger: Ledger) -> None:
        with ledger._store.connection.transaction(), contextlib.suppress(LedgerError):
            ledger._store.record("begun", 1, "x")
            ledger._store.connection.execute("SELECT nothing FROM nowhere")

    with new(place) as ledger:
        with pytest.raises(LedgerError, match="did not record this"):
            record_and_fail(ledger)
        assert [event.action for event in ledger.log()] == ["created"]


def test_what_is_stored_is_in_no_log_of_the_server(place: Place) -> None:
    """Whoever may read the server's log may not be who may read its tables."""
    log = SERVER.folder / "log"
    SERVER.url()
    for setting in (
        "log_statement = 'all'",
        "log_min_duration_statement = 0",
        "log_parameter_max_length_on_error = -1",
    ):
        SERVER.sql(f"ALTER ROLE {STEWARD} SET {setting}")
    start = log.stat().st_size
    try:
        with new(place, policy_text="CANARY policy") as ledger:
            domains = {"age": from_values(["CANARY a", "CANARY b"]), "illness": from_values(["CANARY c"])}
            full = {**{name: domains.get(name, from_values(["x", "y"])) for name in ("age", "zip", "illness", "ward")}}
            box = {"lo": np.zeros((2, 1), np.int32), "hi": np.zeros((2, 1), np.int32)}
            values = np.zeros((2, 2), np.int32)
            publish(ledger, [0, 0], domains=full, values=values, summary={"x": "CANARY d"}, purpose="CANARY e", **box)
            ledger.load()
            assert ledger.verify().holds
            tamper(place, "DROP TABLE counts")
            with pytest.raises(LedgerError):
                ledger.load()
    finally:
        for setting in ("log_statement", "log_min_duration_statement", "log_parameter_max_length_on_error"):
            SERVER.sql(f"ALTER ROLE {STEWARD} RESET {setting}")
    with log.open("rb") as stream:
        stream.seek(start)
        said = stream.read().decode()
    assert "COPY domains" in said
    assert "CANARY" not in said
    assert str(2**70) not in said


def test_settings_that_would_lose_what_was_recorded_are_changed(place: Place) -> None:
    new(place).close()
    names = ("synchronous_commit", "search_path", "application_name")
    shown = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
    for given, taken in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        SERVER.sql(f"ALTER ROLE {STEWARD} SET synchronous_commit = {given}")
        try:
            with Ledger.open(place, key=KEY) as ledger:
                found = ledger._store.connection.execute(shown)[0]
            assert found == (taken, quoted_name(schema_of(place.series or "")), "sequester")
        finally:
            SERVER.sql(f"ALTER ROLE {STEWARD} RESET synchronous_commit")


def test_an_error_of_the_server_is_neither_quoted_nor_kept_as_a_cause(place: Place) -> None:
    with new(place) as ledger:
        for statement in ("SELECT 'CANARY'::integer", 'SELECT 1/0 AS "CANARY"', "nonsense CANARY"):
            with pytest.raises(LedgerError) as error:
                ledger._store.connection.execute(statement)
            assert "CANARY" not in str(error.value)
            assert error.value.__cause__ is None
            assert error.value.__context__ is None


def test_numbers_of_every_size_come_back_and_keep_their_order(place: Place) -> None:
    numbers = [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
    rows = pa.table(
        {
            "release": pa.array([1] * 6, pa.int32()),
            "high": pa.array(numbers, pa.uint64()),
            "low": pa.array(numbers[::-1], pa.uint64()),
            "since": pa.array(range(6), pa.int32()),
        }
    )
    with new(place) as ledger:
        connection = ledger._store.connection
        connection.insert("queue", rows.take([3, 5, 0, 1, 4, 2]))
        found = connection.table("SELECT release, high, low, since FROM queue ORDER BY high")
        assert found.equals(rows)


@pytest.mark.parametrize("lists", [[[1, 2], [3]], [[1], None], [[1], [None]], [[], [1]], [[], []], [[-1], [2**31 - 1]]])
def test_lists_of_any_length_come_back(place: Place, lists: list[list[int | None] | None]) -> None:
    """Only lists that are equally long are what a ledger writes; others are read slowly, to be told as damage."""
    kinds = list(EVERY_TABLE["counts"].values())
    rows = pa.table(
        {
            "release": pa.array([1, 1], pa.int32()),
            "class": pa.array([0, 1], pa.int32()),
            "codes": pa.array(lists, pa.large_list(pa.int32())),
            "n": pa.array([5, None if lists == [[], []] else 6], pa.int32()),
        }
    )
    with new(place) as ledger:
        connection = ledger._store.connection
        connection.insert("counts", rows)
        assert connection.table('SELECT release, "class", codes, n FROM counts ORDER BY "class"').equals(rows)
    whole = encode(rows.slice(0, 1), kinds)
    if whole is not None:
        assert decode(whole, rows.column_names, [oid_of(kind) for kind in kinds]) == rows.slice(0, 1)
        assert decode(whole[:-3] + whole[-2:], rows.column_names, [oid_of(kind) for kind in kinds]) is None


def test_rows_that_come_in_another_order_are_put_back_in_theirs_and_none_is_missed(place: Place) -> None:
    sql = "SELECT person, trajectory FROM state ORDER BY person DESC"
    people = np.arange(70_000)
    with new(place) as ledger:
        connection = ledger._store.connection
        assert isinstance(connection, Postgres)
        rows = {"release": people * 0 + 1, "person": people, "trajectory": people % 7}
        connection.insert("state", pa.table({name: pa.array(array, pa.int32()) for name, array in rows.items()}))
        names, types = ["person", "trajectory"], [oid_of("INTEGER")] * 2
        parts = connection.execute(packing(sql, names, types))
        assert len(parts) == 2
        for given in (parts, parts[::-1]):
            found = unpack(given, names, types)  # type: ignore[arg-type]
            assert found is not None
            assert found["person"].to_numpy().tolist() == people[::-1].tolist()
        assert unpack([(parts[0][0] + 1, parts[0][1]), parts[1]], names, types) is None  # type: ignore[list-item]
        connection.execute("UPDATE state SET trajectory = NULL WHERE person = 5")
        assert connection.table(sql)["trajectory"].null_count == 1


def test_a_copy_of_the_server_is_not_taken_for_the_server(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    new(place).close()
    ask = Postgres.execute

    def behind(self: Postgres, sql: str, parameters: object = ()) -> list[tuple[object, ...]]:
        return ask(self, sql.replace("pg_is_in_recovery()", "true"), parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(Postgres, "execute", behind)
    with pytest.raises(LedgerError, match="may lag behind"):
        Ledger.open(place, key=KEY, read_only=True)


def test_an_administrator_sees_who_has_the_ledger(place: Place) -> None:
    new(place).close()
    with Ledger.open(place, key=KEY):
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sequester' AND usename = 'steward'"
        assert SERVER.sql(sql) == [(1,)]
    assert OWNER != STEWARD
