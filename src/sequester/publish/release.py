"""A release: exactly what is published, what it costs, and the publisher's own view of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.ingest.published import OpenedTable
from sequester.methods.classes import Classes
from sequester.methods.registry import method_of
from sequester.metrics.measure import Measurement
from sequester.outputs import OUTPUTS, SUFFIXES, data_file
from sequester.policy.model import Policy
from sequester.publish.emit import Judged, for_file, read_back, weighed
from sequester.publish.files import write_file, write_folder
from sequester.viewable import Viewable

# Losses that depend on nothing but the sizes of classes.
_SIZES = ("dm", "dm_normalized", "class_size")


class Release(Viewable):
    """One anonymized table with its measures. Only `members()` knows who is who, and it is never written."""

    def __init__(
        self,
        *,
        table: pa.Table,
        measurement: Measurement,
        policy: Policy,
        person: pa.Array | None,
        classes: Classes,
        facts: Mapping[str, Any] | None = None,
        judged: Judged | None = None,
        rows: NDArray[np.intp],
    ) -> None:
        # How many people a row stands for, where some rows may be decoys.
        self._weight = round(float((rows >= 0).mean()), 6) if method_of(policy.method).seats else None
        self.table = weighed(table, self._weight, policy)
        self.measurement = measurement
        self.policy = policy
        self._person = person
        self._classes = classes
        self._judged = judged
        # Whose every row is, as a place among `person`; -1 of a decoy.
        self._rows = rows
        # Of a release in a series: its number and name, and what the audit tried and reached; nothing private.
        self.facts: Mapping[str, Any] = facts or {}
        self.folder: Path | None = None

    @property
    def loss(self) -> dict[str, float]:
        """What the release lost, by metric."""
        return dict(self.measurement.loss)

    @property
    def measures(self) -> dict[str, float]:
        """How anonymous it is: k, and confidence, l and t where there is a sensitive attribute."""
        numbers = {name: getattr(self.measurement, name) for name in ("k", "confidence", "l", "entropy_l", "t")}
        return {name: number for name, number in numbers.items() if number is not None}

    @property
    def suppressed(self) -> int:
        """Records of the snapshot that are not in the release."""
        return self.measurement.suppressed

    @property
    def holds(self) -> bool:
        """Whether everything that is promised holds, of this table and of the series with it."""
        return self.measurement.holds and bool(self.facts.get("holds", True))

    @cached_property
    def published(self) -> Measurement:
        """What anybody can measure who has the published table and the policy, and nothing else."""
        from sequester.metrics.measure import measure

        return measure(self.opened, self.policy)

    @cached_property
    def opened(self) -> OpenedTable:
        """The published table as anybody reads it."""
        return OpenedTable.of(self.table, self.policy)

    @property
    def shown(self) -> pa.Table:
        """A table that has every cell of a group that the release shows."""
        return self.table

    def members(self) -> pa.Table:
        """Who is in which class (-1: not published), by person or, without a person column, by row number from 1.

        The publisher's own view: private, and in no file that `save` writes.
        """
        person = self._person
        if person is None:
            person = pa.array(np.arange(1, len(self._classes.member) + 1))
        return pa.table({"person": person, "class": pa.array(self._classes.member)})

    def with_people(self) -> pa.Table:
        """The published rows, each with its person (null: nobody), as an audit takes them in the publisher's view.

        As private as `members()`.
        """
        person = self.members()["person"].take(pa.array(self._rows, mask=self._rows < 0))
        return self.table.append_column(self.policy.person or "person", person)

    def to_dict(self) -> dict[str, Any]:
        """Everything about the release that may be public: no cell, no person, no seed.

        Figures are those of the published table alone: losses are relative to what it shows itself, and records that
        are not in it leave no trace.
        """
        from sequester import __version__
        from sequester.report.columns import columns_of

        measured = self.published.to_dict()
        for private in ("suppressed", "query_error"):
            del measured[private]
        if self.policy.output.numbers == "midpoint":
            # Midpoints read as exact numbers: what they lose cannot be seen from the table.
            measured["loss"] = {name: loss for name, loss in measured["loss"].items() if name in _SIZES}
        if self.measurement.people is not None:
            # How many people the class with fewest has is not told, only how many it must have.
            measured |= {"people": self.measurement.people, "fewest_people": self.policy.fewest_people}
        measured["promises"] = [
            {**promise, "about": "each release", "against": "outsider"} for promise in measured["promises"]
        ]
        return {
            "series": self.policy.series,
            **self.facts,
            "sequester": __version__,
            "method": self.policy.method.model_dump(),
            "output": self.policy.output.model_dump(mode="json"),
            "columns": columns_of(self.policy, self.shown),
            **measured,
            **({} if self._weight is None else {"weight": self._weight}),
            "holds": self.holds,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def dictionary(self) -> str:
        """What every column is and how to read a cell of it, as CSV; made from no cell."""
        from sequester.report.columns import dictionary

        return dictionary(self.policy, self.shown)

    def save(self, path: str | Path, *, force: bool = False) -> list[Path]:
        """Write the release, whole or not at all, and say where.

        A path with the suffix of a format (.csv, .csv.gz, .parquet) is that one file; any other is a folder with the
        data, in the format of the policy, `release.json` and `dictionary.csv`. An existing path is an error unless
        `force`, which replaces a file or an earlier release, and never a folder with anything else in it.
        """
        path = Path(path)
        if path.name.endswith(SUFFIXES):
            return [write_file(self.as_written(path.name), path, force=force, check=self._check)]
        data, words = data_file(self.policy.output.format), self.dictionary()

        def facts(digest: str) -> str:
            digests = {data: digest, "dictionary.csv": hashlib.sha256(words.encode()).hexdigest()}
            told = {**self.to_dict(), "digests": digests, "data": data}
            return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

        texts: dict[str, str | Callable[[str], str]] = {"release.json": facts, "dictionary.csv": words}
        # A release of an earlier version has no dictionary.
        known = (*map(data_file, OUTPUTS), "dictionary.csv")
        return write_folder(path, self.as_written(data), data, texts, force=force, known=known, check=self._check)

    def as_written(self, file: str) -> pa.Table:
        """The table as it goes into a file of this name: in text, spreadsheets run formulas unless they are escaped."""
        return for_file(self.table, file, self.policy)

    def _check(self, written: Path) -> None:
        """Refuse a file that does not say what was judged, before anybody sees it."""
        if self._judged is not None:
            read_back(written, self._judged)

    def __repr__(self) -> str:
        return f"<Release {self.policy.series}: {repr(self.measurement)[1:-1]}>"


def whose(
    order: NDArray[np.intp], people: NDArray[np.bool_] | None, places: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Whose every row is, of records in this order: a place in the given table, -1 of a decoy."""
    if people is not None:
        order = np.where(people, np.cumsum(people) - 1, -1)[order]
    return order if places is None else np.where(order < 0, -1, places[order])
