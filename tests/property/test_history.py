"""History, trajectories and the history table against plain Python over people."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.history import Trajectories
from sequester.history.boxes import intersecting
from sequester.history.table import table
from series import Series, of_partitions, series

often = settings(max_examples=200, deadline=None)


def path_of(one: Series, person: int) -> tuple[int, ...]:
    return tuple(one.member[:, person].tolist())


def seen(one: Series) -> list[int]:
    return [person for person in range(len(one.value)) if max(path_of(one, person)) >= 0]


@often
@given(series())
def test_trajectories_are_the_people_with_equal_sequences_of_classes(one):
    history = one.history()
    found = history.trajectories
    paths = [tuple(path) for path in found.path.tolist()]
    assert len(set(paths)) == len(paths)
    assert dict(zip(paths, found.size.tolist(), strict=True)) == Counter(path_of(one, person) for person in seen(one))
    for person in range(len(one.value)):
        if max(path_of(one, person)) < 0:
            assert found.of[person] == -1
        else:
            assert paths[found.of[person]] == path_of(one, person)


@often
@given(series())
def test_trajectory_counts_count_the_people_of_each_value(one):
    history = one.history()
    counts = history.trajectory_counts()
    expected = np.zeros_like(counts)
    for person in seen(one):
        expected[history.trajectories.of[person], one.value[person]] += 1
    assert (counts == expected).all()


@often
@given(series())
def test_overlaps_count_people_by_their_two_classes_and_by_absence(one):
    history = one.history()
    for first in range(len(history)):
        for second in range(len(history)):
            found = history.overlap(first, second)
            people: dict[tuple[int, int], list[int]] = {}
            for person in range(len(one.value)):
                pair = (int(one.member[first, person]), int(one.member[second, person]))
                if pair != (-1, -1):
                    people.setdefault(pair, []).append(person)
            pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
            assert len(set(pairs)) == len(pairs)
            assert dict(zip(pairs, found.size.tolist(), strict=True)) == {p: len(o) for p, o in people.items()}
            for pair, counts in zip(pairs, found.counts.tolist(), strict=True):
                assert Counter(one.value[people[pair]].tolist()) == +Counter(dict(enumerate(counts)))


@often
@given(series(), st.lists(st.booleans(), min_size=2, max_size=2))
def test_compatible_classes_have_boxes_that_meet_in_every_linking_attribute(one, linking):
    links = np.array(linking[: one.points.shape[1]])
    history = replace(one.history(), links=links)
    for first in range(len(history)):
        for second in range(len(history)):
            found = history.compatible(first, second)
            (lo, hi), (other_lo, other_hi) = one.boxes[first], one.boxes[second]
            expected = {
                (a, b)
                for a in range(lo.shape[1])
                for b in range(other_lo.shape[1])
                if all(
                    set(range(lo[axis, a], hi[axis, a] + 1)) & set(range(other_lo[axis, b], other_hi[axis, b] + 1))
                    for axis in np.flatnonzero(links)
                )
            }
            pairs = list(zip(found[0].tolist(), found[1].tolist(), strict=True))
            assert len(pairs) == len(expected)
            assert set(pairs) == expected


def test_boxes_compared_in_several_blocks_give_the_same_pairs():
    rng = np.random.default_rng(5)
    lo = rng.integers(0, 50, (2, 3000)).astype(np.int32)
    hi = lo + rng.integers(0, 2, (2, 3000)).astype(np.int32)
    first, second = intersecting(lo, hi, lo[:, :2900], hi[:, :2900])
    meet = np.ones((3000, 2900), np.bool_)
    for axis in range(2):
        meet &= np.maximum.outer(lo[axis], lo[axis, :2900]) <= np.minimum.outer(hi[axis], hi[axis, :2900])
    expected = np.nonzero(meet)
    assert (first == expected[0]).all()
    assert (second == expected[1]).all()


@often
@given(series())
def test_trajectories_only_split_when_a_release_is_added(one):
    found = Trajectories.none(len(one.value))
    for member in one.member:
        after = found.extend(member.astype(np.int32), int(member.max()) + 1)
        assert int(after.size.sum()) == int((after.of >= 0).sum())
        for number in range(len(after)):
            assert len(set(found.of[after.of == number].tolist())) == 1
        found = after


@often
@given(series(), st.lists(st.booleans(), min_size=2, max_size=2))
def test_the_history_table_holds_for_every_person_what_her_releases_imply(one, linking):
    links = np.array(linking[: one.points.shape[1]])
    history = replace(one.history(), links=links)
    found = table(history)
    assert len(found) == len(history.trajectories)
    for person in seen(one):
        row = history.trajectories.of[person]
        here = [release for release, number in enumerate(path_of(one, person)) if number >= 0]
        values = [Counter(one.value[one.member[release] == one.member[release, person]].tolist()) for release in here]
        met = values[0]
        for more in values[1:]:
            met = met & more
        assert found.first[row] == here[0]
        assert +Counter(dict(enumerate(found.values[row].tolist()))) == met
        here_boxes = [(release, *one.boxes[release]) for release in here]
        for axis in range(len(links)):
            boxes = [(lo[axis, one.member[r, person]], hi[axis, one.member[r, person]]) for r, lo, hi in here_boxes]
            sides = [set(range(low, high + 1)) for low, high in boxes]
            expected = set.intersection(*sides) if links[axis] else sides[-1]
            assert set(range(found.lo[axis, row], found.hi[axis, row] + 1)) == expected
            assert one.points[person, axis] in expected
        for value in range(one.values):
            left = Fraction(1)
            for counts in values:
                left *= 1 - Fraction(counts[value], counts.total())
            assert found.survival[row, value] == pytest.approx(float(left))


def test_without_people_there_are_classes_but_no_trajectories():
    history = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]]], "abab").history(known=False)
    assert history.trajectories is None
    assert history.trajectory_counts() is None
    with pytest.raises(ValueError, match="who is in which class"):
        history.overlap(0, 1)
    with pytest.raises(ValueError, match="who is in which class"):
        table(history)


def test_a_release_without_people_ends_what_is_known_of_trajectories():
    one = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3]]], "abab")
    history = replace(one.history(), releases=(), trajectories=None, value=None)
    history = history.extend(one.publication(0)).extend(one.publication(1, known=False)).extend(one.publication(2))
    assert history.trajectories is None
    assert len(history) == 3
