"""The lifetime guarantee against its definition: enumerated worlds, exact fractions, and every way to group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from churn import LEAVES, begin, chances, guard_of, next_release
from sequester.errors import GuaranteeError
from sequester.guarantees.lifetime import Strategy, survival
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.classes import Classes
from sequester.methods.lifetime.allowance import Allowance
from sequester.methods.lifetime.group import group, neighborhoods
from sequester.methods.lifetime.promise import broken, prospects
from sequester.methods.lifetime.survivals import Survivals
from sequester.policy.protect import Lifetime
from series import Series, series

SHORT = [
    Lifetime(l=2.0, releases=1),
    Lifetime(l=2.0, releases=3),
    Lifetime(l=1.5, releases=2),
    Lifetime(l=3.0, strategy="geometric", alpha=1.5),
    Lifetime(l=2.0, strategy="geometric", alpha=2.0),
    Lifetime(l=1.25, strategy="geometric", alpha=3.0),
]


def changing(data: st.DataObject, truth: Series) -> History:
    """The classes of a random series with other values in every release."""
    history = replace(truth.history(), releases=(), trajectories=None, permanent=False)
    for release in range(len(truth.member)):
        people = len(truth.value)
        value = data.draw(st.lists(st.integers(0, truth.values - 1), min_size=people, max_size=people))
        history = history.extend(replace(truth, value=np.array(value, np.int32)).publication(release))
    return history


def worlds(history: History, release: int) -> Iterator[dict[int, int]]:
    """All ways to hand the published values of every class to its members."""
    publication = history.releases[release]
    assert publication.member is not None
    ways = []
    for number, counts in enumerate(publication.counts.tolist()):
        members = np.flatnonzero(publication.member == number).tolist()
        values = [value for value, count in enumerate(counts) for _ in range(count)]
        ways.append([dict(zip(members, order, strict=True)) for order in permutations(values)])
    for choice in product(*ways):
        yield {person: value for part in choice for person, value in part.items()}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), truth=series(releases=(1, 3), people=(1, 4)))
def test_survival_is_the_share_of_worlds_without_a_link(data: st.DataObject, truth: Series) -> None:
    history = changing(data, truth)
    everybody = np.arange(len(truth.value))
    found = Survivals.of([history], everybody, [np.zeros(len(everybody), np.int32)], absent=True)
    together, linked = 0, Counter[tuple[int, int]]()
    for combined in product(*(list(worlds(history, release)) for release in range(len(history)))):
        together += 1
        linked.update({pair for world in combined for pair in world.items()})
    for person in everybody.tolist():
        for value in range(truth.values):
            row = int(found.row[person])
            escaped = 1 - Fraction(linked[person, value], together)
            assert survival(*found.factors(row, value)) == escaped
            assert float(escaped) == pytest.approx(found.left[row, value], abs=1e-14)
            assert found.linked[row, value] == len(found.factors(row, value)[0])


@settings(max_examples=100, deadline=None)
@given(data=st.data(), truth=series(releases=(1, 3), people=(1, 6)), l=st.sampled_from([1.25, 4 / 3, 1.5, 2.0, 3.0]))
def test_a_class_is_refused_exactly_when_the_definition_says_so(data: st.DataObject, truth: Series, l: float) -> None:  # noqa: E741
    history = changing(data, truth)
    people = len(truth.value)
    member = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=people, max_size=people)), np.int32)
    value = np.array(data.draw(st.lists(st.integers(0, truth.values - 1), min_size=people, max_size=people)), np.int32)
    strategy = Strategy.of(Lifetime(l=l, releases=1))
    found = Survivals.of([history], np.arange(people), [value])
    rows, columns, shares, _ = broken(found, strategy, member)
    past = Past((history,), np.arange(people), (value,), np.zeros(people, np.bool_))
    box = np.zeros((len(history.domains), 3), np.int32)
    (after,) = past.extend(member, box, box, order=np.flatnonzero(member >= 0), name="next")
    wrong = set()
    for (person, code), chance in chances(after).items():
        number = member[person]
        with_value = int(np.count_nonzero((member == number) & (value == code)))
        if number >= 0 and with_value and chance > 1 / strategy.l:
            wrong.add((int(found.row[person]), code, with_value / int(np.count_nonzero(member == number))))
    assert set(zip(rows.tolist(), found.value[columns].tolist(), shares.tolist(), strict=True)) == wrong


def admits(share: np.ndarray, found: Survivals, whom: list[int], k: int) -> bool:
    """Whether these records may be a class, by what each member's share allows for each value."""
    if len(whom) < k:
        return False
    for column in range(share.shape[1]):
        count = sum(int(found.column[record, 0]) == column for record in whom)
        if count and count > (min(share[found.row[record], column] for record in whom) + 1e-10) * len(whom):
            return False
    return True


def run(
    random: np.random.Generator,
    lifetime: Lifetime,
    *,
    people: int,
    values: int,
    protected: int,
    k: int,
    releases: int,
) -> Iterator[tuple[History, np.ndarray, np.ndarray, Classes | None, History]]:
    """A random series: the history before, who is there with which values, the classes, and the history after."""
    limit = 1 / Strategy.of(lifetime).l
    bounds = [limit if value >= values - protected else Fraction(1) for value in range(values)]
    history = begin(people, bounds, k=k)
    points = random.integers(0, LEAVES, (people, 2))
    value = random.integers(0, values, people)
    for _ in range(releases):
        present = np.flatnonzero(random.random(people) < 0.85)
        value = np.where(random.random(people) < 0.3, random.integers(0, values, people), value)
        if not len(present):
            continue
        try:
            classes, after = next_release(history, present, value[present], points, lifetime)
        except GuaranteeError:
            classes, after = None, history
        yield history, present, value[present], classes, after
        history = after


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lifetime", SHORT, ids=str)
def test_no_series_of_tiny_tables_ever_exceeds_the_limit(lifetime: Lifetime, seed: int) -> None:
    random = np.random.default_rng(seed)
    limit, published = 1 / Strategy.of(lifetime).l, 0
    for _ in range(4):
        values = int(random.integers(2, 7))
        k = int(random.integers(1, 4))
        how = {
            "people": int(random.integers(3, 16)),
            "values": values,
            "protected": int(random.integers(1, values + 1)),
        }
        for before, present, value, classes, after in run(random, lifetime, k=k, releases=6, **how):
            assert max(chances(after).values()) <= limit
            if classes is None:
                continue
            published += 1
            assert classes.size.min() >= k
            strategy = Strategy.of(lifetime)
            found = Survivals.of([before], present, [value.astype(np.int32)])
            share = np.minimum(strategy.shares(found.left, found.linked), float(limit))
            members = [np.flatnonzero(classes.member == number).tolist() for number in range(len(classes))]
            assert all(admits(share, found, whom, k) for whom in members)
    assert published


@pytest.mark.parametrize("seed", range(4))
def test_whoever_of_a_neighborhood_has_what_the_same_people_are_left_out(seed: int) -> None:
    """All swaps of two values in one neighborhood, after a release that gave people different histories."""
    random, lifetime = np.random.default_rng(seed), Lifetime(l=2.0, releases=2)
    people, limit = 64, Fraction(1, 2)
    some = 0
    for _ in range(2):
        history = begin(people, [Fraction(1), limit, limit], k=1)
        points, everybody = random.integers(0, LEAVES, (people, 2)), np.arange(people)
        first = np.zeros(people, np.int64)
        first[random.choice(people, 4, replace=False)] = [1, 1, 2, 2]
        history = next_release(history, everybody, first, points, lifetime)[1]
        # One value is frequent on one side only, so that some neighborhoods bear it and others do not.
        sick, well = random.choice([0, 1, 1, 1], people), random.choice([0] * 19 + [2], people)
        value = np.where(points[:, 0] < LEAVES // 2, sick, well)
        codes = np.ascontiguousarray(points.T.astype(np.int32))
        past = Past((history,), everybody, (value.astype(np.int32),), np.zeros(people, np.bool_))
        _, survivals, share = prospects(past, lifetime)
        size = Allowance(codes, history.domains, guard_of(1, people), survivals, share).neighbors()
        where = neighborhoods(codes, history.domains, size=size)
        left = left_out(history, value, points, lifetime)
        some += 0 < len(left) < people
        for number in range(where.max() + 1):
            assert len({person in left for person in np.flatnonzero(where == number).tolist()}) == 1
        for one, other in combinations(range(people), 2):
            if where[one] == where[other] and value[one] != value[other]:
                swapped = value.copy()
                swapped[[one, other]] = value[[other, one]]
                assert left_out(history, swapped, points, lifetime) == left
    assert some


def left_out(history: History, value: np.ndarray, points: np.ndarray, lifetime: Lifetime) -> set[int]:
    """Who of everybody is in no class; all, when nothing can be published."""
    try:
        classes, _ = next_release(history, np.arange(len(value)), value, points, lifetime)
    except GuaranteeError:
        return set(range(len(value)))
    return set(np.flatnonzero(classes.member < 0).tolist())


@pytest.mark.parametrize("lifetime", SHORT, ids=str)
def test_nobody_is_left_out_where_the_table_as_one_class_keeps_the_promise(lifetime: Lifetime) -> None:
    random, seen = np.random.default_rng(11), 0
    limit = 1 / Strategy.of(lifetime).l
    for _ in range(40):
        how = {"people": int(random.integers(4, 14)), "values": 5, "protected": int(random.integers(1, 4))}
        for before, present, value, classes, _after in run(random, lifetime, k=2, releases=4, **how):
            strategy = Strategy.of(lifetime)
            found = Survivals.of([before], present, [value.astype(np.int32)])
            share = np.minimum(strategy.shares(found.left, found.linked), float(limit))
            if admits(share, found, list(range(len(present))), 2):
                seen += 1
                assert classes is not None
                assert classes.suppressed == 0
    assert seen > 5


@pytest.mark.parametrize("lifetime", [SHORT[1], SHORT[4], Lifetime(l=2.0, releases=8)], ids=str)
def test_larger_series_with_churn_keep_the_promise_exactly(lifetime: Lifetime) -> None:
    random = np.random.default_rng(3)
    limit = 1 / Strategy.of(lifetime).l
    bounds = [Fraction(1)] * 2 + [limit] * 8
    people = 400
    history = begin(people, bounds, k=3)
    points = random.integers(0, LEAVES, (people, 2))
    value = random.choice(10, people, p=[0.4, 0.44] + [0.02] * 8)
    for _ in range(8):
        present = np.flatnonzero(random.random(people) < 0.8)
        changed = random.random(people) < 0.2
        value = np.where(changed, random.choice(10, people, p=[0.4, 0.44] + [0.02] * 8), value)
        classes, history = next_release(history, present, value[present], points, lifetime)
        assert classes.size.min() >= 3
        codes = points[present].T
        kept = classes.member >= 0
        assert (codes[:, kept] >= classes.lo[:, classes.member[kept]]).all()
        assert (codes[:, kept] <= classes.hi[:, classes.member[kept]]).all()
    found = chances(history)
    assert max(found.values()) <= limit
    # What is there to spend is spent: otherwise classes would be larger than they need to be.
    assert max(found.values()) > limit / 4


def test_the_same_table_gives_the_same_classes() -> None:
    random = np.random.default_rng(9)
    codes = random.integers(0, LEAVES, (2, 300)).astype(np.int32)
    value = random.choice(5, 300, p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(np.int32)
    history = begin(300, [Fraction(1)] + [Fraction(1, 2)] * 4, k=3)
    past = Past((history,), np.arange(300), (value,), np.zeros(300, np.bool_))
    made = [
        group(past, codes, history.domains, guard_of(3, 300), lifetime=Lifetime(l=2.0, releases=3)) for _ in range(2)
    ]
    assert (made[0].member == made[1].member).all()
    assert made[0].suppressed == 0


def test_tables_of_few_people_or_without_protected_values() -> None:
    points = np.array([[place % LEAVES, 0] for place in range(10)])
    free = begin(10, [Fraction(1)] * 2, k=3)
    classes, _ = next_release(free, np.arange(10), np.arange(10) % 2, points, SHORT[0])
    assert classes.suppressed == 0
    assert len(classes) > 1
    bound = begin(10, [Fraction(1), Fraction(1, 2)], k=3)
    for present in (np.arange(2), np.zeros(0, np.int64)):
        with pytest.raises(GuaranteeError, match="nobody can be published"):
            next_release(bound, present, np.zeros(len(present), np.int64), points, SHORT[0])
    alone = begin(1, [Fraction(1), Fraction(1, 2)], k=1)
    with pytest.raises(GuaranteeError, match="nobody can be published"):
        next_release(alone, np.arange(1), np.ones(1, np.int64), points, SHORT[0])
    classes, _ = next_release(alone, np.arange(1), np.zeros(1, np.int64), points, SHORT[0])
    assert classes.size.tolist() == [1]


def test_a_share_that_floats_cannot_decide_is_decided_in_whole_numbers() -> None:
    # After (4, 1) twice exactly one in nine is allowed; and 10^9 + 1 of 9 * 10^9 is more by less than floats tell.
    history = begin(4, [Fraction(1), Fraction(1, 2)])
    value = np.array([1, 0, 0, 0], np.int32)
    for name in "12":
        past = Past((history,), np.arange(4), (value,), np.zeros(4, np.bool_))
        box = np.zeros((2, 1), np.int32)
        (history,) = past.extend(np.zeros(4, np.int32), box, box, order=np.arange(4), name=name)
    found = Survivals.of([history], np.arange(4), [value])
    strategy, place = Strategy.of(SHORT[0]), np.zeros(3, np.int64)
    linked, among = np.array([1, 10**12, 10**12 + 1]), np.array([9, 9 * 10**12, 9 * 10**12])
    assert found.keeps(strategy, place, place, linked=linked, among=among).tolist() == [True, True, False]
    fresh = Survivals.of([begin(4, [Fraction(1), Fraction(1, 2)])], np.arange(4), [value])
    linked, among = np.array([1, 10**12, 10**12 + 1]), np.array([2, 2 * 10**12, 2 * 10**12])
    assert fresh.keeps(strategy, place, place, linked=linked, among=among).tolist() == [True, True, False]
