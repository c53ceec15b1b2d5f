"""What is left of a lifetime guarantee after a release: how many more classes people can bear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.lifetime import Strategy
from sequester.history.history import History
from sequester.methods.lifetime.survivals import Survivals

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime


@dataclass(frozen=True)
class Budget:
    """How often people can be in a class like the one they are in now before what was promised is spent.

    pairs    of a person and a protected value that is in her class now
    blocked  pairs that no class of a table of this size may link again (Wong et al., Theorem 2); a person whose own
             value that is will be left out
    least, tenth, median   how many more such classes: the fewest, what nine of ten pairs can bear at least, and half
    """

    pairs: int
    blocked: int
    least: int
    tenth: int
    median: int


def budget_of(histories: Sequence[History], person: NDArray[np.int64], lifetime: Lifetime) -> Budget:
    """What is left of the people who are in the last release, for the values in their classes."""
    changing = [history for history in histories if not history.permanent]
    strategy, last = Strategy.of(lifetime), changing[0].releases[-1]
    assert last.member is not None
    person = person[last.member[person] >= 0]
    known = []
    for history in changing:
        value = history.releases[-1].value
        assert value is not None
        known.append(value[person])
    found = Survivals.of(changing, person, known)
    people = np.bincount(found.row, minlength=len(found.path))
    rows = np.flatnonzero(people)
    number = found.path[rows, -1]
    views = np.repeat(np.arange(len(changing)), np.diff(found.first))
    counts = np.column_stack(
        [changing[view].releases[-1].counts[:, value] for view, value in zip(views, found.value, strict=True)]
        or [np.zeros((len(last), 0), np.int64)]
    )
    among = np.column_stack([changing[view].sharing(-1) for view in views] or [np.zeros((len(last), 0), np.int64)])
    share = (counts / np.maximum(among, 1))[number]
    place, column = np.nonzero(share)
    if not len(place):
        return Budget(0, 0, 0, 0, 0)
    left, spent = found.left[rows[place], column], share[place, column]
    weight = people[rows[place]]
    # A hair is forgiven: what is left was compared with the limit in whole numbers already.
    rest = np.maximum(np.log(left) - np.log(float(strategy.floor)), 0.0)
    more = np.floor(rest / np.maximum(-np.log1p(-np.minimum(spent, 1 - 1e-12)), 1e-300) + 1e-9).astype(np.int64)
    blocked = (1 - float(strategy.floor) / np.maximum(left, float(strategy.floor))) * len(person) < 1 - 1e-9
    order = np.argsort(more, kind="stable")
    upto = np.cumsum(weight[order])

    def quantile(part: float) -> int:
        return int(more[order[int(np.searchsorted(upto, part * upto[-1]))]])

    return Budget(int(weight.sum()), int(weight[blocked].sum()), int(more.min()), quantile(0.1), quantile(0.5))
