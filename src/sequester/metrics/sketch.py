"""What a published table looks like, from it and the policy alone: anybody who has both can compute all of this.

It is what a public report shows, and what the ledger keeps of a release so that the next report can show both.
Sensitive values are named only where the policy names them, and no number of rows below k is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sequester.domain import notation
from sequester.domain.build import declared
from sequester.domain.hierarchy import EVERYTHING, MISSING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.ingest.published import Column, OpenedTable, PublishedClasses
from sequester.metrics.loss import column_losses
from sequester.policy.model import Policy
from sequester.ticks import nice

# More boxes are no picture; of more, some are taken in equal steps.
_BOXES = 300
_BARS = 12
_SIZES = 12
# Months up to which dates are counted by months, not by years.
_MONTHS = 36
OTHERS = "all others"

Bar = tuple[str, float | None]


@dataclass(frozen=True)
class BoxSketch:
    """The boxes of a release over two quasi-identifiers: (text, text, classes, rows), `of` so many different ones."""

    axes: tuple[str, str]
    boxes: tuple[tuple[str, str, int, int], ...]
    of: int


@dataclass(frozen=True)
class Sketch:
    """One published table in a few numbers.

    sizes     (from, to, classes): how many classes have so many rows
    columns   loss (NCP) of each quasi-identifier; none where the table does not show it
    spread    per column, rows by value; those of a box are spread evenly over what it allows. None is fewer than k
    boxes     of two quasi-identifiers, where there are two
    """

    rows: int
    classes: int
    sizes: tuple[tuple[int, int, int], ...]
    columns: Mapping[str, float]
    spread: Mapping[str, tuple[Bar, ...]]
    boxes: BoxSketch | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; columns as pairs, since the order of keys does not survive in a ledger."""
        return {**asdict(self), "columns": list(self.columns.items()), "spread": list(self.spread.items())}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any] | None) -> Self | None:
        """The reverse of `to_dict`; None stays None."""
        if raw is None:
            return None
        boxes = raw["boxes"]
        if boxes is not None:
            boxes = BoxSketch(tuple(boxes["axes"]), tuple(tuple(box) for box in boxes["boxes"]), boxes["of"])
        return cls(
            raw["rows"],
            raw["classes"],
            tuple(tuple(size) for size in raw["sizes"]),
            dict(raw["columns"]),
            {name: tuple(tuple(bar) for bar in bars) for name, bars in raw["spread"]},
            boxes,
        )


def sketch(source: Any, policy: Policy, *, axes: Sequence[str] | None = None) -> Sketch:
    """Sketch a published table; `axes` are the two quasi-identifiers of its map, if they are among its own."""
    opened = OpenedTable.of(source, policy)
    table, published = opened.table, opened.classes
    names = [column.name for column in table.quasi]
    size = published.size
    # Midpoints read as exact numbers: what they lose, and their boxes, cannot be seen from the table.
    shown = policy.output.numbers != "midpoint"
    spread = {
        name: _folded(_few(bars_of(domain, lo, hi, size.astype(np.float64))), policy.protect.k)
        for name, domain, lo, hi in zip(names, published.domains, published.lo, published.hi, strict=True)
    }
    for column in table.sensitive:
        if not kind_of(column.attribute).several:
            spread[column.name] = _folded(_named(column, policy), policy.protect.k)
    return Sketch(
        rows=len(published.member),
        classes=len(published),
        sizes=sizes_of(*np.unique(size, return_counts=True)),
        columns=dict(zip(names, column_losses(published, published.domains).tolist(), strict=True)) if shown else {},
        spread=spread,
        boxes=_boxes(published, size, names, axes) if shown and len(names) > 1 else None,
    )


def bars_of(domain: Hierarchy, lo: Codes, hi: Codes, weight: NDArray[np.float64]) -> list[tuple[str, float]]:
    """How much lies at each value, where the weight of every interval is spread evenly over it.

    Numbers and dates are counted in about ten equal steps, many categories by the finest level that has few groups.
    """
    return _on_scale(domain, lo, hi, weight) if kind_of(domain).measured else _on_leaves(domain, lo, hi, weight)


def largest(bars: Mapping[str, float]) -> list[str]:
    """The names of the largest, in their order, as many as a picture shows beside all others."""
    names = list(bars)
    if len(names) <= _BARS:
        return names
    kept = set(sorted(names, key=lambda name: -bars[name])[: _BARS - 1])
    return [name for name in names if name in kept]


def _on_scale(domain: Hierarchy, lo: Codes, hi: Codes, weight: NDArray[np.float64]) -> list[tuple[str, float]]:
    scale = scale_of(domain)
    last = len(domain.values) - 1
    absent = (lo > last) if domain.missing else np.zeros(len(lo), np.bool_)
    low, high = scale.at[np.minimum(lo, last)][~absent], scale.at[np.minimum(hi, last)][~absent] + scale.wide
    heavy, edges = weight[~absent], np.array(scale.edges(10))
    wide = high - low
    bars = []
    for place, (start, end) in enumerate(pairwise(edges)):
        inside = np.clip(np.minimum(high, end) - np.maximum(low, start), 0, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(wide > 0, inside / wide, (low >= start) & ((low < end) | (place == len(edges) - 2)))
        bars.append((scale.between(start, end), float((share * heavy).sum())))
    return [*bars, (MISSING, float(weight[absent].sum()))] if domain.missing else bars


def _on_leaves(domain: Hierarchy, lo: Codes, hi: Codes, weight: NDArray[np.float64]) -> list[tuple[str, float]]:
    each = weight / (hi - lo + 1)
    steps = np.zeros(domain.size + 1)
    np.add.at(steps, lo, each)
    np.add.at(steps, hi.astype(np.int64) + 1, -each)
    leaves = np.cumsum(steps)[:-1]
    level = next((n for n, names in enumerate(domain.names) if 1 < len(names) <= _BARS), 0)
    rows = np.bincount(domain.groups(level), weights=leaves)
    return [(str(name), max(float(count), 0.0)) for name, count in zip(domain.names[level], rows, strict=True)]


def _named(column: Column, policy: Policy) -> list[tuple[str, float]]:
    """Rows by value of a sensitive column; values that the policy does not name are counted together."""
    attribute, fixed = column.attribute, declared(column.attribute, policy.path)
    known = {EVERYTHING, MISSING, *getattr(attribute, "ordinary", ())}
    if fixed is not None:
        known.update(name for names in fixed.names for name in names)
    counts = np.bincount(column.index[column.index >= 0], minlength=len(column.texts))
    bars: dict[str, float] = {}
    for text, count in zip(column.texts, counts.tolist(), strict=True):
        name = text if text in known else OTHERS
        bars[name] = bars.get(name, 0.0) + count
    absent = int(np.count_nonzero(column.index < 0))
    if absent:
        bars[MISSING] = bars.get(MISSING, 0.0) + absent
    rest = bars.pop(OTHERS, None)
    ordered = _few(sorted(bars.items(), key=lambda bar: (-bar[1], bar[0])))
    if rest is not None:
        more = ordered.pop()[1] if ordered and ordered[-1][0] == OTHERS else 0.0
        ordered.append((OTHERS, rest + more))
    return ordered


def _few(bars: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The largest ones in their order, and the others together."""
    known = dict(bars)
    kept = largest(known)
    if len(kept) == len(bars):
        return bars
    return [*((name, known[name]) for name in kept), (OTHERS, sum(known.values()) - sum(known[name] for name in kept))]


def _folded(bars: Sequence[tuple[str, float]], k: int) -> tuple[Bar, ...]:
    return tuple((name, float(round(count)) if count >= k else 0.0 if count == 0 else None) for name, count in bars)


def sizes_of(sizes: NDArray[np.int64], classes: NDArray[np.int64]) -> tuple[tuple[int, int, int], ...]:
    """Classes by their rows: each size, or where there are many, ever wider ranges of sizes; given different sizes."""
    if len(sizes) <= _SIZES:
        return tuple((int(one), int(one), int(count)) for one, count in zip(sizes, classes, strict=True))
    edges = np.unique(np.geomspace(sizes[0], sizes[-1] + 1, _SIZES + 1).round().astype(np.int64))
    counts = np.add.reduceat(classes, np.searchsorted(sizes, edges[:-1]))
    filled = np.diff(np.searchsorted(sizes, edges)) > 0
    return tuple(
        (int(low), int(high) - 1, int(count) if full else 0)
        for low, high, count, full in zip(edges[:-1], edges[1:], counts, filled, strict=True)
    )


def _boxes(
    published: PublishedClasses, size: NDArray[np.int64], names: Sequence[str], axes: Sequence[str] | None
) -> BoxSketch:
    """Boxes over two attributes: those asked for, or the two with the most different sides."""
    if axes is None or not set(axes) <= set(names):
        sides = [
            len(np.unique(lo.astype(np.int64) << 32 | hi)) for lo, hi in zip(published.lo, published.hi, strict=True)
        ]
        first, second = sorted(sorted(range(len(names)), key=lambda n: (-sides[n], n))[:2])
    else:
        first, second = (names.index(name) for name in axes)
    keys = np.array([published.lo[first], published.hi[first], published.lo[second], published.hi[second]]).T
    boxes, which = np.unique(keys, axis=0, return_inverse=True)
    classes = np.bincount(which.reshape(-1), minlength=len(boxes))
    rows = np.bincount(which.reshape(-1), weights=size, minlength=len(boxes)).astype(np.int64)
    taken = np.unique(np.linspace(0, len(boxes) - 1, min(len(boxes), _BOXES)).round().astype(np.int64))
    texts = [
        notation.write(published.domains[axis], boxes[taken, place], boxes[taken, place + 1])
        for axis, place in ((first, 0), (second, 2))
    ]
    told = zip(*texts, classes[taken].tolist(), rows[taken].tolist(), strict=True)
    return BoxSketch((names[first], names[second]), tuple(told), len(boxes))


@dataclass(frozen=True, eq=False)
class ValueScale:
    """An axis: `at` is where every leaf with a value begins, `wide` how far it reaches, `text` what a place is called.

    `whole`: places are counted in whole steps, so that what lies between two of them ends one before the second.
    """

    at: NDArray[np.float64]
    wide: float
    text: Callable[[float], str]
    whole: bool

    def edges(self, most: int) -> list[float]:
        """Round places that cover all leaves."""
        low, high = float(self.at.min()), float(self.at.max()) + self.wide
        return nice(low, high, most=most, least=1.0 if self.whole else 0.0)

    def between(self, start: float, end: float) -> str:
        """What a step is called."""
        if not self.whole:
            return f"{self.text(start)} to {self.text(end)}"
        return self.text(start) if end - start <= 1 else f"{self.text(start)} to {self.text(end - 1)}"


def scale_of(domain: Hierarchy) -> ValueScale:
    """The axis of a domain of numbers or dates; dates lie by their months, or by their years where these are many."""
    values = domain.values
    if values.dtype.kind != "M":
        whole = bool(np.all(values == np.round(values)))
        return ValueScale(values.astype(np.float64), float(whole), lambda place: f"{place:.10g}", whole)
    months = values.astype("datetime64[M]")
    at = months.astype(np.int64) + (values - months).astype(np.int64) / 31
    if at.max() - at.min() > _MONTHS:
        return ValueScale(1970 + at / 12, 1 / 372, lambda place: f"{place:.0f}", True)
    return ValueScale(at, 1 / 31, lambda place: str(np.datetime64(int(place), "M")), True)
