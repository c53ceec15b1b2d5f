"""Intervals of numbers and days in the notations of other tools, read without knowing the domain.

Understood are `21`, `[21-30]`, `[21, 30]` and `(21,30]` (R and sdcMicro), `[20, 30[` and `]20, 30]` (ARX), `21-30`
(AnonyPy and AnonyPyx), `21,30` (Basic Mondrian), `21..30`, `21~30`, `>=65`, `65+`, `<20`, infinite ends, and `*`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NUMBER = r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:inf(?:inity)?)|∞)"
_DAY = r"[0-9]{4}(?:s|-?[Qq][1-4]|-[0-9]{2}(?:-[0-9]{2}(?:[T ]00:00(?::00(?:\.0+)?)?)?)?)?"
_BETWEEN = r"\s*(?:[-–—~/]|\.\.+|\bto\b)\s*"

# 1,234 may be one number as well as two: never guessed.
AMBIGUOUS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_SIGN = r"(?P<sign>>=|=>|≥|>|<=|=<|≤|<)\s*"


def _forms(term: str) -> tuple[re.Pattern[str], ...]:
    """Interval in brackets, interval without, one term in brackets, one-sided; tried in this order."""
    return (
        re.compile(
            rf"(?P<left>[\[(\]])\s*(?P<low>{term})(?:{_BETWEEN}|\s*[,;]\s*)(?P<high>{term})\s*(?P<right>[\])\[])"
        ),
        re.compile(rf"(?P<low>{term})(?:{_BETWEEN}|\s*,\s*)(?P<high>{term})"),
        re.compile(rf"\[\s*(?P<one>{term})\s*\]"),
        re.compile(rf"{_SIGN}(?P<one>{term})"),
        re.compile(rf"(?P<one>{term})\s*(?P<more>\+)"),
    )


# What most cells are; the forms below read it the same, at four times the cost.
_PLAIN = re.compile(r"\[([0-9]+(?:\.[0-9]+)?)(?:-|, )([0-9]+(?:\.[0-9]+)?)\]")
_NUMBER_ALONE = re.compile(_NUMBER)
_NUMBER_FORMS = _forms(_NUMBER)
_DAY_FORMS = _forms(_DAY)

_MIDNIGHT = r"(?:[T ]00:00(?::00(?:\.0+)?)?)?"
_CALENDAR_TERM = re.compile(
    r"(?P<decade>\d{3}0)s"
    rf"|(?P<year>\d{{4}})(?:-?[Qq](?P<quarter>[1-4])|-(?P<month>\d{{2}})(?:-(?P<day>\d{{2}}){_MIDNIGHT})?)?",
    re.ASCII,
)

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


class Ends(NamedTuple):
    """The two ends of one interval, and whether each is left out."""

    low: float
    high: float
    above: bool = False
    below: bool = False


class Intervals(NamedTuple):
    """The ends of many intervals. Where a text was not understood, both ends are NaN (NaT for days)."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    above: NDArray[np.bool_]
    below: NDArray[np.bool_]
    understood: NDArray[np.bool_]

    def ends(self) -> NDArray[np.float64]:
        """The distinct numbers a domain needs so that every interval keeps its width.

        An end that is left out is replaced by its neighbour: the next integer if all ends are integers, else the
        next float.
        """
        ends = np.concatenate([self.low, self.high])
        left_out = np.concatenate([self.above, self.below])
        inward = np.repeat([math.inf, -math.inf], len(self.low))
        finite = np.isfinite(ends)
        ends, left_out, inward = ends[finite], left_out[finite], inward[finite]
        whole = bool((ends == np.floor(ends)).all())
        moved = ends + np.sign(inward) if whole else np.nextafter(ends, inward)
        return np.unique(np.where(left_out, moved, ends))


def interpret_numbers(texts: Sequence[str | None]) -> Intervals:
    """Numeric ends of published texts, for building the domain of a table made elsewhere."""
    parsed = [number_bounds((text or "").strip()) for text in texts]
    nothing = Ends(math.nan, math.nan)
    columns = np.array([bounds or nothing for bounds in parsed], np.float64).reshape(-1, 4)
    return Intervals(
        low=columns[:, 0],
        high=columns[:, 1],
        above=columns[:, 2] > 0,
        below=columns[:, 3] > 0,
        understood=np.array([bounds is not None for bounds in parsed], bool),
    )


def interpret_dates(
    texts: Sequence[str | None],
) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64], NDArray[np.bool_]]:
    """First and last day of published texts, and which were understood (the others are NaT). `*` is every day."""
    parsed = [day_bounds((text or "").strip()) for text in texts]
    low = np.array([np.datetime64(b[0], "D") if b else np.datetime64("NaT") for b in parsed], "datetime64[D]")
    high = np.array([np.datetime64(b[1], "D") if b else np.datetime64("NaT") for b in parsed], "datetime64[D]")
    return low, high, np.array([b is not None for b in parsed], bool)


def number_bounds(text: str) -> Ends | None:
    """The interval of numbers that a text stands for."""
    if plain := _PLAIN.fullmatch(text):
        low, high = float(plain[1]), float(plain[2])
        return Ends(low, high) if low <= high else None
    if _NUMBER_ALONE.fullmatch(text):
        number = _number(text)
        return Ends(number, number) if math.isfinite(number) else None
    if text and not text.strip("*"):
        return Ends(-math.inf, math.inf)
    if AMBIGUOUS.fullmatch(text):
        return None
    return _match(text, _NUMBER_FORMS, _point)


def day_bounds(text: str) -> tuple[int, int] | None:
    """First and last day, since 1970-01-01, that a text stands for."""
    alone = calendar_days(text)
    if alone is not None:
        return alone
    if text and not text.strip("*"):
        return FIRST_DAY, LAST_DAY
    bounds = _match(text, _DAY_FORMS, calendar_days)
    if bounds is None:
        return None
    first = max(bounds.low, FIRST_DAY) + bounds.above
    last = min(bounds.high, LAST_DAY) - bounds.below
    return (int(first), int(last)) if first <= last else None


def calendar_days(term: str) -> tuple[int, int] | None:
    """First and last day, since 1970-01-01, of a day, month, quarter, year or decade; None if it is none."""
    named = _CALENDAR_TERM.fullmatch(term.strip())
    if named is None:
        return None
    part = {name: int(text) for name, text in named.groupdict().items() if text is not None}
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


def _match(
    text: str, forms: tuple[re.Pattern[str], ...], extent: Callable[[str], tuple[float, float] | None]
) -> Ends | None:
    """The first form that fits, with both terms replaced by their extent (a month is many days)."""
    matched = next((match for form in forms if (match := form.fullmatch(text))), None)
    if matched is None:
        return None
    part = matched.groupdict()
    if "one" not in part:
        low, high = extent(part["low"]), extent(part["high"])
        if low is None or high is None:
            return None
        above, below = part.get("left", "[") != "[", part.get("right", "]") != "]"
        bounds = Ends(low[1] if above else low[0], high[0] if below else high[1], above, below)
        return bounds if bounds.low < bounds.high or (bounds.low == bounds.high and not above and not below) else None
    one = extent(part["one"])
    if one is None:
        return None
    sign = ">=" if part.get("more") else part.get("sign") or "="
    if ">" in sign or sign == "≥":
        strict = sign == ">"
        return Ends(one[1] if strict else one[0], math.inf, strict, False)
    if "<" in sign or sign == "≤":
        strict = sign == "<"
        return Ends(-math.inf, one[0] if strict else one[1], False, strict)
    return Ends(*one)


def _point(text: str) -> tuple[float, float]:
    number = _number(text)
    return number, number


def _number(text: str) -> float:
    return float(text.replace("∞", "inf"))


def _since_epoch(day: date) -> int:
    return day.toordinal() - date(1970, 1, 1).toordinal()
