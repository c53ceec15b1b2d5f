"""Text that a terminal shows and does not act on: what would move the cursor, change the title or turn the direction of
writing is spelled out."""

from __future__ import annotations

import json
import unicodedata

# Both are part of how words are written in several scripts.
_JOINERS = "\u200c\u200d"


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control and format characters as `\\x1b`; with `lines`, line ends stay as they are."""
    if text.isprintable():
        return text
    return "".join(_spelled(sign) if _acts(sign) and not (lines and sign == "\n") else sign for sign in text)


def visible_json(text: str) -> str:
    """JSON in which the same characters are escaped as JSON does it; they occur only within its strings."""
    if text.isprintable():
        return text
    return "".join(json.dumps(sign)[1:-1] if _acts(sign) and sign != "\n" else sign for sign in text)


def _acts(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in _JOINERS


def _spelled(sign: str) -> str:
    return ascii(sign)[1:-1]
