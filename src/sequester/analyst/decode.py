"""Published cells as numbers, days and sets of values: what a reader may conclude from each, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain import sets
from sequester.domain.codec import distinct, matches, to_numbers, to_text
from sequester.domain.hierarchy import EVERYTHING, MISSING
from sequester.domain.intervals import day_bounds, number_bounds
from sequester.errors import DataError

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Described = Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """A number or day per row: from `lo` to `hi`, NaN where nothing is said; days count from 1970.

    missing  0 there is a value, 1 there may be none, 2 there is none
    middle   where only the middle of an interval is published
    plain    whether it is published as it is
    """

    lo: Floats
    hi: Floats
    missing: NDArray[np.int8]
    days: bool = False
    whole: bool = False
    middle: Floats | None = None
    plain: bool = False

    @property
    def mid(self) -> Floats:
        """The middle of the interval."""
        return (self.lo + self.hi) / 2 if self.middle is None else self.middle

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether the value is known."""
        known: NDArray[np.bool_] = (self.missing == 2) | ((self.missing == 0) & (self.lo == self.hi))
        return known & (self.middle is None)


@dataclass(frozen=True, eq=False, repr=False)
class Words:
    """A name per row: its place among distinct texts, -1 for none; and the values that each text may stand for.

    leaves  per text; None where that is not said: any value
    """

    texts: tuple[str, ...]
    index: Codes
    leaves: tuple[tuple[str, ...] | None, ...]

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether the value is known."""
        one = [leaves is not None and len(leaves) == 1 for leaves in self.leaves]
        return np.append(one, True).astype(np.bool_)[self.index]


Column = Measured | Words


def decode(described: Sequence[Described], table: pa.Table) -> Column:
    """The column, or pair of columns, of one attribute."""
    first = described[0]
    cells = [table[column["name"]] for column in described]
    if first["written"] in ("min", "interval", "middle"):
        return _numbers(first, cells)
    if first["written"] == "calendar":
        return _days(first, cells[0])
    if first["written"] == "value" and first["role"] == "insensitive":
        return _plain(cells[0]) or _words(first, cells[0])
    return _words(first, cells[0])


def _plain(cells: pa.ChunkedArray) -> Measured | None:
    """A column that is published as it is, where all its cells are numbers and not, by a leading zero, codes."""
    values, index = distinct(cells)
    numbers, readable = to_numbers(values)
    if not len(values) or not readable.all() or matches(values, r"^[+-]?0[0-9]").any():
        return None
    found = np.append(numbers, np.nan)[index]
    return Measured(found, found, np.where(index < 0, 2, 0).astype(np.int8), whole=_is_whole(numbers), plain=True)


def _numbers(column: Described, cells: Sequence[pa.ChunkedArray]) -> Measured:
    if column["written"] == "interval":
        texts, index = texts_of(cells[0])
        spans = [_number_span(text) for text in texts]
        return _scale(column, spans, index)
    ends = [_floats(one) for one in cells]
    unknown = np.isnan(ends[0]).astype(np.int8)
    if column["written"] == "middle":
        nothing = np.full(len(ends[0]), np.nan)
        return Measured(nothing, nothing, unknown, middle=ends[0])
    return Measured(ends[0], ends[1], unknown, whole=_is_whole(np.concatenate(ends)))


def _number_span(text: str) -> tuple[float, float, int]:
    """First and last number of a text, infinite where it has no end, and whether the value may be missing."""
    inner, missing = _without_missing(text)
    if inner is None:
        return np.nan, np.nan, 2
    if inner == EVERYTHING:
        return -np.inf, np.inf, missing
    bounds = number_bounds(inner)
    if bounds is None:
        raise DataError("a column of numbers has cells that are none: this is not the data of a release")
    return bounds.low, bounds.high, missing


def _days(column: Described, cells: pa.ChunkedArray) -> Measured:
    texts, index = texts_of(cells)
    spans = []
    for text in texts:
        inner, missing = _without_missing(text)
        bounds = None if inner is None or inner == EVERYTHING else day_bounds(inner)
        if inner is None:
            spans.append((np.nan, np.nan, 2))
        elif bounds is None:
            spans.append((-np.inf, np.inf, missing))
        else:
            spans.append((float(bounds[0]), float(bounds[1]), missing))
    return _scale(column, spans, index, days=True)


def _scale(
    column: Described, spans: Sequence[tuple[float, float, int]], index: Codes, *, days: bool = False
) -> Measured:
    """Spans of texts as those of rows. Where one has no end, it ends where the declared range or all others do."""
    lo, hi, missing = (np.array([span[at] for span in spans], np.float64) for at in range(3))
    may = column.get("missing", False)
    if np.isinf(lo).any() or np.isinf(hi).any():
        seen = np.concatenate([lo[np.isfinite(lo)], hi[np.isfinite(hi)]])
        low, high = column.get("range") or ((seen.min(), seen.max()) if len(seen) else (np.nan, np.nan))
        missing = np.where((missing == 0) & np.isinf(lo) & np.isinf(hi) & may, 1, missing)
        lo, hi = np.where(np.isneginf(lo), low, lo), np.where(np.isposinf(hi), high, hi)
    lo, hi = (np.append(side, np.nan) for side in (lo, hi))
    told = np.append(missing, 2).astype(np.int8)
    return Measured(lo[index], hi[index], told[index], days=days, whole=days or _is_whole(np.append(lo, hi)))


def _words(column: Described, cells: pa.ChunkedArray) -> Words:
    texts, index = texts_of(cells)
    if column["written"] in ("value", "band", "several"):
        return Words(texts, index, tuple((text,) for text in texts))
    groups = column.get("groups", {})
    if column["written"] == "prefix":
        return Words(texts, index, tuple(None if _is_general(text) else (text,) for text in texts))
    return Words(texts, index, words_of(texts, groups))


def words_of(texts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...] | None, ...]:
    """The values that each text may stand for."""
    return tuple(_members(text, groups) for text in texts)


def _members(text: str, groups: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """The values that a name, or a set of names, may stand for; None: any."""
    if text == EVERYTHING:
        return None
    if text in groups:
        return tuple(groups[text])
    parts = next(sets.readings(text), None) if text[:1] == "{" and text[-1:] == "}" else None
    if parts is None:
        return (text,)
    return tuple(dict.fromkeys(leaf for part in parts for leaf in groups.get(part, (part,))))


def _is_general(text: str) -> bool:
    return text.endswith("*") or text[:1] in ("[", "{")


def _without_missing(text: str) -> tuple[str | None, int]:
    """A text without the word for no value, None where nothing is left; and 1 where that word was in it."""
    if text == MISSING:
        return None, 2
    if text[:1] == "{" and text[-1:] == "}" and text[1:-1].endswith(f", {MISSING}"):
        return text[1 : -len(MISSING) - 3], 1
    return text, 0


def texts_of(cells: pa.ChunkedArray) -> tuple[tuple[str, ...], Codes]:
    """The distinct texts of a column in order, and the place of every row's; -1 for none."""
    values, index = distinct(cells)
    found = list(map(str, to_text(values).to_pylist()))
    order = sorted(range(len(found)), key=found.__getitem__)
    place = np.empty(len(found) + 1, np.int32)
    place[order] = np.arange(len(found), dtype=np.int32)
    place[-1] = -1
    return tuple(found[at] for at in order), place[index]


def _floats(cells: pa.ChunkedArray) -> Floats:
    values, index = distinct(cells)
    numbers, readable = to_numbers(values)
    if not readable.all():
        raise DataError("a column of numbers has cells that are none: this is not the data of a release")
    return np.append(numbers, np.nan)[index]


def _is_whole(numbers: Floats) -> bool:
    found = numbers[np.isfinite(numbers)]
    return bool(len(found)) and bool((found == np.floor(found)).all())
