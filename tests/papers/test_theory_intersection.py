"""Claims of Byun et al. about the intersection attack, each with the smallest series that decides it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from sequester.attacks import intersection
from sequester.attacks.intersection import posterior
from series import of_partitions


def largest_posterior(releases: list[list[list[int]]], values: str) -> Fraction:
    """The largest chance of one person for one value when all worlds are equally likely, by listing the worlds."""
    worlds = [
        world
        for world in product(sorted(set(values)), repeat=len(values))
        if all(
            Counter(world[person] for person in people) == Counter(values[person] for person in people)
            for classes in releases
            for people in classes
        )
    ]
    return max(
        Fraction(sum(world[person] == value for world in worlds), len(worlds))
        for person in range(len(values))
        for value in set(values)
    )


def test_observation_4_fails_for_the_multiset_reading_a_coarser_release_can_expose_more() -> None:
    old = [[0, 1, 2, 3]]
    fine = of_partitions([old, [[0, 2], [1, 4], [3, 5]]], "ccabac").history()
    coarse = of_partitions([old, [[0, 1, 2, 4], [3, 5]]], "ccabac").history()
    assert intersection.find(fine).findings == []
    (finding,) = intersection.find(coarse).findings
    assert finding.value == "c"
    assert finding.people == (0, 1, 2)
    assert finding.witness["meet"] == {"a": 1, "c": 2}
    assert finding.observed == pytest.approx(2 / 3)


def test_observation_4_holds_for_the_set_reading_of_the_same_series() -> None:
    old = [[0, 1, 2, 3]]
    coarse = of_partitions([old, [[0, 1, 2, 4], [3, 5]]], "ccabac").history()
    assert intersection.find(coarse, reading="set").findings == []


def test_a_more_vague_release_can_allow_more_inference_even_for_the_exact_uniform_posterior() -> None:
    """Byun et al.'s ground for Observation 4, that a more vague table tells no more, is false in general."""
    old = [[0, 1, 2, 3]]
    fine, coarse = [[0, 4], [3, 5], [1, 2]], [[0, 4], [1, 2, 3, 5]]
    assert largest_posterior([old, fine], "cbaaac") == Fraction(1, 2)
    assert largest_posterior([old, coarse], "cbaaac") == Fraction(2, 3)


def test_the_history_field_of_section_5_misses_subsets_that_are_no_prefix() -> None:
    # Person 0 is in classes with values ab, bbca and bbaa.
    history = of_partitions([[[0, 1]], [[0, 2, 3, 4]], [[0, 5, 6, 7]]], "babcabaa").history()
    assert intersection.find(history, semantics="paper").findings == []
    (finding,) = intersection.find(history).findings
    assert finding.releases == (2, 3)
    assert finding.value == "b"
    assert finding.people == (0,)
    assert finding.witness["meet"] == {"a": 1, "b": 2}


def test_pairs_of_releases_are_not_enough() -> None:
    # Person 0 is in classes with values abc, abd and acd: any two leave two values, all three leave one.
    history = of_partitions([[[0, 1, 2]], [[0, 3, 4]], [[0, 5, 6]]], "abcbdcd").history()
    (finding,) = intersection.find(history).findings
    assert finding.releases == (1, 2, 3)
    assert finding.people == (0,)
    assert finding.observed == 1
    for pair in ([[[0, 1, 2]], [[0, 3, 4]]], [[[0, 1, 2]], [[0, 5, 6]]], [[[0, 3, 4]], [[0, 5, 6]]]):
        assert intersection.find(of_partitions(pair, "abcbdcd").history()).findings == []


def test_the_multiset_reading_is_not_complete_for_the_posterior() -> None:
    # {a,c} and {a,b,c,c} share person 0.
    history = of_partitions([[[0, 1]], [[0, 2, 3, 4]]], "cabac").history()
    assert intersection.find(history).measure == 0.5
    (finding,) = intersection.find(history, reading="posterior").findings
    assert finding.value == "c"
    assert finding.witness["chance"] == "2/3"


def test_the_multiset_reading_is_not_sound_for_the_posterior() -> None:
    # {a,a,b,x} and {a,a,b,b,b,b,y,y} share person 0; the letters d and e stand for x and y.
    history = of_partitions([[[0, 1, 2, 3]], [[0, 4, 5, 6, 7, 8, 9, 10]]], "aabdabbbbee").history()
    (finding,) = intersection.find(history).findings
    assert finding.value == "a"
    assert finding.observed == pytest.approx(2 / 3)
    chances = intersection.find(history, reading="posterior")
    assert chances.findings == []
    assert chances.measure == 0.5


def test_one_shared_person_is_the_product_rule() -> None:
    assert posterior([1, 0, 1], [1, 1, 2], shared=1) == (Fraction(1, 3), Fraction(0), Fraction(2, 3))


def test_permanent_and_changing_values_are_not_comparable() -> None:
    # {s,a} and {s,b}: permanence leaves only s.
    history = of_partitions([[[0, 1]], [[0, 2]]], "cab").history()
    (finding,) = intersection.find(history).findings
    assert finding.observed == 1
