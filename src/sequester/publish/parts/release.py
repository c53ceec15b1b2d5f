"""A release in parts: how it is published, and read from its files when somebody asks for rows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sequester.drafts import flush
from sequester.errors import DataError
from sequester.ingest.read import read
from sequester.ledger import Ledger
from sequester.ledger.parts import Shelf
from sequester.ledger.state import HASH, Draft, Entry
from sequester.metrics.measure import Measurement
from sequester.metrics.sketch import Sketch, sizes_of, sketch
from sequester.outputs import output_of
from sequester.policy.model import Policy
from sequester.publish import commit
from sequester.publish.emit import weighed
from sequester.publish.parts.make import measurement_of_parts
from sequester.publish.parts.prepare import InParts
from sequester.publish.plan import Plan
from sequester.publish.release import Release

# Pictures are drawn from the first rows of the release, which are in an order that was drawn.
_DRAWN = 200_000


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


class PartsToPublish:
    """A release in parts, on its way to a folder and to the shelf of its ledger."""

    shares: ClassVar = {"writing": 0.7, "recording": 0.3}

    def __init__(self, ledger: Ledger, plan: Plan, policy: Policy, facts: Mapping[str, Any]) -> None:
        if plan.parts is None:
            raise ValueError("a plan without its parts cannot be published")
        self._ledger, self._plan, self._policy, self._parts = ledger, plan, policy, plan.parts
        self._shelf = Shelf(ledger.place)
        self.hidden = (self._shelf.draft(plan.number),)
        measured = measurement_of_parts(self._parts.made)
        self.release: Release = LargeRelease(self._parts, measurement=measured, policy=policy, facts=facts)

    def sketch(self, axes: tuple[str, str] | None) -> Sketch:
        """Its classes are counted, and pictures are those of its first rows, times as many."""
        parts, escaped = self._parts, self._policy.output.formulas == "escape"
        file = parts.errand.place("written") / parts.files[0].name
        first = read(file, delimiter=",", escaped=escaped).slice(0, _DRAWN)
        drawn = sketch(first, self._policy, axes=axes)
        rows, classes = (sum(getattr(part.card, name) for part in parts.made) for name in ("records", "classes"))
        sizes, counts = (np.concatenate([part.sizes[place] for part in parts.made]) for place in (0, 1))
        different, place = np.unique(sizes, return_inverse=True)
        times = rows / max(first.num_rows, 1)
        spread = {
            name: tuple((text, None if count is None else float(round(count * times))) for text, count in bars)
            for name, bars in drawn.spread.items()
        }
        together = np.bincount(place, weights=counts).astype(np.int64)
        return replace(drawn, rows=rows, classes=classes, sizes=sizes_of(different, together), spread=spread)

    def write(self, draft: Path) -> dict[str, str]:
        """The files were written and read back before: they are moved."""
        self._shelf.sweep(self._ledger.releases())
        for file in self._parts.files:
            shutil.move(self._parts.errand.place("written") / file.name, draft / file.name)
            # From another disk it was copied.
            flush(draft / file.name)
        return {file.name: file.digest for file in self._parts.files}

    def check(self, _: Path) -> None:
        """What the ledger keeps goes to its shelf."""
        self._shelf.put(self._plan.number, self._parts.errand.place("recorded"), self._parts.listed)
        commit.step("shelved")

    def record(self, facts: Mapping[str, Any]) -> Entry:
        """What the ledger itself records of a release whose people are on the shelf: nobody."""
        policy, none = self._policy, np.zeros(0, np.int32)
        quasi, sensitive, plain = tuple(policy.quasi_identifiers), tuple(policy.sensitive), policy.insensitive
        empty = {count: np.zeros((count, 0), np.int32) for count in (len(quasi), len(sensitive), len(plain))}
        nobody = Draft(
            name=self._plan.name,
            head=self._plan.head,
            quasi=quasi,
            sensitive=sensitive,
            domains=self._parts.errand.domains,
            lo=empty[len(quasi)],
            hi=empty[len(quasi)],
            member=none,
            values=empty[len(sensitive)],
            newcomers=pa.array([], HASH),
            digests=np.zeros((1, 0), np.int64),
            input_digest="",
            output_digest="",
            method=policy.method.name,
            insensitive=plain,
            plain=empty[len(plain)],
        )
        return self._ledger.begin_parts(replace(nobody, **facts), self._parts.listed)
