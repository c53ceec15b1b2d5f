"""Sets: several values in one cell, with a separator between them; only sensitive columns have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.kind import Fault, Issue, Kind, Mask, Parsed
from sequester.domain.tree import from_values

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.policy.attributes import QuasiIdentifier, Sensitive


class Set(Kind):
    """A cell is one value of the domain, which is protected element by element (`domain.cover`)."""

    name = "set"
    options = ("separator",)
    ordered = False
    several = True

    def check(self, given: Mapping[str, Any]) -> Iterator[Issue]:
        stays = given.get("permanent")
        if isinstance(stays, list | tuple) and stays:
            message = "is for one value in a cell; give the values of a set that stay a column of their own"
            yield ("permanent",), message

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        yield f"sets, separated by {_separator(attribute)!r}"

    def sensitive_notation(self, attribute: Sensitive) -> str:
        return f"one or more values in alphabetical order, with {attribute.between!r} between them"

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        return from_values(values, missing=attribute.missing == "category")

    def parse(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array, present: Mask) -> Parsed:
        import pyarrow as pa

        texts = self.texts(attribute, cells)
        empty = present & np.array([text is None for text in texts], np.bool_)
        fix = "write a word for people who have none, such as 'none'"
        return Parsed(pa.array(texts, pa.string()), (Fault(empty, "is a set of nothing", "are sets of nothing", fix),))

    def texts(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array) -> list[str | None]:
        return canonical(super().texts(attribute, cells), _separator(attribute))


def canonical(texts: Sequence[str | None], separator: str) -> list[str | None]:
    """Sets written one way: elements without blanks around them, each once, sorted. None for one without elements."""
    sets: list[str | None] = []
    for text in texts:
        elements = {part.strip() for part in (text or "").split(separator)} - {""}
        sets.append(separator.join(sorted(elements)) if elements else None)
    return sets


def _separator(attribute: QuasiIdentifier | Sensitive) -> str:
    return attribute.between if attribute.role == "sensitive" else ";"


SET = Set()
