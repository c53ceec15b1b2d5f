"""Numbers written with a comma, as in 1.234,5, read as 1234.5."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain.codec import NUMBER, is_text

# Points may stand between thousands only; 1.5 is no number where a comma is the decimal sign.
_COMMAS = r"^[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)?(,[0-9]*)?([eE][+-]?[0-9]+)?$"
_WRONG = "?"


def with_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same cells as numbers are read: those that are no numbers with a comma become something that is none."""
    if pa.types.is_dictionary(column.type):
        if not is_text(column.type.value_type):
            return column
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, _pointed(chunk.dictionary)) for chunk in column.iterchunks()
        ]
        return pa.chunked_array(chunks, column.type) if chunks else column
    if not is_text(column.type):
        return column
    return pa.chunked_array([_pointed(chunk) for chunk in column.iterchunks()], column.type)


def _pointed(cells: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(cells)
    plain = pc.replace_substring(pc.replace_substring(trimmed, ".", ""), ",", ".")
    looks = pc.match_substring_regex(trimmed, _COMMAS)
    # What has a point elsewhere would be read as a number a thousand times as small, or as large.
    other = pc.if_else(pc.match_substring(trimmed, "."), pc.binary_join_element_wise(cells, _WRONG, ""), cells)
    return pc.if_else(looks, plain, other).cast(cells.type)


def decimal_sign(columns: Iterable[pa.ChunkedArray]) -> str:
    """The sign before the fractions of the numbers of a table, where they are text; a point unless all say comma."""
    commas = points = False
    for column in columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not is_text(kind):
            continue
        cells = pc.utf8_trim_whitespace(pc.unique(column).cast(pa.large_string()))
        cells = pc.filter(cells, pc.not_equal(cells, ""))
        commas |= is_written(cells, ",")
        points |= is_written(cells, ".")
    return "," if commas and not points else "."


def is_written(cells: pa.Array, sign: str) -> bool:
    """Whether all of these texts are numbers and some of them have this sign before their fraction."""
    pattern = _COMMAS if sign == "," else NUMBER
    return bool(
        len(cells)
        and pc.any(pc.match_substring(cells, sign)).as_py()
        and pc.all(pc.match_substring_regex(cells, pattern)).as_py()
    )
