"""What other decoys or links would buy: the same release with more or fewer, on parts of it where it is large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sequester.methods.neighborhoods import draw
from sequester.methods.pods.make import MANY, make
from sequester.methods.pods.task import MadePods, PodTask

_PEOPLE = 4_000
"""As many as are looked at: each other choice is made once more."""


def frontier(task: PodTask, made: MadePods) -> dict[str, float]:
    """Loss (AIL) and share of decoys of this release and of others nearby, as facts for a plan."""
    some = _some(task)
    found = made if some is task else make(some)
    facts = dict(_figures("as planned", some, found))
    for label, other in _others(task):
        options = replace(some, decoys=other.decoys, lineage=other.lineage)
        facts |= dict(_figures(label, options, make(options)))
    return facts


def _others(task: PodTask) -> Iterator[tuple[str, PodTask]]:
    """Other choices of the steward."""
    if task.blind:
        return
    yield "half the decoys", replace(task, decoys=task.decoys / 2)
    yield "twice the decoys", replace(task, decoys=min(2 * task.decoys, 1.0))
    if task.lineage is None:
        yield "lineages of 8", replace(task, lineage=max(8, int(task.bounds.needs().max())))
    else:
        yield f"lineages of {2 * task.lineage}", replace(task, lineage=2 * task.lineage)


def _figures(label: str, task: PodTask, made: MadePods) -> Iterator[tuple[str, float]]:
    people, rows = len(task), len(made.member)
    width = np.zeros(made.lo.shape[1])
    for domain, lo, hi in zip(task.domains, made.lo, made.hi, strict=True):
        width += np.minimum(domain.position[hi] - domain.position[lo], 1.0)
    yield f"frontier {label}: loss", float(width[made.member[:people]].mean())
    yield f"frontier {label}: decoys", (rows - people) / rows


def _some(task: PodTask) -> PodTask:
    """Some neighborhoods of a large table, with whoever shared a pod with their people in the last release."""
    if len(task) <= _PEOPLE:
        return task
    draws = np.random.default_rng([task.seed, 2])
    part = _PEOPLE // 4
    # Partners of those who are looked at come on top of them.
    looked_at = 4 if not task.before.pods else 2
    every = np.arange(len(task))
    cells = [one.rows for one in draw(task.codes, task.domains, every, people=part, times=looked_at, draws=draws)]
    rows = np.sort(np.concatenate(cells))
    # Made as the whole is, so that what is compared is the choice.
    return replace(task.of(with_partners(task, rows)), part_of_many=len(task) > MANY)


def with_partners(task: PodTask, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """These records and those of everybody who was in a pod with one of them in the last release.

    Without them whoever is looked at would be a widow, and take a decoy.
    """
    if not task.before.pods:
        return rows
    pod = np.where(task.person >= 0, np.append(task.before.pods[-1], np.int32(-1))[task.person], -1)
    return np.union1d(rows, np.flatnonzero((pod >= 0) & np.isin(pod, pod[rows])))
