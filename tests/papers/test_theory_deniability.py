"""What pairs of releases and Byun's three attacks miss, and the deniability program finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np

from sequester.attacks import deniability
from sequester.attacks.finding import Finding
from series import Series, of_partitions


def exposed(one: Series) -> dict[tuple[int, ...], Finding]:
    return {finding.people: finding for finding in deniability.find(one.history()).findings}


def subsets(items: list[int]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(items, size) for size in range(len(items) + 1)))


def differences(one: Series) -> list[set[int]]:
    """Every set of people that nested sets of classes of two releases leave, in both directions."""
    found = []
    for i, j in combinations(range(len(one.member)), 2):
        for a, b in ((i, j), (j, i)):
            for inner in subsets(sorted(set(one.member[a].tolist()) - {-1})):
                for outer in subsets(sorted(set(one.member[b].tolist()) - {-1})):
                    small = set(np.flatnonzero(np.isin(one.member[a], inner)).tolist())
                    large = set(np.flatnonzero(np.isin(one.member[b], outer)).tolist())
                    if small < large:
                        found.append(large - small)
    return found


def keeps_half(one: Series, people: set[int]) -> bool:
    return max(Counter(one.value[sorted(people)].tolist()).values()) * 2 <= len(people)


def some_releases(one: Series, releases: tuple[int, ...]) -> Series:
    return replace(one, member=one.member[list(releases)], boxes=tuple(one.boxes[number] for number in releases))


def test_three_attacks_do_not_cover_a_novel_value():
    one = of_partitions([[[0, 1, 2]], [[0, 1, 4], [2, 3]]], "cdbda")
    assert not [people for people in differences(one) if len(people) < 2 or not keeps_half(one, people)]
    finding = exposed(one)[(4,)]
    assert (finding.value, finding.observed, finding.releases) == ("a", 1.0, (1, 2))
    assert finding.witness["added"] == [{"release": 2, "class": 1, "value": "a", "count": 1, "times": 1}]
    assert finding.witness["absent"] == [{"release": 1, "class": 1, "value": "a"}]


def test_pairwise_differences_do_not_suffice_for_three_releases():
    one = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]], "abcd")
    assert not [people for people in differences(one) if len(people) < 2 or not keeps_half(one, people)]
    assert set(exposed(one)) == {(0,), (1,), (2,), (3,)}


def test_pairs_of_releases_can_all_be_deniable_while_three_together_are_not():
    # Four groups of four people, paired in all three ways: their counts follow from all three releases only.
    groups = [list(range(start, start + 4)) for start in (0, 4, 8, 12)]
    pairings = [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)]]
    releases = [[groups[a] + groups[b] for a, b in pairing] for pairing in pairings]
    one = of_partitions(releases, "aaab" + "abcd" * 3)
    for pair in combinations(range(3), 2):
        found = deniability.find(some_releases(one, pair).history())
        assert found.findings == []
        assert found.measure <= 0.5
    found = deniability.find(one.history())
    assert found.measure == 0.75
    (finding,) = found.findings
    assert (finding.value, finding.people, finding.observed) == ("a", (0, 1, 2, 3), 0.75)
    assert finding.releases == (1, 2, 3)
    assert (finding.witness["at_least"], finding.witness["allowed"]) == (6, 4.0)


def test_every_value_alone_can_be_deniable_while_all_values_together_are_not():
    one = of_partitions([[[0, 1, 3, 4, 7], [2, 5, 6]], [[1, 2, 4, 5, 7], [0, 3, 6]]], "aabbcacb")
    limit = Fraction(2, 5)
    for value, (i, j) in product(range(3), [(0, 1), (1, 0)]):
        for added, subtracted in product(subsets([0, 1]), subsets([0, 1])):
            more, less = np.isin(one.member[j], added), np.isin(one.member[i], subtracted)
            surely = int((one.value[more] == value).sum() - (one.value[less] == value).sum())
            assert surely <= limit * int((more & ~less).sum())
    found = deniability.find(one.history(c=limit))
    assert found.measure == round(3 / 7, 9)
    (finding,) = found.findings
    assert finding.witness["sizes"]
    assert len({row["value"] for row in finding.witness["remaining"]}) > 1


def test_earlier_minus_later_exposes_someone_who_left_refuting_one_direction():
    one = of_partitions([[[0, 1, 2, 3]], [[0, 1, 2], [4, 5]]], "abcdab")
    finding = exposed(one)[(3,)]
    assert (finding.value, finding.observed) == ("d", 1.0)


def test_a_whole_cover_can_leave_a_homogeneous_rest_refuting_Byun_observation_1():
    one = of_partitions([[[0, 1], [2, 3], [4, 5]], [[0, 1, 4, 6], [2, 3, 5, 7]]], "abababcc")
    exposing = [people for people in exposed(one) if set(people) <= {6, 7}]
    assert set(chain.from_iterable(exposing)) == {6, 7}


def test_a_safe_series_measures_no_more_than_the_bound():
    one = of_partitions([[[0, 1, 2, 3]], [[0, 1, 2, 3], [4, 5, 6, 7]]], "abcdabcd")
    found = deniability.find(one.history())
    assert found.findings == []
    assert found.measure == 0.25
