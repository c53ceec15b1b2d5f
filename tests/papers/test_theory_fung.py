"""Claims of Fung et al. that do not hold, each with its smallest counterexample, and what holds instead."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from sequester.attacks.solvers.comparison import Comparison, closed_between, closed_unforced, compare
from sequester.history import History
from series import Series, of_partitions
from ways import backward, cross, forward

Box = list[tuple[int, int]]
ALL = 1000


def history(points: list[list[int]], value: str, releases: list[list[tuple[Box, list[int]]]], *, k: int = 2) -> History:
    """Classes given as (box, people), one list per release; a box is one (low, high) per attribute."""
    raw = np.array(points, np.int32)
    member = np.full((len(releases), len(points)), -1, np.int32)
    boxes = []
    for number, classes in enumerate(releases):
        for place, (_, people) in enumerate(classes):
            member[number, people] = place
        ends = np.array([box for box, _ in classes], np.int32)
        boxes.append((ends[:, :, 0].T.copy(), ends[:, :, 1].T.copy()))
    codes = np.array(["abc".index(letter) for letter in value], np.int32)
    return Series(raw, codes, member, tuple(boxes), int(codes.max()) + 1, (8,) * raw.shape[1]).history(k=k, c=1)


def between(comparison: Comparison, first: int, second: int) -> tuple[int, int]:
    """Rows that remain for a pair of classes, of all values: exact, and as printed."""
    pair = np.array([first], np.int32), np.array([second], np.int32)
    assert comparison.buddies is not None
    where = np.flatnonzero((comparison.comparable[0] == first) & (comparison.comparable[1] == second))
    return int(comparison.buddies.between(*pair).sum()), int(closed_between(comparison)[where].sum())


def test_theorems_4_2_to_4_4_fail_for_local_recoding() -> None:
    series = history(
        [[1], [4]], "aa", [[([(1, 3)], [0]), ([(4, 4)], [1])], [([(0, 1)], [0]), ([(3, 4)], [1])]]
    )  # fmt: skip
    (comparison,) = compare(series)
    assert between(comparison, 0, 1) == (0, 1)
    assert comparison.buddies is not None
    assert comparison.buddies.unforced(np.array([0], np.int32)).tolist() == [[0]]
    assert closed_unforced(comparison)[0].tolist() == [1]


def test_disjoint_boxes_that_are_nested_per_attribute_are_not_enough_for_the_closed_form() -> None:
    """Lemma 4.1 needs cuts: here two multidimensional recodings of one taxonomy are comparable in a chain."""
    series = history(
        [[1, 0], [0, 1]],
        "aa",
        [[([(0, 1), (0, 0)], [0]), ([(0, 0), (1, 1)], [1])], [([(0, 0), (0, 1)], [1]), ([(1, 1), (0, 0)], [0])]],
    )
    (comparison,) = compare(series)
    assert between(comparison, 0, 0) == (0, 1)


def test_theorem_4_5_fails_literally_but_holds_over_comparable_pairs() -> None:
    series = history([[1], [1], [2]], "aaa", [[([(1, 1)], [0, 1])], [([(1, 1)], [0, 1]), ([(2, 2)], [2])]])
    (comparison,) = compare(series)
    cracked = np.zeros(len(comparison.after), np.int64)
    np.maximum.at(
        cracked,
        comparison.comparable[1],
        (comparison.after[comparison.comparable[1]] - closed_between(comparison)).sum(axis=1),
    )
    assert int((comparison.after.sum(axis=1) - cracked).min()) == 1
    assert forward.find(series, semantics="paper").measure == cross.find(series, semantics="paper").measure == 2


def test_theorem_5_1_fails_a_specialisation_can_raise_the_printed_fa_but_not_that_of_real_targets() -> None:
    points, old = [[2, 0], [0, 2]], [([(2, 2), (0, 2)], [0])]
    coarse = history(points, "ba", [old, [([(0, 2), (0, 1)], [0]), ([(0, 2), (2, 2)], [1])]])
    fine = history(points, "ba", [old, [([(2, 2), (0, 1)], [0]), ([(0, 1), (2, 2)], [1])]])
    assert [forward.find(one, semantics="paper").measure for one in (coarse, fine)] == [0, 1]
    assert [forward.find(one).measure for one in (coarse, fine)] == [1, 1]


def test_corollary_5_1_is_vacuous_without_newcomers_when_targets_are_real() -> None:
    series = of_partitions([[[0, 1], [2, 3]], [[0, 1, 2, 3]]], "abab").history()
    assert backward.find(series, semantics="paper").measure == 0
    assert backward.find(series).measure is None


def test_section_7_1_is_wrong_that_micro_attacks_on_two_releases_suffice() -> None:
    points = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    hidden = [2, 0, 1]

    def publish(drop: int) -> list[tuple[Box, list[int]]]:
        keys = sorted({tuple(p[q] for q in range(3) if q != drop) for p in points})
        return [
            (
                [(0, 1) if q == drop else (key[q - (q > drop)],) * 2 for q in range(3)],
                [n for n, p in enumerate(points) if tuple(p[q] for q in range(3) if q != drop) == key],
            )
            for key in keys
        ]

    def views(world: list[list[int]]) -> list[list[tuple[int, ...]]]:
        return [sorted(tuple(p[q] for q in range(3) if q != drop) for p in world) for drop in hidden]

    corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    worlds = [list(w) for w in combinations_with_replacement(corners, 4) if views(list(w)) == views(points)]
    assert max(world.count([0, 0, 0]) for world in worlds) == 1
    series = history(points, "aaaa", [publish(drop) for drop in hidden], k=ALL)
    assert {finding.observed for finding in forward.find(series).findings if 0 in finding.people} == {2}


def test_section_7_1_the_two_printed_compositions_are_not_all() -> None:
    series = history(
        [[1], [1], [2]], "aaa", [[([(1, 1)], [0])], [([(0, 2)], [0, 1, 2])], [([(1, 1)], [0, 1]), ([(2, 2)], [2])]]
    )  # fmt: skip
    first, third, second = (
        next(c for c in compare(series) if (c.first, c.second) == p) for p in ((0, 1), (0, 2), (1, 2))
    )
    assert first.unforced.tolist() == [[2]]
    assert between(second, 0, 0)[0] == 2
    assert dict(zip(third.joined.tolist(), third.unforced.tolist(), strict=True))[0] == [1]
    assert backward.find(series).measure == 1


def test_section_7_1_a_backward_attack_followed_by_a_forward_attack_leaves_fewer_rows_than_each() -> None:
    """The only a of the second release was there before; one of its two b is too far from the target in the third."""
    series = history(
        [[0], [0], [1], [0]],
        "abba",
        [[([(0, 0)], [0])], [([(0, 1)], [0, 1, 2])], [([(0, 0)], [0, 1, 3]), ([(1, 1)], [2])]],
    )
    for attack in (forward, cross):
        found = [finding for finding in attack.find(series).findings if 1 in finding.people]
        assert [(finding.releases, finding.observed) for finding in found] == [((1, 2, 3), 1)]
        assert found[0].witness == {"rows": {"a": [1, 2], "b": [2, 1]}, "remaining": {"a": 0, "b": 1}}
        assert found[0].classes == ((2, 1), (3, 1))
    compared = {(comparison.first, comparison.second): comparison for comparison in compare(series)}
    assert compared[0, 1].unforced.tolist() == [[0, 2]]
    assert compared[1, 2].remaining[0].tolist() == [1, 1]
