"""What a column looks like, from its distinct values only. A profile holds counts and bounds, never cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from sequester.domain.codec import DAY, NUMBER, is_text
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
_PROSE = 40


@dataclass(frozen=True)
class Profile:
    """One column. `low` and `high` are set for numbers, `length` for text of one fixed length."""

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

    @property
    def unique(self) -> bool:
        """Whether every row has a value of its own."""
        return self.rows > 0 and self.missing == 0 and self.distinct == self.rows


def profile(name: str, column: pa.ChunkedArray) -> Profile:
    """Look at one column."""
    from sequester.ingest.suited import suited

    try:
        column = suited(column, name)
    except DataError:
        return Profile(name, rows=len(column), missing=column.null_count, distinct=len(column), looks="text")
    if is_text(column.type):
        column = column.cast(pa.string())
    counts = pc.value_counts(column.combine_chunks())
    values, times = counts.field(0), counts.field(1)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    empty = pc.is_null(values, nan_is_null=True)
    tokens: tuple[str, ...] = ()
    if is_text(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        tokens = tuple(t for t in TOKENS if pc.any(pc.equal(trimmed, t)).as_py())
        empty = pc.or_(empty, pc.is_in(trimmed, value_set=pa.array(("", *tokens))))
    missing = pc.sum(pc.filter(times, empty)).as_py() or 0
    present = pc.filter(values, pc.invert(empty))
    looks = _looks(present)
    return Profile(name=name, rows=len(column), missing=missing, distinct=len(present), tokens=tokens, **looks)


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
    numbers = pc.cast(_plain(values), pa.float64(), safe=False)
    finite = pc.filter(numbers, pc.is_finite(numbers))
    if not len(finite):
        return {"looks": "category"}
    bounds = pc.min_max(finite).as_py()
    return {"looks": "number", "low": bounds["min"], "high": bounds["max"]}


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
