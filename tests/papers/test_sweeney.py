"""Sweeney, k-anonymity: Figures 2 to 5. The decade printed as 1960-69 is written 1960s, a masked ZIP 0213*."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from loaded import load_histories
from sequester.attacks import complementary, row_order
from sequester.attacks.tracing import find as trace
from sequester.metrics.measure import measure
from sequester.policy.model import Policy

QUASI: dict[str, Any] = {
    "race": {"role": "quasi-identifier", "hierarchy": {"person": ["black", "white"]}},
    "birth": {"role": "quasi-identifier", "kind": "date", "levels": ["year", "decade"]},
    "gender": {"role": "quasi-identifier", "hierarchy": {"human": ["male", "female"]}},
    "zip": {"role": "quasi-identifier", "kind": "code", "length": 5},
}
FIGURE_2 = """
black | 1965 | male   | 0214* | short breath
black | 1965 | male   | 0214* | chest pain
black | 1965 | female | 0213* | hypertension
black | 1965 | female | 0213* | hypertension
black | 1964 | female | 0213* | obesity
black | 1964 | female | 0213* | chest pain
white | 1964 | male   | 0213* | chest pain
white | 1964 | male   | 0213* | obesity
white | 1964 | male   | 0213* | short breath
white | 1967 | male   | 0213* | chest pain
white | 1967 | male   | 0213* | chest pain
"""
PT = """
black | 1965-09-20 | male   | 02141 | short of breath
black | 1965-02-14 | male   | 02141 | chest pain
black | 1965-10-23 | female | 02138 | painful eye
black | 1965-08-24 | female | 02138 | wheezing
black | 1964-11-07 | female | 02138 | obesity
black | 1964-12-01 | female | 02138 | chest pain
white | 1964-10-23 | male   | 02138 | short of breath
white | 1965-03-15 | female | 02139 | hypertension
white | 1964-08-13 | male   | 02139 | obesity
white | 1964-05-05 | male   | 02139 | fever
white | 1967-02-13 | male   | 02138 | vomiting
white | 1967-03-21 | male   | 02138 | back pain
"""
GT1 = """
black  | 1965 | male   | 02141 | short of breath
black  | 1965 | male   | 02141 | chest pain
person | 1965 | female | 0213* | painful eye
person | 1965 | female | 0213* | wheezing
black  | 1964 | female | 02138 | obesity
black  | 1964 | female | 02138 | chest pain
white  | 1964 | male   | 0213* | short of breath
person | 1965 | female | 0213* | hypertension
white  | 1964 | male   | 0213* | obesity
white  | 1964 | male   | 0213* | fever
white  | 1967 | male   | 02138 | vomiting
white  | 1967 | male   | 02138 | back pain
"""
GT3 = """
black | 1965  | male   | 02141 | short of breath
black | 1965  | male   | 02141 | chest pain
black | 1965  | female | 02138 | painful eye
black | 1965  | female | 02138 | wheezing
black | 1964  | female | 02138 | obesity
black | 1964  | female | 02138 | chest pain
white | 1960s | male   | 02138 | short of breath
white | 1960s | human  | 02139 | hypertension
white | 1960s | human  | 02139 | obesity
white | 1960s | human  | 02139 | fever
white | 1960s | male   | 02138 | vomiting
white | 1960s | male   | 02138 | back pain
"""
NEWCOMERS = """
black | 1965 | male | 02139 | headache
black | 1965 | male | 02139 | rash
"""
NEW_PEOPLE = """
black | 1965-09-07 | male | 02139 | headache
black | 1965-11-04 | male | 02139 | rash
"""
UNIQUE = [
    {"race": "white", "birth": "1964", "gender": "male", "zip": "02138"},
    {"race": "white", "birth": "1965", "gender": "female", "zip": "02139"},
]


def policy(**attributes: dict) -> Policy:
    columns = attributes or {**QUASI, "problem": {"role": "sensitive"}}
    return Policy.model_validate(
        {"version": 1, "series": "s", "person": "row", "attributes": columns, "protect": {"k": 2}}
    )


def table(text: str, *names: str, person: bool = False) -> pa.Table:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names or (*QUASI, "problem"))}
    return pa.table(columns | ({"row": list(range(len(rows)))} if person else {}))


def test_figure_2_is_2_anonymous_and_so_are_both_tables_of_figure_5():
    found = [measure(table(text), policy()).k for text in (FIGURE_2, GT1, GT3)]
    assert found == [2, 2, 2]


def test_figure_3_rows_in_the_order_of_the_private_table_match_by_their_number():
    """12 rows of two kinds that agree throughout: a shuffle does that once in 924 times."""
    zips = ("02138", "02139", "02141", "02142")
    races = {"role": "quasi-identifier", "hierarchy": {"Person": ["Asian", "Black", "White"]}}
    figure_3 = policy(race=races, zip=QUASI["zip"])
    gt1 = pa.table({"race": ["Person"] * 12, "zip": list(zips) * 3})
    masked = ["0213*", "0213*", "0214*", "0214*"] * 3
    gt2 = pa.table({"race": [race for race in ("Asian", "Black", "White") for _ in zips], "zip": masked})
    (history,) = load_histories([gt1, gt2], figure_3)
    (finding,) = row_order.find(history).findings
    assert finding.witness["small"]
    assert finding.witness["chance"] == pytest.approx(1 / 924)
    order = np.random.default_rng(0).permutation(12)
    (shuffled,) = load_histories([gt1, gt2.take(order)], figure_3)
    assert row_order.find(shuffled).findings == []


@pytest.mark.parametrize("semantics", ["exact", "paper"])
@pytest.mark.parametrize("person", [False, True])
def test_figure_5_joined_on_problem_makes_exactly_the_two_named_rows_unique(semantics, person):
    (history,) = load_histories([table(GT1, person=person), table(GT3, person=person)], policy())
    found = complementary.find(history, semantics=semantics)
    assert [finding.witness["joined"] for finding in found.findings] == UNIQUE
    assert [finding.observed for finding in found.findings] == [1, 1]
    assert [finding.people for finding in found.findings] == ([(6,), (7,)] if person else [(), ()])
    assert found.measure == 1


def test_figure_5_row_positions_do_not_matter_for_the_join():
    shuffled = [table(text).take(np.random.default_rng(seed).permutation(12)) for seed, text in enumerate((GT1, GT3))]
    (history,) = load_histories(shuffled, policy())
    assert [finding.witness["joined"] for finding in complementary.find(history).findings] == UNIQUE
    assert row_order.find(history).findings == []


@pytest.mark.parametrize("known", [False, True])
def test_example_6_problem_links_though_it_is_no_sensitive_attribute(known):
    columns = {**QUASI, "problem": {"role": "insensitive"}}
    shuffled = [table(text).take(np.random.default_rng(seed).permutation(12)) for seed, text in enumerate((GT1, GT3))]
    people = table(PT, person=True).drop_columns("problem")
    found = sq.audit(shuffled, policy(**columns), against=["any"], population=[people, people] if known else None)
    told = [finding for finding in found.findings if finding.attack == "complementary"]
    assert [finding.witness["joined"] for finding in told] == UNIQUE
    assert found.measures["complementary"] == 1
    changing = policy(**{**QUASI, "problem": {"role": "insensitive", "changes": True}})
    assert sq.audit(shuffled, changing, against=["any"]).holds


def test_figure_4_people_found_in_the_boxes_of_figure_5_are_those_two_rows():
    people = table(PT, person=True)
    (history,) = load_histories([table(GT1), table(GT3)], policy(), population=[people, people])
    found = complementary.find(history)
    assert [finding.people for finding in found.findings] == [(6,), (7,)]


def test_figure_5_record_tracing_exposes_the_same_two_people():
    (history,) = load_histories([table(GT1, person=True), table(GT3, person=True)], policy())
    assert {person for finding in trace(history).findings for person in finding.people} == {6, 7}


def test_example_7_the_same_rows_are_unique_after_two_people_joined():
    later = table(GT3 + NEWCOMERS.lstrip())
    (history,) = load_histories([table(GT1), later], policy())
    assert [finding.witness["joined"] for finding in complementary.find(history).findings] == UNIQUE


def test_example_7_a_release_based_on_the_last_one_joins_to_nothing_new():
    people = [table(PT, person=True), table(PT + NEW_PEOPLE.lstrip(), person=True)]
    releases = [table(GT1), table(GT1 + NEWCOMERS.lstrip())]
    (history,) = load_histories(releases, policy(), population=people)
    found = complementary.find(history)
    assert found.findings == []
    assert found.measure == 2
