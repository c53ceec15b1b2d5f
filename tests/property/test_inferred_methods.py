"""Fewer rows may be inferred from several releases than a class must have: kept by every method, and used by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations
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
from sequester.methods.cluster.recluster import recluster
from sequester.methods.full_domain.search import full_domain
from sequester.methods.grow import grow
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.specialize.respecialize import respecialize
from sequester.metrics.loss import ail
from sequester.policy import Policy
from series import axis

K, C, LEAVES, NAMES = 5, Fraction(3, 5), 8, "abcd"
DOMAINS = (axis(LEAVES), axis(LEAVES))
Method = Callable[[Past, np.ndarray, ClassGuard, list[str]], Classes]


def _full_domain(past: Past, codes: np.ndarray, guard: ClassGuard, against: list[str]) -> Classes:
    watch = SeriesGuard.of(past, codes, against=against) if len(past.first) else None
    return full_domain(codes, DOMAINS, guard, watch=watch)


def _of(
    method: Callable[..., Classes], past: Past, codes: np.ndarray, guard: ClassGuard, against: list[str]
) -> Classes:
    if not len(past.first):
        return mondrian(codes, DOMAINS, guard)
    return method(past, codes, DOMAINS, guard, against=against)


METHODS: dict[str, Method] = {
    "mondrian": partial(_of, republish),
    "merge": partial(_of, merge),
    "cluster": partial(_of, recluster),
    "grow": partial(_of, lambda *given, against: grow(*given)),
    "specialize": partial(_of, respecialize),
    "full-domain": _full_domain,
}


def _policy() -> Policy:
    attributes: dict[str, Any] = {f"q{number}": {"role": "quasi-identifier", "kind": "number"} for number in range(2)}
    attributes["s"] = {"role": "sensitive"}
    protect = {"k": K, "confidence": float(C), "inferred": 2}
    return Policy.model_validate({"version": 1, "series": "tiny", "attributes": attributes, "protect": protect})


class Town:
    """People, and who of them is in each of three tables."""

    def __init__(self, seed: int, *, leaving: bool) -> None:
        random = np.random.default_rng(seed)
        self.people = int(random.integers(24, 40))
        self.points = random.integers(0, LEAVES, (2, self.people)).astype(np.int32)
        self.value = random.permutation(np.arange(self.people) % len(NAMES)).astype(np.int32)
        joins = np.sort(random.choice(3, self.people, p=[0.6, 0.2, 0.2]))
        self.present = np.array([joins <= time for time in range(3)])
        if leaving:
            self.present[1:] &= random.random(self.people) < 0.85
        self.order = random

    def start(self, inferred: int | None) -> History:
        return History(
            attribute="s",
            values=tuple(NAMES),
            k=K,
            inferred=inferred,
            bounds=(C,) * len(NAMES),
            domains=DOMAINS,
            quasi_names=("q0", "q1"),
            links=np.ones(2, np.bool_),
            people=tuple(range(self.people)),
        )

    def next(self, history: History, method: Method, against: list[str]) -> tuple[History, Classes] | None:
        """The history after one more release, None where the method finds none."""
        person = np.flatnonzero(self.present[len(history)])
        past = Past((history,), person, (self.value[person],), np.zeros(len(person), np.bool_))
        requirement = Requirement.from_policy(_policy(), [from_values(list(NAMES))])
        guard = ClassGuard.of(requirement, self.value[person][None, :])
        try:
            classes = method(past, np.ascontiguousarray(self.points[:, person]), guard, against)
        except GuaranteeError:
            return None
        order = self.order.permutation(len(person))
        made = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(len(history)))
        return made[0], classes


def _differences(history: History, value: np.ndarray) -> list[tuple[int, Fraction]]:
    """People of, and largest share of a value in, everything left when classes are added and subtracted."""
    unions = []
    for release in history.releases:
        assert release.member is not None
        found = {0}
        for one in range(len(release)):
            inside = sum(1 << int(person) for person in np.flatnonzero(release.member == one))
            found |= {mask | inside for mask in found}
        unions.append(found)
    left = {
        outer & ~inner
        for first, second in combinations(unions, 2)
        for one, other in ((first, second), (second, first))
        for outer in one
        for inner in other
        if not inner & ~outer and outer != inner
    }
    sets = [[person for person in range(len(value)) if mask >> person & 1] for mask in left]
    return [(len(some), Fraction(max(Counter(value[some].tolist()).values()), len(some))) for some in sets]


@pytest.mark.parametrize(
    ("name", "leaving"), [*((name, False) for name in METHODS), *((name, True) for name in METHODS if name != "grow")]
)
def test_what_is_inferred_comes_down_to_no_less_than_promised(name: str, leaving: bool) -> None:
    published, below = 0, 0
    for seed in range(30):
        town = Town(seed, leaving=leaving)
        history = town.start(2)
        for _ in town.present:
            made = town.next(history, METHODS[name], ["insider"])
            if made is None:
                break
            history, classes = made
            assert np.bincount(classes.member).min() >= K
            sizes = _differences(history, town.value)
            assert all(people >= 2 and share <= C for people, share in sizes)
            audit = audit_histories([history], _policy(), against=["insider"])
            assert [finding for finding in audit.findings if finding.attack != "row-order"] == []
            published += len(history) > 1
            below += any(people < K for people, _ in sizes)
    assert published > 5
    assert below


@pytest.mark.parametrize("against", [["insider"], ["insider", "neighbor"]], ids=" and ".join)
@pytest.mark.parametrize("leaving", [False, True], ids=["joining", "leaving"])
def test_merge_never_loses_more_where_less_may_be_inferred(leaving: bool, against: list[str]) -> None:
    compared = 0
    for seed in range(12):
        town = Town(seed, leaving=leaving)
        history = town.start(None)
        for _ in town.present:
            less = town.next(replace(history, inferred=2), METHODS["merge"], against)
            more = town.next(history, METHODS["merge"], against)
            if more is None:
                break
            assert less is not None
            assert ail(less[1], DOMAINS) <= ail(more[1], DOMAINS) + 1e-9
            history = more[0]
            compared += 1
    assert compared > 12


def test_mondrian_loses_less_where_less_may_be_inferred() -> None:
    less_lost, more_lost, refused = [], [], 0
    for seed in range(12):
        town = Town(seed, leaving=True)
        history = town.start(None)
        for _ in town.present:
            less = town.next(replace(history, inferred=2), METHODS["mondrian"], ["insider"])
            more = town.next(history, METHODS["mondrian"], ["insider"])
            if more is None:
                refused += less is not None
                break
            assert less is not None
            less_lost.append(ail(less[1], DOMAINS))
            more_lost.append(ail(more[1], DOMAINS))
            history = more[0]
    assert refused
    assert np.sum(less_lost) < np.sum(more_lost)
