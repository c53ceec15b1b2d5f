"""Regions of a registration list against the definition: every world of who owns which rows, in exact fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from churn import LEAVES, begin, guard_of, next_release
from sequester.attacks import breach
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError, PolicyError
from sequester.guarantees.lifetime import Strategy
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.regions import regions
from sequester.policy import Policy
from sequester.policy.protect import Lifetime

STRATEGIES = [
    Lifetime(l=2.0, releases=1),
    Lifetime(l=2.0, releases=3),
    Lifetime(l=1.5, releases=2),
    Lifetime(l=3.0, strategy="geometric", alpha=1.5),
    Lifetime(l=2.0, strategy="geometric", alpha=2.0),
]


def publish(
    history: History,
    present: np.ndarray,
    values: np.ndarray,
    points: np.ndarray,
    lifetime: Lifetime,
    *,
    guard: ClassGuard | None = None,
    registered: np.ndarray | None = None,
) -> tuple[Classes, History]:
    """Publish these of the registered people; attributes that do not link may differ from the list."""
    past = Past((history,), present, (values.astype(np.int32),), np.zeros(len(present), np.bool_))
    codes = np.ascontiguousarray(points[present].T.astype(np.int32))
    everybody = np.ascontiguousarray((points if registered is None else registered).T.astype(np.int32))
    guard = guard_of(history.k, len(present)) if guard is None else guard
    classes = regions(past, codes, history.domains, guard, lifetime=lifetime, registered=everybody)
    order = np.flatnonzero(classes.member >= 0)
    (after,) = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(len(history) + 1))
    return classes, after


def fitting(history: History, release: int, registered: np.ndarray) -> list[list[int]]:
    """Per class, the registered people inside its box."""
    published, links = history.releases[release], history.links
    lo, hi, points = published.lo[links], published.hi[links], registered[:, links]
    return [
        [p for p, point in enumerate(points) if ((lo[:, c] <= point) & (point <= hi[:, c])).all()]
        for c in range(len(published))
    ]


def worlds(history: History, release: int, registered: np.ndarray) -> Iterator[frozenset[tuple[int, int]]]:
    """Every way to hand all published rows to different registered people who fit them: pairs (person, value)."""
    fits = fitting(history, release, registered)
    rows = [
        [value for value, count in enumerate(counts) for _ in range(count)]
        for counts in history.releases[release].counts.tolist()
    ]

    def owners(number: int, taken: frozenset[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
        if number == len(fits):
            yield taken
            return
        used = {person for person, _ in taken}
        for people in permutations([person for person in fits[number] if person not in used], len(rows[number])):
            yield from owners(number + 1, taken | set(zip(people, rows[number], strict=True)))

    yield from owners(0, frozenset())


def chances(history: History, registered: np.ndarray, *, jointly: int = 3000) -> dict[tuple[int, int], Fraction]:
    """The share of worlds in which a person ever has a value: of all releases at once where these are few enough."""
    found = [list(worlds(history, release, registered)) for release in range(len(history))]
    everything = list(product(range(len(registered)), range(len(history.values))))
    if prod(map(len, found)) <= jointly:
        linked: Counter[tuple[int, int]] = Counter()
        for combined in product(*found):
            linked.update(frozenset().union(*combined))
        return {pair: Fraction(linked[pair], prod(map(len, found))) for pair in everything}
    having = [Counter(pair for world in release for pair in world) for release in found]
    return {
        pair: 1
        - prod((1 - Fraction(one[pair], len(of)) for one, of in zip(having, found, strict=True)), start=Fraction(1))
        for pair in everything
    }


def check_form(classes: Classes, codes: np.ndarray, links: np.ndarray, k: int) -> None:
    """Every record is in one class or in none, inside its box; boxes share no point and have k records."""
    assert len(classes.member) == codes.shape[1]
    assert classes.size.min() >= k
    kept = classes.member >= 0
    assert (codes[:, kept] >= classes.lo[:, classes.member[kept]]).all()
    assert (codes[:, kept] <= classes.hi[:, classes.member[kept]]).all()
    for one, other in combinations(range(len(classes)), 2):
        lo = np.maximum(classes.lo[links, one], classes.lo[links, other])
        hi = np.minimum(classes.hi[links, one], classes.hi[links, other])
        assert (lo > hi).any()
    for number in range(len(classes)):
        mine = codes[:, classes.member == number]
        assert (classes.lo[~links, number] == mine[~links].min(axis=1)).all()
        assert (classes.hi[~links, number] == mine[~links].max(axis=1)).all()


def survivals(history: History, registered: np.ndarray) -> dict[tuple[int, int], tuple[Fraction, int]]:
    """Per person and value, as audited: what is left, and in how many releases there was a link.

    Where boxes share people a class has only its own rows, and the worst box counts.
    """
    left = dict.fromkeys(product(range(len(registered)), range(len(history.values))), (Fraction(1), 0))
    for release, published in enumerate(history.releases):
        fits = fitting(history, release, registered)
        often = Counter(person for people in fits for person in people)
        worst: dict[tuple[int, int], Fraction] = {}
        for people, counts in zip(fits, published.counts.tolist(), strict=True):
            apart = all(often[person] == 1 for person in people)
            among = max(len(people) if apart else 1, sum(counts), 1)
            for person, (value, count) in product(people, enumerate(counts)):
                worst[person, value] = max(worst.get((person, value), Fraction(0)), Fraction(count, among))
        for pair, share in worst.items():
            kept, times = left[pair]
            left[pair] = (kept * (1 - share), times + (share > 0))
    return left


def check_shares(before: History, after: History, registered: np.ndarray, lifetime: Lifetime) -> None:
    """No class of the last release has more of a value than the strategy allows anybody inside its box."""
    left, strategy = survivals(before, registered), Strategy.of(lifetime)
    published, fits = after.releases[-1], fitting(after, len(after) - 1, registered)
    for people, counts in zip(fits, published.counts.tolist(), strict=True):
        assert len(people) >= sum(counts)
        for person, (value, count) in product(people, enumerate(counts)):
            if count and after.bounds[value] < 1:
                kept, times = left[person, value]
                allowed = strategy.shares(np.array([float(kept)]), np.array([times]))[0]
                assert count / len(people) <= min(allowed, float(after.bounds[value])) + 1e-9


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), lifetime=st.sampled_from(STRATEGIES), moving=st.booleans(), data=st.data())
def test_no_series_of_tiny_tables_exceeds_the_limit_in_any_reading(
    seed: int, lifetime: Lifetime, moving: bool, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    people = data.draw(st.integers(2, 6))
    values = data.draw(st.integers(2, 4))
    k = data.draw(st.integers(1, 2))
    limit = 1 / Strategy.of(lifetime).l
    bounds = [Fraction(1)] + [limit if data.draw(st.booleans()) else Fraction(1) for _ in range(values - 1)]
    bounds[-1] = min(bounds[-1], limit)
    history = replace(begin(people, bounds, k=k), links=np.array([True, not moving]))
    points = random.integers(0, 4, (people, 2))
    listed = points.copy()
    value = random.integers(0, values, people)
    for _ in range(data.draw(st.integers(1, 4))):
        present = np.flatnonzero(random.random(people) < 0.7)
        value = np.where(random.random(people) < 0.5, random.integers(0, values, people), value)
        if moving:
            points[:, 1] = random.integers(0, 4, people)
        try:
            classes, after = publish(history, present, value[present], points, lifetime, registered=listed)
        except GuaranteeError:
            continue
        check_form(classes, points[present].T, history.links, k)
        check_shares(history, after, listed, lifetime)
        history = after
        audited = breach.find(history, l=lifetime.l, registered=listed.T.astype(np.int32))
        assert audited.findings == []
        exact = {pair: chance for pair, chance in chances(history, listed).items() if history.bounds[pair[1]] < 1}
        assert max(exact.values()) <= limit
        assert audited.measure == pytest.approx(float(max(exact.values())), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), lifetime=st.sampled_from(STRATEGIES))
def test_after_boxes_that_overlap_nobody_comes_to_exceed_the_limit(seed: int, lifetime: Lifetime) -> None:
    random = np.random.default_rng(seed)
    people, values = int(random.integers(4, 12)), 3
    limit = 1 / Strategy.of(lifetime).l
    history = begin(people, [Fraction(1), limit, limit], k=1)
    points = random.integers(0, 5, (people, 2))
    for release in range(4):
        present = np.flatnonzero(random.random(people) < 0.7)
        value = random.choice(values, len(present), p=[0.6, 0.2, 0.2])
        before = {pair: kept for pair, (kept, _) in survivals(history, points).items()}
        try:
            if release < 2:
                _, history = next_release(history, present, value, points, lifetime)
                continue
            _, after = publish(history, present, value, points, lifetime)
        except GuaranteeError:
            continue
        for (person, code), (kept, _) in survivals(after, points).items():
            if history.bounds[code] < 1:
                assert kept >= 1 - limit or kept == before[person, code]
        check_shares(history, after, points, lifetime)
        history = after


@pytest.mark.parametrize("lifetime", STRATEGIES, ids=str)
def test_nobody_is_left_out_where_one_box_around_all_keeps_the_promise(lifetime: Lifetime) -> None:
    random, seen = np.random.default_rng(5), 0
    strategy = Strategy.of(lifetime)
    for _ in range(40):
        people = int(random.integers(4, 30))
        bounds = [Fraction(1)] * 2 + [1 / strategy.l] * 3
        history = begin(people, bounds, k=2)
        points = random.integers(0, LEAVES, (people, 2))
        for _ in range(3):
            present = np.flatnonzero(random.random(people) < 0.5)
            value = random.choice(5, len(present), p=[0.4, 0.3, 0.1, 0.1, 0.1])
            left = survivals(history, points)
            counts = np.bincount(value, minlength=5)
            fits = len(present) >= 2 and all(
                counts[code] / people
                <= strategy.shares(np.array([float(left[person, code][0])]), np.array([left[person, code][1]]))[0]
                for person, code in product(range(people), range(2, 5))
                if counts[code]
            )
            try:
                classes, history = publish(history, present, value, points, lifetime)
            except GuaranteeError:
                assert not fits
                continue
            assert classes.suppressed == 0 or not fits
            seen += fits
    assert seen > 20


@pytest.mark.parametrize("lifetime", [STRATEGIES[1], STRATEGIES[4], Lifetime(l=3.0, releases=8)], ids=str)
def test_larger_series_with_churn_keep_the_promise_and_use_it(lifetime: Lifetime) -> None:
    random = np.random.default_rng(3)
    limit, people = 1 / Strategy.of(lifetime).l, 300
    history = begin(people, [Fraction(1)] * 2 + [limit] * 8, k=3)
    points = random.integers(0, LEAVES, (people, 2))
    value = random.choice(10, people, p=[0.4, 0.2] + [0.05] * 8)
    for _ in range(6):
        present = np.flatnonzero(random.random(people) < 0.5)
        changed = random.random(people) < 0.2
        value = np.where(changed, random.choice(10, people, p=[0.4, 0.2] + [0.05] * 8), value)
        classes, after = publish(history, present, value[present], points, lifetime)
        check_form(classes, points[present].T, history.links, 3)
        check_shares(history, after, points, lifetime)
        history = after
    found = breach.find(history, l=lifetime.l, registered=points.T.astype(np.int32))
    assert found.findings == []
    assert found.measure is not None
    assert float(limit) / 4 < found.measure <= float(limit)


def test_several_views_that_change_are_all_kept() -> None:
    random, lifetime = np.random.default_rng(8), Lifetime(l=2.0, releases=3)
    people = 80
    histories = tuple(begin(people, [Fraction(1)] + [Fraction(1, 2)] * 3, k=2) for _ in range(2))
    points = random.integers(0, LEAVES, (people, 2)).astype(np.int32)
    permanent = replace(histories[0], permanent=True)
    for name in "1234":
        present = np.flatnonzero(random.random(people) < 0.4)
        value = tuple(random.choice(4, len(present), p=[0.7, 0.1, 0.1, 0.1]).astype(np.int32) for _ in range(3))
        past = Past((permanent, *histories), present, value, np.zeros(len(present), np.bool_))
        classes = regions(
            past,
            np.ascontiguousarray(points[present].T),
            permanent.domains,
            guard_of(2, len(present)),
            lifetime=lifetime,
            registered=np.ascontiguousarray(points.T),
        )
        order = np.flatnonzero(classes.member >= 0)
        permanent, *rest = past.extend(classes.member, classes.lo, classes.hi, order=order, name=name)
        histories = tuple(rest)
        for history in histories:
            audited = breach.find(history, l=2, registered=points.T.copy())
            assert audited.findings == []
            assert audited.measure


def on_a_line(people: int, *, k: int, l: int) -> History:  # noqa: E741
    """One attribute; the values are ordinary (0) and protected (1)."""
    return begin(people, [Fraction(1), Fraction(1, l)], k=k, attributes=1)


def test_absent_people_dilute_a_class() -> None:
    # Two of eight are present, and one in four is allowed: without the others there is no class.
    points, lifetime = np.arange(8)[:, None], Lifetime(l=4.0, releases=1)
    history, present, values = on_a_line(8, k=2, l=4), np.array([0, 1]), np.array([1, 0])
    with pytest.raises(GuaranteeError):
        next_release(history, present, values, points, lifetime)
    classes, after = publish(history, present, values, points, lifetime)
    assert classes.member.tolist() == [0, 0]
    # No wider than to reach four people.
    assert (classes.lo.tolist(), classes.hi.tolist()) == ([[0]], [[3]])
    assert chances(after, points)[0, 1] == Fraction(1, 4)


def test_classes_are_smaller_than_without_a_list() -> None:
    random, lifetime = np.random.default_rng(2), Lifetime(l=3.0, releases=3)
    people = 2000
    points = random.integers(0, LEAVES, (people, 2))
    history = begin(people, [Fraction(1)] + [Fraction(1, 3)] * 5, k=3)
    present = np.flatnonzero(random.random(people) < 0.15)
    value = random.choice(6, len(present), p=[0.5] + [0.1] * 5)
    with_list, _ = publish(history, present, value, points, lifetime)
    without, _ = next_release(history, present, value, points, lifetime)
    assert with_list.suppressed == 0
    assert with_list.size.mean() < without.size.mean() / 2


def test_a_box_keeps_clear_of_people_who_must_not_be_linked_again() -> None:
    lifetime, points = Lifetime(l=2.0, releases=1), np.array([[0], [2], [3], [4]])
    classes, history = publish(on_a_line(4, k=1, l=2), np.array([3]), np.array([1]), points, lifetime)
    assert (classes.lo.tolist(), classes.hi.tolist()) == ([[3]], [[4]])
    # One of two is all they can bear: now they have to be without the value.
    for person in (2, 3):
        with pytest.raises(GuaranteeError, match="nobody can be published"):
            publish(history, np.array([person]), np.array([1]), points, lifetime)
    # The person at 2 finds a partner, though not the nearest.
    classes, _ = publish(history, np.array([1]), np.array([1]), points, lifetime)
    assert (classes.lo.tolist(), classes.hi.tolist()) == ([[0]], [[2]])
    # Where nobody has the value they may be published, and so may others with them.
    classes, after = publish(history, np.arange(4), np.zeros(4, int), points, lifetime)
    assert classes.suppressed == 0
    # Whoever has it beside them is left out, and nobody else is.
    classes, after = publish(history, np.arange(1, 4), np.array([0, 1, 0]), points, lifetime)
    assert classes.member[1] == -1
    assert classes.suppressed == 1
    assert [chances(after, points)[person, 1] for person in range(4)] == [0, 0, Fraction(1, 2), Fraction(1, 2)]


def test_a_region_with_a_value_that_is_too_frequent_is_left_out_as_a_whole() -> None:
    lifetime, points = Lifetime(l=4.0, releases=1), np.repeat([[0], [7]], 12, axis=0)
    value = np.array([1] * 6 + [0] * 4 + [1] * 3 + [0] * 7)
    present = np.concatenate([np.arange(10), np.arange(12, 22)])
    # Three of twelve registered people may have it: nobody is picked from the six.
    classes, _ = publish(on_a_line(24, k=2, l=4), present, value, points, lifetime)
    assert np.flatnonzero(classes.member < 0).tolist() == list(range(10))


def test_the_static_criteria_hold_in_the_records_and_not_in_the_list() -> None:
    random = np.random.default_rng(4)
    people, names = 300, tuple("abcd")
    policy = Policy.model_validate(
        {
            "version": 1,
            "series": "s",
            "attributes": {
                **{name: {"role": "quasi-identifier"} for name in ("q0", "q1")},
                "s": {"role": "sensitive", "values": "transient", "ordinary": ["a"]},
            },
            "protect": {
                "k": 3,
                "confidence": 0.5,
                "diversity": {"kind": "distinct", "l": 2},
                "lifetime": {"l": 2.0, "releases": 3},
                "against": ["lifetime"],
            },
        }
    )
    history = begin(people, [Fraction(1)] + [Fraction(1, 2)] * 3, k=3)
    points = random.integers(0, LEAVES, (people, 2))
    for share in (0.1, 0.7):
        present = np.flatnonzero(random.random(people) < 0.4)
        value = random.choice(4, len(present), p=[0.8 - share, share, 0.1, 0.1]).astype(np.int32)
        guard = ClassGuard.of(Requirement.from_policy(policy, [from_values(names)]), value[None, :])
        classes, after = publish(history, present, value, points, Lifetime(l=2.0, releases=3), guard=guard)
        counts = after.releases[-1].counts
        assert (counts.sum(axis=1) >= 3).all()
        assert (2 * counts[:, 1:] <= counts.sum(axis=1)[:, None]).all()
        assert ((counts > 0).sum(axis=1) >= 2).all()
        assert (classes.suppressed > 0) == (share > 0.5)


def test_without_an_attribute_that_links_all_are_one_class_among_all() -> None:
    history = replace(on_a_line(9, k=2, l=3), links=np.zeros(1, np.bool_))
    points = np.arange(9)[:, None] % LEAVES
    lifetime = Lifetime(l=3.0, releases=1)
    classes, after = publish(history, np.arange(4), np.array([1, 1, 1, 0]), points, lifetime, registered=points * 0)
    assert classes.size.tolist() == [4]
    assert (classes.lo.tolist(), classes.hi.tolist()) == ([[0]], [[3]])
    assert breach.find(after, l=3, registered=points.T.astype(np.int32)).measure == 1 / 3


def test_the_same_table_gives_the_same_classes() -> None:
    random, lifetime = np.random.default_rng(9), Lifetime(l=3.0, releases=2)
    points = random.integers(0, LEAVES, (500, 2))
    history = begin(500, [Fraction(1)] + [Fraction(1, 3)] * 4, k=3)
    present = np.flatnonzero(random.random(500) < 0.5)
    value = random.choice(5, len(present), p=[0.6, 0.1, 0.1, 0.1, 0.1])
    _, history = publish(history, present, value, points, lifetime)
    one, other = (publish(history, present, value, points, lifetime)[0] for _ in range(2))
    assert (one.member == other.member).all()
    assert (one.lo == other.lo).all()


def test_what_cannot_be_done_is_refused() -> None:
    history, points, lifetime = on_a_line(3, k=1, l=2), np.array([[0], [0], [1]]), STRATEGIES[0]
    for listed, lacking in ((points[1:], 1), (points[:2], 1), (points[:0], 3)):
        with pytest.raises(ValueError, match=f"the registration list lacks {lacking} of the people"):
            publish(history, np.arange(3), np.zeros(3, int), points, lifetime, registered=listed)
    with pytest.raises(GuaranteeError, match="nobody can be published"):
        publish(history, np.zeros(0, np.int64), np.zeros(0, int), points, lifetime)
    with pytest.raises(GuaranteeError, match="nobody can be published"):
        publish(history, np.array([2]), np.ones(1, int), points, lifetime, registered=points[2:])
    with pytest.raises(GuaranteeError, match="nobody can be published"):
        publish(replace(history, k=4), np.arange(3), np.zeros(3, int), points, lifetime)
    with pytest.raises(PolicyError, match="no sensitive attribute is transient"):
        publish(replace(history, permanent=True), np.arange(3), np.zeros(3, int), points, lifetime)
    nobody = (np.zeros((3, 0), np.int32), np.zeros((0, 0), np.int32))
    with pytest.raises(ValueError, match="without a population"):
        publish(
            history, np.arange(3), np.zeros(3, int), points, lifetime,
            guard=ClassGuard(guard_of(1, 3).limits, *nobody, known=1),
        )  # fmt: skip
