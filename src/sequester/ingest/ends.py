"""Domains that a policy does not declare, from the published values of a table.

Without the raw table nobody knows all values of a domain; the ends of the published intervals are what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sequester.domain import sets
from sequester.domain.build import declared, observe
from sequester.domain.hierarchy import EVERYTHING, MISSING, UNSEEN, Hierarchy, with_blank
from sequester.domain.kinds import kind_of
from sequester.domain.kinds.kind import Kind
from sequester.policy.attributes import QuasiIdentifier, Sensitive


def domain_of(
    attribute: QuasiIdentifier | Sensitive, texts: Sequence[str], *, path: Callable[[str], Path]
) -> Hierarchy:
    """The declared domain, or the one that the texts show."""
    fixed, kind = declared(attribute, path), kind_of(attribute)
    if isinstance(attribute, Sensitive):
        domain = observe(attribute, _seen(texts)) if fixed is None else fixed
        # `*` is a value that was suppressed: a leaf of its own.
        return with_blank(domain) if EVERYTHING in texts and EVERYTHING not in domain.names[0] else domain
    absent = attribute.missing == "category"
    ends = kind.ends(attribute, _members(texts, absent=absent))
    if fixed is not None and kind.explains(ends):
        return fixed
    nothing = not len(ends) and absent
    if nothing or (len(ends) < 2 and any(is_unbounded(kind, text) for text in texts)):
        # Something else must be possible, or `*` would cost nothing.
        ends = kind.with_another(attribute, ends)
    return observe(attribute, ends)


def _seen(texts: Sequence[str]) -> Sequence[str]:
    return [text for text in texts if text != EVERYTHING] or [UNSEEN]


def is_unbounded(kind: Kind, text: str) -> bool:
    """Whether a text excludes nobody on some side, so that the values seen do not bound it."""
    text = text.strip()
    if not text.strip("*"):
        return True
    inner = text.strip("[]()")
    return not (inner[:1].isdigit() and inner[-1:].isdigit()) and kind.is_open(text)


def _members(texts: Sequence[str], *, absent: bool) -> list[str]:
    """The texts with sets taken apart, and without the word for a missing value where it is one."""
    members: list[str] = []
    for text in map(str.strip, texts):
        parts = next(sets.readings(text), None) if text[:1] == "{" and text[-1:] == "}" else None
        members += [text] if parts is None else parts
    return [member for member in members if not (absent and member == MISSING)]
