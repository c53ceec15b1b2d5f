"""Lifetime guarantee at size: 200,000 records a release for twenty releases, a fifth leaves and a fifth changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks import synthetic
from benchmarks.figures import Figure
from benchmarks.timing import seconds
from sequester.attacks import breach
from sequester.domain.tree import from_values
from sequester.guarantees.requirement import Requirement
from sequester.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.group import group
from sequester.methods.mondrian.cut import mondrian
from sequester.metrics.loss import ail
from sequester.policy.protect import Lifetime

COUNT, RELEASES, K, L = 200_000, 20, 5, 2
# The common conditions are ordinary; the others are of less than a twenty-ninth of the people each.
PROTECTED = 10


@dataclass(frozen=True)
class Step:
    """One release: how long it took, what it lost, who is left out, and the history after it."""

    taken: float
    classes: Classes
    loss: float
    history: History


def run() -> list[Figure]:
    """Times of the second and the last release, loss beside Mondrian under k alone, people left out, the audit."""
    list(_series(3_000, releases=2))  # kernels are compiled and warm
    steps = list(_series(COUNT, releases=RELEASES))
    domains = synthetic.domains()
    alone = ail(mondrian(synthetic.make(COUNT).codes, domains, synthetic.make(COUNT).guard(k=K)), domains)
    suppressed = sum(step.classes.suppressed for step in steps)
    times = np.array([step.taken for step in steps])
    found = breach.find(steps[-1].history, l=L)
    return [
        Figure("a release of 200,000 records, slowest of 20", float(times.max()), "s", at_most=10.0),
        Figure("fastest of releases 16 to 20 / of 2 to 6", float(times[-5:].min() / times[1:6].min()), at_most=1.5),
        Figure("people left out in all 20 releases", suppressed),
        Figure("AIL, release 1", steps[0].loss, note=f"Mondrian under k alone: {alone:.3f}"),
        Figure("AIL, release 20", steps[-1].loss),
        Figure("largest class of release 20", int(steps[-1].classes.size.max())),
        Figure("findings of the audit of all 20", len(found.findings), at_most=0),
        Figure("largest probability over 20 releases", float(found.measure or 0), at_most=1 / L),
    ]


def _series(count: int, *, releases: int) -> Iterator[Step]:
    random = np.random.default_rng(4)
    everybody = count + (releases - 1) * (count // 5)
    drawn = synthetic.make(everybody, seed=4)
    domains, values = synthetic.domains(), drawn.sensitive[0].copy()
    names = synthetic.VALUES
    guard_of = Requirement.from_policy(synthetic.policy(k=K), [from_values(names)])
    history = History(
        attribute="condition",
        values=names,
        k=K,
        bounds=tuple(
            Fraction(1, L) if number >= len(names) - PROTECTED else Fraction(1) for number in range(len(names))
        ),
        domains=domains,
        quasi_names=synthetic.NAMES,
        links=np.ones(len(domains), np.bool_),
        permanent=False,
        people=tuple(range(everybody)),
    )
    here = np.arange(count)
    for number in range(releases):
        if number:
            stay = random.permutation(here)[: count - count // 5]
            new = count + (number - 1) * (count // 5) + np.arange(count // 5)
            here = np.concatenate([stay, new])
            changed = random.permutation(here)[: count // 5]
            values[changed] = random.permutation(drawn.sensitive[0])[: len(changed)]
        codes = np.ascontiguousarray(drawn.codes[:, here])
        past = Past((history,), here, (values[here],), np.zeros(count, np.bool_))
        guard = ClassGuard.of(guard_of, values[None, here])
        lifetime = Lifetime(l=L, releases=RELEASES)
        taken, classes = seconds(lambda: group(past, codes, domains, guard, lifetime=lifetime))  # noqa: B023 - called at once
        order = np.flatnonzero(classes.member >= 0)
        (history,) = past.extend(classes.member, classes.lo, classes.hi, order=order, name=str(number + 1))
        yield Step(taken, classes, ail(classes, domains, suppressed=classes.suppressed), history)
