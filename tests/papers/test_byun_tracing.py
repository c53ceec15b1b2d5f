"""Byun et al., section 4.5: Figures 8 and 9, and the tables of Figures 2 and 4 read by this attack."""

from __future__ import annotations

import pytest
from test_theory_tracing import boxed

from sequester.attacks.finding import Semantics
from sequester.attacks.tracing import find
from series import of_partitions

READINGS = pytest.mark.parametrize("semantics", ["exact", "paper"])
MALE, FEMALE, PERSON = (0, 0), (1, 1), (0, 1)
NAMES = ("Tom", "Mike", "Bob", "Eve", "Alice", "Hank", "Sal")


def test_figures_2_and_4_expose_bob_and_eve_and_the_rows_of_the_newcomers() -> None:
    """a Asthma, b Flu, c Alzheimer, d Diabetes, e Cancer, f Hepatitis."""
    ages = [(21, 0), (23, 0), (52, 0), (57, 1), (27, 1), (53, 0), (59, 1)]
    truth = boxed(
        list(zip(ages, "abcdefb", strict=True)),
        [([(21, 25), MALE], [0, 1]), ([(50, 60), PERSON], [2, 3])],
        [([(21, 30), PERSON], [0, 1, 4]), ([(51, 55), MALE], [2, 5]), ([(56, 60), FEMALE], [3, 6])],
    )
    printed = find(truth.history(k=2), semantics="paper").findings
    assert [(NAMES[f.people[0]], f.value, f.observed) for f in printed] == [("Bob", "c", 1), ("Eve", "d", 1)]
    assert [f.classes for f in printed] == [((1, 2), (2, 2)), ((1, 2), (2, 3))]
    found = find(truth.history(k=2)).findings
    assert [(NAMES[f.people[0]], f.value, f.observed) for f in found] == [
        ("Bob", "c", 1), ("Eve", "d", 1), ("Alice", "e", 1), ("Hank", "f", 1), ("Sal", "b", 1)
    ]  # fmt: skip
    assert {f.classes[0] for f in found if NAMES[f.people[0]] in ("Alice", "Hank", "Sal")} == {(2, 1), (2, 2), (2, 3)}


@READINGS
def test_figure_8_i_one_compatible_class_narrows_the_row_to_its_box(semantics: Semantics) -> None:
    """Only the first later class is compatible with the row's class and has its value."""
    truth = of_partitions([[[0, 1, 2, 3]], [[0, 1], [2, 3]]], "abcd")
    result = find(truth.history(k=3), semantics=semantics)
    assert result.measure == 2
    assert [f.people for f in result.findings if f.value == "a" and "certain" not in f.witness] == [(0, 1)]


def test_figure_8_ii_two_compatible_classes_with_the_value_keep_both_boxes() -> None:
    truth = of_partitions([[[0, 1, 2, 3]], [[0, 1, 4], [2, 3, 5]]], "abcaaa")
    for semantics in ("exact", "paper"):
        found = find(truth.history(k=5), semantics=semantics).findings  # type: ignore[arg-type]
        assert [f.people for f in found if f.witness["row"] == (1, 1, "a")] == [(0, 1, 2, 3)]


@READINGS
def test_figure_9_i_a_row_taken_by_another_class_leaves_one_place(semantics: Semantics) -> None:
    """Two earlier classes with one a each: the first fits one later class, the second both."""
    truth = boxed(
        [((0,), "a"), ((1,), "b"), ((2,), "c"), ((3,), "a")],
        [([(0, 1)], [0, 1]), ([(2, 3)], [2, 3])],
        [([(0, 2)], [0, 1, 2]), ([(3, 3)], [3])],
    )
    found = [f for f in find(truth.history(k=2), semantics=semantics).findings if f.witness["row"] == (1, 2, "a")]
    assert [f.people for f in found] == [(3,)]


def test_figure_9_ii_needs_the_rows_of_the_later_release_and_no_choice_between_equal_rows() -> None:
    """Either of two equal rows can be anybody's; that one of them is surely in each class shows in the later rows."""
    truth = of_partitions([[[0, 1, 2, 3]], [[0, 1], [2, 3]]], "abac")
    printed = [f for f in find(truth.history(k=3), semantics="paper").findings if f.value == "a"]
    assert [(f.people, f.witness["feasible"], f.witness["rows"]) for f in printed] == [
        ((0, 1), [1], 1),
        ((2, 3), [2], 1),
    ]
    found = [f for f in find(truth.history(k=3)).findings if f.value == "a"]
    assert [(f.people, f.witness["row"]) for f in found] == [((0, 1), (2, 1, "a")), ((2, 3), (2, 2, "a"))]
