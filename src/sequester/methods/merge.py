"""The merge approach of Byun et al. (section 5): the last release goes on as it is, newcomers get their own classes.

While nobody leaves or comes back this is safe from every adversary, because no class is ever cut: all people of a
class keep the same history for ever. It is also what a more careful method falls back on.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task, never
from sequester.methods.mondrian.cut import Cuts, mondrian
from sequester.methods.mondrian.method import cut_once, cuts_of
from sequester.methods.mondrian.republish import settled
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.stock import Stock, around


def merge(
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    cuts: Cuts = "gain",
) -> Classes:
    """The classes of the last release and Mondrian classes of the newcomers alone.

    Classes that lost somebody, and people who come back, are joined near one another until that is safe; raises
    GuaranteeError when it is not even as one class.
    """
    watch = SeriesGuard.of(past, codes, against=against)
    if watch.idle:
        return around(mondrian(codes, domains, guard, cuts=cuts), past, codes)
    stock = Stock.of(past, watch.past_classes, codes, domains, guard, cuts=cuts, regroup=False)
    return settled(watch, stock, domains, guard, anew=False)


def _following(task: Task) -> Classes:
    return merge(task.history, *task.table, against=task.against, cuts=cuts_of(task.options))


METHOD = Method("merge", cut_once, _following, merges=never, together=True)
