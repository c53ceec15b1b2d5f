"""Parquet files, read one column at a time so that a large table never stands in memory whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sequester.domain.codec import is_text
from sequester.errors import DataError, Problem
from sequester.ingest.source import Source, Wanted, quietly


def open_parquet(files: list[Path], wanted: Wanted) -> Source:
    """Open one file, or the parts of one table in the order of their names."""
    schemas = [_schema(path) for path in files]
    first = schemas[0]
    others = [path for path, schema in zip(files, schemas, strict=True) if set(schema.names) != set(first.names)]
    if others:
        message = f"{len(others)} of the folder's {len(files)} files have other columns than {files[0].name}"
        raise DataError(Problem(message, file=str(others[0])))

    def load(name: str) -> pa.ChunkedArray:
        thin = name in wanted.repeats and is_text(first.field(name).type)
        parts = [_column(path, name, dictionary=[name] if thin else None) for path in files]
        whole = quietly(
            lambda: pa.concat_tables(parts, promote_options="permissive"),
            lambda _: Problem("has types that do not go together in the folder's files", column=name),
        )
        return whole.column(0)

    return Source(tuple(first.names), load)


def _schema(path: Path) -> pa.Schema:
    return quietly(lambda: parquet.read_schema(path), lambda _: _damaged(path))


def _column(path: Path, name: str, *, dictionary: list[str] | None) -> pa.Table:
    return quietly(
        lambda: parquet.ParquetFile(path, read_dictionary=dictionary).read(columns=[name]), lambda _: _damaged(path)
    )


def _damaged(path: Path) -> Problem:
    return Problem("the file is not Parquet, or is cut off or damaged; get it again", file=str(path))
