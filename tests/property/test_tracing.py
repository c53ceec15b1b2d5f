"""Record tracing against enumeration: every way to hand the rows of all releases to the people of their classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.attacks.finding import Semantics
from sequester.attacks.tracing import find
from series import Series, series

Row = tuple[int, int, int]  # release, class, value


def compatible(truth: Series, first: int, second: int) -> set[tuple[int, int]]:
    (lo, hi), (other_lo, other_hi) = truth.boxes[first], truth.boxes[second]
    return {
        (a, b)
        for a in range(lo.shape[1])
        for b in range(other_lo.shape[1])
        if (np.maximum(lo[:, a], other_lo[:, b]) <= np.minimum(hi[:, a], other_hi[:, b])).all()
    }


def owners(truth: Series) -> dict[Row, set[int]]:
    """Per row the people of its class who have its value in some world: everybody one value, every class its values."""
    people = [p for p in range(truth.member.shape[1]) if (truth.member[:, p] >= 0).any()]
    classes = {p: [(r, int(of[p])) for r, of in enumerate(truth.member) if of[p] >= 0] for p in people}
    left: dict[tuple[int, int], Counter[int]] = {}
    for p in people:
        for place in classes[p]:
            left.setdefault(place, Counter())[int(truth.value[p])] += 1
    found: dict[Row, set[int]] = {}
    world: dict[int, int] = {}

    def hand_out(number: int) -> None:
        if number == len(people):
            for p, value in world.items():
                for place in classes[p]:
                    found.setdefault((*place, value), set()).add(p)
            return
        p = people[number]
        for value in range(truth.values):
            if all(left[place][value] for place in classes[p]):
                for place in classes[p]:
                    left[place][value] -= 1
                world[p] = value
                hand_out(number + 1)
                for place in classes[p]:
                    left[place][value] += 1

    hand_out(0)
    return found


@given(series(people=(3, 8)), st.integers(2, 5))
@settings(max_examples=500, deadline=None)
def test_rows_with_too_few_owners_are_exactly_those_that_enumeration_finds(truth: Series, k: int) -> None:
    history = truth.history(k=k)
    result = find(history)
    if result.measure is None:
        assert len(history) < 2
        return
    worlds = owners(truth)
    exposed = {(history.values[row[2]], tuple(sorted(who))) for row, who in worlds.items() if len(who) < k}
    assert {(f.value, f.people) for f in result.findings} == exposed
    fewest = min(map(len, worlds.values()))
    assert min(result.measure, k) == min(fewest, k)
    assert result.measure <= fewest
    event("exposed" if exposed else "safe")


@given(series(deletions=False, releases=(2, 2)))
@settings(max_examples=100, deadline=None)
def test_whose_a_row_can_be_does_not_depend_on_bounds(truth: Series) -> None:
    history = truth.history(k=3, c=Fraction(1, 3))
    ordinary = replace(history, bounds=(Fraction(1), *history.bounds[1:]))
    assert [f.to_dict() for f in find(ordinary).findings] == [f.to_dict() for f in find(history).findings]


def printed(truth: Series, first: int, second: int) -> list[tuple[int, tuple[int, ...]]]:
    """Figure 10 and the rule for Figure 9 (ii), record by record: per record its value and its candidates."""
    before, after = truth.member[first], truth.member[second]
    pairs = compatible(truth, first, second)
    mine, others = np.flatnonzero(before >= 0).tolist(), np.flatnonzero(after >= 0).tolist()
    edges = {
        (r, q): "p" for r in mine for q in others if truth.value[r] == truth.value[q] and (before[r], after[q]) in pairs
    }
    reached = {r: [q for r_, q in edges if r_ == r] for r in mine}
    edges.update({(r, places[0]): "d" for r, places in reached.items() if len(places) == 1})
    while True:
        change1 = change2 = False
        for q in others:
            coming = {edge: mark for edge, mark in edges.items() if edge[1] == q}
            if set(coming.values()) == {"d", "p"}:
                change1 = True
                for edge, mark in coming.items():
                    if mark == "p":
                        del edges[edge]
        if change1:
            for r in mine:
                going = [edge for edge in edges if edge[0] == r]
                if len(going) == 1 and edges[going[0]] == "p":
                    edges[going[0]] = "d"
                    change2 = True
        if not change2:
            break
    for a in {int(before[r]) for r in mine}:
        for s in range(truth.values):
            records = [r for r in mine if before[r] == a and truth.value[r] == s]
            places = [q for q in others if truth.value[q] == s and (a, after[q]) in pairs]
            if len(records) == len(places):
                for r, q in zip(records, places, strict=True):
                    edges = {edge: mark for edge, mark in edges.items() if edge[0] != r} | {(r, q): "d"}
    return [
        (
            int(truth.value[r]),
            tuple(p for p in mine if before[p] == before[r] and after[p] in {after[q] for r_, q in edges if r_ == r}),
        )
        for r in mine
    ]


@given(series(), st.integers(2, 3))
@settings(max_examples=250, deadline=None)
def test_the_printed_reading_is_figure_10_record_by_record(truth: Series, k: int) -> None:
    history = truth.history(k=k)
    result = find(history, semantics="paper")
    records = []
    for second in range(len(truth.member)):
        for first in range(second):
            if not ((truth.member[first] >= 0) & (truth.member[second] < 0)).any():
                records += printed(truth, first, second)
    assert result.measure == (min(len(people) for _, people in records) if records else None)
    exposed = {(history.values[s], people) for s, people in records if len(people) < k}
    assert {(f.value, f.people) for f in result.findings} == exposed


@given(series(deletions=False), st.integers(2, 4))
@settings(max_examples=150, deadline=None)
def test_the_printed_reading_never_finds_fewer_candidates_than_there_are(truth: Series, k: int) -> None:
    history = truth.history(k=k)
    exact, paper = find(history).measure, find(history, semantics="paper").measure
    assert exact is not None
    assert paper is not None
    assert exact <= paper


@given(series(), st.sampled_from(["exact", "paper"]))
@settings(max_examples=30, deadline=None)
def test_without_known_people_the_attack_is_not_tried(truth: Series, semantics: Semantics) -> None:
    result = find(truth.history(known=False), semantics=semantics)
    assert (result.findings, result.measure) == ([], None)


@pytest.mark.parametrize("semantics", ["exact", "paper"])
def test_one_release_alone_cannot_be_traced(semantics: Semantics) -> None:
    truth = Series(np.zeros((3, 1), np.int32), np.zeros(3, np.int32), np.zeros((1, 3), np.int32),
                   ((np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32)),), 1, (1,))  # fmt: skip
    assert find(truth.history(), semantics=semantics).measure is None
