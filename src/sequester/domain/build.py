"""The domain of an attribute: what the policy alone fixes, and what needs the values that occur."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.domain.hierarchy import Hierarchy, with_blank
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import with_nodes

if TYPE_CHECKING:
    from sequester.policy.attributes import QuasiIdentifier, Sensitive


def declared(attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
    """What the policy alone fixes: a tree, a hierarchy file, a sensitive number's bands, an integer range; else None.

    A range of integers is taken to hold whole numbers: if the column has fractions, use `observe` instead.
    """
    domain = kind_of(attribute).declared(attribute, path)
    return None if domain is None else _as_published(attribute, domain)


def observe(attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
    """From the distinct values that occur: str of a category or code, float64, or datetime64[D]; none missing."""
    return _as_published(attribute, kind_of(attribute).observe(attribute, values))


def _as_published(attribute: QuasiIdentifier | Sensitive, domain: Hierarchy) -> Hierarchy:
    """A value may be published as a node, and one that changes be suppressed: those are then leaves, too."""
    if attribute.role != "sensitive":
        return domain
    graded = with_nodes(domain) if attribute.is_graded else domain
    return with_blank(graded) if attribute.values == "transient" else graded
