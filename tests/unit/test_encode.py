"""Encoding: every record's codes stand for exactly its cells, whatever the table came from."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain.codec import to_text
from sequester.errors import DataError
from sequester.ingest import Snapshot, encode, encode_with_population
from sequester.policy import Policy

QUASI = {"role": "quasi-identifier"}
SENSITIVE = {"role": "sensitive"}


def policy(person: str | None = None, **attributes: dict[str, Any]) -> Policy:
    given = {"version": 1, "series": "t", "attributes": attributes, "protect": {"k": 2}}
    return Policy.model_validate({**given, **({"person": person} if person else {})})


def decoded(snapshot: Snapshot, name: str) -> list[Any]:
    names = snapshot.quasi_names + snapshot.sensitive_names
    domain = (snapshot.quasi_domains + snapshot.sensitive_domains)[names.index(name)]
    return domain.leaves[snapshot.codes(name)].tolist()


def one(column: Any, **attribute: Any) -> list[Any]:
    return decoded(encode(pa.table({"a": column}), policy(a={**QUASI, **attribute})), "a")


HOSPITAL = policy(
    "patient",
    age={**QUASI, "kind": "number", "range": [0, 120]},
    sex={**QUASI, "hierarchy": {"Person": ["Male", "Female"]}},
    zip={**QUASI, "kind": "code", "length": 5},
    admitted={**QUASI, "kind": "date"},
    children={**QUASI, "missing": "category"},
    cost={**SENSITIVE, "kind": "number", "bands": [0, 100, 1000]},
    illness={**SENSITIVE, "missing": "suppress"},
    name={"role": "identifier"},
    ward={"role": "insensitive"},
)
PATIENTS = pa.table(
    {
        "ward": ["w1", "w2", "w3", "w4"],
        "patient": [11, 12, 13, 14],
        "age": [30, 40, 30, 77],
        "sex": ["Female", "Male", "Male", "Female"],
        "zip": ["02139", "00501", "02139", "02140"],
        "admitted": [date(2024, 2, 29), date(1969, 12, 31), date(2024, 3, 1), date(2020, 1, 1)],
        "children": [2, None, 0, 2],
        "cost": [99.5, 100.0, 1000.0, 3.25],
        "illness": ["flu", "flu", None, "none"],
        "name": ["A", "B", "C", "D"],
        "extra": [True, False, True, False],
    }
)


def as_csv(table: pa.Table, tmp_path: Any) -> Any:
    arrow_csv.write_csv(table, tmp_path / "t.csv")
    return tmp_path / "t.csv"


def as_parquet(table: pa.Table, tmp_path: Any) -> Any:
    pq.write_table(table, tmp_path / "t.parquet")
    return str(tmp_path / "t.parquet")


SOURCES = {
    "csv": as_csv,
    "parquet": as_parquet,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(max_chunksize=3),
    "duckdb": lambda table, _: duckdb.from_arrow(table),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_table_gives_the_same_snapshot_from_every_kind_of_source(source, tmp_path):
    found = encode(SOURCES[source](PATIENTS, tmp_path), HOSPITAL)
    assert len(found) == 3
    assert found.left_out == 1
    assert to_text(found.person).to_pylist() == ["11", "12", "14"]
    assert found.insensitive.to_pydict() == {"ward": ["w1", "w2", "w4"]}
    assert found.quasi.dtype == found.sensitive.dtype == np.int32
    assert decoded(found, "age") == [30, 40, 77]
    assert decoded(found, "sex") == ["Female", "Male", "Female"]
    assert decoded(found, "zip") == ["02139", "00501", "02140"]
    assert decoded(found, "admitted") == [date(2024, 2, 29), date(1969, 12, 31), date(2020, 1, 1)]
    assert decoded(found, "children") == ["2", "missing", "2"]
    assert decoded(found, "cost") == ["[0-100)", "[100-1000]", "[0-100)"]
    assert decoded(found, "illness") == ["flu", "flu", "none"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_left_out_leaves_no_value_in_a_domain(source, tmp_path):
    found = encode(SOURCES[source](PATIENTS, tmp_path), HOSPITAL)
    children = found.quasi_domains[found.quasi_names.index("children")]
    assert children.leaves.tolist() == ["2", "missing"]


cells = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["a", "b", " ", "NA"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(cells, min_size=1, max_size=30), st.integers(1, 8))
def test_categories_decode_to_their_cells_in_any_chunking(values, size):
    chunks = [pa.array(values[at : at + size], pa.string()) for at in range(0, len(values), size)]
    expected = [None if v is None or v.strip() in ("", "NA") else v for v in values]
    rules = Policy.model_validate(
        {
            "version": 1,
            "series": "t",
            "attributes": {"a": {**QUASI, "missing": "category"}},
            "protect": {"k": 1},
            "input": {"missing": ["", "NA"]},
        }
    )
    real = {v for v in expected if v is not None}
    for column in (pa.chunked_array(chunks), pa.chunked_array([chunk.dictionary_encode() for chunk in chunks])):
        table = pa.table({"a": column})
        if not real or real & {"*", "missing"}:
            with pytest.raises(DataError, match="column 'a'"):
                encode(table, rules)
            continue
        found = encode(table, rules)
        domain = found.quasi_domains[0]
        assert set(domain.leaves.tolist()) == real | {"missing"}
        codes = found.quasi[0]
        assert [None if c == domain.size - 1 else domain.leaves[c] for c in codes.tolist()] == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_decode_to_themselves_from_text_and_floats(values):
    for column in (pa.array(values), pa.array([repr(v) for v in values]), pa.array([f" {v!r} " for v in values])):
        assert one(column, kind="number") == values


@settings(max_examples=20, deadline=None)
@given(st.lists(st.dates(), min_size=1, max_size=20))
def test_dates_decode_to_themselves_from_every_form(values):
    table = {
        "date32": pa.array(values, pa.date32()),
        "iso": pa.array([v.isoformat() for v in values]),
        "stamped": pa.array([f"{v.isoformat()}T23:59:59Z" for v in values]),
    }
    for column in table.values():
        assert one(column, kind="date") == values
    day_first = pa.array([f"{v.day}.{v.month:02}.{v.year:04}" for v in values])
    assert one(day_first, kind="date", format="%d.%m.%Y") == values


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99))
def test_only_days_of_the_calendar_are_dates(year, month, day):
    text = f"{year:04}-{month:02}-{day:02}"
    try:
        expected = date(year, month, day)
    except ValueError:
        with pytest.raises(DataError, match="1 row is not a date"):
            one([text], kind="date")
    else:
        assert one([text], kind="date") == [expected]


def test_timestamps_are_the_day_of_their_own_time_zone():
    late = [datetime(2024, 12, 31, 23, 30, tzinfo=UTC)]
    assert one(pa.array(late, pa.timestamp("us", "UTC")), kind="date") == [date(2024, 12, 31)]
    assert one(pa.array(late, pa.timestamp("ns", "Asia/Tokyo")), kind="date") == [date(2025, 1, 1)]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1e3", "-5", ".5", "5.", "+7", " 12 "], [1000.0, -5.0, 0.5, 5.0, 7.0, 12.0]),
        (["5", "5.0", "05"], [5.0, 5.0, 5.0]),
        ([-0.0, 0.0], [0.0, 0.0]),
        (pa.array([1, 2], pa.int8()), [1.0, 2.0]),
        (pa.array([1, 2]).cast(pa.decimal128(25, 2)), [1.0, 2.0]),
    ],
)
def test_numbers_are_read_in_their_usual_forms(column, expected):
    assert one(column, kind="number") == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2], ["1", "2"]),
        ([True, False], ["true", "false"]),
        ([3.0, 2.5, 1234567890123.0, -4.0], ["3", "2.5", "1234567890123", "-4"]),
        ([date(2024, 1, 31)], ["2024-01-31"]),
        (pa.array(["x", "y"], pa.large_string()), ["x", "y"]),
        (pa.array(["x", "y"], pa.string_view()), ["x", "y"]),
    ],
)
def test_categories_of_any_type_become_text(column, expected):
    assert one(column) == expected


def test_whole_numbers_with_gaps_in_pandas_are_not_written_as_floats():
    found = encode(pd.DataFrame({"a": [3, None, 4]}), policy(a={**QUASI, "missing": "category"}))
    assert decoded(found, "a") == ["3", "missing", "4"]


def test_unused_categories_of_a_frame_are_no_values():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"], categories=["x", "y", "unused"])})
    found = encode(frame.iloc[:1], policy(a=QUASI))
    assert found.quasi_domains[0].leaves.tolist() == ["x"]


def test_codes_from_whole_numbers_get_their_zeros_back():
    assert one([2139, 501], kind="code", length=5) == ["02139", "00501"]
    assert one([2139.0, 501.0], kind="code", length=5) == ["02139", "00501"]
    assert one([" 02139"], kind="code", length=5) == ["02139"]


def test_a_range_of_integers_is_the_domain_unless_there_are_fractions():
    attribute = {**QUASI, "kind": "number", "range": [0, 5]}
    whole = encode(pa.table({"a": [2, 3]}), policy(a=attribute))
    assert whole.quasi_domains[0].leaves.tolist() == [0, 1, 2, 3, 4, 5]
    broken = encode(pa.table({"a": [2, 3.5]}), policy(a=attribute))
    # Every twentieth is a place where a published interval may end.
    assert broken.quasi_domains[0].leaves.tolist() == sorted({n / 20 for n in range(101)} | {2, 3.5})


def test_identifiers_and_columns_outside_the_policy_are_never_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,name,extra\nx,\xe9,\xe9\ny,\xe9,\xe9\n")
    found = encode(path, policy(a=QUASI, name={"role": "identifier"}))
    assert decoded(found, "a") == ["x", "y"]
    assert found.insensitive.num_columns == 0
    assert found.person is None


def test_frozen_hierarchies_replace_those_of_the_data():
    rules = policy(a=QUASI, n={**QUASI, "kind": "number"})
    first = encode(pa.table({"a": ["x", "y", "z"], "n": [1, 2, 3]}), rules)
    frozen = dict(zip(first.quasi_names, first.quasi_domains, strict=True))
    second = encode(pa.table({"a": ["z"], "n": [3]}), rules, hierarchies=frozen)
    assert second.quasi.tolist() == [[2], [2]]
    assert second.quasi_domains == first.quasi_domains


def test_progress_names_every_column_once():
    seen: list[tuple[str, int, int]] = []
    rules = policy("p", a=QUASI, w={"role": "insensitive"})
    table = pa.table({"w": ["1"], "a": ["x"], "p": ["1"]})
    encode(table, rules, progress=lambda name, number, total: seen.append((name, number, total)))
    assert seen == [("p", 1, 3), ("a", 2, 3), ("w", 3, 3)]


def test_population_and_snapshot_share_domains_with_the_values_of_both():
    rules = policy("p", a=QUASI, n={**QUASI, "kind": "number"}, s=SENSITIVE)
    table = pa.table({"p": [1, 2], "a": ["b", "d"], "n": [10, 30], "s": ["u", "v"]})
    people = pa.table({"a": ["c", "b", "a"], "n": [20, 10, 40]})
    snapshot, codes = encode_with_population(table, rules, population=people)
    assert decoded(snapshot, "a") == ["b", "d"]
    assert decoded(snapshot, "n") == [10, 30]
    leaves = [domain.leaves for domain in snapshot.quasi_domains]
    assert [leaf[row].tolist() for leaf, row in zip(leaves, codes, strict=True)] == [["c", "b", "a"], [20, 10, 40]]


def test_problems_of_table_and_population_come_together():
    rules = policy(n={**QUASI, "kind": "number"})
    with pytest.raises(DataError, match="not a number") as e:
        encode_with_population(pa.table({"n": ["x"]}), rules, population=pa.table({"n": ["y", "z"]}))
    assert [(problem.file, problem.rows) for problem in e.value.problems] == [(None, 1), ("population table", 2)]
