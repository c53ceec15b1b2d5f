"""What was promised of values that change: what it leaves everybody now, and whether classes keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError, PolicyError
from sequester.guarantees.lifetime import DOUBT, Strategy
from sequester.history.past import Past
from sequester.methods.lifetime.survivals import Survivals

if TYPE_CHECKING:
    from sequester.policy.protect import Lifetime

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

# Pairs of a kind of person and a class that are judged at once: few enough to stay in a processor's cache.
_CHUNK = 1 << 14


class Broken(NamedTuple):
    """What does not keep the promise: rows and columns of the survivals, the shares they have, and the classes."""

    row: Longs
    column: Longs
    share: Floats
    number: Longs


def prospects(past: Past, lifetime: Lifetime) -> tuple[Strategy, Survivals, Floats]:
    """The strategy, what is left of everybody, and the largest share (kinds of people, values) that allows now."""
    changing, strategy = changing_values(past), Strategy.of(lifetime)
    survivals = Survivals.of(changing.histories, past.person, changing.value)
    share = strategy.shares(survivals.left, survivals.linked)
    return strategy, survivals, np.ascontiguousarray(np.minimum(share, survivals.bounds))


def changing_values(past: Past) -> Past:
    """The same past, of the views whose values change."""
    changing = past.views(permanent=False)
    if not changing.histories:
        raise PolicyError("a lifetime guarantee is about values that change: no sensitive attribute is transient")
    return changing


def nobody_fits() -> GuaranteeError:
    """Why no class was made at all."""
    return GuaranteeError(
        "nobody can be published: the people who are protected need larger classes, or more different values, than "
        "the table has. Promise a lower l or fewer releases, or call frequent values ordinary. Nothing was "
        "published.",
        guarantee="lifetime",
    )


def broken(survivals: Survivals, strategy: Strategy, member: Ints, counted: Longs | None = None) -> Broken:
    """What does not keep the promise in these classes.

    `counted` is 1 for records whose rows any of the class may have; by default for all.
    """
    classes = max(int(member.max(initial=-1)) + 1, 1)
    kept = np.flatnonzero(member >= 0)
    weights = None if counted is None else counted[kept]
    size = np.bincount(member[kept], weights=weights, minlength=classes).astype(np.int64)
    counts = count_values(member.astype(np.int64), survivals.column, survivals.left.shape[1], classes)
    pairs = np.unique(survivals.row[kept].astype(np.int64) * classes + member[kept])
    rows, numbers = pairs // classes, pairs % classes
    share = counts / np.maximum(size, 1)[:, None]
    parts = [Broken(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        spent = share[numbers[part]]
        after = survivals.left[rows[part]] * (1 - spent)
        place, column = np.nonzero((after < float(strategy.floor) + 10 * DOUBT) & (spent > 0))
        row, number = rows[part][place], numbers[part][place]
        lost = ~survivals.keeps(strategy, row, column, linked=counts[number, column], among=size[number])
        parts.append(Broken(row[lost], column[lost], share[number, column][lost], number[lost]))
    return Broken(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def count_values(group_of: Longs, column: Ints, columns: int, groups: int) -> Longs:
    """(groups, columns) how many of each group, -1 for none, have the value of each column, -1 for none."""
    counts = np.zeros(groups * columns, np.int64)
    for values in column.T:
        there = np.flatnonzero((group_of >= 0) & (values >= 0))
        counts += np.bincount(group_of[there] * columns + values[there], minlength=groups * columns)
    return counts.reshape(groups, columns)
