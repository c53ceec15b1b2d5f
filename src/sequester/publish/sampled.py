"""What a large table would lose if it was made otherwise, estimated on some neighborhoods of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.methods.classes import Classes
from sequester.methods.method import Task
from sequester.methods.neighborhoods import Neighborhood, draw
from sequester.metrics.loss import ail, dm, ncp

# Records of the largest table that is made again for every comparison: that takes as long as the release itself, which
# is seconds here, and at ten times as many more than anybody waits for figures that are not published.
MOST_EXACT = 100_000
# With so many, figures of a million uniform people are within 0.5 percent, and of 60,000 uneven ones within ten.
NEIGHBORHOODS = 24
_PEOPLE = 2_000
# Classes that a neighborhood has at least, so that its border does not matter much.
_CLASSES = 50
# A neighborhood in which no classes are safe is looked at within larger ones, so many times.
_LARGER = 3

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class SampledPrice:
    """Average loss of a record, and how many people were looked at; `size` is that of her class."""

    ail: float
    ncp: float
    size: float
    people: int

    def losses(self, records: int, *, left_out: int, attributes: int) -> dict[str, float]:
        """Of a table with so many records in it, and so many left out, which lose everything."""
        both = max(records + left_out, 1)
        return {
            "ail": (self.ail * records + left_out * attributes) / both,
            "ncp": (self.ncp * records + left_out) / both,
            "dm": self.size * records + left_out * (records + left_out),
        }


def of_rows(task: Task, rows: Rows) -> Task:
    """The same task with some of its records, on their own."""
    guard = replace(task.guard, values=task.guard.values[rows])
    return replace(task, codes=task.codes[:, rows], guard=guard, progress=None)


def neighborhoods(task: Task, rows: Rows, *, seed: Sequence[int]) -> tuple[Neighborhood, ...]:
    """Some neighborhoods among these rows, of at least as many people as make some classes."""
    draws = np.random.default_rng([*seed, 4])
    people = max(_PEOPLE, _CLASSES * int(task.guard.limits.k))
    return tuple(draw(task.codes, task.domains, rows, people=people, times=NEIGHBORHOODS, draws=draws))


def estimate(
    task: Task,
    some: Sequence[Neighborhood],
    make: Callable[[Task], Classes],
    *,
    half: np.random.Generator | None = None,
) -> SampledPrice | None:
    """What people lose by classes that are made of each neighborhood; None where no classes of one are safe.

    half  draws who is looked at, if that is to be half of the people of each
    """
    found: list[tuple[int, float, float, float]] = []
    people = 0
    for one in some:
        made: tuple[Classes, int] | None = None
        for rows in (one.rows, *one.around[:_LARGER]):
            chosen = rows if half is None else np.sort(half.permutation(rows)[: len(rows) // 2])
            with contextlib.suppress(GuaranteeError):
                made = make(of_rows(task, chosen)), len(chosen)
                # What is one class may be so because it is not even safe as one.
                if len(made[0]) > 1:
                    break
        if made is None:
            return None
        classes, records = made
        figures = (ail(classes, task.domains), ncp(classes, task.domains), dm(classes) / records)
        found.append((one.drawn, *figures))
        people += records
    weight, *columns = np.array(found).T
    widths, penalty, size = (float(np.average(column, weights=weight)) for column in columns)
    return SampledPrice(widths, penalty, size, people)
