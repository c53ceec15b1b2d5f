"""All methods: each ends its module with a declaration, which is loaded when a policy asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task

PLACES = {
    "mondrian": "mondrian.method",
    "full-domain": "full_domain.method",
    "specialize": "specialize.method",
    "cluster": "cluster.method",
    "group": "lifetime.method",
    "pods": "pods.method",
    "merge": "merge",
    "grow": "grow",
    "static": "static",
}
"""Where in this room a method is declared (`METHOD`), by the name that policies have for it."""


def method_named(name: str) -> Method:
    """The method with this name."""
    declared: Method = import_module(f"sequester.methods.{PLACES[name]}").METHOD
    return declared


def all_methods() -> tuple[Method, ...]:
    """Every method, in the order of `PLACES`."""
    return tuple(map(method_named, PLACES))


def method_of(options: Any) -> Method:
    """The method that a policy's options are of."""
    return method_named(options.name)


def merge_next(task: Task) -> Classes:
    """Byun's merge, which may take the place of other methods: the last release's classes, and newcomers apart."""
    return method_named("merge").following(task)


def cut_by_gain(task: Task, *, regroup: bool = False) -> Classes:
    """The table in boxes cut by gain, whatever the method; what others are compared with."""
    from sequester.methods.mondrian.cut import mondrian

    return mondrian(*task.table, regroup=regroup)
