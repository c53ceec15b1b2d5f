"""What safety costs: the release beside the same table without a memory, beside merge, and if one waited longer."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np

from sequester.attacks.audit import Audit
from sequester.attacks.registry import attack_of
from sequester.errors import GuaranteeError
from sequester.ingest.snapshot import Snapshot
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.registry import method_of
from sequester.metrics.loss import ail, losses
from sequester.policy.methods import Mondrian
from sequester.policy.model import Policy
from sequester.publish.anonymize import static_classes
from sequester.publish.candidate import Candidate
from sequester.publish.plan import Check, Pods
from sequester.publish.roster import Crowd, must_hide

_SHOWN = ("ail", "ncp", "dm")


def compare(candidate: Candidate, policy: Policy) -> dict[str, dict[str, float]]:
    """Losses of the release, of the same records as if nothing had been published before, and of merge."""
    records, past, guard = candidate.records, candidate.past, candidate.guard
    versions = {"release": candidate.of_people}
    if candidate.seats is not None:
        # About people, and whatever was published before: pods cost something in a first release, too.
        people = ~candidate.decoy
        own = replace(guard, values=guard.values[people])
        with contextlib.suppress(GuaranteeError):
            versions["static"] = static_classes(records.without(~people), policy, own, past)
    elif len(past.first):
        from sequester.methods.merge import merge

        versions["static"] = static_classes(records, policy, guard, past)
        # Where nobody was held back there may be no merge that is safe; where values change, none is.
        if must_hide(policy):
            with contextlib.suppress(GuaranteeError):
                versions["merge"] = merge(
                    past, records.quasi, records.quasi_domains, guard, against=policy.protect.against
                )
    return {
        name: {
            metric: value
            for metric, value in losses(version, records.quasi_domains, suppressed=records.left_out).items()
            if metric in _SHOWN
        }
        for name, version in versions.items()
    }


def pods_of(candidate: Candidate, crowd: Crowd) -> Pods | None:
    """The pods of a release, counted; None where another method made it."""
    seats = candidate.seats
    if seats is None:
        return None
    people = np.bincount(seats.lineages()[~seats.decoy])
    people = people[people > 0]
    return Pods(
        decoys=int(candidate.decoy.sum()),
        needed=candidate.needed,
        ever=int(seats.decoy.sum()),
        pods=int(seats.pods[-1].max()) + 1,
        fewest=int(candidate.of_people.size.min()),
        lineages=len(people),
        largest=int(people.max()),
        mean=float(people.mean()),
        returners=len(crowd.returners),
        facts=dict(candidate.facts),
    )


def levers(candidate: Candidate, policy: Policy, *, seed: list[int]) -> dict[str, float]:
    """Expected loss (AIL) of the newcomers if they are published now, or collected with one or two increments more.

    People who are published together for the first time stay together: the fewer there are, the coarser their
    classes. How fast loss falls with their number is measured on these newcomers and on a random half of them, and
    carried on as a power of the number, which fits real data well. Empty where too few are new to say, and where
    newcomers need not stay together: for values that change, and where the whole table is recoded alike.
    """
    if not must_hide(policy) or not method_of(policy.method).together:
        return {}
    records, guard = candidate.records, candidate.guard
    new = np.flatnonzero(candidate.past.last_class() < 0)
    half = np.random.default_rng([*seed, 3]).permutation(new)[: len(new) // 2]
    if len(half) < 4 * policy.protect.k:
        return {}
    whole, part = (ail(_cut(records, guard, rows), records.quasi_domains) for rows in (new, half))
    if not 0 < whole <= part:
        return {}
    steepness, now = math.log2(part / whole), whole
    if isinstance(policy.method, Mondrian) and policy.method.regroups(in_series=True):
        now = ail(_cut(records, guard, new, regroup=True), records.quasi_domains)
    return {name: now * times**-steepness for name, times in (("now", 1), ("with next", 2), ("with next two", 3))}


def _cut(records: Snapshot, guard: ClassGuard, rows: np.ndarray, *, regroup: bool = False) -> Classes:
    return mondrian(
        records.quasi[:, rows],
        records.quasi_domains,
        replace(guard, values=guard.values[rows]),
        regroup=regroup,
    )


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
