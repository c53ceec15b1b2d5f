"""Pods as a method: everybody is seated at once, beside decoys; of one table for comparison, it is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Seated, Task, never
from sequester.methods.mondrian.method import cut_once

if TYPE_CHECKING:
    from sequester.methods.pods.task import PodTask


def _following(task: Task) -> Classes:
    """Everybody in pods, and pods in classes, beside decoys."""
    from sequester.methods.pods.make import make

    made = make(_pod_task(task))
    return Seated(made.member, made.lo, made.hi, made=made)


def _pod_task(task: Task) -> PodTask:
    if task.seating is None:
        raise AssertionError("pods need to know what rows show beside their boxes")
    options = task.options
    one_type = options.classes == "one-type"
    return replace(task.seating, blind=options.blind, one_type=one_type, leaving=options.leaving)


def _others(task: Task, classes: Classes) -> Mapping[str, float]:
    """What other decoys or links would buy."""
    from sequester.methods.pods.frontier import frontier

    if not isinstance(classes, Seated):
        raise AssertionError("only pods have decoys")
    return frontier(_pod_task(task), classes.made)


def _is_blind(options: Any) -> bool:
    return bool(options.blind)


METHOD = Method(
    "pods",
    cut_once,
    _following,
    from_the_first=True,
    seats=True,
    blind=_is_blind,
    merges=never,
    repairs="join",
    others=_others,
)
