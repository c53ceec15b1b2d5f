"""From the cells of a column to codes, by way of its distinct values only.

A column is turned into its distinct values and, per row, which of them it has. Everything that is slow or can go
wrong (reading numbers and dates, looking values up) is then done once per distinct value.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, sorted_places

Mask = NDArray[np.bool_]

_EXACT = 2.0**53
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+ ?(Z|[+-][0-9:]+)?)?$"


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    """The distinct values that occur, and for every row the place of its own; -1 for null.

    Values that a dictionary lists but no row has (unused categories of a frame) are left out.
    """
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if pa.types.is_dictionary(column.type) and not _is_set(column):
        column = column.cast(column.type.value_type)
    encoded = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    if not encoded.num_chunks:
        return pa.array([], encoded.type.value_type), np.empty(0, np.int32)
    # All chunks share one dictionary from here on.
    values = encoded.chunk(0).dictionary
    index = np.empty(len(encoded), np.int32)
    at = 0
    for chunk in encoded.iterchunks():
        places = chunk.indices.cast(pa.int32())
        index[at : at + len(chunk)] = places.fill_null(-1).to_numpy(zero_copy_only=False)
        at += len(chunk)
    used = np.zeros(len(values) + 1, np.bool_)
    used[index] = True
    used = used[:-1]
    if not used.all():
        places = np.append(np.cumsum(used, dtype=np.int32) - np.int32(1), np.int32(-1))
        values, index = values.filter(pa.array(used)), places[index]
    return values, index


def _is_set(column: pa.ChunkedArray) -> bool:
    """Whether every dictionary lists each value once, as most do; two places for one person would hide a repeat."""
    return all(len(chunk.dictionary.unique()) == len(chunk.dictionary) for chunk in column.iterchunks())


def to_text(values: pa.Array) -> pa.Array:
    """Values of any simple type as text: whole floats as '3', truth as 'true', dates as in ISO 8601."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        # From 1e10 on Arrow writes an exponent, which the same number in a column of integers does not have.
        values = pc.cast(values, pa.float64())
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), _EXACT))
        integers = pc.cast(pc.if_else(whole, values, 0.0), pa.int64())
        return pc.if_else(whole, pc.cast(integers, pa.string()), pc.cast(values, pa.string()))
    return pc.cast(values, pa.string())


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def matches(values: pa.Array, pattern: str) -> Mask:
    """Which values are text that is like a pattern once blanks around it are gone."""
    if not is_text(values.type):
        return np.zeros(len(values), np.bool_)
    trimmed = pc.utf8_trim_whitespace(to_text(values))
    return to_mask(pc.match_substring_regex(trimmed, pattern).fill_null(False))


def to_mask(values: pa.Array) -> Mask:
    """Truth values as they are in NumPy."""
    return np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)


def to_numbers(values: pa.Array) -> tuple[NDArray[np.float64], Mask]:
    """Numbers, and which values are numbers at all. Text is taken without surrounding blanks: 12, -5, .5, 1e3."""
    if is_text(values.type):
        trimmed = pc.utf8_trim_whitespace(to_text(values))
        readable = pc.match_substring_regex(trimmed, NUMBER).fill_null(False)
        digits = pc.utf8_ltrim(pc.if_else(readable, trimmed, "nan"), characters="+")
        return _floats(digits), to_mask(readable)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return _floats(values), np.ones(len(values), np.bool_)
    return np.full(len(values), np.nan), np.zeros(len(values), np.bool_)


def to_dates(values: pa.Array, *, format: str | None = None) -> tuple[NDArray[np.datetime64], Mask]:
    """Days, and which values are dates of the years 1 to 9999. Text is ISO 8601, of which only the day is taken."""
    if is_text(values.type):
        trimmed = pc.utf8_trim_whitespace(to_text(values))
        days = _iso_days(trimmed) if format is None else _formatted_days(trimmed, format)
    elif pa.types.is_date(values.type):
        days = _days(values.cast(pa.date64()).cast(pa.timestamp("ms")))
    elif pa.types.is_timestamp(values.type):
        days = _days(values if values.type.tz is None else pc.local_timestamp(values))
    else:
        days = np.full(len(values), "NaT", "datetime64[D]")
    known = (days >= np.datetime64("0001-01-01")) & (days <= np.datetime64("9999-12-31"))
    return days, known


def to_fixed_width(values: pa.Array, *, length: int) -> tuple[pa.Array, Mask]:
    """Codes as text, and which have the right length. Whole numbers get back the zeros that they have lost."""
    if is_text(values.type):
        codes = pc.utf8_trim_whitespace(to_text(values))
    else:
        codes = to_text(values)
        digits = pc.match_substring_regex(codes, "^[0-9]+$").fill_null(False)
        codes = pc.if_else(digits, pc.utf8_lpad(codes, width=length, padding="0"), "")
    return codes, to_mask(pc.equal(pc.utf8_length(codes), length).fill_null(False))


def to_codes(hierarchy: Hierarchy, values: pa.Array | NDArray[Any]) -> Codes:
    """The code of every value, of the type of the hierarchy's leaves; -1 for what is none of them."""
    if not isinstance(values, pa.Array):
        return sorted_places(hierarchy.values, values)
    places = pc.index_in(values, value_set=pa.array(hierarchy.values, pa.string()))
    return np.asarray(places.fill_null(-1).to_numpy(zero_copy_only=False), np.int32)


def _floats(values: pa.Array) -> NDArray[np.float64]:
    # Adding zero turns -0 into 0, which would otherwise be a second leaf.
    floats = pc.cast(values, pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return np.asarray(floats, np.float64) + 0.0


def _days(stamps: pa.Array) -> NDArray[np.datetime64]:
    return np.asarray(stamps.to_numpy(zero_copy_only=False)).astype("datetime64[D]")


def _iso_days(text: pa.Array) -> NDArray[np.datetime64]:
    """Built from the three numbers: a calendar that rolls February 30 over into March would hide the mistake."""
    readable = pc.match_substring_regex(text, DAY).fill_null(False)
    text = pc.if_else(readable, text, "0000-00-00")
    year, month, day = (
        np.asarray(pc.cast(pc.utf8_slice_codeunits(text, start, stop), pa.int64()).to_numpy(zero_copy_only=False))
        for start, stop in ((0, 4), (5, 7), (8, 10))
    )
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days: NDArray[np.datetime64] = months.astype("datetime64[D]") + (day - 1)
    wrong = (month < 1) | (month > 12) | (day < 1) | (days.astype("datetime64[M]") != months)
    days[wrong] = np.datetime64("NaT")
    return days


def _formatted_days(text: pa.Array, format: str) -> NDArray[np.datetime64]:
    # Python's own strptime: Arrow's accepts February 30, and trailing text.
    return np.array([_day(cell, format) for cell in text.to_pylist()], "datetime64[D]")


def _day(cell: str | None, format: str) -> Any:
    try:
        return None if cell is None else datetime.strptime(cell, format).date()
    except ValueError:
        return None


def spread(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same cells without a dictionary, which lists values in the order of the private rows."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
