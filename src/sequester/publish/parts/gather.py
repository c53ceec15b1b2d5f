"""From parts that were made to one plan: counts are added up, of measures the worst counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from sequester.attacks.registry import attack_of
from sequester.causes import Cause
from sequester.metrics.measure import Measurement
from sequester.policy.model import Policy
from sequester.publish.parts.make import MadePart
from sequester.publish.plan import Change, Check, Personal, PodFigures, Waiting

Counted = TypeVar("Counted", Change, Personal, Waiting)

# A release is as good as its worst class, whichever part that is in; losses are those of a record, on average.
_SUMS = ("dm",)


def digest_of_parts(made: Sequence[MadePart], what: Callable[[MadePart], str]) -> str:
    """One digest of what every part has a digest of."""
    return hashlib.sha256("\n".join(what(part) for part in made).encode()).hexdigest()


def added(counted: Sequence[Counted]) -> Counted:
    """Counts of all parts together; of how long somebody waits, the longest."""
    kind = type(counted[0])
    together = {
        one.name: (max if one.name == "oldest" else sum)(getattr(part, one.name) for part in counted)
        for one in fields(kind)
    }
    return kind(**together)


def checks_of_parts(made: Sequence[MadePart], policy: Policy) -> tuple[Check, ...]:
    """What the audit reached, attack by attack, in the part where it reached most."""
    found: dict[str, Check] = {}
    for check in (check for part in made for check in part.checks):
        before = found.get(check.attack)
        if before is None:
            found[check.attack] = check
            continue
        reached = [value for value in (before.reached, check.reached) if value is not None]
        worse = attack_of(check.attack).worse(policy)
        found[check.attack] = replace(
            before, reached=worse(reached) if reached else None, holds=before.holds and check.holds
        )
    return tuple(found.values())


def loss_of_parts(made: Sequence[MadePart]) -> dict[str, float]:
    """Losses of all people together."""
    return averaged([(part.loss, part.people) for part in made])


def averaged(losses: Iterable[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Losses over several numbers of people: averages by how many they are, and sums where they are sums."""
    given = [(loss, people) for loss, people in losses if people]
    total = sum(people for _, people in given)
    return {
        name: sum(loss[name] * (1 if name in _SUMS else people / total) for loss, people in given)
        for name in given[0][0]
    }


def measurement_of_parts(made: Sequence[MadePart]) -> Measurement:
    """How anonymous the release is, by its worst class; how far values are from those of the whole is not known."""
    parts = [part.measurement for part in made if part.card.records]
    promises = []
    for outcomes in zip(*(part.promises for part in parts), strict=True):
        broken = [outcome for outcome in outcomes if not outcome.holds]
        promises.append(broken[0] if broken else min(outcomes, key=lambda outcome: _room(outcome)))
    people = [part.people if part.people is not None else part.records for part in parts]
    return replace(
        parts[0],
        records=sum(part.records for part in parts),
        classes=sum(part.classes for part in parts),
        k=min(part.k for part in parts),
        l=_over(min, [part.l for part in parts]),
        entropy_l=_over(min, [part.entropy_l for part in parts]),
        t=None,
        confidence=_over(max, [part.confidence for part in parts]),
        loss=averaged([(part.loss, count) for part, count in zip(parts, people, strict=True)]),
        promises=tuple(promises),
        sensitive={},
        suppressed=sum(part.suppressed for part in parts),
        people=None if parts[0].people is None else sum(people),
        fewest_people=_over(min, [part.fewest_people for part in parts]),
    )


def _room(outcome: Any) -> float:
    """How far a promise is from being broken, whichever way it is counted."""
    if outcome.observed is None:
        return float("inf")
    return abs(float(outcome.observed) - float(outcome.required))


def _over(worst: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return worst(known) if known else None


def pods_of_parts(made: Sequence[MadePart]) -> PodFigures | None:
    """The pods of all parts; None where nobody is seated."""
    pods = [part.pods for part in made if part.pods is not None]
    if not pods:
        return None
    lineages = sum(one.lineages for one in pods)
    return PodFigures(
        **{name: sum(getattr(one, name) for one in pods) for name in ("decoys", "needed", "ever", "pods", "returners")},
        fewest=min((one.fewest for one in pods if one.pods), default=0),
        promised=max(one.promised for one in pods),
        lineages=lineages,
        largest=max(one.largest for one in pods),
        mean=sum(one.mean * one.lineages for one in pods) / max(lineages, 1),
        # The worst of any part: together they are nearer, since what is too much in one is too little in another.
        shares={
            name: {figure: max(one.shares[name][figure] for one in pods if one.shares) for figure in figures}
            for name, figures in next((one.shares for one in pods if one.shares), {}).items()
        },
    )


def weight_of_parts(made: Sequence[MadePart]) -> float | None:
    """How many people a row of all parts stands for; None where every row is about somebody."""
    if not any(part.pods is not None for part in made):
        return None
    return round(sum(part.people for part in made) / max(sum(part.card.records for part in made), 1), 6)


def notes_of_parts(made: Sequence[MadePart]) -> tuple[str, ...]:
    """What is to be noted, once, and in how many parts."""
    count: dict[str, int] = {}
    for note in (note for part in made for note in dict.fromkeys(part.notes)):
        count[note] = count.get(note, 0) + 1
    of = len(made)
    return tuple(note if parts == of else f"in {parts:,} of {of:,} parts: {note}" for note, parts in count.items())


def causes_of_parts(made: Sequence[MadePart]) -> tuple[Cause, ...]:
    """Why somebody waits or classes are larger, over all parts: people and classes are added up."""
    found: dict[tuple[Any, ...], Cause] = {}
    for cause in (cause for part in made for cause in part.causes):
        key = tuple(value for name, value in asdict(cause).items() if name in ("what", "attack", "attribute", "who"))
        before = found.get(key)
        found[key] = (
            cause
            if before is None
            else replace(before, people=before.people + cause.people, classes=before.classes + cause.classes)
        )
    return tuple(found.values())
