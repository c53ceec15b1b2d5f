"""Row order: the bounds against every shuffle of tiny tables, and the verdict on tables that were shuffled or not."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.attacks import row_order
from sequester.attacks.row_order import CHANCE, SMALL_CHANCE, log_chance, log_equal_runs
from sequester.history import History
from series import Series

SLACK = 1e-9


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_chance_of_agreeing_places_is_never_understated(data):
    of = data.draw(st.integers(1, 6))
    rows = data.draw(st.integers(1, of))
    board = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=of, max_size=of), min_size=rows, max_size=rows))
    )
    agreements = [sum(board[row, place[row]] for row in range(rows)) for place in permutations(range(of))]
    for agreeing in range(rows + 1):
        true = sum(found >= agreeing for found in agreements) / len(agreements)
        assert math.exp(log_chance(board.sum(axis=1), agreeing, of=of)) >= true - SLACK


@given(st.lists(st.integers(0, 2), min_size=2, max_size=7))
@settings(max_examples=60, deadline=None)
def test_the_chance_that_separate_kinds_agree_throughout_is_exact(kinds):
    degree = np.array([kinds.count(kind) for kind in kinds])
    places = list(permutations(kinds))
    true = sum(place == tuple(kinds) for place in places) / len(places)
    assert math.exp(log_chance(degree, len(kinds), of=len(kinds))) == pytest.approx(true)


@given(st.lists(st.integers(0, 2), min_size=3, max_size=6), st.lists(st.integers(0, 2), min_size=3, max_size=7))
@settings(max_examples=60, deadline=None)
def test_the_number_of_equal_runs_is_never_understated(here, there):
    length = 3
    held = np.bincount(there, minlength=3)
    wanted = [tuple(here[at : at + length]) for at in range(len(here) - length + 1)]
    total = 0
    places = list(permutations(there))
    for shuffled in places:
        runs = Counter(shuffled[at : at + length] for at in range(len(there) - length + 1))
        total += sum(runs[run] for run in wanted)
    bound = log_equal_runs(np.array(here), len(there), held, length=length)
    assert math.exp(bound) >= total / len(places) - SLACK


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_grams_are_equal_exactly_where_the_runs_are(values, length):
    found = row_order._grams(np.array(values, np.int32), min(length, len(values)))
    runs = [tuple(values[at : at + length]) for at in range(len(found))]
    if length <= len(values):
        assert len(found) == len(values) - length + 1
        assert all(
            (a == b) == (x == y) for a, x in zip(found, runs, strict=True) for b, y in zip(found, runs, strict=True)
        )


def published(random: np.random.Generator, people: int, first: int, *, values: int = 5) -> History:
    """Two releases in the order of the people: some of them, then everybody, in groups of neighbours."""
    points = random.integers(0, 50, (people, 2))
    member = np.full((2, people), -1, np.int32)
    boxes = []
    for release, present in enumerate((first, people)):
        order = np.lexsort((points[:present, 1 - release], points[:present, release]))
        classes = max(present // 4, 1)
        member[release, order] = np.minimum(np.arange(present) * classes // present, classes - 1)
        groups = [points[:present][member[release, :present] == c] for c in range(classes)]
        low, high = (np.array([end(g, axis=0) for g in groups], np.int32).T.copy() for end in (np.min, np.max))
        boxes.append((low, high))
    value = random.integers(0, values, people).astype(np.int32)
    return Series(points, value, member, tuple(boxes), values, (50, 50)).history(c=Fraction(1), known=False)


def reordered(history: History, release: int, order: np.ndarray) -> History:
    releases = list(history.releases)
    rows = releases[release]
    releases[release] = replace(rows, row_class=rows.row_class[order], row_value=rows.row_value[order])
    return replace(history, releases=tuple(releases))


def shuffled(history: History, release: int, random: np.random.Generator) -> History:
    return reordered(history, release, random.permutation(len(history.releases[release].row_class)))


@given(st.integers(0, 2**32), st.integers(20, 120), st.integers(0, 40), st.integers(3, 8))
@settings(max_examples=60, deadline=None)
def test_releases_in_the_order_of_the_people_are_found(seed, first, newcomers, values):
    history = published(np.random.default_rng(seed), first + newcomers, first, values=values)
    found = row_order.find(history)
    assert [finding.releases for finding in found.findings] == [(1, 2)]
    assert found.measure == 1.0
    assert found.findings[0].witness["chance"] <= CHANCE


@given(st.integers(0, 2**32), st.integers(20, 150), st.integers(0, 40), st.sampled_from([0, 1]))
@settings(max_examples=100, deadline=None)
def test_a_fresh_shuffle_of_either_release_is_enough(seed, first, newcomers, release):
    random = np.random.default_rng(seed)
    history = shuffled(published(random, first + newcomers, first), release, random)
    assert row_order.find(history).findings == []


@given(st.integers(0, 2**32), st.sampled_from(["value", "class"]), st.sampled_from([0, 1]))
@settings(max_examples=40, deadline=None)
def test_a_sorted_release_beside_a_shuffled_one_is_no_alarm(seed, by, release):
    random = np.random.default_rng(seed)
    history = shuffled(published(random, 150, 100), 1 - release, random)
    keys = getattr(history.releases[release], f"row_{by}")
    assert row_order.find(reordered(history, release, np.argsort(keys))).findings == []


def test_two_releases_written_class_by_class_are_not_judged():
    history = published(np.random.default_rng(3), 80, 60)
    for release in (0, 1):
        history = reordered(history, release, np.argsort(history.releases[release].row_class, kind="stable"))
    assert row_order.find(history).measure is None


@given(st.integers(0, 2**32), st.integers(0, 300))
@settings(max_examples=20, deadline=None)
def test_an_order_that_is_kept_while_rows_are_put_in_between_is_found(seed, top):
    random = np.random.default_rng(seed)
    history = published(random, 700, 400, values=8)
    new = np.arange(400, 700)
    between = np.sort(random.choice(400, 4, replace=False))
    order = np.concatenate([new[:top], np.insert(np.arange(400), between, new[-4:]), new[top:-4]])
    found = row_order.find(reordered(history, 1, order[np.sort(np.unique(order, return_index=True)[1])]))
    assert len(found.findings) == 1
    if top:
        assert found.findings[0].witness["test"] == "stretches"


@given(st.integers(0, 2**32), st.sampled_from([[], [0], [1], [0, 1]]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_degrees_count_the_rows_of_the_other_release_that_agree(seed, axes, permanent):
    history = replace(published(np.random.default_rng(seed), 40, 25, values=3), permanent=permanent)
    for one, other in (history.releases, history.releases[::-1]):
        found = row_order._degrees(history, one, other, axes)
        assert found.shape == one.counts.shape
        for number, value in np.ndindex(found.shape):
            agreeing = [
                other.counts[far, value] if permanent else other.counts[far].sum()
                for far in range(len(other))
                if all(
                    max(one.lo[axis, number], other.lo[axis, far]) <= min(one.hi[axis, number], other.hi[axis, far])
                    for axis in axes
                )
            ]
            assert found[number, value] == sum(agreeing)


def test_rows_that_all_look_alike_tell_nothing_by_their_order():
    history = published(np.random.default_rng(1), 40, 40, values=1)
    one = replace(history, links=np.zeros(2, bool), permanent=False)
    found = row_order.find(one)
    assert found.findings == []
    assert found.measure == 0


def test_boxes_alone_give_the_order_away_when_values_change():
    history = replace(published(np.random.default_rng(5), 80, 80), permanent=False)
    assert row_order.find(history).findings[0].witness["test"] == "places"
    assert row_order.find(shuffled(history, 1, np.random.default_rng(6))).findings == []


def test_large_releases_are_compared_in_the_attribute_that_tells_most(monkeypatch):
    history = published(np.random.default_rng(7), 200, 200)
    wide = history.releases[0]
    blurred = replace(
        wide, lo=np.vstack([wide.lo[:1] * 0, wide.lo[1:]]), hi=np.vstack([wide.hi[:1] * 0 + 49, wide.hi[1:]])
    )
    history = replace(history, releases=(blurred, history.releases[1]), permanent=False)
    monkeypatch.setattr(row_order, "_PAIRS", len(history.releases[0]) * len(history.releases[1]) - 1)
    assert row_order._axes(history, *history.releases) == [1]
    assert len(row_order.find(history).findings) == 1


def test_a_small_table_is_found_only_if_every_row_agrees():
    values = np.array([0, 1, 2, 3, 4, 5], np.int32)
    member = np.zeros((2, 6), np.int32)
    box = (np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32))
    wider = (box[0], box[1] + 1)
    history = Series(np.zeros((6, 1), np.int32), values, member, (box, wider), 6, (2,)).history(known=False)
    finding = row_order.find(history).findings[0]
    assert finding.witness["small"]
    assert finding.witness["chance"] == pytest.approx(1 / 720)
    assert finding.witness["chance"] <= SMALL_CHANCE
    assert row_order.find(reordered(history, 1, np.array([1, 0, 2, 3, 4, 5]))).findings == []


def test_one_release_has_no_order_to_compare():
    history = published(np.random.default_rng(2), 30, 30)
    assert row_order.find(replace(history, releases=history.releases[:1])).measure is None


def test_a_table_published_again_row_for_row_tells_nothing():
    member = np.array([np.arange(60) % 4] * 2, np.int32)
    side = np.arange(4, dtype=np.int32)[None]
    values = (np.arange(60) % 5).astype(np.int32)
    history = Series(np.zeros((60, 1), np.int32), values, member, ((side, side),) * 2, 5, (4,)).history(known=False)
    result = row_order.find(history)
    assert (result.findings, result.measure) == ([], None)
