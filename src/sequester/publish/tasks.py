"""A policy and the records of a table as a method is given them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sequester.history.past import Past
from sequester.ingest.snapshot import Snapshot
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.method import Progress, Task
from sequester.policy.methods import Specialize
from sequester.policy.model import Policy


def task_of(
    records: Snapshot,
    policy: Policy,
    guard: ClassGuard,
    *,
    past: Past | None = None,
    seed: Sequence[int] = (0,),
    registered: NDArray[np.int32] | None = None,
    progress: Progress | None = None,
) -> Task:
    """The task of making classes of these records."""

    def label() -> NDArray[np.int32] | None:
        from sequester.methods.specialize.refine import label_of

        return label_of(records, policy.method) if isinstance(policy.method, Specialize) else None

    return Task(
        codes=records.quasi,
        domains=records.quasi_domains,
        guard=guard,
        options=policy.method,
        past=past,
        against=policy.protect.against,
        lifetime=policy.protect.lifetime,
        registered=registered,
        label=label,
        noise=int(np.random.default_rng(seed).integers(1 << 31)),
        progress=progress,
    )
