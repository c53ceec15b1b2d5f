"""Published text and back: every interval of every hierarchy, and the notations of other tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.domain import notation
from sequester.domain.hierarchy import MISSING, Hierarchy
from sequester.domain.intervals import interpret_dates, interpret_numbers
from sequester.domain.kinds.code import from_codes
from sequester.domain.kinds.date import from_dates
from sequester.domain.kinds.number import from_bands, from_numbers
from sequester.domain.tree import from_rows, from_tree, from_values

NASTY = [
    *("a, b", "{x}", "1-2", "[3]", "[1-2]", "missing ", "Missing", " lead", "trail ", '"', '""', 'say "hi"', "a;b"),
    *("{a, b}", '{"a", "b"}', "{ a, b}", "a~b", "*a", "a*", "**x", "{", "}", "é", "日本", "\u00a0", "a\nb", ",", ";"),
    *("NA", "nan", ">=65", "a", "b", "c", "d", "-", "0", "{a, b", "a, b}", '"a", "b"', "a,b", "[", "]", "x\t", "'"),
]
LABELS = st.sampled_from(NASTY) | st.text(max_size=4).filter(lambda text: text.strip("*") != "" and text != MISSING)


def assert_round_trip(hierarchy: Hierarchy) -> None:
    lo, hi = np.triu_indices(hierarchy.size)
    texts = notation.write(hierarchy, lo.astype(np.int32), hi.astype(np.int32))
    assert len(set(texts)) == len(texts)
    low, high, understood = notation.read(hierarchy, texts)
    wrong = [
        (text, (int(a), int(b)), (int(c), int(d)))
        for text, a, b, c, d in zip(texts, lo, hi, low, high, strict=True)
        if (a, b) != (c, d)
    ]
    assert not wrong
    assert understood.all()


@st.composite
def trees(draw: st.DrawFn) -> Any:
    shape = draw(st.recursive(st.just(None), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=10))
    names = iter(draw(st.lists(LABELS, min_size=60, max_size=60, unique=True)))

    def grow(node: Any) -> Any:
        if node is None:
            return next(names)
        return {next(names): [grow(child) for child in node]}

    grown = grow(shape)
    return grown if isinstance(grown, dict) else [grown]


@st.composite
def rows(draw: st.DrawFn) -> list[list[str]]:
    """ARX rows of a balanced taxonomy in any order, with leaves that may repeat above."""
    names = iter(draw(st.lists(LABELS, min_size=60, max_size=60, unique=True)))
    paths = [[next(names)] for _ in range(draw(st.integers(1, 10)))]
    for _ in range(draw(st.integers(0, 3))):
        current = list(dict.fromkeys(path[-1] for path in paths))
        groups = draw(st.lists(st.integers(0, 3), min_size=len(current), max_size=len(current)))
        named: dict[int, str] = {}
        for group in groups:
            single = groups.count(group) == 1
            named.setdefault(group, current[groups.index(group)] if single and draw(st.booleans()) else next(names))
        above = {label: named[group] for label, group in zip(current, groups, strict=True)}
        paths = [[*path, above[path[-1]]] for path in paths]
    if draw(st.booleans()):
        paths = [[*path, "*"] for path in paths]
    return draw(st.permutations(paths))


@given(trees(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_every_interval_of_a_tree_reads_back(tree: Any, missing: bool) -> None:
    assert_round_trip(from_tree(tree, missing=missing))


@given(rows(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_every_interval_of_arx_rows_reads_back(given_rows: list[list[str]], missing: bool) -> None:
    assert_round_trip(from_rows(given_rows, missing=missing))


@given(st.sets(LABELS | st.just(""), min_size=1, max_size=12), st.booleans())
@settings(max_examples=120, deadline=None)
def test_every_interval_of_a_flat_category_reads_back(values: set[str], missing: bool) -> None:
    assert_round_trip(from_values(values, missing=missing))


@given(st.data(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_every_interval_of_codes_reads_back(data: st.DataObject, missing: bool) -> None:
    length = data.draw(st.integers(1, 13))
    alphabet = data.draw(st.sampled_from(["01", "0123456789", "-[]{}, \"'é.", "ab-,"]))
    text = st.text(alphabet, min_size=length, max_size=length)
    assert_round_trip(from_codes(data.draw(st.sets(text, min_size=1, max_size=12)), length=length, missing=missing))


@given(
    st.sets(st.dates(), min_size=1, max_size=12) | st.sets(st.integers(0, 800), min_size=1, max_size=12),
    st.sets(st.sampled_from(["day", "month", "quarter", "year", "decade"])),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_every_interval_of_dates_reads_back(days: set[Any], levels: set[str], missing: bool) -> None:
    values = np.array(sorted(days), "datetime64[D]")
    assert_round_trip(from_dates(values, levels=sorted(levels), missing=missing))


NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-50, 50).map(float)
    | st.integers(-300, 300).map(lambda tenths: tenths / 10)
)


@given(st.sets(NUMBERS, min_size=1, max_size=12), st.booleans())
@settings(max_examples=150, deadline=None)
def test_every_interval_of_numbers_reads_back(numbers: set[float], missing: bool) -> None:
    assert_round_trip(from_numbers(np.array(sorted(numbers)), missing=missing))


@given(
    st.sets(st.integers(-40, 40), min_size=1, max_size=12),
    st.sampled_from([1, 10, 0.1]),
    st.sampled_from([None, (-5, 4), (-4.3, 5.0)]),
    st.sampled_from([[2, 4, 12], [0.1], [0.3, 0.6], [5], [1, 10]]),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_every_interval_of_numbers_in_levels_reads_back(
    numbers: set[int], scale: float, between: tuple[float, float] | None, levels: list[float], missing: bool
) -> None:
    values = np.array([round(number * scale, 6) for number in numbers])
    if between:
        values = values[(values >= between[0]) & (values <= between[1])]
    assert_round_trip(from_numbers(values, range=between, levels=levels, missing=missing))


@given(st.sets(NUMBERS.filter(lambda number: abs(number) <= 60), min_size=1, max_size=12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_interval_of_numbers_in_bands_reads_back(numbers: set[float], missing: bool) -> None:
    for edges in ([-60, 0, 1, 18, 60], [-np.inf, -0.5, 18, np.inf], [-np.inf, 60]):
        assert_round_trip(from_numbers(np.array(sorted(numbers)), bands=edges, missing=missing))
    assert_round_trip(from_bands([-60, 0, 1, 18, 60], missing=missing))


AGES = from_numbers(np.empty(0), range=(0, 90), levels=[10, 30])
ZIPS = from_codes(["02138", "02139", "02141", "02142", "03000", "90210"], length=5)
DAYS = from_dates(np.arange("1960-01-01", "1970-01-01", dtype="datetime64[D]"))
PLACES = from_tree({"World": {"Asia": ["India", "Japan"], "Europe": ["England", "France", "Spain"]}})


def written(hierarchy: Hierarchy, lo: int, hi: int) -> str:
    return notation.write(hierarchy, np.array([lo], np.int32), np.array([hi], np.int32))[0]


def span(hierarchy: Hierarchy, text: str | None) -> tuple[int, int] | None:
    lo, hi, understood = notation.read(hierarchy, [text])
    assert (lo[0] >= 0) == understood[0] == (hi[0] >= 0)
    return (int(lo[0]), int(hi[0])) if understood[0] else None


@pytest.mark.parametrize(
    ("hierarchy", "lo", "hi", "text"),
    [
        (AGES, 39, 39, "39"),
        (AGES, 20, 29, "[20-29]"),
        (AGES, 21, 30, "[21-30]"),
        (AGES, 0, 90, "*"),
        (ZIPS, 0, 0, "02138"),
        (ZIPS, 0, 1, "0213*"),
        (ZIPS, 0, 3, "021*"),
        (ZIPS, 0, 2, "[02138-02141]"),
        (DAYS, 0, 30, "1960-01"),
        (DAYS, 1, 31, "[1960-01-02 - 1960-02-01]"),
        (PLACES, 2, 4, "Europe"),
        (PLACES, 0, 2, "{Asia, England}"),
        (PLACES, 1, 2, "{Japan, England}"),
        (PLACES, 0, 4, "*"),
    ],
)
def test_published_text_has_the_documented_form(hierarchy: Hierarchy, lo: int, hi: int, text: str) -> None:
    assert written(hierarchy, lo, hi) == text


def test_negative_numbers_and_decimals_keep_their_signs() -> None:
    numbers = from_numbers(np.array([-5.0, -1.0, 1.5, 2.5]))
    assert written(numbers, 0, 1) == "[-5--1]"
    assert written(numbers, 1, 2) == "[-1-1.5]"


def test_a_missing_leaf_is_named_next_to_the_interval() -> None:
    ages = from_numbers(np.empty(0), range=(0, 90), levels=[30], missing=True)
    assert written(ages, 61, 91) == "{[61-90], missing}"
    assert written(ages, 90, 91) == "{90, missing}"
    assert written(ages, 91, 91) == "missing"
    assert written(ages, 0, 91) == "*"


def test_a_label_that_looks_like_a_set_is_not_taken_for_one() -> None:
    flat = from_values(["a", "b", "{a, b}"])
    assert written(flat, 0, 1) == '{"a", "b"}'
    assert span(flat, "{a, b}") == (2, 2)
    assert span(flat, "{a;b}") == (0, 1)


def test_labels_with_separators_are_quoted_in_sets() -> None:
    assert written(from_values(["a", "b, c", 'd"']), 0, 1) == '{a, "b, c"}'
    assert written(from_values(["b, c", 'd"', "e"]), 0, 1) == '{"b, c", "d"""}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[21, 30]", (21, 30)),
        ("21-30", (21, 30)),
        ("21 - 30", (21, 30)),
        ("[21-30]", (21, 30)),
        ("(21,30]", (22, 30)),
        ("[20, 30[", (20, 29)),
        ("[20,30)", (20, 29)),
        ("]20,30]", (21, 30)),
        ("(20;30)", (21, 29)),
        ("21..30", (21, 30)),
        ("21~30", (21, 30)),
        ("21,30", (21, 30)),
        ("21 to 30", (21, 30)),
        ("21.0-30.0", (21, 30)),
        ("[20.5, 22.5]", (21, 22)),
        (">=65", (65, 90)),
        (">65", (66, 90)),
        ("≥ 65", (65, 90)),
        ("65+", (65, 90)),
        ("<20", (0, 19)),
        ("<=20", (0, 20)),
        ("≤20", (0, 20)),
        ("(-Inf,20]", (0, 20)),
        ("[65, Inf)", (65, 90)),
        ("]-∞, 20[", (0, 19)),
        ("[21]", (21, 21)),
        ("2.1e1", (21, 21)),
        ("*", (0, 90)),
        ("***", (0, 90)),
        ("{20, 21, 22}", (20, 22)),
        ("20;21;22", (20, 22)),
        ("{[20, 29], [30, 39]}", (20, 39)),
        ("{]19, 29], [30, 40[}", (20, 39)),
        ("{20-29; 30-39}", (20, 39)),
        (" 21 ", (21, 21)),
        ("[30-21]", None),
        ("[20, 20[", None),
        ("[20.2, 20.8]", None),
        ("{20, 22}", None),
        ("91", None),
        ("1,000", None),
        ("[200-300]", None),
        ("nan", None),
        ("NA", None),
        ("", None),
        (None, None),
        ("missing", None),
        ("[", None),
        ("{}", None),
        ("inf", None),
        ("1-2-3", None),
    ],
)
def test_number_notations_of_other_tools(text: str | None, expected: tuple[int, int] | None) -> None:
    assert span(AGES, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("02***", (0, 3)),
        ("021**", (0, 3)),
        ("021*", (0, 3)),
        ("0213*", (0, 1)),
        ("0300*", (4, 4)),
        ("9****", (5, 5)),
        ("*****", (0, 5)),
        ("02138-02141", (0, 2)),
        ("[02138, 02141]", (0, 2)),
        ("[02100-02140]", (0, 1)),
        ("{02138, 02139}", (0, 1)),
        ("02138,02139", (0, 1)),
        ("02138~02139", (0, 1)),
        ("{0213*; 02141}", (0, 2)),
        ("05***", None),
        ("{02138, 02141}", None),
        ("02140", None),
        ("[02141-02138]", None),
    ],
)
def test_code_notations_of_other_tools(text: str, expected: tuple[int, int] | None) -> None:
    assert span(ZIPS, text) == expected


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1964", "1964-01-01", "1964-12-31"),
        ("1964-05", "1964-05-01", "1964-05-31"),
        ("1964-Q2", "1964-04-01", "1964-06-30"),
        ("1964Q4", "1964-10-01", "1964-12-31"),
        ("1960s", "1960-01-01", "1969-12-31"),
        ("[1964-01-01, 1964-12-31]", "1964-01-01", "1964-12-31"),
        ("[1964-01-01, 1965-01-01[", "1964-01-01", "1964-12-31"),
        ("(1964-01-01, 1964-01-03)", "1964-01-02", "1964-01-02"),
        ("1964-01-01/1964-12-31", "1964-01-01", "1964-12-31"),
        ("1964-01-01..1964-12-31", "1964-01-01", "1964-12-31"),
        ("1964-1966", "1964-01-01", "1966-12-31"),
        ("[1964, 1966)", "1964-01-01", "1965-12-31"),
        ("[1964-05 - 1964-Q4]", "1964-05-01", "1964-12-31"),
        (">=1968", "1968-01-01", "1969-12-31"),
        ("<1961-02", "1960-01-01", "1961-01-31"),
        (">1968", "1969-01-01", "1969-12-31"),
        ("1964-02-29 00:00:00", "1964-02-29", "1964-02-29"),
        ("{1964-01, 1964-02}", "1964-01-01", "1964-02-29"),
        ("*", "1960-01-01", "1969-12-31"),
    ],
)
def test_date_notations_of_other_tools(text: str, first: str, last: str) -> None:
    found = span(DAYS, text)
    assert found is not None
    assert [str(DAYS.leaves[code]) for code in found] == [first, last]


@pytest.mark.parametrize("text", ["1963-02-29", "1964-13", "1964-Q5", "1970", "64", "1965-1964", "", "{1964, 1966}"])
def test_what_is_no_date_is_not_understood(text: str) -> None:
    assert span(DAYS, text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{India;Japan}", (0, 1)),
        ("{Japan, India}", (0, 1)),
        ("India,Japan", (0, 1)),
        ("England~France", (2, 3)),
        ("{Asia; England}", (0, 2)),
        ('{"Asia", "England"}', (0, 2)),
        ("{France}", (3, 3)),
        ("World", (0, 4)),
        (" Europe ", (2, 4)),
        ("{Europe, France}", (2, 4)),
        ("{India, England}", None),
        ("{India, Mars}", None),
        ("europe", None),
        ("", None),
        ('{"Asia, England}', None),
    ],
)
def test_category_notations_of_other_tools(text: str, expected: tuple[int, int] | None) -> None:
    assert span(PLACES, text) == expected


@pytest.mark.parametrize("text", ["", "NA", "nan", None, "missing"])
def test_no_value_is_the_missing_leaf_where_there_is_one(text: str | None) -> None:
    for hierarchy in (
        from_values(["a", "b"], missing=True),
        from_numbers(np.array([1.0, 2.0]), missing=True),
    ):
        assert span(hierarchy, text) == (2, 2)


def test_a_value_spelled_like_no_value_is_still_the_value() -> None:
    assert span(from_values(["NA", "b"], missing=True), "NA") == (0, 0)


def test_everything_reads_back_even_where_there_is_only_one_leaf() -> None:
    assert span(from_values(["a"]), "*") == (0, 0)


@given(st.text(max_size=12) | st.text("0123456789-[](){},;.* \"'~<>=QsaINFe+", max_size=12))
@settings(max_examples=400, deadline=None)
def test_reading_never_raises_and_stays_inside(text: str) -> None:
    for hierarchy in (AGES, ZIPS, DAYS, PLACES):
        found = span(hierarchy, text)
        assert found is None or 0 <= found[0] <= found[1] < hierarchy.size


@given(
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.sampled_from("[(]"),
    st.sampled_from("])["),
    st.sets(st.integers(-100, 100), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_an_interval_is_exactly_the_leaves_inside_it(
    a: float, b: float, left: str, right: str, leaves: set[int]
) -> None:
    low, high = min(a, b), max(a, b)
    inside = [
        code
        for code, leaf in enumerate(sorted(leaves))
        if (low <= leaf if left == "[" else low < leaf) and (leaf <= high if right == "]" else leaf < high)
    ]
    hierarchy = from_numbers(np.array(sorted(leaves), float))
    assert span(hierarchy, f"{left}{low!r}, {high!r}{right}") == ((inside[0], inside[-1]) if inside else None)


def test_number_intervals_are_interpreted_without_a_domain() -> None:
    found = interpret_numbers(["21", "[20, 30[", "(30,40]", ">=65", "*", "x", None])
    assert found.understood.tolist() == [True, True, True, True, True, False, False]
    assert found.low[:5].tolist() == [21, 20, 30, 65, -np.inf]
    assert found.high[:5].tolist() == [21, 30, 40, np.inf, np.inf]
    assert found.above.tolist() == [False, False, True, False, False, False, False]
    assert found.below.tolist() == [False, True, False, False, False, False, False]
    assert np.isnan(found.low[5:]).all()
    assert found.ends().tolist() == [20, 21, 29, 31, 40, 65]


def test_ends_left_out_move_to_the_next_float_if_some_end_is_no_integer() -> None:
    ends = interpret_numbers(["[0.5, 2)"]).ends()
    assert ends.tolist() == [0.5, np.nextafter(2.0, 0.0)]


def test_interpreting_no_texts_gives_no_intervals() -> None:
    assert len(interpret_numbers([]).ends()) == 0
    assert len(interpret_dates([])[0]) == 0
    assert len(notation.read(AGES, [])[0]) == 0
    assert notation.write(AGES, np.empty(0, np.int32), np.empty(0, np.int32)) == []


def test_date_intervals_are_interpreted_without_a_domain() -> None:
    low, high, understood = interpret_dates(["1964-Q2", "*", "x"])
    assert understood.tolist() == [True, True, False]
    assert [str(day) for day in low[:2]] == ["1964-04-01", "0001-01-01"]
    assert [str(day) for day in high[:2]] == ["1964-06-30", "9999-12-31"]
    assert np.isnat(low[2])
