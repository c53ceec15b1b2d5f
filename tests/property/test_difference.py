"""Difference attack against its definition: every set of classes of one release minus every set of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sequester.attacks import difference
from sequester.attacks.finding import Finding, Semantics
from sequester.attacks.solvers.subtraction import determined, directions, generalized, nested
from series import Series, of_partitions, series

BOUNDS = st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(2, 3), Fraction(3, 4)])
PEOPLE = st.integers(1, 4)


@dataclass(frozen=True)
class Subtraction:
    """Classes of `outer` minus classes of `inner`."""

    outer: int
    added: tuple[int, ...]
    inner: int
    taken: tuple[int, ...]
    left: frozenset[int]
    is_nested: bool
    excess: tuple[int, ...]  # per value, occurrences in the added classes minus those in the taken ones

    def breaks(self, value: int, bound: Fraction) -> bool:
        return self.excess[value] > bound * len(self.left)


def people(truth: Series, release: int, classes: tuple[int, ...]) -> frozenset[int]:
    return frozenset(person for person, number in enumerate(truth.member[release].tolist()) if number in classes)


def subtract(truth: Series, outer: int, added: tuple[int, ...], inner: int, taken: tuple[int, ...]) -> Subtraction:
    more, less = people(truth, outer, added), people(truth, inner, taken)
    value = truth.value.tolist()
    gained, lost = [value[person] for person in more], [value[person] for person in less]
    excess = tuple(gained.count(one) - lost.count(one) for one in range(truth.values))
    return Subtraction(outer, added, inner, taken, more - less, less <= more, excess)


def subtractions(truth: Series, outer: int, inner: int) -> list[Subtraction]:
    return [
        subtract(truth, outer, added, inner, taken)
        for added in subsets(truth.boxes[outer][0].shape[1])
        for taken in subsets(truth.boxes[inner][0].shape[1])
    ]


def subsets(count: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(count + 1) for chosen in combinations(range(count), size)]


def ordered_pairs(truth: Series) -> list[tuple[int, int]]:
    number = len(truth.member)
    return [(outer, inner) for outer in range(number) for inner in range(number) if outer != inner]


def of_finding(truth: Series, finding: Finding) -> Subtraction:
    """What the witness of a finding says, computed again from the truth."""
    witness = finding.witness
    return subtract(
        truth,
        witness["from_release"] - 1,
        tuple(number - 1 for number in witness["from"]),
        witness["minus_release"] - 1,
        tuple(number - 1 for number in witness["minus"]),
    )


@given(truth=series(people=(2, 6)), bound=BOUNDS)
@settings(max_examples=100, deadline=None)
def test_a_value_is_found_exactly_when_some_pair_of_sets_of_classes_proves_it(truth: Series, bound: Fraction) -> None:
    history = truth.history(c=bound)
    blind = replace(history, value=None)
    for outer, inner in ordered_pairs(truth):
        cells = directions(history, *sorted((outer, inner)))[int(outer < inner)]
        without_counts = directions(blind, *sorted((outer, inner)))[int(outer < inner)]
        every = subtractions(truth, outer, inner)
        for value in range(truth.values):
            for attack, possible in (
                (generalized, every),
                (nested, [one for one in every if one.is_nested]),
            ):
                alone = any(one.breaks(value, bound) for one in possible if not one.taken)
                proper = any(one.breaks(value, bound) for one in possible if one.taken)
                found = attack(cells, {value: bound})
                assert bool(found) or alone or not proper
                assert len(found) == len(attack(without_counts, {value: bound}))
                for remainder in found:
                    again = subtract(truth, outer, tuple(remainder.added), inner, tuple(remainder.taken))
                    assert again in possible
                    assert again.taken
                    assert again.breaks(value, bound)
                    assert (remainder.people, remainder.with_value) == (len(again.left), again.excess[value])
                    assert remainder.nested == again.is_nested


@given(truth=series(releases=(2, 2), people=(2, 6)), bound=BOUNDS)
@settings(max_examples=150, deadline=None)
def test_a_value_is_found_exactly_when_no_belief_keeps_everybody_within_the_bound(
    truth: Series, bound: Fraction
) -> None:
    history = truth.history(c=bound)
    for value in range(truth.values):
        alone = any(
            one.breaks(value, bound) for pair in ((0, 1), (1, 0)) for one in subtractions(truth, *pair) if not one.taken
        )
        found = any(generalized(cells, {value: bound}) for cells in directions(history, 0, 1))
        assert (found or alone) == (least_confidence(truth, value) > float(bound) + 1e-7)


def least_confidence(truth: Series, value: int) -> float:
    """The smallest, over all distributions on the worlds of one value, of the largest P(value) of a person."""
    count = len(truth.value)
    present = [person for person in range(count) if (truth.member[:, person] >= 0).any()]

    def margins(having: tuple[int, ...]) -> list[int]:
        return [
            sum(truth.member[release, person] == number for person in having)
            for release in range(len(truth.member))
            for number in range(truth.boxes[release][0].shape[1])
        ]

    true = margins(tuple(person for person in present if truth.value[person] == value))
    worlds = [having for size in range(count + 1) for having in combinations(present, size) if margins(having) == true]
    holds = np.array([[person in having for having in worlds] for person in present], float)
    result = linprog(
        c=np.append(np.zeros(len(worlds)), 1.0),
        A_ub=np.column_stack([holds, -np.ones(len(present))]),
        b_ub=np.zeros(len(present)),
        A_eq=np.append(np.ones(len(worlds)), 0.0)[None, :],
        b_eq=[1.0],
    )
    return float(result.fun)


@given(truth=series(people=(2, 8)), k=PEOPLE)
@settings(max_examples=150, deadline=None)
def test_the_measure_is_the_smallest_set_that_two_releases_determine(truth: Series, k: int) -> None:
    result = difference.find(truth.history(k=k, c=1), semantics="paper")
    every = [one for pair in ordered_pairs(truth) for one in subtractions(truth, *pair) if one.is_nested and one.left]
    assert result.measure == min(len(one.left) for one in every)
    alone = {one.left for one in every if not one.taken}
    proper = {one.left for one in every if one.taken} - alone
    assert bool(result.findings) or not any(len(left) < k for left in proper) or min(map(len, alone)) < k


@st.composite
def two_partitions(draw: st.DrawFn) -> Series:
    """More people and classes than a whole series has; hardly anybody leaves or joins."""
    count = draw(st.integers(4, 12))
    partitions = []
    for _ in range(2):
        label = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
        absent = draw(st.sets(st.integers(1, count - 1), max_size=1))
        groups = [[one for one in range(count) if label[one] == number and one not in absent] for number in range(5)]
        partitions.append([group for group in groups if group])
    return of_partitions(partitions, "ab" * (count // 2) + "a" * (count % 2))


@given(truth=two_partitions(), k=st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_each_direction_by_itself_gives_the_smallest_set_and_everybody_in_a_set_of_too_few(
    truth: Series, k: int
) -> None:
    for cells, limit in product(directions(truth.history(), 0, 1), (k, len(truth.value) + 1)):
        found = determined(cells, k=k, limit=limit)
        sets = {subtract_bits(truth, cells.outer, one.added, cells.inner, one.taken): one.people for one in found}
        every = nested_bits(truth, cells.outer, cells.inner)
        assert all(one.bit_count() == people < limit for one, people in sets.items())
        assert sets.keys() <= every
        assert min(sets.values(), default=limit) == min(limit, *(one.bit_count() for one in every))
        assert union(one for one in sets if one.bit_count() < k) == union(one for one in every if one.bit_count() < k)


def class_bits(truth: Series, release: int) -> list[int]:
    """Classes as sets of people in the bits of a number."""
    found = [0] * truth.boxes[release][0].shape[1]
    for person, number in enumerate(truth.member[release].tolist()):
        if number >= 0:
            found[number] |= 1 << person
    return found


def subtract_bits(truth: Series, outer: int, added: Iterable[int], inner: int, taken: Iterable[int]) -> int:
    more, less = class_bits(truth, outer), class_bits(truth, inner)
    return union(more[number] for number in added) & ~union(less[number] for number in taken)


def nested_bits(truth: Series, outer: int, inner: int) -> set[int]:
    """All non-empty differences of nested sets of classes."""
    more, less = (
        [union(chosen) for size in range(len(bits) + 1) for chosen in combinations(bits, size)]
        for bits in (class_bits(truth, outer), class_bits(truth, inner))
    )
    return {one & ~other for one in more for other in less if not other & ~one} - {0}


def union(sets: Iterable[int]) -> int:
    total = 0
    for one in sets:
        total |= one
    return total


@given(truth=series(people=(2, 8)), k=PEOPLE)
@settings(max_examples=120, deadline=None)
def test_everybody_in_a_determined_set_of_too_few_is_reported_or_in_a_class_of_too_few(truth: Series, k: int) -> None:
    findings = difference.find(truth.history(k=k, c=1), semantics="paper").findings
    shown = {person for finding in findings for person in finding.people}
    for release in range(len(truth.member)):
        for number in range(truth.boxes[release][0].shape[1]):
            members = people(truth, release, (number,))
            shown |= members if len(members) < k else set()
    for outer, inner in ordered_pairs(truth):
        for one in subtractions(truth, outer, inner):
            assert not one.is_nested or len(one.left) >= k or one.left <= shown


@given(truth=series(), bound=BOUNDS, k=PEOPLE, semantics=st.sampled_from(["exact", "paper"]))
@settings(max_examples=150, deadline=None)
def test_every_finding_can_be_checked_by_hand(truth: Series, bound: Fraction, k: int, semantics: Semantics) -> None:
    findings = difference.find(truth.history(k=k, c=bound), semantics=semantics).findings
    for finding in findings:
        assert (finding.attack, finding.adversary) == ("difference", "insider")
        assert len(finding.people) == finding.witness["left"]
        if "combination" in finding.witness:
            check_combination(truth, finding, k)
            continue
        again = of_finding(truth, finding)
        assert set(finding.people) == again.left
        assert set(finding.classes) == {(again.outer + 1, number + 1) for number in again.added} | {
            (again.inner + 1, number + 1) for number in again.taken
        }
        assert set(finding.releases) == {again.outer + 1, again.inner + 1}
        if finding.value is None:
            assert again.is_nested
            assert 0 < finding.observed == len(again.left) < finding.required == k
        else:
            value = "abcdefgh".index(finding.value)
            assert again.breaks(value, bound)
            assert finding.observed == again.excess[value] / len(again.left)
            assert sum(truth.value[person] == value for person in again.left) >= finding.witness["with_value"]
            assert finding.witness["exactly"] == again.is_nested
    keys = [(finding.value, finding.people, finding.observed) for finding in findings]
    assert len(keys) == len(set(keys))


def check_combination(truth: Series, finding: Finding, k: int) -> None:
    total = [Fraction(0)] * len(truth.value)
    for term in finding.witness["combination"]:
        for person in people(truth, term["release"] - 1, (term["class"] - 1,)):
            total[person] += Fraction(term["times"])
    assert total == [Fraction(person in finding.people) for person in range(len(truth.value))]
    assert finding.observed == len(finding.people) < k


@given(truth=series(releases=(3, 4)), k=PEOPLE)
@settings(max_examples=150, deadline=None)
def test_a_small_trajectory_in_the_span_of_all_classes_is_found(truth: Series, k: int) -> None:
    history = truth.history(k=k, c=1)
    result = difference.find(history)
    assert history.trajectories is not None
    found = [set(finding.people) for finding in result.findings]
    paths = history.trajectories.path.tolist()
    indicators = [
        [Fraction(path[release] == number) for path in paths]
        for release in range(len(history))
        for number in range(len(history.releases[release]))
    ]
    for trajectory in range(len(paths)):
        unit = [Fraction(other == trajectory) for other in range(len(paths))]
        members = set(np.flatnonzero(history.trajectories.of == trajectory).tolist())
        if len(members) < k and rank([*indicators, unit]) == rank(indicators):
            assert members in found or unit in indicators
            assert result.measure is not None
            assert result.measure <= len(members)


def rank(rows: list[list[Fraction]]) -> int:
    rows, done = [row[:] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((index for index in range(done, len(rows)) if rows[index][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        for index in range(done + 1, len(rows)):
            factor = rows[index][column] / rows[done][column]
            rows[index] = [one - factor * other for one, other in zip(rows[index], rows[done], strict=True)]
        done += 1
    return done


@given(truth=series(), k=PEOPLE, bound=BOUNDS)
@settings(max_examples=200, deadline=None)
def test_a_certified_history_has_no_findings_and_a_measure_no_larger_than_the_exact_one(
    truth: Series, k: int, bound: Fraction
) -> None:
    history = truth.history(k=k, c=bound)
    assert history.trajectories is not None
    counts = history.trajectory_counts()
    assert counts is not None
    size = history.trajectories.size
    if (size < k).any() or (bound.denominator * counts > bound.numerator * size[:, None]).any():
        return
    result = difference.find(history)
    assert result.findings == []
    assert result.measure is not None
    assert int(size.min()) <= result.measure


@given(truth=series(people=(2, 5)), bound=BOUNDS)
@settings(max_examples=100, deadline=None)
def test_a_value_without_a_bound_is_never_found(truth: Series, bound: Fraction) -> None:
    history = truth.history(k=1, c=bound)
    history = replace(history, bounds=(Fraction(1), *history.bounds[1:]))
    assert all(finding.value != "a" for finding in difference.find(history).findings)


@given(truth=series(people=(2, 5)))
@settings(max_examples=30, deadline=None)
def test_nothing_can_be_subtracted_when_classes_are_unknown_or_values_change(truth: Series) -> None:
    for history in (truth.history(known=False), replace(truth.history(), permanent=False)):
        result = difference.find(history)
        assert (result.findings, result.measure) == ([], None)
