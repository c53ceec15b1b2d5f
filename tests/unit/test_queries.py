"""Random range-count queries and how a release answers them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sequester.metrics.queries import Range, count, estimate, query_error, random_queries

RNG = np.random.default_rng(3)
SIZES = (10, 6, 4)
QUASI = np.array([RNG.integers(0, size, 400) for size in SIZES], np.int32)
SENSITIVE = RNG.integers(0, 5, 400)


def one_record_each() -> SimpleNamespace:
    return SimpleNamespace(lo=QUASI, hi=QUASI, size=np.ones(400, np.int64))


def everything() -> SimpleNamespace:
    lo = np.zeros((3, 1), np.int32)
    return SimpleNamespace(lo=lo, hi=lo + np.array(SIZES, np.int32)[:, None] - 1, size=np.array([400]))


def queries(number: int = 50, *, seed: int = 1, **options) -> list:
    return random_queries(SIZES, queries=number, rng=np.random.default_rng(seed), **options)


def test_a_query_counts_the_records_in_all_its_ranges():
    query = (Range(0, 2, 5), Range(2, 1, 1), Range(None, 0, 2))
    expected = sum(2 <= a <= 5 and b == 1 and s <= 2 for a, b, s in zip(QUASI[0], QUASI[2], SENSITIVE, strict=True))
    assert count(query, QUASI, sensitive=SENSITIVE) == expected


def test_an_exact_release_answers_exactly():
    for query in queries(sensitive=5):
        answer = estimate(query, one_record_each(), member=np.arange(400), sensitive=SENSITIVE)
        assert answer == count(query, QUASI, sensitive=SENSITIVE)
    assert query_error(one_record_each(), queries(), original=QUASI) == 0


def test_a_box_answers_in_proportion_to_the_leaves_that_overlap():
    classes = SimpleNamespace(
        lo=np.array([[2, 0]], np.int32), hi=np.array([[5, 0]], np.int32), size=np.array([8, 3], np.int64)
    )
    assert estimate((Range(0, 4, 9),), classes) == 8 * 2 / 4
    assert estimate((Range(0, 0, 2),), classes) == 8 * 1 / 4 + 3


def test_a_sensitive_range_uses_the_values_of_the_class():
    classes = SimpleNamespace(lo=np.array([[0]], np.int32), hi=np.array([[3]], np.int32), size=np.array([4]))
    values = np.array([0, 0, 1, 2])
    answer = estimate((Range(0, 0, 1), Range(None, 0, 0)), classes, member=np.zeros(4, int), sensitive=values)
    assert answer == 2 * 2 / 4


def test_ranges_have_the_length_that_gives_the_expected_selectivity():
    for query in queries(attributes=2, selectivity=0.25, sensitive=8):
        assert len(query) == 3
        lengths = {part.attribute: part.hi - part.lo + 1 for part in query}
        for attribute, length in lengths.items():
            size = 8 if attribute is None else SIZES[attribute]
            assert length == min(size, int(np.ceil(size * 0.25 ** (1 / 3))))
            assert all(0 <= part.lo <= part.hi < size for part in query if part.attribute == attribute)


def test_the_same_seed_asks_the_same_queries_and_another_seed_others():
    answers = [query_error(everything(), queries(30, seed=seed), original=QUASI) for seed in (5, 5, 6)]
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


def test_the_error_is_the_average_of_the_relative_errors():
    asked = queries(40, seed=9)
    expected = [
        abs(estimate(query, everything()) - count(query, QUASI)) / max(count(query, QUASI), 0.001 * 400)
        for query in asked
    ]
    assert np.isclose(query_error(everything(), asked, original=QUASI), np.mean(expected))


def test_an_answer_of_zero_is_measured_against_a_thousandth_of_the_table():
    quasi = np.zeros((1, 10), np.int32)
    classes = SimpleNamespace(lo=np.array([[0]], np.int32), hi=np.array([[1]], np.int32), size=np.array([10]))
    asked = random_queries([2], queries=200, rng=np.random.default_rng(0), attributes=1)
    zero, ten = 5 / (0.001 * 10), abs(5 - 10) / 10
    expected = np.mean([zero if query[0].lo == 1 else ten for query in asked])
    assert np.isclose(query_error(classes, asked, original=quasi), expected)


def test_records_left_out_of_the_release_count_in_the_truth():
    half = SimpleNamespace(lo=QUASI[:, :200], hi=QUASI[:, :200], size=np.ones(200, np.int64))
    assert query_error(half, queries(), original=QUASI) > 0


def test_a_sensitive_query_without_the_values_is_refused():
    with pytest.raises(ValueError, match="needs its values"):
        estimate((Range(None, 0, 0),), everything())
