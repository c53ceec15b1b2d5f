"""Taxonomy cuts as a method."""

from __future__ import annotations

from typing import Any

from sequester.history.history import History
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task


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


def _new_chain(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    """Whether newcomers would lose much less in a series of their own; only taxonomy cuts tie them to the past."""
    from sequester.methods.specialize.bcf_chain import new_chain

    chain = new_chain(task.history, classes, *task.table) if len(task.history.first) else None
    return (str(chain),) if chain is not None and chain.is_cheaper else ()


METHOD = Method(
    "specialize",
    _first,
    _following,
    merges=_asks_no_certificate,
    notes=_new_chain,
    by_levels=True,
    in_parts=False,
    most=5_000,
)
