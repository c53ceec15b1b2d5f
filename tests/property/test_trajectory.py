"""What trajectories prove by themselves, and what links them, against plain loops over people."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks import deniability, difference, tracing
from sequester.history.trajectory import linked, number_through
from series import Series, of_partitions, series

often = settings(max_examples=200, deadline=None)
bounds = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)])


def groups(one: Series) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    for person, path in enumerate(map(tuple, one.member.T.tolist())):
        if max(path) >= 0:
            found.setdefault(path, []).append(person)
    return found


@often
@given(series(releases=(2, 3)), st.integers(1, 3), bounds)
def test_nothing_is_found_where_trajectories_are_large_and_have_no_value_too_often(one, k, c):
    people = groups(one).values()
    if any(max(Counter(one.value[group].tolist()).values()) > c * len(group) for group in people):
        return
    history = one.history(k=k, c=c)
    blind = replace(history, releases=(), trajectories=None, value=None)
    for release in history.releases:
        blind = blind.extend(replace(release, value=None))
    assert deniability.find(history).findings == deniability.find(blind).findings == []
    if min(map(len, people)) >= k:
        assert difference.find(history).findings == tracing.find(history).findings == []


@often
@given(series(), st.integers(1, 3))
def test_no_certified_series_determines_a_set_of_fewer_than_k_people(one, k):
    if min(map(len, groups(one).values())) < k:
        return
    # A set is determined when its indicator is a combination of the indicators of classes.
    classes = np.array([member == number for member in one.member for number in range(int(member.max()) + 1)], float)
    seen = np.flatnonzero(classes.any(axis=0)).tolist()
    rank = np.linalg.matrix_rank(classes)
    for people in chain.from_iterable(combinations(seen, size) for size in range(1, k)):
        indicator = np.zeros(len(one.value))
        indicator[list(people)] = 1
        assert np.linalg.matrix_rank(np.vstack([classes, indicator])) > rank


def parts(one: Series) -> tuple[np.ndarray, np.ndarray]:
    history = one.history()
    path = history.trajectories.path
    return path, linked(*number_through(path, [len(release) for release in history.releases]))


@often
@given(series())
def test_components_are_what_shared_classes_reach(one):
    path, part = parts(one)
    for start in range(len(path)):
        reach = {start}
        while True:
            classes = {(r, int(path[t, r])) for t in reach for r in range(path.shape[1]) if path[t, r] >= 0}
            more = {t for t in range(len(path)) if any(path[t, r] == number for r, number in classes)}
            if more == reach:
                break
            reach = more
        assert set(np.flatnonzero(part == part[start]).tolist()) == reach


def test_being_absent_together_links_nobody():
    _, together = parts(of_partitions([[[0, 1], [2, 3]], [[0, 1, 2, 3]], [[0], [1], [2], [3]]], "abab"))
    assert len(set(together.tolist())) == 1
    _, apart = parts(of_partitions([[[0, 1], [2, 3]], [[0], [2]]], "abab"))
    assert len(set(apart.tolist())) == 2
