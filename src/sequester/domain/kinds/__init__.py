"""The kinds of attributes, one module each; a new one is its module and a line here.

Which role may have which kind, and the keys of its options, are in `sequester.policy.attributes`.
"""

from __future__ import annotations

from typing import Protocol

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.category import CATEGORY
from sequester.domain.kinds.code import CODE
from sequester.domain.kinds.date import DATE
from sequester.domain.kinds.kind import Kind
from sequester.domain.kinds.number import NUMBER
from sequester.domain.kinds.set import SET

KINDS: dict[str, Kind] = {kind.name: kind for kind in (CATEGORY, NUMBER, CODE, DATE, SET)}


class Named(Protocol):
    """An attribute or a domain, which has a kind by its name."""

    @property
    def kind(self) -> str: ...


def kind_of(attribute: Named) -> Kind:
    """The kind of an attribute or a domain."""
    return KINDS[attribute.kind]


def is_halved(domain: Hierarchy) -> bool:
    """Whether a domain is a scale without levels, which is cut in halves."""
    return domain.height == 1 and kind_of(domain).measured
