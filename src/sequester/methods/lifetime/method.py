"""Groups for values that change, as a method: alone, beside values that stay, or with a registration list."""

from __future__ import annotations

from sequester.history.history import History
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task, never
from sequester.methods.mondrian.method import cut_once


def _following(task: Task) -> Classes:
    if task.lifetime is None:
        raise AssertionError("a policy for groups has a lifetime: that is checked when it is read")
    if task.registered is not None:
        from sequester.methods.lifetime.regions import regions

        return regions(task.history, *task.table, lifetime=task.lifetime, registered=task.registered)
    if any(history.permanent for history in task.history.histories):
        from sequester.methods.lifetime.both import group_both

        return group_both(task.history, *task.table, lifetime=task.lifetime, **task.shared)
    from sequester.methods.lifetime.group import group

    return group(task.history, *task.table, lifetime=task.lifetime)


def _spent(task: Task, classes: Classes, histories: tuple[History, ...]) -> tuple[str, ...]:
    """Whom a class must not link to a value again: spending everything blocks the future (Wong et al., Theorem 2)."""
    from sequester.methods.lifetime.budget import budget_of

    if task.lifetime is None or task.registered is not None:
        return ()
    blocked = budget_of(histories, task.history.person, task.lifetime).blocked
    if not blocked:
        return ()
    pairs = "1 pair of a person and a value" if blocked == 1 else f"{blocked:,} pairs of a person and a value"
    return (
        f"after this release {pairs} must not be linked again: what was promised is spent, and whoever has the value "
        "then is left out; look ahead to see how that goes on",
    )


# Of one table on its own, for comparison, it is cut.
METHOD = Method(
    "group", cut_once, _following, from_the_first=True, merges=never, repairs=None, notes=_spent, lifelong=True
)
