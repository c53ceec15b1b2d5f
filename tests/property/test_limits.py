"""The compiled decision about one class equals the plain criteria, for every criterion and every view."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from sequester.errors import PolicyError
from sequester.guarantees.anonymity import KAnonymity, KMap
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import AlphaK, Confidence, bounds_of
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Protected, Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.full_domain.part_kernels import most_kept
from sequester.methods.loops.tree import safe_classes
from strategies import SENSITIVE, Table, flat, tables

often = settings(max_examples=120, deadline=None)


def safe(counts: np.ndarray, size: int, limits: Limits) -> bool:
    """The compiled decision about one class with these counts, each view's of everybody in it."""
    views = [np.repeat(np.arange(first, last), counts[first:last]) for first, last in pairwise(limits.first)]
    values = np.ascontiguousarray(np.array(views, np.int32).reshape(len(views), size).T)
    return bool(safe_classes(np.zeros(size, np.int64), values, 1, limits)[0])


def flat_counts(guard: ClassGuard, records: np.ndarray) -> np.ndarray:
    """The values of all views side by side, as the compiled loops count them."""
    return np.bincount(guard.values[records].ravel(), minlength=guard.limits.numerator.size).astype(np.int64)


@often
@given(tables(domains=st.just((flat(2),)), most_records=40, with_population=False), st.data())
def test_a_class_is_safe_exactly_when_every_criterion_of_every_view_holds(table: Table, data):
    guard = table.guard
    member = np.array(data.draw(st.lists(st.integers(0, 4), min_size=table.records, max_size=table.records)))
    parts = [np.flatnonzero(member == number) for number in np.unique(member)]
    found = [safe(flat_counts(guard, part), len(part), guard.limits) for part in parts]
    assert found == table.judge().safe(parts).tolist()
    assert all(found) == all(outcome.holds for outcome in table.requirement.check(member, table.sensitive))


def single(values: int, **criteria) -> Requirement:
    """A requirement over one sensitive attribute."""
    k = criteria.pop("k", KAnonymity(1))
    domain = next(domain for domain in SENSITIVE if domain.size == values)
    return Requirement(k, None, (Protected("s", domain, tuple(criteria.values())),))


NAMES = [f"s{index}" for index in range(5)]
LEVELS = next(domain.starts for domain in SENSITIVE if domain.size == 5)
CASES = {
    "k": single(5, k=KAnonymity(7)),
    "confidence": single(5, confidence=Confidence.uniform(0.4, 5)),
    "confidence per value": single(
        5, confidence=Confidence(bounds_of({"s0": 0.1, "s1": 1 / 3, "*": 0.7}, NAMES, ordinary=["s4"]))
    ),
    "confidence without ordinary": single(5, confidence=Confidence(bounds_of(0.3, NAMES, ordinary=["s0", "s2"]))),
    "alpha": single(5, alpha=AlphaK.of(0.45, NAMES)),
    "alpha of named values": single(5, alpha=AlphaK.of({"s1": 0.2, "s3": 0.25}, NAMES)),
    "alpha and confidence": single(
        5, alpha=AlphaK.of({"s1": 0.2}, NAMES), confidence=Confidence.uniform(0.5, 5), k=KAnonymity(3)
    ),
    "distinct": single(5, diversity=DistinctDiversity(3)),
    "distinct, not whole": single(5, diversity=DistinctDiversity(2.1)),
    "entropy": single(5, diversity=EntropyDiversity(2)),
    "entropy of one": single(5, diversity=EntropyDiversity(1)),
    **{
        f"recursive {c} {first}": single(5, diversity=RecursiveDiversity.of(c, first))
        for c, first in [(0.5, 1), (3.0, 1), (1.0, 2), (1.7, 3), (4.0, 5), (9.0, 6)]
    },
    **{
        f"closeness {distance} {t}": single(5, closeness=TCloseness(t, distance, levels=LEVELS))
        for distance in ("equal", "ordered", "hierarchical")
        for t in (0.0, 0.15, 0.4)
    },
}  # fmt: skip


@pytest.mark.parametrize("requirement", CASES.values(), ids=CASES)
@settings(max_examples=25, deadline=None)
@given(
    table=st.lists(st.integers(0, 6), min_size=5, max_size=5).filter(any),
    counts=st.lists(st.one_of(st.integers(0, 6), st.integers(0, 10**6)), min_size=5, max_size=5).filter(any),
    alike=st.booleans(),
)
def test_each_criterion_alone_decides_any_counts_as_its_definition_does(requirement, table, counts, alike):
    counts = np.array(table if alike else counts, np.int64) * (3 if alike else 1)
    sensitive = np.repeat(np.arange(5, dtype=np.int32), table)[None, :]
    view = requirement.views(sensitive)[0]
    expected = all(c.holds(counts[None, :])[0] for c in (requirement.k, *view.criteria))
    assert safe(counts, counts.sum(), ClassGuard.of(requirement, sensitive).limits) == expected


@njit
def bound(counts, size, limits, slack):
    """What the search of levels reads off a class: no more of it can be in safe parts."""
    return most_kept(counts, size, limits, slack)


few = st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any).map(np.array)


def largest_safe(requirement: Requirement, counts: np.ndarray, others: np.ndarray, fewest: int) -> int:
    """The most records of a class that are safe where they and these others are published, or 0; `fewest` or more."""
    largest = 0
    for choice in product(*(range(count + 1) for count in counts.tolist())):
        chosen = np.array(choice)
        if chosen.sum() <= largest or chosen.sum() < fewest:
            continue
        view = requirement.views(np.repeat(np.arange(5, dtype=np.int32), others + chosen)[None, :])[0]
        if all(criterion.holds(chosen[None, :])[0] for criterion in (requirement.k, *view.criteria)):
            largest = int(chosen.sum())
    return largest


@pytest.mark.parametrize("requirement", CASES.values(), ids=CASES)
@settings(max_examples=60, deadline=None)
@given(few, st.lists(st.integers(0, 40), min_size=5, max_size=5).map(np.array), st.sampled_from([0, 0, 2]), st.data())
def test_no_safe_choice_of_a_class_is_larger_than_the_search_believes(requirement, counts, others, gone, data):
    """Where others are left out, too, closeness compares with a table that is not the one the search looks at."""
    total = counts.sum() + others.sum()
    guard = ClassGuard.of(requirement, np.repeat(np.arange(5, dtype=np.int32), counts + others)[None, :])
    published = others - np.minimum(others, [data.draw(st.integers(0, gone)) for _ in range(5)])
    also = data.draw(st.integers(0, int(counts.sum()) - 1))
    most = bound(counts, counts.sum(), guard.limits, (others.sum() - published.sum() + also) / total)
    assert largest_safe(requirement, counts, published, counts.sum() - also) <= most <= counts.sum()


@pytest.mark.parametrize("case", [name for name in CASES if "closeness" not in name])
@settings(max_examples=20, deadline=None)
@given(few)
def test_of_a_class_the_search_believes_little_more_safe_than_is(case, counts):
    """A cap on counts is a whole number: up to one record of each value may be too many."""
    requirement = CASES[case]
    guard = ClassGuard.of(requirement, np.repeat(np.arange(5, dtype=np.int32), counts)[None, :])
    largest = largest_safe(requirement, counts, np.zeros(5, np.int64), 1)
    most = bound(counts, counts.sum(), guard.limits, 1.0)
    assert most - largest < (5 if "entropy" in case or "recursive" in case else 1)
    assert not most or most >= requirement.k.k


def test_a_k_map_without_a_population_has_no_guard():
    requirement = replace(single(2), k_map=KMap(2))
    with pytest.raises(PolicyError, match="k_map needs a population table"):
        ClassGuard.of(requirement, np.zeros((1, 3), np.int32))
