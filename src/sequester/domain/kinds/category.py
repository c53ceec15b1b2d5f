"""Categories: words, in the groups of a hierarchy where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.domain.arx import read_arx
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds.kind import Kind
from sequester.domain.limits import refuse_many
from sequester.domain.tree import from_rows, from_tree, from_values
from sequester.errors import PolicyError

if TYPE_CHECKING:
    from sequester.policy.attributes import QuasiIdentifier, Sensitive

_QUOTES = 'names with , ; { } or " in them are between " with their own " doubled'


class Category(Kind):
    """Values are generalized to the groups of their hierarchy, or to sets of neighbours in it."""

    name = "category"
    options = ("hierarchy",)
    ordered = False

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        if isinstance(attribute.hierarchy, str):
            yield f"hierarchy {attribute.hierarchy}"
        elif attribute.hierarchy is not None:
            yield "hierarchy in the policy"
        elif attribute.role == "quasi-identifier":
            yield "no hierarchy"

    def without_levels(self, attribute: QuasiIdentifier) -> str | None:
        return "a hierarchy" if attribute.hierarchy is None else None

    def notation(self, attribute: QuasiIdentifier) -> str:
        one = "a value" if attribute.hierarchy is None else "a value, or the name of a group of values"
        return f"{one}; {{a, b}} one of those in the braces ({_QUOTES}); * any value"

    def levels(self, attribute: QuasiIdentifier, path: Callable[[str], Path]) -> str:
        hierarchy = self.declared(attribute, path)
        return "values, *" if hierarchy is None else f"{hierarchy.height + 1}, from values to *"

    def declared(self, attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
        missing = attribute.missing == "category"
        if attribute.hierarchy is None:
            return None
        if not isinstance(attribute.hierarchy, str):
            return from_tree(attribute.hierarchy, missing=missing)
        file = path(attribute.hierarchy)
        rows = read_arx(file)
        try:
            return from_rows(rows, missing=missing)
        except PolicyError as error:
            raise PolicyError(replace(problem, file=str(file)) for problem in error.problems) from None

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        if attribute.role == "quasi-identifier":
            refuse_many(len(values))
        return from_values(values, missing=attribute.missing == "category")

    def ends(self, attribute: QuasiIdentifier, texts: Sequence[str]) -> Any:
        return sorted({text.strip() for text in texts if text.strip("* ")})

    def with_another(self, attribute: QuasiIdentifier, ends: Any) -> Any:
        return [*ends, *(f"\N{NO-BREAK SPACE}{number}" for number in range(2 - len(ends)))]


CATEGORY = Category()
