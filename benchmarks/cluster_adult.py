"""Clusters against gain Mondrian: time on the same rows, loss on Adult, and a series in which people come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import adult, synthetic
from benchmarks.figures import Figure
from benchmarks.timing import medians, seconds
from sequester.attacks.audit import audit_histories
from sequester.history import History, Past
from sequester.methods.cluster.join import cluster
from sequester.methods.cluster.recluster import recluster
from sequester.methods.grow import grow
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.republish import republish
from sequester.metrics.loss import ail

K, C = 5, 0.7
MANY, MANY_K, MANY_C = 1_000_000, 10, 0.5
GROWING = tuple(range(20_000, 30_001, 2_000))
CHANGING, LEAVE = (20_000, 22_000, 24_000), 0.02
INSIDER = ("insider",)


def run() -> list[Figure]:
    """One table first, then series."""
    data = adult.load()
    return [*_tables(data), *_many(), *_series(data)]


def _tables(data: adult.Adult) -> list[Figure]:
    """Loss and time on all records of Adult."""
    figures: list[Figure] = []
    for note, protect in ((f"k = {K}", {"k": K}), (f"k = {K}, confidence {C}", {"k": K, "confidence": C})):
        guard = data.guard(**protect)
        calls: dict[str, Callable[[], Any]] = {
            "mondrian": lambda guard=guard: mondrian(data.codes, data.domains, guard),
            "regrouped": lambda guard=guard: mondrian(data.codes, data.domains, guard, regroup=True),
            "cluster": lambda guard=guard: cluster(data.codes, data.domains, guard),
        }
        lost = {name: ail(call(), data.domains) for name, call in calls.items()}
        taken = medians(5, **calls)
        figures += [
            Figure("AIL of gain Mondrian", lost["mondrian"], note=note),
            Figure("AIL of gain Mondrian, regrouped", lost["regrouped"], note=note),
            Figure("AIL of clusters", lost["cluster"], at_most=lost["mondrian"], note=note),
            Figure("AIL, clusters / regrouped Mondrian", lost["cluster"] / lost["regrouped"], at_most=1.0, note=note),
            Figure("clusters", taken["cluster"] * 1000, "ms", note=f"{note}; regrouped, as small tables are"),
            Figure("clusters / gain Mondrian", taken["cluster"] / taken["mondrian"], note=note),
            Figure("clusters / regrouped Mondrian", taken["cluster"] / taken["regrouped"], note=note),
        ]
    return figures


def _many() -> list[Figure]:
    """Time on a million synthetic records."""
    records, domains = synthetic.make(MANY), synthetic.domains()
    figures: list[Figure] = []
    for note, protect in (
        (f"k = {MANY_K}", {"k": MANY_K}),
        (f"k = {MANY_K}, confidence {MANY_C}", {"k": MANY_K, "confidence": MANY_C}),
    ):
        guard = records.guard(**protect)
        calls: dict[str, Callable[[], Any]] = {
            "mondrian": lambda guard=guard: mondrian(records.codes, domains, guard),
            "cluster": lambda guard=guard: cluster(records.codes, domains, guard),
        }
        lost = {name: ail(call(), domains) for name, call in calls.items()}
        taken = medians(3, **calls)
        figures += [
            Figure(f"{MANY:,}: clusters", taken["cluster"], "s", note=note),
            Figure(f"{MANY:,}: clusters / gain Mondrian", taken["cluster"] / taken["mondrian"], at_most=10, note=note),
            Figure(
                f"{MANY:,}: AIL, clusters / gain Mondrian", lost["cluster"] / lost["mondrian"], at_most=1, note=note
            ),
        ]
    return figures


def _series(data: adult.Adult) -> list[Figure]:
    """A growing table, and one that people leave as well; the audit judges the clusters."""
    data = data.take(np.random.default_rng(1).permutation(30_162)[:30_000].astype(np.int64))
    policy = adult.policy(data.names, k=K, confidence=C)
    methods: dict[str, Callable[..., Any]] = {
        "clusters": lambda *table: recluster(*table, against=INSIDER),
        "Mondrian": lambda *table: republish(*table, against=INSIDER),
        "grow": grow,
    }
    figures: list[Figure] = []
    for what, sizes, leave, names in (
        ("growing", GROWING, 0.0, ("clusters", "Mondrian", "grow")),
        (f"{LEAVE:.0%} leave", CHANGING, LEAVE, ("clusters", "Mondrian")),
    ):
        last: dict[str, float] = {}
        for name in names:
            losses, times, history = zip(*_releases(data, sizes, leave, methods[name]), strict=True)
            last[name] = losses[-1]
            steps = ", ".join(f"{loss:.3f}" for loss in losses)
            figures.append(Figure(f"{what}: AIL of {name}", losses[-1], note=f"{steps}; {times[-1]:.1f} s"))
            if name == "clusters":
                found = audit_histories([history[-1]], policy, against=list(INSIDER)).findings
                figures.append(Figure(f"{what}: findings of the audit, {name}", len(found), at_most=0))
        most = 1.02 if leave == 0 else 0.5
        figures.append(Figure(f"{what}: AIL, clusters / Mondrian", last["clusters"] / last["Mondrian"], at_most=most))
    return figures


def _releases(
    data: adult.Adult, sizes: Sequence[int], leave: float, method: Callable[..., Any]
) -> Iterator[tuple[float, float, History]]:
    """Releases of the first so many people, of whom in every release some leave for good: loss, time and history."""
    random = np.random.default_rng(3)
    history = data.history(sizes[-1], k=K, confidence=C)
    present, last = np.zeros(sizes[-1], np.bool_), 0
    for size in sizes:
        present &= random.random(sizes[-1]) >= leave
        present[last:size], last = True, size
        person = np.flatnonzero(present)
        part = data.take(person)
        past = Past((history,), person, (part.sensitive[0],), np.zeros(len(person), np.bool_))
        guard = part.guard(k=K, confidence=C)
        taken, classes = seconds(lambda: method(past, part.codes, part.domains, guard))  # noqa: B023 - called at once
        history = adult.publish(past, classes)
        yield ail(classes, data.domains), taken, history
