"""What kinds of columns are read at all, whatever file or frame they come from: text, numbers, truth, dates and times.

Bytes are taken for the text that they are, as files without a note of it store it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain.codec import is_text
from sequester.errors import DataError, Problem
from sequester.ingest.source import Source, quietly


def only_suited(source: Source) -> Source:
    """The same table, of which a column that cannot be used is refused by its name when it is loaded."""
    return Source(source.names, lambda name: suited(source.load(name), name))


def suited(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column as one of a plain type, or DataError."""
    listed = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if listed else column.type
    if not is_plain(kind):
        what = "nested cells" if pa.types.is_nested(kind) else "cells of a type that is not understood"
        raise DataError(Problem(f"has {what}; write each cell as one text, number or date", column=name))
    if _is_bytes(kind):
        bad = Problem("has bytes that are no UTF-8 text; convert it to text", column=name)
        texts = column.cast(pa.dictionary(column.type.index_type, kind)).cast(kind) if listed else column
        return quietly(lambda: texts.cast(pa.large_string()), lambda _: bad)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if is_text(kind):
        # Cells of a damaged file may be no text although it says so.
        bad = Problem("has text that is not UTF-8; the file is damaged, or was written wrongly", column=name)
        quietly(lambda: column.validate(full=True), lambda _: bad)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        zone = Problem("has times in a zone that is not known here; convert them", column=name)
        quietly(lambda: pc.cast(pa.array([0], kind), pa.string()), lambda _: zone)
    return column


def is_plain(kind: pa.DataType) -> bool:
    """Whether every cell of a type is one value that can be written as text."""
    simple = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_temporal,
        is_text,
        _is_bytes,
    )
    return any(test(kind) for test in simple)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(test(kind) for test in tests)
