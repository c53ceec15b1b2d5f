"""Tables that are already in memory or in a query: recognised by type name, so no library is imported for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from sequester.errors import Problem
from sequester.ingest.source import Source, Wanted, once, quietly


def open_frame(frame: Any, wanted: Wanted) -> Source | None:
    """Open a pandas or polars frame, an Arrow table or stream, or a DuckDB relation; None for anything else."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        table = pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame
        # By place: a name that occurs twice is reported by the caller, not here.
        return Source(tuple(table.schema.names), lambda name: table.column(table.schema.names.index(name)))
    if isinstance(frame, pa.RecordBatchReader):
        return _stream(tuple(frame.schema.names), lambda: frame, wanted)
    for libraries, name, opened in _KINDS:
        if _is(frame, libraries, name):
            return opened(frame, wanted)
    if hasattr(frame, "__arrow_c_stream__"):
        reader = quietly(lambda: pa.RecordBatchReader.from_stream(frame), _unreadable)
        return _stream(tuple(reader.schema.names), lambda: reader, wanted)
    return None


def _is(frame: Any, libraries: tuple[str, ...], name: str) -> bool:
    return any(kind.__name__ == name and kind.__module__.split(".")[0] in libraries for kind in type(frame).__mro__)


def _pandas(frame: Any, wanted: Wanted) -> Source:
    names = tuple(str(name) for name in frame.columns)

    def load(name: str) -> pa.ChunkedArray:
        mixed = Problem("has values of several types; make it one, for example with astype(str)", column=name)
        array = quietly(lambda: pa.Array.from_pandas(frame.iloc[:, names.index(name)]), lambda _: mixed)
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    return Source(names, load)


def _polars(frame: Any, wanted: Wanted) -> Source:
    def load(name: str) -> pa.ChunkedArray:
        return pa.chunked_array([quietly(lambda: frame.get_column(name).to_arrow(), _unreadable)])

    return Source(tuple(frame.columns), load)


def _polars_query(query: Any, wanted: Wanted) -> Source:
    names = tuple(quietly(lambda: query.collect_schema().names(), _unreadable))

    def read() -> dict[str, pa.ChunkedArray]:
        columns = wanted.among(names)
        table = quietly(lambda: query.select(columns).collect().to_arrow(), _unreadable)
        return dict(zip(table.column_names, table.columns, strict=True))

    return Source(names, once(read))


def _relation(relation: Any, wanted: Wanted) -> Source:
    names = tuple(relation.columns)

    def reader() -> pa.RecordBatchReader:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted.among(names))
        # One execution for all columns: a query may give its rows in another order each time.
        chosen = relation.project(quoted)
        return chosen.to_arrow_reader() if hasattr(chosen, "to_arrow_reader") else chosen.fetch_arrow_reader()

    return _stream(names, reader, wanted)


def _stream(names: tuple[str, ...], reader: Callable[[], Iterable[pa.RecordBatch]], wanted: Wanted) -> Source:
    """Batches are thinned as they come: only wanted columns, text that repeats as dictionaries."""

    def read() -> dict[str, pa.ChunkedArray]:
        batches = reader()
        schema = batches.schema  # type: ignore[attr-defined]
        columns = [name for name in wanted.among(names) if schema.names.count(name) == 1]
        chunks: dict[str, list[pa.Array]] = {name: [] for name in columns}
        for batch in batches:
            for name in columns:
                chunks[name].append(_thin(batch.column(name), repeats=name in wanted.repeats))
        return {
            name: pa.chunked_array(parts, parts[0].type if parts else schema.field(name).type)
            for name, parts in chunks.items()
        }

    return Source(names, once(lambda: quietly(read, _unreadable)))


def _thin(array: pa.Array, *, repeats: bool) -> pa.Array:
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array.dictionary_encode() if repeats and text else array


def _unreadable(error: Exception) -> Problem:
    return Problem(f"the table cannot be read ({type(error).__name__}); try it on its own to see why")


_KINDS: tuple[tuple[tuple[str, ...], str, Callable[[Any, Wanted], Source]], ...] = (
    (("pandas",), "DataFrame", _pandas),
    (("polars",), "DataFrame", _polars),
    (("polars",), "LazyFrame", _polars_query),
    (("duckdb", "_duckdb"), "DuckDBPyRelation", _relation),
)
