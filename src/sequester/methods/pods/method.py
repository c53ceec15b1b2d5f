"""Pods as a method: of one table on its own, for comparison, it is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Seated, Task, never
from sequester.methods.mondrian.method import cut_once
from sequester.methods.pods.task import PodTask


def _following(task: Task) -> Classes:
    """Everybody in pods, and pods in classes, beside decoys."""
    from sequester.methods.pods.make import make

    made = make(_seating(task))
    return Seated(made.member, made.lo, made.hi, made=made)


def _seating(task: Task) -> PodTask:
    if task.seating is None:
        raise AssertionError("pods need to know what rows show beside their boxes")
    options = task.options
    one_type = options.classes == "one-type"
    return replace(task.seating, blind=options.blind, one_type=one_type)


def _other_decoys(task: Task, classes: Classes) -> Mapping[str, float]:
    from sequester.methods.pods.frontier import frontier

    if not isinstance(classes, Seated):
        raise AssertionError("only pods have decoys")
    return frontier(_seating(task), classes.made)


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
    others=_other_decoys,
    settings=({"decoys": 0.25}, {"decoys": 0.05}, {"lineage": 4}),
)
