"""Whether people may be hidden together, against the definition; it never chooses among them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.policy import Policy
from sequester.publish.roster import may_be_hidden

LETTERS = "abc"


def requirement(k: int, c: float | dict[str, float]) -> Requirement:
    policy = Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "attributes": {"q": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "protect": {"k": k, "confidence": c},
        }
    )
    return Requirement.from_policy(policy, [from_values(LETTERS)])


@given(st.lists(st.integers(0, 2), max_size=9), st.integers(1, 4), st.sampled_from([0.4, 0.5, 0.7]))
def test_people_may_be_hidden_when_enough_and_no_value_is_too_frequent(values: list[int], k: int, c: float) -> None:
    bound = Fraction(c).limit_denominator(10)
    fits = len(values) >= k and all(values.count(value) <= bound * len(values) for value in range(3))
    found = may_be_hidden(requirement(k + 1, c), np.array([values], np.int32), guarded=True, fewest=k)
    assert found == (fits or not values)


def test_ordinary_values_hold_nobody_back() -> None:
    assert may_be_hidden(requirement(5, {"b": 0.5}), np.array([[0] * 6], np.int32), guarded=True, fewest=5)


def test_fewer_than_k_may_be_seen_where_nobody_of_them_has_a_bounded_value() -> None:
    bounded = requirement(5, {"b": 0.5})
    assert may_be_hidden(bounded, np.array([[0, 2]], np.int32), guarded=True, fewest=5)
    assert not may_be_hidden(bounded, np.array([[0, 1]], np.int32), guarded=True, fewest=5)
    assert not may_be_hidden(bounded, np.array([[0, 2]], np.int32), guarded=False, fewest=5)
