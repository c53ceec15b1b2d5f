"""Every criterion equals its paper's definition, written here record by record, and is what it declares to be."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.arrays import row_groups
from sequester.domain.hierarchy import Hierarchy, nested
from sequester.errors import PolicyError
from sequester.guarantees.anonymity import KAnonymity, KMap, population_inside
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import AlphaK, Confidence, bounds_of
from sequester.guarantees.criterion import Criterion
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Requirement
from sequester.policy.model import Policy
from sequester.policy.protect import Diversity
from sequester.rational import exact

often = settings(max_examples=80, deadline=None)
seldom = settings(max_examples=25, deadline=None)

# Leaves 0..5, then {0,1}{2}{3,4,5}, then {0,1,2}{3,4,5}, then everything.
LEVELS = tuple(np.array(s, np.int32) for s in ([0, 1, 2, 3, 4, 5], [0, 2, 3], [0, 3], [0]))
VALUES = 6


@st.composite
def tables(draw: st.DrawFn, values: int = VALUES) -> np.ndarray:
    """Value counts of a few non-empty classes."""
    row = st.lists(st.integers(0, 5), min_size=values, max_size=values).filter(any)
    return np.array(draw(st.lists(row, min_size=1, max_size=5)), np.int64)


def records(row: np.ndarray) -> list[int]:
    return [value for value, count in enumerate(row.tolist()) for _ in range(count)]


def shares(row: np.ndarray) -> list[Fraction]:
    return [Fraction(int(count), int(row.sum())) for count in row]


def flow_distance(p: list[Fraction], q: list[Fraction], ground: list[list[Fraction]]) -> Fraction:
    """The transport problem solved exactly: cheapest augmenting paths over supplies p and demands q."""
    m = len(p)
    supply, demand = list(p), list(q)
    flow = [[Fraction(0)] * m for _ in range(m)]
    total = Fraction(0)
    while any(supply):
        cost: dict[tuple[str, int], Fraction] = {("from", i): Fraction(0) for i in range(m) if supply[i]}
        back: dict[tuple[str, int], tuple[str, int]] = {}
        for _ in range(2 * m):
            for i in range(m):
                for j in range(m):
                    a, b = ("from", i), ("to", j)
                    if a in cost and (b not in cost or cost[a] + ground[i][j] < cost[b]):
                        cost[b], back[b] = cost[a] + ground[i][j], a
                    if b in cost and flow[i][j] and (a not in cost or cost[b] - ground[i][j] < cost[a]):
                        cost[a], back[a] = cost[b] - ground[i][j], b
        end = min((("to", j) for j in range(m) if demand[j]), key=lambda node: cost[node])
        path = [end]
        while path[-1] in back:
            path.append(back[path[-1]])
        path.reverse()
        steps = list(pairwise(path))
        amount = min(
            supply[path[0][1]], demand[end[1]], *(flow[b[1]][a[1]] for a, b in steps if a[0] == "to"), p[0] + 1
        )
        for a, b in steps:
            if a[0] == "from":
                flow[a[1]][b[1]] += amount
            else:
                flow[b[1]][a[1]] -= amount
        supply[path[0][1]] -= amount
        demand[end[1]] -= amount
        total += amount * cost[end]
    return total


def ground_distance(kind: str, m: int) -> list[list[Fraction]]:
    def apart(i: int, j: int) -> Fraction:
        if kind == "equal":
            return Fraction(int(i != j))
        if kind == "ordered":
            return Fraction(abs(i - j), max(m - 1, 1))
        common = [h for h, s in enumerate(LEVELS) if np.searchsorted(s, i, "right") == np.searchsorted(s, j, "right")]
        return Fraction(min(common), len(LEVELS) - 1)

    return [[apart(i, j) for j in range(m)] for i in range(m)]


@often
@given(tables(), st.integers(1, 12))
def test_k_counts_the_records_of_a_class(counts, k):
    sizes = [len(records(row)) for row in counts]
    assert KAnonymity(k).observed(counts).tolist() == sizes
    assert KAnonymity(k).holds(counts).tolist() == [size >= k for size in sizes]


@often
@given(tables(), st.lists(st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.5, 0.7, 1.0]), min_size=VALUES, max_size=VALUES))
def test_confidence_is_the_share_of_each_value_against_its_own_bound(counts, bounds):
    rational = [Fraction(1, 3) if b == 1 / 3 else Fraction(str(b)) for b in bounds]
    criterion = Confidence(tuple(exact(b) for b in bounds))
    expected = [all(share <= bound for share, bound in zip(shares(row), rational, strict=True)) for row in counts]
    assert criterion.holds(counts).tolist() == expected
    required, observed = criterion.worst(counts)
    strain = [s / b for row in counts for s, b in zip(shares(row), rational, strict=True) if b < 1]
    if strain:
        assert math.isclose(observed / required, max(strain))
        assert (max(strain) <= 1) == all(expected)
    else:
        assert observed == 0


@often
@given(tables(), st.sampled_from([0.2, 0.4, 0.5, 0.75]), st.sets(st.integers(0, VALUES - 1)))
def test_alpha_bounds_only_the_named_values(counts, alpha, named):
    names = [f"v{index}" for index in range(VALUES)]
    criterion = AlphaK.of({names[index]: alpha for index in named}, names)
    found = [max((shares(row)[index] for index in named), default=Fraction(0)) for row in counts]
    assert criterion.holds(counts).tolist() == [share <= Fraction(str(alpha)) for share in found]
    assert np.allclose(criterion.observed(counts), [float(share) for share in found])


@often
@given(tables(), st.integers(1, VALUES))
def test_distinct_diversity_counts_different_values(counts, l):  # noqa: E741
    found = [len(set(records(row))) for row in counts]
    assert DistinctDiversity(l).observed(counts).tolist() == found
    assert DistinctDiversity(l).holds(counts).tolist() == [number >= l for number in found]


@often
@given(tables(), st.floats(1, VALUES))
def test_entropy_diversity_is_entropy_at_least_log_l(counts, l):  # noqa: E741
    found = [-sum(float(s) * math.log(s) for s in shares(row) if s) for row in counts]
    assert np.allclose(EntropyDiversity(l).observed(counts), np.exp(found))
    clear = [abs(value - math.log(l)) > 1e-8 for value in found]
    holds = EntropyDiversity(l).holds(counts)
    assert all(h == (v >= math.log(l)) for h, v, c in zip(holds, found, clear, strict=True) if c)


@often
@given(st.integers(1, VALUES), st.integers(1, 1000))
def test_entropy_diversity_accepts_exactly_l_equally_frequent_values(l, times):  # noqa: E741
    counts = np.array([[times] * l + [0] * (VALUES - l)], np.int64)
    assert EntropyDiversity(l).holds(counts).all()
    assert not EntropyDiversity(l + 0.001).holds(counts).any()


@often
@given(tables(), st.sampled_from([0.3, 0.5, 1.0, 1.5, 3.0]), st.integers(1, VALUES + 1))
def test_recursive_diversity_compares_the_first_rank_with_the_tail(counts, c, l):  # noqa: E741
    criterion = RecursiveDiversity.of(c, l)
    ranks = [[n for _, n in Counter(records(row)).most_common()] for row in counts]
    assert criterion.holds(counts).tolist() == [r[0] < Fraction(str(c)) * sum(r[l - 1 :]) for r in ranks]
    expected = [r[0] / sum(r[l - 1 :]) if sum(r[l - 1 :]) else math.inf for r in ranks]
    assert np.allclose(criterion.observed(counts), expected)


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
@given(counts=tables(), t=st.floats(0, 1))
@seldom
def test_closeness_is_the_cheapest_transport_to_the_table(distance, counts, t):
    table = shares(counts.sum(axis=0))
    ground = ground_distance(distance, VALUES)
    expected = [float(flow_distance(shares(row), table, ground)) for row in counts]
    criterion = TCloseness(t, distance, levels=LEVELS)
    assert np.allclose(criterion.observed(counts), expected, atol=1e-12)
    clear = [abs(value - t) > 1e-8 for value in expected]
    assert all(h == (v <= t) for h, v, c in zip(criterion.holds(counts), expected, clear, strict=True) if c)


def test_closeness_gives_the_distances_of_the_papers_salary_example():
    """Li et al., section 4: salaries 3k..11k; P1 = {3k,4k,5k}, P2 = {6k,8k,11k} against one of each."""
    counts = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]])
    observed = TCloseness(0.5, "ordered", np.ones(9, np.int64)).observed(counts)
    assert np.allclose(observed, [0.375, 1 / 6])


def test_closeness_accepts_a_class_exactly_at_t():
    counts = np.array([[3, 0, 0], [0, 1, 2]], np.int64)
    distance = float(TCloseness(0.0).observed(counts)[0])
    assert TCloseness(distance).holds(counts)[0]
    assert not TCloseness(distance - 1e-6).holds(counts)[0]


@often
@given(st.data())
def test_population_inside_counts_people_in_every_box(data):
    attributes = data.draw(st.integers(1, 3))
    cell = st.lists(st.integers(0, 6), min_size=attributes, max_size=attributes)
    population = np.array(data.draw(st.lists(cell, max_size=60)), np.int32).reshape(-1, attributes).T
    ends = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=1, max_size=8)), np.int32)
    lo, hi = ends.min(axis=1).T, ends.max(axis=1).T
    expected = [
        sum(all(lo[a, box] <= person[a] <= hi[a, box] for a in range(attributes)) for person in population.T)
        for box in range(lo.shape[1])
    ]
    assert population_inside(lo, hi, population=population)[:, 0].tolist() == expected
    k = data.draw(st.integers(1, 5))
    assert KMap(k).holds(population_inside(lo, hi, population=population)).tolist() == [n >= k for n in expected]


def test_population_inside_halves_a_population_too_large_for_one_comparison(monkeypatch):
    rng = np.random.default_rng(0)
    population = rng.integers(0, 50, (3, 5000)).astype(np.int32)
    ends = rng.integers(0, 50, (2, 3, 40)).astype(np.int32)
    lo, hi = ends.min(axis=0), ends.max(axis=0)
    inside = (population[:, None, :] >= lo[:, :, None]) & (population[:, None, :] <= hi[:, :, None])
    monkeypatch.setattr("sequester.guarantees.anonymity._CELLS", 64)
    assert (population_inside(lo, hi, population=population)[:, 0] == inside.all(axis=0).sum(axis=1)).all()


@often
@given(st.lists(st.lists(st.integers(-2, 3), min_size=4, max_size=4), min_size=1, max_size=4))
def test_row_groups_are_the_distinct_records(rows):
    codes = np.array(rows, np.int32)
    group, first = row_groups(codes)
    columns = [tuple(column) for column in codes.T.tolist()]
    assert [columns[f] for f in first] == sorted(set(columns))
    assert [sorted(set(columns))[g] for g in group] == columns


CRITERIA: list[Criterion] = [
    KAnonymity(6),
    KMap(6),
    Confidence.uniform(0.5, VALUES),
    Confidence(bounds_of({"v0": 0.2, "*": 0.6}, [f"v{i}" for i in range(VALUES)], ordinary=["v1"])),
    AlphaK.uniform(0.4, VALUES),
    DistinctDiversity(3),
    EntropyDiversity(2.5),
    RecursiveDiversity.of(1.5, 2),
    RecursiveDiversity.of(0.7, 3),
    *(TCloseness(0.3, d, np.array([5, 1, 3, 2, 2, 4]), LEVELS) for d in ("equal", "ordered", "hierarchical")),
]


@pytest.mark.parametrize("criterion", [c for c in CRITERIA if c.monotone], ids=lambda c: f"{type(c).__name__}")
@often
@given(counts=tables())
def test_a_monotone_criterion_holds_for_the_union_of_safe_classes(criterion, counts):
    safe = counts[criterion.holds(counts)]
    if len(safe):
        assert criterion.holds(safe.sum(axis=0, keepdims=True)).all()


@pytest.mark.parametrize("criterion", [c for c in CRITERIA if c.hereditary], ids=lambda c: f"{type(c).__name__}")
@often
@given(counts=tables(), data=st.data())
def test_every_part_of_a_class_unsafe_by_a_hereditary_criterion_is_unsafe(criterion, counts, data):
    for row in counts[~criterion.holds(counts)]:
        part = np.array([data.draw(st.integers(0, n)) for n in row.tolist()])
        if part.any():
            assert not criterion.holds(part[None, :]).any()


@pytest.mark.parametrize("criterion", [c for c in CRITERIA if not c.hereditary], ids=lambda c: f"{type(c).__name__}")
def test_a_criterion_not_declared_hereditary_has_an_unsafe_class_with_a_safe_part(criterion):
    part = np.array([5, 1, 3, 2, 2, 4])
    if isinstance(criterion, Confidence | AlphaK):
        part = np.array([1, 1, 1, 1, 1, 1])
    whole = part + np.array([0, 0, 0, 0, 0, 90])
    assert criterion.holds(part[None, :]).all()
    assert not criterion.holds(whole[None, :]).any()


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: f"{type(c).__name__}")
@given(counts=tables())
@seldom
def test_the_worst_class_decides_whether_all_hold(criterion, counts):
    required, observed = criterion.worst(counts)
    strict = isinstance(criterion, RecursiveDiversity)
    if criterion.at_least:
        meets = observed >= required - 1e-9
    else:
        meets = observed < required if strict else observed <= required + 1e-9
    assert meets == criterion.holds(counts).all()


@often
@given(st.decimals(min_value="0.000001", max_value="0.999999", places=6), st.integers(1, 10**6))
def test_a_decimal_bound_is_decided_exactly(decimal, size):
    bound = exact(float(decimal))
    assert bound == Fraction(decimal)
    allowed = int(Fraction(decimal) * size)
    criterion = Confidence((bound, Fraction(1)))
    counts = np.array([[allowed, size - allowed], [allowed + 1, size - allowed - 1]], np.int64)
    assert criterion.holds(counts).tolist() == [True, False]


def test_a_bound_with_too_many_digits_is_rounded_to_the_stricter_side():
    bound = exact(0.12345678901234567)
    assert bound < Fraction(repr(0.12345678901234567))
    assert bound.denominator <= 10**9


def flat(names: list[str]) -> Hierarchy:
    return nested("category", np.array(names, object), [(np.arange(len(names), dtype=np.int32), tuple(names))])


def policy(protect: dict, **sensitive: dict) -> Policy:
    attributes = {"age": {"role": "quasi-identifier", "kind": "number"}}
    attributes |= {name: {"role": "sensitive", **rest} for name, rest in sensitive.items()}
    return Policy.model_validate({"version": 1, "series": "s", "attributes": attributes, "protect": protect})


@often
@given(st.data())
def test_a_requirement_checks_each_attribute_and_their_combination(data):
    number = data.draw(st.integers(1, 25))
    draw = lambda high: np.array(data.draw(st.lists(st.integers(0, high), min_size=number, max_size=number)))  # noqa: E731
    member, first, second = draw(3) - 1, draw(2), draw(1)
    mode = data.draw(st.sampled_from(["each", "joint", "both"]))
    protect = {
        "k": 2,
        "confidence": 0.75,
        "sensitive": mode,
        "diversity": {"kind": "distinct", "l": 2},
    }
    requirement = Requirement.from_policy(
        policy(protect, a={"ordinary": ["a1"], "confidence": {"a0": 0.4, "*": 0.6}}, b={}),
        [flat(["a0", "a1", "a2"]), flat(["b0", "b1"])],
    )
    outcomes = {(o.name, o.view): o for o in requirement.check(member, np.array([first, second]))}
    classes = {c: [(int(a), int(b)) for m, a, b in zip(member, first, second, strict=True) if m == c]
               for c in set(member.tolist()) - {-1}}  # fmt: skip
    of_a = {0: Fraction(2, 5), 1: Fraction(1), 2: Fraction(3, 5)}
    looks = {
        "a": (lambda pair: pair[0], lambda value: of_a[value]),
        "b": (lambda pair: pair[1], lambda _: Fraction(3, 4)),
        "a and b": (lambda pair: pair, lambda pair: min(of_a[pair[0]], Fraction(3, 4))),
    }
    wanted = {"each": ["a", "b"], "joint": ["a and b"], "both": ["a", "b", "a and b"]}[mode]
    assert {view for _, view in outcomes} == {None, *wanted}
    bad = sum(len(people) < 2 for people in classes.values())
    assert (outcomes["k", None].failing, outcomes["k", None].holds) == (bad, bad == 0)
    for view in wanted:
        look, bound = looks[view]
        seen = [Counter(look(pair) for pair in people) for people in classes.values()]
        broken = sum(any(n > bound(v) * sum(c.values()) for v, n in c.items()) for c in seen)
        assert outcomes["confidence", view].failing == broken
        assert outcomes["diversity", view].failing == sum(len(c) < 2 for c in seen)


@given(st.data())
@seldom
def test_counting_some_classes_at_a_time_changes_no_outcome(data):
    number = data.draw(st.integers(1, 30))
    member = np.array(data.draw(st.lists(st.integers(-1, 6), min_size=number, max_size=number)))
    values = np.array([data.draw(st.lists(st.integers(0, 2), min_size=number, max_size=number))])
    protect = {"k": 2, "confidence": 0.5, "closeness": {"t": 0.2}, "diversity": {"kind": "recursive", "c": 2.0, "l": 2}}
    requirement = Requirement.from_policy(policy(protect, a={}), [flat(["x", "y", "z"])])
    whole = requirement.check(member, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequester.guarantees.requirement._CELLS", 4)
        parts = requirement.check(member, values)
    # Sums over differently shaped arrays may differ in the last bit.
    assert [replace(o, observed=None) for o in parts] == [replace(o, observed=None) for o in whole]
    assert [o.observed for o in parts] == [o.observed and pytest.approx(o.observed) for o in whole]


def test_closeness_is_ordered_for_numbers_hierarchical_with_a_tree_and_equal_otherwise():
    tree = {"all": ["x", "y"]}
    requirement = Requirement.from_policy(
        policy(
            {"k": 1, "closeness": {"t": 0.1}, "against": ["outsider"]},
            a={},
            b={"kind": "number", "bands": [0.0, 1.0, 2.0]},
            c={"hierarchy": tree},
        ),
        [flat(["x", "y"])] * 3,
    )
    asked = [criterion for one in requirement.sensitive for criterion in one.criteria]
    assert [c.distance for c in asked if isinstance(c, TCloseness)] == ["equal", "ordered", "hierarchical"]


def test_values_the_policy_bounds_but_no_domain_has_are_listed():
    requirement = Requirement.from_policy(
        policy({"k": 1, "confidence": {"x": 0.5, "lost": 0.1, "*": 0.9}}, a={"ordinary": ["y", "gone"]}),
        [flat(["x", "y"])],
    )
    assert requirement.unmatched == ("lost", "a: gone")


def test_recursive_diversity_without_c_is_a_policy_error():
    asked = policy({"k": 1}, a={})
    unchecked = Diversity.model_construct(kind="recursive", l=2.0, c=None)
    protect = asked.protect.model_copy(update={"diversity": unchecked})
    with pytest.raises(PolicyError, match=r"protect\.diversity\.c: recursive diversity needs c"):
        Requirement.from_policy(asked.model_copy(update={"protect": protect}), [flat(["x", "y"])])


def test_a_k_map_without_a_population_is_refused():
    requirement = Requirement.from_policy(
        policy({"k": 1, "k_map": {"k": 2, "population": "p.csv"}}, a={}), [flat(["x"])]
    )
    with pytest.raises(ValueError, match="k-map needs"):
        requirement.check(np.zeros(3, np.int32), np.zeros((1, 3), np.int32))


def test_a_k_map_counts_the_population_behind_each_class():
    requirement = Requirement.from_policy(
        policy({"k": 1, "k_map": {"k": 3, "population": "p.csv"}}, a={}), [flat(["x"])]
    )
    boxes = (np.array([[0, 3]]), np.array([[2, 4]]))
    outcomes = requirement.check(
        np.array([0, 0, 1]), np.zeros((1, 3), np.int32), boxes=boxes, population=np.array([[0, 1, 2, 3, 4]])
    )
    found = next(outcome for outcome in outcomes if outcome.name == "k-map")
    assert (found.required, found.observed, found.failing, found.holds) == (3, 2, 1, False)


def test_nothing_published_breaks_no_promise():
    requirement = Requirement.from_policy(policy({"k": 3, "confidence": 0.5}, a={}), [flat(["x", "y"])])
    outcomes = requirement.check(np.full(4, -1), np.zeros((1, 4), np.int32))
    assert [(outcome.observed, outcome.holds) for outcome in outcomes] == [(None, True)] * 2
