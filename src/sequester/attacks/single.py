"""Each release on its own: k, confidence, diversity, closeness of its classes (the outsider)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import UNPROMISED, Attack, Setting, largest_share
from sequester.attacks.exposure import Noted, name_counts, say_more, worst
from sequester.attacks.finding import Finding, Result
from sequester.guarantees.anonymity import KAnonymity
from sequester.guarantees.closeness import Closeness
from sequester.guarantees.confidence import AlphaK, Confidence, ShareBound
from sequester.guarantees.criterion import Criterion
from sequester.guarantees.lifetime import rests_on_lifetime
from sequester.history import History
from sequester.policy.model import Policy


def find(history: History, attack: str, *, alpha: float | Mapping[str, float] | None = None, since: int = 0) -> Result:
    """Classes of single releases that break one criterion; the measure is the worst class of all releases.

    `since` leaves the first releases out.

    `alpha`, as in the policy, bounds shares like the confidence, but in single classes only. Both are judged together,
    each value by the stricter of its two bounds, and the witness says which one that is. What the policy does not ask
    for is not tried.
    """
    criterion = _criterion(history, attack, alpha)
    if criterion is None or len(history) <= since:
        return Result()
    places, degrees, extremes = [], [], []
    for number, release in enumerate(history.releases[since:], since):
        if isinstance(criterion, Closeness):
            criterion = replace(criterion, reference=release.counts.sum(axis=0))
        observed = criterion.observed(release.counts)
        bad = np.flatnonzero(~criterion.holds(release.counts))
        extremes.append(float(observed.min() if criterion.at_least else observed.max()))
        places.append(np.column_stack([np.full(len(bad), number), bad]))
        degrees.append(observed[bad])
    found, degree = np.concatenate(places), np.concatenate(degrees)
    told = worst(-degree if criterion.at_least else degree)
    people = _Members(history)
    findings = [
        _finding(history, attack, criterion, (number, where), observed=reached, people=people.of(number, where))
        for (number, where), reached in zip(found[told].tolist(), degree[told].tolist(), strict=True)
    ]
    measure = (min if criterion.at_least else max)(extremes)
    attribute = "" if attack == "k" else history.attribute
    return Noted(findings, measure, say_more(attack, attribute, len(found) - len(told)))


def _criterion(history: History, attack: str, alpha: float | Mapping[str, float] | None) -> Criterion | None:
    match attack:
        case "k":
            return KAnonymity(history.k)
        case "diversity":
            return history.diversity
        case "closeness":
            return history.closeness
    bounds = history.bounds
    if alpha is not None and history.attribute:
        # Policies name values only where there is one sensitive attribute, so names need no more than this history.
        bounds = tuple(map(min, bounds, AlphaK.of(alpha, history.values).bounds))
    return Confidence(bounds) if any(bound < 1 for bound in bounds) else None


def _finding(
    history: History,
    attack: str,
    criterion: Criterion,
    place: tuple[int, int],
    *,
    observed: float,
    people: tuple[Any, ...],
) -> Finding:
    release, number = place
    counts = history.releases[release].counts[number]
    witness: dict[str, Any] = {"rows": int(counts.sum()), "values": name_counts(history, counts.tolist())}
    value, required = None, float(criterion.required)
    if isinstance(criterion, ShareBound):
        bounded = criterion.numerators < criterion.denominators
        code = int(np.argmax(np.where(bounded, counts, 0) * (criterion.denominators / criterion.numerators)))
        bound = criterion.bounds[code]
        value, required, observed = history.values[code], float(bound), int(counts[code]) / int(counts.sum())
        witness["bound"] = "confidence" if bound == history.bounds[code] else "alpha"
    return Finding(
        attack=attack,
        adversary="outsider",
        releases=(release + 1,),
        required=required,
        observed=observed,
        value=value,
        classes=((release + 1, number + 1),),
        people=people,
        witness=witness,
        attribute=history.attribute,
    )


class _Members:
    """The people of classes, where they are known; each release is sorted once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._sorted: dict[int, tuple[NDArray[np.intp], NDArray[np.int32]]] = {}

    def of(self, release: int, number: int) -> tuple[Any, ...]:
        """Their ids, in the order of the history."""
        member = self._history.releases[release].member
        if member is None:
            return ()
        if release not in self._sorted:
            order = np.argsort(member, kind="stable")
            self._sorted[release] = order, member[order]
        order, classes = self._sorted[release]
        start, end = np.searchsorted(classes, [number, number + 1])
        return tuple(self._history.people[person] for person in order[start:end].tolist())


def _declare(
    name: str, title: str, *, smallest: bool, required: Callable[[Policy, float | None], float | None]
) -> Attack:
    def find_classes(history: History, asked: Setting) -> Result:
        if name == "confidence" and asked.registered is not None and rests_on_lifetime(asked.policy, history.attribute):
            # Whoever does not know who is in a class does not know its people's shares: breach says what there is.
            return Result()
        return find(history, name, alpha=asked.policy.protect.alpha, since=asked.since(name))

    return Attack(
        name=name,
        adversary="outsider",
        title=title,
        find=find_classes,
        smallest=smallest,
        required=required,
        releases=1,
        classes_only=True,
        nothing=lambda history: UNPROMISED,
    )


ATTACKS = (
    _declare(
        "k",
        "People with the same published row",
        smallest=True,
        required=lambda policy, bound: float(policy.protect.k),
    ),
    _declare("confidence", "Share of one sensitive value in a class", smallest=False, required=largest_share),
    _declare(
        "diversity",
        "Different sensitive values in a class",
        smallest=True,
        required=lambda policy, bound: None if policy.protect.diversity is None else policy.protect.diversity.l,
    ),
    _declare(
        "closeness",
        "Distance of a class from the table",
        smallest=False,
        required=lambda policy, bound: None if policy.protect.closeness is None else policy.protect.closeness.t,
    ),
)
