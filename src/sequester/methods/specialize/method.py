"""Taxonomy cuts as a method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sequester.domain.hierarchy import Hierarchy
from sequester.history.history import History
from sequester.methods.classes import Classes
from sequester.methods.costs import penalty
from sequester.methods.method import Method, Task

_WORTH = 0.8
"""How much of the loss in the release a new series may cost at most to be worth mentioning."""


def _first(task: Task) -> Classes:
    from sequester.methods.specialize.refine import label_of, specialize

    label = None if task.records is None else label_of(task.records, task.options)
    return specialize(*task.table, loss=task.options.loss, score=task.options.score, label=label)


def _following(task: Task) -> Classes:
    from sequester.methods.specialize.refine import label_of
    from sequester.methods.specialize.respecialize import respecialize

    options = task.options
    return respecialize(
        task.history,
        *task.table,
        against=task.against,
        loss=options.loss,
        score=options.score,
        label=None if task.records is None else label_of(task.records, options),
        semantics=options.semantics,
        certificate=options.certificate,
        progress=task.progress,
    )


def _asks_no_certificate(options: Any) -> bool:
    """Taxonomy cuts may have to bear a certificate, or every printed target: a merge would not do."""
    return not (options.certificate or options.semantics == "printed")


def _starting_over(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    """Whether newcomers would lose much less in a series of their own (Fung et al., section 7.1).

    That would leave out everybody who was published before: about them everything published so far stays known, so a
    series that forgot it would leak. So it is only said what the newcomers lose, in the release, held together with
    everybody before, and in a first release of their own, which nothing before can be combined with.
    """
    from sequester.methods.loops.tree import safe_classes
    from sequester.methods.specialize.refine import specialize

    known, (codes, domains, guard) = task.history.first.trajectories, task.table
    if not len(task.history.first) or known is None or guard.known:
        return ()
    new = np.flatnonzero(known.of[task.history.person] < 0)
    own = replace(guard, values=guard.values[new])
    if len(new) == codes.shape[1] or not safe_classes(np.zeros(len(new), np.int64), own.values, 1, own.limits).all():
        return ()
    here = _loss(Classes(classes.member[new], classes.lo, classes.hi), domains)
    alone = _loss(specialize(np.ascontiguousarray(codes[:, new]), domains, own), domains)
    if alone > _WORTH * here:
        return ()
    return (
        f"starting over: the {len(new):,} newcomers lose {here:.0%} here and would lose {alone:.0%} in a new series of "
        "their own, which would have to leave out everybody published in this one for good",
    )


def _loss(classes: Classes, domains: tuple[Hierarchy, ...]) -> float:
    """What people lose on average, from 0 to 1, over attributes."""
    rows = classes.member[classes.member >= 0]
    parts = zip(domains, classes.lo, classes.hi, strict=True)
    return float(np.mean([penalty("ncp", domain, lo[rows], hi[rows]).mean() for domain, lo, hi in parts]))


METHOD = Method(
    "specialize",
    _first,
    _following,
    merges=_asks_no_certificate,
    notes=_starting_over,
    by_levels=True,
    in_parts=False,
    most=5_000,
)
