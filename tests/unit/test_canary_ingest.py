"""No cell leaves by way of ingest: a canary planted in every column is in no error, cause, context or repr."""

from __future__ import annotations

import gzip
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sequester.errors import DataError
from sequester.ingest import encode, encode_with_population, read
from sequester.policy import Policy

TEXT, NUMBER, DAY = "CANARY-7f3a", 987654321, "1887-03-04"
CANARIES = (TEXT, str(NUMBER), "987,654,321", "9.87654", DAY, "1887, 3, 4", "04.03.1887")

QUASI = {"role": "quasi-identifier"}
COLUMNS = {
    "number": {**QUASI, "kind": "number", "range": [0, 120]},
    "code": {**QUASI, "kind": "code", "length": 5},
    "date": {**QUASI, "kind": "date"},
    "formatted": {**QUASI, "kind": "date", "format": "%d/%m/%Y"},
    "tree": {**QUASI, "hierarchy": {"All": ["x", "y"]}},
    "flat": QUASI,
    "cost": {"role": "sensitive", "kind": "number", "bands": [0, 10, 100]},
    "illness": {"role": "sensitive"},
    "name": {"role": "identifier"},
    "ward": {"role": "insensitive"},
}
RULES = Policy.model_validate({"version": 1, "series": "t", "person": "id", "attributes": COLUMNS, "protect": {"k": 2}})
GOOD = {
    "id": ["1", "2"],
    "number": ["5", "6"],
    "code": ["02139", "02140"],
    "date": ["2024-01-01", "2024-01-02"],
    "formatted": ["01/01/2024", "02/01/2024"],
    "tree": ["x", "y"],
    "flat": ["u", "v"],
    "cost": ["5", "50"],
    "illness": ["flu", "none"],
    "name": ["n", "m"],
    "ward": ["w", "w"],
}


def said(error: BaseException) -> Iterator[str]:
    """Everything an error says, down its whole chain, as any logger would print it."""
    yield from traceback.format_exception(error)
    link: BaseException | None = error
    seen: list[BaseException] = []
    while link is not None and link not in seen:
        seen.append(link)
        yield from (str(link), repr(link), repr(link.args))
        yield from (repr(vars(problem) | {"values": ()}) for problem in getattr(link, "problems", ()))
        yield from said(link.__context__) if link.__context__ is not None else ()
        link = link.__cause__


def refused(call: Callable[[], Any]) -> DataError:
    with pytest.raises(DataError, match=r"\w") as caught:
        call()
    text = "\n".join(said(caught.value))
    leaked = [canary for canary in CANARIES if canary in text]
    assert not leaked
    return caught.value


def as_csv(table: dict[str, list[Any]], tmp_path: Path) -> Path:
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def as_parquet(table: dict[str, list[Any]], tmp_path: Path) -> Path:
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


SOURCES: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "pandas": lambda table, _: pd.DataFrame(table),
    "polars": lambda table, _: pl.DataFrame(table),
    "lazy": lambda table, _: pl.LazyFrame(table),
    "arrow": lambda table, _: pa.table(table),
    "reader": lambda table, _: pa.table(table).to_reader(),
    "duckdb": lambda table, _: duckdb.from_arrow(pa.table(table)),
}
CHECKED = ("number", "code", "date", "formatted", "tree", "cost")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("column", CHECKED)
@pytest.mark.parametrize("canary", [TEXT, str(NUMBER), DAY + " x"])
def test_a_wrong_cell_is_not_quoted(source, column, canary, tmp_path):
    table = SOURCES[source]({**GOOD, column: [canary, GOOD[column][1]]}, tmp_path)
    error = refused(lambda: encode(table, RULES))
    assert {problem.column for problem in error.problems} == {column}


@pytest.mark.parametrize("column", CHECKED)
def test_a_wrong_cell_is_shown_only_in_the_values_and_only_on_request(column):
    table = pa.table({**GOOD, column: [TEXT, GOOD[column][1]]})
    assert refused(lambda: encode(table, RULES)).problems[0].values == ()
    assert refused(lambda: encode(table, RULES, show_values=True)).problems[0].values == (TEXT,)


@pytest.mark.parametrize("column", ["number", "cost"])
@pytest.mark.parametrize("cells", [[NUMBER, 5], [float(NUMBER), 5.0]])
def test_a_number_out_of_range_is_not_quoted(column, cells):
    refused(lambda: encode(pa.table({**GOOD, column: cells}), RULES))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("ids", [[TEXT, TEXT], [str(NUMBER)] * 2, [TEXT, None]])
def test_a_repeated_or_missing_person_is_not_quoted_even_on_request(source, ids, tmp_path):
    table = SOURCES[source]({**GOOD, "id": ids}, tmp_path)
    error = refused(lambda: encode(table, RULES, show_values=True))
    assert all(problem.values == () for problem in error.problems)


def test_values_that_cannot_be_leaves_are_not_quoted():
    for value in ("*", "missing"):
        rules = Policy.model_validate(
            {"version": 1, "series": "t", "attributes": {"a": {**QUASI, "missing": "category"}}, "protect": {"k": 1}}
        )
        refused(lambda value=value, rules=rules: encode(pa.table({"a": [TEXT, value]}), rules))  # type: ignore[misc]


def test_a_new_value_of_a_series_is_not_quoted():
    first = encode(pa.table(GOOD), RULES)
    names = first.quasi_names + first.sensitive_names
    frozen = dict(zip(names, first.quasi_domains + first.sensitive_domains, strict=True))
    planted = {**GOOD, "flat": [TEXT, "u"], "illness": [TEXT, "flu"], "date": [DAY, DAY], "code": ["CANAR", "02139"]}
    error = refused(lambda: encode(pa.table(planted), RULES, hierarchies=frozen))
    assert [problem.column for problem in error.problems] == ["code", "date", "flat", "illness"]


def test_missing_cells_do_not_quote_their_row():
    planted = {**GOOD, "id": [TEXT, "2"], "flat": [None, TEXT], "ward": [TEXT, TEXT]}
    refused(lambda: encode(pa.table(planted), RULES))


def test_a_population_is_not_quoted():
    planted = pa.table({**GOOD, "flat": [TEXT, "u"], "number": [TEXT, "5"], "date": [DAY, DAY]})
    refused(lambda: encode_with_population(pa.table(GOOD), RULES, population=planted))


@pytest.mark.parametrize(
    "text",
    [
        f"id,a\n{TEXT},1\n{NUMBER}\n",
        f"id,a\n{TEXT},1,{DAY}\n",
        f'id,a\n{TEXT},"{TEXT}\n{NUMBER},2\n',
        f"{TEXT},{TEXT}\n1,2\n",
        f"{TEXT},{NUMBER}\n{DAY},2\n",
        f"id,{TEXT}é\n1,2\n".encode("latin-1"),
        f"id,a\n{TEXT}é,{NUMBER}\n".encode("latin-1"),
    ],
    ids=["short", "long", "quote", "twice", "headless", "header bytes", "cell bytes"],
)
def test_a_delimited_file_that_cannot_be_read_is_not_quoted(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rules = Policy.model_validate(
        {"version": 1, "series": "t", "person": "id", "attributes": {"a": QUASI}, "protect": {"k": 1}}
    )
    refused(lambda: encode(path, rules))
    if "é" not in str(text) and TEXT not in path.read_text(errors="replace").split("\n")[0]:
        refused(lambda: read(path))


def test_other_encodings_that_fail_are_not_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(f"id,a\n1,{TEXT}é\n".encode())
    refused(lambda: read(path, encoding="ascii"))


def test_damaged_files_are_not_quoted(tmp_path):
    lines = "".join(f"{TEXT},{NUMBER},{i * 7919 % 10007}\n" for i in range(200_000))
    packed = gzip.compress(f"id,a,b\n{lines}".encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[:-50])
    refused(lambda: read(tmp_path / "t.csv.gz"))
    path = as_parquet({"id": [TEXT, str(NUMBER)] * 1000}, tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    refused(lambda: read(path))


def test_parts_of_a_folder_that_do_not_go_together_are_not_quoted(tmp_path):
    pq.write_table(pa.table({"a": [TEXT]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [{"b": NUMBER}]}), tmp_path / "2.parquet")
    refused(lambda: read(tmp_path))


@pytest.mark.parametrize(
    "cells", [[1, TEXT], [b"\xff" + TEXT.encode(), b"x"], [{TEXT: 1}, {TEXT: 2}], [[TEXT], [TEXT]]]
)
def test_cells_of_unsuited_types_are_not_quoted(cells):
    frame = pd.DataFrame({**GOOD, "flat": pd.Series(cells, dtype=object)})
    error = refused(lambda: encode(frame, RULES))
    assert {problem.column for problem in error.problems} == {"flat"}


def test_failing_queries_are_not_quoted():
    refused(lambda: read(duckdb.sql(f"select cast(w as integer) n from (values ('{TEXT}')) t(w)")))
    refused(lambda: read(pl.LazyFrame({"w": [TEXT]}).select(pl.col("w").cast(pl.Int64))))


@pytest.mark.parametrize("source", SOURCES)
def test_a_snapshot_and_its_domains_do_not_show_their_cells(source, tmp_path):
    planted = {**GOOD, "id": [TEXT, str(NUMBER)], "flat": [TEXT, "u"], "illness": [TEXT, "flu"], "ward": [TEXT, "w"]}
    snapshot = encode(SOURCES[source]({**planted, "date": [DAY, DAY]}, tmp_path), RULES)
    text = repr(snapshot) + str(snapshot) + repr(snapshot.quasi_domains) + repr(snapshot.sensitive_domains)
    assert not [canary for canary in CANARIES if canary in text]
