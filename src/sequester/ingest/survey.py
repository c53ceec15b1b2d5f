"""The domains of a table by its different cells, column by column: of a large table nothing else is ever looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.plain import plain_codes
from sequester.errors import DataError, Problem
from sequester.ingest.encode import check_domains, extended, reading_of
from sequester.ingest.suited import suited
from sequester.ingest.table import RawTable, Reading, observe_domains, take
from sequester.policy.model import Policy


@dataclass(frozen=True, eq=False, repr=False)
class Observed:
    """The domain of a column, and the code of each of its different cells."""

    domain: Hierarchy
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Surveyor:
    """Reads different cells as a policy says; `before` are the domains of the series so far, none for a first table."""

    policy: Policy
    before: Mapping[str, Hierarchy]
    reading: Reading

    @classmethod
    def of(cls, policy: Policy, before: Mapping[str, Hierarchy], *, show_values: bool) -> Surveyor:
        """For the next table of a series."""
        if before:
            return cls(policy, before, check_domains(policy, before, show_values=show_values))
        return cls(policy, before, reading_of(policy, None, show_values=show_values))

    def observe(self, name: str, cells: pa.ChunkedArray) -> Observed:
        """What a column holds; DataError with everything that is wrong with it, counted by the cells given."""
        cells = suited(cells, name)
        if name not in self.reading.attributes:
            domain, codes = plain_codes(cells, self.before.get(name))
            return Observed(domain, codes)
        table, problems = RawTable(self.reading), list[Problem]()
        take(table, name, cells, problems)
        if problems:
            raise DataError(problems)
        only = RawTable(self._only(name), table.rows, table.cells)
        domain = (extended(only, self.before) if self.before else observe_domains(only))[name]
        return Observed(domain, only.codes((name,), {name: domain})[0])

    def _only(self, name: str) -> Reading:
        known = {name: self.reading.known[name]} if name in self.reading.known else {}
        return Reading({name: self.reading.attributes[name]}, known, self.reading.fixes, self.reading.form)
