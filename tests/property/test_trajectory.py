"""The trajectory certificate and the components, against plain loops over people."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks import trajectory
from sequester.attacks.solvers.components import components
from sequester.attacks.trajectory import certified
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
@given(series(), st.integers(1, 3), bounds)
def test_the_certificate_names_the_trajectories_that_are_small_or_hold_too_much(one, k, c):
    history = one.history(k=k, c=c)
    found = certified(history)
    small, dominated = set(), set()
    for path, people in groups(one).items():
        if len(people) < k:
            small.add(path)
        if max(Counter(one.value[people].tolist()).values()) > c * len(people):
            dominated.add(path)
    assert found.identity == (not small)
    assert found.values == (not dominated)
    assert {tuple(history.trajectories.path[number].tolist()) for number in found.open} == small | dominated
    assert trajectory.find(history).findings == []
    assert trajectory.find(history).measure == min(map(len, groups(one).values()))


@often
@given(series(), st.integers(1, 3))
def test_no_certified_series_determines_a_set_of_fewer_than_k_people(one, k):
    history = one.history(k=k)
    if not certified(history).identity:
        return
    # A set is determined when its indicator is a combination of the indicators of classes.
    classes = np.array([member == number for member in one.member for number in range(int(member.max()) + 1)], float)
    seen = np.flatnonzero(classes.any(axis=0)).tolist()
    rank = np.linalg.matrix_rank(classes)
    for people in chain.from_iterable(combinations(seen, size) for size in range(1, k)):
        indicator = np.zeros(len(one.value))
        indicator[list(people)] = 1
        assert np.linalg.matrix_rank(np.vstack([classes, indicator])) > rank


@often
@given(series(), bounds)
def test_without_values_a_trajectory_is_open_unless_its_classes_settle_it(one, c):
    known = one.history(k=1, c=c)
    blind = replace(known, releases=(), trajectories=None, value=None)
    for release in known.releases:
        blind = blind.extend(replace(release, value=None))
    assert set(certified(known).open.tolist()) <= set(certified(blind).open.tolist())
    if len(one.member) == 1:
        assert set(certified(known).open.tolist()) == set(certified(blind).open.tolist())


@often
@given(series(), st.data())
def test_components_are_what_shared_classes_reach(one, data):
    history = one.history()
    chosen = data.draw(st.none() | st.sets(st.integers(0, len(one.member) - 1), min_size=1).map(sorted).map(tuple))
    used = tuple(range(len(one.member))) if chosen is None else chosen
    found = components(history, releases=chosen)
    path = history.trajectories.path
    reach = [{start} for start in range(len(path))]
    for start in range(len(path)):
        while True:
            classes = {(r, int(path[t, r])) for t in reach[start] for r in used if path[t, r] >= 0}
            more = {t for t in range(len(path)) if any(path[t, r] == number for r, number in classes)} | {start}
            if more == reach[start]:
                break
            reach[start] = more
    open_ = set(certified(history).open.tolist())
    for start, together in enumerate(reach):
        label = found.trajectory[start]
        assert set(np.flatnonzero(found.trajectory == label).tolist()) == together
        assert found.uncertified[label] == bool(together & open_)
        for place, release in enumerate(used):
            if path[start, release] >= 0:
                assert found.classes[place][path[start, release]] == label
    mask = np.arange(len(path)) == 0
    assert np.flatnonzero(found.touched(mask)).tolist() == [found.trajectory[0]]


def test_being_absent_together_links_nobody():
    found = components(of_partitions([[[0, 1], [2, 3]], [[0, 1, 2, 3]], [[0], [1], [2], [3]]], "abab").history())
    assert found.count == 1
    apart = components(of_partitions([[[0, 1], [2, 3]], [[0], [2]]], "abab").history())
    assert apart.count == 2


def test_a_certificate_needs_people():
    outsider = of_partitions([[[0, 1]]], "ab").history(known=False)
    assert trajectory.find(outsider).measure is None
    with pytest.raises(ValueError, match="who is in which class"):
        certified(outsider)
    with pytest.raises(ValueError, match="who is in which class"):
        components(outsider)
