"""Groups for values that change, as a method: alone, beside values that stay, or with a registration list."""

from __future__ import annotations

from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task, never
from sequester.methods.mondrian.method import cut_once


def _following(task: Task) -> Classes:
    if task.lifetime is None:
        raise AssertionError("a policy for groups has a lifetime: that is checked when it is read")
    if task.registered is not None:
        from sequester.methods.research.registration.regions import regions

        return regions(task.history, *task.table, lifetime=task.lifetime, registered=task.registered)
    if any(history.permanent for history in task.history.histories):
        from sequester.methods.lifetime.both import group_both

        return group_both(task.history, *task.table, lifetime=task.lifetime, **task.shared)
    from sequester.methods.lifetime.group import group

    return group(task.history, *task.table, lifetime=task.lifetime)


# Of one table on its own, for comparison, it is cut.
METHOD = Method("group", cut_once, _following, from_the_first=True, merges=never, repairs=False)
