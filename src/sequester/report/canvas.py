"""What every picture is made of: a drawing with a title, a description in words, the table behind it, and its style.

One sheet is for all, with nothing that is loaded from elsewhere, and everything is inside `.sq`: the body of a page,
the root of a picture that is a file of its own, or a view in somebody else's page. Text has a contrast of at least 4.5
to what is behind it, in the light and in the dark; lines are told from each other by dashes and marks, bars by
hatching, and colours (after Okabe and Ito) only help.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

WIDTH = 480
WIDE = 800
DASHES = ("", "7 4", "2 4", "10 4 2 4", "4 3", "12 4", "2 3 6 3", "1 5")
# Rows of a table that are still printed with the page.
_PRINTED = 40
_TONES = {"kept": "kept", "holds": "kept", "broken": "broken"}


def picture_style() -> str:
    """What a drawing needs."""
    return _sheet("picture.css")


def page_style() -> str:
    """What a page needs, drawings and all."""
    return _sheet("picture.css") + _sheet("page.css")


@cache
def _sheet(name: str) -> str:
    text = (files("sequester.report") / name).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


@dataclass(frozen=True)
class Picture:
    """A finished drawing. `body` is SVG inside `width` by `height`; `heads` and `rows` are its data as a table."""

    title: str
    told: str
    width: int
    height: int
    body: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    @property
    def wide(self) -> bool:
        """Whether it takes the width of the page."""
        return self.width > WIDTH

    def figure(self) -> str:
        """As a part of a page, with its table behind it; the page has the style."""
        name = hashlib.sha256(f"{self.title}\0{self.told}\0{self.body}".encode()).hexdigest()[:10]
        told = f'<title id="t{name}">{escape(self.title)}</title><desc id="d{name}">{escape(self.told)}</desc>'
        note = f"<span>{escape(self.note)}</span>" if self.note else ""
        drawn = (
            f'<svg role="img" aria-labelledby="t{name} d{name}" viewBox="0 0 {self.width} {self.height}">'
            f"{told}{self.body}</svg>"
        )
        named = ' class="wide"' if self.wide else ""
        held = scrolled(drawn, f"Picture of: {self.title}") if self.wide else drawn
        long = ' class="long"' if len(self.rows) > _PRINTED else ""
        return (
            f"<figure{named}><figcaption>{escape(self.title)}{note}</figcaption>{held}"
            f'<details{long}><summary>Table<span class="vh"> of: {escape(self.title)}</span></summary>'
            f"{table(self.heads, self.rows, name=self.title)}</details></figure>"
        )

    def file(self) -> str:
        """As an SVG file of its own."""
        head = 34 if not self.note else 54
        note = f'<text class="s" x="10" y="44">{escape(self.note)}</text>' if self.note else ""
        height = self.height + head
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="sq" role="img" aria-labelledby="t d" '
            f'viewBox="0 0 {self.width} {height}" width="{self.width}" height="{height}">'
            f'<title id="t">{escape(self.title)}</title><desc id="d">{escape(self.told)}</desc>'
            f'<style>{picture_style()}</style><rect class="back" width="{self.width}" height="{height}"/>'
            f'<text class="t" x="10" y="24">{escape(self.title)}</text>{note}'
            f'<g transform="translate(0 {head})">{self.body}</g></svg>\n'
        )


def scrolled(inside: str, name: str) -> str:
    """Something that may be wider than the page: it scrolls, by keys too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}, scrolls">{inside}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, name: str = "") -> str:
    """A table; numbers stand right, `kept` and `broken` in their colours. `name` is for who cannot see it."""
    right = [any(_is_number(row[place]) for row in rows) for place in range(len(heads))]
    top = "".join(_head(head, right=side) for head, side in zip(heads, right, strict=True))
    body = "".join("<tr>" + "".join(_cells(row, right)) + "</tr>" for row in rows)
    caption = f'<caption class="vh">{escape(name)}</caption>' if name else ""
    above = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    return scrolled(f"<table>{caption}{above}<tbody>{body}</tbody></table>", name or "table")


def _head(text: str, *, right: bool) -> str:
    kind = ' class="n"' if right else ""
    # A head without text is no head to whoever hears the page.
    return f'<th scope="col"{kind}>{escape(text)}</th>' if text else f"<td{kind}></td>"


def _cells(row: Sequence[Any], right: Sequence[bool]) -> Iterator[str]:
    for place, (value, side) in enumerate(zip(row, right, strict=True)):
        kind = "n" if side else _TONES.get(value, "") if isinstance(value, str) else ""
        named = f' class="{kind}"' if kind else ""
        text = escape(in_words(value))
        yield f'<th scope="row"{named}>{text}</th>' if place == 0 and text else f"<td{named}>{text}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_words(value: Any) -> str:
    """A number as people read it; anything else as it is, nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not _is_number(value):
        return str(value)
    if not math.isfinite(value):
        return ""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.3g}"


def short(text: str, most: int) -> str:
    """A text cut to a number of letters."""
    return text if len(text) <= most else text[: max(most - 1, 1)].rstrip() + "…"


def at(x: float, y: float, text: str, kind: str = "") -> str:
    """A text at a place."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{place(x)}" y="{place(y)}"{named}>{escape(text)}</text>'


def place(number: float) -> str:
    """A coordinate, no longer than need be."""
    return f"{number:.1f}".removesuffix(".0")


def rect(x: float, y: float, width: float, height: float, kind: str, told: str = "") -> str:
    """A rectangle; `told` is shown where a pointer rests."""
    inside = f"><title>{escape(told)}</title></rect>" if told else "/>"
    return (
        f'<rect x="{place(x)}" y="{place(y)}" width="{place(max(width, 0))}" height="{place(max(height, 0))}" '
        f'class="{kind}"{inside}'
    )


def line(x: float, y: float, to_x: float, to_y: float, kind: str = "g") -> str:
    """A straight line."""
    return f'<path d="M{place(x)} {place(y)}L{place(to_x)} {place(to_y)}" class="{kind}"/>'


def width_of(text: str, size: float = 13) -> float:
    """About how wide a text is."""
    return sum(size * (0.95 if ord(letter) > 0x2E80 else 0.56) for letter in text)


def mark(number: int, x: float, y: float) -> str:
    """The mark of a series, one of eight shapes: circle, square, triangle, diamond, and the same hollow."""
    kind = f"k{number % 8 + 1} " + ("o" if number % 8 >= 4 else f"f{number % 8 + 1}")
    shape = number % 4
    if shape == 0:
        return f'<circle cx="{place(x)}" cy="{place(y)}" r="3.6" class="{kind}"/>'
    points = {
        1: ((-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)),
        2: ((0, -4.4), (4.2, 3.2), (-4.2, 3.2)),
        3: ((0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0)),
    }[shape]
    drawn = "L".join(f"{place(x + dx)} {place(y + dy)}" for dx, dy in points)
    return f'<path d="M{drawn}Z" class="{kind}"/>'


def legend(items: Sequence[tuple[str, str]], width: float) -> tuple[str, float]:
    """Samples with their names in rows, and how high they are. A sample is drawn in 28 by 12 from its place."""
    left = 6.0
    drawn, x, y = [], left, 14.0
    for sample, name in items:
        name = short(name, max(int((width - left - 44) / 7.3), 8))
        wide = 36 + width_of(name) + 14
        if x > left and x + wide > width:
            x, y = left, y + 20
        drawn.append(f'<g transform="translate({place(x)} {place(y - 10)})">{sample}</g>{at(x + 34, y, name)}')
        x += wide
    return "".join(drawn), (y + 10 if items else 0.0)
