"""What a result consists of, before it is a page, a view in a notebook, or lines on a terminal.

A result is a list of blocks: frozen values that know nothing about where they are shown. `to_page` makes a page of
them that needs nothing else, `to_view` what a notebook shows; `cli.terminal.show` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from sequester.report.canvas import Picture, in_words, page_style, table
from sequester.report.charts import bars

Tone = Literal["", "good", "bad", "private"]


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is that of the whole report. A `tone` is that of a `Remark`, where a terminal shows it."""

    text: str
    level: int = 2
    tone: str = ""


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
    """A table: `kept` and `broken` are coloured, numbers stand right. Without any head it is facts with their names.

    `name` is for those who cannot see it; `good`, `bad` and `faint` rows are told apart on a terminal.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    name: str = ""
    tones: tuple[Literal["", "good", "bad", "faint"], ...] = ()


def facts(pairs: Iterable[tuple[str, Any]], name: str) -> Grid:
    """Names and what they are; what is None or says nothing is left out."""
    return Grid(("", ""), tuple((what, in_words(said)) for what, said in pairs if said not in (None, "")), name)


@dataclass(frozen=True)
class Bars:
    """Figures by name, to be compared by eye."""

    title: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room, each with its table behind it. A terminal shows none."""

    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Remark:
    """Something that nobody may miss: good news, a warning (`bad`), or that a page is to be kept private."""

    text: str
    tone: Tone = ""


Block = Heading | Paragraph | Cards | Grid | Bars | Pictures | Bullets | Remark

# A browser that keeps to this loads nothing and runs nothing, whatever else might stand in the page.
_NOTHING = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def to_page(title: str, blocks: Sequence[Block], *, foot: str = "") -> str:
    """One HTML file that needs nothing else, prints, and is read aloud in the right order.

    Blocks up to the first heading below the title are its head, the others its main part.
    """
    cut = next((n for n, one in enumerate(blocks) if isinstance(one, Heading) and one.level > 1), len(blocks))
    head, main = blocks[:cut], blocks[cut:]
    private = any(isinstance(block, Remark) and block.tone == "private" for block in head)
    footer = f"<footer>{escape(foot)}</footer>" if foot else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        + ('<meta name="robots" content="noindex">' if private else "")
        + f"<title>{escape(title)}</title><style>{page_style()}</style></head>"
        f'<body class="sq"><a class="jump" href="#main">Skip to the content</a>'
        f'<header>{to_html(head)}</header><main id="main">{to_html(main)}</main>{footer}</body></html>\n'
    )


def to_view(blocks: Iterable[Block]) -> str:
    """A part of somebody else's page, such as a notebook, with its style; headings there are its own."""
    said = list(blocks)
    about = next((f": {one.text}" for one in said if isinstance(one, Heading)), "")

    def lowered(one: Block) -> Block:
        # Tables of several views stand in one page: who cannot see them hears whose each is.
        if isinstance(one, Grid):
            return replace(one, name=f"{one.name}{about}")
        return replace(one, level=one.level + 2) if isinstance(one, Heading) else one

    return (
        f'<div class="sq" style="padding:.5rem 1rem"><style>{page_style()}</style>{to_html(map(lowered, said))}</div>'
    )


def to_html(blocks: Iterable[Block]) -> str:
    """The inside of a page."""
    return "".join(_HTML[type(block)](block) for block in blocks)


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


def _pictures(pictures: Iterable[Picture]) -> str:
    return f'<div class="pictures">{"".join(picture.figure() for picture in pictures)}</div>'


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
    Grid: lambda block: table(block.heads, block.rows, name=block.name),
    Bars: lambda block: _pictures(
        [bars(block.title, list(block.figures), {block.title: list(block.figures.values())})]
    ),
    Pictures: lambda block: _pictures(block.pictures),
    Bullets: _bullets,
    Remark: _remark,
}
