"""Cells and headers that a spreadsheet would run: told by count, escaped on request, and read back as they were."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import invoke
from hostile import ANONYMIZE, CHECK, POLICY, TABLE, spread
from sequester import anonymize
from sequester.domain.formulas import escape, escape_name, formulas, is_formula, unescape, unescape_name
from sequester.ingest import read
from sequester.policy import Policy

RUN = ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=x", "\rx", "-", "=", "--5", "-5 to 3", "=5", "+", "＝1+1", "-x"]
SHOWN = ["", "a=b", "5", "-5", "+3.2", "-.5", "-1e3", "+1.E-2", "[-5-3]", "{-a, b}", "'", "'x", "'-5", " =1", "*"]
TEXTS = st.text("'=+-@\t\r\n0123.eEx \uff1d", max_size=6)
ESCAPE = f"{POLICY}output: {{formulas: escape}}\n"
EVIL = (
    TABLE.replace("note,", "=note,", 1)
    .replace("note1", "'=1+1")
    .replace("note2", "=HYPERLINK(0)")
    .replace("flu", "@SUM(1)")
    .replace("note0", "-5")
)


def evil(folder: Path, policy: str = POLICY) -> Path:
    return spread(folder, policy=policy.replace("  note:", '  "=note":'), table=EVIL)


@pytest.mark.parametrize("text", RUN)
def test_what_a_spreadsheet_runs_begins_like_a_formula_and_goes_on(text: str) -> None:
    assert is_formula(text) == (len(text) > 1)
    assert formulas(pa.array([text])).tolist() == [len(text) > 1]


@pytest.mark.parametrize("text", SHOWN)
def test_numbers_intervals_and_other_text_are_no_formulas(text: str) -> None:
    assert not is_formula(text)
    assert escape(pa.chunked_array([[text]])).to_pylist() == [text]


@given(st.lists(st.none() | TEXTS, max_size=6), st.booleans())
def test_every_text_is_read_back_as_it_was_and_none_that_is_written_runs(texts: list[Any], listed: bool) -> None:
    column = pa.chunked_array([pa.array(texts, pa.string())])
    column = column.dictionary_encode() if listed else column
    written = escape(column)
    assert written.type == column.type
    assert unescape(written).to_pylist() == texts
    for text, cell in zip(texts, written.to_pylist(), strict=True):
        assert cell is None or not is_formula(cell)
        # The same rules for headers, one by one, and for cells, all at once.
        assert text is None or (cell == escape_name(text) and unescape_name(cell) == text)
        assert text is None or formulas(pa.array([text])).tolist() == [is_formula(text)]


@settings(max_examples=40, deadline=None)
@given(notes=st.lists(TEXTS, min_size=6, max_size=6), name=TEXTS.filter(lambda text: text.strip()))
def test_a_release_with_any_cells_is_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, notes: list[str], name: str
) -> None:
    rules = Policy.model_validate(
        {
            "version": 1,
            "series": "t",
            "attributes": {"q": {"role": "quasi-identifier"}, name: {"role": "insensitive"}},
            "protect": {"k": 2},
            "output": {"formulas": "escape"},
        }
    )
    place = tmp_path_factory.mktemp("release") / "release.csv"
    released = anonymize(pa.table({"q": ["=a", "=a", "-b", "-b", "c", "c"], name: notes}), rules, seed=2**63)
    # Saving reads the file back and refuses it unless it says what was judged.
    released.save(place)
    with place.open(encoding="utf-8", newline="") as stream:
        assert not any(is_formula(cell) for row in csv.reader(stream) for cell in row)
    back = read(place, delimiter=",", escaped=True)
    assert back.column_names == ["q", name]
    assert [cell or "" for cell in back[name].to_pylist()] == [cell or "" for cell in released.table[name].to_pylist()]


def test_check_tells_columns_and_counts_and_never_cells(tmp_path: Path) -> None:
    evil(tmp_path)
    done = invoke(*CHECK, cwd=tmp_path)
    assert done.returncode == 0
    for words in ("=note: its header, 4 cells", "illness: 4 cells", "output: {formulas: escape}"):
        assert words in done.stdout
    assert "SUM" not in done.stdout + done.stderr
    assert "HYPERLINK" not in done.stdout + done.stderr
    found = json.loads(invoke(*CHECK, "--format", "json", cwd=tmp_path).stdout)
    assert found["formulas"] == [
        {"column": "illness", "header": False, "cells": 4, "labels": 0},
        {"column": "=note", "header": True, "cells": 4, "labels": 0},
    ]
    evil(tmp_path, ESCAPE)
    assert "Each is written with an apostrophe before it." in invoke(*CHECK, cwd=tmp_path).stdout


def test_check_tells_of_a_policy_alone_what_its_labels_and_headers_run(tmp_path: Path) -> None:
    spread(tmp_path, policy=POLICY.replace("{Person: [f, m]}", '{"-all": {"=g h": [f, "-x"], "+i": [m, n]}}'))
    done = invoke("check", "policy.yaml", cwd=tmp_path)
    assert "sex: 3 labels of its hierarchy" in done.stdout
    spread(tmp_path)
    for command in (("check", "policy.yaml"), CHECK):
        assert "spreadsheet" not in invoke(*command, cwd=tmp_path).stdout


@pytest.mark.parametrize("file", ["out.csv", "out.csv.gz", "out.parquet"])
def test_text_is_escaped_on_request_and_measured_and_audited_as_it_was(tmp_path: Path, file: str) -> None:
    figures = {}
    for mode in ("keep", "escape"):
        evil(tmp_path, POLICY if mode == "keep" else ESCAPE)
        assert invoke(*ANONYMIZE, "-o", file, "--force", "--seed", 2**63, cwd=tmp_path).returncode == 0
        written = read(tmp_path / file)
        escaped = mode == "escape" and "csv" in file
        assert written.column_names[-1] == ("'=note" if escaped else "=note")
        expected = {"''=1+1", "'=HYPERLINK(0)", "-5"} if escaped else {"'=1+1", "=HYPERLINK(0)", "-5"}
        assert set(written.column(written.num_columns - 1).to_pylist()) == expected
        assert set(written["illness"].to_pylist()) == {"'@SUM(1)" if escaped else "@SUM(1)", "none", "cold"}
        told = [
            invoke(command, file, "-p", "policy.yaml", "--format", "json", cwd=tmp_path)
            for command in ("measure", "audit")
        ]
        assert [done.returncode for done in told] == [0, 0]
        figures[mode] = [done.stdout for done in told]
    assert figures["keep"] == figures["escape"]


def test_a_series_is_published_escaped_and_audited(tmp_path: Path) -> None:
    evil(tmp_path, ESCAPE)
    for name in ("q1", "q2"):
        done = invoke("publish", "data.csv", "-p", "policy.yaml", "--yes", "--again", "--name", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    files = [file for file in tmp_path.rglob("data.csv") if file.parent != tmp_path]
    assert len(files) == 2
    assert all('"\'=note"' in file.read_text() for file in files)
    assert invoke("audit", *sorted(files), "-p", "policy.yaml", cwd=tmp_path).returncode == 3
