"""A release in parts, once it is published: its files are read when somebody asks for rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from sequester.errors import DataError
from sequester.metrics.measure import Measurement
from sequester.outputs import output_of
from sequester.policy.model import Policy
from sequester.publish.emit import weighed
from sequester.publish.parts.prepare import InParts
from sequester.publish.release import Release


class LargeRelease(Release):
    """One anonymized table in several files. What is public about it is computed from counts of its classes."""

    def __init__(self, parts: InParts, *, measurement: Measurement, policy: Policy, facts: Mapping[str, Any]) -> None:
        self.measurement = measurement
        self.policy = policy
        self.facts = facts
        self.folder = None
        self._parts = parts
        self._weight = parts.weight
        self._judged = None

    @property
    def table(self) -> pa.Table:
        """All rows, read from the files of the release."""
        from sequester.ingest.read import read

        if self.folder is None:
            raise DataError("the release is not published yet, and its rows are in several files; publish it first")
        escaped = self.policy.output.formulas == "escape"
        files = [self.folder / file.name for file in self._parts.files]
        return pa.concat_tables([read(file, delimiter=",", escaped=escaped) for file in files])

    @cached_property
    def published(self) -> Measurement:
        """What anybody can count who has the published table: no loss that depends on which values nobody has."""
        measured = self.measurement
        squares = sum(int((sizes**2 * counts).sum()) for sizes, counts in (part.sizes for part in self._parts.made))
        loss = {"dm": float(squares), "class_size": measured.records / measured.classes}
        # Who of the rows is nobody is not for the public.
        return replace(measured, loss=loss, people=None)

    @property
    def shown(self) -> pa.Table:
        """A short table with the columns of the release, in which every text that it shows is a cell."""
        cells = {
            name: pa.concat_arrays([part.cells[name] for part in self._parts.shown]).unique()
            for name in self._parts.shown[0].cells
        }
        longest = max((len(texts) for texts in cells.values()), default=1)
        columns = {}
        for field in self._parts.schema:
            texts = cells.get(field.name)
            place = None if texts is None else pa.array([min(row, len(texts) - 1) for row in range(longest)])
            columns[field.name] = pa.nulls(longest, field.type) if texts is None else texts.take(place)
        return weighed(pa.table(columns), self._weight, self.policy)

    def members(self) -> pa.Table:
        """Who is in which class is in the ledger, part by part."""
        raise DataError("a release in parts does not hold who is in which class in memory; the ledger has it")

    def as_written(self, file: str) -> pa.Table:
        """The files are written already."""
        raise DataError(
            f"a release in parts is not written as one table; copy its files: {output_of(file).suffixes[0]}"
        )
