"""What of a release a spreadsheet would run instead of showing it: told by column and count, never by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sequester.domain.build import declared
from sequester.domain.codec import distinct
from sequester.domain.formulas import formulas, is_formula
from sequester.ingest.snapshot import Snapshot
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Policy


@dataclass(frozen=True)
class Runs:
    """One column: whether its header would run, how many cells of the table, and how many labels of its hierarchy."""

    column: str
    header: bool
    cells: int
    labels: int

    def __str__(self) -> str:
        parts = [
            "its header" if self.header else "",
            f"{self.cells:,} {'cell' if self.cells == 1 else 'cells'}" if self.cells else "",
            f"{self.labels:,} {'label' if self.labels == 1 else 'labels'} of its hierarchy" if self.labels else "",
        ]
        return f"{self.column}: {', '.join(part for part in parts if part)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def runs_in(policy: Policy, snapshot: Snapshot | None) -> list[Runs]:
    """The published columns with something that would run; without a table, as far as the policy alone tells."""
    everything = _of_policy(policy) if snapshot is None else _of_snapshot(snapshot)
    return [runs for runs in everything if runs.header or runs.cells or runs.labels]


def _of_policy(policy: Policy) -> Iterator[Runs]:
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, QuasiIdentifier | Sensitive):
            domain = declared(attribute, policy.path) if attribute.hierarchy is not None else None
            yield Runs(name, is_formula(name), 0, 0 if domain is None else _labels(domain.names))
        elif name in policy.insensitive:
            yield Runs(name, is_formula(name), 0, 0)


def _of_snapshot(snapshot: Snapshot) -> Iterator[Runs]:
    coded = [
        *zip(snapshot.quasi_names, snapshot.quasi_domains, snapshot.quasi, strict=True),
        *zip(snapshot.sensitive_names, snapshot.sensitive_domains, snapshot.sensitive, strict=True),
    ]
    for name, domain, codes in coded:
        would = formulas(pa.array(domain.names[0], pa.string()))
        yield Runs(name, is_formula(name), int(np.count_nonzero(would[codes])), _labels(domain.names[1:]))
    for name in snapshot.insensitive.column_names:
        values, index = distinct(snapshot.insensitive[name])
        would = np.append(formulas(values), False)
        yield Runs(name, is_formula(name), int(np.count_nonzero(would[index])), 0)


def _labels(levels: Sequence[Sequence[str]]) -> int:
    """How many labels would run; with a table, values are counted by the cells that have them."""
    return len({name for names in levels for name in names if is_formula(name)})
