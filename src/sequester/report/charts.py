"""Small pictures of numbers, as SVG without any library: lines over releases, curves, bars and histograms.

Each returns a `Picture`, which is a figure of a page with its table behind it, or a file of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sequester.report.canvas import (
    DASHES,
    WIDE,
    WIDTH,
    Picture,
    at,
    in_words,
    legend,
    line,
    mark,
    place,
    rect,
    short,
    width_of,
)
from sequester.ticks import nice

_TOP, _RIGHT, _TALL = 12, 14, 190


@dataclass(frozen=True)
class Trend:
    """One line: a number per release, None where there is none. What is required is drawn dashed and without marks."""

    name: str
    values: Sequence[float | None]
    required: bool = False


@dataclass(frozen=True)
class Curve:
    """One line through places: (x, y)."""

    name: str
    places: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Frame:
    """Where numbers are in a picture: x from `left` to `right`, y from `bottom` up to `top`."""

    left: float
    right: float
    top: float
    bottom: float
    x_ends: tuple[float, float]
    y_ends: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_ends
        return self.left + (value - low) / ((high - low) or 1) * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.y_ends
        return self.bottom - (value - low) / ((high - low) or 1) * (self.bottom - self.top)


def lines(title: str, labels: Sequence[str], trends: Sequence[Trend], *, note: str = "", width: int = WIDTH) -> Picture:
    """Several series over releases, from zero up."""
    known = [value for trend in trends for value in trend.values if value is not None]
    ticks = nice(min(0.0, min(known, default=0)), max(known, default=1) or 1)
    samples, high = legend([(_sample(n, trend.required), trend.name) for n, trend in enumerate(trends)], width)
    left = _left(ticks)
    frame = _Frame(
        left, width - _RIGHT, high + _TOP, high + _TOP + _TALL,
        (-0.3, max(len(labels) - 0.7, 0.7)), (ticks[0], ticks[-1]),
    )  # fmt: skip
    drawn = [samples, _levels(frame, ticks), *_under(frame, list(enumerate(labels)))]
    for number, trend in enumerate(trends):
        spots = [None if value is None else (frame.x(n), frame.y(value)) for n, value in enumerate(trend.values)]
        drawn.append(_path(number, spots, required=trend.required))
        if not trend.required:
            drawn += [mark(number, *spot) for spot in spots if spot is not None]
    rows = tuple((label, *(trend.values[n] for trend in trends)) for n, label in enumerate(labels))
    told = f"{title}: {_last_words(labels, trends)}."
    heads = ("release", *(trend.name for trend in trends))
    return Picture(title, told, width, int(frame.bottom) + 26, "".join(drawn), heads, rows, note)


def curves(title: str, found: Sequence[Curve], *, x_name: str, y_name: str, note: str = "") -> Picture:
    """Lines through places with two numbers each, such as loss against protection."""
    xs = [x for curve in found for x, _ in curve.places]
    ys = [y for curve in found for _, y in curve.places]
    across, up = nice(min(xs, default=0), max(xs, default=1)), nice(min(0.0, min(ys, default=0)), max(ys, default=1))
    samples, high = legend([(_sample(n, False), curve.name) for n, curve in enumerate(found)], WIDE)
    frame = _Frame(
        _left(up), WIDE - _RIGHT - 8, high + _TOP + 16, high + _TOP + 16 + _TALL,
        (across[0], across[-1]), (up[0], up[-1]),
    )  # fmt: skip
    drawn = [samples, at(6, high + _TOP + 2, y_name, "s"), _levels(frame, up)]
    drawn += [at(frame.x(tick), frame.bottom + 17, in_words(tick), "s m") for tick in across]
    drawn.append(at((frame.left + frame.right) / 2, frame.bottom + 36, x_name, "s m"))
    for number, curve in enumerate(found):
        spots = [(frame.x(x), frame.y(y)) for x, y in curve.places]
        drawn.append(_path(number, spots))
        drawn += [mark(number, *spot) for spot in spots]
    rows = tuple((curve.name, x, y) for curve in found for x, y in curve.places)
    told = f"{title}: {y_name} against {x_name} for " + ", ".join(curve.name for curve in found) + "."
    return Picture(title, told, WIDE, int(frame.bottom) + 46, "".join(drawn), ("series", x_name, y_name), rows, note)


def bars(
    title: str, names: Sequence[str], series: Mapping[str, Sequence[float | None]], *, head: str = "", note: str = ""
) -> Picture:
    """Bars that lie, one per name and series; the second series is hatched, and all end with their number."""
    many = len(series)
    high = 13.0 if many > 1 else 18.0
    known = [value for values in series.values() for value in values if value is not None]
    most = max(known, default=1) or 1
    # Patterns are found by their ids, which must be those of this picture alone.
    own = hashlib.sha256(f"{title}\0{names}\0{series}".encode()).hexdigest()[:8]
    items = [(_bar(n, (0, 0, 28, 12), "", own), name) for n, name in enumerate(series)] if many > 1 else []
    samples, top = legend(items, WIDTH)
    left = min(max((width_of(short(name, 22)) for name in names), default=0) + 14, WIDTH * 0.42)
    room = WIDTH - left - _RIGHT - max((width_of(in_words(value)) for value in known), default=20)
    step = high * many + 9
    drawn, y = [_hatches(many, own), samples], top + 4
    for place_of, name in enumerate(names):
        label = short(name, int((left - 10) / 7.3))
        drawn.append(at(left - 8, y + high * many / 2 + 4.5, label, "e"))
        for number, (which, values) in enumerate(series.items()):
            value = values[place_of]
            if value is None:
                continue
            long = max(value, 0) / most * room
            told = f"{name}{f', {which}' if many > 1 else ''}: {in_words(value)}"
            drawn.append(_bar(number, (left, y + number * high, long, high - 2), told, own))
            drawn.append(at(left + long + 5, y + number * high + high / 2 + 3.5, in_words(value), "s"))
        y += step
    drawn.append(line(left, top + 2, left, y - 4, "axis"))
    rows = tuple((name, *(values[n] for values in series.values())) for n, name in enumerate(names))
    told = f"{title}: {len(names)} bars" + (f" for each of {', '.join(series)}" if many > 1 else "") + "."
    return Picture(title, told, WIDTH, int(y) + 4, "".join(drawn), (head or "value", *series), rows, note)


def histogram(
    title: str, labels: Sequence[str], counts: Sequence[float], *, x_name: str, y_name: str, note: str = ""
) -> Picture:
    """Columns that stand side by side, such as classes by their size; `labels` name the bins from left to right."""
    ticks = nice(0, max([*counts, 1]))
    frame = _Frame(
        _left(ticks), WIDTH - _RIGHT, _TOP + 18, _TOP + 18 + _TALL, (-0.5, len(counts) - 0.5), (0, ticks[-1])
    )
    drawn = [at(6, 14, y_name, "s"), _levels(frame, ticks)]
    wide = (frame.right - frame.left) / max(len(counts), 1)
    for number, (label, count) in enumerate(zip(labels, counts, strict=True)):
        y = frame.y(count)
        told = f"{label}: {in_words(count)}"
        drawn.append(rect(frame.left + number * wide + 1, y, wide - 2, frame.bottom - y, "w1 k1 b", told))
    drawn += _under(frame, list(enumerate(labels)))
    drawn.append(at((frame.left + frame.right) / 2, frame.bottom + 36, x_name, "s m"))
    top = max(range(len(counts)), key=lambda n: counts[n], default=None)
    told = f"{title}: {y_name} by {x_name}" + ("." if top is None else f", most at {labels[top]}.")
    rows = tuple(zip(labels, counts, strict=True))
    return Picture(title, told, WIDTH, int(frame.bottom) + 46, "".join(drawn), (x_name, y_name), rows, note)


def _sample(number: int, required: bool) -> str:
    shape = _path(number, [(0, 6), (28, 6)], required=required)
    return shape if required else shape + mark(number, 14, 6)


def _path(number: int, spots: Sequence[tuple[float, float] | None], *, required: bool = False) -> str:
    """A line through all spots, broken where there is none."""
    moves, pen = [], "M"
    for spot in spots:
        if spot is None:
            pen = "M"
            continue
        moves.append(f"{pen}{place(spot[0])} {place(spot[1])}")
        pen = "L"
    dash = "" if required or not DASHES[number % 8] else f' stroke-dasharray="{DASHES[number % 8]}"'
    kind = f"l k{number % 8 + 1}" + (" need" if required else "")
    return f'<path d="{"".join(moves)}" class="{kind}"{dash}/>' if moves else ""


def _levels(frame: _Frame, ticks: Sequence[float]) -> str:
    drawn = []
    for tick in ticks:
        y = frame.y(tick)
        drawn.append(line(frame.left, y, frame.right, y, "axis" if tick == 0 else "g"))
        drawn.append(at(frame.left - 7, y + 4.5, in_words(tick), "s e"))
    return "".join(drawn)


def _left(ticks: Sequence[float]) -> float:
    return max(width_of(in_words(tick), 12) for tick in ticks) + 14


def _under(frame: _Frame, labels: Sequence[tuple[int, str]]) -> list[str]:
    """As many labels below the axis as fit, the first and the last among them."""
    if not labels:
        return []
    room = (frame.right - frame.left) / len(labels)
    longest = max(width_of(short(label, 14), 12) for _, label in labels) + 8
    every = max(1, -(-int(longest) // max(int(room), 1)))
    last = labels[-1][0]
    shown = [(n, label) for n, label in labels if n % every == 0 and (n == last or last - n >= every)]
    shown += [labels[-1]] if shown[-1][0] != last else []
    return [
        at(frame.x(n), frame.bottom + 17, short(label, 14), "s m") if len(labels) > 1 or n else
        at(frame.x(n), frame.bottom + 17, short(label, 30), "s m")
        for n, label in shown
    ]  # fmt: skip


def _last_words(labels: Sequence[str], trends: Sequence[Trend]) -> str:
    if not labels:
        return "nothing yet"
    said = [f"{trend.name} {in_words(trend.values[-1])}" for trend in trends if trend.values[-1] is not None]
    return f"{len(labels)} releases; in the last one {', '.join(said) or 'nothing'}"


def _hatches(many: int, own: str) -> str:
    """Patterns for all series but the first."""
    return "".join(
        f'<defs><pattern id="h{own}{n}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate({45 + 45 * n})"><path d="M0 0V6" class="k{n % 8 + 1}" stroke-width="3"/>'
        "</pattern></defs>"
        for n in range(1, many)
    )


def _bar(number: int, box: tuple[float, float, float, float], told: str, own: str) -> str:
    kind = f"k{number % 8 + 1} b"
    if number == 0:
        return rect(*box, f"f1 {kind}", told)
    return rect(*box, kind, told).replace(" class=", f' fill="url(#h{own}{number})" class=', 1)
