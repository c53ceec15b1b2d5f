"""The lattice search as a method."""

from __future__ import annotations

from typing import Any

from sequester.errors import PolicyError, Problem
from sequester.methods.classes import Classes
from sequester.methods.full_domain.search import full_domain
from sequester.methods.method import Method, Task


def _first(task: Task) -> Classes:
    return full_domain(*task.table, loss=task.options.loss, suppression=task.options.suppression)


def _following(task: Task) -> Classes:
    from sequester.methods.series_guard.guard import SeriesGuard

    if task.options.suppression:
        message = "must be 0 in a series: whoever is left out would be seen to leave"
        raise PolicyError(Problem(message, key="method.suppression"))
    watch = SeriesGuard.of(task.history, task.codes, against=task.against)
    return full_domain(*task.table, loss=task.options.loss, watch=watch, floor=_floor(task))


def _floor(task: Task) -> tuple[int, ...]:
    """The lowest levels that cover the boxes of people who left and are kept in the release: nothing finer is known."""
    past = task.history
    last, history = past.last_class()[past.retained], past.first
    boxes = history.releases[-1]
    return tuple(
        int(domain.level_of(lo[last], hi[last]).max(initial=0))
        for domain, lo, hi in zip(history.domains, boxes.lo, boxes.hi, strict=True)
    )


def _suppresses(options: Any) -> bool:
    return bool(options.suppression > 0)


METHOD = Method("full-domain", _first, _following, leaves_out=_suppresses, by_levels=True, in_parts=False)
