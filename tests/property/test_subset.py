"""The chosen subset is the one that trying them all finds; refined clusters are safe, whole and as fine as can be."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError
from sequester.guarantees.anonymity import KAnonymity, KMap
from sequester.guarantees.requirement import Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.cluster import subset as methods
from sequester.methods.cluster.subset import choose, refine
from sequester.methods.mondrian.cut import mondrian
from strategies import Table, flat, hierarchies, members, partition, promises_hold, tables

often = settings(max_examples=120, deadline=None)

# Scores are multiples of 1 / 24: they tie often, and those that differ do so by more than the tolerance.
STEPS = 24
rules = st.integers(0, STEPS).map(lambda n: {"gain": n / STEPS}) | st.integers(0, 8).map(lambda n: {"weight": n / 8})
Rule = dict[str, float]


def brute(gain: Sequence[Fraction], loss: Sequence[Fraction], rule: Rule) -> tuple[int, ...]:
    """Every subset in turn, in exact fractions."""
    everything = tuple(range(len(gain)))
    best = None
    for size in range(1, len(gain) + 1):
        for chosen in combinations(everything, size):
            g, l = (sum(scores[a] for a in chosen) / len(gain) for scores in (gain, loss))  # noqa: E741
            if "weight" in rule:
                weight = Fraction(rule["weight"])
                cost = (1 - weight) * l - weight * g
            elif g >= Fraction(rule["gain"]).limit_denominator(STEPS):
                cost = l
            else:
                continue
            if best is None or cost < best[0]:
                best = (cost, chosen)
    return everything if best is None else best[1]


def scored(monkeypatch, gain: np.ndarray, loss: np.ndarray, rule: Rule, *, power_set: int) -> list[tuple[int, ...]]:
    """What is chosen when the attributes of the clusters have these scores (attributes, clusters)."""
    monkeypatch.setattr(methods, "POWER_SET", power_set)
    monkeypatch.setattr(methods, "quasi_gain", lambda *_: gain)
    monkeypatch.setattr(methods, "quasi_loss", lambda *_: loss)
    found = choose(np.zeros(gain.shape, np.int32), np.zeros(gain.shape, np.int32), (), **rule)
    return [tuple(np.flatnonzero(column).tolist()) for column in found.T]


@st.composite
def attribute_scores(draw: st.DrawFn, *, most: int) -> tuple[list[list[int]], list[list[int]]]:
    attributes, clusters = draw(st.integers(1, most)), draw(st.integers(1, 3))
    column = st.lists(st.integers(0, STEPS), min_size=attributes, max_size=attributes)
    coarse = st.lists(st.sampled_from([0, 0, 8, 12, STEPS]), min_size=attributes, max_size=attributes)
    both = st.lists(column | coarse, min_size=clusters, max_size=clusters)
    return draw(both), draw(both)


@settings(max_examples=250, deadline=None)
@given(scores=attribute_scores(most=6), rule=rules)
def test_the_chosen_subset_is_the_one_of_trying_them_all(scores, rule):
    gain, loss = (np.array(side).T / STEPS for side in scores)
    with pytest.MonkeyPatch.context() as patch:
        found = scored(patch, gain, loss, rule, power_set=12)
    exact = [[[Fraction(n, STEPS) for n in row] for row in side] for side in scores]
    assert found == [brute(g, l, rule) for g, l in zip(*exact, strict=True)]  # noqa: E741
    event(f"{len(found[0])} of {len(gain)}")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 11), st.floats(0.05, 0.95))
def test_with_many_attributes_as_little_is_lost_and_as_much_gained_as_by_trying_them_all(seed, attributes, threshold):
    rng = np.random.default_rng(seed)
    gain = rng.random((attributes, 6))
    loss = np.clip(gain + rng.normal(0, 0.1, gain.shape), 0, 1) if seed % 2 else rng.random(gain.shape)
    with pytest.MonkeyPatch.context() as patch:
        solved, tried = (scored(patch, gain, loss, {"gain": threshold}, power_set=most) for most in (0, 12))
    for cluster, (one, other) in enumerate(zip(solved, tried, strict=True)):
        assert loss[list(one), cluster].sum() <= loss[list(other), cluster].sum() + 1e-6
        if len(other) < attributes:
            assert gain[list(one), cluster].sum() >= attributes * threshold - 1e-5


def test_scores_that_differ_by_rounding_alone_are_equal(monkeypatch):
    loss = np.array([[0.1 + 0.2], [0.3], [0.9]])
    assert loss[0, 0] > loss[1, 0]
    gain = np.array([[0.7], [0.1 * 7], [0.1 + 0.6]])
    assert scored(monkeypatch, gain, loss, {"gain": 0.7 / 3}, power_set=12) == [(0,)]
    assert scored(monkeypatch, np.zeros((3, 1)), loss, {"weight": 0.5}, power_set=12) == [(0,)]


def test_many_clusters_are_chosen_as_each_alone(monkeypatch):
    rng = np.random.default_rng(0)
    domains = (flat(5), flat(9, position=np.arange(9) / 8), flat(2))
    ends = np.sort(np.stack([rng.integers(0, d.size, (2, 50)) for d in domains]), axis=1).astype(np.int32)
    lo, hi = ends[:, 0], ends[:, 1]
    rule = {"gain": 0.4}
    alone = np.column_stack([choose(lo[:, [c]], hi[:, [c]], domains, **rule) for c in range(50)])
    monkeypatch.setattr(methods, "_CELLS", 30)
    assert np.array_equal(choose(lo, hi, domains, **rule), alone)
    assert len(np.unique(alone, axis=1).T) > 3
    assert choose(lo[:0], hi[:0], (), **rule).shape == (0, 50)


any_domains = st.lists(hierarchies(most_levels=2), min_size=1, max_size=4)


class Clusters:
    """Clusters of a table that are safe as they are, with boxes that may be wider than they need, and their subsets."""

    def __init__(self, table: Table, member: np.ndarray, lo: np.ndarray, hi: np.ndarray, subset: np.ndarray) -> None:
        self.table, self.member, self.lo, self.hi, self.subset = table, member, lo, hi, subset

    def refined(self):
        return refine(
            self.table.quasi, self.table.domains, self.table.guard, self.member, self.lo, self.hi, self.subset
        )

    def parts(self) -> list[list[int]]:
        return [np.flatnonzero(self.member == c).tolist() for c in range(self.lo.shape[1])]

    def people(self, part: list[int], cluster: int) -> int:
        """Who of the population fits the box that some records of a cluster would be published with."""
        own = self.table.quasi[:, part]
        lo = np.where(self.subset[:, cluster], self.lo[:, cluster], own.min(axis=1))
        hi = np.where(self.subset[:, cluster], self.hi[:, cluster], own.max(axis=1))
        found = self.table.population
        return 0 if found is None else int(((found >= lo[:, None]) & (found <= hi[:, None])).all(axis=0).sum())

    def safe(self, parts: list[list[int]], cluster: int) -> bool:
        people = [self.people(part, cluster) for part in parts]
        return bool(self.table.judge().safe(parts, people=people).all())


@st.composite
def clusters(draw: st.DrawFn) -> Clusters:
    table = draw(tables(domains=any_domains, most_records=30)).loosened()
    most = draw(st.integers(0, 3))
    labels = np.array(draw(st.lists(st.integers(0, most), min_size=table.records, max_size=table.records)))
    while True:
        _, member = np.unique(labels, return_inverse=True)
        parts = [np.flatnonzero(member == c).tolist() for c in range(member.max() + 1)]
        unsafe = np.flatnonzero(~table.judge().safe(parts))
        if not len(unsafe):
            break
        # Monotone: in the end all are one, which is safe.
        labels = np.where(member == unsafe[0], (unsafe[0] + 1) % len(parts), member)
    sides = [(table.quasi[:, part].min(axis=1), table.quasi[:, part].max(axis=1)) for part in parts]
    lo, hi = (np.column_stack(side) for side in zip(*sides, strict=True))
    last = np.array([[domain.size - 1] for domain in table.domains])
    lo, hi = (
        np.maximum(lo - draw(st.integers(0, 1)), 0).astype(np.int32),
        np.minimum(hi + draw(st.integers(0, 1)), last).astype(np.int32),
    )
    mask = st.lists(st.sampled_from([False, False, True]), min_size=lo.size, max_size=lo.size)
    return Clusters(table, member.astype(np.int32), lo, hi, np.array(draw(mask)).reshape(lo.shape))


@often
@given(clusters())
def test_refined_clusters_are_safe_whole_and_cut_as_far_as_they_can_be(given_clusters: Clusters):
    table, own = given_clusters.table, given_clusters
    classes = own.refined()
    found = members(classes)
    assert promises_hold(table, classes)
    assert sorted(record for part in found for record in part) == list(range(table.records))
    event("cut" if len(found) > own.lo.shape[1] else "as they were")
    for number, part in enumerate(found):
        (cluster,) = set(own.member[part].tolist())
        kept = own.subset[:, cluster]
        quasi = table.quasi[:, part]
        assert np.array_equal(classes.lo[:, number], np.where(kept, own.lo[:, cluster], quasi.min(axis=1)))
        assert np.array_equal(classes.hi[:, number], np.where(kept, own.hi[:, cluster], quasi.max(axis=1)))
        assert (classes.lo[:, number] <= quasi.min(axis=1)).all()
        assert (classes.hi[:, number] >= quasi.max(axis=1)).all()
        for attribute in np.flatnonzero(~kept).tolist():
            codes = table.quasi[attribute]
            for code in sorted(set(codes[part].tolist()))[:-1]:
                sides = [[r for r in part if (codes[r] <= code) == below] for below in (True, False)]
                assert not own.safe(sides, cluster)


@often
@given(clusters())
def test_with_no_attribute_kept_every_cluster_is_cut_by_mondrian_alone(given_clusters: Clusters):
    own, table = given_clusters, given_clusters.table
    whole = np.zeros(table.records, np.int32)
    box = (np.zeros((len(table.domains), 1), np.int32), np.array([[d.size - 1] for d in table.domains], np.int32))
    nothing = np.zeros((len(table.domains), 1), bool)
    classes = refine(table.quasi, table.domains, table.guard, whole, *box, nothing)
    expected = mondrian(table.quasi, table.domains, table.guard)
    assert partition(classes) == partition(expected)
    everything = refine(table.quasi, table.domains, table.guard, own.member, own.lo, own.hi, np.ones_like(own.subset))
    assert partition(everything) == {frozenset(part) for part in own.parts()}


def plain_table(k: int, *, known: int = 0) -> Table:
    rng = np.random.default_rng(5)
    domains: tuple[Hierarchy, ...] = (flat(30, position=np.arange(30) / 29), flat(4), flat(6))
    quasi = np.array([rng.integers(0, d.size, 400) for d in domains], np.int32)
    required = Requirement(KAnonymity(k), KMap(known) if known else None)
    return Table(domains, quasi, np.zeros((0, 400), np.int32), required, quasi if known else None)


def hulls(quasi: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [quasi[:, member == c] for c in range(member.max() + 1)]
    return np.column_stack([p.min(axis=1) for p in parts]), np.column_stack([p.max(axis=1) for p in parts])


def test_a_cluster_that_is_not_safe_is_refused():
    table = plain_table(3)
    member = np.arange(400) // 40
    member[-2:] = 10
    lo, hi = hulls(table.quasi, member)
    with pytest.raises(GuaranteeError, match="not safe as they are: 1;"):
        refine(table.quasi, table.domains, table.guard, member, lo, hi, np.zeros(lo.shape, bool))


@pytest.mark.parametrize(("known", "refused"), [(3, False), (4, True)])
def test_a_cluster_that_fits_too_few_of_the_population_is_refused(known, refused):
    """Three people fit the range of the second cluster on the attribute it keeps, and its records on the other."""
    domains = (flat(4), flat(4))
    quasi = np.array([[0, 0, 0, 0, 2, 3], [0, 1, 0, 1, 2, 2]], np.int32)
    people = np.array([[0, 0, 0, 0, 2, 2, 3, 3, 1, 1], [0, 1, 0, 1, 2, 2, 2, 1, 2, 2]], np.int32)
    member = np.array([0, 0, 0, 0, 1, 1])
    required = Requirement(KAnonymity(1), KMap(known))
    guard = ClassGuard.of(required, np.zeros((0, 6), np.int32), population=people)
    lo, hi = hulls(quasi, member)
    keep_first = np.array([[True, True], [False, False]])
    if refused:
        with pytest.raises(GuaranteeError, match="not safe as they are: 1;"):
            refine(quasi, domains, guard, member, lo, hi, keep_first)
    else:
        assert len(refine(quasi, domains, guard, member, lo, hi, keep_first)) == 2


def test_records_left_out_stay_out_and_clusters_without_records_make_no_class():
    table = plain_table(4)
    member = np.arange(400) // 50
    member[member == 3] = -1
    lo, hi = hulls(table.quasi, np.arange(400) // 50)
    classes = refine(table.quasi, table.domains, table.guard, member, lo, hi, np.zeros(lo.shape, bool))
    assert np.array_equal(classes.member < 0, member < 0)
    assert classes.size.min() >= 4
    assert len(classes) > 8
    nobody = refine(table.quasi, table.domains, table.guard, np.full(400, -1), lo, hi, np.zeros(lo.shape, bool))
    assert len(nobody) == 0
    assert nobody.suppressed == 400


def test_a_box_that_does_not_hold_its_records_is_refused():
    table = plain_table(4)
    member = np.zeros(400, np.int32)
    lo, hi = hulls(table.quasi, member)
    with pytest.raises(ValueError, match="lie in the box"):
        refine(table.quasi, table.domains, table.guard, member, lo, hi - 1, np.zeros(lo.shape, bool))


def test_the_callers_arrays_are_left_as_they_were():
    table = plain_table(2, known=2)
    guard, member = table.guard, np.arange(400, dtype=np.int32) // 100
    lo, hi = hulls(table.quasi, member)
    subset = np.array([[True] * 4, [False] * 4, [False, True] * 2])
    arrays = (table.quasi, guard.values, guard.population, member, lo, hi, subset)
    before = [array.copy() for array in arrays]
    assert len(refine(table.quasi, table.domains, guard, member, lo, hi, subset)) > 4
    assert all(np.array_equal(was, now) for was, now in zip(before, arrays, strict=True))
