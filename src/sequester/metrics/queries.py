"""How wrong counts are when they are asked of a release instead of the table behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.metrics.loss import SizedBoxes

Integers = NDArray[np.integer[Any]]

# A count below this share of the table is treated as this large, so that an empty answer cannot divide by zero.
SANITY = 0.001


@dataclass(frozen=True)
class Range:
    """Leaf codes `lo` to `hi` of one attribute; `attribute` None means the sensitive one."""

    attribute: int | None
    lo: int
    hi: int


Query = tuple[Range, ...]


def random_queries(
    sizes: Sequence[int],
    *,
    queries: int,
    rng: np.random.Generator,
    attributes: int = 2,
    selectivity: float = 0.05,
    sensitive: int | None = None,
) -> list[Query]:
    """Range-count queries in the way of Xiao and Tao, which Wong et al. (section 8) follow.

    Each picks `attributes` quasi-identifiers at random (and the sensitive attribute when its number of values is
    given), and on each a range of leaves, placed at random, of such a length that uniform independent data would
    meet all of them with probability `selectivity`.
    """
    asked = min(attributes, len(sizes))
    each = selectivity ** (1 / max(asked + (sensitive is not None), 1))
    drawn = []
    for _ in range(queries):
        chosen: list[int | None] = [*np.sort(rng.choice(len(sizes), size=asked, replace=False)).tolist()]
        if sensitive is not None:
            chosen.append(None)
        drawn.append(tuple(_place(sizes, sensitive, name, each=each, rng=rng) for name in chosen))
    return drawn


def query_error(
    classes: SizedBoxes,
    asked: Sequence[Query],
    *,
    original: Integers,
    original_sensitive: Integers | None = None,
    member: Integers | None = None,
    sensitive: Integers | None = None,
    weight: float = 1.0,
) -> float:
    """The average of |estimate - actual| / max(actual, 0.1% of the table) over queries.

    `original` are the raw codes of all records, including those the release leaves out. Queries about the sensitive
    attribute need `original_sensitive`, and of the release each record's class `member` and value `sensitive`.
    Where some rows are decoys, `weight` is how many people a row stands for.
    """
    floor = max(SANITY * original.shape[1], np.finfo(float).tiny)
    total = 0.0
    # One query at a time: memory stays that of a column, never queries x rows.
    for query in asked:
        actual = count(query, original, sensitive=original_sensitive)
        guess = estimate(query, classes, member=member, sensitive=sensitive)
        total += abs(weight * guess - actual) / max(actual, floor)
    return total / max(len(asked), 1)


def count(query: Query, quasi: Integers, *, sensitive: Integers | None = None) -> int:
    """How many raw records a query meets."""
    meets = np.ones(quasi.shape[1], bool)
    for part in query:
        column = _sensitive(sensitive) if part.attribute is None else quasi[part.attribute]
        meets &= (column >= part.lo) & (column <= part.hi)
    return int(np.count_nonzero(meets))


def estimate(
    query: Query, classes: SizedBoxes, *, member: Integers | None = None, sensitive: Integers | None = None
) -> float:
    """What a reader of the release would answer, taking records as spread evenly over the leaves of their box."""
    share: NDArray[np.float64] = np.ones(len(classes.size))
    size: NDArray[np.int64] = classes.size
    for part in query:
        if part.attribute is None:
            values = _sensitive(sensitive)
            meets = (values >= part.lo) & (values <= part.hi)
            size = np.bincount(_sensitive(member)[meets], minlength=len(size))
        else:
            lo, hi = classes.lo[part.attribute], classes.hi[part.attribute]
            overlap = np.minimum(hi, part.hi) - np.maximum(lo, part.lo) + 1
            share = share * np.maximum(overlap, 0) / (hi - lo + 1)
    return float((share * size).sum())


def _place(
    sizes: Sequence[int], sensitive: int | None, attribute: int | None, *, each: float, rng: np.random.Generator
) -> Range:
    size = (sensitive or 1) if attribute is None else sizes[attribute]
    length = min(size, max(1, int(np.ceil(size * each))))
    start = int(rng.integers(0, size - length + 1))
    return Range(attribute, start, start + length - 1)


def _sensitive(values: Integers | None) -> Integers:
    if values is None:
        raise ValueError("a query about the sensitive attribute needs its values and classes")
    return values
