"""A series whose tables come from a database and a workbook: the same commands, the same rows."""

from __future__ import annotations

from pathlib import Path

import duckdb
import openpyxl
import pytest

from clinic import CANARY, people, set_up
from command import invoke

RULES = ("-p", "policy.yaml")
SEED = ("--seed", str(1 << 63 | 7))


def test_a_database_a_workbook_and_a_csv_file_give_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows are sorted by ids hashed with the key.
    monkeypatch.setenv("SEQUESTER_KEY", "0123456789abcdef")
    written = []
    for suffix in ("csv", "duckdb::q1", "xlsx"):
        folder = tmp_path / suffix.split(":")[0]
        folder.mkdir()
        set_up(folder)
        with duckdb.connect(str(folder / "q1.duckdb")) as made:
            made.execute("CREATE TABLE q1 AS SELECT * FROM read_csv(?)", [str(folder / "q1.csv")])
        book = openpyxl.Workbook()
        for row in [("id", "age", "city", "illness"), *people(60)]:
            book.active.append(row)
        book.save(folder / "q1.xlsx")
        done = invoke("publish", f"q1.{suffix}", *RULES, "--yes", *SEED, cwd=folder)
        assert done.returncode == 0, done.stderr
        written.append((folder / "releases" / "clinic" / "0001-q1" / "data.csv").read_bytes())
    assert written[0] == written[1] == written[2]


def test_a_saved_plan_of_a_table_in_a_database_is_published_from_another_folder(tmp_path: Path) -> None:
    folder = set_up(tmp_path)
    with duckdb.connect(str(folder / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE first AS SELECT * FROM read_csv(?)", [str(folder / "q1.csv")])
    done = invoke("plan", "clinic.duckdb::first", *RULES, "--out", "next.plan", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "elsewhere").mkdir()
    done = invoke("publish", "../next.plan", "-p", "../policy.yaml", "--yes", cwd=folder / "elsewhere")
    assert done.returncode == 0, done.stderr
    assert (folder / "releases" / "clinic" / "0001-first").is_dir()


def test_what_is_wrong_with_a_table_in_a_database_is_told_without_a_cell(tmp_path: Path) -> None:
    folder = set_up(tmp_path)
    with duckdb.connect(str(folder / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT *, illness AS gone FROM read_csv(?)", [str(folder / "q1.csv")])
        made.execute("ALTER TABLE t DROP COLUMN city")
    done = invoke("plan", "clinic.duckdb::t", *RULES, cwd=folder)
    assert done.returncode == 6
    assert "city" in done.stderr
    assert CANARY not in done.stdout + done.stderr
