"""What whoever works on a part needs to know: the same for all parts of a release, and small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.attacks.attack import Audited
from sequester.domain.hierarchy import Hierarchy
from sequester.ledger.part_ledger import Parts
from sequester.policy.model import Policy
from sequester.publish.parts.division import Division


@dataclass(frozen=True, eq=False, repr=False)
class Errand:
    """One release to be made.

    number, name, seed  of the release
    domains    of all columns, with every value that there is
    division   of its people into parts, in these domains
    spill      the private folder for what is in between
    slices     in how many files the release is written
    parts      what the ledger has of them
    """

    policy: Policy
    number: int
    name: str
    seed: int
    head: str
    domains: Mapping[str, Hierarchy]
    division: Division
    spill: Path
    slices: int
    parts: Parts
    audited: Audited | None = None

    @property
    def dealt(self) -> Path:
        """Where rows are dealt out to."""
        return self.spill / "dealt"

    @property
    def recorded(self) -> Path:
        """Where the rows for the ledger are, a folder per part."""
        return self.spill / "recorded"

    @property
    def rows(self) -> Path:
        """Where the rows to be published are, a file per part."""
        return self.spill / "rows"

    @property
    def people(self) -> Path:
        """Where the hashes of everybody ever in a part are, a file per part."""
        return self.spill / "people"

    @property
    def written(self) -> Path:
        """Where the files of the release are."""
        return self.spill / "written"

    def folders(self) -> tuple[Path, ...]:
        """All of them."""
        return (self.dealt, self.recorded, self.rows, self.people, self.written)


def narrow(codes: NDArray[np.int32], size: int) -> pa.Array:
    """Codes below `size` in as few bytes as they need."""
    kind = np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32
    return pa.array(codes.astype(kind))
