"""Tables of databases, and the plans that name them: one SELECT on the database that is named, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

from command import invoke
from hostile import files, refused, spread
from postgres import SERVER

ROWS = (
    "SELECT 'p' || i AS id, 20 + i AS age, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, {note} AS note, "
    "'flu' AS illness FROM range(12) AS rows(i)"
)
TABLE = ROWS.format(note="'x'")
SECRET = "s3cret of another file"
RULES = ("-p", "policy.yaml")
MORE = [
    "SELECT 1; COPY (SELECT 'evil') TO 'victim'; SELECT * FROM q1",
    "SELECT * FROM q1; SELECT * FROM q1",
    "SELECT * FROM q1; -- only a comment\n ; DROP TABLE q1",
    "SELECT * FROM q1; ATTACH 'other.duckdb'",
    "WITH t AS (SELECT 1) SELECT * FROM t; SET enable_external_access = true",
]
OUTSIDE = [
    "SELECT content AS note, * FROM q1, read_text('victim')",
    "SELECT content AS note, * FROM q1, read_blob('victim')",
    "SELECT * FROM q1, read_csv('victim')",
    "SELECT * FROM q1, 'victim.csv'",
    "SELECT file AS note, * FROM q1, glob('*')",
    "WITH t AS (INSERT INTO q1 SELECT * FROM q1 RETURNING *) SELECT * FROM t",
    "SELECT * FROM q1, enable_logging(storage = 'file', storage_config = {'path': 'logs'})",
    "SELECT * FROM wanted",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy, a file that no command is told of, and a database with a table."""
    spread(tmp_path)
    for name in ("victim", "victim.csv"):
        (tmp_path / name).write_text(SECRET)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute(f"CREATE TABLE q1 AS {TABLE}")
    return tmp_path


def sealed_as(folder: Path, **changed: Any) -> None:
    """A saved plan in which somebody changed something."""
    done = invoke("plan", "t.duckdb::q1", *RULES, "--out", "next.plan", cwd=folder)
    assert done.returncode == 0, done.stderr
    plan = json.loads((folder / "next.plan").read_text())
    (folder / "next.plan").write_text(json.dumps({**plan, **changed}))


@pytest.mark.parametrize("query", MORE)
@pytest.mark.parametrize("command", ["plan", "check", "anonymize", "publish"])
def test_a_source_runs_no_second_statement(folder: Path, query: str, command: str) -> None:
    words = ("check", "policy.yaml") if command == "check" else (command,)
    more = {"publish": (*RULES, "--yes"), "check": ()}.get(command, RULES)
    assert "is not one SELECT alone" in refused(*words, f"t.duckdb::{query}", *more, cwd=folder)
    assert (folder / "victim").read_text() == SECRET


@pytest.mark.parametrize("query", OUTSIDE)
def test_a_query_reads_no_other_file_and_no_variable_of_the_program(folder: Path, query: str) -> None:
    said = refused("anonymize", f"t.duckdb::{query}", *RULES, "-o", "out", cwd=folder)
    assert SECRET not in said
    assert not (folder / "logs").exists()


def test_a_view_in_a_duckdb_file_that_reads_other_files_is_refused(folder: Path) -> None:
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        note = f"(SELECT content FROM read_text('{folder / 'victim'}'))"
        database.execute(f"CREATE VIEW peek AS {ROWS.format(note=note)}")
        database.execute("CREATE VIEW plain AS SELECT * FROM q1")
    for command in (("anonymize", "t.duckdb::peek", "-o", "out"), ("publish", "t.duckdb::peek", "--yes")):
        assert "asks for more than the tables of its database" in refused(*command, *RULES, cwd=folder)
    assert invoke("anonymize", "t.duckdb::plain", *RULES, "-o", "out", cwd=folder).returncode == 0


def test_a_duckdb_file_is_as_it_was_after_it_was_read_and_nothing_lies_beside_it(folder: Path) -> None:
    before, there = (folder / "t.duckdb").read_bytes(), files(folder)
    query = "t.duckdb::SELECT * FROM q1 ORDER BY md5(id);"
    assert invoke("check", "policy.yaml", query, cwd=folder).returncode == 0
    assert (folder / "t.duckdb").read_bytes() == before
    assert files(folder) == there


@pytest.mark.parametrize("stem", ["memory", "temp", "system", "main", "a'b\"c"])
def test_a_duckdb_file_of_any_name_is_read_also_while_it_is_open_elsewhere(folder: Path, stem: str) -> None:
    (folder / "t.duckdb").rename(folder / f"{stem}.duckdb")
    with duckdb.connect(str(folder / f"{stem}.duckdb"), read_only=True):
        assert invoke("check", "policy.yaml", f"{stem}.duckdb::q1", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; DROP TABLE q1",
        "SELECT load_extension('evil')",
        "WITH t AS (SELECT 1) INSERT INTO q1 SELECT * FROM q1",
        "WITH t AS (SELECT 1) DELETE FROM q1",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM q1; ATTACH 'new.db' AS new",
    ],
)
def test_a_query_of_sqlite_only_reads_its_tables(folder: Path, query: str) -> None:
    with sqlite3.connect(folder / "t.sqlite") as database:
        database.execute("CREATE TABLE q1 (id, age, sex, note, illness)")
        database.executemany(
            "INSERT INTO q1 VALUES (?, ?, ?, ?, ?)", [(f"p{n}", 20 + n, "fm"[n % 2], "x", "flu") for n in range(12)]
        )
    before = (folder / "t.sqlite").read_bytes()
    refused("anonymize", f"t.sqlite::{query}", *RULES, "-o", "out", cwd=folder)
    assert (folder / "t.sqlite").read_bytes() == before
    good = "t.sqlite::WITH t AS (SELECT * FROM q1) SELECT *, upper(id) AS other FROM t;"
    assert invoke("check", "policy.yaml", good, cwd=folder).returncode == 0


@pytest.mark.skipif(SERVER.why_not is not None, reason=str(SERVER.why_not))
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM mine.q1; COMMIT; DROP TABLE mine.q1; SELECT 1",
        "SELECT 1; DROP TABLE mine.q1",
        "WITH t AS (DELETE FROM mine.q1 RETURNING *) SELECT * FROM t",
        "SELECT nextval('mine.counter'), * FROM mine.q1",
        "SELECT set_config('transaction_read_only', 'off', false), nextval('mine.counter'), * FROM mine.q1",
    ],
)
def test_a_query_of_a_server_only_reads(folder: Path, query: str) -> None:
    import psycopg

    address = SERVER.url("hostile_sources")
    with psycopg.connect(address, autocommit=True) as database:
        database.execute("DROP SCHEMA IF EXISTS mine CASCADE")
        database.execute("CREATE SCHEMA mine")
        database.execute("CREATE SEQUENCE mine.counter")
        rows = TABLE.replace("range(12)", "generate_series(0, 11)")
        database.execute(f"CREATE TABLE mine.q1 AS {rows}")
        refused("anonymize", f"{address}::{query}", *RULES, "-o", "out", cwd=folder)
        counted = database.execute("SELECT count(*) FROM mine.q1").fetchone()
        assert counted == (12,)
        assert database.execute("SELECT is_called FROM mine.counter").fetchone() == (False,)
        assert invoke("check", "policy.yaml", f"{address}::SELECT * FROM mine.q1 -- all", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    "source",
    [
        "t.duckdb::SELECT 1; COPY (SELECT 'evil') TO 'victim'; SELECT * FROM q1",
        "t.duckdb::SELECT * FROM q1",
        "data.csv",
    ],
)
def test_a_plan_with_another_source_is_stale_and_nothing_of_it_is_run(folder: Path, source: str) -> None:
    sealed_as(folder, source=source)
    said = refused("publish", "next.plan", *RULES, cwd=folder, codes=(5,))
    assert "it was edited, or made elsewhere" in said
    assert (folder / "victim").read_text() == SECRET


def test_a_table_that_moved_is_named_beside_its_plan(folder: Path) -> None:
    sealed_as(folder)
    (folder / "elsewhere").mkdir()
    (folder / "t.duckdb").rename(folder / "elsewhere" / "u.duckdb")
    assert "say where the table is now (`--data`)" in refused("publish", "next.plan", *RULES, cwd=folder)
    evil = f"elsewhere/u.duckdb::{MORE[0]}"
    assert "one SELECT alone" in refused("publish", "next.plan", *RULES, "--data", evil, cwd=folder)
    other = ("publish", "next.plan", *RULES, "--data", "data.csv")
    assert "the table has changed" in refused(*other, cwd=folder, codes=(5,))
    done = invoke("publish", "next.plan", *RULES, "--data", "elsewhere/u.duckdb", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "for a saved plan" in refused("publish", "data.csv", *RULES, "--data", "data.csv", cwd=folder, codes=(2,))
