"""What somebody who knows the method learns beyond what is published: a stated limit, measured in small tables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from experiments.minimality import METHODS, SERIES, Known, assignments, known, once, rates, twice

from sequester.methods.mondrian.cut import mondrian

Q, VALUES = [0, 0, 8, 8, 8, 8], tuple("HHbcde")


def test_every_order_of_the_values_is_an_assignment_once() -> None:
    found = list(assignments("HHbcde"))
    assert len(found) == len(set(found)) == 360
    assert {tuple(sorted(one)) for one in found} == {tuple("HHbcde")}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_of_360_assignments_only_24_lead_to_one_class(method: Callable[..., Any]) -> None:
    """Two H at q = 0 cannot be cut off, and nothing else forbids the cut: whoever knows that knows both."""
    publish = once(method, Q)
    after = known(publish, VALUES)
    assert sum(one.assignments for one in after.values()) == 360
    tells = after[publish(VALUES)]
    assert tells.assignments == 24
    assert [chance["H"] for chance in tells.chances] == [24, 24, 0, 0, 0, 0]
    assert tells.most == 1


def test_the_rate_of_the_example_is_one_in_fifteen() -> None:
    assert rates(known(once(mondrian, Q), VALUES).values())[:2] == [360, "6.7%"]


@pytest.mark.parametrize("methods", SERIES.values(), ids=SERIES)
def test_in_two_releases_too_everything_published_is_among_what_is_possible(methods: Any) -> None:
    first, following = methods
    publish = twice(first, following, [0, 8, 1, 9], 2)
    values = tuple("Hbbc")
    after = known(publish, values)
    assert isinstance(after[publish(values)], Known)
    assert all(Fraction(1, 2) <= one.most <= 1 for one in after.values())
