"""Complementary releases against every way to join the rows of two tiny releases."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks import complementary
from series import of_partitions, series


def joinings(history):
    """Per joined box, its number of rows in every possible world: rows keep their value and stay in boxes that meet."""
    one, other = history.releases
    worlds = []
    for v in range(len(history.values)):
        rows = [c for c, x in zip(one.row_class, one.row_value, strict=True) if x == v]
        places = [c for c, x in zip(other.row_class, other.row_value, strict=True) if x == v]
        worlds.append(
            {
                world
                for world in (_joined(history, rows, p) for p in permutations(places, len(rows)))
                if world is not None
            }
        )
    totals = []
    for parts in product(*worlds):
        count = defaultdict(int)
        for box, number in (item for part in parts for item in part):
            count[box] += number
        totals.append(count)
    boxes = {box for count in totals for box in count}
    return {box: [count[box] for count in totals] for box in boxes}


def _joined(history, rows, places):
    one, other = history.releases
    count = defaultdict(int)
    for a, b in zip(rows, places, strict=True):
        lo, hi = np.maximum(one.lo[:, a], other.lo[:, b]), np.minimum(one.hi[:, a], other.hi[:, b])
        if (lo > hi).any():
            return None
        count[tuple(lo.tolist()), tuple(hi.tolist())] += 1
    return tuple(sorted(count.items()))


def box_of(history, finding):
    """The joined box of a finding, from its classes: the witness writes it as text."""
    one, other = history.releases
    (_, a), (_, b) = finding.classes[0], finding.classes[-1]
    lo, hi = np.maximum(one.lo[:, a - 1], other.lo[:, b - 1]), np.minimum(one.hi[:, a - 1], other.hi[:, b - 1])
    return tuple(lo.tolist()), tuple(hi.tolist())


@given(series(releases=(2, 2), deletions=False, people=(2, 7)), st.integers(2, 3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_joined_group_that_is_reported_is_small_however_rows_are_joined(found, k, known):
    history = found.history(k=k, c=Fraction(1), known=known)
    rows = joinings(history)
    for finding in complementary.find(history).findings:
        counts = rows[box_of(history, finding)]
        assert min(counts) >= 1
        assert finding.witness["certain"] <= min(counts)
        assert max(counts) <= finding.observed < k


@given(series(releases=(2, 2), deletions=False, people=(2, 7), global_recoding=True), st.integers(2, 3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_with_global_recoding_every_small_joined_group_is_reported(found, k, known):
    history = found.history(k=k, c=Fraction(1), known=known)
    one, other = history.releases
    expected = set()
    for box, counts in joinings(history).items():
        classes = [
            min(np.flatnonzero((r.lo <= np.array([box[0]]).T).all(axis=0) & (r.hi >= np.array([box[1]]).T).all(axis=0)))
            for r in (one, other)
        ]
        whole = min(one.size[classes[0]], other.size[classes[1]])
        if min(counts) >= 1 and max(counts) < min(k, whole):
            expected.add(box)
    result = complementary.find(history)
    assert {box_of(history, finding) for finding in result.findings} == expected


@given(series(releases=(2, 2), deletions=False, people=(2, 7)), st.integers(2, 3))
@settings(max_examples=150, deadline=None)
def test_who_is_named_is_in_both_classes_and_no_more_than_the_rows(found, k):
    history = found.history(k=k, c=Fraction(1))
    for finding in complementary.find(history).findings:
        assert 1 <= len(finding.people) <= finding.observed
        for release, member in enumerate(found.member, start=1):
            classes = {c - 1 for number, c in finding.classes if number == release}
            assert {int(member[person]) for person in finding.people} <= classes


@given(series(releases=(2, 3), people=(2, 7)), st.integers(2, 3))
@settings(max_examples=150, deadline=None)
def test_the_measure_falls_below_k_whenever_something_is_found(found, k):
    result = complementary.find(found.history(k=k, c=Fraction(1)))
    if result.findings:
        assert result.measure == min(finding.observed for finding in result.findings) < k


def test_releases_between_which_people_came_and_left_are_not_joined():
    found = of_partitions([[[0, 1], [2, 3]], [[0, 4], [2, 3]]], "abcdb")
    assert complementary.find(found.history(c=1)).measure is None


def test_values_that_change_join_nothing():
    corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    found = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]]], "abcd", points=corners)
    assert complementary.find(found.history(c=1)).findings
    assert not complementary.find(replace(found.history(c=1), permanent=False)).findings
