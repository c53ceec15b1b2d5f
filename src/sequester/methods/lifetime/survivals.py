"""What is left of everybody's lifetime guarantee when the next table is made, trajectory by trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.guarantees.lifetime import DOUBT, Floats, Longs, Strategy, survival
from sequester.history.history import History


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
        chosen, columns = protected_columns(histories, values, absent=absent)
        first = np.cumsum([0, *map(len, chosen)]).astype(np.int64)
        path, row = _paths(histories, person)
        left = np.ones((len(path), int(first[-1])))
        linked = np.zeros(left.shape, np.int32)
        for release in range(path.shape[1]):
            here = path[:, release] >= 0
            for which, begin, history in zip(chosen, first, histories, strict=False):
                counts = history.releases[release].counts[:, which]
                share = counts / np.maximum(history.sharing(release), 1)[:, None]
                own = slice(int(begin), int(begin) + len(which))
                left[here, own] *= 1 - share[path[here, release]]
                linked[here, own] += counts[path[here, release]] > 0
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
        views = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)).tolist()
        bounds = [float(self.histories[view].bounds[value]) for view, value in zip(views, self.value, strict=True)]
        return np.array(bounds, np.float64)

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
