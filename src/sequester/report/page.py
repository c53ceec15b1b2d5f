"""Blocks as a page: one HTML file that needs nothing else, prints, and is read aloud in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sequester.report.blocks import Block, Heading, Remark, to_html
from sequester.report.style import page_style

# A browser that keeps to this loads nothing and runs nothing, whatever else might stand in the page.
_NOTHING = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def wrap(title: str, blocks: Sequence[Block], *, foot: str = "") -> str:
    """The whole page. Blocks up to the first heading below the title are its head, the others its main part."""
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
