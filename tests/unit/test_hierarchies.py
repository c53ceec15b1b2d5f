"""Hierarchies from trees, ARX files, values, codes, dates and numbers, and everything that can be wrong with them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain import build
from sequester.domain.arx import read_arx
from sequester.domain.hierarchy import Hierarchy, nested
from sequester.domain.kinds.code import from_codes
from sequester.domain.kinds.date import from_dates
from sequester.domain.kinds.number import band_codes, from_bands, from_numbers
from sequester.domain.tree import from_rows, from_tree, from_values
from sequester.errors import DataError, PolicyError
from sequester.policy.attributes import QuasiIdentifier, Sensitive

EUROPE = {"World": {"Europe": ["France", "Spain"], "Asia": {"East": ["Japan"], "South": ["India", "Nepal"]}}}


def named(hierarchy: Hierarchy, level: int) -> list[str]:
    """For every leaf, the name of its group."""
    return [hierarchy.names[level][group] for group in hierarchy.groups(level).tolist()]


def ends(band: str) -> tuple[float, float]:
    """The numbers of a band such as [-5--1] or [20-30)."""
    at = band.index("-", 2)
    return float(band[1:at]), float(band[at + 1 : -1])


def assert_nested(hierarchy: Hierarchy) -> None:
    assert hierarchy.starts[0].tolist() == list(range(hierarchy.size))
    assert hierarchy.starts[-1].tolist() == [0]
    for below, above in zip(hierarchy.starts, hierarchy.starts[1:], strict=False):
        assert set(above.tolist()) < set(below.tolist())
        assert (np.diff(above) > 0).all()


def test_leaves_of_a_tree_are_depth_first() -> None:
    tree = from_tree(EUROPE)
    assert tree.leaves.tolist() == ["France", "Spain", "Japan", "India", "Nepal"]
    assert tree.kind == "category"
    assert_nested(tree)


def test_shallow_leaves_stay_themselves_at_low_levels() -> None:
    tree = from_tree(EUROPE)
    assert named(tree, 1) == ["France", "Spain", "East", "South", "South"]
    assert named(tree, 2) == ["Europe", "Europe", "Asia", "Asia", "Asia"]
    assert named(tree, 3) == ["*"] * 5


def test_the_root_of_a_tree_is_published_as_a_star_but_understood_by_its_label() -> None:
    gender = from_tree({"Person": ["Male", "Female"]})
    assert gender.names[-1] == ("*",)
    assert gender.labels["Person"] == (0, 1)


def test_the_root_of_a_tree_does_not_hold_the_missing_leaf() -> None:
    gender = from_tree({"Person": ["Male", "Female"]}, missing=True)
    assert gender.leaves.tolist() == ["Male", "Female", "missing"]
    assert gender.labels["Person"] == (0, 1)
    assert gender.labels["*"] == (0, 2)
    assert gender.names[-1] == ("*",)


def test_a_tree_may_be_a_list_or_have_many_roots_and_scalars() -> None:
    assert from_tree([3, "b", date(2020, 1, 2)]).leaves.tolist() == ["3", "b", "2020-01-02"]
    forest = from_tree({"A": ["x", "y"], "B": "z", "C": None})
    assert forest.leaves.tolist() == ["x", "y", "z", "C"]
    assert named(forest, 1) == ["A", "A", "B", "C"]
    assert forest.labels["B"] == (2, 2)
    assert from_tree(["x", {"Y": ["y", "z"]}]).labels["Y"] == (1, 2)


def test_a_group_with_one_member_of_the_same_name_is_fine() -> None:
    assert from_tree({"A": ["A"], "B": ["x", "y"]}).labels["A"] == (0, 0)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "no values"),
        ([], "no values"),
        ({"A": {"B": []}}, "group 'B' of the hierarchy has no values"),
        ({"A": ["x", "y"], "B": ["x"]}, "value 'x' lies in several groups of level 1: 'A', 'B'"),
        ({"A": {"Other": ["x", "y"]}, "B": {"Other": ["z"]}}, "level 1 group 'Other' lies in several groups"),
        ({"A": ["A", "B"]}, "'A' names 2 different groups"),
        (["*", "a"], "leaf '\\*'"),
        ({"A": [""]}, "label of the hierarchy is empty"),
        ({"A": [True, "x"]}, "reads as true; quote labels"),
        ({"A": [None]}, "label of the hierarchy is empty"),
        ({"R": {"*": ["a"], "B": ["b", "c"]}}, "'\\*' names a group that is not everything"),
    ],
)
def test_a_wrong_tree_is_an_error_that_names_the_label(tree: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        from_tree(tree)


def test_all_problems_of_a_tree_are_reported_at_once() -> None:
    with pytest.raises(PolicyError, match="value 'x'") as error:
        from_tree({"A": ["x", "y"], "B": ["x", "y", "z"]})
    assert len(error.value.problems) == 2


def test_a_label_called_missing_collides_with_the_missing_leaf_only_if_there_is_one() -> None:
    assert from_tree(["a", "missing"]).size == 2
    with pytest.raises(PolicyError, match="'missing' stands for missing values"):
        from_tree(["a", "missing"], missing=True)
    with pytest.raises(DataError, match=r"'missing' occurs as a value; add it to input\.missing"):
        from_values(["a", "missing"], missing=True)
    with pytest.raises(DataError, match="'missing' occurs as a code"):
        from_codes(["missing"], length=7, missing=True)


def test_rows_are_reordered_depth_first_keeping_first_appearance() -> None:
    rows = [["b1", "B", "*"], ["a1", "A", "*"], ["b2", "B", "*"], ["a0", "A", "*"]]
    found = from_rows(rows)
    assert found.leaves.tolist() == ["b1", "b2", "a1", "a0"]
    assert found.names[1:] == (("B", "A"), ("*",))


def test_rows_may_lack_the_star_and_repeat_a_leaf_above() -> None:
    rows = [["Unemployed", "Unemployed"], ["Private", "Employed"], ["Public", "Employed"]]
    found = from_rows(rows)
    assert named(found, 1) == ["Unemployed", "Employed", "Employed"]
    assert found.names[2] == ("*",)


def test_numeric_leaves_keep_the_order_of_their_numbers() -> None:
    rows = [[str(age), f"{age // 10 * 10}s", "*"] for age in (30, 9, 10, 25, 2, 39)]
    assert from_rows(rows).leaves.tolist() == ["2", "9", "10", "25", "30", "39"]


def test_numeric_order_yields_to_groups_that_are_no_runs() -> None:
    rows = [[str(number), "even" if number % 2 == 0 else "odd", "*"] for number in range(5)]
    assert from_rows(rows).leaves.tolist() == ["0", "2", "4", "1", "3"]


def test_a_repeated_row_and_a_column_of_stars_change_nothing() -> None:
    rows = [["a", "A", "**", "*"], ["a", "A", "**", "*"], ["b", "A", "**", "*"], ["c", "C", "**", "*"]]
    found = from_rows(rows)
    assert found.names == (("a", "b", "c"), ("A", "C"), ("*",))


def test_a_level_that_repeats_the_one_below_is_dropped_but_its_names_are_understood() -> None:
    found = from_rows([["a", "A1", "X", "*"], ["b", "B1", "X", "*"], ["c", "C1", "Y", "*"]])
    assert found.names[1] == ("X", "Y")
    assert found.labels["B1"] == (1, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no values"),
        ([["a", "A", "*"], ["b", "*"], ["c", "C", "*"]], "row 2 of the hierarchy has 2 columns instead of 3"),
        ([["a", "", "*"], ["b", "B", "*"]], "row 1 of the hierarchy has an empty label in column 2"),
        ([["*", "*"], ["b", "*"]], "row 1 of the hierarchy has the leaf '\\*'"),
        ([["a", "A", "*"], ["a", "B", "*"]], "value 'a' lies in several groups of level 1: 'A', 'B'; keep one"),
        ([["a", "A", "X"], ["b", "A", "Y"]], "level 1 group 'A' lies in several groups of level 2: 'X', 'Y'"),
        ([["a", "b", "*"], ["b", "B", "*"], ["c", "b", "*"]], "'b' names 2 different groups"),
        ([["a", "*", "*"], ["b", "B", "*"]], "'\\*' names a group that is not everything"),
    ],
)
def test_wrong_rows_are_an_error_that_names_the_label(rows: list[list[str]], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        from_rows(rows)


def test_all_problems_of_rows_are_reported_at_once() -> None:
    with pytest.raises(PolicyError, match="row 2") as error:
        from_rows([["a", "*"], ["b"], ["", "*"], ["*", "*"]])
    assert len(error.value.problems) == 3


@st.composite
def taxonomies(draw: st.DrawFn) -> list[list[str]]:
    """Rows whose group at every level is fixed by the group below."""
    parents = [draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for n in (8, 4, 4)]
    leaves = draw(st.lists(st.integers(0, 7), min_size=1, unique=True))
    rows = []
    for leaf in leaves:
        row, at = [f"0:{leaf}"], leaf
        for level, above in enumerate(parents, start=1):
            at = above[at]
            row.append(f"{level}:{at}")
        rows.append([*row, "*"])
    return rows


@given(taxonomies())
@settings(max_examples=100, deadline=None)
def test_every_label_covers_exactly_its_leaves(rows: list[list[str]]) -> None:
    found = from_rows(rows)
    assert_nested(found)
    assert sorted(found.leaves) == sorted(row[0] for row in rows)
    for label in {label for row in rows for label in row}:
        lo, hi = found.labels[label]
        assert set(found.leaves[lo : hi + 1]) == {row[0] for row in rows if label in row}


def arx(tmp_path: Path, content: bytes) -> list[list[str]]:
    file = tmp_path / "hierarchy.csv"
    file.write_bytes(content)
    return read_arx(file)


@pytest.mark.parametrize(
    "content",
    [
        b"a b;A;*\nc;A;*\n",
        b"a b,A,*\r\nc,A,*\r\n",
        b"a b\tA\t*\nc\tA\t*",
        b'\xef\xbb\xbf"a b";A;*\n\n  \n;;\nc;A;*\n',
        b'"a b";"A";"*"\n"c";"A";"*"\n',
    ],
)
def test_a_hierarchy_file_is_read_whatever_its_delimiter_quotes_and_blank_lines(tmp_path: Path, content: bytes) -> None:
    assert arx(tmp_path, content) == [["a b", "A", "*"], ["c", "A", "*"]]


def test_labels_may_contain_other_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    assert arx(tmp_path, b'a, b;"x;""y""";*\nc;"d\ne";*\n') == [["a, b", 'x;"y"', "*"], ["c", "d\ne", "*"]]


def test_a_file_with_one_column_is_a_flat_list(tmp_path: Path) -> None:
    assert arx(tmp_path, b"Male\nFemale\n") == [["Male"], ["Female"]]


def test_every_ragged_or_empty_line_of_a_file_is_an_error_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"hierarchy\.csv:3: 2 columns instead of 3") as error:
        arx(tmp_path, b"a;A;*\n\nb;*\nc;C;*\nd;;*\n")
    assert [problem.line for problem in error.value.problems] == [3, 5]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b" \n", "file is empty"), (b"\xff\xfe;a", "not UTF-8"), (b'"a;A;*\nb;A;*\n', "quoted label is not closed")],
)
def test_an_unreadable_hierarchy_file_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        arx(tmp_path, content)


def test_an_absent_hierarchy_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nothing\.csv: the hierarchy file cannot be used: there is no such file"):
        read_arx(tmp_path / "nothing.csv")


def test_a_flat_category_is_sorted_and_has_one_level_above() -> None:
    flat = from_values(["b", "a", "b"], missing=True)
    assert flat.leaves.tolist() == ["a", "b", "missing"]
    assert flat.names == (("a", "b", "missing"), ("*",))


def test_a_data_error_of_a_category_names_no_value() -> None:
    with pytest.raises(DataError, match="'\\*' occurs as a value") as error:
        from_values(["canary", "*"])
    assert "canary" not in str(error.value)
    with pytest.raises(DataError, match="no value to build"):
        from_values([])


@given(st.sets(st.text("019", min_size=4, max_size=4), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_codes_are_grouped_by_their_prefixes(values: set[str]) -> None:
    codes = from_codes(values, length=4)
    assert codes.leaves.tolist() == sorted(values)
    assert_nested(codes)
    groups = {(0, len(values) - 1)}
    for kept in range(5):
        for prefix in {value[:kept] for value in values}:
            inside = [code for code, leaf in enumerate(sorted(values)) if leaf.startswith(prefix)]
            groups.add((inside[0], inside[-1]))
            assert codes.labels[prefix + "*" * (kept < 4)] == (inside[0], inside[-1])
    assert set(codes.group_names) == groups


def test_wrong_codes_are_counted_not_quoted() -> None:
    with pytest.raises(DataError, match="2 distinct codes are not 5 characters long") as error:
        from_codes(["123", "1234", "0213*", "02139"], length=5)
    assert "1 distinct codes contain '*'" in str(error.value)
    assert "0213*" not in str(error.value)
    with pytest.raises(DataError, match="no code"):
        from_codes([], length=5)


@given(
    st.sets(st.dates(), min_size=1, max_size=25)
    | st.sets(st.integers(0, 900), min_size=1).map(
        lambda days: {date(1964, 1, 1) + timedelta(days=day) for day in days}
    )
)
@settings(max_examples=80, deadline=None)
def test_dates_are_grouped_by_the_calendar(days: set[date]) -> None:
    ordered = sorted(days)
    found = from_dates(np.array(ordered, "datetime64[D]"), levels=("month", "quarter", "year", "decade"))
    assert_nested(found)
    assert found.names[0] == tuple(day.isoformat() for day in ordered)
    for code, day in enumerate(ordered):
        for name, same in (
            (f"{day.year:04}-{day.month:02}", [(d.year, d.month) == (day.year, day.month) for d in ordered]),
            (
                f"{day.year:04}-Q{(day.month + 2) // 3}",
                [(d.year, (d.month - 1) // 3) == (day.year, (day.month - 1) // 3) for d in ordered],
            ),
            (f"{day.year:04}", [d.year == day.year for d in ordered]),
            (f"{day.year // 10:03}0s", [d.year // 10 == day.year // 10 for d in ordered]),
        ):
            lo, hi = found.labels[name]
            assert lo <= code <= hi
            assert [lo <= other <= hi for other in range(len(ordered))] == same
    span = (ordered[-1] - ordered[0]).days or 1
    np.testing.assert_allclose(found.position, [(day - ordered[0]).days / span for day in ordered])


def test_wrong_dates_and_steps_are_errors() -> None:
    with pytest.raises(PolicyError, match="levels: 'week' is no calendar step"):
        from_dates(np.array(["2020-01-01"], "datetime64[D]"), levels=["week"])
    with pytest.raises(DataError, match="2 distinct dates are missing or outside"):
        from_dates(np.array(["NaT", "-0044-03-15", "2020-01-01"], "datetime64[D]"))
    with pytest.raises(DataError, match="no date"):
        from_dates(np.empty(0, "datetime64[D]"))


def test_an_integer_range_fixes_the_leaves_whatever_the_data() -> None:
    for values in ([], [3.0], [0.0, 9.0]):
        found = from_numbers(np.array(values), range=(0, 9), levels=[5])
        assert found.leaves.tolist() == list(range(10))
        assert found.names[1] == ("[0-4]", "[5-9]")


def test_the_leaves_of_other_ranges_are_the_values_and_the_ends() -> None:
    assert from_numbers(np.array([1.5, 1.5, 0.5]), range=(0, 9)).leaves.tolist() == [0, 0.5, 1.5, 9]
    assert from_numbers(np.array([7.0]), range=(0, 65_536)).leaves.tolist() == [0, 7, 65_536]
    assert from_numbers(np.array([7.0]), range=(0.5, 9)).leaves.tolist() == [0.5, 7, 9]
    assert from_numbers(np.array([2.0, -0.0, 2.0])).leaves.tolist() == [0, 2]


def test_positions_span_the_declared_range() -> None:
    found = from_numbers(np.array([2.5]), range=(0, 10), missing=True)
    assert found.position.tolist() == [0, 0.25, 1, 2]
    huge = from_numbers(np.array([-1.7e308, 0.0, 1.7e308]))
    assert huge.position.tolist() == [0, 0.5, 1]


def test_widths_count_from_the_lower_end_of_the_range_else_from_zero() -> None:
    assert from_numbers(np.empty(0), range=(18, 25), levels=[4]).names[1] == ("[18-21]", "[22-25]")
    assert from_numbers(np.array([-3.0, 18, 19, 25]), levels=[10]).names[1] == ("[-10--1]", "[10-19]", "[20-29]")
    assert from_numbers(np.array([18.5, 19, 25]), levels=[10]).names[1] == ("[10-20)", "[20-30)")


def test_the_last_band_of_a_range_of_integers_stops_at_its_end() -> None:
    assert from_numbers(np.empty(0), range=(0, 25), levels=[10]).names[1] == ("[0-9]", "[10-19]", "[20-25]")
    assert from_numbers(np.empty(0), range=(0, 20), levels=[10]).names[1] == ("[0-9]", "[10-19]", "20")


def test_decimal_widths_have_decimal_edges() -> None:
    values = np.array([tenths / 10 for tenths in range(10)] + [0.29999999999999993])
    found = from_numbers(values, levels=[0.1, 0.3])
    assert found.labels["[0.3-0.6)"] == (4, 6)
    assert found.labels["[0.2-0.3)"] == (2, 3)


@given(
    st.sets(st.floats(-1e4, 1e4), min_size=1, max_size=30),
    st.sampled_from([[5.0], [1.0, 3.0, 12.0], [0.1, 0.5], [0.7, 70.0]]),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_every_number_lies_in_the_band_that_is_named(values: set[float], widths: list[float], ranged: bool) -> None:
    between = (-1e4 - 0.5, 1e4) if ranged else None
    found = from_numbers(np.array(sorted(values)), range=between, levels=widths)
    assert_nested(found)
    for level in range(1, found.height):
        for leaf, name in zip(found.leaves.tolist(), named(found, level), strict=True):
            if name.startswith("["):
                low, high = ends(name)
                assert low <= leaf
                assert leaf <= high if name.endswith("]") else leaf < high


def test_bands_become_one_level() -> None:
    whole = from_numbers(np.array([0.0, 17, 18, 64, 65, 120]), bands=[0, 18, 65, 120])
    assert named(whole, 1) == ["[0-17]", "[0-17]", "[18-64]", "[18-64]", "[65-120]", "[65-120]"]
    decimals = from_numbers(np.array([0.0, 17.5, 18, 120, 121]), bands=[-np.inf, 18, 120, np.inf])
    assert named(decimals, 1) == ["<18", "<18", "[18-120)", ">=120", ">=120"]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"levels": [5, 12]}, "levels: every width must be a multiple of the one before"),
        ({"levels": [5, 5]}, "levels: every width must be a multiple of the one before"),
        ({"levels": [0, 5]}, "levels: the widths must be above 0"),
        ({"levels": [1e-300]}, "levels: the width is too small"),
        ({"bands": [0, 5, 5]}, "bands: the edges must increase"),
        ({"bands": [0]}, "bands: at least two edges are needed"),
        ({"bands": [-np.inf, np.inf]}, "bands: at least two edges are needed, one of them finite"),
        ({"bands": [0, np.nan, 5]}, "bands: the edges must increase"),
        ({"bands": [0, 9], "levels": [5]}, "bands: give either bands or levels"),
        ({"range": (5, 5)}, "range: the lowest value must be below"),
        ({"range": (0, 9), "bands": [1, 9]}, "bands: the bands do not reach both ends of the range"),
    ],
)
def test_wrong_settings_of_numbers_are_policy_errors(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        from_numbers(np.array([1.0, 2.0]), **settings_)


@pytest.mark.parametrize(
    ("values", "settings_", "message"),
    [
        ([], {}, "no number"),
        ([np.nan, 1.0, np.inf], {}, "2 distinct numbers are missing or infinite"),
        ([77.25, 78.0, 1.0], {"range": (0, 9)}, "2 distinct numbers are outside the range 0 to 9"),
        ([77.25, 1.0], {"bands": [0, 9]}, "1 distinct numbers are outside the bands"),
    ],
)
def test_wrong_numbers_are_counted_not_quoted(values: list[float], settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        from_numbers(np.array(values), **settings_)
    assert "77" not in str(error.value)


def test_the_bands_of_a_sensitive_number_are_its_leaves() -> None:
    bands = from_bands([0, 10, 20, 50])
    assert bands.kind == "category"
    assert bands.leaves.tolist() == ["[0-10)", "[10-20)", "[20-50]"]
    assert bands.position.tolist() == [0, 0.5, 1]
    with pytest.raises(PolicyError, match="bands: the edges must increase"):
        from_bands([2, 1])


@given(st.lists(st.floats(), max_size=20), st.lists(st.floats(allow_nan=False), min_size=2, unique=True).map(sorted))
@settings(max_examples=100, deadline=None)
def test_numbers_get_the_code_of_their_band(values: list[float], edges: list[float]) -> None:
    expected = [
        next(
            (
                band
                for band in range(len(edges) - 1)
                if edges[band] <= value < edges[band + 1] or (band == len(edges) - 2 and value == edges[-1])
            ),
            -1,
        )
        for value in values
    ]
    assert band_codes(edges, np.array(values, float)).tolist() == expected


def test_nested_keeps_the_name_of_the_missing_leaf_whole() -> None:
    short = nested("category", np.array(["a", "b"]), [(np.arange(2, dtype=np.int32), ("a", "b"))], missing=True)
    assert short.leaves.tolist() == ["a", "b", "missing"]


def quasi(**settings_: Any) -> QuasiIdentifier:
    return QuasiIdentifier(role="quasi-identifier", **settings_)


def test_the_policy_alone_fixes_trees_files_integer_ranges_and_sensitive_bands(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("x;A;*\ny;A;*\n")
    sizes = [
        found.size if (found := build.declared(attribute, tmp_path.joinpath)) else None
        for attribute in (
            quasi(hierarchy={"A": ["x", "y", "z"]}),
            quasi(hierarchy="h.csv", missing="category"),
            quasi(kind="number", range=(0.0, 9.0)),
            Sensitive(role="sensitive", kind="number", bands=(0.0, 1.0, 2.0, 3.0, 4.0)),
            Sensitive(role="sensitive", hierarchy=["a", "b"]),
            quasi(),
            quasi(kind="number"),
            quasi(kind="number", range=(0.0, 9.5)),
            quasi(kind="number", range=(0.0, 1e6)),
            quasi(kind="code", length=5),
            quasi(kind="date"),
            Sensitive(role="sensitive"),
        )
    ]
    assert sizes == [3, 3, 10, 4, 2, None, None, None, None, None, None, None]


def test_a_problem_in_a_hierarchy_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("x;A;*\nx;B;*\n")
    with pytest.raises(PolicyError, match=r"h\.csv: value 'x' lies in several groups"):
        build.declared(quasi(hierarchy="h.csv"), tmp_path.joinpath)


def test_other_domains_are_built_from_the_values_that_occur() -> None:
    assert build.observe(quasi(), ["b", "a"]).leaves.tolist() == ["a", "b"]
    assert build.observe(quasi(kind="code", length=2), ["10", "11", "20"]).names[1] == ("1*", "2*")
    assert build.observe(quasi(kind="number", range=(0.0, 9.0)), np.array([0.5])).leaves.tolist() == [0, 0.5, 9]
    days = np.array(["2020-01-01", "2020-04-01", "2021-01-01"], "datetime64[D]")
    assert build.observe(quasi(kind="date"), days).names[1] == ("2020", "2021")
    assert build.observe(quasi(kind="date", levels=("quarter",)), days).height == 1
    assert build.observe(Sensitive(role="sensitive"), ["b"]).leaves.tolist() == ["b"]
    assert build.observe(Sensitive(role="sensitive", kind="number", bands=(0.0, 1.0)), np.array([0.5])).size == 1


def test_settings_without_which_no_domain_can_be_built_are_asked_for() -> None:
    with pytest.raises(PolicyError, match="length: a code needs its number of characters"):
        build.observe(quasi(kind="code"), ["10"])
    with pytest.raises(PolicyError, match="bands: a sensitive number needs bands"):
        build.observe(Sensitive(role="sensitive", kind="number"), np.array([1.0]))
