"""The lifetime guarantee (Wong et al.): over all releases, nobody was ever linked to a value with more than 1/l.

Values change freely, and whoever attacks knows everybody's class in every release. A person escapes the link to a value
s in a class of n rows, n_s of them with s, with probability 1 - n_s/n; over all releases that is a product, her
*survival* Q(t, s), the same for all people of one trajectory t. Promised is Q >= 1 - 1/l. That is all of the paper's
statistics file that is needed (group sizes alone are not enough).

A *strategy* says how much of what is left may be spent now, as the largest share n_s/n of a class:

constant-ratio  for a number of releases in which a person is linked to a value. With Q left after j of them, the share
                that can be repeated in the others: 1 - ((1 - 1/l) / Q)^(1 / (releases - j)). As long as no class was
                above its share this is at least the paper's 1 - (1 - 1/l)^(1/releases), the smallest largest share that
                any strategy reaches (their Theorem 4, true of ratios); what rounding saved is spread over what follows.
geometric       1/alpha of the share that would spend everything: never everything, so some share is always allowed, but
                one that falls exponentially (`geometric_ratio`); a class can only be as large as the table.

Spending everything (alpha = 1, or the last of the planned releases) means that the person must not be linked to the
value again (their Theorem 2). Neither merging nor splitting classes is monotone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import EVERYTHING, UNSEEN
from sequester.rational import exact

if TYPE_CHECKING:
    from sequester.policy.model import Policy
    from sequester.policy.protect import Lifetime

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

DOUBT = 1e-10
"""Shares nearer than this to what is allowed are decided in whole numbers: floats are far better for any series."""


def survival(linked: Sequence[int], among: Sequence[int]) -> Fraction:
    """The chance of never having been linked: classes of `among` rows each, of which `linked` have the value."""
    return Fraction(math.prod(n - n_s for n_s, n in zip(linked, among, strict=True)), math.prod(among))


def geometric_ratio(l: float, alpha: float, release: int) -> float:  # noqa: E741
    """The ratio n/n_s of the release so numbered (from 1) if every one before was as small as the strategy allows."""
    return alpha * (1 + (l - 1) * (alpha / (alpha - 1)) ** (release - 1))


def best_alpha(l: float, releases: int) -> float:  # noqa: E741
    """The alpha with which the ratio of the last of so many releases, which is the largest, is smallest."""
    if releases == 1:
        return 1.0
    low, high = 1.0 + 1e-9, 2.0 * releases + 2.0
    step = (math.sqrt(5) - 1) / 2
    # Of alpha the ratio is the sum of a line and of (alpha / (alpha - 1))^(k - 1) * alpha: convex, one minimum.
    for _ in range(200):
        left, right = high - step * (high - low), low + step * (high - low)
        if geometric_ratio(l, left, releases) <= geometric_ratio(l, right, releases):
            high = right
        else:
            low = left
    return (low + high) / 2


def lifetime_bounds(
    policy: Policy, attribute: str, names: Sequence[str], bounds: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """Which values of an attribute that changes are protected, as bounds on single classes: all that are below 1.

    Every value that is not ordinary is, whatever `confidence` says: that can only ask for more. Over all releases 1/l
    means at most 1/l in each.
    """
    declared = policy.sensitive.get(attribute)
    if policy.protect.lifetime is None or declared is None or declared.stays:
        return tuple(bounds)
    limit, free = 1 / exact(policy.protect.lifetime.l), {*declared.ordinary, EVERYTHING, UNSEEN}
    return tuple(bound if name in free else min(bound, limit) for name, bound in zip(names, bounds, strict=True))


def rests_on_lifetime(policy: Policy, attribute: str) -> bool:
    """Whether the values of an attribute that changes are bounded by the lifetime guarantee alone."""
    declared = policy.sensitive.get(attribute)
    if policy.protect.lifetime is None or declared is None or declared.stays:
        return False
    return policy.protect.confidence in (None, 1) and declared.confidence in (None, 1)


@dataclass(frozen=True)
class Strategy:
    """How much of what is left of a person's survival one release may spend; `l` and one of the other two."""

    l: Fraction  # noqa: E741
    releases: int | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.l <= 1 or (self.releases is None) == (self.alpha is None):
            raise ValueError("l must be above 1, with either a number of releases or an alpha")

    @classmethod
    def of(cls, lifetime: Lifetime) -> Strategy:
        """The strategy of a policy."""
        return cls(exact(lifetime.l), lifetime.releases, lifetime.alpha)

    @property
    def floor(self) -> Fraction:
        """The smallest survival that keeps the promise."""
        return 1 - 1 / self.l

    def shares(self, left: Floats, linked: NDArray[np.integer]) -> Floats:
        """The largest shares n_s/n for people with this survival left, linked in so many releases; 0: none at all."""
        spent = float(self.floor) / np.maximum(left, float(self.floor))
        if self.alpha is not None:
            return np.asarray((1 - spent) / self.alpha)
        assert self.releases is not None
        return np.asarray(-np.expm1(np.log(spent) / np.maximum(self.releases - linked, 1)))
