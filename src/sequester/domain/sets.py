"""Sets of labels: `{Asia, England}`. A label that would not survive is quoted, with its own quotes doubled."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

_SPECIAL = frozenset(',;{}"')
_QUOTED = r'\s*"(?P<quoted>(?:[^"]|"")*)"\s*'
_PARTS = {mark: re.compile(rf"(?:{_QUOTED}|(?P<plain>[^{mark}]*))(?P<end>{mark}|\Z)") for mark in ",;~"}
_INTERVAL_OR_TERM = re.compile(r"\s*(?P<plain>[\[\](][^\[\]()]*[\[\])]|[^,;\[\]()]+?)\s*(?P<end>[,;]|\Z)")


def join(parts: Sequence[str], *, taken: Container[str]) -> str:
    """A set of labels as text that is none of the `taken` labels."""
    text = "{" + ", ".join(_quote(part) if _needs_quotes(part) else part for part in parts) + "}"
    if text in taken:
        text = "{" + ", ".join(map(_quote, parts)) + "}"
    while text in taken:
        text = "{ " + text[1:]
    return text


def readings(text: str) -> Iterator[list[str]]:
    """The ways to take a text apart, the way `join` writes first, then `{a;b}`, `a,b`, `a~b` and sets of intervals."""
    body = text[1:-1] if len(text) >= 2 and text[0] == "{" and text[-1] == "}" else text
    for mark, pattern in _PARTS.items():
        if mark in body and (parts := _take_apart(body, pattern)) is not None:
            yield parts
    if body is not text and not any(mark in body for mark in _PARTS):
        yield [body.strip()]
    if any(bracket in body for bracket in "[]()") and (parts := _take_apart(body, _INTERVAL_OR_TERM)) is not None:
        yield parts


def _take_apart(body: str, pattern: re.Pattern[str]) -> list[str] | None:
    parts, at = [], 0
    while True:
        part = pattern.match(body, at)
        if part is None:
            return None
        named = part.groupdict()
        quoted = named.get("quoted")
        parts.append(named["plain"].strip() if quoted is None else quoted.replace('""', '"'))
        at = part.end()
        if not named["end"]:
            return parts


def _needs_quotes(label: str) -> bool:
    return not label or label != label.strip() or not _SPECIAL.isdisjoint(label)


def _quote(label: str) -> str:
    return '"' + label.replace('"', '""') + '"'
