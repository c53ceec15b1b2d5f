"""Wong et al., sections 5 and 6: Table 1 (corrected), Figure 5, and what the strategies of section 6 guarantee."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from churn import begin, chances, next_release
from sequester.errors import GuaranteeError
from sequester.guarantees.lifetime import (
    Strategy,
    best_alpha,
    geometric_ratio,
    survival,
)
from sequester.methods.lifetime.promise import broken
from sequester.methods.lifetime.survivals import Survivals
from sequester.policy.protect import Lifetime
from sequester.rational import exact

# l, k', the ratio as printed, and as it is.
TABLE_1 = [
    (2, 2, 3.44, 3.41),
    (2, 5, 7.75, 7.73),
    (2, 20, 29.41, 29.36),
    (5, 20, 90.13, 90.13),
    (10, 20, 190.33, 190.32),
    (2, 10, 15.10, 14.93),
    (5, 10, 45.35, 45.32),
    (10, 10, 95.42, 95.41),
]


def least_ratio(left: Fraction, l: float) -> Fraction | None:  # noqa: E741
    """The smallest n/n_s that is allowed after this survival (Theorem 1); None when no class with the value is."""
    rest = left - (1 - 1 / exact(l))
    return left / rest if rest > 0 else None


def constant_ratio(l: float, releases: int) -> float:  # noqa: E741
    """The smallest ratio n/n_s that can be kept for so many releases (Table 1 of the paper, corrected)."""
    return -1 / math.expm1(math.log1p(-1 / l) / releases)


def geometric_risk(l: float, alpha: float, release: int) -> float:  # noqa: E741
    """The probability of a link after so many such releases: below 1/l for ever."""
    return (1 - (1 - 1 / alpha) ** release) / l


@pytest.mark.parametrize(("l", "releases", "printed", "right"), TABLE_1)
def test_table_1_corrected(l: int, releases: int, printed: float, right: float) -> None:  # noqa: E741
    assert round(constant_ratio(l, releases), 2) == right
    assert abs(constant_ratio(l, releases) - printed) < 0.18
    # The ratio spends exactly what there is, and a hundredth less spends too much.
    assert math.isclose((1 - 1 / constant_ratio(l, releases)) ** releases, 1 - 1 / l)
    assert (1 - 1 / (right - 0.01)) ** releases < 1 - 1 / l


def test_example_3_needs_a_ratio_of_nine() -> None:
    left = survival([1, 1], [4, 4])
    assert left == Fraction(9, 16)
    assert least_ratio(left, 2) == 9
    assert survival([1, 1, 1], [4, 4, 9]) == Fraction(1, 2)


def test_before_the_first_release_the_ratio_is_l() -> None:
    assert [least_ratio(Fraction(1), l) for l in (2, 3, 1.5)] == [2, 3, Fraction(3, 2)]  # noqa: E741


def test_theorem_1_where_the_past_broke_the_limit_no_ratio_is_allowed() -> None:
    assert least_ratio(survival([2], [3]), 2) is None


@pytest.mark.parametrize("l", [2, 3, 5])
def test_theorem_2_the_smallest_ratio_blocks_the_future(l: int) -> None:  # noqa: E741
    left = survival([1], [3 * l])
    ratio = least_ratio(left, l)
    assert ratio is not None
    spent = left * (1 - 1 / ratio)
    assert spent == 1 - Fraction(1, l)
    assert least_ratio(spent, l) is None


def test_figure_5a_ratios_for_l_2() -> None:
    # Larger alpha begin higher and grow more slowly; alpha 2 doubles what is above alpha.
    assert [geometric_ratio(2, 2, release) for release in range(1, 5)] == [4, 6, 10, 18]
    for release in range(1, 11):
        assert math.isclose(geometric_ratio(2, 3, release), 3 * (1 + 1.5 ** (release - 1)))
        assert math.isclose(geometric_ratio(2, 5, release), 5 * (1 + 1.25 ** (release - 1)))
        assert math.isclose(geometric_ratio(2, 10, release), 10 * (1 + (10 / 9) ** (release - 1)))
    last = [geometric_ratio(2, alpha, 10) for alpha in (3, 5, 10)]
    assert last == sorted(last, reverse=True)
    assert [round(ratio, 1) for ratio in last] == [118.3, 42.3, 35.8]


def test_figure_5b_ratios_for_alpha_5_grow_with_l() -> None:
    for release in range(1, 11):
        ratios = [geometric_ratio(l, 5, release) for l in (2, 3, 5, 10)]  # noqa: E741
        assert ratios == sorted(ratios)
        steps = np.diff(ratios) / np.diff([2, 3, 5, 10])
        assert np.allclose(steps, 5 * 1.25 ** (release - 1))


@pytest.mark.parametrize("l", [2, 3, 5])
@pytest.mark.parametrize("alpha", [Fraction(3, 2), Fraction(2), Fraction(5)])
def test_closed_forms_of_the_geometric_strategy(l: int, alpha: Fraction) -> None:  # noqa: E741
    left = Fraction(1)
    for release in range(1, 12):
        smallest = least_ratio(left, l)
        assert smallest is not None
        ratio = alpha * smallest
        assert math.isclose(float(ratio), geometric_ratio(l, float(alpha), release))
        left *= 1 - 1 / ratio
        assert math.isclose(float(1 - left), geometric_risk(l, float(alpha), release))
        assert 1 - left < Fraction(1, l)


@pytest.mark.parametrize("releases", [2, 5, 10, 20])
def test_the_best_alpha_for_a_horizon_is_about_four_fifths_of_it(releases: int) -> None:
    alpha = best_alpha(2, releases)
    assert 0.78 * releases <= alpha <= 0.86 * releases
    last = geometric_ratio(2, alpha, releases)
    assert all(last <= geometric_ratio(2, other, releases) for other in np.linspace(1.01, 3 * releases, 500))
    assert 1.7 <= last / constant_ratio(2, releases) <= 2.41


def test_theorem_4_no_sequence_of_ratios_has_a_smaller_largest_one_than_the_constant() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        releases, l = int(random.integers(1, 8)), float(random.choice([1.5, 2, 5]))  # noqa: E741
        ratios = constant_ratio(l, releases) * (1 - 0.2 * random.random(releases))
        ratios[random.integers(releases)] *= 0.999
        assert np.prod(1 - 1 / ratios) < 1 - 1 / l


def shares_of(strategy: Strategy, groups: list[tuple[int, int]]) -> list[float]:
    """The share allowed before each of these (n, n_s), every one of which must be within it."""
    found, left, linked = [], 1.0, 0
    for size, with_value in groups:
        (share,) = strategy.shares(np.array([left]), np.array([linked]))
        assert with_value / size <= share + 1e-12
        found.append(float(share))
        left *= 1 - with_value / size
        linked += with_value > 0
    return found


def test_constant_ratio_never_allows_less_than_the_constant_as_long_as_it_was_kept() -> None:
    strategy = Strategy(Fraction(2), releases=4)
    constant = 1 / constant_ratio(2, 4)
    # A share of one in seven is a little less than the constant: what is saved is there for the others.
    shares = shares_of(strategy, [(7, 1), (7, 0), (7, 1), (6, 1)])
    assert math.isclose(shares[0], constant)
    assert shares == sorted(shares)
    # A group without the value costs nothing and counts for nothing (Lemma 5).
    assert shares[1] == shares[2]


def test_after_the_planned_releases_only_what_is_left_may_be_spent() -> None:
    strategy = Strategy(Fraction(2), releases=1)
    (nothing,) = strategy.shares(np.array([0.5]), np.array([1]))
    (rest,) = strategy.shares(np.array([0.75]), np.array([1]))
    assert nothing == 0
    assert math.isclose(rest, 1 / 3)


def test_geometric_shares_are_one_alphath_of_the_smallest_ratios() -> None:
    strategy = Strategy(Fraction(2), alpha=2.0)
    shares = shares_of(strategy, [(4, 1), (6, 1), (10, 1), (18, 1)])
    assert np.allclose([1 / share for share in shares], [4, 6, 10, 18])


def test_corollary_3_a_class_that_breaks_the_promise_is_split_into_two_that_keep_it() -> None:
    # First o1 and o2 share s and b; then of four people one has s, and o1 has nothing left for it.
    lifetime = Lifetime(l=2.0, releases=1)
    history = begin(4, [Fraction(1)] * 3 + [Fraction(1, 2)], k=2)
    points, value = np.array([[0, 0], [1, 1], [6, 6], [7, 7]]), np.array([3, 0, 2, 0], np.int32)
    _, history = next_release(history, np.array([1, 2]), np.array([3, 1]), points, lifetime)
    assert chances(history)[1, 3] == Fraction(1, 2)
    found = Survivals.of([history], np.arange(4), [value])
    strategy = Strategy.of(lifetime)
    assert len(broken(found, strategy, np.zeros(4, np.int32))[0])
    assert not len(broken(found, strategy, np.array([0, 1, 1, 0], np.int32))[0])
    # It is not published all the same: had o1 the value no classes would do, and to tell these cases apart tells it.
    with pytest.raises(GuaranteeError, match="nobody can be published"):
        next_release(history, np.arange(4), value, points, lifetime)


def test_where_a_value_is_spent_the_whole_neighborhood_of_who_has_it_is_left_out() -> None:
    lifetime = Lifetime(l=2.0, releases=1)
    history = begin(32, [Fraction(1), Fraction(1, 2)], k=2)
    points = np.array([[place // 4, place // 4] for place in range(32)])
    _, history = next_release(history, np.arange(4), np.array([1, 1, 0, 0]), points, lifetime)
    assert {chance for (person, _), chance in chances(history).items() if person < 4} == {Fraction(1, 2)}
    found = []
    for spent in range(5):
        value = np.zeros(32, np.int64)
        value[[spent, 12, 20]] = 1
        classes, after = next_release(history, np.arange(32), value, points, lifetime)
        found.append(np.flatnonzero(classes.member < 0).tolist())
        assert max(chances(after).values()) <= Fraction(1, 2)
    # Whoever of them has the value, and whether she or her neighbor can bear it, the same people are left out.
    assert found == [list(range(16))] * 5


def test_a_strategy_needs_either_releases_or_alpha() -> None:
    for given in ({}, {"releases": 2, "alpha": 2.0}):
        with pytest.raises(ValueError, match="either a number of releases or an alpha"):
            Strategy(Fraction(2), **given)  # type: ignore[arg-type]
