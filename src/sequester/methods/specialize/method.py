"""Taxonomy cuts as a method."""

from __future__ import annotations

from typing import Any

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task


def _first(task: Task) -> Classes:
    from sequester.methods.specialize.refine import specialize

    return specialize(*task.table, loss=task.options.loss, score=task.options.score, label=task.label())


def _following(task: Task) -> Classes:
    from sequester.methods.specialize.respecialize import respecialize

    options = task.options
    return respecialize(
        task.history,
        *task.table,
        against=task.against,
        loss=options.loss,
        score=options.score,
        label=task.label(),
        semantics=options.semantics,
        certificate=options.certificate,
        progress=task.progress,
    )


def _asks_no_certificate(options: Any) -> bool:
    """Taxonomy cuts may have to bear a certificate, or every printed target: a merge would not do."""
    return not (options.certificate or options.semantics == "printed")


METHOD = Method("specialize", _first, _following, merges=_asks_no_certificate)
