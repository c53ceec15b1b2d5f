"""Belief without prejudice against a convex program solved directly, and against enumerated worlds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from entropy import direct
from sequester.attacks.solvers.belief import Belief, believe
from sequester.history import History
from series import Series, of_partitions, series

often = settings(max_examples=150, deadline=None)
ONE, OTHER = [[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 0]]


def value_of(found: Belief, person: int) -> int:
    """The value that she is most believed to have."""
    return int(found.questions[found.question[person]].labels[0])


@often
@given(series(), st.data())
@example(of_partitions([[[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 2, 4, 5]]], "abcabc"), None)
# Everybody must have one value in all: without that, classes alone leave person 0 a quarter of one here.
@example(of_partitions([[[0, 6, 3, 5, 1]], [[6, 2, 0], [4, 3, 1]], [[5, 3], [1, 0, 2]]], "abccabb"), None)
def test_the_belief_is_that_of_largest_entropy(one: Series, data: st.DataObject | None) -> None:
    known = [False] * len(one.value) if data is None else [data.draw(st.booleans()) for _ in one.value]
    told = (one.member >= 0).any(axis=0) & ~np.array(known)
    found = believe(one.history(), known=np.array(known), rounds=100_000, tolerance=1e-10)
    exact = direct(one, known)
    assert (found.told == told).all()
    assert found.truth is not None
    for person in np.flatnonzero(told).tolist():
        assert abs(found.largest[person] - exact[person].max()) < 2e-3
        assert abs(exact[person, value_of(found, person)] - exact[person].max()) < 4e-3
        assert abs(found.truth[person] - exact[person, one.value[person]]) < 2e-3
    assert (found.largest[~told] == 0).all()


@often
@given(series(releases=(1, 1)))
def test_with_one_release_it_is_the_share_of_the_class(one: Series) -> None:
    found = believe(one.history())
    for person, place in enumerate(one.member[0].tolist()):
        if place >= 0:
            own = np.bincount(one.value[one.member[0] == place], minlength=one.values)
            assert found.largest[person] == pytest.approx(own.max() / own.sum())
            assert found.truth is not None
            assert found.truth[person] == pytest.approx(own[one.value[person]] / own.sum())


def worlds(one: Series) -> list[tuple[int, ...]]:
    """All values that everybody could have, given what every class shows."""
    found = []
    for values in product(range(one.values), repeat=len(one.value)):
        given = np.array(values)
        if all(
            np.array_equal(np.sort(given[member == number]), np.sort(one.value[member == number]))
            for member in one.member
            for number in range(int(member.max()) + 1)
        ):
            found.append(values)
    return found


@often
@given(series(people=(2, 6)))
def test_nothing_that_can_be_is_ruled_out_and_what_is_certain_is_believed(one: Series) -> None:
    # Counting closes cells exactly; scaling must never bring what some world has to nothing.
    found = believe(one.history(), rounds=20_000, tolerance=1e-9)
    assert found.truth is not None
    told = found.told
    assert (found.truth[told] > 0).all()
    possible = worlds(one)
    for person in np.flatnonzero(told).tolist():
        values = {world[person] for world in possible}
        assert value_of(found, person) in values or found.largest[person] < 1
        if found.largest[person] > 1 - 1e-6:
            assert values == {value_of(found, person)}


@often
@given(series(), st.sampled_from([Fraction(1, 2), Fraction(2, 3)]))
def test_values_without_a_bound_are_not_counted(one: Series, bound: Fraction) -> None:
    history = one.history()
    free = replace(history, bounds=(Fraction(1), *[bound] * (one.values - 1)))
    whole, part = believe(history), believe(free)
    assert "a" not in {question.value for question in part.questions}
    assert (part.largest <= whole.largest).all()
    assert whole.truth is not None
    assert part.truth is not None
    assert np.array_equal(np.where(one.value == 0, 0, whole.truth), part.truth)


@often
@given(series())
def test_people_who_are_alike_are_believed_alike_and_order_does_not_matter(one: Series) -> None:
    found = believe(one.history(), rounds=20_000, tolerance=1e-9)
    turned = replace(one, member=one.member[::-1].copy(), boxes=one.boxes[::-1])
    again = believe(turned.history(), rounds=20_000, tolerance=1e-9)
    assert np.allclose(found.largest, again.largest, atol=2e-3)
    for path in {tuple(column) for column in one.member.T.tolist()}:
        alike = (one.member == np.array(path)[:, None]).all(axis=0)
        assert len(set(found.largest[alike].tolist())) == 1


@often
@given(series(releases=(1, 3)), st.integers(1, 3))
def test_the_past_is_what_was_believed_then(one: Series, number: int) -> None:
    then = replace(one, member=one.member[:number], boxes=one.boxes[:number]).history()
    past = one.history().until(number)
    assert len(past) == len(then)
    assert np.array_equal(believe(past).largest, believe(then).largest)


def test_a_ring_of_couples_leaves_one_half() -> None:
    found = believe(of_partitions([ONE, OTHER], "ababab").history())
    assert found.largest == pytest.approx([0.5] * 6)
    assert found.spread().above == (0.0, 0.0, 0.0)


def test_one_known_value_opens_the_whole_ring() -> None:
    history = of_partitions([ONE, OTHER], "ababab").history()
    found = believe(history, known=np.arange(6) == 3)
    assert found.told.tolist() == [True, True, True, False, True, True]
    assert found.largest[found.told] == pytest.approx([1.0] * 5)
    spread = found.spread()
    assert (spread.people, spread.above, spread.right) == (5, (1.0, 1.0, 1.0), 1.0)


def test_a_class_that_contradicts_its_members_says_nothing() -> None:
    one = of_partitions([[[0, 1], [2, 3]], [[0, 1, 2, 3]]], "abab")
    history = one.history()
    wrong = replace(history.releases[1], counts=np.array([[3, 1]]))
    broken = replace(history, releases=(history.releases[0], wrong))
    assert believe(broken).largest == pytest.approx([0.5] * 4)
    alone = replace(history, releases=())
    nobody: History = replace(alone, trajectories=None, value=None).extend(wrong)
    found = believe(nobody)
    assert not found.told.any()
    assert found.spread().people == 0


def test_nobody_is_believed_anything_before_the_first_release() -> None:
    assert_none = pytest.raises(ValueError, match="who is in which class")
    empty = replace(of_partitions([[[0, 1]]], "ab").history(), releases=(), trajectories=None, value=None)
    with assert_none:
        believe(empty)
    with assert_none:
        believe(of_partitions([[[0, 1]]], "ab").history(known=False))


@settings(max_examples=40, deadline=None)
@given(series(people=(4, 7), deletions=False))
def test_more_releases_never_end_without_an_answer(one: Series) -> None:
    assume(len(one.member) > 1)
    found = believe(one.history(), rounds=3)
    assert found.rounds <= 3
    assert np.isfinite(found.largest).all()
    assert (found.largest <= 1 + 1e-9).all()
