"""When starting over would cost less (Fung et al., section 7.1): a new chain of releases for the newcomers only.

A new chain leaves out everybody who was published before: about them everything published so far stays known, so a
series that forgot it would leak. What can be compared is what the newcomers lose: in the release, held together with
everybody before, and in a first release of their own, which nothing before can be combined with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.costs import penalty
from sequester.methods.specialize.refine import specialize

WORTH = 0.8
"""How much of the loss in the release a new chain may cost at most to be worth mentioning."""


@dataclass(frozen=True)
class NewChain:
    """What starting over would mean: how many newcomers there are, and what each loses of what is known about her.

    here, alone  average loss from 0 to 1 over attributes, in the release and in a chain of their own
    """

    newcomers: int
    here: float
    alone: float

    @property
    def is_cheaper(self) -> bool:
        """Whether it is worth mentioning."""
        return self.alone <= WORTH * self.here

    def __str__(self) -> str:
        return (
            f"starting over: the {self.newcomers:,} newcomers lose {self.here:.0%} here and would lose "
            f"{self.alone:.0%} in a new series of their own, which would have to leave out everybody published in this "
            "one for good"
        )


def new_chain(
    past: Past,
    classes: Classes,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    loss: Literal["ncp", "precision"] = "ncp",
) -> NewChain | None:
    """Compare the newcomers' loss in these classes with a chain of their own; None when they cannot begin one."""
    from sequester.methods.loops.tree import safe_classes

    known = past.first.trajectories
    new = np.flatnonzero(known.of[past.person] < 0) if known is not None else np.arange(len(past))
    values = guard.values[new]
    together = np.zeros(len(new), np.int64)
    if guard.known or len(new) == len(past) or not safe_classes(together, values, 1, guard.limits).all():
        return None
    own = np.ascontiguousarray(codes[:, new])
    alone = specialize(own, domains, replace(guard, values=values), loss=loss)
    here = Classes(classes.member[new], classes.lo, classes.hi)
    return NewChain(len(new), _loss(here, domains, loss), _loss(alone, domains, loss))


def _loss(classes: Classes, domains: tuple[Hierarchy, ...], loss: str) -> float:
    rows = classes.member[classes.member >= 0]
    parts = zip(domains, classes.lo, classes.hi, strict=True)
    return float(np.mean([penalty(loss, domain, lo[rows], hi[rows]).mean() for domain, lo, hi in parts]))
