"""The deniability program against enumerated worlds, and every witness added up by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sequester.attacks import deniability
from sequester.attacks.finding import Finding
from sequester.attacks.solvers import program
from sequester.history import History
from series import Series, of_partitions, series

often = settings(max_examples=90, deadline=None)
seldom = settings(max_examples=50, deadline=None)
# Every value alone is deniable here, all together are not: random series rarely show that and nothing else.
jointly = example(
    of_partitions([[[0, 1, 3, 4, 7], [2, 5, 6]], [[1, 2, 4, 5, 7], [0, 3, 6]]], "aabbcacb"), Fraction(2, 5)
)
bounds = st.sampled_from([Fraction(1, 3), Fraction(2, 5), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4)])


def paths(one: Series) -> dict[tuple[int, ...], list[int]]:
    """People by the sequence of their classes."""
    found: dict[tuple[int, ...], list[int]] = {}
    for person in range(len(one.value)):
        path = tuple(one.member[:, person].tolist())
        if max(path) >= 0:
            found.setdefault(path, []).append(person)
    return found


def published(one: Series) -> dict[tuple[int, int, int], int]:
    """(release, class, value) -> count."""
    found = {}
    for release, member in enumerate(one.member):
        for number in range(int(member.max()) + 1):
            for value in range(one.values):
                found[release, number, value] = int(np.sum((member == number) & (one.value == value)))
    return found


def least_strain(one: Series, limits: list[Fraction]) -> float:
    """The smallest multiple of the bounds that admits expected numbers per trajectory: the whole program, plainly."""
    cells = [(path, value) for path in paths(one) for value in range(one.values)]
    place = {cell: number for number, cell in enumerate(cells)}
    equal, right = [], []
    for path, people in paths(one).items():
        equal.append([float(cell[0] == path) for cell in cells] + [0.0])
        right.append(len(people))
    for (release, number, value), count in published(one).items():
        equal.append([float(path[release] == number and s == value) for path, s in cells] + [0.0])
        right.append(count)
    above = []
    for path, people in paths(one).items():
        for value, limit in enumerate(limits):
            if limit < 1:
                row = [0.0] * (len(cells) + 1)
                row[place[path, value]], row[-1] = 1.0, -float(limit) * len(people)
                above.append(row)
    cost = [0.0] * len(cells) + [1.0]
    found = linprog(cost, A_ub=above, b_ub=[0.0] * len(above), A_eq=equal, b_eq=right, method="highs")
    assert found.status == 0
    return float(found.fun)


def worlds(one: Series) -> np.ndarray:
    """Every assignment of values to people that reproduces everything published."""
    counts = published(one)
    people = [person for persons in paths(one).values() for person in persons]
    found = []
    for values in product(range(one.values), repeat=len(people)):
        seen = dict.fromkeys(counts, 0)
        for person, value in zip(people, values, strict=True):
            for release, number in enumerate(one.member[:, person].tolist()):
                if number >= 0:
                    seen[release, number, value] += 1
        if seen == counts:
            found.append(values)
    return np.array(found)


def least_strain_of_worlds(one: Series, limit: Fraction) -> float:
    """The smallest multiple of the bound that some distribution over the worlds keeps for everybody."""
    every = worlds(one)
    above = [
        [*(every[:, person] == value).astype(float), -float(limit)]
        for person in range(every.shape[1])
        for value in range(one.values)
    ]
    cost = [0.0] * len(every) + [1.0]
    total = [[1.0] * len(every) + [0.0]]
    found = linprog(cost, A_ub=above, b_ub=[0.0] * len(above), A_eq=total, b_eq=[1.0], method="highs")
    assert found.status == 0
    return float(found.fun)


def check_by_hand(one: Series, history: History, finding: Finding, witness: Mapping[str, Any]) -> None:
    """Add and subtract the counts of the witness person by person, without trajectories or solver."""
    counts, people = published(one), range(len(one.value))
    factor = {(person, value): 0 for person in people for value in range(one.values)}
    letters = {name: code for code, name in enumerate(history.values)}
    total = 0
    for sign, rows in ((1, witness["added"]), (-1, witness["subtracted"])):
        for row in rows:
            release, number, value = row["release"] - 1, row["class"] - 1, letters[row["value"]]
            assert row["times"] > 0
            assert row["count"] == counts[release, number, value]
            total += sign * row["times"] * row["count"]
            for person in np.flatnonzero(one.member[release] == number).tolist():
                factor[person, value] += sign * row["times"]
    for row in witness["sizes"]:
        inside = people_of(one, row["classes"])
        assert len(inside) == row["people"]
        total += row["times"] * len(inside)
        for person, value in product(inside, range(one.values)):
            factor[person, value] += row["times"]
    impossible = set()
    for row in witness["absent"]:
        release, number, value = row["release"] - 1, row["class"] - 1, letters[row["value"]]
        assert counts[release, number, value] == 0
        impossible |= {(person, value) for person in np.flatnonzero(one.member[release] == number).tolist()}
    left = {pair: weight for pair, weight in factor.items() if weight > 0 and pair not in impossible}
    expected = {
        (person, letters[row["value"]]): row["times"]
        for row in witness["remaining"]
        for person in people_of(one, row["classes"])
    }
    assert left == expected
    assert total == witness["at_least"]
    allowed = sum(weight * history.bounds[value] for (_, value), weight in left.items())
    assert all(history.bounds[value] < 1 for _, value in left)
    assert float(allowed) == witness["allowed"]
    assert total > allowed
    assert {person for person, _ in left} == set(witness.get("people", finding.people))


def people_of(one: Series, classes: list[list[int]]) -> list[int]:
    wanted = {release - 1: number - 1 for release, number in classes}
    path = tuple(wanted.get(release, -1) for release in range(len(one.member)))
    return paths(one)[path]


@often
@jointly
@given(series(), bounds)
def test_there_are_findings_exactly_when_the_whole_program_has_no_solution(one, c):
    history = one.history(c=c)
    found, strain = deniability.find(history), least_strain(one, list(history.bounds))
    assert bool(found.findings) == (strain > 1 + 1e-7)
    assert found.measure <= strain * float(c) + 1e-6
    assert (found.measure > float(c)) == bool(found.findings)
    assert np.isclose(found.measure, min(1.0, strain * float(c)), atol=1e-6)


@seldom
@jointly
@given(series(people=(4, 12)), bounds)
def test_parts_that_are_solved_one_by_one_say_what_they_say_together(one, c):
    history = one.history(c=c)
    expected = deniability.find(history)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "_AT_ONCE", 1)
        found = deniability.find(history)
    assert found.measure == expected.measure
    assert bool(found.findings) == bool(expected.findings)
    for finding in found.findings:
        check_by_hand(one, history, finding, finding.witness)


@often
@jointly
@given(series(), bounds)
def test_every_witness_adds_up_by_hand(one, c):
    history = one.history(c=c)
    for finding in deniability.find(history).findings:
        check_by_hand(one, history, finding, finding.witness)
        if "wider" in finding.witness:
            check_by_hand(one, history, finding, finding.witness["wider"])
        assert finding.observed > finding.required == float(c)
        assert finding.observed <= least_strain(one, list(history.bounds)) * float(c) + 1e-9
        assert finding.releases == tuple(sorted({release for release, _ in finding.classes}))


@seldom
@jointly
@given(series(people=(2, 6)), bounds)
def test_a_finding_holds_under_every_belief_about_the_worlds(one, c):
    history = one.history(c=c)
    found, strain = deniability.find(history), least_strain_of_worlds(one, c)
    assert found.measure <= strain * float(c) + 1e-6
    if found.findings:
        assert strain > 1 + 1e-9


@seldom
@given(series(releases=(2, 2), values=(2, 2)), bounds)
def test_two_releases_and_two_values_are_decided_exactly(one, c):
    found = deniability.find(one.history(c=c))
    assert bool(found.findings) == (least_strain_of_worlds(one, c) > 1 + 1e-7)


@often
@given(series(), bounds, st.data())
def test_coarsening_the_last_release_never_adds_a_finding(one, c, data):
    assume(one.member[-1].max() > 0)
    classes = int(one.member[-1].max()) + 1
    target = np.array(data.draw(st.lists(st.integers(0, 1), min_size=classes, max_size=classes)))
    renumbered = np.unique(target, return_inverse=True)[1]
    member = one.member.copy()
    member[-1] = np.where(member[-1] >= 0, renumbered[member[-1]], -1)
    lo, hi = one.boxes[-1]
    count = renumbered.max() + 1
    wide = tuple(
        np.column_stack([pick(side[:, renumbered == number], axis=1) for number in range(count)]).astype(np.int32)
        for pick, side in ((np.min, lo), (np.max, hi))
    )
    coarse = replace(one, member=member, boxes=(*one.boxes[:-1], wide))
    fine = deniability.find(one.history(c=c))
    assert not deniability.find(coarse.history(c=c)).findings or fine.findings


@often
@given(series(values=(3, 4)), st.lists(bounds | st.just(Fraction(1)), min_size=4, max_size=4))
def test_every_value_has_its_own_bound_and_ordinary_values_have_none(one, limits):
    history = replace(one.history(), bounds=tuple(limits[: one.values]))
    found = deniability.find(history)
    if all(bound == 1 for bound in history.bounds):
        assert (found.findings, found.measure) == ([], None)
        return
    strain = least_strain(one, list(history.bounds))
    assert bool(found.findings) == (strain > 1 + 1e-7)
    for finding in found.findings:
        assert history.bounds[history.values.index(finding.value)] < 1
        check_by_hand(one, history, finding, finding.witness)


@seldom
@given(series(), bounds)
def test_nothing_is_found_where_the_trajectories_certify_the_values(one, c):
    history = one.history(c=c)
    if all(max(np.bincount(one.value[people])) <= c * len(people) for people in paths(one).values()):
        assert deniability.find(history).findings == []


@seldom
@jointly
@given(series(), bounds)
def test_the_answer_is_the_same_when_nobodys_value_is_known(one, c):
    history = one.history(c=c)
    unknown = replace(history, releases=(), trajectories=None, value=None)
    for release in history.releases:
        unknown = unknown.extend(replace(release, value=None))
    assert unknown.value is None
    known, blind = deniability.find(history), deniability.find(unknown)
    assert bool(known.findings) == bool(blind.findings)
    for finding in blind.findings:
        check_by_hand(one, unknown, finding, finding.witness)


def test_without_people_or_with_changing_values_there_is_nothing_to_try():
    one = of_partitions([[[0, 1], [2, 3]], [[0, 2], [1, 3]]], "abba")
    assert deniability.find(one.history(known=False)).measure is None
    assert deniability.find(replace(one.history(), permanent=False)).measure is None
    assert deniability.find(replace(one.history(), releases=(), trajectories=None, value=None)).measure is None


def test_a_class_whose_published_values_are_outdated_is_left_out():
    before, after = (of_partitions([[[0, 1], [2, 3]]], text) for text in ("abab", "abac"))
    history = replace(before.history(), values=("a", "b", "c"), bounds=(Fraction(1, 2),) * 3)
    first = before.publication(0)
    history = replace(history, releases=(), trajectories=None, value=None)
    history = history.extend(replace(first, counts=np.pad(first.counts, ((0, 0), (0, 1)))))
    history = history.extend(after.publication(0))
    assert deniability.find(history).findings == []


def test_contradictory_classes_hide_nobody_else():
    # 0 and 1 are published as a, b and then as c, d; 2 is the newcomer of a class with a value of its own.
    one = of_partitions([[[0, 1], [3, 4]], [[0, 1], [2, 3, 4]]], "abeab")
    history = replace(one.history(), releases=(), trajectories=None, value=None)
    first, second = one.publication(0), one.publication(1)
    counts = second.counts.copy()
    counts[0] = [0, 0, 1, 1, 0]
    history = history.extend(replace(first, value=None)).extend(replace(second, value=None, counts=counts))
    assert [finding.people for finding in deniability.find(history).findings] == [(2,)]
