"""What is claimed about record tracing and does not hold, and what does."""

from __future__ import annotations

import numpy as np

from sequester.attacks.finding import Semantics
from sequester.attacks.tracing import find
from series import Series, of_partitions


def boxed(
    people: list[tuple[tuple[int, ...], str]], *releases: list[tuple[list[tuple[int, int]], list[int]]]
) -> Series:
    """People as (point, value), and releases as classes of (sides of the box, members)."""
    points = np.array([point for point, _ in people], np.int32)
    value = np.array(["abcdefgh".index(letter) for _, letter in people], np.int32)
    member = np.full((len(releases), len(people)), -1, np.int32)
    boxes = []
    for number, classes in enumerate(releases):
        sides = np.array([box for box, _ in classes], np.int32)
        boxes.append((sides[:, :, 0].T.copy(), sides[:, :, 1].T.copy()))
        for place, (_, persons) in enumerate(classes):
            member[number, persons] = place
    leaves = max(int(hi.max()) for _, hi in boxes) + 1
    return Series(points, value, member, tuple(boxes), int(value.max()) + 1, (leaves,) * points.shape[1])


def candidates(truth: Series, *, semantics: Semantics) -> float | None:
    """With k beyond every class nothing is certified, so that the measure is exact."""
    return find(truth.history(k=99), semantics=semantics).measure


def test_figure_10_leaves_edges_that_the_counts_of_one_class_forbid() -> None:
    truth = boxed(
        [((0,), "a"), ((0,), "a"), ((1,), "b"), ((2,), "a")],
        [([(0, 0)], [0, 1]), ([(1, 2)], [2, 3])],
        [([(0, 1)], [0, 1, 2]), ([(2, 3)], [3])],
    )
    history = truth.history(k=2)
    traced = [f for f in find(history).findings if f.value == "a"]
    assert [(f.people, f.witness) for f in traced] == [((3,), {"row": (1, 2, "a"), "rows": 1, "candidates": 1})]
    printed = find(history, semantics="paper").findings
    assert not [f for f in printed if f.value == "a"]
    assert [
        f.people for f in find(truth.history(k=3), semantics="paper").findings if f.witness["row"] == (1, 2, "a")
    ] == [(2, 3)]


def test_figure_10_does_not_see_rows_that_two_classes_must_share_between_them() -> None:
    """No order of its rules helps: no class has as many rows as the classes it is compatible with."""
    truth = boxed(
        [((0, 0), "a"), ((1, 1), "a"), ((1, 2), "a"), ((1, 0), "b"), ((0, 1), "b"), ((0, 2), "b"), ((1, 2), "b")],
        [([(0, 1), (0, 0)], [0, 3]), ([(0, 1), (1, 1)], [1, 4]), ([(0, 1), (2, 2)], [2, 5])],
        [([(0, 0), (0, 2)], [0, 4, 5]), ([(1, 1), (0, 1)], [1, 3]), ([(1, 1), (2, 2)], [2, 6])],
    )
    assert candidates(truth, semantics="paper") == 2
    assert candidates(truth, semantics="exact") == 1
    exposed = [f for f in find(truth.history(k=2)).findings if f.witness["row"][0] == 1]
    assert ("a", (2,)) in [(f.value, f.people) for f in exposed]


def test_rows_with_one_label_in_one_class_are_interchangeable() -> None:
    """One a-row of the class is surely in each later class: the rows there are the ones with few owners."""
    truth = of_partitions([[[0, 1, 2, 3, 4]], [[0, 1, 2], [3, 4]]], "abbba")
    found = [f for f in find(truth.history(k=3)).findings if f.value == "a"]
    assert [(f.people, f.witness["row"]) for f in found] == [((3, 4), (2, 2, "a"))]


def test_six_equal_rows_and_one_who_leaves_expose_nobody() -> None:
    truth = of_partitions([[[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 3, 4]]], "aaaaaa")
    assert find(truth.history(k=5)).findings == []


def test_rows_of_newcomers_are_traced_back() -> None:
    """Nobody of the first release has d, so the d-row of the first class is one of its two newcomers'."""
    truth = of_partitions([[[0, 1, 2, 3, 4, 5]], [[0, 1, 2, 6, 7], [3, 4, 5, 8, 9]]], "abcabcdede")
    found = [f for f in find(truth.history(k=3)).findings if f.value == "d"]
    assert [(f.people, f.witness["row"]) for f in found] == [((6, 7), (2, 1, "d")), ((8, 9), (2, 2, "d"))]


def test_newcomers_with_the_value_give_deniability_back() -> None:
    """As before, but the later class of the others has a newcomer with the value."""
    truth = of_partitions([[[0, 1, 2, 3]], [[0, 1], [2, 3, 4, 5]]], "aabcaa")
    assert find(truth.history(k=2)).findings == []


def test_what_is_still_there_cannot_be_hers_who_left() -> None:
    """The class has one b-row, which is left in the later release: it is not that of the only one who left."""
    truth = of_partitions([[[0, 1, 2]], [[0, 2], [3]]], "aabb")
    found = {(f.value, f.people) for f in find(truth.history(k=3)).findings if f.witness["row"][0] == 1}
    assert found == {("b", (0, 2))}


def test_classes_that_share_nobody_or_k_people_leave_k_candidates() -> None:
    truth = of_partitions([[[0, 1, 2, 3], [4, 5]], [[0, 1], [2, 3, 6, 7], [4, 5]]], "abababab")
    assert find(truth.history(k=2)).findings == []
    assert find(truth.history(k=2)).measure == 2
