"""Mondrian for a series: people are cut anew only where no adversary learns from it, in blocks that are closed.

The people of the history fall into components, linked by any class of any release; nothing published about one says
anything about another. Components and classes of newcomers are the units of a tree of neighbours. In every node of few
people a compiled search looks for classes with less loss than the units have as they are; from all nodes those are
chosen that lose least together, judged exactly (`SeriesGuard`), and what fails is struck out until all are safe.
While nobody leaves, units as they are (the merge approach) are always a safe choice, so the result loses no more.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.mondrian.cut import mondrian
from sequester.methods.mondrian.forest import Progress, settled
from sequester.methods.series_guard.guard import SeriesGuard
from sequester.methods.stock import Cuts, Stock, around

TRIALS, TRIALS_REGROUPED = 24, 8
"""How often the people of a node are cut, each time in another way; classes that were regrouped leave less to gain."""


def republish(  # noqa: PLR0913 - a task in its parts
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    cuts: Cuts = "gain",
    regroup: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Classes:
    """Classes of the next table, given as codes (attributes, records), that are safe together with all before.

    Newcomers of gain cuts are regrouped before they are mixed with others; within blocks cuts are always gain cuts.
    With a known population (k-map) nothing is cut anew. What earlier releases gave away is not looked for again.

    Raises GuaranteeError when even the coarsest classes are not: then too few people joined, left or came back, and
    some of them must be held back. `regroup` is about newcomers, as in plain Mondrian. The same seed gives the same
    classes, whatever the number of threads.
    """
    return publish_blocks(
        past,
        codes,
        domains,
        guard,
        against=against,
        cuts=cuts,
        regroup=regroup,
        seed=seed,
        trials=TRIALS_REGROUPED if regroup else TRIALS,
        progress=progress,
    )


def publish_blocks(  # noqa: PLR0913 - a task in its parts
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    cuts: Cuts,
    regroup: bool = False,
    seed: int = 0,
    trials: int = 0,
    progress: Progress | None = None,
) -> Classes:
    """As `republish`; without trials units stay as they are where that is safe."""
    watch = SeriesGuard.of(past, codes, against=against)
    if watch.idle:
        return around(mondrian(codes, domains, guard, cuts=cuts, regroup=regroup), past, codes)
    stock = Stock.of(past, watch.past_classes, codes, domains, guard, cuts=cuts, regroup=regroup)
    return settled(past, watch, stock, domains, guard, trials=trials, seed=seed, progress=progress)
