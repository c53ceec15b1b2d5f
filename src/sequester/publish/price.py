"""What safety costs: the release beside the same table without a memory, beside merge, and if one waited longer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.audit import Audit
from sequester.attacks.belief import Beliefs
from sequester.attacks.registry import attack_of
from sequester.causes import Cause
from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.methods.method import Task
from sequester.methods.registry import cut_by_gain, merge_next
from sequester.metrics.loss import ail, losses
from sequester.policy.model import Policy
from sequester.publish import sampled
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate
from sequester.publish.plan import Check, PodFigures
from sequester.publish.roster import must_hide
from sequester.publish.why import causes_of

HALF_A_POINT = 0.005
"""A change of a share that is always small, however few people have the value."""

_SHOWN = ("ail", "ncp", "dm")
_LARGE = f"the table has more than {sampled.MOST_EXACT:,} records"
_ESTIMATED = {"static": "what it would lose without a memory", "levers": "expected losses of newcomers"}


@dataclass(frozen=True)
class Price:
    """What a release costs beside others that might be made of the same table, and what the method says about it.

    loss    by metric, of the release and of others
    levers  expected loss of the newcomers if they are collected first
    others  figures of releases nearby, by name
    notes   what the method has to say
    why     what makes the release less than the table
    belief  by attribute, the largest belief of somebody without prejudice, and how many people it is too large about
    estimated  which of these figures are estimates, made on some neighborhoods of a large table
    """

    loss: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    levers: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    why: tuple[Cause, ...] = ()
    estimated: tuple[str, ...] = ()
    belief: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, candidate: Candidate, brief: Brief, *, thorough: bool = False) -> Price:
        """The price of a release; nothing of it is published, and nothing published depends on it.

        `thorough`: why it is what it is, is asked of a large table, too, and everything is made once more for that.
        """
        task, classes = candidate.lineup.task, candidate.lineup.seated or candidate.classes
        if thorough or task.codes.shape[1] <= sampled.MOST_EXACT:
            versions = _versions(candidate, brief)
            static = versions.get("static")
            priced = cls(
                loss=compare(versions, candidate), levers=levers(candidate, brief), notes=_said(candidate, brief)
            )
        else:
            static, priced = None, _estimates(candidate, brief)
        return replace(
            priced,
            others=brief.method.others(task, classes),
            why=causes_of(candidate, brief, static=static, thorough=thorough),
            belief=_believed(candidate),
        )

    @classmethod
    def alone(cls, candidate: Candidate, brief: Brief) -> Price:
        """What the release loses, beside nothing."""
        return cls(loss=compare({"release": candidate.of_people}, candidate), notes=_said(candidate, brief))


def _said(candidate: Candidate, brief: Brief) -> tuple[str, ...]:
    """What the method notes."""
    return brief.method.notes(candidate.lineup.task, candidate.classes, candidate.histories)


def _believed(candidate: Candidate) -> dict[str, dict[str, float]]:
    """What somebody without prejudice believes after this release, where that is promised or does not take long."""
    told, histories = candidate.audit.belief, candidate.histories
    if not told and len(histories[0].people) * len(histories[0]) <= sampled.MOST_EXACT:
        told = Beliefs(None, candidate.seats).tell(histories, known=False)
    return {one.attribute: {"most": round(one.spread.most, 4), "beyond": one.beyond} for one in told}


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


def _estimates(candidate: Candidate, brief: Brief) -> Price:
    """The same figures of a large table from some neighborhoods, and notes of what is left out."""
    task, records, method = candidate.lineup.task, candidate.records, brief.method
    own = Price.alone(candidate, brief)
    loss, found, notes = dict(own.loss), [], list(own.notes)
    if candidate.seats is not None or len(candidate.past.first):
        # What climbs levels recodes the whole table alike, and neighborhoods on their own would come out finer.
        static = None
        if not method.by_levels and brief.registered is None:
            some = sampled.neighborhoods(task, np.arange(task.codes.shape[1]), seed=brief.draws)
            static = sampled.estimate(task, some, lambda part: brief.printed(method.first(part), records))
        if static is None:
            notes.append(f"{_LARGE}, so it is not compared with the same records without a memory")
        else:
            found.append("static")
            figures = {"left_out": records.left_out, "attributes": len(task.domains)}
            loss["static"] = static.losses(task.codes.shape[1], **figures)
    if candidate.merged is not None and must_hide(brief.policy):
        loss |= compare({"merge": brief.printed(candidate.merged, records)}, candidate)
    elif candidate.seats is None and len(candidate.past.first) and must_hide(brief.policy):
        # Classes of before go on in it, and no neighborhood has whole ones.
        notes.append(f"{_LARGE}, so it is not compared with the merge")
    newcomers = levers(candidate, brief)
    if newcomers and _are_many(candidate):
        found.append("levers")
    if found:
        what = " and ".join(_ESTIMATED[name] for name in found)
        notes.append(f"{_LARGE}: {what} are estimated from neighborhoods of some thousand people")
    return Price(loss=loss, levers=newcomers, notes=tuple(notes), estimated=tuple(found))


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
    if seats is None:
        return None
    people = np.bincount(seats.lineages()[~seats.decoy])
    people = people[people > 0]
    return PodFigures(
        decoys=int(candidate.decoy.sum()),
        needed=candidate.lineup.needed,
        ever=int(seats.decoy.sum()),
        pods=int(seats.pods[-1].max()) + 1,
        fewest=int(candidate.of_people.size.min(initial=len(candidate.order))),
        lineages=len(people),
        largest=int(people.max()),
        mean=float(people.mean()),
        returners=len(candidate.census.returners),
        promised=candidate.judged.policy.fewest_people,
        facts={**({} if seated is None else seated.made.facts), **price.others},
        shares=shares_of(candidate),
    )


def shares_of(candidate: Candidate) -> dict[str, dict[str, float]]:
    """By attribute, how far shares of values among rows are from those among people, cells as in the table."""
    records, decoy, part = candidate.records, candidate.decoy, candidate.judged.policy.distortion
    names = (*records.sensitive_names, *records.quasi_names)
    people, found = max(int(np.count_nonzero(~decoy)), 1), {}
    for name, codes in zip(names, [*records.sensitive, *records.quasi], strict=True):
        values = int(codes.max(initial=0)) + 1
        true = np.bincount(codes[~decoy], minlength=values) / people
        change = np.abs(np.bincount(codes, minlength=values) / max(len(codes), 1) - true)
        beyond = np.count_nonzero(change > np.maximum(part * true, HALF_A_POINT))
        there = int(np.count_nonzero(np.bincount(codes)))
        found[name] = {"values": there, "most": round(float(change.max(initial=0.0)), 6), "beyond": int(beyond)}
    return found


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
    new = _newcomers(candidate)
    half = np.random.default_rng([*brief.draws, 3]).permutation(new)[: len(new) // 2]
    if len(half) < 4 * policy.protect.k:
        return {}
    if len(new) > sampled.MOST_EXACT:
        whole, part, regrouped = _cut_some(task, new, brief)
    else:
        whole, part = (ail(cut_by_gain(sampled.of_rows(task, rows)), task.domains) for rows in (new, half))
        regrouped = whole
        if method.regroups(policy.method):
            regrouped = ail(cut_by_gain(sampled.of_rows(task, new), regroup=True), task.domains)
    if not 0 < whole <= part:
        return {}
    steepness, now = math.log2(part / whole), regrouped
    return {name: now * times**-steepness for name, times in (("now", 1), ("with next", 2), ("with next two", 3))}


def _newcomers(candidate: Candidate) -> NDArray[np.int64]:
    return np.flatnonzero(candidate.past.last_class() < 0)


def _are_many(candidate: Candidate) -> bool:
    return len(_newcomers(candidate)) > sampled.MOST_EXACT


def _cut_some(task: Task, new: NDArray[np.int64], brief: Brief) -> tuple[float, float, float]:
    """Estimated loss of newcomers, of half of them, and of all once they are regrouped; 0 where there is none."""
    some = sampled.neighborhoods(task, new, seed=brief.draws)
    half = np.random.default_rng([*brief.draws, 3])
    found = [sampled.estimate(task, some, cut_by_gain), sampled.estimate(task, some, cut_by_gain, half=half)]
    if brief.method.regroups(brief.policy.method):
        found.append(sampled.estimate(task, some, lambda part: cut_by_gain(part, regroup=True)))
    whole, part, *regrouped = (0.0 if one is None else one.ail for one in found)
    return whole, part, regrouped[0] if regrouped else whole


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
