"""Words and YAML for a proposed policy."""

from __future__ import annotations

import re

from sequester.policy.model import LONGEST_NAME

_TOLD = 5


def quoted(text: str) -> str:
    """Text as YAML: plain when it can only be read as text, else in double quotes."""
    if re.fullmatch(r"[A-Za-z_]([\w -]*\w)?", text, re.ASCII) and text.lower() not in ("true", "false", "null"):
        return text
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def series_name(name: str) -> str:
    """A name of a series, as YAML."""
    return quoted(re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:LONGEST_NAME] or "my-series")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """How many, in words that do not tell a number of people that is small."""
    if not count:
        return f"no {things or thing + 's'}"
    return f"fewer than {_TOLD} {things or thing + 's'}" if count < _TOLD else f"{count:,} {things or thing + 's'}"


def percent(share: float) -> str:
    """A share in whole percent, never 0 or 100 of something that is neither."""
    whole = round(100 * share)
    if share < 1:
        whole = min(whole, 99)
    return f"{max(whole, 1) if share > 0 else 0} %"
