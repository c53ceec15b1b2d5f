"""Pods as a method: of one table on its own, for comparison, it is cut; a series is made by `publish`."""

from __future__ import annotations

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task
from sequester.methods.mondrian.method import cut_once


def _podded_elsewhere(task: Task) -> Classes:
    raise AssertionError("everybody is published at once by pods: publish.podded makes them")


METHOD = Method("pods", cut_once, _podded_elsewhere)
