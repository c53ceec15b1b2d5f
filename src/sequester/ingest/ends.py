"""Domains that a policy does not declare, from the published values of a table.

Without the raw table nobody knows all values of a domain; the ends of the published intervals are what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sequester.domain import notation, sets
from sequester.domain.build import declared, observe
from sequester.domain.hierarchy import EVERYTHING, MISSING, UNSEEN, Hierarchy, with_blank
from sequester.domain.intervals import FIRST_DAY, LAST_DAY, number_bounds
from sequester.policy.attributes import QuasiIdentifier, Sensitive


def domain_of(
    attribute: QuasiIdentifier | Sensitive, texts: Sequence[str], *, path: Callable[[str], Path]
) -> Hierarchy:
    """The declared domain, or the one that the texts show."""
    found = declared(attribute, path)
    if isinstance(attribute, Sensitive):
        found = observe(attribute, _seen(texts)) if found is None else found
        # `*` is a value that was suppressed: a leaf of its own.
        return with_blank(found) if EVERYTHING in texts and EVERYTHING not in found.names[0] else found
    ends = _ENDS[attribute.kind](_members(texts, absent=attribute.missing == "category"), attribute)
    if found is not None and not (attribute.kind == "number" and (ends != np.floor(ends)).any()):
        return found
    nothing = not len(ends) and attribute.missing == "category"
    if nothing or (len(ends) < 2 and any(unbounded(attribute.kind, text) for text in texts)):
        # Something else must be possible, or `*` would cost nothing.
        ends = _with_another(ends, attribute)
    return observe(attribute, ends)


def _seen(texts: Sequence[str]) -> Sequence[str]:
    return [text for text in texts if text != EVERYTHING] or [UNSEEN]


def unbounded(kind: str, text: str) -> bool:
    """Whether a text excludes nobody on some side, so that the values seen do not bound it."""
    text = text.strip()
    if not text.strip("*"):
        return True
    inner = text.strip("[]()")
    if inner[:1].isdigit() and inner[-1:].isdigit():
        return False
    if kind == "number":
        bounds = number_bounds(text)
        return bounds is not None and (math.isinf(bounds.low) or math.isinf(bounds.high))
    return kind == "date" and text[:1] in "<>≤≥"


def _members(texts: Sequence[str], *, absent: bool) -> list[str]:
    """The texts with sets taken apart, and without the word for a missing value where it is one."""
    members: list[str] = []
    for text in map(str.strip, texts):
        parts = next(sets.readings(text), None) if text[:1] == "{" and text[-1:] == "}" else None
        members += [text] if parts is None else parts
    return [member for member in members if not (absent and member == MISSING)]


def _number_ends(texts: Sequence[str], attribute: QuasiIdentifier) -> Any:
    return notation.interpret_numbers(texts).ends()


def _date_ends(texts: Sequence[str], attribute: QuasiIdentifier) -> Any:
    low, high, understood = notation.interpret_dates(texts)
    days = np.unique(np.concatenate([low[understood], high[understood]]))
    edge = np.array([FIRST_DAY, LAST_DAY]).astype("datetime64[D]")
    return days[~np.isin(days, edge)]


def _category_ends(texts: Sequence[str], attribute: QuasiIdentifier) -> Any:
    return sorted({text.strip() for text in texts if text.strip("* ")})


def _code_ends(texts: Sequence[str], attribute: QuasiIdentifier) -> Any:
    """Codes as they stand, both ends of an interval, and the first and last code that a prefix may hide."""
    length = attribute.length or 1
    signs = {sign for text in texts for sign in text if sign.isalnum()} | {"0", "9"}
    found: set[str] = set()
    for text in map(str.strip, texts):
        prefix = text.rstrip("*")
        if prefix != text:
            found.update(prefix.ljust(length, fill) for fill in (min(signs), max(signs)) if prefix)
        elif len(text) > 2 * length:
            body = text.strip("[]")
            found.update((body[:length], body[-length:]))
        else:
            found.add(text)
    return sorted(found)


_ENDS: dict[str, Callable[[Sequence[str], QuasiIdentifier], Any]] = {
    "number": _number_ends,
    "date": _date_ends,
    "category": _category_ends,
    "code": _code_ends,
}


def _with_another(ends: Any, attribute: QuasiIdentifier) -> Any:
    match attribute.kind:
        case "number":
            return np.append(ends, [ends[-1] + 1] if len(ends) else [0.0, 1.0])
        case "date":
            start = ends if len(ends) else np.array(["1970-01-01"], "datetime64[D]")
            return np.append(start, start[-1] + 1)
        case "code":
            return sorted({*ends, *(sign * (attribute.length or 1) for sign in "09")})
        case _:
            return [*ends, *(f"\N{NO-BREAK SPACE}{number}" for number in range(2 - len(ends)))]
