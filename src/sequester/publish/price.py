"""What safety costs: the release beside the same table made otherwise. Nothing that is published depends on it.

A large table is not made again for every comparison: what it would lose is estimated on some neighborhoods of it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
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
from sequester.methods.neighborhoods import Neighborhood, draw
from sequester.methods.registry import cut_by_gain, merge_next
from sequester.metrics.loss import ail, dm, losses, ncp
from sequester.policy.model import Policy
from sequester.publish.brief import Brief
from sequester.publish.candidate import Candidate
from sequester.publish.plan import Check, PodFigures
from sequester.publish.roster import must_hide
from sequester.publish.why import causes_of, what_if

HALF_A_POINT = 0.005
"""A change of a share that is always small, however few people have the value."""

# Records of the largest table that is made again for every comparison: that takes as long as the release itself, which
# is seconds here, and at ten times as many more than anybody waits for figures that are not published.
MOST_EXACT = 100_000
# With so many, figures of a million uniform people are within 0.5 percent, and of 60,000 uneven ones within ten.
NEIGHBORHOODS = 24
_PEOPLE = 2_000
# Classes that a neighborhood has at least, so that its border does not matter much.
_CLASSES = 50
# A neighborhood in which no classes are safe is looked at within larger ones, so many times.
_LARGER = 3
_SHOWN = ("ail", "ncp", "dm")
_LARGE = f"the table has more than {MOST_EXACT:,} records"
_ESTIMATED = {"static": "what it would lose without a memory", "levers": "expected losses of newcomers"}

Rows = NDArray[np.int64]


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
        """The price of a release.

        `thorough`: why it is what it is, is asked of a large table, too, and everything is made once more for that.
        """
        method, before = brief.method, len(candidate.past.first) > 0
        exact, hides = thorough or candidate.task.codes.shape[1] <= MOST_EXACT, must_hide(brief.policy)
        alone = cls.alone(candidate, brief)
        loss, estimated, notes, static = dict(alone.loss), [], [*alone.notes], None
        # Pods cost something in a first release, too.
        if before or candidate.seats is not None:
            if exact:
                static = what_if(candidate, brief, method.first)
                lost = None if static is None else compare(static, candidate)
            elif (lost := _estimated_static(candidate, brief)) is None:
                notes.append(f"{_LARGE}, so it is not compared with the same records without a memory")
            else:
                estimated.append("static")
            loss |= {} if lost is None else {"static": lost}
        # Where nobody was held back there may be no merge that is safe; where values change, none is.
        if before and candidate.seats is None and hides:
            if not exact and candidate.merged is None:
                # Classes of before go on in it, and no neighborhood has whole ones.
                notes.append(f"{_LARGE}, so it is not compared with the merge")
            elif (merged := what_if(candidate, brief, lambda task: candidate.merged or merge_next(task))) is not None:
                loss["merge"] = compare(merged, candidate)
        newcomers = levers(candidate, brief)
        if not exact and newcomers and len(_newcomers(candidate)) > MOST_EXACT:
            estimated.append("levers")
        if estimated:
            what = " and ".join(_ESTIMATED[name] for name in estimated)
            notes.append(f"{_LARGE}: {what} are estimated from neighborhoods of some thousand people")
        return cls(
            loss=loss,
            levers=newcomers,
            others=method.others(candidate.task, candidate.seated or candidate.classes),
            notes=tuple(notes),
            why=causes_of(candidate, brief, static=static, thorough=thorough),
            estimated=tuple(estimated),
            belief=_believed(candidate),
        )

    @classmethod
    def alone(cls, candidate: Candidate, brief: Brief) -> Price:
        """What the release loses, beside nothing, and what the method notes."""
        notes = brief.method.notes(candidate.task, candidate.classes, candidate.histories)
        return cls(loss={"release": compare(candidate.of_people, candidate)}, notes=notes)


def compare(classes: Classes, candidate: Candidate) -> dict[str, float]:
    """What these classes of the records of a release lose."""
    records = candidate.records
    lost = losses(classes, records.quasi_domains, suppressed=records.left_out)
    return {metric: lost[metric] for metric in _SHOWN}


def _believed(candidate: Candidate) -> dict[str, dict[str, float]]:
    """What somebody without prejudice believes after this release, where that is promised or does not take long."""
    told, histories = candidate.audit.belief, candidate.histories
    if not told and len(histories[0].people) * len(histories[0]) <= MOST_EXACT:
        told = Beliefs(None, candidate.seats).tell(histories, known=False)
    return {one.attribute: {"most": round(one.spread.most, 4), "beyond": one.beyond} for one in told}


def pods_of(candidate: Candidate, price: Price) -> PodFigures | None:
    """The pods of a release, counted; None where nobody is seated."""
    seats, seated = candidate.seats, candidate.seated
    if seats is None:
        return None
    people = np.bincount(seats.lineages()[~seats.decoy])
    people = people[people > 0]
    return PodFigures(
        decoys=int(candidate.decoy.sum()),
        needed=candidate.needed,
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
    method, policy, task, new = brief.method, brief.policy, candidate.task, _newcomers(candidate)
    if not must_hide(policy) or not method.together or len(new) // 2 < 4 * policy.protect.k:
        return {}
    some = neighborhoods(task, new, seed=brief.draws) if len(new) > MOST_EXACT else (Neighborhood(new, 1),)

    def lost(*, half: np.random.Generator | None = None, regroup: bool = False) -> float:
        found = estimate(task, some, lambda part: cut_by_gain(part, regroup=regroup), half=half)
        return 0.0 if found is None else found.ail

    whole, part = lost(), lost(half=np.random.default_rng([*brief.draws, 3]))
    if not 0 < whole <= part:
        return {}
    steepness, now = math.log2(part / whole), lost(regroup=True) if method.regroups(policy.method) else whole
    return {name: now * times**-steepness for name, times in (("now", 1), ("with next", 2), ("with next two", 3))}


def _newcomers(candidate: Candidate) -> Rows:
    return np.flatnonzero(candidate.past.last_class() < 0)


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


@dataclass(frozen=True)
class SampledPrice:
    """Average loss of a record, and how many people were looked at; `size` is that of her class."""

    ail: float
    ncp: float
    size: float
    people: int

    def losses(self, records: int, *, left_out: int, attributes: int) -> dict[str, float]:
        """Of a table with so many records in it, and so many left out, which lose everything."""
        both = max(records + left_out, 1)
        return {
            "ail": (self.ail * records + left_out * attributes) / both,
            "ncp": (self.ncp * records + left_out) / both,
            "dm": self.size * records + left_out * (records + left_out),
        }


def neighborhoods(task: Task, rows: Rows, *, seed: Sequence[int]) -> tuple[Neighborhood, ...]:
    """Some neighborhoods among these rows, of at least as many people as make some classes."""
    draws = np.random.default_rng([*seed, 4])
    people = max(_PEOPLE, _CLASSES * int(task.guard.limits.k))
    return tuple(draw(task.codes, task.domains, rows, people=people, times=NEIGHBORHOODS, draws=draws))


def estimate(
    task: Task,
    some: Sequence[Neighborhood],
    make: Callable[[Task], Classes],
    *,
    half: np.random.Generator | None = None,
) -> SampledPrice | None:
    """What people lose by classes that are made of each neighborhood; None where no classes of one are safe.

    half  draws who is looked at, if that is to be half of the people of each
    """
    found: list[tuple[int, float, float, float]] = []
    people = 0
    for one in some:
        made: tuple[Classes, int] | None = None
        for rows in (one.rows, *one.around[:_LARGER]):
            chosen = rows if half is None else np.sort(half.permutation(rows)[: len(rows) // 2])
            guard = replace(task.guard, values=task.guard.values[chosen])
            with contextlib.suppress(GuaranteeError):
                made = make(replace(task, codes=task.codes[:, chosen], guard=guard, progress=None)), len(chosen)
                # What is one class may be so because it is not even safe as one.
                if len(made[0]) > 1:
                    break
        if made is None:
            return None
        classes, records = made
        figures = (ail(classes, task.domains), ncp(classes, task.domains), dm(classes) / records)
        found.append((one.drawn, *figures))
        people += records
    weight, *columns = np.array(found).T
    widths, penalty, size = (float(np.average(column, weights=weight)) for column in columns)
    return SampledPrice(widths, penalty, size, people)


def _estimated_static(candidate: Candidate, brief: Brief) -> dict[str, float] | None:
    """What the records of a large table would lose without a memory; None where neighborhoods cannot tell.

    What climbs levels recodes the whole table alike, and neighborhoods on their own would come out finer.
    """
    task, records, method = candidate.task, candidate.records, brief.method
    if method.by_levels or brief.registered is not None:
        return None
    count = task.codes.shape[1]
    some = neighborhoods(task, np.arange(count), seed=brief.draws)
    static = estimate(task, some, lambda part: brief.printed(method.first(part), records))
    return None if static is None else static.losses(count, left_out=records.left_out, attributes=len(task.domains))
