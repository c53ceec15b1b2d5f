"""Dates: days in order, grouped by month, quarter, year and decade; and the days a calendar term covers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, nested
from sequester.errors import DataError, PolicyError, Problem

STEPS = ("day", "month", "quarter", "year", "decade")

_MIDNIGHT = r"(?:[T ]00:00(?::00(?:\.0+)?)?)?"
_TERM = re.compile(
    r"(?P<decade>\d{3}0)s"
    rf"|(?P<year>\d{{4}})(?:-?[Qq](?P<quarter>[1-4])|-(?P<month>\d{{2}})(?:-(?P<day>\d{{2}}){_MIDNIGHT})?)?",
    re.ASCII,
)


def from_dates(
    values: NDArray[np.datetime64],
    *,
    levels: Sequence[str] = ("day", "month", "quarter", "year"),
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
    groups += [_calendar(days, step) for step in STEPS[1:] if step in levels]
    return nested("date", days, groups, position=position, missing=missing)


def cover(term: str) -> tuple[int, int] | None:
    """First and last day, since 1970-01-01, of a day, month, quarter, year or decade; None if it is none."""
    found = _TERM.fullmatch(term.strip())
    if found is None:
        return None
    part = {name: int(text) for name, text in found.groupdict().items() if text is not None}
    if "decade" in part:
        first, months = (part["decade"], 1, 1), 120
    elif "quarter" in part:
        first, months = (part["year"], part["quarter"] * 3 - 2, 1), 3
    elif "month" in part:
        first, months = (part["year"], part["month"], part.get("day", 1)), 1
    else:
        first, months = (part["year"], 1, 1), 12
    try:
        start = date(*first)
    except ValueError:
        return None
    if "day" in part:
        return _since_epoch(start), _since_epoch(start)
    ahead = start.month - 1 + months
    year, month = start.year + ahead // 12, ahead % 12 + 1
    end = date.max if year > 9999 else date(year, month, 1) - timedelta(days=1)
    return _since_epoch(start), _since_epoch(end)


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


def _since_epoch(day: date) -> int:
    return day.toordinal() - date(1970, 1, 1).toordinal()
