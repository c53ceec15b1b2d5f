"""What a column looks like, from its distinct values only. A profile holds counts and bounds, never cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain.codec import DAY, NUMBER, is_text, to_text
from sequester.errors import DataError

Looks = Literal["number", "code", "date", "category", "text", "nothing"]

# What tables commonly write for "no value".
TOKENS = ("?", "NA", "N/A", "#N/A", "NULL", "null", "NaN", "nan")

_DATE_FORMATS = {
    r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$": ("%d/%m/%Y", "%m/%d/%Y"),
    r"^[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}$": ("%d-%m-%Y", "%m-%d-%Y"),
    r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}$": ("%d.%m.%Y",),
    r"^[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}$": ("%Y/%m/%d",),
}
_COMPACT = 8
_COMPACT_DAY = "^(18|19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
_PROSE = 40


@dataclass(frozen=True)
class Profile:
    """One column, of one wave or of several.

    share   of the commonest value among all rows; a missing cell counts as a value
    low, high, whole, spellings  numbers: bounds, whether all are whole, and whether one is written in several ways
    length  text of one fixed length
    """

    name: str
    rows: int
    missing: int
    distinct: int
    looks: Looks
    tokens: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    length: int | None = None
    leading_zero: bool = False
    formats: tuple[str, ...] = ()
    share: float = 0.0
    whole: bool = False
    spellings: bool = False

    @property
    def unique(self) -> bool:
        """Whether every row has a value of its own."""
        return self.rows > 0 and self.missing == 0 and self.distinct == self.rows


def profile(name: str, *waves: pa.ChunkedArray) -> Profile:
    """Look at one column, of all waves together."""
    from sequester.ingest.suited import suited

    rows, nulls = sum(map(len, waves)), sum(wave.null_count for wave in waves)
    try:
        column = together([suited(wave, name) for wave in waves])
    except DataError:
        return Profile(name, rows=rows, missing=nulls, distinct=rows, looks="text")
    counts = pc.value_counts(column.combine_chunks())
    values, times = counts.field(0), counts.field(1)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    empty, tokens = no_values(values)
    missing = pc.sum(pc.filter(times, empty)).as_py() or 0
    present = pc.filter(values, pc.invert(empty))
    most = max(missing, pc.max(pc.filter(times, pc.invert(empty))).as_py() or 0)
    looks = _looks(present)
    return Profile(
        name=name,
        rows=rows,
        missing=missing,
        distinct=len(present),
        tokens=tokens,
        share=most / rows if rows else 0.0,
        **looks,
    )


def together(waves: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The cells of all waves in one column; as text where the waves have different types."""
    plain = [wave.cast(pa.string()) if is_text(wave.type) else wave for wave in waves]
    if len({wave.type for wave in plain}) > 1 or (len(plain) > 1 and pa.types.is_dictionary(plain[0].type)):
        plain = [pa.chunked_array([to_text(chunk) for chunk in wave.chunks], pa.string()) for wave in plain]
    return pa.chunked_array([chunk for wave in plain for chunk in wave.chunks], plain[0].type)


def no_values(values: pa.Array) -> tuple[pa.Array, tuple[str, ...]]:
    """Which cells have no value, and the words for that among them."""
    empty = pc.is_null(values, nan_is_null=True)
    if not is_text(values.type):
        return empty, ()
    trimmed = pc.utf8_trim_whitespace(values)
    tokens = tuple(t for t in TOKENS if pc.any(pc.equal(trimmed, t)).as_py())
    return pc.or_(empty, pc.is_in(trimmed, value_set=pa.array(("", *tokens)))), tokens


def _looks(values: pa.Array) -> dict[str, Any]:
    kind = values.type
    if not len(values):
        return {"looks": "nothing"}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number(values)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return {"looks": "date"}
    if not is_text(kind):
        return {"looks": "category"}
    text = pc.utf8_trim_whitespace(values)
    lengths = pc.unique(pc.utf8_length(text))
    length = lengths[0].as_py() if len(lengths) == 1 else None
    if _all(text, NUMBER):
        zero = length is not None and length > 1 and pc.any(pc.match_substring_regex(text, "^0[0-9]+$")).as_py()
        digits = _all(text, "^[0-9]+$")
        if digits and length == _COMPACT and _all(text, _COMPACT_DAY):
            return {"looks": "date", "formats": ("%Y%m%d",)}
        looks = {**_number(text), "length": length if digits else None, "leading_zero": zero and digits}
        return {**looks, "looks": "code"} if zero and digits else looks
    if _all(text, DAY):
        return {"looks": "date"}
    formats = _date_formats(text)
    if formats:
        return {"looks": "date", "formats": formats}
    prose = pc.mean(pc.utf8_length(text)).as_py() > _PROSE
    return {"looks": "text" if prose else "category", "length": length}


def _number(values: pa.Array) -> dict[str, Any]:
    numbers = as_numbers(values)
    finite = pc.filter(numbers, pc.is_finite(numbers))
    if not len(finite):
        return {"looks": "category"}
    cells = finite.to_numpy(zero_copy_only=False)
    return {
        "looks": "number",
        "low": float(cells.min()),
        "high": float(cells.max()),
        "whole": bool((cells == np.floor(cells)).all()) and len(finite) == len(numbers),
        "spellings": len(np.unique(cells)) < len(finite),
    }


def as_numbers(values: pa.Array) -> pa.Array:
    """Cells that look like numbers, as numbers."""
    return pc.cast(_plain(values), pa.float64(), safe=False)


def _plain(values: pa.Array) -> pa.Array:
    return pc.utf8_ltrim(values, characters="+") if is_text(values.type) else values


def _date_formats(text: pa.Array) -> tuple[str, ...]:
    """The ways in which all values can be read as dates; more than one when day and month cannot be told apart."""
    for pattern, formats in _DATE_FORMATS.items():
        if _all(text, pattern):
            return tuple(format for format in formats if _fits(text, format))
    return ()


def _fits(text: pa.Array, format: str) -> bool:
    separator = format[2]
    parts = pc.split_pattern(text, separator)
    for place, field in enumerate(format.split(separator)):
        most = {"%d": 31, "%m": 12, "%Y": 9999}[field]
        numbers = pc.cast(pc.list_element(parts, place), pa.int32())
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] < 1 or bounds["max"] > most:
            return False
    return True


def _all(text: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def used_tokens(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The tokens for "no value" that occur anywhere, in a fixed order."""
    return tuple(token for token in TOKENS if any(token in profile.tokens for profile in profiles))
