"""Build the domain of an attribute: what the policy alone fixes, and what needs the values that occur.

The builders of each kind are in `tree`, `arx`, `codes`, `dates` and `numbers`; they are all named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sequester.domain.arx import read_arx
from sequester.domain.codes import from_codes
from sequester.domain.dates import from_dates
from sequester.domain.hierarchy import Hierarchy, with_blank
from sequester.domain.nodes import with_nodes
from sequester.domain.numbers import band_codes, from_bands, from_numbers, spans_integers
from sequester.domain.tree import from_rows, from_tree, from_values
from sequester.errors import PolicyError, Problem

if TYPE_CHECKING:
    from sequester.policy.attributes import QuasiIdentifier, Sensitive

__all__ = [
    "band_codes",
    "declared",
    "from_bands",
    "from_codes",
    "from_dates",
    "from_numbers",
    "from_rows",
    "from_tree",
    "from_values",
    "observe",
    "read_arx",
]


def declared(attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
    """What the policy alone fixes: a tree, a hierarchy file, a sensitive number's bands, an integer range; else None.

    A range of integers is taken to hold whole numbers: if the column has fractions, use `observe` instead.
    """
    found = _declared(attribute, path)
    return found if found is None else _as_published(attribute, found)


def _as_published(attribute: QuasiIdentifier | Sensitive, domain: Hierarchy) -> Hierarchy:
    """A value may be published as a node, and one that changes be suppressed: those are then leaves, too."""
    if attribute.role != "sensitive":
        return domain
    found = with_nodes(domain) if attribute.is_graded else domain
    return with_blank(found) if attribute.values == "transient" else found


def _declared(attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
    missing = attribute.missing == "category"
    if isinstance(attribute.hierarchy, str):
        file = path(attribute.hierarchy)
        rows = read_arx(file)
        try:
            return from_rows(rows, missing=missing)
        except PolicyError as error:
            raise PolicyError(replace(problem, file=str(file)) for problem in error.problems) from None
    if attribute.hierarchy is not None:
        return from_tree(attribute.hierarchy, missing=missing)
    if attribute.kind != "number":
        return None
    if attribute.role == "sensitive":
        return from_bands(_edges(attribute), missing=missing)
    if attribute.range is not None and spans_integers(attribute.range):
        return _numbers(attribute, np.empty(0))
    return None


def observe(
    attribute: QuasiIdentifier | Sensitive,
    values: Iterable[str] | NDArray[np.float64] | NDArray[np.datetime64],
) -> Hierarchy:
    """From the distinct values that occur: str of a category or code, float64, or datetime64[D]; none missing."""
    missing = attribute.missing == "category"
    if attribute.role == "sensitive":
        if attribute.kind == "number":
            found = from_bands(_edges(attribute), missing=missing)
        else:
            found = from_values(cast("Iterable[str]", values), missing=missing)
        return _as_published(attribute, found)
    if attribute.kind == "number":
        return _numbers(attribute, np.asarray(values, np.float64))
    if attribute.kind == "date":
        days = np.asarray(values, "datetime64[D]")
        if attribute.levels is None:
            return from_dates(days, missing=missing)
        return from_dates(days, levels=cast("Sequence[str]", attribute.levels), missing=missing)
    if attribute.kind == "code":
        if attribute.length is None:
            raise PolicyError(Problem("a code needs its number of characters", key="length"))
        return from_codes(cast("Iterable[str]", values), length=attribute.length, missing=missing)
    return from_values(cast("Iterable[str]", values), missing=missing)


def _numbers(attribute: QuasiIdentifier, values: NDArray[Any]) -> Hierarchy:
    return from_numbers(
        values,
        range=attribute.range,
        levels=cast("Sequence[float] | None", attribute.levels),
        bands=attribute.bands,
        missing=attribute.missing == "category",
    )


def _edges(attribute: Sensitive) -> Sequence[float]:
    if attribute.bands is None:
        raise PolicyError(Problem("a sensitive number needs bands", key="bands"))
    return attribute.bands
