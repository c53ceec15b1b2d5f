"""One encoded snapshot: the private table as codes, ready for methods and criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.extend import places
from sequester.domain.hierarchy import Codes, Hierarchy

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Quasi-identifiers and sensitive values of every record as codes into their hierarchies.

    `quasi` has one row per quasi-identifier and one column per record; `sensitive` likewise. `person` is
    aligned with the records, and None when the policy names no person column (every row is a person).
    `left_out` counts rows that the policy's `missing: suppress` removed before anything else, `withheld` those whose
    people do not agree; `refused` are these people, where they are known. `sensitive` is as published: of graded
    attributes it has nodes, and `exact` the values themselves; `raised` counts records whose people wanted a node.
    `insensitive` has the cells that are published as they are, `plain` the same as codes: a missing cell is a value.
    `row` is the place of each record in the table that was read, where that is known.
    """

    quasi_names: tuple[str, ...]
    quasi: NDArray[np.int32]
    quasi_domains: tuple[Hierarchy, ...]
    sensitive_names: tuple[str, ...]
    sensitive: NDArray[np.int32]
    sensitive_domains: tuple[Hierarchy, ...]
    person: pa.Array | None
    insensitive: pa.Table
    plain: NDArray[np.int32]
    plain_domains: tuple[Hierarchy, ...]
    left_out: int = 0
    exact: NDArray[np.int32] | None = None
    withheld: int = 0
    raised: int = 0
    refused: pa.Array | None = None
    row: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.quasi.shape[1])

    def __repr__(self) -> str:
        return (
            f"<Snapshot: {len(self)} records, {len(self.quasi_names)} quasi-identifiers, "
            f"{len(self.sensitive_names)} sensitive>"
        )

    @property
    def domains(self) -> dict[str, Hierarchy]:
        """The domain of every column that is published, by name."""
        names = (*self.quasi_names, *self.sensitive_names, *self.plain_names)
        return dict(zip(names, (*self.quasi_domains, *self.sensitive_domains, *self.plain_domains), strict=True))

    @property
    def plain_names(self) -> tuple[str, ...]:
        """The insensitive columns, in the order of the rows of `plain`."""
        return tuple(self.insensitive.column_names)

    def within(self, domains: Mapping[str, Hierarchy]) -> Snapshot:
        """The same records, their quasi-identifiers in later domains, which have more leaves."""
        later = tuple(domains[name] for name in self.quasi_names)
        if all(new is old for new, old in zip(later, self.quasi_domains, strict=True)):
            return self
        pairs = zip(self.quasi_domains, later, self.quasi, strict=True)
        quasi = np.array([places(old, new)[codes] for old, new, codes in pairs], np.int32)
        return replace(self, quasi=quasi, quasi_domains=later)

    def take(self, rows: NDArray[np.integer[Any]]) -> Snapshot:
        """These records, in this order."""
        import pyarrow as pa

        chosen = pa.array(rows)
        return replace(
            self,
            quasi=np.ascontiguousarray(self.quasi[:, rows]),
            sensitive=np.ascontiguousarray(self.sensitive[:, rows]),
            person=None if self.person is None else self.person.take(chosen),
            insensitive=self.insensitive.take(chosen) if self.insensitive.column_names else self.insensitive,
            plain=np.ascontiguousarray(self.plain[:, rows]),
            exact=None if self.exact is None else np.ascontiguousarray(self.exact[:, rows]),
            row=None if self.row is None else self.row[rows],
        )

    def without(self, out: NDArray[np.bool_]) -> Snapshot:
        """The same without these records, which count as left out."""
        return replace(self.take(np.flatnonzero(~out)), left_out=self.left_out + int(np.count_nonzero(out)))

    def codes(self, name: str) -> Codes:
        """The codes of one quasi-identifier or sensitive attribute."""
        if name in self.quasi_names:
            codes: Codes = self.quasi[self.quasi_names.index(name)]
        else:
            codes = self.sensitive[self.sensitive_names.index(name)]
        return codes
