"""The intersection attack against every subset of releases, and the posterior against every world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sequester.attacks import intersection
from sequester.attacks.finding import Finding, Semantics
from sequester.attacks.intersection import posterior
from sequester.history import History
from series import Series, certain_pairs, of_partitions, series

BOUNDS = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), Fraction(1)])
LONGER = series(releases=(2, 4), people=(2, 9), values=(2, 4))


def with_bounds(data: st.DataObject, history: History) -> History:
    bounds = data.draw(st.lists(BOUNDS, min_size=len(history.values), max_size=len(history.values)))
    return replace(history, bounds=tuple(bounds))


def published(history: History, release: int, number: int) -> Counter[int]:
    return Counter(dict(enumerate(history.releases[release].counts[number].tolist())))


def meet(bags: Iterable[Counter[int]], *, as_set: bool = False) -> Counter[int]:
    first, *rest = ((Counter(dict.fromkeys(+bag, 1)) if as_set else +bag) for bag in bags)
    for bag in rest:
        first &= bag
    return first


def shares(left: Counter[int]) -> dict[int, Fraction]:
    return {value: Fraction(count, left.total()) for value, count in left.items()}


def worst_shares(history: History, thetas: Iterable[list[tuple[int, int]]], *, as_set: bool) -> dict[int, Fraction]:
    """Per value the largest share in any of the given sets of (release, class)."""
    worst: dict[int, Fraction] = {}
    for theta in thetas:
        for value, share in shares(meet([published(history, *place) for place in theta], as_set=as_set)).items():
            worst[value] = max(share, worst.get(value, Fraction(0)))
    return worst


def places(truth: Series, person: int) -> list[tuple[int, int]]:
    column = truth.member[:, person]
    return [(release, int(column[release])) for release in range(len(column)) if column[release] >= 0]


def subsets(of: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    for size in range(2, len(of) + 1):
        yield from map(list, combinations(of, size))


def prefixes(of: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    for size in range(2, len(of) + 1):
        yield of[:size]


def exposed(findings: list[Finding], history: History) -> dict[tuple[int, int], float]:
    """(person, value) -> observed; nobody is told twice about one value."""
    found: dict[tuple[int, int], float] = {}
    for finding in findings:
        value = history.values.index(finding.value)
        for person in finding.people:
            assert (person, value) not in found
            found[person, value] = finding.observed
    return found


def check_witness(finding: Finding, history: History, *, as_set: bool = False) -> None:
    left = meet([published(history, r - 1, c - 1) for r, c in finding.classes], as_set=as_set)
    assert finding.witness["meet"] == {history.values[value]: count for value, count in left.items()}
    share = shares(left)[history.values.index(finding.value)]
    assert Fraction(finding.witness["share"]) == share
    assert finding.observed == float(share)
    assert finding.required == float(history.bounds[history.values.index(finding.value)])
    assert finding.releases == tuple(release for release, _ in finding.classes)
    assert len(finding.releases) >= 2
    assert finding.adversary == "neighbor"


@pytest.mark.parametrize("as_set", [False, True])
@pytest.mark.parametrize("semantics", ["exact", "paper"])
@settings(max_examples=250, deadline=None)
@given(truth=LONGER, data=st.data())
def test_exposed_people_are_those_of_every_subset_of_releases(
    truth: Series, data: st.DataObject, as_set: bool, semantics: Semantics
) -> None:
    history = with_bounds(data, truth.history())
    result = intersection.find(history, semantics=semantics, reading="set" if as_set else "multiset")
    expected: dict[tuple[int, int], float] = {}
    largest = Fraction(0)
    together = False
    for person in range(len(truth.value)):
        where = places(truth, person)
        together |= len(where) >= 2
        thetas = subsets(where) if semantics == "exact" else prefixes(where)
        for value, share in worst_shares(history, thetas, as_set=as_set).items():
            if history.bounds[value] < 1:
                largest = max(largest, share)
            if share > history.bounds[value]:
                expected[person, value] = float(share)
    assert exposed(result.findings, history) == expected
    assert result.measure == (float(largest) if together else None)
    for finding in result.findings:
        check_witness(finding, history, as_set=as_set)
        for person in finding.people:
            assert set(finding.classes) <= {(r + 1, c + 1) for r, c in places(truth, person)}
        assert finding.witness["people"] == len(finding.people)


@settings(max_examples=150, deadline=None)
@given(truth=LONGER)
def test_no_release_of_a_finding_can_be_left_out_without_losing_share(truth: Series) -> None:
    history = truth.history()
    for finding in intersection.find(history).findings:
        if len(finding.classes) == 2:
            continue
        value = history.values.index(finding.value)
        for left_out in finding.classes:
            fewer = [(r - 1, c - 1) for r, c in finding.classes if (r, c) != left_out]
            share = shares(meet([published(history, *place) for place in fewer])).get(value, Fraction(0))
            assert share < Fraction(finding.witness["share"])


@settings(max_examples=200, deadline=None)
@given(truth=LONGER, data=st.data())
def test_without_people_two_classes_are_combined_if_somebody_is_certain_to_be_in_both(
    truth: Series, data: st.DataObject
) -> None:
    history = with_bounds(data, truth.history(known=False))
    result = intersection.find(history)
    expected: dict[tuple[tuple[tuple[int, int], ...], int], float] = {}
    largest = Fraction(0)
    certain = False
    for i, j in combinations(range(len(history)), 2):
        for a, b in certain_pairs(history, i, j):
            certain = True
            for value, share in shares(meet([published(history, i, a), published(history, j, b)])).items():
                if history.bounds[value] < 1:
                    largest = max(largest, share)
                if share > history.bounds[value]:
                    expected[((i + 1, a + 1), (j + 1, b + 1)), value] = float(share)
    assert {(f.classes, history.values.index(f.value)): f.observed for f in result.findings} == expected
    assert len(result.findings) == len(expected)
    assert result.measure == (float(largest) if certain else None)
    for finding in result.findings:
        check_witness(finding, history)
        assert finding.people == ()


@settings(max_examples=150, deadline=None)
@given(truth=LONGER, links=st.booleans())
def test_a_release_published_twice_tells_no_more_than_once(truth: Series, links: bool) -> None:
    history = truth.history(known=False)
    once = history.releases[0]
    highest = Fraction(int(10**6 * (once.counts / once.size[:, None]).max()) + 1, 10**6)
    twice = replace(
        history,
        releases=(once, once, once),
        links=np.full(len(history.links), links),
        bounds=(min(highest, Fraction(1)),) * len(history.values),
    )
    assert not intersection.find(twice).findings


@settings(max_examples=200, deadline=None)
@given(truth=series(releases=(2, 3), people=(3, 8), values=(2, 4)), data=st.data())
def test_coarsening_the_last_release_breaks_no_bound_in_the_set_reading(truth: Series, data: st.DataObject) -> None:
    classes = truth.boxes[-1][0].shape[1]
    assume(classes >= 2)
    kept, gone = data.draw(st.permutations(range(classes)).map(lambda order: sorted(order[:2])))
    number = np.array([(kept if c == gone else c) - (c > gone) for c in range(classes)], np.int32)
    lo, hi = (side.copy() for side in truth.boxes[-1])
    lo[:, kept], hi[:, kept] = np.minimum(lo[:, kept], lo[:, gone]), np.maximum(hi[:, kept], hi[:, gone])
    member = truth.member.copy()
    member[-1] = np.where(member[-1] >= 0, number[member[-1]], -1)
    merged = (np.delete(lo, gone, axis=1), np.delete(hi, gone, axis=1))
    coarse = replace(truth, member=member, boxes=(*truth.boxes[:-1], merged))
    fine_measure = intersection.find(truth.history(), reading="set").measure
    coarse_measure = intersection.find(coarse.history(), reading="set").measure
    assert (coarse_measure or 0) <= (fine_measure or 0)


def worlds(first: list[int], second: list[int], shared: int) -> list[tuple[int, ...]]:
    """Every way to give values to the people of two classes; the first `shared` people are in both."""
    one, other = sum(first), sum(second)
    found = []
    for world in product(range(len(first)), repeat=one + other - shared):
        in_first, in_second = Counter(world[:one]), Counter(world[:shared] + world[one:])
        if all(in_first[s] == n for s, n in enumerate(first)) and all(in_second[s] == n for s, n in enumerate(second)):
            found.append(world)
    return found


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_posterior_is_the_share_of_worlds(data: st.DataObject) -> None:
    values = data.draw(st.integers(1, 3))
    counts = st.lists(st.integers(0, 2), min_size=values, max_size=values).filter(lambda c: 0 < sum(c) <= 4)
    first, second = data.draw(counts), data.draw(counts)
    shared = data.draw(st.integers(1, min(sum(first), sum(second))))
    found = worlds(first, second, shared)
    chances = posterior(first, second, shared=shared)
    if not found:
        assert chances == (0,) * values
    else:
        assert chances == tuple(Fraction(sum(world[0] == s for world in found), len(found)) for s in range(values))


@settings(max_examples=100, deadline=None)
@given(truth=series(people=(2, 6)), data=st.data())
def test_posterior_findings_are_the_pairs_of_classes_with_too_large_a_share_of_worlds(
    truth: Series, data: st.DataObject
) -> None:
    history = with_bounds(data, truth.history())
    result = intersection.find(history, reading="posterior")
    expected: dict[tuple[tuple[tuple[int, int], ...], int], tuple[float, tuple[int, ...]]] = {}
    chances: list[Fraction] = []
    for i, j in combinations(range(len(history)), 2):
        for a, b in {(int(x), int(y)) for x, y in truth.member[[i, j]].T if x >= 0 and y >= 0}:
            both = np.flatnonzero((truth.member[i] == a) & (truth.member[j] == b))
            first, second = (history.releases[r].counts[c].tolist() for r, c in ((i, a), (j, b)))
            found = worlds(first, second, len(both))
            for value, bound in enumerate(history.bounds):
                chance = Fraction(sum(world[0] == value for world in found), len(found))
                if bound < 1:
                    chances.append(chance)
                if chance > bound:
                    expected[((i + 1, a + 1), (j + 1, b + 1)), value] = (float(chance), tuple(both.tolist()))
    assert {(f.classes, history.values.index(f.value)): (f.observed, f.people) for f in result.findings} == expected
    assert len(result.findings) == len(expected)
    if chances:
        assert result.measure == float(max(chances))


def test_one_release_alone_cannot_be_intersected() -> None:
    history = History(
        attribute="s",
        values=("a",),
        k=1,
        bounds=(Fraction(1, 2),),
        domains=(),
        quasi_names=(),
        links=np.ones(0, np.bool_),
    )
    assert intersection.find(history).measure is None


def test_the_posterior_reading_has_no_paper_version() -> None:
    history = of_partitions([[[0, 1]], [[0, 1]]], "ab").history()
    with pytest.raises(ValueError, match="not in the paper"):
        intersection.find(history, semantics="paper", reading="posterior")
    assert intersection.find(replace(history, permanent=False)).measure is None
