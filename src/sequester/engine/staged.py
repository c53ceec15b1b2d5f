"""A copy of any table as one file of Parquet, made some rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sequester.errors import Problem
from sequester.ingest.source import Wanted, quietly
from sequester.ingest.stream import stream
from sequester.policy.model import Input


def stage(source: Any, wanted: Wanted, form: Input, place: Path) -> Path | None:
    """Copy the wanted columns to a file; None, and no file, where there are no rows."""
    writer = None
    for rows in stream(source, wanted, form=form):
        plain = undictionaried(rows)
        if writer is None:
            place.touch(0o600)
            writer = parquet.ParquetWriter(place, plain.schema, compression="lz4")
        writer.write_table(_cast(plain, writer.schema))
    if writer is None:
        return None
    writer.close()
    return place


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    mixed = Problem("has columns with values of several types; make each one type")
    return quietly(lambda: rows.cast(schema), lambda _: mixed)


def undictionaried(rows: pa.Table) -> pa.Table:
    """The same with plain cells in place of dictionaries."""
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    return pa.table(columns)
