"""Specialization publishes one cut of each taxonomy that no safe step refines, reached by the best steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.anonymity import KAnonymity
from sequester.guarantees.requirement import Requirement
from sequester.methods.classes import Classes
from sequester.methods.specialize.refine import specialize
from strategies import Judge, Table, flat, hierarchies, members, promises_hold, tables

often = settings(max_examples=80, deadline=None)

any_domains = st.lists(hierarchies(), min_size=1, max_size=4)
# What a step saves is exact in these, so that which of two is better does not depend on the order of additions.
exact_domains = st.lists(hierarchies(sizes=(1, 2, 4, 8), most_levels=2, scale=64), min_size=1, max_size=4)

K5 = Requirement(KAnonymity(5))

Interval = tuple[int, int]
Cut = list[list[Interval]]  # per attribute
Cost = Callable[[Hierarchy, np.ndarray, Interval], float | Fraction]


def children(domain: Hierarchy, codes: np.ndarray, value: Interval) -> list[Interval]:
    """The parts of a value: the next groups down, or, of a number or date without levels, the halves of its records."""
    first, last = value
    if domain.kind in ("number", "date") and domain.height == 1:
        here = sorted(code for code in codes.tolist() if first <= code <= last)
        apart = domain.missing and last == domain.size - 1
        end = last - 1 if apart else min(here[(len(here) - 1) // 2], last - 1)
        return [(first, end), (end + 1, last)]
    for level in range(domain.height, -1, -1):
        groups = list(zip(*(bound.tolist() for bound in domain.bounds(level)), strict=True))
        parts = [(lo, hi) for lo, hi in groups if first <= lo and hi <= last]
        if len(parts) > 1:
            return parts
    raise AssertionError("a leaf has no parts")


def reachable(domain: Hierarchy, codes: np.ndarray) -> set[Interval]:
    """Every value of the taxonomy that steps from `*` can come to."""
    found, work = set(), [(0, domain.size - 1)]
    while work:
        value = work.pop()
        found.add(value)
        if value[1] > value[0] and occurs(codes, value):
            work += children(domain, codes, value)
    return found


def occurs(codes: np.ndarray, value: Interval) -> int:
    return int(((codes >= value[0]) & (codes <= value[1])).sum())


def is_safe(table: Table, judge: Judge, cut: Cut) -> bool:
    """Whether all classes are, when every code is published as the value of the cut that holds it."""

    def published(codes: np.ndarray) -> tuple[int, ...]:
        return tuple(
            next(first for first, last in values if first <= code <= last)
            for values, code in zip(cut, codes.tolist(), strict=True)
        )

    classes: dict[tuple[int, ...], list[int]] = {}
    for record, codes in enumerate(table.quasi.T):
        classes.setdefault(published(codes), []).append(record)
    people = Counter() if table.population is None else Counter(map(published, table.population.T))
    return bool(judge.safe(list(classes.values()), people=[people[key] for key in classes]).all())


def steps(table: Table, cut: Cut) -> Iterator[tuple[int, Interval, list[Interval], Cut]]:
    """Every value of the cut that has records and parts, with its parts and the cut that they make."""
    for attribute, values in enumerate(cut):
        for value in values:
            if value[1] > value[0] and occurs(table.quasi[attribute], value):
                parts = children(table.domains[attribute], table.quasi[attribute], value)
                finer = [*cut]
                finer[attribute] = sorted([*(v for v in values if v != value), *parts])
                yield attribute, value, parts, finer


def greedy(table: Table, cost: Cost) -> Cut:
    """Take the safe step that saves most, then the first attribute, then the first value, until there is none."""
    judge = table.judge()
    cut: Cut = [[(0, domain.size - 1)] for domain in table.domains]
    while True:
        found = []
        for attribute, value, parts, finer in steps(table, cut):
            domain, codes = table.domains[attribute], table.quasi[attribute]
            saved = cost(domain, codes, value) - sum(cost(domain, codes, part) for part in parts)
            found.append((-saved, attribute, value, finer))
        found.sort()
        saves = [-entry[0] for entry in found]
        # Between logarithms that are equal rounding would decide, and not the definition.
        assume(not any(isinstance(a, float) and a > 1e-9 and a - b < 1e-9 for a, b in pairwise(saves)))
        finer = next((entry[3] for entry in found if is_safe(table, judge, entry[3])), None)
        if finer is None:
            return cut
        cut = finer


def ncp(domain: Hierarchy, codes: np.ndarray, value: Interval) -> Fraction:
    first, last = value
    if domain.kind in ("number", "date"):
        width = Fraction(domain.position[last]) - Fraction(domain.position[first])
        return occurs(codes, value) * min(width, Fraction(1))
    return occurs(codes, value) * (Fraction(last - first + 1, domain.size) if last > first else Fraction(0))


def precision(domain: Hierarchy, codes: np.ndarray, value: Interval) -> Fraction:
    level = next(
        level
        for level in range(domain.height + 1)
        if any(lo <= value[0] and value[1] <= hi for lo, hi in zip(*domain.bounds(level), strict=True))
    )
    return Fraction(occurs(codes, value) * level, max(domain.height, 1))


def entropy(domain: Hierarchy, codes: np.ndarray, value: Interval) -> float:
    here = Counter(code for code in codes.tolist() if value[0] <= code <= value[1])
    return math.fsum(count * math.log2(sum(here.values()) / count) for count in here.values())


def published(classes: Classes) -> list[set[Interval]]:
    return [set(zip(lo.tolist(), hi.tolist(), strict=True)) for lo, hi in zip(classes.lo, classes.hi, strict=True)]


def completed(table: Table, values: list[set[Interval]]) -> Cut:
    """The published values with every code that no record has on its own: those are in no published value."""
    cut = []
    for domain, some in zip(table.domains, values, strict=True):
        held = {code for first, last in some for code in range(first, last + 1)}
        cut.append(sorted([*some, *((code, code) for code in range(domain.size) if code not in held)]))
    return cut


@pytest.mark.parametrize("loss", ["ncp", "precision", "entropy"])
@often
@given(table=tables(domains=any_domains))
def test_the_result_is_a_safe_cut_of_every_taxonomy_that_no_step_can_refine(loss, table: Table):
    table = table.loosened()
    classes = specialize(table.quasi, table.domains, table.guard, loss=loss)
    parts = members(classes)
    event("several classes" if len(parts) > 1 else "one class")
    assert sorted(record for part in parts for record in part) == list(range(table.records))
    assert all(parts)
    lo, hi = classes.lo[:, classes.member], classes.hi[:, classes.member]
    assert (lo <= table.quasi).all()
    assert (table.quasi <= hi).all()
    assert promises_hold(table, classes)
    values = published(classes)
    for domain, codes, some in zip(table.domains, table.quasi, values, strict=True):
        assert some <= reachable(domain, codes)
        leaves = [leaf for first, last in some for leaf in range(first, last + 1)]
        assert len(leaves) == len(set(leaves)), "a leaf is under two published values"
    assert len({tuple(box) for box in np.vstack([classes.lo, classes.hi]).T.tolist()}) == len(classes)
    cut, judge = completed(table, values), table.judge()
    assert is_safe(table, judge, cut)
    assert not any(is_safe(table, judge, finer) for *_, finer in steps(table, cut))


@pytest.mark.parametrize(("loss", "cost"), [("ncp", ncp), ("precision", precision), ("entropy", entropy)])
@often
@given(table=tables(domains=exact_domains))
def test_the_step_that_saves_most_is_taken_every_time(loss, cost, table: Table):
    table = table.loosened()
    classes = specialize(table.quasi, table.domains, table.guard, loss=loss)
    event("several classes" if len(classes) > 1 else "one class")
    expected = [
        {value for value in values if occurs(codes, value)}
        for values, codes in zip(greedy(table, cost), table.quasi, strict=True)
    ]
    assert published(classes) == expected


def test_values_no_record_has_do_not_stand_in_the_way():
    """All records in one leaf of a number without levels: halving goes on down to it, and any k is kept."""
    table = Table((flat(9, position=np.arange(9) / 8),), np.full((1, 5), 6, np.int32), np.zeros((0, 5), np.int32), K5)
    classes = specialize(table.quasi, table.domains, table.guard)
    assert (classes.lo.tolist(), classes.hi.tolist()) == ([[6]], [[6]])


@often
@given(tables(domains=any_domains))
def test_the_callers_arrays_are_left_as_they_were(table: Table):
    table = table.loosened()
    guard = table.guard
    arrays: tuple[Any, ...] = (table.quasi, guard.values, guard.population, *guard.limits[1:])
    before = [array.copy() for array in arrays]
    specialize(table.quasi, table.domains, guard)
    assert all(np.array_equal(was, now) for was, now in zip(before, arrays, strict=True))
