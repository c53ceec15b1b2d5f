"""Whatever a method for a series publishes, the audit finds nothing; or it says that nothing can be published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sequester.attacks.audit import audit_histories
from sequester.domain.tree import from_values
from sequester.errors import GuaranteeError
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.merge import merge
from sequester.methods.mondrian.republish import republish
from sequester.policy import Policy
from series import axis

LEAVES, NAMES = 6, "abcdef"


def policy_of(k: int, c: Fraction) -> Policy:
    attributes = {f"q{number}": {"role": "quasi-identifier", "kind": "number"} for number in range(2)}
    attributes["s"] = {"role": "sensitive"}
    protect = {"k": k, "confidence": float(c)}
    return Policy.model_validate({"version": 1, "series": "tiny", "attributes": attributes, "protect": protect})


class World:
    """People who come, go and come back, and the series published about them so far."""

    def __init__(self, seed: int, *, leaving: float, returning: float) -> None:
        self.random = np.random.default_rng(seed)
        self.people = int(self.random.integers(20, 60))
        self.k, self.c = int(self.random.integers(2, 4)), Fraction(int(self.random.integers(5, 10)), 10)
        kinds = int(self.random.integers(3, 6))
        self.points = self.random.integers(0, LEAVES, (self.people, 2)).astype(np.int32)
        self.value = self.random.integers(0, kinds, self.people).astype(np.int32)
        self.domains = (axis(LEAVES), axis(LEAVES))
        self.names = from_values(list(NAMES[:kinds]))
        self.policy = policy_of(self.k, self.c)
        self.leaving, self.returning = leaving, returning
        self.present = self.random.random(self.people) < 0.5
        self.ever = self.present.copy()
        self.history = History(
            attribute="s",
            values=tuple(NAMES[:kinds]),
            k=self.k,
            bounds=(self.c,) * kinds,
            domains=self.domains,
            quasi_names=("q0", "q1"),
            links=np.ones(2, np.bool_),
            people=tuple(range(self.people)),
        )

    def move(self) -> None:
        """Some join, some leave, some come back."""
        new = ~self.ever & (self.random.random(self.people) < self.random.choice([0.3, 0.7]))
        back = self.ever & ~self.present & (self.random.random(self.people) < self.returning)
        gone = self.present & (self.random.random(self.people) < self.leaving)
        self.present = (self.present & ~gone) | new | back
        self.ever |= self.present

    def past(self, *, retain: bool) -> tuple[Past, np.ndarray, ClassGuard]:
        """The next table: those who are here, and those who left the last release if they are to be retained."""
        retained = np.zeros(self.people, np.bool_)
        if retain and len(self.history):
            member = self.history.releases[-1].member
            assert member is not None
            retained = (member >= 0) & ~self.present
        person = self.random.permutation(np.flatnonzero(self.present | retained))
        past = Past((self.history,), person, (self.value[person],), retained[person])
        codes = np.where(retained[person], 0, self.points[person].T).astype(np.int32)
        requirement = Requirement.from_policy(self.policy, [self.names])
        return past, codes, ClassGuard.of(requirement, self.value[person][None, :])


def releases(world: World, method: object, *, against: list[str], retain: bool) -> Iterator[History]:
    """Up to four releases, as long as the method finds any."""
    for number in range(4):
        past, codes, guard = world.past(retain=retain)
        try:
            classes = method(past, codes, world.domains, guard, against=against)  # type: ignore[operator]
        except GuaranteeError as error:
            assert error.guarantee == "series"  # noqa: PT017 - the error ends the series
            return
        assert (classes.member >= 0).all()
        assert (classes.lo[:, classes.member][:, ~past.retained] <= codes[:, ~past.retained]).all()
        assert (classes.hi[:, classes.member][:, ~past.retained] >= codes[:, ~past.retained]).all()
        order = world.random.permutation(len(past))
        world.history = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(number))[0]
        yield world.history
        world.move()


@pytest.mark.parametrize("against", [["insider"], ["neighbor"], ["insider", "neighbor"]])
@pytest.mark.parametrize("method", [republish, merge])
@pytest.mark.parametrize(
    ("leaving", "returning", "retain"),
    [(0.0, 0.0, False), (0.3, 0.0, False), (0.3, 0.4, False), (0.2, 0.0, True)],
    ids=["joining", "leaving", "returning", "retained"],
)
def test_nothing_published_is_attacked(
    method: object, against: list[str], leaving: float, returning: float, retain: bool
) -> None:
    published = 0
    for seed in range(6):
        world = World(seed, leaving=leaving, returning=returning)
        for history in releases(world, method, against=against, retain=retain):
            found = [
                finding
                for finding in audit_histories([history], world.policy, against=against).findings
                if finding.attack != "row-order"
            ]
            if len(history) == 1 and found:
                break  # the first table breaks its promise as a whole
            assert found == []
            published += len(history) > 1
    assert published > 2


@pytest.mark.parametrize("against", [["insider"], ["insider", "neighbor"]])
def test_several_sensitive_attributes_are_watched_together(against: list[str]) -> None:
    published = 0
    for seed in range(8):
        world = World(seed, leaving=0.0, returning=0.0)
        other = world.random.integers(0, 4, world.people).astype(np.int32)
        second = replace(world.history, attribute="t", values=tuple("wxyz"), bounds=(world.c,) * 4)
        changing = replace(second, attribute="u", permanent=False)
        histories: tuple[History, ...] = (world.history, second, changing)
        attributes = {"q0": {"role": "quasi-identifier", "kind": "number"}}
        attributes |= {name: {"role": "sensitive"} for name in ("s", "t", "u")}
        protect = {"k": world.k, "confidence": float(world.c)}
        policy = Policy.model_validate({"version": 1, "series": "x", "attributes": attributes, "protect": protect})
        requirement = Requirement.from_policy(policy, [world.names, *[from_values(list("wxyz"))] * 2])
        for number in range(3):
            person = np.flatnonzero(world.present)
            values = (world.value[person], other[person], other[person])
            past = Past(histories, person, values, np.zeros(len(person), np.bool_))
            guard = ClassGuard.of(requirement, np.array(values))
            try:
                classes = republish(past, world.points[person].T.copy(), world.domains, guard, against=against)
            except GuaranteeError:
                break
            order = world.random.permutation(len(person))
            histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(number))
            found = [
                finding
                for finding in audit_histories(histories, world.policy, against=against).findings
                if finding.attack != "row-order"
            ]
            if number == 0 and found:
                break
            assert found == []
            published += number > 0
            world.move()
    assert published > 2
