"""Record tracing against enumeration: every way to match the rows of one release to those of a later one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sequester.attacks.blocks import blocks_of
from sequester.attacks.flow import INFINITE, max_flow
from sequester.attacks.tracing import find, search
from series import Series, series

LEFT = -1
Group = tuple[int, int]  # earlier class, value
World = Counter  # (earlier class, value, later class) -> rows


def compatible(truth: Series, first: int, second: int) -> set[tuple[int, int]]:
    (lo, hi), (other_lo, other_hi) = truth.boxes[first], truth.boxes[second]
    return {
        (a, b)
        for a in range(lo.shape[1])
        for b in range(other_lo.shape[1])
        if (np.maximum(lo[:, a], other_lo[:, b]) <= np.minimum(hi[:, a], other_hi[:, b])).all()
    }


def worlds(truth: Series, first: int, second: int) -> set[frozenset]:
    """All ways the rows of the first release can be in the second one, or have left: as many per class as did."""
    before, after = truth.member[first], truth.member[second]
    rows = [(int(before[p]), int(truth.value[p])) for p in np.flatnonzero(before >= 0)]
    places = Counter((int(after[p]), int(truth.value[p])) for p in np.flatnonzero(after >= 0))
    left = Counter(int(before[p]) for p in np.flatnonzero((before >= 0) & (after < 0)))
    pairs = compatible(truth, first, second)
    found: set[frozenset] = set()

    def place(number: int, world: Counter) -> None:
        if number == len(rows):
            if not +left:
                found.add(frozenset(world.items()))
            return
        a, s = rows[number]
        for b in {b for a_, b in pairs if a_ == a and places[b, s]}:
            places[b, s] -= 1
            place(number + 1, world + Counter([(a, s, b)]))
            places[b, s] += 1
        if left[a]:
            left[a] -= 1
            place(number + 1, world + Counter([(a, s, LEFT)]))
            left[a] += 1

    place(0, Counter())
    return found


def subsets(items: set[int]) -> Iterator[frozenset[int]]:
    some = sorted(items)
    return map(frozenset, chain.from_iterable(combinations(some, n) for n in range(1, len(some) + 1)))


class Pair:
    """What enumeration says about two releases: per row group, its feasible places and rows in any set of them."""

    def __init__(self, truth: Series, first: int, second: int) -> None:
        self.truth, self.first, self.second = truth, first, second
        self.worlds = [Counter(dict(world)) for world in worlds(truth, first, second)]
        self.feasible: dict[Group, set[int]] = {}
        for world in self.worlds:
            for a, s, b in world:
                self.feasible.setdefault((a, s), set()).add(b)

    def rows(self, group: Group, places: frozenset[int]) -> set[int]:
        return {sum(world[*group, b] for b in places) for world in self.worlds}

    def people(self, group: Group, places: frozenset[int]) -> tuple[int, ...]:
        before, after = self.truth.member[self.first], self.truth.member[self.second]
        return tuple(p for p in range(len(before)) if before[p] == group[0] and int(after[p]) in places)

    def certain_sets(self) -> Iterator[tuple[Group, frozenset[int]]]:
        """The smallest sets of places that hold the same number of rows of a group in every world."""
        for group, places in self.feasible.items():
            sure = [some for some in subsets(places) if len(self.rows(group, some)) == 1]
            yield from ((group, some) for some in sure if not any(other < some for other in sure))

    def overfull(self, bound: Fraction) -> set[Group]:
        return {
            group
            for group, places in self.feasible.items()
            for some in subsets(places)
            if min(self.rows(group, some)) > bound * len(self.people(group, some))
        }


def pairs_of(truth: Series) -> list[Pair]:
    count = len(truth.member)
    return [Pair(truth, first, second) for second in range(count) for first in range(second)]


@given(series(), st.integers(2, 4))
@settings(max_examples=250, deadline=None)
def test_rows_with_too_few_owners_are_exactly_those_that_enumeration_finds(truth: Series, k: int) -> None:
    history = truth.history(k=k)
    result = search(history, certify=False)
    exposed: set[tuple[str, tuple[int, ...]]] = set()
    fewest = []
    for pair in pairs_of(truth):
        for group, places in pair.certain_sets():
            owners = pair.people(group, places)
            fewest.append(len(owners))
            if len(owners) < k:
                exposed.add((history.values[group[1]], owners))
    assert {(f.value, f.people) for f in result.findings if "certain" not in f.witness} == exposed
    assert result.measure == (min(fewest) if fewest else None)
    event("exposed" if exposed else "safe")


@given(series(), st.integers(2, 4))
@settings(max_examples=100, deadline=None)
def test_nobody_has_more_candidates_than_all_feasible_places_hold(truth: Series, k: int) -> None:
    measure = search(truth.history(k=k), certify=False).measure
    for pair in pairs_of(truth):
        for group, places in pair.feasible.items():
            assert measure is not None
            assert measure <= len(pair.people(group, frozenset(places)))


@given(series(releases=(2, 2), people=(3, 8), values=(2, 2)), st.sampled_from(["1/2", "1/3", "2/3", "3/4", "2/5"]))
@settings(max_examples=350, deadline=None)
def test_overfull_places_are_exactly_those_that_enumeration_finds(truth: Series, bound: str) -> None:
    c = Fraction(bound)
    history = truth.history(c=c)
    found = [f for f in search(history, certify=False).findings if "certain" in f.witness]
    pair = Pair(truth, 0, 1)
    assert {(f.witness["row"][1] - 1, history.values.index(f.value)) for f in found} == pair.overfull(c)
    for finding in found:
        group = (finding.witness["row"][1] - 1, history.values.index(finding.value))
        places = frozenset(LEFT if b is None else b - 1 for b in finding.witness["feasible"])
        assert min(pair.rows(group, places)) >= finding.witness["certain"]
        assert finding.people == pair.people(group, places)
        assert finding.witness["certain"] > c * len(finding.people)
    event("overfull by choice" if any(len(f.witness["feasible"]) > 1 for f in found) else "no choice")


@given(series(people=(2, 9)), st.integers(1, 3), st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1)]))
@settings(max_examples=300, deadline=None)
def test_the_certificate_changes_no_finding_and_no_measure_below_k(truth: Series, k: int, c: Fraction) -> None:
    history = truth.history(k=k, c=c)
    quick, slow = search(history), search(history, certify=False)
    assert [f.to_dict() for f in quick.findings] == [f.to_dict() for f in slow.findings]
    if quick.measure is None or slow.measure is None:
        assert quick.measure == slow.measure
        return
    assert min(quick.measure, k) == min(slow.measure, k)
    assert quick.measure <= slow.measure
    event("certified" if not quick.findings else "found")


@given(series(deletions=False, releases=(2, 2)))
@settings(max_examples=150, deadline=None)
def test_an_ordinary_value_yields_no_confidence_finding_and_all_identity_findings(truth: Series) -> None:
    history = truth.history(k=3, c=Fraction(1, 3))
    ordinary = replace(history, bounds=(Fraction(1), *history.bounds[1:]))
    expected = [f.to_dict() for f in find(history).findings if not ("certain" in f.witness and f.value == "a")]
    assert [f.to_dict() for f in find(ordinary).findings] == expected


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
    exact, paper = search(history, certify=False).measure, find(history, semantics="paper").measure
    assert exact is not None
    assert paper is not None
    assert exact <= paper


@given(series(), st.sampled_from(["exact", "paper"]))
@settings(max_examples=30, deadline=None)
def test_without_known_people_the_attack_is_not_tried(truth: Series, semantics: str) -> None:
    result = find(truth.history(known=False), semantics=semantics)
    assert (result.findings, result.measure) == ([], None)


@pytest.mark.parametrize("semantics", ["exact", "paper"])
def test_one_release_alone_cannot_be_traced(semantics: str) -> None:
    truth = Series(np.zeros((3, 1), np.int32), np.zeros(3, np.int32), np.zeros((1, 3), np.int32),
                   ((np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32)),), 1, (1,))  # fmt: skip
    assert find(truth.history(), semantics=semantics).measure is None


def capped_flow_ships_all(truth: Series, group: Group, bound: Fraction) -> bool:
    """Whether every row with the group's value finds a place when the group itself keeps to the bound everywhere."""
    before, after, (a, s) = truth.member[0], truth.member[1], group
    here = truth.value == s
    classes, later = truth.boxes[0][0].shape[1], truth.boxes[1][0].shape[1]
    source, sink = classes + later, classes + later + 1
    scale = bound.denominator
    arcs = [(source, c, scale * int((here & (before == c)).sum())) for c in range(classes)]
    arcs += [(classes + b, sink, scale * int((here & (after == b)).sum())) for b in range(later)]
    for c, b in compatible(truth, 0, 1):
        cap = bound.numerator * int(((before == c) & (after == b)).sum())
        arcs.append((c, classes + b, cap if c == a else INFINITE))
    return max_flow(*zip(*arcs, strict=True), source, sink)[0] == scale * int((here & (before >= 0)).sum())


@given(
    series(releases=(2, 2), people=(10, 40), values=(2, 3), deletions=False, attributes=(1, 2)),
    st.sampled_from(["1/2", "1/3", "2/5", "3/10"]),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_overfull_row_groups_are_those_whose_capped_flow_is_infeasible(truth: Series, bound: str) -> None:
    c = Fraction(bound)
    history = truth.history(c=c)
    found = {f.witness["row"][1:] for f in search(history, certify=False).findings if "certain" in f.witness}
    before = truth.member[0]
    groups = {(int(before[p]), int(truth.value[p])) for p in np.flatnonzero(before >= 0)}
    violating = {(a + 1, history.values[s]) for a, s in groups if not capped_flow_ships_all(truth, (a, s), c)}
    assert found == violating


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] != e[1]), max_size=14))
@settings(max_examples=300, deadline=None)
def test_edges_at_a_node_are_in_one_block_iff_their_ends_stay_connected_without_it(edges: list[Group]) -> None:
    found = blocks_of(*np.array(edges, np.int64).reshape(-1, 2).T)
    for node in range(8):
        part = {other: {other} for other in range(8) if other != node}
        for one, other in edges:
            if node not in (one, other):
                joined = part[one] | part[other]
                part.update(dict.fromkeys(joined, joined))
        mine = [(number, one + other - node) for number, (one, other) in enumerate(edges) if node in (one, other)]
        for (first, end), (second, other_end) in combinations(mine, 2):
            assert (found[first] == found[second]) == (other_end in part[end])
