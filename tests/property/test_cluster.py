"""Clusters: safe, tight, never worse than gain cuts; joining and merging held to brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.errors import GuaranteeError, PolicyError
from sequester.guarantees.anonymity import KAnonymity, KMap
from sequester.guarantees.confidence import Confidence
from sequester.guarantees.requirement import Protected, Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.cluster import join as module
from sequester.methods.cluster.join import cluster
from sequester.methods.cluster.merge_kernels import TRIES, Clusters, merge_units
from sequester.methods.mondrian.cut import mondrian
from sequester.metrics.loss import ail
from strategies import (
    SENSITIVE,
    Judge,
    Table,
    assert_tight,
    flat,
    hierarchies,
    partition,
    tables,
)

often = settings(max_examples=60, deadline=None)
any_domains = st.lists(hierarchies(most_levels=2), min_size=1, max_size=4)
# Sums of positions are exact in these.
exact_domains = st.lists(hierarchies(most_levels=1, sizes=(1, 2, 3, 5, 9), scale=64), min_size=1, max_size=3)
any_tables = tables(domains=any_domains, with_population=False)
similarities = st.one_of(st.none(), st.sampled_from([0.0, 0.3, 0.6, 0.8, 0.9, 1.0]))

Cluster = frozenset[int]


@contextmanager
def sizes(**changes: int) -> Iterator[None]:
    """Windows and limits of another size."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setattr(module, name, value)
        yield


def width(table: Table, part: Cluster) -> float:
    """Summed widths of the box around some records."""
    rows = sorted(part)
    return sum(
        min(float(np.ptp(domain.position[codes[rows]])), 1.0)
        for domain, codes in zip(table.domains, table.quasi, strict=True)
    )


def cost(table: Table, part: Cluster) -> float:
    return len(part) * width(table, part)


@often
@given(any_tables, similarities)
def test_clusters_are_safe_and_tight(table: Table, similarity: float | None):
    table = table.loosened()
    found = cluster(table.quasi, table.domains, table.guard, similarity=similarity)
    assert_tight(table, found)
    event("several clusters" if len(found) > 1 else "one cluster")


@often
@given(any_tables, similarities, st.sampled_from([1, 3, 8]), st.sampled_from([0, 100]))
def test_clusters_of_many_windows_are_safe(table: Table, similarity: float | None, size: int, small: int):
    table = table.loosened()
    with sizes(WIDE=size, NARROW=size, SMALL=small):
        assert_tight(table, cluster(table.quasi, table.domains, table.guard, similarity=similarity))


@often
@given(any_tables, st.sampled_from([3, 2048]), st.sampled_from([0, 100]))
def test_clusters_lose_no_more_than_gain_cuts(table: Table, size: int, small: int):
    table = table.loosened()
    with sizes(WIDE=size, NARROW=size, SMALL=small):
        found = ail(cluster(table.quasi, table.domains, table.guard), table.domains)
    cuts = ail(mondrian(table.quasi, table.domains, table.guard), table.domains)
    event("less" if found < cuts - 1e-4 else "as much")
    assert found <= cuts + 1e-4


@often
@given(any_tables, similarities)
def test_only_a_table_that_is_unsafe_as_one_cluster_is_refused(table: Table, similarity: float | None):
    hopeless = not Judge(table).safe([range(table.records)])[0]
    event("hopeless" if hopeless else "possible")
    if hopeless:
        with pytest.raises(GuaranteeError) as caught:
            cluster(table.quasi, table.domains, table.guard, similarity=similarity)
        assert caught.value.guarantee == "cluster"
    else:
        cluster(table.quasi, table.domains, table.guard, similarity=similarity)


def joined(table: Table, order: list[int], similarity: float) -> list[Cluster]:
    """One record after the other to the cluster it leaves most similar, if similar enough."""
    found: list[Cluster] = []
    for record in order:
        spans = [width(table, part | {record}) for part in found]
        near = min(range(len(found)), key=lambda number: spans[number], default=-1)
        if near >= 0 and spans[near] <= (1 - similarity) * len(table.domains) + 1e-5:
            found[near] |= {record}
        else:
            found.append(frozenset([record]))
    return found


@often
@given(tables(domains=exact_domains, with_population=False), st.sampled_from([0.0, 0.5, 0.75, 0.875, 0.9375, 1.0]))
def test_records_join_the_nearest_cluster_that_stays_similar(table: Table, similarity: float):
    """Where every cluster is safe nothing else happens."""
    free = Requirement(KAnonymity(1))
    table = replace(table, requirement=free, sensitive=table.sensitive[:0])
    found = cluster(table.quasi, table.domains, table.guard, similarity=similarity)
    order = np.argsort(mondrian(table.quasi, table.domains, table.guard).member, kind="stable").tolist()
    assert partition(found) == set(joined(table, order, similarity))
    for part in partition(found):
        assert 1 - width(table, part) / len(table.domains) >= similarity - 1e-6


class Merging:
    """Clusters merge as the kernel says they do, in sets and lists."""

    def __init__(self, table: Table, start: list[Cluster]) -> None:
        self.table, self.judge, self.k = table, Judge(table), table.requirement.k.k
        self.alive = {part: self.is_safe(part) for part in start}
        # Of every unsafe cluster what it was found to be nearest to, and at which price.
        self.known: dict[Cluster, tuple[Cluster, float]] = {}

    def is_safe(self, part: Cluster) -> bool:
        return bool(self.judge.safe([part])[0])

    def look(self, part: Cluster) -> tuple[Cluster, float]:
        more = {
            other: cost(self.table, part | other) - cost(self.table, other) for other in self.alive if other != part
        }
        near = sorted(more, key=lambda other: more[other])
        chosen = near[0]
        for other in near[:TRIES]:
            if len(part) + len(other) < self.k or not self.table.requirement.names or self.is_safe(part | other):
                chosen = other
                break
        return chosen, max((more[chosen] - cost(self.table, part)) / min(len(part), max(self.k, 1)) ** 2, 0.0)

    def run(self) -> set[Cluster]:
        while len(self.alive) > 1:
            unsafe = [part for part, safe in self.alive.items() if not safe]
            if not unsafe:
                break
            new = next((part for part in unsafe if part not in self.known), None)
            if new is not None:
                self.known[new] = self.look(new)
                continue
            part = min(unsafe, key=lambda part: self.known[part][1])
            other = self.known[part][0]
            if other not in self.alive:
                del self.known[part]
                continue
            del self.alive[part], self.alive[other], self.known[part]
            self.known.pop(other, None)
            self.alive[part | other] = self.is_safe(part | other)
        return set(self.alive)


@settings(max_examples=100, deadline=None)
@given(tables(domains=st.just(()), with_population=False), st.integers(2, 3), st.integers(0, 10**6))
def test_unsafe_clusters_merge_with_the_nearest(table: Table, attributes: int, seed: int):
    """Points in general position, so that no two merges cost the same."""
    random = np.random.default_rng(seed)
    places = [np.sort(random.random(table.records)) for _ in range(attributes)]
    domains = tuple(flat(table.records, position=(p - p[0]) / max(p[-1] - p[0], 1e-9)) for p in places)
    quasi = np.array([random.permutation(table.records) for _ in domains], np.int32)
    table = replace(table, domains=domains, quasi=quasi).loosened()
    place = np.array([p[codes] for p, codes in zip([d.position for d in domains], quasi, strict=True)], np.float32)
    counts = np.zeros((table.records, table.guard.limits.numerator.size), np.int64)
    np.add.at(counts, (np.arange(table.records)[:, None], table.guard.values), 1)
    alone, nothing = np.ones(table.records, np.float32), np.zeros(table.records, np.float32)
    units = Clusters(place, place.copy(), alone, nothing, counts)
    member, lost = merge_units(units, table.guard.limits, 0.0)
    found = {frozenset(np.flatnonzero(member == number).tolist()) for number in member}
    assert found == Merging(table, [frozenset([record]) for record in range(table.records)]).run()
    assert lost == pytest.approx(sum(cost(table, part) for part in found), abs=1e-4)
    event("several clusters" if len(found) > 1 else "one cluster")


def many(seed: int, *, records: int = 3000, k: int = 4) -> Table:
    random = np.random.default_rng(seed)
    domains = (flat(50), flat(1025, position=np.sort(random.random(1025))), flat(3), flat(9, missing=True))
    quasi = np.array([random.integers(0, domain.size, records) for domain in domains], np.int32)
    sensitive = random.choice(4, records, p=[0.4, 0.3, 0.2, 0.1])[None, :].astype(np.int32)
    bound = Confidence.uniform(0.5, 4)
    required = Requirement(KAnonymity(k), None, (Protected("s", SENSITIVE[-1], (bound,)),))
    return Table(domains, quasi, sensitive, required)


@pytest.mark.parametrize("similarity", [None, 0.9])
def test_the_number_of_threads_does_not_matter(monkeypatch, similarity):
    table = many(1)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        with sizes(WIDE=64):
            found.append(cluster(table.quasi, table.domains, table.guard, similarity=similarity))
    assert len(found[0]) > 50
    assert_tight(table, found[0])
    for other in found[1:]:
        assert np.array_equal(found[0].member, other.member)
        assert np.array_equal(found[0].lo, other.lo)


@pytest.mark.parametrize("k", [33, 100])
def test_clusters_of_many_people_are_made_of_runs(k):
    """Where people are alike in groups these lose less than cuts, which tear them; elsewhere as little."""
    table = many(2, k=k)
    random = np.random.default_rng(2)
    center = random.random((len(table.domains), 40))[:, random.integers(0, 40, table.records)]
    near = np.clip(center + random.normal(0, 0.04, center.shape), 0, 0.999)
    quasi = np.array([side * domain.size for side, domain in zip(near, table.domains, strict=True)], np.int32)
    for records, gained in ((table.quasi, 0.0), (quasi, 0.02)):
        found = cluster(records, table.domains, table.guard)
        assert_tight(replace(table, quasi=records), found)
        assert len(found) > 3
        cuts = mondrian(records, table.domains, table.guard)
        assert ail(found, table.domains) <= (1 - gained) * ail(cuts, table.domains)


def test_a_class_that_cuts_leave_whole_may_be_too_large_to_cluster():
    table = many(3, records=400)
    with sizes(WIDE=1):
        found = cluster(table.quasi, table.domains, table.guard)
    assert_tight(table, found)


def test_less_similarity_makes_larger_clusters():
    table = many(4)
    counts = [len(cluster(table.quasi, table.domains, table.guard, similarity=share)) for share in (1.0, 0.95, 0.8, 0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1] > counts[2] > counts[3]


def test_records_are_left_as_they_were():
    table = many(5, records=300)
    guard = table.guard
    arrays: tuple[Any, ...] = (table.quasi, guard.values, *guard.limits[1:])
    before = [array.copy() for array in arrays]
    assert len(cluster(table.quasi, table.domains, guard)) > 1
    assert all(np.array_equal(was, now) for was, now in zip(before, arrays, strict=True))


@pytest.mark.parametrize("similarity", [-0.1, 1.1])
def test_a_similarity_is_between_0_and_1(similarity):
    table = many(6, records=30)
    with pytest.raises(PolicyError, match="between 0 and 1"):
        cluster(table.quasi, table.domains, table.guard, similarity=similarity)


def test_clusters_refuse_a_k_map():
    quasi = np.zeros((1, 2), np.int32)
    required = Requirement(KAnonymity(1), KMap(1))
    guard = ClassGuard.of(required, np.zeros((0, 2), np.int32), population=quasi)
    with pytest.raises(PolicyError, match="k_map needs classes whose boxes do not overlap"):
        cluster(quasi, (flat(2),), guard)
