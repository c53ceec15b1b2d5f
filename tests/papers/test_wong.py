"""Worked examples of Wong et al., Figures 1-4 and Examples 2-3, and the claims that need a correction."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from sequester.attacks import breach, intersection
from sequester.attacks.finding import Finding, Result
from sequester.history import History, Publication
from series import axis

# Figure 1. Sex and zip code of everybody, and the disease in the first and in the second table.
ZIPCODES = ("65001", "65002", "65010", "65014", "65015")
PEOPLE = {"o1": ("M", "65001"), "o2": ("M", "65002"), "o3": ("F", "65014"), "o4": ("F", "65015"), "o5": ("F", "65010")}
FIRST = {"o1": "flu", "o2": "chlamydia", "o3": "flu", "o4": "fever"}
SECOND = {"o1": "chlamydia", "o2": "flu", "o3": "fever", "o5": "flu"}
DISEASES = ("flu", "chlamydia", "fever")

Table = dict[str, str]
Groups = list[list[str]]
Pair = tuple[int, int]


def codes(person: str) -> list[int]:
    sex, zipcode = PEOPLE[person]
    return [("M", "F").index(sex), ZIPCODES.index(zipcode)]


def hospital(*releases: tuple[Table, Groups]) -> History:
    """The published tables, given who has which disease and who is in which anonymized group."""
    everybody = tuple(PEOPLE)
    history = History(
        attribute="disease",
        values=DISEASES,
        k=2,
        bounds=(Fraction(1, 2),) * 3,
        domains=(axis(2), axis(len(ZIPCODES))),
        quasi_names=("sex", "zipcode"),
        links=np.ones(2, np.bool_),
        permanent=False,
        people=everybody,
    )
    for number, (table, groups) in enumerate(releases):
        member = np.full(len(everybody), -1, np.int32)
        value = np.full(len(everybody), -1, np.int32)
        counts = np.zeros((len(groups), 3), np.int64)
        for group, persons in enumerate(groups):
            for person in persons:
                member[everybody.index(person)] = group
                value[everybody.index(person)] = DISEASES.index(table[person])
                counts[group, DISEASES.index(table[person])] += 1
        points = [np.array([codes(person) for person in persons], np.int32) for persons in groups]
        here = np.flatnonzero(member >= 0)
        history = history.extend(
            Publication(
                name=str(number + 1),
                lo=np.array([group.min(axis=0) for group in points], np.int32).T.copy(),
                hi=np.array([group.max(axis=0) for group in points], np.int32).T.copy(),
                counts=counts,
                row_class=member[here],
                row_value=value[here],
                member=member,
                value=value,
            )
        )
    return history


FIGURE_2 = ((FIRST, [["o1", "o2"], ["o3", "o4"]]), (SECOND, [["o1", "o2"], ["o3", "o5"]]))
FIGURE_4 = ((FIRST, [["o1", "o2", "o3", "o4"]]), (SECOND, [["o1", "o2", "o3", "o5"]]))


def about(result: Result, value: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.value == value]


def test_figure_2_links_o2_to_chlamydia_with_three_quarters() -> None:
    result = breach.find(hospital(*FIGURE_2), l=2)
    (finding,) = about(result, "chlamydia")
    assert finding.people == ("o1", "o2")
    assert finding.observed == 0.75
    assert finding.required == 0.5
    assert finding.releases == (1, 2)
    assert finding.witness == {
        "factors": [
            {"release": 1, "class": 1, "with_value": 1, "among": 2},
            {"release": 2, "class": 1, "with_value": 1, "among": 2},
        ],
        "probability": "3/4",
        "people": 2,
    }


def test_figure_3_has_four_worlds_and_three_of_them_link_o2_to_chlamydia() -> None:
    ways = list(permutations(["flu", "chlamydia"]))
    worlds = list(product(ways, ways))
    linked = [world for world in worlds if any(release[1] == "chlamydia" for release in world)]
    (finding,) = about(breach.find(hospital(*FIGURE_2), l=2), "chlamydia")
    assert len(worlds) == 4
    assert finding.witness["probability"] == str(Fraction(len(linked), len(worlds)))


def test_figure_2_is_safe_in_each_release_alone() -> None:
    for release in FIGURE_2:
        result = breach.find(hospital(release), l=2)
        assert result.findings == []
        assert result.measure == 0.5


def test_figure_4_brings_chlamydia_down_to_seven_sixteenths() -> None:
    history = hospital(*FIGURE_4)
    only_chlamydia = replace(history, bounds=(Fraction(1), Fraction(1, 2), Fraction(1)))
    result = breach.find(only_chlamydia, l=2)
    assert result.findings == []
    assert result.measure == 7 / 16


def test_figure_4_protects_chlamydia_but_not_flu_which_is_twice_in_each_group() -> None:
    result = breach.find(hospital(*FIGURE_4), l=2)
    assert [finding.value for finding in result.findings] == ["flu"]
    assert result.findings[0].people == ("o1", "o2", "o3")
    assert result.measure == 3 / 4


def test_a_registration_list_dilutes_figure_2() -> None:
    # Three men and one more woman live in the same places: each box has four registered people for its two rows.
    more = [[0, 0], [0, 1], [1, 3]]
    registered = np.array([*(codes(person) for person in PEOPLE), *more], np.int32).T.copy()
    men = breach.find(hospital(*FIGURE_2), l=2, registered=registered)
    assert about(men, "chlamydia") == []
    only_chlamydia = replace(hospital(*FIGURE_2), bounds=(Fraction(1), Fraction(1, 2), Fraction(1)))
    assert breach.find(only_chlamydia, l=2, registered=registered).measure == 7 / 16


def groups_of_one(*groups: Pair) -> History:
    """One person who was, release by release, in a group of n rows of which n_s have the value s: pairs (n, n_s)."""
    history = History(
        attribute="s",
        values=("s", "other"),
        k=1,
        bounds=(Fraction(1, 2), Fraction(1)),
        domains=(axis(1),),
        quasi_names=("q",),
        links=np.ones(1, np.bool_),
        permanent=False,
        people=("o",),
    )
    for number, (size, with_value) in enumerate(groups):
        point = np.zeros((1, 1), np.int32)
        history = history.extend(
            Publication(
                name=str(number),
                lo=point,
                hi=point,
                counts=np.array([[with_value, size - with_value]], np.int64),
                row_class=np.zeros(size, np.int32),
                row_value=(np.arange(size) >= with_value).astype(np.int32),
                member=np.zeros(1, np.int32),
            )
        )
    return history


def smallest_ratio(past: list[Pair], l: int) -> Fraction:  # noqa: E741
    """The right-hand side of Theorem 1."""
    free, whole = 1, 1
    for size, with_value in past:
        free, whole = free * (size - with_value), whole * size
    return Fraction(l * free, l * free - (l - 1) * whole)


def test_example_3_needs_a_ratio_of_nine() -> None:
    past = [(4, 1), (4, 1)]
    assert smallest_ratio(past, 2) == 9
    assert breach.find(groups_of_one(*past, (9, 1)), l=2).findings == []
    assert breach.find(groups_of_one(*past, (9, 1)), l=2).measure == 0.5
    (finding,) = breach.find(groups_of_one(*past, (8, 1)), l=2).findings
    assert finding.witness["probability"] == "65/128"


@pytest.mark.parametrize("times", [1, 1000, 1_000_003])
def test_a_probability_of_exactly_one_half_holds_for_any_size_of_groups(times: int) -> None:
    history = groups_of_one((4, 1), (4, 1), (9, 1))
    releases = tuple(replace(release, counts=release.counts * times) for release in history.releases)
    assert breach.find(replace(history, releases=releases), l=2).findings == []
    just_more = replace(releases[2], counts=releases[2].counts + np.array([[1, -1]]))
    assert len(breach.find(replace(history, releases=(*releases[:2], just_more)), l=2).findings) == 1


def test_a_product_that_floats_put_above_the_limit_holds_when_it_equals_the_limit() -> None:
    # 1 - 3/4 * 8/9 is 1/3, and in floats a little more.
    assert 1 - (1 - 1 / 4) * (1 - 1 / 9) > 1 / 3
    assert breach.find(groups_of_one((4, 1), (9, 1)), l=3).findings == []


def test_lemma_5_a_group_without_the_value_changes_nothing() -> None:
    (before,) = breach.find(groups_of_one((3, 1), (3, 1)), l=2).findings
    (after,) = breach.find(groups_of_one((3, 1), (5, 0), (3, 1)), l=2).findings
    assert before.observed == after.observed
    assert after.releases == (1, 3)


def test_theorem_1_holds_vacuously_where_the_past_already_broke_the_limit() -> None:
    past = [(3, 2)]
    assert smallest_ratio(past, 2) == -2
    assert len(breach.find(groups_of_one(*past, (100, 1)), l=2).findings) == 1


def test_theorem_3_is_not_strict_after_a_group_that_was_all_of_the_value() -> None:
    measures = {breach.find(groups_of_one((2, 2), (size, 1)), l=2).measure for size in (2, 5, 50)}
    assert measures == {1.0}


def test_corollary_3_is_false_splitting_a_violating_group_can_make_it_safe() -> None:
    first = {"o2": "chlamydia", "o3": "flu"}
    second = {"o1": "chlamydia", "o2": "fever", "o3": "flu", "o5": "fever"}
    chlamydia = (Fraction(1), Fraction(1, 2), Fraction(1))
    whole = replace(hospital((first, [["o2", "o3"]]), (second, [["o1", "o2", "o3", "o5"]])), bounds=chlamydia)
    split = replace(hospital((first, [["o2", "o3"]]), (second, [["o1", "o5"], ["o2", "o3"]])), bounds=chlamydia)
    (finding,) = breach.find(whole, l=2).findings
    assert finding.people == ("o2", "o3")
    assert finding.witness["probability"] == "5/8"
    assert breach.find(split, l=2).findings == []
    assert breach.find(split, l=2).measure == 0.5


def test_theorem_4_is_false_for_sizes_a_constant_ratio_can_need_a_larger_group() -> None:
    # One row of s in the first group and two in the second: groups of 4 and 6 suffice, both below 7.
    assert breach.find(groups_of_one((4, 1), (6, 2)), l=2).findings == []
    # A constant ratio r needs 1 - (1 - 1/r)^2 <= 1/2, and two rows of s then need 2 r > 6 rows.
    assert len(breach.find(groups_of_one((3, 1), (6, 2)), l=2).findings) == 1
    assert breach.find(groups_of_one((4, 1), (7, 2)), l=2).findings == []


def test_values_that_change_give_three_quarters_where_permanent_ones_are_certain() -> None:
    history = groups_of_one((2, 1), (2, 1))
    assert breach.find(history, l=2).measure == 0.75
    first, second = (
        replace(release, counts=np.array([counts], np.int64))
        for release, counts in zip(history.releases, ([1, 1, 0], [1, 0, 1]), strict=True)
    )
    bounds = (Fraction(1, 2), Fraction(1), Fraction(1))
    kept = replace(history, values=("s", "a", "b"), bounds=bounds, releases=(first, second), permanent=True)
    assert breach.find(kept, l=2).measure == 0.75
    assert intersection.find(kept).measure == 1
