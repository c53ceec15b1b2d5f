"""Every kind of bad table: the message says what, where, how many and what to do; the exit code is 6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sequester.errors import DataError, Problem
from sequester.ingest import encode
from sequester.policy import Policy

QUASI = {"role": "quasi-identifier"}


def policy(person: str | None = None, missing: tuple[str, ...] = ("",), **attributes: dict[str, Any]) -> Policy:
    given = {"version": 1, "series": "t", "attributes": attributes, "protect": {"k": 2}, "input": {"missing": missing}}
    return Policy.model_validate({**given, **({"person": person} if person else {})})


def problems(source: Any, rules: Policy, **options: Any) -> list[Problem]:
    with pytest.raises(DataError, match=r"\w") as error:
        encode(source, rules, **options)
    assert error.value.exit_code == 6
    return list(error.value.problems)


def problem(column: Any, **attribute: Any) -> Problem:
    found = problems(pa.table({"a": column}), policy(a={**QUASI, **attribute}))
    assert len(found) == 1
    assert found[0].column == "a"
    return found[0]


def test_a_missing_column_is_named_with_the_closest_that_exists():
    rules = policy(gender=QUASI, age=QUASI, shoe=QUASI)
    found = problems(pa.table({"gendre": ["x"], "age": ["1"]}), rules)
    assert [str(one) for one in found] == [
        "column 'gender': the table has no such column; did you mean 'gendre'?",
        "column 'shoe': the table has no such column; correct the policy or the header",
    ]


def test_a_file_without_header_is_recognised_and_its_first_record_not_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("agee,genderr\n30,Male\n")
    (found,) = problems(path, policy(age=QUASI, gender=QUASI))
    assert str(found).startswith("none of the 2 columns of the policy is in the table; it needs a header line")
    assert "agee" not in str(found)


def test_a_column_that_exists_under_another_role_is_not_suggested():
    found = problems(pa.table({"age": ["1"], "ages": ["1"]}), policy(age=QUASI, ages=QUASI, agess=QUASI))
    assert [str(one) for one in found] == [
        "column 'agess': the table has no such column; correct the policy or the header"
    ]


@pytest.mark.parametrize("people", [["p", "q", "p", "r", "p"], [1, 2, 1, 3, 1], pd.Categorical(list("pqprp"))])
def test_a_person_with_several_rows_is_an_error_that_gives_the_later_rows(people):
    frame = pd.DataFrame({"id": people, "a": list("xyzxy")})
    (found,) = problems(frame, policy("id", a=QUASI))
    assert found.rows == 2
    assert "2 rows are about a person who has an earlier row (rows 3, 5)" in str(found)
    assert "one row per person" in found.message


def test_a_person_listed_twice_in_a_dictionary_is_still_one_person():
    people = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["p", "p"]))
    (found,) = problems(pa.table({"id": people, "a": ["x", "y"]}), policy("id", a=QUASI))
    assert "1 row is about a person who has an earlier row (row 2)" in found.message


def test_a_person_may_not_be_missing():
    table = pa.table({"id": ["p", None, " ", "-", "q"], "a": list("xyzxy")})
    (found,) = problems(table, policy("id", missing=("", "-"), a=QUASI))
    assert found.rows == 3
    assert "3 rows do not say who they are about (rows 2, 3, 4)" in str(found)


def test_text_in_a_number_column_is_an_error():
    found = problem(["1", "1,234", "2", "x", "0x10", "1_000", "--1"], kind="number")
    assert found.rows == 5
    assert found.message.startswith("5 rows are not numbers (rows 2, 4, 5, 6, 7); write them like 12")


@pytest.mark.parametrize("column", [[True], [b"x"], pa.array([0], pa.date32()), [[1]], [{"b": 1}]])
def test_a_column_of_a_type_that_holds_no_numbers_is_an_error(column):
    found = problem(column, kind="number")
    assert "not a number" in found.message or "one text, number or date" in found.message


@pytest.mark.parametrize("column", [["1", "nan", " -Inf ", "1e999"], [1.0, np.inf, -np.inf, np.inf]])
def test_numbers_must_be_finite(column):
    found = problem(column, kind="number")
    assert found.rows == 3
    assert "3 rows are not finite numbers (rows 2, 3, 4)" in found.message


def test_numbers_must_lie_in_their_range():
    found = problem([5, 200, -1, 120, 0], kind="number", range=[0, 120])
    assert found.rows == 2
    assert "2 rows are outside the range 0 to 120 (rows 2, 3); correct them, or change `range`" in found.message


def test_numbers_must_lie_in_the_bands():
    assert "1 row is outside the bands (row 2)" in problem([5, 11], kind="number", bands=[0, 5, 10]).message
    rules = policy(q=QUASI, a={"role": "sensitive", "kind": "number", "bands": [0, 5, 10]})
    (found,) = problems(pa.table({"q": ["x", "y"], "a": [-1, 3]}), rules)
    assert "1 row is outside the bands (row 1); correct them, or change `bands`" in found.message


@pytest.mark.parametrize(
    "column", [["2024-02-30", "2024-01-01"], ["1.2.2024", "2024-01-01"], ["2024-1-1", "2024-01-01"]]
)
def test_dates_must_be_days_of_the_calendar(column):
    found = problem(column, kind="date")
    assert "1 row is not a date written as YYYY-MM-DD (row 1); correct them, or say how" in found.message


def test_dates_must_have_the_given_format():
    found = problem(["31.01.2024", "2024-01-31", "31.02.2024", "01.01.2024 x"], kind="date", format="%d.%m.%Y")
    assert "3 rows are not dates written as %d.%m.%Y (rows 2, 3, 4)" in found.message


def test_numbers_are_no_dates():
    assert "not dates" in problem([20240131, 20240201], kind="date").message


@pytest.mark.parametrize("column", [["02139", "2139", "021390"], [2139, 213900, -1]])
def test_codes_must_have_their_length(column):
    found = problem(column, kind="code", length=5)
    assert found.rows == 2
    assert "2 rows do not have 5 characters (rows 2, 3)" in found.message


def test_a_value_outside_its_hierarchy_is_an_error_that_counts_and_shows_values_only_on_request():
    rules = policy(a={**QUASI, "hierarchy": {"All": ["x", "y"]}})
    table = pa.table({"a": ["x", "zebra", "yak", "zebra"]})
    (found,) = problems(table, rules)
    assert found.values == ()
    assert found.rows == 3
    assert "3 rows have a value outside the hierarchy, 2 distinct (rows 2, 3, 4); add them" in str(found)
    (shown,) = problems(table, rules, show_values=True)
    assert shown.values == ("zebra", "yak")
    assert str(shown) == str(found)
    assert repr(shown) == repr(found)


def test_at_most_ten_values_are_shown():
    rules = policy(a={**QUASI, "kind": "number"})
    (found,) = problems(pa.table({"a": [f"x{n}" for n in range(25)]}), rules, show_values=True)
    assert found.values == tuple(f"x{n}" for n in range(10))
    assert "25 rows are not numbers (rows 1, 2, 3, 4, 5, ...)" in found.message


def test_blanks_around_a_value_of_the_hierarchy_are_recognised():
    found = problem(["x", " x", "y "], hierarchy={"All": ["x", "y"]})
    assert "2 rows have a value outside the hierarchy, 2 distinct (rows 2, 3); remove the blanks" in found.message


def test_a_new_value_in_a_series_is_an_error_that_says_its_hierarchies_are_frozen():
    rules = policy(a=QUASI, n={**QUASI, "kind": "number"})
    first = encode(pa.table({"a": ["x"], "n": [1]}), rules)
    frozen = dict(zip(first.quasi_names, first.quasi_domains, strict=True))
    found = problems(pa.table({"a": ["x", "new"], "n": [1, 2]}), rules, hierarchies=frozen)
    assert [(one.column, one.rows) for one in found] == [("a", 1), ("n", 1)]
    assert all("frozen" in one.message for one in found)


def test_a_frozen_hierarchy_without_a_missing_leaf_cannot_take_missing_cells():
    first = encode(pa.table({"a": ["x"]}), policy(a=QUASI))
    rules = policy(a={**QUASI, "missing": "category"})
    (found,) = problems(pa.table({"a": ["x", None]}), rules, hierarchies={"a": first.quasi_domains[0]})
    assert "no place for missing cells" in found.message


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ({}, ["x", None, "", "?", " "]),
        ({"kind": "number"}, ["1", None, "", "?", " "]),
        ({"kind": "number"}, pa.array([1.0, None, np.nan, np.nan, np.nan], from_pandas=False)),
        ({"kind": "code", "length": 1}, ["x", None, "", "?", " "]),
        ({"kind": "date"}, ["2024-01-01", None, "", "?", " "]),
    ],
)
def test_missing_cells_are_refused_unless_the_policy_gives_them_a_meaning(kind, column):
    (found,) = problems(pa.table({"a": column}), policy(missing=("", "?"), a={**QUASI, **kind}))
    assert found.rows == 4
    assert "4 rows have no value (rows 2, 3, 4, 5); fill them in, or say" in found.message


def test_a_column_of_nothing_but_missing_cells_is_an_error():
    assert "2 rows have no value" in problem(pa.nulls(2)).message
    assert "no value to build a domain from" in problem(pa.nulls(2), missing="category").message


def test_a_table_without_rows_is_an_error(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a\n")
    for source in (path, pd.DataFrame({"id": [], "a": []}), pa.table({"id": pa.nulls(0), "a": pa.nulls(0)})):
        (found,) = problems(source, policy("id", a=QUASI))
        assert str(found) == "the table has no rows"


def test_a_table_of_which_every_row_is_left_out_is_an_error():
    rules = policy(a={**QUASI, "missing": "suppress"}, b={**QUASI, "missing": "suppress"})
    (found,) = problems(pa.table({"a": ["x", None], "b": [None, "y"]}), rules)
    assert "all 2 rows lack a value" in found.message


def test_ragged_rows_are_one_problem_not_one_per_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a\n1,x\n2\n3,x,y\n4,z\n")
    (found,) = problems(path, policy("id", a=QUASI))
    assert found.rows == 2
    assert "2 rows have too few or too many cells (the header has 2), first on line 3, 4" in found.message


def test_a_pandas_column_of_mixed_types_is_an_error():
    frame = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)})
    (found,) = problems(frame, policy(a=QUASI))
    assert str(found).startswith("column 'a': has values of several types")


def test_all_problems_of_all_columns_come_at_once():
    rules = policy(
        "id",
        n={**QUASI, "kind": "number", "range": [0, 9]},
        d={**QUASI, "kind": "date"},
        h={**QUASI, "hierarchy": {"All": ["x"]}},
        gone=QUASI,
        s={"role": "sensitive"},
    )
    table = pa.table(
        {
            "id": ["p", "p", None],
            "n": ["x", "99", "inf"],
            "d": ["2024", "2024-01-01", None],
            "h": ["x", "y", "x"],
            "s": ["u", None, "v"],
        }
    )
    found = problems(table, rules)
    assert [one.column for one in found] == ["gone", "id", "id", "n", "n", "n", "d", "d", "h", "s"]
