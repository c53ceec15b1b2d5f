"""Who can be hidden together, against trying every subset."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sequester.domain.build import from_values
from sequester.guarantees.requirement import Requirement
from sequester.policy import Policy
from sequester.publish.feasible import hidden_together

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


def fits(values: tuple[int, ...], k: int, bounds: list[Fraction]) -> bool:
    return len(values) >= k and all(values.count(v) <= bound * len(values) for v, bound in enumerate(bounds))


@given(st.lists(st.integers(0, 2), max_size=9), st.integers(1, 4), st.sampled_from([0.4, 0.5, 0.7]))
def test_as_many_as_possible_are_published_and_they_can_be_hidden(values: list[int], k: int, c: float) -> None:
    bounds = [Fraction(c).limit_denominator(10)] * 3
    codes = np.array([values], np.int32)
    chosen = hidden_together(requirement(k, c), codes, np.zeros(len(values), np.int64), seed=[1])
    kept = tuple(v for v, one in zip(values, chosen, strict=True) if one)
    sizes = [n for n in range(len(values) + 1) for some in combinations(values, n) if fits(some, k, bounds)]
    assert not kept or fits(kept, k, bounds)
    assert len(kept) == max(sizes, default=0)


def test_those_who_wait_longest_are_published_first() -> None:
    codes = np.array([[0, 0, 0, 1, 1]], np.int32)
    patience = np.array([0, 2, 1, 0, 0])
    for seed in range(10):
        chosen = hidden_together(requirement(2, 0.5), codes, patience, seed=[seed])
        assert chosen.tolist() == [False, True, True, True, True]


def test_lots_decide_between_people_who_wait_equally_long() -> None:
    codes = np.array([[0, 0, 0, 1, 1]], np.int32)
    found = {hidden_together(requirement(2, 0.5), codes, np.zeros(5, np.int64), seed=[s]).tobytes() for s in range(20)}
    assert len(found) == 3


def test_ordinary_values_hold_nobody_back() -> None:
    codes = np.array([[0] * 6], np.int32)
    chosen = hidden_together(requirement(5, {"b": 0.5}), codes, np.zeros(6, np.int64), seed=[0])
    assert chosen.all()
