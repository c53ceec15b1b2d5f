"""Dates: days in order, grouped by month, quarter, year and decade."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, nested
from sequester.domain.intervals import FIRST_DAY, LAST_DAY, day_bounds, interpret_dates
from sequester.domain.kinds.kind import Fault, Issue, Kind, Mask, Parsed, Span, between, finite_in
from sequester.errors import DataError, PolicyError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.policy.attributes import QuasiIdentifier, Sensitive

STEPS = {
    "day": "YYYY-MM-DD a day",
    "month": "YYYY-MM a month",
    "quarter": "YYYY-Q1 to YYYY-Q4 a quarter",
    "year": "YYYY a year",
    "decade": "YYY0s a decade",
}
"""The steps of the calendar, fine to coarse, and how each is written."""
_USUAL = ("day", "month", "quarter", "year")


def from_dates(
    values: NDArray[np.datetime64],
    *,
    levels: Sequence[str] = _USUAL,
    missing: bool = False,
) -> Hierarchy:
    """The distinct days in order. The leaves are days even if `levels` does not name them."""
    unknown = [level for level in levels if level not in STEPS]
    if unknown:
        raise PolicyError(
            Problem(f"'{level}' is no calendar step; known are {', '.join(STEPS)}", key="levels") for level in unknown
        )
    days = np.unique(np.asarray(values, "datetime64[D]"))
    known = (days >= np.datetime64("0001-01-01")) & (days <= np.datetime64("9999-12-31"))
    if not known.all():
        raise DataError(f"{int((~known).sum())} distinct dates are missing or outside the years 1 to 9999")
    if not len(days):
        raise DataError("there is no date to build a domain from")
    ordinals = days.astype(np.int64).astype(np.float64)
    position = (ordinals - ordinals[0]) / max(ordinals[-1] - ordinals[0], 1.0)
    groups = [(np.arange(len(days), dtype=np.int32), tuple(np.datetime_as_string(days).tolist()))]
    groups += [_calendar(days, step) for step in STEPS if step != "day" and step in levels]
    return nested("date", days, groups, position=position, missing=missing)


def _calendar(days: NDArray[np.datetime64], step: str) -> tuple[Codes, tuple[str, ...]]:
    """First code and name of every month, quarter, year or decade that occurs."""
    months = days.astype("datetime64[M]").astype(np.int64)
    size = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[step]
    _, starts = np.unique((months + 1970 * 12) // size, return_index=True)
    names = []
    for start in np.datetime_as_string(days[starts]).tolist():
        year, month = start[:4], int(start[5:7])
        names.append(
            {
                "month": start[:7],
                "quarter": f"{year}-Q{(month + 2) // 3}",
                "year": year,
                "decade": f"{year[:3]}0s",
            }[step]
        )
    return starts.astype(np.int32), tuple(names)


class Date(Kind):
    """Dates are generalized to months, quarters, years, or any days in a row."""

    name = "date"
    written = "calendar"
    options = ("levels", "format")
    measured = True
    between = " - "
    unit = " days"

    def check(self, given: Mapping[str, Any]) -> Iterator[Issue]:
        format, levels = given.get("format"), given.get("levels")
        if isinstance(format, str) and not _writes_dates(format):
            yield ("format",), "is no way to write a date; write it as in strptime, such as %d.%m.%Y"
        if not isinstance(levels, list | tuple):
            return
        known = [step for step in levels if isinstance(step, str) and step in STEPS]
        order = list(map(list(STEPS).index, known))
        if not levels:
            yield ("levels",), "must not be empty"
        elif finite_in(levels) is not None:
            yield ("levels",), f"the levels of a date are steps of the calendar: {', '.join(STEPS)}"
        elif len(known) == len(levels) and any(one >= other for one, other in pairwise(order)):
            yield ("levels",), f"must go from fine to coarse: {', '.join(STEPS)}"

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        if attribute.role == "quasi-identifier":
            yield "by " + ", ".join(map(str, attribute.levels or _USUAL))
            if attribute.format is not None:
                yield f"written as {attribute.format}"

    def notation(self, attribute: QuasiIdentifier) -> str:
        written = [STEPS[step] for step in _steps(attribute)]
        return "; ".join([*written, "[a - b] from day a to day b, both included", "* any day"])

    def levels(self, attribute: QuasiIdentifier, path: Callable[[str], Path]) -> str:
        return f"{', '.join(_steps(attribute))}, *"

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        levels = _USUAL if attribute.role == "sensitive" else cast("Sequence[str]", attribute.levels or _USUAL)
        return from_dates(np.asarray(values, "datetime64[D]"), levels=levels, missing=attribute.missing == "category")

    def worth(self, leaves: NDArray[Any]) -> NDArray[Any]:
        return leaves.astype("datetime64[D]").astype(np.int64)

    def parse(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array, present: Mask) -> Parsed:
        from sequester.domain.codec import to_dates

        format = attribute.format if attribute.role == "quasi-identifier" else None
        days, known = to_dates(cells, format=format)
        one, many = (f"{what} written as {format or 'YYYY-MM-DD'}" for what in ("is not a date", "are not dates"))
        fix = "correct them, or say how they are written with `format`"
        return Parsed(days, (Fault(present & ~known, one, many, fix),))

    def texts(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array) -> list[str | None]:
        """Days in the policy's own format as ISO days; published terms such as 1964-Q2 stay."""
        import pyarrow as pa

        from sequester.domain.codec import to_dates

        texts = super().texts(attribute, cells)
        if attribute.role == "sensitive" or attribute.format is None:
            return texts
        days, known = to_dates(pa.array(texts, pa.string()), format=attribute.format)
        return [str(day) if ok else text for text, day, ok in zip(texts, days, known.tolist(), strict=True)]

    def span(self, text: str, scale: Sequence[Any]) -> Span | None:
        bounds = day_bounds(text)
        return None if bounds is None else between(scale, *bounds)

    def is_open(self, text: str) -> bool:
        return text[:1] in "<>≤≥"

    def ends(self, attribute: QuasiIdentifier, texts: Sequence[str]) -> Any:
        low, high, understood = interpret_dates(texts)
        days = np.unique(np.concatenate([low[understood], high[understood]]))
        edge = np.array([FIRST_DAY, LAST_DAY]).astype("datetime64[D]")
        return days[~np.isin(days, edge)]

    def with_another(self, attribute: QuasiIdentifier, ends: Any) -> Any:
        start = ends if len(ends) else np.array(["1970-01-01"], "datetime64[D]")
        return np.append(start, start[-1] + 1)


def _steps(attribute: QuasiIdentifier) -> list[str]:
    """The steps that are published: days, and those that the policy names."""
    return [step for step in STEPS if step == "day" or step in (attribute.levels or _USUAL)]


def _writes_dates(format: str) -> bool:
    day = datetime(2001, 2, 3)
    try:
        return bool(datetime.strptime(day.strftime(format), format))
    except (ValueError, re.error):
        return False


DATE = Date()
