"""Delimited files in which an apostrophe keeps spreadsheets from running cells and headers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from sequester.domain.formulas import escape_name, unescape, unescape_name
from sequester.ingest.csv import open_delimited
from sequester.ingest.source import Source, Wanted
from sequester.policy.model import Input


def open_escaped(path: Path, wanted: Wanted, *, form: Input) -> Source:
    """Open a file whose names and cells are given back as they were before they were escaped."""
    columns = None if wanted.columns is None else tuple(map(escape_name, wanted.columns))
    opened = open_delimited(path, Wanted(columns, frozenset(map(escape_name, wanted.repeats))), form=form)

    def load(name: str) -> pa.ChunkedArray:
        return unescape(opened.load(escape_name(name)))

    return Source(tuple(map(unescape_name, opened.names)), load)
