"""Domains of a series: new values must not change what was published before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequester.domain import notation
from sequester.domain.build import observe
from sequester.domain.extend import extend, gains, grows_from, places
from sequester.domain.tree import from_tree
from sequester.policy.attributes import QuasiIdentifier

CATEGORY = QuasiIdentifier(role="quasi-identifier", missing="category")
NUMBER = QuasiIdentifier(role="quasi-identifier", kind="number", missing="category")
CODE = QuasiIdentifier(role="quasi-identifier", kind="code", length=2)
DATE = QuasiIdentifier(role="quasi-identifier", kind="date")

words = st.lists(st.sampled_from("fedcba"), min_size=1, max_size=6, unique=True)
numbers = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
codes = st.lists(st.text("012", min_size=2, max_size=2), min_size=1, max_size=6, unique=True)


def values_of(kind: str, found: list[int]) -> np.ndarray:
    return np.array(found, np.float64) if kind == "number" else np.datetime64("2025-01-25") + np.array(found)


@given(words, words)
def test_a_published_set_of_categories_never_gains_a_value(first: list[str], second: list[str]) -> None:
    before = observe(CATEGORY, first)
    after = extend(CATEGORY, before, second)
    moved = places(before, after)
    assert [after.names[0][code] for code in moved] == list(before.names[0])
    last = before.size - 1  # the missing leaf
    for lo in range(last):
        for hi in range(lo, last):
            meant = set(before.names[0][lo : hi + 1])
            assert set(after.names[0][moved[lo] : moved[hi] + 1]) == meant


@given(st.sampled_from(["number", "date"]), numbers, numbers)
def test_a_published_range_covers_what_its_text_says(kind: str, first: list[int], second: list[int]) -> None:
    attribute = NUMBER if kind == "number" else DATE
    before = observe(attribute, values_of(kind, first))
    after = extend(attribute, before, values_of(kind, second))
    moved = places(before, after)
    assert np.array_equal(after.leaves[moved], before.leaves, equal_nan=kind == "number")
    top = before.size - 1 if before.missing else before.size
    for lo in range(top):
        for hi in range(lo + 1, top):
            if (lo, hi) in before.group_names:
                continue  # the name of a group may cover values that come later
            low, high, known = notation.read(after, notation.write(before, np.array([lo]), np.array([hi])))
            assert known.all()
            assert (low[0], high[0]) == (moved[lo], moved[hi])


@given(codes, codes)
def test_codes_keep_their_order(first: list[str], second: list[str]) -> None:
    before = observe(CODE, first)
    after = extend(CODE, before, second)
    assert sorted({*first, *second}) == after.leaves.tolist()
    assert after.leaves[places(before, after)].tolist() == before.leaves.tolist()


@given(words)
def test_a_domain_without_new_values_stays_the_same_object(found: list[str]) -> None:
    before = observe(CATEGORY, found)
    assert extend(CATEGORY, before, found[:1]) is before


@st.composite
def taxonomies(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """A tree of two groups of leaves, and one with leaves added anywhere in its groups."""
    groups = {"one": draw(st.integers(1, 3)), "two": draw(st.integers(1, 3))}
    before = {name: [f"{name}{number}" for number in range(count)] for name, count in groups.items()}
    after = {name: list(leaves) for name, leaves in before.items()}
    for number in range(draw(st.integers(0, 3))):
        leaves = after[draw(st.sampled_from(["one", "two"]))]
        leaves.insert(draw(st.integers(0, len(leaves))), f"new{number}")
    return before, after


@given(taxonomies(), st.booleans())
def test_a_box_keeps_its_leaves_when_a_hierarchy_grows_or_is_said_to_gain(
    trees: tuple[dict[str, list[str]], dict[str, list[str]]], missing: bool
) -> None:
    before, after = (
        from_tree({"all": [{name: leaves} for name, leaves in tree.items()]}, missing=missing) for tree in trees
    )
    assert grows_from(before, after)
    assert before.size == after.size or not grows_from(after, before)
    moved = places(before, after)
    for lo in range(before.size):
        for hi in range(lo, before.size):
            meant = set(before.names[0][lo : hi + 1])
            covers = set(after.names[0][moved[lo] : moved[hi] + 1])
            assert meant <= covers
            assert gains(np.array([lo]), np.array([hi]), moved)[0] == (meant != covers)


@pytest.mark.parametrize(
    "after",
    [
        {"one": ["b", "a"], "two": ["c"]},
        {"one": ["a"], "two": ["b", "c"]},
        {"one": ["a", "b"]},
        {"other": ["a", "b"], "two": ["c"]},
    ],
    ids=["another order", "another group", "a value less", "another name"],
)
def test_a_hierarchy_that_is_not_only_larger_does_not_go_on(after: dict[str, list[str]]) -> None:
    before = from_tree({"all": [{"one": ["a", "b"]}, {"two": ["c"]}]})
    assert not grows_from(before, from_tree({"all": [{name: leaves} for name, leaves in after.items()]}))
