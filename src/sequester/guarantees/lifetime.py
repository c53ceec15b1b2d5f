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
from sequester.guarantees.criterion import exact

if TYPE_CHECKING:
    from sequester.history.history import History
    from sequester.policy.model import Lifetime, Policy

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

DOUBT = 1e-10
"""Shares nearer than this to what is allowed are decided in whole numbers: floats are far better for any series."""


def survival(linked: Sequence[int], among: Sequence[int]) -> Fraction:
    """The chance of never having been linked: classes of `among` rows each, of which `linked` have the value."""
    return Fraction(math.prod(n - n_s for n_s, n in zip(linked, among, strict=True)), math.prod(among))


def least_ratio(left: Fraction, l: float) -> Fraction | None:  # noqa: E741
    """The smallest n/n_s that is allowed after this survival (Theorem 1); None when no class with the value is."""
    rest = left - (1 - 1 / exact(l))
    return left / rest if rest > 0 else None


def constant_ratio(l: float, releases: int) -> float:  # noqa: E741
    """The smallest ratio n/n_s that can be kept for so many releases (Table 1 of the paper, corrected)."""
    return -1 / math.expm1(math.log1p(-1 / l) / releases)


def geometric_ratio(l: float, alpha: float, release: int) -> float:  # noqa: E741
    """The ratio n/n_s of the release so numbered (from 1) if every one before was as small as the strategy allows."""
    return alpha * (1 + (l - 1) * (alpha / (alpha - 1)) ** (release - 1))


def geometric_risk(l: float, alpha: float, release: int) -> float:  # noqa: E741
    """The probability of a link after so many such releases: below 1/l for ever."""
    return (1 - (1 - 1 / alpha) ** release) / l


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
    if policy.protect.lifetime is None or declared is None or declared.values == "permanent":
        return tuple(bounds)
    limit, free = 1 / exact(policy.protect.lifetime.l), {*declared.ordinary, EVERYTHING, UNSEEN}
    return tuple(bound if name in free else min(bound, limit) for name, bound in zip(names, bounds, strict=True))


def rests_on_lifetime(policy: Policy, attribute: str) -> bool:
    """Whether the values of an attribute that changes are bounded by the lifetime guarantee alone."""
    declared = policy.sensitive.get(attribute)
    if policy.protect.lifetime is None or declared is None or declared.values == "permanent":
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


def protected_columns(
    histories: Sequence[History], values: Sequence[NDArray[np.int32]], *, absent: bool = False
) -> tuple[list[Longs], list[NDArray[np.int32]]]:
    """Per view the values that are protected and that somebody has, or anyway with `absent`; and per value its column.

    Columns are numbered through all views; -1 is for values that have none.
    """
    chosen, columns, first = [], [], 0
    for history, value in zip(histories, values, strict=True):
        protected = np.array([bound < 1 for bound in history.bounds], np.bool_)
        which = np.flatnonzero(protected & (absent | (np.bincount(value, minlength=len(protected)) > 0)))
        place = np.full(len(protected), -1, np.int32)
        place[which] = first + np.arange(len(which))
        chosen.append(which)
        columns.append(place)
        first += len(which)
    return chosen, columns


@dataclass(frozen=True, eq=False, repr=False)
class Survivals:
    """What is left of everybody who is in the next table, for all protected values of all views that change.

    left, linked  (rows, columns) survival, and in how many releases there was a link; a row for each trajectory of
                  these people, the last for people who were never published
    row           per record of the next table
    column        (records, views) the column of its value, -1 for values that need no protection
    first         (views + 1) where the columns of each view begin; `value` is the value of every column
    path          (rows, releases) the class in every release, -1 for absence
    """

    left: Floats
    linked: NDArray[np.int32]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    first: Longs
    value: NDArray[np.int32]
    path: NDArray[np.int32]
    histories: tuple[History, ...]

    def __repr__(self) -> str:
        return f"<Survivals: {len(self.row)} records, {self.left.shape[1]} values>"

    @classmethod
    def of(
        cls,
        histories: Sequence[History],
        person: Longs,
        values: Sequence[NDArray[np.int32]],
        *,
        absent: bool = False,
    ) -> Survivals:
        """Of these people, given their values in the next table; `histories` of values that change, and their codes.

        Values that nobody has in the next table can be in no class of it: they have columns only with `absent`.
        """
        from sequester.kernels.group import survive

        chosen, columns = protected_columns(histories, values, absent=absent)
        first = np.cumsum([0, *map(len, chosen)]).astype(np.int64)
        path, row = _paths(histories, person)
        left = np.ones((len(path), int(first[-1])))
        linked = np.zeros(left.shape, np.int32)
        for release in range(path.shape[1]):
            for place, history in zip(columns, histories, strict=True):
                counts = history.releases[release].counts
                # Only values that are in a class cost its members anything: few of many.
                number, code = np.nonzero(counts)
                number, code = number[place[code] >= 0], code[place[code] >= 0]
                share = counts[number, code] / np.maximum(history.sharing(release), 1)[number]
                ends = np.append(0, np.cumsum(np.bincount(number, minlength=len(counts)))).astype(np.int64)
                survive(np.ascontiguousarray(path[:, release]), ends, place[code], share, left, linked)
        return cls(
            left=left,
            linked=linked,
            row=row,
            column=np.column_stack([place[value] for place, value in zip(columns, values, strict=True)]),
            first=first,
            value=np.concatenate(chosen).astype(np.int32),
            path=path,
            histories=tuple(histories),
        )

    @property
    def bounds(self) -> Floats:
        """Per column, the bound of its value on single classes."""
        found = [float(self.histories[view].bounds[self.value[column]]) for column, view in enumerate(self._views())]
        return np.array(found, np.float64)

    def _views(self) -> list[int]:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)).tolist()

    def factors(self, row: int, column: int) -> tuple[list[int], list[int]]:
        """Of every earlier release with a link: rows with the value, and rows of the class."""
        linked, among = [], []
        for release, number in enumerate(self.path[row].tolist()):
            if number < 0:
                continue
            view = int(np.searchsorted(self.first, column, "right")) - 1
            with_value = int(self.histories[view].releases[release].counts[number, self.value[column]])
            if with_value:
                linked.append(with_value)
                among.append(int(self.histories[view].sharing(release)[number]))
        return linked, among

    def keeps(
        self, strategy: Strategy, rows: Longs, columns: Longs, *, linked: Longs, among: Longs
    ) -> NDArray[np.bool_]:
        """Per (row, column), whether it keeps the promise after one more class; near the limit integers decide."""
        floor = float(strategy.floor)
        after = self.left[rows, columns] * (1 - linked / among)
        kept: NDArray[np.bool_] = after >= floor
        near = np.abs(after - floor) < 10 * DOUBT
        new = near & (self.linked[rows, columns] == 0)
        most = strategy.l.denominator * among[new]
        kept[new] = linked[new] * strategy.l.numerator <= most
        cases = np.column_stack([rows, columns, linked, among])[near & ~new]
        distinct, which = np.unique(cases, axis=0, return_inverse=True)
        decided = np.zeros(len(distinct), np.bool_)
        for place, (row, column, now, size) in enumerate(distinct.tolist()):
            before, sizes = self.factors(row, column)
            decided[place] = survival([*before, now], [*sizes, size]) >= strategy.floor
        kept[near & ~new] = decided[which.reshape(-1)]
        return kept


def _paths(histories: Sequence[History], person: Longs) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The trajectories of these people, with one of nobody's at the end, and each person's."""
    known = histories[0].trajectories if histories else None
    if known is None:
        return np.zeros((1, 0), np.int32), np.zeros(len(person), np.int32)
    of = known.of[person]
    used = np.zeros(len(known) + 1, np.bool_)
    used[of] = True
    used[-1] = True
    number = np.cumsum(used) - 1
    path = np.vstack([known.path[used[:-1]], np.full((1, known.path.shape[1]), -1, np.int32)])
    return path, number[of].astype(np.int32)
