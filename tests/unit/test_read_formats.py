"""Spreadsheets, files of statistics packages, databases, decimal commas: read as what they are, or refused."""

from __future__ import annotations

import datetime
import sqlite3
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from postgres import SERVER
from sequester.errors import DataError, MissingLibrary
from sequester.ingest import read
from sequester.ingest.decimals import with_points
from sequester.ingest.encode import encode
from sequester.ingest.named import InputName, named, stem_of, whole_name
from sequester.policy import Policy

CANARY = "Zq9canary"
DAYS = [datetime.date(2020, 1, 2), datetime.date(2021, 3, 4)]


def workbook(path: Path, **sheets: Any) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def stata(path: Path) -> Path:
    frame = pd.DataFrame({"id": [1, 2], "word": ["a", ""], "x": [1.5, None], "day": DAYS})
    import pyreadstat

    writers: dict[str, Any] = {
        ".dta": pyreadstat.write_dta,
        ".sav": pyreadstat.write_sav,
        ".xpt": pyreadstat.write_xport,
    }
    writers[path.suffix](frame, str(path))
    return path


def test_a_workbook_with_an_empty_column_is_read_without_a_word(tmp_path):
    path = workbook(tmp_path / "t.xlsx", s=[["id", "empty"], [1, None], [2, None]])
    code = "import sys; from sequester.ingest import read; read(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_only_sheet_with_rows_is_read_with_text_numbers_and_days_as_they_are(tmp_path):
    rows = [["id", "zip", "x", "day"], [1, "02139", 1.5, DAYS[0]], [2, "00501", None, DAYS[1]]]
    table = read(workbook(tmp_path / "t.xlsx", people=rows, notes=[]))
    assert table["zip"].to_pylist() == ["02139", "00501"]
    assert table["x"].to_pylist() == [1.5, None]
    assert [stamp.date() for stamp in table["day"].to_pylist()] == DAYS
    assert table["id"].to_pylist() == [1, 2]


def test_a_sheet_is_named_behind_two_colons(tmp_path):
    path = workbook(tmp_path / "t.xlsx", **{"one": [["a"], [1]], "the other": [["b"], ["x"]]})
    assert read(f"{path}::the other").to_pydict() == {"b": ["x"]}
    with pytest.raises(DataError, match=r"2 sheets with rows; say which one: t\.xlsx::SHEET"):
        read(path)
    with pytest.raises(DataError, match="no sheet of that name"):
        read(f"{path}::{CANARY}")


def test_a_column_of_several_types_in_a_sheet_is_text(tmp_path):
    path = workbook(tmp_path / "t.xlsx", s=[["mixed"], ["a"], [5]])
    assert read(path).to_pydict() == {"mixed": ["a", "5"]}


def test_what_is_no_workbook_or_unpacks_to_too_much_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_text(CANARY)
    with pytest.raises(DataError, match="no workbook") as error:
        read(tmp_path / "t.xlsx")
    assert CANARY not in str(error.value)
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/a.xml", b"0" * 1000)
    raw = bytearray(bomb.read_bytes())
    # The size that the directory claims: the last entry's, at 24 bytes behind its mark.
    at = raw.rindex(b"PK\x01\x02") + 24
    raw[at : at + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    bomb.write_bytes(bytes(raw))
    with pytest.raises(DataError, match="unpacks to more than 2 GB"):
        read(bomb)


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".xpt"])
def test_files_of_statistics_packages_are_read_and_empty_text_is_no_value(tmp_path, suffix):
    table = read(stata(tmp_path / f"t{suffix}"))
    assert table.column_names == ["id", "word", "x", "day"]
    assert table.to_pydict() == {"id": [1, 2], "word": ["a", None], "x": [1.5, None], "day": DAYS}
    assert read(tmp_path / f"t{suffix}", columns=["x"]).column_names == ["x"]


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".sas7bdat", ".xpt", ".por"])
def test_a_damaged_file_of_a_statistics_package_is_refused_without_a_word_of_it(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text(CANARY * 50)
    with pytest.raises(DataError, match="cut off or damaged") as error:
        read(path)
    assert CANARY not in str(error.value)


@pytest.mark.parametrize(("module", "suffix"), [("fastexcel", ".xlsx"), ("pyreadstat", ".dta")])
def test_a_library_that_is_not_there_is_named_with_its_extra(tmp_path, monkeypatch, module, suffix):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"t{suffix}").write_text("x")
    with pytest.raises(MissingLibrary, match=r"pip install 'sequester\[(excel|statistics)\]'"):
        read(tmp_path / f"t{suffix}")


def database(path: Path) -> Path:
    made: Any
    rows = [("a1", "02139", 1), ("a2", "00501", None)]
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as made:
            made.execute("CREATE TABLE patients (id VARCHAR, zip VARCHAR, n INTEGER)")
            made.executemany("INSERT INTO patients VALUES (?, ?, ?)", rows)
    else:
        made = sqlite3.connect(path)
        made.execute("CREATE TABLE patients (id TEXT, zip TEXT, n INTEGER)")
        made.executemany("INSERT INTO patients VALUES (?, ?, ?)", rows)
        made.commit()
        made.close()
    return path


@pytest.mark.parametrize("suffix", [".duckdb", ".sqlite", ".db"])
def test_a_table_or_a_query_of_a_database_file_is_read_and_nothing_is_written(tmp_path, suffix):
    path = database(tmp_path / f"clinic{suffix}")
    before = path.read_bytes()
    whole = {"id": ["a1", "a2"], "zip": ["02139", "00501"], "n": [1, None]}
    assert read(path).to_pydict() == whole
    assert read(f"{path}::patients").to_pydict() == whole
    assert read(f"{path}::select id from patients where n = 1").to_pydict() == {"id": ["a1"]}
    assert read(f"{path}::patients", columns=["zip"]).to_pydict() == {"zip": ["02139", "00501"]}
    assert path.read_bytes() == before
    with pytest.raises(DataError, match="no table of that name"):
        read(f"{path}::{CANARY}")
    with pytest.raises(DataError, match="query is not understood") as error:
        read(f"{path}::select {CANARY} from patients")
    assert CANARY not in str(error.value)


@pytest.mark.parametrize("suffix", [".duckdb", ".sqlite"])
def test_of_several_tables_one_must_be_named(tmp_path, suffix):
    path = database(tmp_path / f"clinic{suffix}")
    connection = duckdb.connect(str(path)) if suffix == ".duckdb" else sqlite3.connect(path)
    connection.execute("CREATE TABLE other (a INTEGER)")
    connection.close()
    with pytest.raises(DataError, match="2 tables; say which one, or a query"):
        read(path)


def test_a_query_cannot_write_to_a_database(tmp_path):
    path = database(tmp_path / "clinic.sqlite")
    with pytest.raises(DataError, match="asks for more than the tables of its database"):
        read(f"{path}::WITH x AS (SELECT 1) DELETE FROM patients")
    assert len(read(path)) == 2


def test_cells_of_several_types_in_sqlite_are_told_without_a_cell(tmp_path):
    path = tmp_path / "t.db"
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE t (a)")
    made.executemany("INSERT INTO t VALUES (?)", [(1,), (CANARY,)])
    made.commit()
    made.close()
    with pytest.raises(DataError, match="several types; make it one with CAST") as error:
        read(path)
    assert CANARY not in str(error.value)


def test_what_is_no_database_is_refused(tmp_path):
    path = tmp_path / "t.duckdb"
    path.write_text(CANARY * 100)
    with pytest.raises(DataError, match="no database that can be read") as error:
        read(path)
    assert CANARY not in str(error.value)


@pytest.mark.skipif(SERVER.why_not is not None, reason=str(SERVER.why_not))
def test_a_table_or_a_query_of_a_server_is_read(tmp_path):
    address, schema = SERVER.url(), f"s{uuid.uuid4().hex}"
    SERVER.sql(f"CREATE SCHEMA {schema}", "books")
    table = f"{schema}.t"
    SERVER.sql(f"CREATE TABLE {table} (id UUID, n INTEGER, x NUMERIC(8, 2), day DATE)", "books")
    SERVER.sql(f"INSERT INTO {table} VALUES (gen_random_uuid(), NULL, 1.25, '2020-01-02')", "books")
    SERVER.sql(f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC", "books")
    SERVER.sql(f"GRANT SELECT ON {table} TO PUBLIC", "books")
    try:
        whole = read(f"{address}::{table}")
        assert whole.column_names == ["id", "n", "x", "day"]
        assert len(whole["id"].to_pylist()[0]) == 36
        assert float(whole["x"].to_pylist()[0]) == 1.25
        assert read(f"{address}::SELECT day FROM {table}").to_pydict() == {"day": [DAYS[0]]}
        with pytest.raises(DataError, match="no table of that name"):
            read(f"{address}::{CANARY}")
    finally:
        SERVER.sql(f"DROP SCHEMA {schema} CASCADE", "books")


def test_an_address_with_a_password_is_refused_without_showing_it():
    for address in (f"postgresql://me:{CANARY}@localhost/db::t", f"postgresql://localhost/db?password={CANARY}"):
        with pytest.raises(DataError, match="PGPASSWORD") as error:
            read(address)
        assert CANARY not in str(error.value)


def test_names_of_inputs_say_place_table_and_query(tmp_path, monkeypatch):
    assert named("a.csv") == InputName("a.csv")
    assert named("a.xlsx::Sheet 1") == InputName("a.xlsx", "Sheet 1")
    assert named(Path("postgresql://me@host/db::public.t")) == InputName("postgresql://me@host/db", "public.t")
    assert InputName("a.db", " select 1").is_query
    assert not InputName("a.db", "selected").is_query
    odd = tmp_path / "a::b.csv"
    odd.write_text("x\n1\n")
    assert read(odd).to_pydict() == {"x": ["1"]}
    assert stem_of("folder/2026-q3.csv.gz") == "2026-q3"
    assert stem_of("clinic.duckdb::main.patients") == "patients"
    assert stem_of("clinic.duckdb::SELECT 1") == "clinic"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.db").touch()
    assert whole_name("a.db::t") == f"{tmp_path / 'a.db'}::t"
    assert whole_name("catalog.patients") == "catalog.patients"
    assert whole_name("postgres://h/db::t") == "postgresql://h/db::t"


def test_a_table_behind_colons_is_refused_where_the_file_is_one_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(DataError, match="is one table: leave out what is behind ::"):
        read(f"{path}::t")


POLICY = {
    "version": 1,
    "series": "s",
    "attributes": {"x": {"role": "quasi-identifier", "kind": "number", "range": [0, 2000]}},
    "protect": {"k": 1},
}


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [(["1,5", "2"], [1.5, 2.0]), (["1.234,5", "1.999"], [1234.5, 1999.0]), (["-0,5e1", ",5"], None)],
)
def test_decimal_commas_are_read_as_numbers(cells, numbers):
    column = pa.chunked_array([pa.array(cells)])
    for given in (column, column.dictionary_encode()):
        texts = with_points(given).to_pylist()
        assert [float(text) for text in texts] == (numbers or [-5.0, 0.5])
    if numbers:
        policy = Policy.model_validate({**POLICY, "input": {"decimal": ","}})
        snapshot = encode(pa.table({"x": column}), policy)
        assert [float(snapshot.quasi_domains[0].leaves[code]) for code in snapshot.quasi[0]] == numbers


@pytest.mark.parametrize("cell", ["1.5", "1.2345", "12.34,5", "1,2,3"])
def test_a_point_that_is_not_between_thousands_is_no_number_where_commas_are_decimal(cell):
    policy = Policy.model_validate({**POLICY, "input": {"decimal": ","}})
    with pytest.raises(DataError, match="is not a number"):
        encode(pa.table({"x": [cell, "2"]}), policy)


def test_where_nothing_is_said_a_comma_is_no_number():
    with pytest.raises(DataError, match="is not a number"):
        encode(pa.table({"x": ["1,5", "2"]}), Policy.model_validate(POLICY))
