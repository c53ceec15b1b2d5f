"""Byun et al., section 6: Adult grows from 5,000 to 30,000 records in six releases.

What is wrong with releases made one by one (their Figure 11), and what releases that are safe together cost
(Figures 12 and 13), for (k, c) = (5, 0.7) and (10, 0.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from benchmarks import adult
from benchmarks.timing import seconds

from experiments.tables import table
from sequester.attacks.audit import audit_histories
from sequester.history import History, Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.grow import grow
from sequester.methods.merge import merge
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.metrics.loss import ail, dm

SIZES = [5_000 * step for step in range(1, 7)]
ATTACKS = ("difference", "tracing", "deniability", "forward", "backward", "intersection")
Make = Callable[[Past, adult.Adult, ClassGuard], Classes]

_METHODS: dict[str, tuple[Make, list[str]]] = {
    "static, median cuts": (lambda p, d, g: mondrian(d.codes, d.domains, g, cuts="median"), []),
    "static, gain cuts": (lambda p, d, g: mondrian(d.codes, d.domains, g), []),
    "static, gain cuts, regrouped": (lambda p, d, g: mondrian(d.codes, d.domains, g, regroup=True), []),
    "merge": (lambda p, d, g: merge(p, d.codes, d.domains, g, against=["insider"]), ["insider", "neighbor"]),
    "grow": (lambda p, d, g: grow(p, d.codes, d.domains, g), ["insider", "neighbor"]),
    "mondrian against insiders": (
        lambda p, d, g: republish(p, d.codes, d.domains, g, against=["insider"]),
        ["insider"],
    ),
    "mondrian against insiders and neighbors": (
        lambda p, d, g: republish(p, d.codes, d.domains, g, against=["insider", "neighbor"]),
        ["insider", "neighbor"],
    ),
}


def run() -> str:
    """Both settings, as Markdown."""
    data = adult.load().take(np.random.default_rng(1).permutation(30_162)[: SIZES[-1]].astype(np.int64))
    return "\n".join(_setting(data, k, c) for k, c in ((5, 0.7), (10, 0.5)))


def _setting(data: adult.Adult, k: int, c: float) -> str:
    policy = adult.policy(data.names, k=k, confidence=c)
    heads = ["method", *(f"{size // 1000}K" for size in SIZES)]
    losses, sizes, times, parts = [], [], [], []
    for name, (make, against) in _METHODS.items():
        history = data.history(SIZES[-1], k=k, confidence=c)
        row: list[tuple[float, float, float]] = []
        for size in SIZES:
            part = data.take(np.arange(size))
            past = part.past(history)
            taken, classes = seconds(lambda: make(past, part, part.guard(k=k, confidence=c)))  # noqa: B023 - called at once
            row.append((ail(classes, part.domains), dm(classes), taken))
            history = adult.publish(past, classes)
        found = audit_histories([history], policy, against=against) if against else None
        verdict = (
            "" if found is None else " (audit: nothing works)" if found.holds else f" ({len(found.findings)} work)"
        )
        losses.append([name + verdict, *(one[0] for one in row)])
        sizes.append([name, *(one[1] for one in row)])
        times.append([name, *(f"{one[2]:.2f} s" for one in row)])
        if name == "static, gain cuts":
            parts.append(_exposed(history, policy))
    return "\n".join(
        [
            f"## k = {k}, c = {c}\n",
            "Records exposed by two consecutive releases made without a memory (gain cuts):\n",
            *parts,
            "Average information loss (AIL):\n",
            table(heads, losses),
            "Discernibility (DM):\n",
            table(heads, sizes),
            "Time to make the release:\n",
            table(heads, times),
        ]
    )


def _exposed(history: History, policy: object) -> str:
    rows = []
    for number in range(1, len(history)):
        pair = _only(history, (number - 1, number))
        found = audit_histories([pair], policy, against=["insider", "neighbor"])  # type: ignore[arg-type]
        people = [
            len({person for finding in found.findings if finding.attack == attack for person in finding.people})
            for attack in ATTACKS
        ]
        rows.append([f"into {SIZES[number] // 1000}K", *people])
    return table(["", *ATTACKS], rows)


def _only(history: History, numbers: Sequence[int]) -> History:
    found = replace(history, releases=(), trajectories=None, value=None)
    for number in numbers:
        found = found.extend(history.releases[number])
    return found
