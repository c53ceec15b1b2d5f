"""Every kind of bad input through the real command line: exit code 6, the message on stderr, nothing on stdout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from command import invoke, sequester, sequester_on_a_terminal

POLICY = """\
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 120]}
  sex: {role: quasi-identifier, hierarchy: {Person: [f, m]}}
  zip: {role: quasi-identifier, kind: code, length: 5}
  day: {role: quasi-identifier, kind: date}
  cost: {role: sensitive, kind: number, bands: [0, 10, 100]}
  illness: {role: sensitive}
protect: {k: 2}
"""
HEADER = "id,age,sex,zip,day,cost,illness"
GOOD = [
    "p1,30,f,02139,2024-01-01,5,flu",
    "p2,40,m,02140,2024-01-02,50,none",
    "p3,50,m,02141,2024-01-03,7,flu",
    "p4,60,f,02142,2024-01-04,70,none",
]
BAD: dict[str, tuple[list[str], str]] = {
    "a person twice": (["p1,30,f,02139,2024-01-01,5,flu"], "1 row is about a person who has an earlier row (row 5)"),
    "no person": ([",30,f,02139,2024-01-01,5,flu"], "not say who they are about (row 5)"),
    "text for a number": (["p5,old,f,02139,2024-01-01,5,flu"], "'age': 1 row is not a number (row 5)"),
    "an infinite number": (["p5,inf,f,02139,2024-01-01,5,flu"], "'age': 1 row is not a finite number (row 5)"),
    "out of range": (["p5,121,f,02139,2024-01-01,5,flu"], "'age': 1 row is outside the range 0 to 120 (row 5)"),
    "outside the hierarchy": (["p5,30,x,02139,2024-01-01,5,flu"], "'sex': 1 row has a value outside the hierarchy"),
    "blanks around a value": (["p5,30, f,02139,2024-01-01,5,flu"], "'sex': 1 row has a value outside the hierarchy"),
    "a short code": (["p5,30,f,2139,2024-01-01,5,flu"], "'zip': 1 row does not have 5 characters (row 5)"),
    "no such day": (["p5,30,f,02139,2024-02-30,5,flu"], "'day': 1 row is not a date written as YYYY-MM-DD (row 5)"),
    "outside the bands": (["p5,30,f,02139,2024-01-01,500,flu"], "'cost': 1 row is outside the bands (row 5)"),
    "no value": (["p5,30,f,02139,2024-01-01,5,"], "'illness': 1 row has no value (row 5)"),
    "too few cells": (["p5,30,f,02139"], "1 row has too few or too many cells (the header has 7), first on line 6"),
    "too many cells": ([GOOD[0].replace("p1", "p5") + ",x"], "1 row has too few or too many cells"),
    "an open quote": (['p5,30,f,02139,2024-01-01,5,"flu'], "is opened and never closed"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "data.csv").write_text("\n".join([HEADER, *GOOD]) + "\n")
    return tmp_path


def refused(folder: Path, data: str = "data.csv", *, policy: str = "policy.yaml") -> str:
    """What stderr says about an input that must be refused, with nothing printed and nothing written."""
    before = set(folder.rglob("*"))
    done = sequester("anonymize", data, "-p", policy, cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "internal error" not in done.stderr
    assert set(folder.rglob("*")) == before
    return done.stderr


def test_the_good_table_is_anonymized(folder: Path) -> None:
    done = sequester("anonymize", "data.csv", "-p", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_refused(folder: Path, case: str) -> None:
    rows, message = BAD[case]
    (folder / "data.csv").write_text("\n".join([HEADER, *GOOD, *rows]) + "\n")
    assert message in refused(folder)


def test_all_bad_rows_are_reported_at_once(folder: Path) -> None:
    rows = [row for case, (rows, _) in BAD.items() for row in rows if "cells" not in case and "quote" not in case]
    (folder / "data.csv").write_text("\n".join([HEADER, *GOOD, *rows]) + "\n")
    said = refused(folder)
    assert {name for name in HEADER.split(",") if f"column '{name}'" in said} == set(HEADER.split(","))
    assert "problems" in said


def write_latin(folder: Path) -> None:
    (folder / "data.csv").write_bytes("\n".join([HEADER, *GOOD]).replace("flu", "gr\u00fcn").encode("latin-1"))


def write_cut_parquet(folder: Path) -> None:
    parquet.write_table(pa.table({"id": ["p"]}), folder / "whole.parquet")
    (folder / "data.parquet").write_bytes((folder / "whole.parquet").read_bytes()[:40])


def write_cut_gzip(folder: Path) -> None:
    (folder / "data.csv.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")


FILES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no file": ("absent.csv", lambda folder: None, "there is no such file"),
    "empty": ("data.csv", lambda folder: (folder / "data.csv").write_text(""), "the file is empty"),
    "no rows": ("data.csv", lambda folder: (folder / "data.csv").write_text(HEADER + "\n"), "the table has no rows"),
    "no header": (
        "data.csv",
        lambda folder: (folder / "data.csv").write_text("\n".join(GOOD)),
        "none of the 7 columns of the policy is in the table",
    ),
    "a column missing": (
        "data.csv",
        lambda folder: (folder / "data.csv").write_text("\n".join([HEADER.replace("sex", "gender"), *GOOD])),
        "column 'sex': the table has no such column",
    ),
    "a column twice": (
        "data.csv",
        lambda folder: (folder / "data.csv").write_text("\n".join([HEADER.replace("sex", "age"), *GOOD])),
        "column names must differ",
    ),
    "another encoding": ("data.csv", write_latin, "the text is not utf-8"),
    "an unknown suffix": ("data.docx", lambda folder: (folder / "data.docx").write_text("x"), "unknown kind of file"),
    "a folder": ("empty", lambda folder: (folder / "empty").mkdir(), "is a folder without .parquet files"),
    "damaged parquet": ("data.parquet", write_cut_parquet, "the file is not Parquet, or is cut off or damaged"),
    "damaged gzip": ("data.csv.gz", write_cut_gzip, "get it again"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused(folder: Path, case: str) -> None:
    data, write, message = FILES[case]
    write(folder)
    assert message in refused(folder, data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POLICY.replace("k: 2", "k: 0"), "policy.yaml:11: protect.k: must be at least 1"),
        (POLICY.replace("kind: date", "kind: data"), "policy.yaml:8: attributes.day.kind: must be one of"),
        ("version: [", "policy.yaml:"),
        (POLICY.replace("{Person: [f, m]}", "sexes.csv"), "sexes.csv"),
    ],
)
def test_a_bad_policy_is_refused_by_anonymize_and_measure(folder: Path, text: str, message: str) -> None:
    (folder / "policy.yaml").write_text(text)
    assert message in refused(folder)
    done = invoke("measure", "data.csv", "-p", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert message in done.stderr


def test_a_policy_that_is_not_there_is_refused(folder: Path) -> None:
    assert "there is no such file" in refused(folder, policy="absent.yaml")


def test_measure_refuses_cells_it_does_not_understand(folder: Path) -> None:
    (folder / "data.csv").write_text("\n".join([HEADER, *GOOD, "p5,thirtyish,f,02139,2024,5,flu"]) + "\n")
    done = invoke("measure", "data.csv", "-p", "policy.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (6, "")
    assert "column 'age': 1 row has a value that is not understood" in done.stderr
    assert "thirtyish" not in done.stderr


def test_values_are_shown_on_a_terminal_and_only_on_request(folder: Path) -> None:
    (folder / "data.csv").write_text("\n".join([HEADER, *GOOD, "p5,30,zebra,02139,2024-01-01,5,flu"]) + "\n")
    wish = ("anonymize", "data.csv", "-p", "policy.yaml")
    code, asked = sequester_on_a_terminal(*wish, "--show-values", cwd=folder)
    assert (code, "values: zebra" in asked) == (6, True)
    code, unasked = sequester_on_a_terminal(*wish, cwd=folder)
    assert (code, "zebra" in unasked) == (6, False)
    piped = invoke(*wish, "--show-values", cwd=folder)
    assert "zebra" not in piped.stdout + piped.stderr
    assert "--show-values is ignored" in piped.stderr
