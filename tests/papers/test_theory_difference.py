"""Claims about the difference attack (Byun et al., section 4.3) that small series refute or confirm."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sequester.attacks import difference
from sequester.attacks.finding import Finding, Semantics
from series import Series, of_partitions

HALF = Fraction(1, 2)
BOTH: tuple[Semantics, ...] = ("exact", "paper")


def exposed(findings: list[Finding]) -> set[tuple[str | None, tuple[object, ...]]]:
    return {(finding.value, finding.people) for finding in findings}


def find(truth: Series, *, k: int = 2, c: Fraction = HALF, semantics: Semantics = "exact") -> list[Finding]:
    return difference.find(truth.history(k=k, c=c), semantics=semantics).findings


@pytest.mark.parametrize("semantics", BOTH)
def test_figure_5_as_printed_alarms_on_an_unchanged_class_which_is_safe(semantics: Semantics) -> None:
    truth = of_partitions([[[0, 1], [2, 3]], [[0, 1], [2, 3]]], "abab")
    assert find(truth, semantics=semantics) == []


@pytest.mark.parametrize("semantics", BOTH)
def test_one_direction_does_not_suffice_earlier_minus_later_exposes_a_person(semantics: Semantics) -> None:
    truth = of_partitions([[[0, 1, 2, 3]], [[0, 1, 2], [3, 4, 5]]], "abcdef")
    (finding,) = [one for one in find(truth, semantics=semantics) if one.value is None]
    assert finding.people == (3,)
    assert (finding.witness["from_release"], finding.witness["minus_release"]) == (1, 2)


@pytest.mark.parametrize("semantics", BOTH)
def test_observation_1_is_false_supersets_of_disjoint_covers_cannot_be_skipped(semantics: Semantics) -> None:
    values = of_partitions([[[0, 1], [2, 3], [4, 5]], [[0, 1, 4, 6], [2, 3, 5, 7]]], "abababcc")
    assert ("c", (6, 7)) in exposed(find(values, semantics=semantics))
    sizes = of_partitions([[[0, 1], [2, 3], [4, 5, 7]], [[0, 1, 4, 6], [2, 3, 5, 7]]], "abababab")
    assert (None, (6,)) in exposed(find(sizes, c=Fraction(1), semantics=semantics))


def test_three_releases_determine_what_no_pair_does() -> None:
    truth = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]], "abcd")
    history = truth.history(c=1)
    assert difference.find(history, semantics="paper").findings == []
    result = difference.find(history)
    assert result.measure == 1
    assert exposed(result.findings) == {(None, (person,)) for person in range(4)}
    assert {finding.releases for finding in result.findings} == {(1, 2, 3)}
    assert all("1/2" in {term["times"] for term in finding.witness["combination"]} for finding in result.findings)


def test_nested_sets_do_not_cover_a_value_that_was_never_published_before() -> None:
    truth = of_partitions([[[0, 1, 2]], [[0, 1, 4], [2, 3]]], "cdbda")
    history = truth.history(k=1)
    assert all(finding.value != "a" for finding in difference.find(history, semantics="paper").findings)
    (finding,) = [one for one in difference.find(history).findings if one.value == "a"]
    assert finding.people == (4,)
    assert finding.observed == 1
    assert finding.witness == {
        "from_release": 2, "from": [1], "minus_release": 1, "minus": [1], "left": 1, "with_value": 1, "exactly": False,
    }  # fmt: skip


@pytest.mark.parametrize("semantics", BOTH)
def test_too_few_newcomers_make_every_release_of_the_whole_table_vulnerable(semantics: Semantics) -> None:
    truth = of_partitions([[[0, 1], [2, 3]], [[0, 1, 2, 3, 4]]], "ababa")
    assert (None, (4,)) in exposed(find(truth, semantics=semantics))


@pytest.mark.parametrize("semantics", BOTH)
def test_growing_classes_are_safe_when_the_newcomers_of_each_are_none_or_enough(semantics: Semantics) -> None:
    safe = of_partitions([[[0, 1], [2, 3]], [[0, 1], [2, 3, 4, 5]]], "ababab")
    assert difference.find(safe.history(), semantics=semantics).findings == []
    unsafe = of_partitions([[[0, 1], [2, 3]], [[0, 1, 5], [2, 3, 4]]], "ababab")
    assert find(unsafe, semantics=semantics)


def test_people_who_leave_are_exposed_by_earlier_minus_later() -> None:
    truth = of_partitions([[[0, 1, 2], [3, 4]], [[0, 1], [3, 4]]], "abcab")
    assert (None, (2,)) in exposed(find(truth))


def test_the_first_figures_have_five_victims_of_which_nested_sets_find_one() -> None:
    tom, mike, bob, eve, alice, hank, sal = range(7)
    truth = of_partitions([[[tom, mike], [bob, eve]], [[tom, mike, alice], [bob, hank], [eve, sal]]], "abcdefb")
    # Bob and Eve are what the old classes leave when the new ones are taken away, and the other way round.
    assert exposed(find(truth, k=1)) == {
        ("e", (alice,)), ("c", (bob,)), ("d", (eve,)), ("f", (hank,)), ("b", (sal,)),
    }  # fmt: skip
    assert exposed(find(truth, k=1, semantics="paper")) == {("e", (alice,))}
