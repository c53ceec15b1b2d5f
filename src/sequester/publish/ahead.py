"""Looking ahead under a lifetime guarantee: what is left of everybody's budget, and what the coming releases will cost.

Every class with a value spends something of the survival of all its members, and nothing ever gives it back. So a
series is worth simulating before it is published: the next tables are drawn from this one with the churn that was seen
last, and published one after the other by the same method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.errors import DataError, GuaranteeError, PolicyError, Problem
from sequester.guarantees.lifetime import best_alpha
from sequester.guarantees.requirement import Requirement
from sequester.history.history import History
from sequester.history.past import Past
from sequester.history.sight import sights_of
from sequester.history.trajectory import Trajectories
from sequester.ingest.snapshot import Snapshot
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.lifetime.budget import Budget, budget_of
from sequester.methods.lifetime.group import group
from sequester.metrics.loss import ail
from sequester.policy.model import Policy
from sequester.policy.protect import Lifetime
from sequester.publish.candidate import Candidate
from sequester.publish.plan import Plan


@dataclass(frozen=True)
class Churn:
    """How much changes from one release to the next, as shares of the table; `observed` when there was one before."""

    leave: float
    join: float
    change: float
    observed: bool


@dataclass(frozen=True)
class Course:
    """The coming releases under one strategy: per release those left out, the average and largest class, and the loss.

    `ends` is the number of releases after which nobody can be published, None when that does not happen.
    """

    strategy: Mapping[str, Any]
    left_out: tuple[int, ...]
    average: tuple[float, ...]
    largest: tuple[int, ...]
    loss: tuple[float, ...]
    ends: int | None


@dataclass(frozen=True)
class Ahead:
    """What is left after the planned release, what is assumed, and how it goes on with this and other strategies."""

    releases: int
    records: int
    budget: Budget
    churn: Churn
    courses: tuple[Course, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, counts only."""
        return asdict(self)


def look_ahead(plan: Plan, policy: Policy, *, releases: int) -> Ahead:
    """Publish the plan in thought, and so many releases after it, with the policy's strategy and with others."""
    lifetime, candidate = policy.protect.lifetime, plan.candidate
    if lifetime is None or policy.method.name != "group":
        message = "looking ahead is for method: group, which keeps a lifetime guarantee"
        raise PolicyError(Problem(message, key="method.name"))
    if any(a.stays or a.permanent for a in policy.sensitive.values()):
        message = "looking ahead is for values that all change; what an insider learns is not simulated"
        raise PolicyError(Problem(message, key="attributes"))
    if lifetime.registered is not None:
        message = "looking ahead does not know who of a registration list will come; leave the list out to look ahead"
        raise PolicyError(Problem(message, key="protect.lifetime.registered"))
    if candidate is None:
        raise DataError("a plan that was saved, or made in parts, has no records here; plan a table that is made whole")
    if releases < 1:
        raise ValueError("looking ahead needs at least one release")
    past, classes = candidate.past, candidate.classes
    histories = past.extend(classes.member, classes.lo, classes.hi, order=candidate.order, name=plan.name)
    churn = _churn(plan, candidate)
    changing = tuple(history for history in histories if not history.permanent)
    future = _Future(changing, past.person, candidate.records, policy, churn, seed=plan.seed)
    together = plan.number + releases
    strategies = [lifetime, Lifetime(l=lifetime.l, releases=together)]
    if together > 1:
        strategies.append(
            Lifetime(l=lifetime.l, strategy="geometric", alpha=round(best_alpha(lifetime.l, together), 1))
        )
    courses = tuple(future.course(one, releases) for one in dict.fromkeys(strategies))
    return Ahead(releases, plan.records, budget_of(histories, past.person, lifetime), churn, courses)


def _churn(plan: Plan, candidate: Candidate) -> Churn:
    """From how this table differs from the last release; before the second, that nothing changes."""
    change, census = plan.change, candidate.census
    before = change.stayers + change.leavers
    if plan.number == 1 or not before:
        return Churn(0.0, 0.0, 0.0, observed=False)
    stay = np.flatnonzero(census.number >= 0)
    stay = stay[census.last[census.number[stay]] >= 0]
    differs = (census.values[:, census.number[stay]] != census.snapshot.sensitive[:, stay]).any(axis=0)
    return Churn(
        leave=change.leavers / before,
        join=(change.newcomers + change.returned) / before,
        change=float(differs.mean()) if len(stay) else 0.0,
        observed=True,
    )


@dataclass(frozen=True, eq=False)
class _Future:
    """Tables drawn from this one: some leave, others like them come, and some have other values, as frequent as now."""

    histories: tuple[History, ...]
    person: NDArray[np.int64]
    records: Snapshot
    policy: Policy
    churn: Churn
    seed: int

    def course(self, lifetime: Lifetime, releases: int) -> Course:
        """The coming releases with this strategy; the same people come, go and change with every strategy."""
        random = np.random.default_rng([self.seed, 7])
        count = len(self.person)
        come = round(self.churn.join * count)
        histories = tuple(_with_room(history, come * releases) for history in self.histories)
        drawn, who = np.arange(count), self.person.copy()
        nobody = len(self.histories[0].people)
        values = self.records.sensitive.copy()
        requirement = Requirement.from_policy(self.policy, self.records.sensitive_domains)
        left_out, average, largest, loss, ends = [], [], [], [], None
        for number in range(releases):
            stay = random.random(len(who)) >= self.churn.leave
            new = random.integers(0, count, come)
            who = np.concatenate([who[stay], nobody + number * come + np.arange(come)])
            drawn = np.concatenate([drawn[stay], new])
            values = np.hstack([values[:, stay], self.records.sensitive[:, new]])
            changed = np.flatnonzero(random.random(len(who)) < self.churn.change)
            values[:, changed] = self.records.sensitive[:, random.integers(0, count, len(changed))]
            codes = np.ascontiguousarray(self.records.quasi[:, drawn])
            sights = sights_of(requirement, self.policy, values, compact=False)
            now = tuple(sight.codes for sight in sights if not sight.permanent)
            past = Past(histories, who, now, np.zeros(len(who), np.bool_))
            try:
                classes = group(
                    past, codes, self.records.quasi_domains, ClassGuard.of(requirement, values), lifetime=lifetime
                )
            except GuaranteeError:
                ends = number
                break
            order = np.flatnonzero(classes.member >= 0)
            histories = past.extend(classes.member, classes.lo, classes.hi, order=order, name=f"ahead {number + 1}")
            left_out.append(classes.suppressed)
            average.append(float(classes.size.mean()))
            largest.append(int(classes.size.max()))
            loss.append(ail(classes, self.records.quasi_domains, suppressed=classes.suppressed))
        told = lifetime.model_dump(mode="json", exclude_none=True)
        return Course(told, tuple(left_out), tuple(average), tuple(largest), tuple(loss), ends)


def _with_room(history: History, people: int) -> History:
    """The same history, with so many people more who were in no release."""
    none = np.full(people, -1, np.int32)
    releases = tuple(
        replace(
            release,
            member=None if release.member is None else np.append(release.member, none),
            value=None if release.value is None else np.append(release.value, none),
        )
        for release in history.releases
    )
    known = history.trajectories
    assert known is not None
    return replace(
        history,
        people=tuple(range(len(history.people) + people)),
        releases=releases,
        trajectories=Trajectories(known.path, known.size, np.append(known.of, none)),
        value=None if history.value is None else np.append(history.value, none),
    )
