"""Pictures of boxes: a map of two attributes with what was published last beneath, and heat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sequester.report.canvas import WIDE, WIDTH, Picture, at, in_words, legend, line, rect, short, width_of

if TYPE_CHECKING:
    from sequester.metrics.placed import MapAxis, PlacedBox

_Scale = Callable[[float], float]


def box_map(
    title: str,
    areas: Sequence[PlacedBox],
    beneath: Sequence[PlacedBox],
    rulers: tuple[MapAxis, MapAxis],
    *,
    names: tuple[str, str] = ("this release", "the release before"),
    note: str = "",
) -> Picture:
    """Boxes over two attributes, and beneath them, dashed and in another colour, those of the release before."""
    width, across, up = WIDE, *rulers
    items = [(rect(0, 1, 28, 10, "w1 k1 b"), names[0])]
    if beneath:
        items.append((_dashed(rect(0, 1, 28, 10, "wu ku b")), names[1]))
    samples, top = legend(items, width)
    left = min(max((width_of(short(text, 18), 12) for _, text in up.ticks), default=0) + 14, 150)
    bottom = top + 26 + 400
    x, y = _scale(across, left, width - 16), _scale(up, bottom, top + 26)
    drawn = [samples, at(6, top + 14, up.name, "s")]
    drawn += _layer([_dashed(_area(area, x, y, "fu ku")) for area in beneath])
    drawn += _layer([_area(area, x, y, "f1 k1") for area in areas])
    drawn += [line(left, bottom, width - 16, bottom, "axis"), line(left, top + 26, left, bottom, "axis")]
    drawn += [at(x(tick), bottom + 17, short(text, 16), "s m") for tick, text in across.ticks]
    drawn += [at(left - 7, y(tick) + 4, short(text, 18), "s e") for tick, text in up.ticks]
    drawn.append(at((left + width - 16) / 2, bottom + 36, across.name, "s m"))
    told = f"{title}: {len(areas)} boxes of {names[0]}" + (f" over {len(beneath)} of {names[1]}." if beneath else ".")
    rows = tuple((name, area.told) for name, many in ((names[0], areas), (names[1], beneath)) for area in many)
    return Picture(title, told, width, int(bottom) + 44, "".join(drawn), ("release", "box"), rows, note)


def heat(
    title: str,
    names: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    head: str = "",
    note: str = "",
) -> Picture:
    """A square per row and column, the fuller the larger its number, which stands in it; one row is a strip."""
    most = max((value for row in values for value in row if value is not None), default=1) or 1
    left = min(max((width_of(short(name, 20)) for name in names), default=0) + 14, WIDTH * 0.4)
    wide = (WIDTH - left - 8) / max(len(columns), 1)
    fits = wide >= 40
    drawn = [
        at(left + (n + 0.5) * wide, 16, short(text, int(wide / 7.5)), "s m")
        for n, text in enumerate(columns)
        if fits or n % -(-40 // max(int(wide), 1)) == 0
    ]
    for number, (name, row) in enumerate(zip(names, values, strict=True)):
        y = 26 + number * 26
        drawn.append(at(left - 8, y + 16, short(name, 20), "e"))
        for column, value in enumerate(row):
            if value is None:
                continue
            x, full = left + column * wide, 22 * max(value, 0) / most
            told = f"{name}, {columns[column]}: {in_words(value)}"
            # Fullness, not only colour: the square fills from below.
            drawn.append(rect(x + 1, y, wide - 2, 22, "none k1 b", told))
            drawn.append(rect(x + 1, y + 22 - full, wide - 2, full, "w1"))
            drawn.append(at(x + wide / 2, y + 15.5, in_words(value), "m") if fits else "")
    rows = tuple((name, *row) for name, row in zip(names, values, strict=True))
    told = f"{title}: {len(names)} rows by {len(columns)} columns, up to {in_words(most)}."
    return Picture(title, told, WIDTH, 34 + 26 * len(names), "".join(drawn), (head, *columns), rows, note)


def _scale(ruler: MapAxis, start: float, end: float) -> _Scale:
    long = (ruler.high - ruler.low) or 1
    return lambda value: start + (value - ruler.low) / long * (end - start)


def _layer(drawn: list[str]) -> list[str]:
    """Boxes over each other: the more there are, the fainter each, or the last ones would hide all others."""
    faint = min(0.28, max(4 / max(len(drawn), 1), 0.025))
    thin = 1.4 if len(drawn) < 60 else 0.7
    return [f'<g fill-opacity="{faint:.3g}" stroke-width="{thin}">', *drawn, "</g>"]


def _area(area: PlacedBox, x: _Scale, y: _Scale, kind: str) -> str:
    left, top = x(area.x[0]), y(area.y[1])
    return rect(left, top, max(x(area.x[1]) - left, 2), max(y(area.y[0]) - top, 2), kind, area.told)


def _dashed(drawn: str) -> str:
    return drawn.replace(" class=", ' stroke-dasharray="5 3" class=', 1)
