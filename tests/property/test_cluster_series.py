"""Clusters of a series: the audit finds nothing, places of leavers are taken by their like, clusters grow and merge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sequester.attacks.audit import audit_histories
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.cluster import arrivals
from sequester.methods.cluster import recluster as module
from sequester.methods.cluster.join import cluster
from sequester.methods.cluster.recluster import recluster
from sequester.methods.merge import merge
from sequester.methods.mondrian.republish import republish
from sequester.metrics.loss import ail
from sequester.policy import Policy
from series import axis

LEAVES, NAMES = 6, "abcdef"


def policy_of(k: int, c: Fraction, names: str = "s") -> Policy:
    attributes: dict[str, Any] = {f"q{number}": {"role": "quasi-identifier", "kind": "number"} for number in range(2)}
    attributes |= {name: {"role": "sensitive"} for name in names}
    protect = {"k": k, "confidence": float(c)}
    return Policy.model_validate({"version": 1, "series": "tiny", "attributes": attributes, "protect": protect})


class World:
    """People who come, go and come back, and the series published about them so far."""

    def __init__(self, points: np.ndarray, value: np.ndarray, *, k: int, c: Fraction, leaves: int = LEAVES) -> None:
        self.points, self.value, self.k, self.c = points.astype(np.int32), value.astype(np.int32), k, c
        self.people, kinds = len(value), int(value.max()) + 1
        self.domains = (axis(leaves), axis(leaves))
        self.names = from_values(list(NAMES[:kinds]))
        self.policy = policy_of(k, c)
        self.present = np.zeros(self.people, np.bool_)
        self.history = History(
            attribute="s",
            values=tuple(NAMES[:kinds]),
            k=k,
            bounds=(c,) * kinds,
            domains=self.domains,
            quasi_names=("q0", "q1"),
            links=np.ones(2, np.bool_),
            people=tuple(range(self.people)),
        )

    @classmethod
    def of(cls, seed: int, *, people: tuple[int, int] = (20, 60)) -> tuple[World, np.random.Generator]:
        """Anybody anywhere, with any value."""
        random = np.random.default_rng(seed)
        count, kinds = int(random.integers(*people)), int(random.integers(3, 6))
        world = cls(
            random.integers(0, LEAVES, (count, 2)),
            np.append(random.integers(0, kinds, count - 1), kinds - 1),
            k=int(random.integers(2, 4)),
            c=Fraction(int(random.integers(5, 10)), 10),
        )
        world.present = random.random(count) < 0.5
        return world, random

    def past(self, *, retain: bool = False) -> tuple[Past, np.ndarray, ClassGuard]:
        """The next table: those who are here, and those who left the last release if they are to be retained."""
        retained = np.zeros(self.people, np.bool_)
        if retain and len(self.history):
            retained = (self.last >= 0) & ~self.present
        person = np.flatnonzero(self.present | retained)
        past = Past((self.history,), person, (self.value[person],), retained[person])
        codes = np.where(retained[person], 0, self.points[person].T).astype(np.int32)
        requirement = Requirement.from_policy(self.policy, [self.names])
        return past, codes, ClassGuard.of(requirement, self.value[person][None, :])

    @property
    def last(self) -> np.ndarray:
        """Per person, her class of the last release."""
        member = self.history.releases[-1].member
        assert member is not None
        return member

    def publish(self, past: Past, classes: Classes) -> None:
        order = np.random.default_rng(len(self.history)).permutation(len(past))
        name = str(len(self.history))
        self.history = past.extend(classes.member, classes.lo, classes.hi, order=order, name=name)[0]

    def release(self, method: Any = recluster, *, retain: bool = False, **options: Any) -> Classes:
        """Publish the next table."""
        past, codes, guard = self.past(retain=retain)
        classes: Classes = method(past, codes, self.domains, guard, **{"against": ["insider"], **options})
        assert (classes.member >= 0).all()
        here = ~past.retained
        assert (classes.lo[:, classes.member][:, here] <= codes[:, here]).all()
        assert (classes.hi[:, classes.member][:, here] >= codes[:, here]).all()
        self.publish(past, classes)
        return classes

    def findings(self, against: list[str]) -> list[Any]:
        found = audit_histories([self.history], self.policy, against=against).findings
        return [finding for finding in found if finding.attack != "row-order"]


def series(seed: int, *, leaving: float, returning: float, **options: Any) -> Iterator[World]:
    """Up to four releases, as long as there are any."""
    world, random = World.of(seed)
    ever = world.present.copy()
    for _ in range(4):
        try:
            world.release(**options)
        except GuaranteeError as error:
            assert error.guarantee == "series" if len(world.history) else "cluster"  # noqa: PT017 - the series ends
            return
        yield world
        new = ~ever & (random.random(world.people) < random.choice([0.3, 0.7]))
        back = ever & ~world.present & (random.random(world.people) < returning)
        gone = world.present & (random.random(world.people) < leaving)
        world.present = (world.present & ~gone) | new | back
        ever |= world.present


@pytest.mark.parametrize(
    ("against", "similarity"),
    [(["insider"], None), (["insider"], 0.7), (["insider", "neighbor"], None)],
    ids=["insider", "similar", "both"],
)
@pytest.mark.parametrize(
    ("leaving", "returning", "retain"),
    [(0.0, 0.0, False), (0.1, 0.0, False), (0.3, 0.0, False), (0.3, 0.4, False), (0.2, 0.0, True)],
    ids=["joining", "few leave", "leaving", "returning", "retained"],
)
def test_nothing_published_is_attacked(
    against: list[str], similarity: float | None, leaving: float, returning: float, retain: bool
) -> None:
    published = 0
    for seed in range(5):
        options = {"against": against, "retain": retain, "similarity": similarity}
        for world in series(seed, leaving=leaving, returning=returning, **options):
            assert world.findings(against) == []
            published += len(world.history) > 1
    assert published > 4


def test_the_first_release_is_a_table_of_its_own() -> None:
    world, _ = World.of(1)
    past, codes, guard = world.past()
    alone = cluster(codes, world.domains, guard, similarity=0.8)
    found = recluster(past, codes, world.domains, guard, against=["insider"], similarity=0.8)
    assert np.array_equal(alone.member, found.member)
    assert np.array_equal(alone.lo, found.lo)


@pytest.mark.parametrize("seed", range(6))
def test_while_nobody_leaves_no_more_is_lost_than_by_newcomers_alone(seed: int) -> None:
    """The clusters of the last release and those of newcomers can always stay as they are."""
    world, random = World.of(seed, people=(60, 100))
    world.release()
    for _ in range(2):
        before, seen = world.history.releases[-1], world.present.copy()
        world.present |= random.random(world.people) < 0.6
        new = np.flatnonzero(world.present & ~seen)
        past, codes, guard = world.past()
        own = np.isin(past.person, new)
        alone = cluster(
            np.ascontiguousarray(codes[:, own]), world.domains, replace(guard, values=guard.values[own])
        )  # fmt: skip
        stay = Classes(before.row_class, before.lo, before.hi)
        most = ail(stay, world.domains) * len(before.row_class) + ail(alone, world.domains) * len(new)
        found = world.release()
        assert ail(found, world.domains) * len(past) <= most + 1e-6
        assert world.findings(["insider"]) == []


def two_clusters() -> World:
    """Four people with four values at either end, of whom the first will leave, and then newcomers."""
    points = [(0, 0), (0, 1), (1, 0), (1, 1), (8, 8), (8, 9), (9, 8), (9, 9)]
    newcomers = [(2, 0), (5, 5), (5, 6), (6, 5), (6, 6)]
    values = [0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 2, 3]
    world = World(np.array(points + newcomers), np.array(values), k=3, c=Fraction(6, 10), leaves=10)
    world.present[:8] = True
    return world


def test_somebody_near_with_the_same_value_takes_the_place_of_whoever_left() -> None:
    world = two_clusters()
    world.release()
    assert sorted(world.history.releases[-1].size.tolist()) == [4, 4]
    world.present[:] = True
    world.present[0] = False
    world.release()
    # Persons 8 and 9 have the value of person 0, and 8 is nearer.
    assert world.last[[1, 2, 3]].tolist() == [world.last[8]] * 3
    assert sorted(world.value[world.last == world.last[8]].tolist()) == [0, 1, 2, 3]
    assert len(set(world.last[[4, 5, 6, 7]])) == 1
    assert world.findings(["insider"]) == []
    other = two_clusters()
    other.release()
    other.present[:] = True
    other.present[0] = False
    losses = {}
    for method in (recluster, merge):
        past, codes, guard = other.past()
        losses[method] = ail(method(past, codes, other.domains, guard, against=["insider"]), other.domains)
    assert losses[recluster] < losses[merge]


def test_places_are_matched_at_the_least_loss_together() -> None:
    """The nearest to both is one person; whoever has another choice takes the other."""
    points = [(0, 0), (0, 1), (1, 0), (4, 0), (4, 1), (5, 0), (2, 0), (9, 0)]
    world = World(np.array([*points, (9, 9)]), np.array([0, 1, 2, 0, 1, 2, 0, 0, 3]), k=3, c=Fraction(1, 2), leaves=10)
    world.present[:6] = True
    world.release()
    assert len(set(world.last[:3])) == 1
    assert len(set(world.last[:6])) == 2
    world.present[:8] = [False, True, True, False, True, True, True, True]
    world.release()
    # For 6 the places are worth 2 and 2, for 7 they are worth 8 and 5.
    assert world.last[6] == world.last[1] == world.last[2]
    assert world.last[7] == world.last[4] == world.last[5]
    assert world.findings(["insider"]) == []


@pytest.mark.parametrize("pairs", [0, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_many_places_are_filled_in_turn_or_by_matching(monkeypatch, seed: int, pairs: int) -> None:
    monkeypatch.setattr(arrivals, "MATCHED", pairs)
    random = np.random.default_rng(seed)
    world = World(random.integers(0, 20, (300, 2)), random.integers(0, 4, 300), k=3, c=Fraction(6, 10), leaves=20)
    world.present[:200] = True
    world.release()
    before = world.last
    world.present[:] = True
    world.present[random.choice(200, 20, replace=False)] = False
    found = world.release()
    assert world.findings(["insider"]) == []
    republished = World(world.points, world.value, k=3, c=Fraction(6, 10), leaves=20)
    republished.present[:200] = True
    republished.release()
    assert np.array_equal(republished.last, before)
    republished.present = world.present
    try:
        other = republished.release(republish)
    except GuaranteeError:
        return
    assert ail(found, world.domains) < 0.8 * ail(other, world.domains)


@pytest.mark.parametrize("seed", range(3))
def test_a_place_that_nobody_can_take_is_hidden_among_near_ones(monkeypatch, seed: int) -> None:
    """No newcomer has the last value: clusters that lost it merge with others that have it and lost somebody too."""
    monkeypatch.setattr(module, "FEW", 0)
    losses = []
    for gather in (True, False):
        random = np.random.default_rng(seed)
        value = random.integers(0, 4, 400)
        value[:300:8] = 4
        world = World(random.integers(0, 20, (400, 2)), value, k=3, c=Fraction(6, 10), leaves=20)
        world.present[:300] = True
        world.release()
        world.present[:] = True
        world.present[:6] = world.present[15:180:8] = world.present[8] = False
        if not gather:
            monkeypatch.setattr(module, "gather", lambda *_: None)
        losses.append(ail(world.release(), world.domains))
        assert world.findings(["insider"]) == []
    assert losses[0] < 0.95 * losses[1]


def test_a_cluster_that_all_have_left_changes_nothing() -> None:
    world, _ = World.of(4)
    world.release()
    before = world.last
    world.present &= before != before[np.flatnonzero(world.present)[0]]
    world.release()
    stay = world.present
    pairs = set(zip(before[stay].tolist(), world.last[stay].tolist(), strict=True))
    assert len(pairs) == len(set(before[stay].tolist())) == len(set(world.last[stay].tolist()))
    assert world.findings(["insider"]) == []


def test_newcomers_join_clusters_they_are_similar_to_as_a_group() -> None:
    """Grow-only lemma: k newcomers with no value too frequent may join, and nobody alone."""
    points = [(0, 0)] * 4 + [(9, 9)] * 4 + [(0, 0)] * 3 + [(9, 8), (8, 9), (9, 9)]
    values = [0, 1, 2, 0, 0, 1, 2, 1, 0, 1, 2, 0, 1, 2]
    for similarity, joins in ((None, [True, False]), (0.85, [True, True]), (1.0, [True, False])):
        world = World(np.array(points), np.array(values), k=3, c=Fraction(6, 10), leaves=10)
        world.present[:8] = True
        world.release()
        world.present[:] = True
        world.release(similarity=similarity)
        found = world.last
        assert [len(set(found[[0, 8, 9, 10]])) == 1, len(set(found[[4, 11, 12, 13]])) == 1] == joins
        assert world.findings(["insider"]) == []


def test_clusters_are_the_same_whatever_the_threads(monkeypatch) -> None:
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        world, random = World.of(3, people=(90, 100))
        for _ in range(3):
            world.release()
            world.present = (world.present & (random.random(world.people) > 0.05)) | (random.random(world.people) < 0.3)
        found.append(world.last)
    assert np.array_equal(found[0], found[1])


def test_people_who_left_and_are_published_on_keep_their_box() -> None:
    kept = 0
    for seed in range(6):
        for world in series(seed, leaving=0.3, returning=0.0, retain=True):
            release = world.history.releases[-1]
            gone = np.flatnonzero((world.last >= 0) & ~world.present)
            if len(world.history) < 2:
                continue
            earlier = world.history.releases[-2]
            assert earlier.member is not None
            for person in gone.tolist():
                new, old = world.last[person], earlier.member[person]
                assert (release.lo[:, new] <= earlier.lo[:, old]).all()
                assert (release.hi[:, new] >= earlier.hi[:, old]).all()
                together = earlier.member == old
                assert (world.last[together] == new).all()
                kept += 1
    assert kept > 20


def test_one_newcomer_alone_cannot_be_hidden() -> None:
    world, _ = World.of(0)
    world.present[-1] = False
    world.release()
    world.present[-1] = True
    with pytest.raises(GuaranteeError) as caught:
        world.release()
    assert caught.value.guarantee == "series"


def test_nothing_new_changes_nothing() -> None:
    world, _ = World.of(2)
    world.release()
    before = world.last
    world.release()
    assert len(set(zip(before.tolist(), world.last.tolist(), strict=True))) == len(set(before.tolist()))


def test_several_sensitive_attributes_are_watched_together() -> None:
    published = 0
    for seed in range(5):
        world, random = World.of(seed, people=(50, 80))
        other = random.integers(0, 4, world.people).astype(np.int32)
        second = replace(world.history, attribute="t", values=tuple("wxyz"), bounds=(world.c,) * 4)
        histories: tuple[History, ...] = (world.history, second, replace(second, attribute="u", permanent=False))
        policy = policy_of(world.k, world.c, "stu")
        requirement = Requirement.from_policy(policy, [world.names, *[from_values(list("wxyz"))] * 2])
        for number in range(3):
            person = np.flatnonzero(world.present)
            values = (world.value[person], other[person], other[person])
            past = Past(histories, person, values, np.zeros(len(person), np.bool_))
            guard = ClassGuard.of(requirement, np.array(values))
            try:
                classes = recluster(past, world.points[person].T.copy(), world.domains, guard, against=["insider"])
            except GuaranteeError:
                break
            order = random.permutation(len(person))
            histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(number))
            found = audit_histories(histories, world.policy, against=["insider"]).findings
            assert [finding for finding in found if finding.attack != "row-order"] == []
            published += number > 0
            stay = world.present & (random.random(world.people) > 0.05)
            world.present = stay | (random.random(world.people) < 0.4)
    assert published > 3
