"""Small random series whose people come, go and change: for tests of the lifetime guarantee against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import sequester as sq
from policies import changed
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.class_guard.limits import Limits
from sequester.methods.classes import Classes
from sequester.methods.lifetime.group import group
from sequester.policy.protect import Lifetime
from series import axis

LEAVES = 8


def begin(people: int, bounds: Sequence[Fraction], *, k: int = 1, attributes: int = 2) -> History:
    """Nothing published yet about values that change."""
    return History(
        attribute="s",
        values=tuple("abcdefghijklmnopqrstuvwxyz"[: len(bounds)]),
        k=k,
        bounds=tuple(bounds),
        domains=tuple(axis(LEAVES) for _ in range(attributes)),
        quasi_names=tuple(f"q{index}" for index in range(attributes)),
        links=np.ones(attributes, np.bool_),
        permanent=False,
        people=tuple(range(people)),
    )


def guard_of(k: int, records: int) -> ClassGuard:
    """Nothing required of a class but k people."""
    limits = Limits.only(k)
    return ClassGuard(limits, np.zeros((records, 0), np.int32), np.zeros((0, 0), np.int32))


def next_release(
    history: History, present: np.ndarray, values: np.ndarray, points: np.ndarray, lifetime: Lifetime
) -> tuple[Classes, History]:
    """Publish these people with these values: the classes, and the history after it."""
    past = Past((history,), present, (values.astype(np.int32),), np.zeros(len(present), np.bool_))
    codes = np.ascontiguousarray(points[present].T.astype(np.int32))
    guard = guard_of(history.k, len(present))
    classes = group(past, codes, history.domains, guard, lifetime=lifetime)
    order = np.flatnonzero(classes.member >= 0)
    (after,) = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(len(history) + 1))
    return classes, after


def chances(history: History) -> dict[tuple[int, int], Fraction]:
    """Per person and protected value the exact probability of ever having been linked, from what was published."""
    found = {}
    for person in range(len(history.people)):
        for value, bound in enumerate(history.bounds):
            if bound < 1:
                escaped = Fraction(1)
                for release in history.releases:
                    assert release.member is not None
                    number = int(release.member[person])
                    if number >= 0:
                        counts = release.counts[number].tolist()
                        escaped *= Fraction(sum(counts) - counts[value], sum(counts))
                found[person, value] = 1 - escaped
    return found


NAMES = ["none", "flu", "cold", "asthma", "gout", "angina", "ulcer"]
SHARES = [0.7, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]


def rules(**changes: Any) -> sq.Policy:
    raw: dict[str, Any] = {
        "version": 1,
        "series": "ward",
        "person": "id",
        "attributes": {
            "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
            "zip": {"role": "quasi-identifier", "kind": "number", "range": [0, 49]},
            "value": {"role": "sensitive", "values": "transient", "ordinary": ["none"]},
        },
        "protect": {
            "k": 3,
            "lifetime": {"l": 2.0, "strategy": "constant-ratio", "releases": 6},
            "against": ["lifetime"],
        },
        "method": {"name": "group"},
    }
    return changed(raw, **changes)


class Ward:
    """People who come, go and change."""

    def __init__(self, seed: int, people: int = 300) -> None:
        self.random = np.random.default_rng(seed)
        self.age, self.zip = self.random.integers(0, 100, people), self.random.integers(0, 50, people)
        self.value = self.random.choice(NAMES, people, p=SHARES)
        self.people = people

    def table(self, numbers: np.ndarray) -> pa.Table:
        return pa.table(
            {
                "id": [f"p{number}" for number in numbers],
                "age": self.age[numbers],
                "zip": self.zip[numbers],
                "value": self.value[numbers],
            }
        )

    def next(self) -> pa.Table:
        changed = self.random.random(self.people) < 0.2
        self.value = np.where(changed, self.random.choice(NAMES, self.people, p=SHARES), self.value)
        return self.table(np.flatnonzero(self.random.random(self.people) < 0.8))
