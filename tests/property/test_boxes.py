"""Boxes that intersect, against the definition: one point that is in both."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.history import boxes
from sequester.history.boxes import intersecting


def drawn(random: np.random.Generator, attributes: int, count: int, leaves: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.sort(random.integers(0, leaves, (2, attributes, count)).astype(np.int32), axis=0)
    return ends[0], ends[1]


def points(lo: np.ndarray, hi: np.ndarray, box: int) -> set[tuple[int, ...]]:
    return set(product(*(range(lo[axis, box], hi[axis, box] + 1) for axis in range(len(lo)))))


@given(
    st.integers(0, 2**32),
    st.integers(0, 3),
    st.integers(0, 5),
    st.sampled_from([0, 1, 2, 63, 64, 65, 130]),
    st.integers(1, 4),
    st.sampled_from([1, 4, 16, 1 << 20]),
    st.sampled_from([1, 1 << 24]),
)
@settings(max_examples=150, deadline=None)
def test_boxes_intersect_exactly_when_they_share_a_point(seed, attributes, count, others, leaves, words, many):
    random = np.random.default_rng(seed)
    near, far = drawn(random, attributes, count, leaves), drawn(random, attributes, others, leaves)
    there = [points(*far, other) for other in range(others)]
    expected = [(box, other) for box in range(count) for other in range(others) if points(*near, box) & there[other]]
    with pytest.MonkeyPatch.context() as patch:
        # Few words at once: many blocks.
        patch.setattr(boxes, "_WORDS", words)
        patch.setattr(boxes, "_MANY", many)
        first, second = intersecting(*near, *far)
    assert (first.dtype, second.dtype) == (np.int32, np.int32)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_boxes_may_be_given_in_any_layout_of_memory():
    lo, hi = drawn(np.random.default_rng(3), 4, 90, 20)
    expected = intersecting(lo[[0, 2]], hi[[0, 2]], lo[[0, 2], :70], hi[[0, 2], :70])
    found = intersecting(lo[::2], hi[::2], np.asfortranarray(lo)[::2, :70], np.asfortranarray(hi)[::2, :70])
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert len(found[0]) > 90


@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_a_tree_of_boxes_finds_the_same_pairs_in_the_same_order(kind: type) -> None:
    random = np.random.default_rng(5)
    near, far = drawn(random, 5, 3000, 12), drawn(random, 5, 700, 12)
    sides = [side.astype(kind) for side in (*near, *far)]
    if kind is np.float64:
        # Boxes without an end, as those of values that move.
        sides[0][1, :20], sides[3][2, :20] = -np.inf, np.inf
    expected = boxes._by_words(*sides)
    found = boxes._by_tree(*boxes._ranked(*sides))
    assert len(expected[0]) > 10_000
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
