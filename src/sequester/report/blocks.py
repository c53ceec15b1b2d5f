"""What a report consists of, before it is a page or a view in a notebook.

A report is a list of blocks: frozen values that know nothing about where they are shown. `to_html` makes the inside of
a page (`page.wrap` makes the page), `to_view` what a notebook shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from sequester.report.canvas import Picture, in_words, table

Tone = Literal["", "bad", "private"]


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is that of the whole report."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Words; `lead` are those that a reader may skip."""

    text: str
    lead: bool = False


@dataclass(frozen=True)
class Cards:
    """A few figures that count: (number, what it is). A number that is None is not shown."""

    figures: tuple[tuple[Any, str], ...]


@dataclass(frozen=True)
class Grid:
    """A table: `kept` and `broken` are coloured, numbers stand right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    name: str = ""


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room, each with its table behind it."""

    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Remark:
    """Something that nobody may miss: a warning (`bad`), or that a page is to be kept private."""

    text: str
    tone: Tone = ""


Block = Heading | Paragraph | Cards | Grid | Pictures | Bullets | Remark


def to_html(blocks: Iterable[Block]) -> str:
    """The inside of a page."""
    return "".join(_HTML[type(block)](block) for block in blocks)


def to_view(blocks: Iterable[Block]) -> str:
    """A part of somebody else's page, such as a notebook, with its style; headings there are its own."""
    from sequester.report.style import page_style

    return f'<div class="sq" style="padding:.5rem 1rem"><style>{page_style()}</style>{to_html(_lowered(blocks))}</div>'


def _lowered(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield Heading(block.text, block.level + 2) if isinstance(block, Heading) else block


def _prose(text: str) -> str:
    """Words in which what stands between backticks is something to type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _heading(block: Heading) -> str:
    level = min(max(block.level, 1), 6)
    return f"<h{level}>{escape(block.text)}</h{level}>"


def _paragraph(block: Paragraph) -> str:
    kind = ' class="lead"' if block.lead else ""
    return f"<p{kind}>{_prose(block.text)}</p>"


def _cards(block: Cards) -> str:
    cards = (
        f"<li><b>{escape(in_words(value))}</b><span>{escape(name)}</span></li>"
        for value, name in block.figures
        if value is not None
    )
    return f'<ul class="cards">{"".join(cards)}</ul>'


def _grid(block: Grid) -> str:
    return table(block.heads, block.rows, name=block.name)


def _pictures(block: Pictures) -> str:
    return f'<div class="pictures">{"".join(picture.figure() for picture in block.pictures)}</div>'


def _bullets(block: Bullets) -> str:
    kind = "ol" if block.numbered else "ul"
    return f"<{kind}>{''.join(f'<li>{_prose(item)}</li>' for item in block.items)}</{kind}>"


def _remark(block: Remark) -> str:
    kind = f"note {block.tone}".strip()
    return f'<div class="{kind}" role="note"><p>{_prose(block.text)}</p></div>'


_HTML: dict[type, Callable[[Any], str]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Cards: _cards,
    Grid: _grid,
    Pictures: _pictures,
    Bullets: _bullets,
    Remark: _remark,
}
