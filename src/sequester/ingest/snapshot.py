"""One encoded snapshot: the private table as codes, ready for methods and criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Quasi-identifiers and sensitive values of every record as codes into their hierarchies.

    `quasi` has one row per quasi-identifier and one column per record; `sensitive` likewise. `person` is
    aligned with the records, and None when the policy names no person column (every row is a person).
    `left_out` counts rows that the policy's `missing: suppress` removed before anything else.
    """

    quasi_names: tuple[str, ...]
    quasi: NDArray[np.int32]
    quasi_domains: tuple[Hierarchy, ...]
    sensitive_names: tuple[str, ...]
    sensitive: NDArray[np.int32]
    sensitive_domains: tuple[Hierarchy, ...]
    person: pa.Array | None
    insensitive: pa.Table
    left_out: int = 0

    def __len__(self) -> int:
        return int(self.quasi.shape[1])

    def __repr__(self) -> str:
        return (
            f"<Snapshot: {len(self)} records, {len(self.quasi_names)} quasi-identifiers, "
            f"{len(self.sensitive_names)} sensitive>"
        )

    @property
    def domains(self) -> dict[str, Hierarchy]:
        """The domain of every quasi-identifier and sensitive attribute, by name."""
        names, domains = (*self.quasi_names, *self.sensitive_names), (*self.quasi_domains, *self.sensitive_domains)
        return dict(zip(names, domains, strict=True))

    def codes(self, name: str) -> Codes:
        """The codes of one quasi-identifier or sensitive attribute."""
        if name in self.quasi_names:
            found: Codes = self.quasi[self.quasi_names.index(name)]
        else:
            found = self.sensitive[self.sensitive_names.index(name)]
        return found
