"""History and trajectories against plain Python over people."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

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


def test_without_people_there_are_classes_but_no_trajectories():
    history = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]]], "abab").history(known=False)
    assert history.trajectories is None
    assert history.trajectory_counts() is None
    with pytest.raises(ValueError, match="who is in which class"):
        history.overlap(0, 1)


def test_a_release_without_people_ends_what_is_known_of_trajectories():
    one = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3]]], "abab")
    history = replace(one.history(), releases=(), trajectories=None, value=None)
    history = history.extend(one.publication(0)).extend(one.publication(1, known=False)).extend(one.publication(2))
    assert history.trajectories is None
    assert len(history) == 3
