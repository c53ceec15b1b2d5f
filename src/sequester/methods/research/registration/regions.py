"""Groups for values that change, diluted by a registration list: absent people share the rows of a class.

Wong et al. (section 8) add people who are registered but not in the table to the groups. Whoever attacks then knows who
may be in a release and not who is: the rows of a class belong to any of the N registered people inside its box, and a
person is linked to a value with n_s/N instead of n_s/n, whether she is in the table or not. That holds for boxes which
share no registered person, in the attributes by which people are found (`links`); so the space of these attributes is
cut into regions, and a box stays inside its region. It is no larger than it has to be: tight around its records, and
widened only to reach the registered people that are needed.

The price is paid by everybody inside, present or not: each point of the list has what is left of its survival, and the
worst of a box decides for each value in it. Neither larger nor smaller boxes are safer as such, so every node of a tree
of cuts is judged on its own, and a dynamic program takes the cheapest ones. A node is published with all its records,
or none of them: to leave out those with a value that is too frequent would tell who has it. A record left out counts as
`WORTH` fully generalized ones, so larger nodes are taken where that spares records; and around them cuts are tried that
part records from those who can hardly bear their values.

People who share all linking attributes are in one region, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.guarantees.lifetime import DOUBT, Strategy
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.lifetime.promise import changing_values, nobody_fits
from sequester.methods.research.registration.costs import Regions, cheapest
from sequester.methods.research.registration.earlier import Earlier
from sequester.methods.research.registration.registry import Registry
from sequester.methods.research.registration.values import Values

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]

# Regions are made so often before all shares are lowered by a hair; nearly always the first ones keep the promise.
_ATTEMPTS = 4


def regions(
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    lifetime: Lifetime,
    registered: Ints,
) -> Classes:
    """Classes of the next table that keep the lifetime guarantee, given who is known to be registered.

    `codes` are (attributes, records), `registered` (attributes, people) of everybody who may be in the table: at least
    the people of the records. Attributes that change over time (`links` is False) are not looked at in it; in those,
    boxes are tight around their records. The list is taken to be the one of all releases so far. People who can be in
    no class have the class -1. Raises GuaranteeError when nobody can be published.
    """
    changing = changing_values(past)
    if past.retained.any() or guard.known:
        raise ValueError("regions are made of records that are there, and without a population")
    strategy, histories = Strategy.of(lifetime), changing.histories
    values = Values.of(histories, changing.value)
    registry = Registry.of(codes, domains, guard, values.column, links=histories[0].links, registered=registered)
    if not codes.shape[1]:
        raise nobody_fits()
    member, lo, hi = _within_shares(histories, values, registry, strategy)
    if (member < 0).all():
        raise nobody_fits()
    return Classes(member, np.ascontiguousarray(lo.T), np.ascontiguousarray(hi.T))


def _within_shares(histories: Sequence[History], values: Values, registry: Registry, strategy: Strategy) -> Regions:
    """Classes within what is left of everybody, and exactly so."""
    earlier = Earlier.of(histories, values, registry)
    shares, survivals = earlier.left(values, strategy)
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            shares = shares._replace(share=shares.share - 4 * DOUBT, fresh=shares.fresh - 4 * DOUBT)
        made = cheapest(registry, shares)
        exceeded = earlier.broken(made, shares, survivals, values, strategy)
        if not len(exceeded.share):
            return made
        # So near to the limit that only whole numbers could tell: from now on the share is out of the question.
        known, most = exceeded.entry >= 0, exceeded.share - 4 * DOUBT
        np.minimum.at(shares.share, exceeded.entry[known], most[known])
        np.minimum.at(shares.fresh, exceeded.column[~known], most[~known])
    raise AssertionError("regions within their shares exceed what was promised")
