"""What safety costs: the release beside the same table without a memory, beside merge, and if one waited longer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from sequester.attacks.audit import Audit
from sequester.attacks.registry import attack_of
from sequester.causes import Cause
from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.methods.method import Task
from sequester.methods.registry import cut_by_gain, merge_next
from sequester.metrics.loss import ail, losses
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate
from sequester.publish.plan import Check, PodFigures
from sequester.publish.roster import must_hide
from sequester.publish.why import causes_of

_SHOWN = ("ail", "ncp", "dm")


@dataclass(frozen=True)
class Price:
    """What a release costs beside others that might be made of the same table, and what the method says about it.

    loss    by metric, of the release and of others
    levers  expected loss of the newcomers if they are collected first
    others  figures of releases nearby, by name
    notes   what the method has to say
    why     what makes the release less than the table
    """

    loss: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    levers: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    why: tuple[Cause, ...] = ()

    @classmethod
    def of(cls, candidate: Candidate, brief: Brief, *, thorough: bool = False) -> Price:
        """The price of a release; nothing of it is published, and nothing published depends on it.

        `thorough`: why it is what it is, is asked of a large table, too.
        """
        task, classes = candidate.lineup.task, candidate.lineup.seated or candidate.classes
        versions = _versions(candidate, brief)
        return cls(
            loss=compare(versions, candidate),
            levers=levers(candidate, brief),
            others=brief.method.others(task, classes),
            notes=brief.method.notes(task, candidate.classes, candidate.histories),
            why=causes_of(candidate, brief, static=versions.get("static"), thorough=thorough),
        )


def _versions(candidate: Candidate, brief: Brief) -> dict[str, Classes]:
    """The release, the same records as if nothing had been published before, and their merge, all as written."""
    task, records, versions = candidate.lineup.task, candidate.records, {"release": candidate.of_people}
    if candidate.seats is not None:
        # About people, and whatever was published before: pods cost something in a first release, too.
        with contextlib.suppress(GuaranteeError):
            versions["static"] = brief.printed(brief.method.first(task), records)
    elif len(candidate.past.first):
        versions["static"] = brief.printed(brief.method.first(task), records)
        # Where nobody was held back there may be no merge that is safe; where values change, none is.
        if must_hide(brief.policy):
            with contextlib.suppress(GuaranteeError):
                versions["merge"] = brief.printed(candidate.merged or merge_next(task), records)
    return versions


def compare(versions: Mapping[str, Classes], candidate: Candidate) -> dict[str, dict[str, float]]:
    """What each of these loses."""
    records = candidate.records
    return {
        name: {
            metric: value
            for metric, value in losses(version, records.quasi_domains, suppressed=records.left_out).items()
            if metric in _SHOWN
        }
        for name, version in versions.items()
    }


def pods_of(candidate: Candidate, price: Price) -> PodFigures | None:
    """The pods of a release, counted; None where nobody is seated."""
    seats, seated = candidate.seats, candidate.lineup.seated
    if seats is None or seated is None:
        return None
    people = np.bincount(seats.lineages()[~seats.decoy])
    people = people[people > 0]
    return PodFigures(
        decoys=int(candidate.decoy.sum()),
        needed=candidate.lineup.needed,
        ever=int(seats.decoy.sum()),
        pods=int(seats.pods[-1].max()) + 1,
        fewest=int(candidate.of_people.size.min()),
        lineages=len(people),
        largest=int(people.max()),
        mean=float(people.mean()),
        returners=len(candidate.census.returners),
        facts={**seated.made.facts, **price.others},
    )


def levers(candidate: Candidate, brief: Brief) -> dict[str, float]:
    """Expected loss (AIL) of the newcomers if they are published now, or collected with one or two increments more.

    People who are published together for the first time stay together: the fewer there are, the coarser their
    classes. How fast loss falls with their number is measured on these newcomers and on a random half of them, and
    carried on as a power of the number, which fits real data well. Empty where too few are new to say, and where
    newcomers need not stay together: for values that change, and where the whole table is recoded alike.
    """
    method, policy, task = brief.method, brief.policy, candidate.lineup.task
    if not must_hide(policy) or not method.together:
        return {}
    new = np.flatnonzero(candidate.past.last_class() < 0)
    half = np.random.default_rng([*brief.draws, 3]).permutation(new)[: len(new) // 2]
    if len(half) < 4 * policy.protect.k:
        return {}
    whole, part = (ail(cut_by_gain(_of_rows(task, rows)), task.domains) for rows in (new, half))
    if not 0 < whole <= part:
        return {}
    steepness, now = math.log2(part / whole), whole
    if method.regroups(policy.method):
        now = ail(cut_by_gain(_of_rows(task, new), regroup=True), task.domains)
    return {name: now * times**-steepness for name, times in (("now", 1), ("with next", 2), ("with next two", 3))}


def _of_rows(task: Task, rows: np.ndarray) -> Task:
    """The same task with some of its records, on their own."""
    return replace(task, codes=task.codes[:, rows], guard=replace(task.guard, values=task.guard.values[rows]))


def checks_of(audit: Audit, policy: Policy) -> tuple[Check, ...]:
    """What the audit tried, required and reached, attack by attack."""
    broken = {finding.attack for finding in audit.findings}
    bounds = {bound for history in audit.histories for bound in history.bounds if bound < 1}
    # With bounds that differ by value there is no one number to compare with; the findings compare each value.
    bound = float(min(bounds)) if len(bounds) == 1 else None
    return tuple(
        Check(
            attack=attack.name,
            adversary=attack.adversary,
            required=attack.required(policy, bound),
            reached=audit.measures.get(attack.name),
            holds=attack.name not in broken,
        )
        for attack in map(attack_of, audit.tried)
    )
