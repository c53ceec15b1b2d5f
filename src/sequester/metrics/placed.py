"""Boxes of one or two releases on one map: sketches of them have texts, a map needs places."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sequester.domain import notation
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import kind_of
from sequester.errors import DataError
from sequester.ingest.ends import domain_of
from sequester.metrics.sketch import BoxSketch, scale_of
from sequester.policy.model import Policy

_TICKS = 14

Place = tuple[float, float]


@dataclass(frozen=True)
class MapAxis:
    """One side of a map, with its marks."""

    name: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class PlacedBox:
    """A box on a map, and what it is."""

    x: Place
    y: Place
    told: str


@dataclass(frozen=True)
class BoxMap:
    """Boxes of a release, those of the one before, and the two axes they lie on."""

    x: MapAxis
    y: MapAxis
    now: tuple[PlacedBox, ...]
    before: tuple[PlacedBox, ...]


def place_boxes(now: BoxSketch, before: BoxSketch | None, policy: Policy) -> BoxMap:
    """Where the boxes lie; those before only where they are of the same attributes, and can still be read."""
    if before is not None and before.axes == now.axes:
        # Of a series that goes on from another, the attributes may be of other kinds by now.
        with suppress(DataError):
            return _mapped([now, before], policy)
    return _mapped([now], policy)


def _mapped(both: Sequence[BoxSketch], policy: Policy) -> BoxMap:
    sides, now = [], both[0]
    for axis, name in enumerate(now.axes):
        texts = [list(dict.fromkeys(str(box[axis]) for box in one.boxes)) for one in both]
        attribute = policy.quasi_identifiers[name]
        domain = domain_of(attribute, [text for some in texts for text in some], path=policy.path)
        sides.append(_Side(name, domain))
    placed = [tuple(_placed(one, sides)) for one in both]
    return BoxMap(sides[0].axis, sides[1].axis, placed[0], placed[1] if len(placed) > 1 else ())


class _Side:
    """Reads texts of one attribute as places."""

    def __init__(self, name: str, domain: Hierarchy) -> None:
        self._domain = domain
        self._known: dict[str, Place | None] = {}
        if kind_of(domain).measured:
            self._scale = scale_of(domain)
            edges = self._scale.edges(8)
            low, high = float(self._scale.at.min()), float(self._scale.at.max()) + self._scale.wide
            ticks = [(edge, self._scale.text(edge)) for edge in edges if low <= edge <= high]
            self.axis = MapAxis(name, low, high, tuple(ticks))
        else:
            self.axis = MapAxis(name, 0.0, float(domain.size), _leaf_ticks(domain))

    def place(self, text: str) -> Place | None:
        if text not in self._known:
            self._known[text] = self._read(text)
        return self._known[text]

    def _read(self, text: str) -> Place | None:
        domain = self._domain
        lo, hi, understood = notation.read(domain, [text])
        if not understood[0]:
            return None
        low, high = int(lo[0]), int(hi[0])
        if not kind_of(domain).measured:
            return float(low), float(high + 1)
        last = len(domain.values) - 1
        # A value that may be missing has no place of its own.
        if low > last:
            return None
        return float(self._scale.at[low]), float(self._scale.at[min(high, last)]) + self._scale.wide


def _leaf_ticks(domain: Hierarchy) -> tuple[tuple[float, str], ...]:
    """Names along the axis: of leaves, or of the finest groups that are few enough."""
    level = next((n for n, names in enumerate(domain.names) if len(names) <= _TICKS), domain.height)
    first, last = domain.bounds(level)
    middles = ((low + high + 1) / 2 for low, high in zip(first.tolist(), last.tolist(), strict=True))
    return tuple(zip(middles, map(str, domain.names[level]), strict=True))


def _placed(sketch: BoxSketch, sides: Sequence[_Side]) -> list[PlacedBox]:
    found = []
    for across, up, classes, rows in sketch.boxes:
        x, y = sides[0].place(across), sides[1].place(up)
        if x is not None and y is not None:
            many = f"{classes:,} class{'es' * (classes != 1)}, {rows:,} rows"
            found.append(PlacedBox(x, y, f"{sketch.axes[0]} {across}, {sketch.axes[1]} {up}: {many}"))
    return found
