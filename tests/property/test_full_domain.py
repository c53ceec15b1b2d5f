"""Full-domain recoding is the best of all nodes of the lattice, each looked at plainly, for every loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError, PolicyError
from sequester.guarantees.anonymity import KAnonymity, KMap
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import AlphaK, Confidence
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Protected, Requirement
from sequester.methods.cells import classify
from sequester.methods.classes import Classes
from sequester.methods.full_domain.search import full_domain
from sequester.metrics.loss import losses
from strategies import SENSITIVE, Table, flat, hierarchies, partition, promises_hold, tables

LOSSES = ("ncp", "ail", "dm", "class-size", "precision", "entropy")
MOST_NODES = 200

Node = tuple[int, ...]


def small(domains: Sequence[Hierarchy]) -> list[Hierarchy]:
    """The first of these domains, as many as keep the lattice small."""
    kept: list[Hierarchy] = []
    for domain in domains:
        if math.prod(d.height + 1 for d in (*kept, domain)) <= MOST_NODES:
            kept.append(domain)
    return kept


lattices = st.lists(hierarchies(most_levels=4), min_size=2, max_size=4).map(small)
suppressions = st.sampled_from([0.0, 0.1, 0.3, 1.0])


@dataclass(frozen=True)
class Recoded:
    """The table at one node: boxes and sizes of the published classes, and how many records are left out."""

    lo: np.ndarray
    hi: np.ndarray
    size: np.ndarray
    suppressed: int
    classes: list[list[int]]

    def cost(self, loss: str, table: Table) -> float:
        """By the definitions of the metrics; less is better for all."""
        if loss == "class-size" and not self.classes:
            return math.inf
        found = losses(self, table.domains, suppressed=self.suppressed, quasi=table.quasi)
        return -found["precision"] if loss == "precision" else found[loss.replace("-", "_")]


def recode(table: Table, node: Node) -> Recoded:
    """Publish one group of a level for every value; leave out classes that are unsafe, until none is."""
    required = table.requirement
    sides = []
    for domain, level in zip(table.domains, node, strict=True):
        group = [max(s for s in domain.starts[level].tolist() if s <= leaf) for leaf in range(domain.size)]
        sides.append([(g, max(leaf for leaf in range(domain.size) if group[leaf] == g)) for g in group])

    def box(codes: np.ndarray) -> tuple[tuple[int, int], ...]:
        return tuple(side[code] for side, code in zip(sides, codes.tolist(), strict=True))

    classes: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for record, codes in enumerate(table.quasi.T):
        classes.setdefault(box(codes), []).append(record)
    people = Counter() if table.population is None else Counter(map(box, table.population.T))
    while True:
        unsafe = {key for key, records in classes.items() if len(records) < required.k.k}
        if required.k_map is not None:
            unsafe |= {key for key in classes if people[key] < required.k_map.k}
        # Closeness compares with what is published.
        published = sorted(record for records in classes.values() for record in records)
        place = {record: index for index, record in enumerate(published)}
        for view in required.views(table.sensitive[:, published]) if required.names and classes else []:
            counts = np.zeros((len(classes), view.size), np.int64)
            for row, records in zip(counts, classes.values(), strict=True):
                np.add.at(row, view.codes[[place[record] for record in records]], 1)
            for criterion in view.criteria:
                unsafe |= {key for key, ok in zip(classes, criterion.holds(counts), strict=True) if not ok}
        if not unsafe:
            break
        classes = {key: records for key, records in classes.items() if key not in unsafe}
    ends = np.array([*classes], np.int32).reshape(len(classes), len(node), 2)
    size = np.array([len(records) for records in classes.values()], np.int64)
    return Recoded(ends[:, :, 0].T, ends[:, :, 1].T, size, table.records - int(size.sum()), list(classes.values()))


def nodes(domains: Sequence[Hierarchy]) -> Iterator[Node]:
    return product(*(range(domain.height + 1) for domain in domains))


def assert_optimal(table: Table, suppression: float, chosen: Sequence[str] = LOSSES) -> None:
    budget = int(Fraction(str(suppression)) * table.records)
    everything = {node: recode(table, node) for node in nodes(table.domains)}
    # Leaving everybody out is no release.
    most = min(budget, table.records - 1)
    allowed = {node: recoded for node, recoded in everything.items() if recoded.suppressed <= most}
    event(f"{'no' if not allowed else 'all' if len(allowed) == len(everything) else 'some'} nodes are allowed")
    for loss in chosen:
        best = min((recoded.cost(loss, table) for recoded in allowed.values()), default=math.inf)
        if best == math.inf:
            with pytest.raises(GuaranteeError, match="no levels of the hierarchies make the table safe"):
                full_domain(table.quasi, table.domains, table.guard, loss=loss, suppression=suppression)
            continue
        found = full_domain(table.quasi, table.domains, table.guard, loss=loss, suppression=suppression)
        assert found.levels in allowed
        assert_published_as(table, found, everything[found.levels])
        cost = everything[found.levels].cost(loss, table)
        assert math.isclose(cost, best, rel_tol=1e-9, abs_tol=1e-9), (loss, cost, best)
        assert found.suppressed <= budget
        assert promises_hold(table, found)


def assert_published_as(table: Table, found: Classes, expected: Recoded) -> None:
    """The same records together, in the groups of the levels, with the same left out."""
    assert partition(found) == {frozenset(records) for records in expected.classes}
    assert found.suppressed == expected.suppressed
    for records, lo, hi in zip(expected.classes, expected.lo.T, expected.hi.T, strict=True):
        assert np.array_equal(found.lo[:, found.member[records[0]]], lo)
        assert np.array_equal(found.hi[:, found.member[records[0]]], hi)
        assert (table.quasi[:, records] >= lo[:, None]).all()
        assert (table.quasi[:, records] <= hi[:, None]).all()


@settings(max_examples=60, deadline=None)
@given(tables(domains=lattices), suppressions, st.integers(0, 5))
def test_no_node_of_the_lattice_is_better_for_any_loss(table: Table, suppression, hopeless):
    assert_optimal(table if hopeless == 5 else table.loosened(), suppression)


VALUES = SENSITIVE[-1]
ALONE: dict[str, Any] = {
    "k": None,
    "k-map": KMap(3),
    "confidence": Confidence.uniform(0.6, VALUES.size),
    "alpha": AlphaK.of({"s0": 0.4}, VALUES.names[0]),
    "distinct": DistinctDiversity(2),
    "entropy": EntropyDiversity(1.8),
    "recursive": RecursiveDiversity.of(1.5, 2),
    **{
        f"closeness {distance}": TCloseness(0.3, distance, levels=VALUES.starts)
        for distance in ("equal", "ordered", "hierarchical")
    },
}


@st.composite
def plain_tables(draw: st.DrawFn, criterion: str) -> Table:
    """A table with enough records for something to be safe, and k with one more criterion."""
    domains = tuple(draw(st.lists(hierarchies(sizes=(2, 3, 4, 5)), min_size=2, max_size=3).map(small)))
    count = draw(st.integers(6, 24))
    cell = st.tuples(*(st.integers(0, d.size - 1) for d in (*domains, VALUES)))
    rows = np.array(draw(st.lists(cell, min_size=count, max_size=count)), np.int32).T
    population = None
    if criterion == "k-map":
        people = np.array(draw(st.lists(cell, max_size=40)), np.int32).reshape(-1, len(rows)).T
        population = np.hstack([rows, people])[:-1]
    alone = ALONE[criterion]
    known = alone if isinstance(alone, KMap) else None
    protected = Protected("s", VALUES, () if alone is None or known is not None else (alone,))
    required = Requirement(KAnonymity(draw(st.integers(1, 3))), known, (protected,))
    return Table(domains, rows[:-1].copy(), rows[-1:].copy(), required, population)


@pytest.mark.parametrize("criterion", ALONE)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_no_node_is_better_whatever_the_criterion(criterion, data):
    assert_optimal(data.draw(plain_tables(criterion)), data.draw(suppressions))


@pytest.mark.parametrize("criterion", ["confidence", "entropy", "recursive", "closeness equal"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_parts_of_an_unsafe_class_are_looked_at_where_they_may_be_safe(criterion, data):
    """Under these criteria a lower node may have to leave out less, so what is left out higher up proves nothing."""
    assert_optimal(data.draw(plain_tables(criterion)), data.draw(st.sampled_from([0.5, 1.0])), ["ncp", "dm"])


@settings(max_examples=15, deadline=None)
@given(tables(domains=lattices), suppressions)
def test_a_lattice_too_large_for_witnesses_is_searched_as_well(table: Table, suppression):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequester.methods.full_domain.search._LARGEST_WITNESS", 0)
        assert_optimal(table.loosened(), suppression, ["ncp", "dm"])


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_more_attributes_than_one_word_can_hold_are_told_apart(data):
    """Ten attributes of 100 leaves are 66 bits at the lowest levels."""
    domains = (flat(100),) * 10
    first = data.draw(st.lists(st.integers(0, 99), min_size=10, max_size=10))
    rows = [first]
    for _ in range(data.draw(st.integers(1, 7))):
        other = list(data.draw(st.sampled_from(rows)))
        for attribute in data.draw(st.sets(st.integers(0, 9), max_size=3)):
            other[attribute] = data.draw(st.sampled_from([0, 1, 98, 99]))
        rows.append(other)
    required = Requirement(KAnonymity(data.draw(st.integers(1, 2))))
    table = Table(domains, np.array(rows, np.int32).T, np.zeros((0, len(rows)), np.int32), required)
    suppression = data.draw(suppressions)
    budget = int(Fraction(str(suppression)) * len(rows))
    costs = []
    for node in product((0, 1), repeat=10):
        seen = Counter(tuple(code for code, level in zip(row, node, strict=True) if not level) for row in rows)
        kept = sum(count for count in seen.values() if count >= required.k.k)
        if len(rows) - kept <= budget:
            costs.append((kept * sum(node) / 10 + len(rows) - kept) / len(rows))
    if not costs:
        with pytest.raises(GuaranteeError, match="no levels"):
            full_domain(table.quasi, domains, table.guard, suppression=suppression)
        return
    found = full_domain(table.quasi, domains, table.guard, suppression=suppression)
    assert_published_as(table, found, recode(table, found.levels))
    assert math.isclose(recode(table, found.levels).cost("ncp", table), min(costs), abs_tol=1e-12)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_cells_are_numbered_apart_exactly_when_they_differ(data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 1000, 2**31 - 1]), min_size=1, max_size=6))
    cell = st.tuples(*(st.one_of(st.integers(0, s - 1), st.sampled_from([0, s - 1])) for s in sizes))
    cells = data.draw(st.lists(cell, max_size=30))
    cells += data.draw(st.lists(st.sampled_from(cells), max_size=10)) if cells else []
    codes = np.array(cells, np.int32).reshape(-1, len(sizes)).T
    number, count = classify(codes, sizes)
    order = list(dict.fromkeys(cells))
    assert [order[n] for n in number] == cells
    assert count == len(order)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_lost_where_every_record_is_safe_as_it_is(loss):
    required = Requirement(KAnonymity(1))
    table = Table((flat(3), flat(2)), np.array([[0, 1, 2], [1, 0, 1]], np.int32), np.zeros((0, 3), np.int32), required)
    found = full_domain(table.quasi, table.domains, table.guard, loss=loss)
    assert found.levels == (0, 0)
    assert np.array_equal(found.lo[:, found.member], table.quasi)
    assert np.array_equal(found.hi[:, found.member], table.quasi)


def test_a_lattice_beyond_all_bounds_is_a_policy_error():
    required = Requirement(KAnonymity(1))
    table = Table((flat(2),) * 25, np.zeros((25, 1), np.int32), np.zeros((0, 1), np.int32), required)
    with pytest.raises(PolicyError, match="the lattice of full-domain has over 20,000,000 nodes"):
        full_domain(table.quasi, table.domains, table.guard)


def test_the_guard_is_left_as_it_was():
    """What is suppressed changes the table that closeness compares with, in a copy."""
    quasi = np.repeat([0, 1, 2, 3], [12, 12, 12, 3]).astype(np.int32)[None, :]
    sensitive = np.append(np.tile(np.arange(4), 9), [0, 0, 0]).astype(np.int32)[None, :]
    required = Requirement(KAnonymity(2), None, (Protected("s", VALUES, (TCloseness(0.2, "equal"),)),))
    table = Table((flat(4),), quasi, sensitive, required)
    guard = table.guard
    arrays: tuple[Any, ...] = guard.limits[1:]
    before = [array.copy() for array in arrays]
    found = full_domain(table.quasi, table.domains, guard, suppression=1.0)
    assert (found.levels, found.suppressed) == ((0,), 3)
    assert all(np.array_equal(was, now) for was, now in zip(before, arrays, strict=True))


@settings(max_examples=30, deadline=None)
@given(tables(domains=lattices, with_population=False))
def test_more_suppression_never_loses_more(table: Table):
    table = replace(table.loosened(), population=None)
    costs = []
    for suppression in (0.0, 0.2, 0.5, 1.0):
        found = full_domain(table.quasi, table.domains, table.guard, suppression=suppression)
        costs.append(losses(found, table.domains, suppressed=found.suppressed)["ncp"])
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(costs))
