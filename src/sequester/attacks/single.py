"""Each release on its own: k, confidence, diversity, closeness of its classes (the outsider)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sequester.attacks.exposure import name_counts
from sequester.attacks.finding import Finding, Result
from sequester.guarantees.anonymity import KAnonymity
from sequester.guarantees.closeness import Closeness
from sequester.guarantees.confidence import Confidence
from sequester.guarantees.criterion import Criterion
from sequester.history import History


def find(history: History, attack: str) -> Result:
    """Classes of single releases that break one criterion; the measure is the worst class of all releases."""
    criterion: Criterion | None = {
        "k": KAnonymity(history.k),
        "confidence": Confidence(history.bounds),
        "diversity": history.diversity,
        "closeness": history.closeness,
    }[attack]
    if criterion is None or (attack != "k" and len(history.values) < 2 and all(b == 1 for b in history.bounds)):
        return Result()
    findings, worst = [], []
    for number, release in enumerate(history.releases):
        if isinstance(criterion, Closeness):
            criterion = replace(criterion, reference=release.counts.sum(axis=0))
        observed, bad = criterion.observed(release.counts), np.flatnonzero(~criterion.holds(release.counts))
        worst.append(float(observed.min() if criterion.at_least else observed.max()))
        findings += [_finding(history, attack, criterion, number, int(where), float(observed[where])) for where in bad]
    return Result(findings, (min if criterion.at_least else max)(worst) if worst else None)


def _finding(history: History, attack: str, criterion: Criterion, release: int, where: int, observed: float) -> Finding:
    counts = history.releases[release].counts[where]
    value = None
    if attack == "confidence":
        strain = counts * np.array([float(1 / bound) if bound < 1 else 0.0 for bound in history.bounds])
        value = history.values[int(np.argmax(strain))]
    return Finding(
        attack=attack,
        adversary="outsider",
        releases=(release + 1,),
        required=float(criterion.required) if value is None else float(history.bounds[history.values.index(value)]),
        observed=observed,
        value=value,
        classes=((release + 1, where + 1),),
        people=members(history, release, where),
        witness={"rows": int(counts.sum()), "values": name_counts(history, counts.tolist())},
        attribute=history.attribute,
    )


def members(history: History, release: int, where: int) -> tuple[object, ...]:
    """The people of a class, where they are known."""
    member = history.releases[release].member
    return () if member is None else tuple(history.people[person] for person in np.flatnonzero(member == where))
