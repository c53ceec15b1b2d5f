"""The dictionary of a release: every column and notation in words, and nothing that depends on rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sequester as sq
from sequester.policy import Policy
from sequester.report.columns import Row, dictionary

QUASI = {"role": "quasi-identifier"}
TREE = {"CANARY-world": {"CANARY-europe": ["Rome", "CANARY-oslo"], "CANARY-asia": ["Pune", "CANARY-kyoto"]}}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "name": {"role": "identifier"},
    "agrees": {"role": "consent"},
    "age": {**QUASI, "kind": "number", "range": [0, 120]},
    "weight": {**QUASI, "kind": "number", "levels": [5, 10], "missing": "category", "changes": True},
    "income": {**QUASI, "kind": "number", "bands": [0, 987654321, float("inf")], "changes": {"by": [0, 1]}},
    "zip": {**QUASI, "kind": "code", "length": 5, "missing": "category"},
    "born": {**QUASI, "kind": "date", "levels": ["month", "decade"]},
    "admitted": {**QUASI, "kind": "date", "missing": "suppress"},
    "place": {**QUASI, "hierarchy": TREE},
    "job": {**QUASI, "missing": "category"},
    "illness": {"role": "sensitive", "hierarchy": {"Any": {"CANARY-lung": ["flu", "CANARY-tb"], "Skin": ["rash"]}},
                "grades": {"CANARY-tb": "high"}, "ordinary": ["flu"]},
    "cost": {"role": "sensitive", "kind": "number", "bands": [0, 987654321, float("inf")], "missing": "category"},
    "drugs": {"role": "sensitive", "kind": "set", "separator": "|", "missing": "suppress"},
    "ward": {"role": "insensitive"},
    "year": {"role": "insensitive", "changes": True},
}  # fmt: skip


def rules(attributes: dict[str, Any] | None = None, **changes: Any) -> Policy:
    raw = {"version": 1, "series": "t", "attributes": attributes or ATTRIBUTES, "protect": {"k": 2}}
    raw |= {"output": {"numbers": "interval"}, **changes}
    return Policy.model_validate(raw)


def read(policy: Policy, *columns: str) -> dict[str, Row]:
    lines = list(csv.reader(io.StringIO(dictionary(policy, pa.table({name: ["x"] for name in columns})))))
    assert lines[0] == list(Row._fields)
    assert [line[0] for line in lines[1:]] == list(columns)
    return {line[0]: Row(*line) for line in lines[1:]}


def only(name: str, policy: Policy | None = None) -> Row:
    return read(policy or rules(), name)[name]


def test_the_columns_are_those_that_the_format_promises() -> None:
    assert Row._fields == ("column", "role", "kind", "notation", "missing", "changes", "explanation")


def test_columns_come_in_the_order_of_the_table_and_only_those_it_has() -> None:
    read(rules(), "year", "age", "illness")


def test_every_column_of_a_release_has_a_role_a_kind_and_words_for_everything() -> None:
    published = [name for name in ATTRIBUTES if name not in ("name", "agrees")]
    rows = read(rules(), *published)
    assert {name: row.role for name, row in rows.items()} == {name: ATTRIBUTES[name]["role"] for name in published}
    kinds = {"ward": "any", "year": "any"}
    assert {n: r.kind for n, r in rows.items()} == {
        n: kinds.get(n, ATTRIBUTES[n].get("kind", "category")) for n in published
    }
    assert all(all(row) for row in rows.values())


def test_numbers_are_ranges_and_bands_only_where_the_policy_has_them() -> None:
    assert only("age").notation == "a number; [a-b] from a to b; * any number"
    for name in ("weight", "income"):
        assert "[a-b) from a to b without b" in only(name).notation
    assert only("age").explanation.endswith("Levels: numbers, *.")
    assert only("weight").explanation.endswith("Levels: numbers, 2 widths of bands, *.")
    assert only("income").explanation.endswith("Levels: numbers, bands, *.")


def test_bounds_say_which_attribute_they_belong_to() -> None:
    rows = read(rules(output={"numbers": "bounds"}), "age_min", "age_max", "weight_min", "weight_max", "zip")
    assert "lowest that the value of age may be" in rows["age_min"].notation
    assert "highest that the value of age may be" in rows["age_max"].notation
    assert "Belongs to age, with age_max" in rows["age_min"].explanation
    assert rows["weight_max"].missing == "an empty cell, where the value may be missing"
    assert (rows["weight_max"].role, rows["weight_max"].kind, rows["weight_max"].changes) == (
        "quasi-identifier", "number", "yes",
    )  # fmt: skip
    assert rows["age_min"].missing == "never"
    assert rows["zip"] == only("zip")


def test_a_midpoint_is_said_to_be_a_middle_and_no_value() -> None:
    row = only("weight", rules(output={"numbers": "midpoint"}))
    assert "the middle between the lowest and the highest" in row.notation
    assert "only the middle" in row.explanation
    assert row.missing == "an empty cell, where the value may be missing"


def test_codes_have_stars_and_their_length() -> None:
    row = only("zip")
    assert "its first characters and a * for any others" in row.notation
    assert "all 5 characters" in row.explanation


def test_dates_are_written_by_the_levels_that_the_policy_has_and_by_days() -> None:
    row = only("born")
    assert "YYYY-MM-DD a day; YYYY-MM a month; YYY0s a decade; [a - b]" in row.notation
    assert row.explanation.endswith("Levels: day, month, decade, *.")
    assert "quarter" not in row.notation
    assert "YYYY-Q1 to YYYY-Q4 a quarter; YYYY a year; [a - b]" in only("admitted").notation
    assert only("admitted").explanation.endswith("Levels: day, month, quarter, year, *.")


def test_categories_have_groups_only_with_a_hierarchy_and_say_how_many_levels() -> None:
    place, job = only("place"), only("job")
    assert place.notation.startswith("a value, or the name of a group of values; {a, b} one of those")
    assert place.explanation.endswith("Levels: 3, from values to *.")
    assert job.notation.startswith("a value; {a, b} one of those")
    assert job.explanation.endswith("Levels: values, *.")


def test_the_levels_of_a_hierarchy_file_are_counted_too(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("Rome;CANARY-europe;*\nCANARY-oslo;CANARY-europe;*\nPune;CANARY-asia;*\n")
    policy = rules({"place": {**QUASI, "hierarchy": str(tmp_path / "places.csv")}})
    assert only("place", policy).explanation.endswith("Levels: 3, from values to *.")
    assert "CANARY" not in dictionary(policy, pa.table({"place": ["*"]}))


def test_sensitive_values_are_bands_sets_and_groups() -> None:
    assert "a band: [a-b] from a to b; [a-b) " in only("cost").notation
    assert only("cost").missing == "the word missing"
    assert only("drugs").notation == "one or more values in alphabetical order, with '|' between them"
    assert "or the name of a group of values: one of them" in only("illness").notation
    assert "by their kind or because people want it" in only("illness").explanation


def test_a_missing_value_is_written_as_the_policy_says() -> None:
    assert only("age").missing == "never"
    assert only("admitted").missing == "never: records without a value are left out"
    assert only("zip").missing.startswith("the word missing; {a, missing} where the value may be missing")
    assert only("ward").missing == "an empty cell"


def test_what_may_change_for_a_person_is_said() -> None:
    assert [only(name).changes for name in ("age", "weight", "income", "ward", "year", "illness")] == [
        "no", "yes", "yes, within limits", "no", "yes", "no",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("permanent", "against", "said"),
    [([], ["lifetime"], "yes"), (["CANARY-hiv"], ["insider", "lifetime"], "yes, but some values stay")],
)
def test_values_that_change_are_told_from_those_that_stay_without_naming_any(
    permanent: list[str], against: list[str], said: str
) -> None:
    illness = {"role": "sensitive", "values": "transient", "permanent": permanent}
    protect = {"k": 2, "confidence": 0.5, "against": against, "lifetime": {"l": 2, "releases": 4}}
    policy = rules({"age": ATTRIBUTES["age"], "illness": illness}, protect=protect, method={"name": "group"})
    assert only("illness", policy).changes == said
    assert "CANARY" not in dictionary(policy, pa.table({"illness": ["x"]}))


def test_insensitive_columns_that_are_generalized_are_described_so() -> None:
    row = only("ward", rules(released="quasi-identifier"))
    assert (row.role, row.kind) == ("insensitive", "category")
    assert row.notation == only("job").notation
    assert row.missing.startswith("the word missing")


@pytest.mark.parametrize("numbers", ["interval", "bounds", "midpoint"])
def test_no_value_of_the_policy_or_of_a_row_is_in_a_dictionary(numbers: str) -> None:
    policy = rules(output={"numbers": numbers})
    kept = [name for name in ATTRIBUTES if name not in ("name", "agrees")]
    columns = [
        column
        for name in kept
        for column in (
            (f"{name}_min", f"{name}_max")
            if numbers == "bounds" and ATTRIBUTES[name].get("kind") == "number" and name != "cost"
            else (name,)
        )
    ]
    few = pa.table({name: ["CANARY-cell"] for name in columns})
    many = pa.table({name: pa.array([1.5, None, 2.5]) for name in columns})
    text = dictionary(policy, few)
    assert "CANARY" not in text
    assert "987654321" not in text
    assert not any(value in text for value in ("Rome", "Pune", "flu", "rash"))
    assert dictionary(policy, many) == text


def test_a_strange_column_name_stays_one_cell() -> None:
    name = 'a,"b"\nc'
    assert only(name, rules({name: QUASI})).column == name


@pytest.mark.parametrize("numbers", ["interval", "bounds", "midpoint"])
@pytest.mark.parametrize("released", ["as-declared", "quasi-identifier"])
def test_the_dictionary_of_a_real_release_has_all_its_columns(tmp_path: Path, numbers: str, released: str) -> None:
    attributes = {name: ATTRIBUTES[name] for name in ("name", "age", "zip", "born", "place", "job", "cost", "ward")}
    attributes |= {"illness": {"role": "sensitive"}}
    people = 40
    table = pa.table(
        {
            "name": [f"person-{n}" for n in range(people)],
            "age": [20 + n for n in range(people)],
            "zip": [f"021{n:02d}" for n in range(people)],
            "born": [f"19{50 + n}-01-02" for n in range(people)],
            "place": ["Rome", "Pune"] * (people // 2),
            "job": ["a", "b", "c", "d"] * (people // 4),
            "cost": list(range(people)),
            "ward": ["w", "v"] * (people // 2),
            "illness": ["flu", "rash"] * (people // 2),
        }
    )
    release = sq.anonymize(table, rules(attributes, output={"numbers": numbers}, released=released))
    release.save(tmp_path / "r")
    with (tmp_path / "r" / "dictionary.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["column"] for row in csv.DictReader(stream)] == release.table.column_names
