"""The breach probability against every world: all ways to hand the published values to the people of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks import breach
from sequester.attacks.finding import Finding
from sequester.history import History
from series import Series, of_partitions, series

LIMITS = st.sampled_from([1.0, 1.25, 4 / 3, 1.5, 1.6, 2.0, 2.25, 3.0, 4.0])


def changing(data: st.DataObject, truth: Series, *, known: bool = True) -> History:
    """A history in which everybody has another value in every release, some of them ordinary."""
    history = replace(truth.history(known=known), releases=(), trajectories=None, permanent=False)
    for release in range(len(truth.member)):
        value = data.draw(
            st.lists(st.integers(0, truth.values - 1), min_size=len(truth.value), max_size=len(truth.value))
        )
        history = history.extend(replace(truth, value=np.array(value, np.int32)).publication(release, known=known))
    bounds = data.draw(
        st.lists(
            st.sampled_from([Fraction(1, 2), Fraction(1, 2), Fraction(1)]), min_size=truth.values, max_size=truth.values
        )
    )
    return replace(history, bounds=tuple(bounds))


def values_of(history: History, release: int, number: int) -> list[int]:
    counts = history.releases[release].counts[number]
    return [value for value, count in enumerate(counts.tolist()) for _ in range(count)]


def unlinked(worlds: Iterator[dict[int, int]], people: int, values: int) -> dict[tuple[int, int], Fraction]:
    """Share of the worlds (person -> value, of those present) in which each person does not have each value."""
    total, having = 0, Counter[tuple[int, int]]()
    for world in worlds:
        total += 1
        having.update(world.items())
    return {(p, s): 1 - Fraction(having[p, s], total) for p in range(people) for s in range(values)}


def certain_worlds(members: list[int], values: list[int]) -> Iterator[dict[int, int]]:
    for order in permutations(values):
        yield dict(zip(members, order, strict=True))


def guessed_worlds(history: History, release: int, fitting: list[list[int]]) -> Iterator[dict[int, int]]:
    """Every choice, for all classes of a release, of as many fitting people as it has rows, and of their values."""

    def choose(number: int, taken: dict[int, int]) -> Iterator[dict[int, int]]:
        if number == len(fitting):
            yield taken
            return
        rows = values_of(history, release, number)
        free = [person for person in fitting[number] if person not in taken]
        for present in combinations(free, len(rows)):
            for world in certain_worlds(list(present), rows):
                yield from choose(number + 1, taken | world)

    yield from choose(0, {})


def chances(per_release: list[dict[tuple[int, int], Fraction]]) -> dict[tuple[int, int], Fraction]:
    return {key: 1 - prod((release[key] for release in per_release), start=Fraction(1)) for key in per_release[0]}


def check_witness(finding: Finding, history: History) -> None:
    factors = finding.witness["factors"]
    chance = 1 - prod((1 - Fraction(f["with_value"], f["among"]) for f in factors), start=Fraction(1))
    assert Fraction(finding.witness["probability"]) == chance
    assert finding.observed == float(chance)
    assert finding.classes == tuple((f["release"], f["class"]) for f in factors)
    assert finding.releases == tuple(f["release"] for f in factors)
    value = history.values.index(finding.value)
    for factor in factors:
        assert history.releases[factor["release"] - 1].counts[factor["class"] - 1, value] == factor["with_value"] > 0


@settings(max_examples=250, deadline=None)
@given(truth=series(people=(2, 6), values=(1, 3)), data=st.data(), diversity=LIMITS)
def test_probability_is_the_share_of_worlds_that_ever_link_a_person_to_a_value(
    truth: Series,
    data: st.DataObject,
    diversity: float,
) -> None:
    history = changing(data, truth)
    people = len(truth.value)
    per_release = []
    for release, member in enumerate(truth.member):
        share = dict.fromkeys(((p, s) for p in range(people) for s in range(truth.values)), Fraction(1))
        for number in range(len(history.releases[release])):
            inside = np.flatnonzero(member == number).tolist()
            found = unlinked(certain_worlds(inside, values_of(history, release, number)), people, truth.values)
            share |= {key: chance for key, chance in found.items() if key[0] in inside}
        per_release.append(share)
    bounded = {key: p for key, p in chances(per_release).items() if history.bounds[key[1]] < 1}
    limit = 1 / Fraction(diversity).limit_denominator(100)

    result = breach.find(history, l=diversity)
    told = {
        (person, history.values.index(finding.value)): finding.observed
        for finding in result.findings
        for person in finding.people
    }
    assert told == {key: float(p) for key, p in bounded.items() if p > limit}
    assert result.measure == float(max(bounded.values(), default=Fraction(0)))
    assert sum(len(finding.people) for finding in result.findings) == len(told)
    for finding in result.findings:
        check_witness(finding, history)
        assert finding.required == float(limit)
        assert finding.adversary == "lifetime"


def registration(data: st.DataObject, truth: Series) -> np.ndarray:
    """Everybody of the series and a few more."""
    width = truth.points.shape[1]
    more = data.draw(st.lists(st.lists(st.integers(0, 3), min_size=width, max_size=width), max_size=2))
    return np.vstack([truth.points, np.array(more, np.int32).reshape(-1, width)]).T.copy()


def fitting(truth: Series, registered: np.ndarray, release: int) -> list[list[int]]:
    lo, hi = truth.boxes[release]
    return [
        [p for p, point in enumerate(registered.T) if ((lo[:, c] <= point) & (point <= hi[:, c])).all()]
        for c in range(lo.shape[1])
    ]


@settings(max_examples=150, deadline=None)
@given(
    truth=series(people=(2, 5), values=(1, 3), global_recoding=True),
    data=st.data(),
    diversity=LIMITS,
    known=st.booleans(),
)
def test_with_a_registration_list_probability_is_the_share_of_worlds_that_choose_who_is_present(
    truth: Series,
    data: st.DataObject,
    diversity: float,
    known: bool,
) -> None:
    history = changing(data, truth, known=known)
    registered = registration(data, truth)
    people = registered.shape[1]
    per_release = [
        unlinked(guessed_worlds(history, release, fitting(truth, registered, release)), people, truth.values)
        for release in range(len(history))
    ]
    bounded = {key: p for key, p in chances(per_release).items() if history.bounds[key[1]] < 1}
    limit = 1 / Fraction(diversity).limit_denominator(100)

    result = breach.find(history, l=diversity, registered=registered)
    expected: Counter[tuple[str, float]] = Counter()
    for (_, value), p in bounded.items():
        if p > limit:
            expected[history.values[value], float(p)] += 1
    found: Counter[tuple[str, float]] = Counter()
    for finding in result.findings:
        check_witness(finding, history)
        found[finding.value, finding.observed] += finding.witness["people"]
        assert finding.people == ()
    assert found == expected
    assert result.measure == float(max(bounded.values(), default=Fraction(0)))


@settings(max_examples=100, deadline=None)
@given(truth=series(people=(2, 5), values=(1, 3), global_recoding=False), data=st.data())
def test_with_boxes_that_overlap_the_probability_is_never_understated(truth: Series, data: st.DataObject) -> None:
    history = changing(data, truth, known=False)
    registered = registration(data, truth)
    people = registered.shape[1]
    per_release = [
        unlinked(guessed_worlds(history, release, fitting(truth, registered, release)), people, truth.values)
        for release in range(len(history))
    ]
    exact = chances(per_release)
    result = breach.find(history, l=2, registered=registered)
    assert result.measure is not None
    assert result.measure >= float(
        max((p for (_, v), p in exact.items() if history.bounds[v] < 1), default=Fraction(0))
    )
    fits = [fitting(truth, registered, release) for release in range(len(history))]
    for finding in result.findings:
        overlapping = any(
            set(fits[release - 1][number - 1]) & set(other)
            for release, number in finding.classes
            for place, other in enumerate(fits[release - 1], start=1)
            if place != number
        )
        assert finding.witness.get("overlapping", False) == overlapping
        alike = [
            p for (_, v), p in exact.items() if history.values[v] == finding.value and float(p) == finding.observed
        ]
        assert overlapping or len(alike) >= finding.witness["people"]


def test_a_box_that_shares_registered_people_with_another_is_not_diluted_by_them() -> None:
    # The three rows of the second box need everybody who fits it, so the one row of the first is person 0's.
    truth = of_partitions([[[0], [1, 2, 3]]], "abbb", points=[[0], [1], [1], [2]])
    lo, hi = truth.boxes[0]
    hi[0, 0] = 1
    history = replace(truth, boxes=((lo, hi),)).history(known=False)
    (finding, *_) = breach.find(history, l=2, registered=truth.points.T.copy()).findings
    assert finding.value == "a"
    assert finding.observed == 1


@settings(max_examples=50, deadline=None)
@given(truth=series(people=(2, 6)))
def test_an_attribute_that_changes_is_not_used_to_find_registered_people(truth: Series) -> None:
    history = truth.history()
    unlinked_history = replace(history, links=np.zeros(len(history.links), np.bool_))
    result = breach.find(unlinked_history, l=2, registered=truth.points.T.copy())
    moved = breach.find(unlinked_history, l=2, registered=truth.points.T[:, ::-1] * 0)
    assert result.measure == moved.measure


def test_nothing_can_be_said_when_nobody_is_known() -> None:
    history = of_partitions([[[0, 1]], [[0, 1]]], "ab").history(known=False)
    assert breach.find(history, l=2).measure is None
    assert breach.find(history, l=2).findings == []


def test_l_below_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        breach.find(of_partitions([[[0, 1]]], "ab").history(), l=0.5)
