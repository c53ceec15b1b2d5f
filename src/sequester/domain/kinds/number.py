"""Numbers: distinct values or every integer of a range, in bands of growing width or of given edges."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, nested
from sequester.domain.intervals import AMBIGUOUS, interpret_numbers, number_bounds
from sequester.domain.kinds.kind import Fault, Issue, Kind, Mask, Parsed, Span, amount, finite_in, numbers_in, span_of
from sequester.errors import DataError, PolicyError, Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.policy.attributes import QuasiIdentifier, Sensitive

Floats = NDArray[np.float64]
Level = tuple[Codes, tuple[str, ...]]

LARGEST_RANGE = 65_535
_EXACT = 2.0**53
_SPELLED_OUT = r"(?i)^[+-]?(nan|inf|infinity)$"
_BANDS = "[a-b) from a to b without b; <b and <=b up to b; >=a from a on"


def text(number: float) -> str:
    """A number as it is published; reading it back gives the same number."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)


def from_numbers(
    values: Floats,
    *,
    range: tuple[float, float] | None = None,
    levels: Sequence[float] | None = None,
    bands: Sequence[float] | None = None,
    missing: bool = False,
) -> Hierarchy:
    """Numbers in order, between the ends of `range` if it is given.

    If range and values are integers, the leaves are every integer of the range, so that the domain says nothing
    about the data; otherwise they are the distinct values and the two ends. `levels` are widths of bands, each a
    multiple of the one before, counted from the lower end of the range or from 0; `bands` are the edges of one
    level of bands, the last one closed.
    """
    _check_settings(range, levels, bands)
    leaves = _leaves(np.unique(np.asarray(values, np.float64)) + 0.0, range)
    groups: list[Level] = [(np.arange(len(leaves), dtype=np.int32), tuple(map(text, leaves.tolist())))]
    if bands is not None:
        groups.append(_banded(leaves, bands, declared=range is not None))
    elif levels is not None:
        groups += _widths(leaves, levels, range)
    span = float(leaves[-1]) - float(leaves[0])
    if not math.isfinite(span):
        # Halving keeps the difference of the largest floats finite.
        position = (leaves / 2 - leaves[0] / 2) / (leaves[-1] / 2 - leaves[0] / 2)
    else:
        position = (leaves - leaves[0]) / (span or 1.0)
    return nested("number", leaves, groups, position=position, missing=missing)


def from_bands(edges: Sequence[float], *, missing: bool = False) -> Hierarchy:
    """The domain of a sensitive number: the leaves are the bands, which are published and protected as values.

    It is of kind 'category', since bands are only ever compared by name and order; `band_codes` encodes numbers.
    """
    _check_settings(None, None, edges)
    names = tuple(_band_names(edges, whole=False))
    codes = np.arange(len(names), dtype=np.int32)
    position = codes / max(len(names) - 1, 1)
    return nested("category", np.array(names, object), [(codes, names)], position=position, missing=missing)


def band_codes(edges: Sequence[float], values: Floats) -> Codes:
    """The band of every number: [e0, e1), [e1, e2), ..., the last one closed; -1 outside the edges and for NaN."""
    numbers = np.asarray(values, np.float64)
    band = np.searchsorted(np.asarray(edges, np.float64), numbers, side="right").astype(np.int32) - np.int32(1)
    band[numbers == edges[-1]] = len(edges) - 2
    band[(numbers > edges[-1]) | np.isnan(numbers)] = -1
    return band


def spans_integers(range: tuple[float, float]) -> bool:
    """Whether every integer of the range can be a leaf: both ends are integers and there are not too many."""
    return _whole(range) and range[1] - range[0] <= LARGEST_RANGE


def _leaves(values: Floats, range: tuple[float, float] | None) -> Floats:
    problems = []
    finite = np.isfinite(values)
    if not finite.all():
        problems.append(Problem(f"{int((~finite).sum())} distinct numbers are missing or infinite"))
    values = values[finite]
    if range is None:
        if not len(values):
            problems.append(Problem("there is no number to build a domain from"))
        if problems:
            raise DataError(problems)
        return values
    low, high = float(range[0]) + 0.0, float(range[1]) + 0.0
    if outside := int(((values < low) | (values > high)).sum()):
        problems.append(Problem(f"{outside} distinct numbers are outside the range {text(low)} to {text(high)}"))
    if problems:
        raise DataError(problems)
    if spans_integers((low, high)) and _whole(values):
        return np.arange(low, high + 1)
    return np.unique(np.append(values, [low, high]))


def _check_settings(
    range: tuple[float, float] | None, levels: Sequence[float] | None, bands: Sequence[float] | None
) -> None:
    """Raise what a checked policy does not have."""
    wrong: dict[str, str | None] = {}
    if range is not None and not (math.isfinite(range[0]) and math.isfinite(range[1]) and range[0] < range[1]):
        wrong["range"] = "the lowest value must be below the highest"
    if bands is not None:
        wrong["bands"] = _wrong_edges(bands) if levels is None else "give either bands or levels, not both"
    if levels is not None:
        wrong["levels"] = _wrong_widths(levels)
    problems = [Problem(message, key=key) for key, message in wrong.items() if message is not None]
    if problems:
        raise PolicyError(problems)


def _wrong_edges(edges: Sequence[float]) -> str | None:
    if len(edges) < 2 or not any(map(math.isfinite, edges)):
        return "at least two edges are needed, one of them finite, such as [0, 100] or [0, .inf]"
    return "the edges must increase" if any(not low < high for low, high in pairwise(edges)) else None


def _wrong_widths(widths: Sequence[float]) -> str | None:
    if widths[0] <= 0:
        return "the widths must be above 0"
    if all(a < b and b / a < _EXACT and _exact(b) % _exact(a) == 0 for a, b in pairwise(widths)):
        return None
    return "every width must be a multiple of the one before, such as [5, 10, 20]"


def _banded(leaves: Floats, edges: Sequence[float], *, declared: bool) -> Level:
    codes = band_codes(edges, leaves)
    if outside := int((codes < 0).sum()):
        if declared:
            raise PolicyError(Problem("the bands do not reach both ends of the range", key="bands"))
        raise DataError(f"{outside} distinct numbers are outside the bands")
    names = _band_names(edges, whole=_whole(leaves) and _whole([edge for edge in edges if math.isfinite(edge)]))
    used, starts = np.unique(codes, return_index=True)
    return starts.astype(np.int32), tuple(names[code] for code in used.tolist())


def _band_names(edges: Sequence[float], *, whole: bool) -> list[str]:
    names = []
    for number, (low, high) in enumerate(pairwise(map(float, edges))):
        last = number == len(edges) - 2
        if math.isinf(low):
            names.append(f"{'<=' if last else '<'}{text(high)}")
        elif math.isinf(high):
            names.append(f">={text(low)}")
        elif last:
            names.append(f"[{text(low)}-{text(high)}]")
        else:
            names.append(_closed(low, high - 1) if whole else f"[{text(low)}-{text(high)})")
    return names


def _widths(leaves: Floats, widths: Sequence[float], range: tuple[float, float] | None) -> list[Level]:
    """Bands of each width. Edges are exact decimals, so that a width of 0.1 has the edges 0.1, 0.2, 0.3."""
    if not widths:
        return []
    base = _exact(range[0] if range else 0.0)
    whole = _whole(leaves) and _whole([float(base), *widths])
    with np.errstate(over="ignore"):
        band = np.floor((leaves - float(base)) / float(widths[0]))
    if np.abs(band).max() >= _EXACT:
        raise PolicyError(Problem("the width is too small for numbers this large", key="levels"))
    # Rounding may put a number one band off: move it by comparing with the edges themselves.
    edge = {index: float(base + int(index) * _exact(widths[0])) for index in np.unique([band, band + 1]).tolist()}
    band -= leaves < np.array([edge[index] for index in band.tolist()])
    band += leaves >= np.array([edge.get(index + 1, math.inf) for index in band.tolist()])
    levels: list[Level] = []
    for width in widths:
        bands, starts = np.unique(band.astype(np.int64) // int(_exact(width) / _exact(widths[0])), return_index=True)
        names = []
        for index in bands.tolist():
            low, high = base + index * _exact(width), base + (index + 1) * _exact(width)
            if whole:
                names.append(_closed(float(low), min(float(high) - 1, float(range[1]) if range else math.inf)))
            else:
                names.append(f"[{text(float(low))}-{text(float(high))})")
        if len(set(names)) < len(names):
            raise PolicyError(Problem("the width is too small for numbers this large", key="levels"))
        levels.append((starts.astype(np.int32), tuple(names)))
    return levels


def _closed(low: float, high: float) -> str:
    return text(low) if low == high else f"[{text(low)}-{text(high)}]"


def _whole(numbers: Iterable[float] | Floats) -> bool:
    array = np.asarray(list(numbers) if not isinstance(numbers, np.ndarray) else numbers, np.float64)
    return bool(((array == np.floor(array)) & (np.abs(array) < _EXACT)).all())


def _exact(number: float) -> Decimal:
    """The decimal number that was written, not its binary neighbour."""
    return Decimal(repr(float(number)))


class Number(Kind):
    """Numbers are generalized to intervals or bands; sensitive ones are published and protected as their bands."""

    name = "number"
    written = "interval"
    options = ("range", "bands", "levels")
    measured = numeric = True

    def check(self, given: Mapping[str, Any]) -> Iterator[Issue]:
        if given.get("role") == "sensitive" and given.get("bands") is None:
            yield ("bands",), "is missing; a sensitive number is protected in bands, such as bands: [0, 1000, 5000]"
        edges, levels = numbers_in(given.get("bands")), given.get("levels")
        if edges is not None and (message := _wrong_edges(edges)):
            yield ("bands",), message
        if not isinstance(levels, list | tuple):
            return
        if not levels:
            yield ("levels",), "must not be empty"
        elif widths := finite_in(levels):
            if message := _wrong_widths(widths):
                yield ("levels",), message
        elif all(isinstance(step, str) for step in levels):
            yield ("levels",), "the levels of a number are widths, such as [5, 10, 20]"

    def treatment(self, attribute: QuasiIdentifier | Sensitive) -> Iterator[str]:
        if attribute.role == "quasi-identifier":
            if attribute.range is not None:
                yield f"{attribute.range[0]:g} to {attribute.range[1]:g}"
            if attribute.levels is not None:
                yield f"widths {', '.join(f'{width:g}' for width in attribute.levels)}"
                return
        yield "any interval" if attribute.bands is None else amount(len(attribute.bands) - 1, "band")

    def without_levels(self, attribute: QuasiIdentifier) -> str | None:
        return "levels" if attribute.levels is None and attribute.bands is None else None

    def notes(self, name: str, attribute: QuasiIdentifier) -> Iterator[str]:
        if attribute.range is None:
            yield f"{name} has no range, so published intervals may show about how far its values reach: give it one."

    def notation(self, attribute: QuasiIdentifier) -> str:
        banded = attribute.levels is not None or attribute.bands is not None
        return "; ".join(["a number", "[a-b] from a to b", *([_BANDS] if banded else []), "* any number"])

    def levels(self, attribute: QuasiIdentifier, path: Callable[[str], Path]) -> str:
        if attribute.levels is not None:
            return f"numbers, {amount(len(attribute.levels), 'width')} of bands, *"
        return "numbers, *" if attribute.bands is None else "numbers, bands, *"

    def sensitive_notation(self, attribute: Sensitive) -> str:
        return f"a band: [a-b] from a to b; {_BANDS}"

    def declared(self, attribute: QuasiIdentifier | Sensitive, path: Callable[[str], Path]) -> Hierarchy | None:
        """Bands of a sensitive number, or a range of integers, which is taken to hold whole numbers only."""
        if attribute.role == "sensitive" or (attribute.range is not None and spans_integers(attribute.range)):
            return self.observe(attribute, np.empty(0))
        return None

    def observe(self, attribute: QuasiIdentifier | Sensitive, values: Any) -> Hierarchy:
        missing = attribute.missing == "category"
        if attribute.role == "sensitive":
            return from_bands(_edges(attribute), missing=missing)
        levels = cast("Sequence[float] | None", attribute.levels)
        numbers = np.asarray(values, np.float64)
        return from_numbers(numbers, range=attribute.range, levels=levels, bands=attribute.bands, missing=missing)

    def parse(self, attribute: QuasiIdentifier | Sensitive, cells: pa.Array, present: Mask) -> Parsed:
        from sequester.domain.codec import matches, to_numbers

        numbers, readable = to_numbers(cells)
        endless = present & np.where(readable, ~np.isfinite(numbers), matches(cells, _SPELLED_OUT))
        wrong = present & ~readable & ~endless
        faults = [
            Fault(wrong, "is not a number", "are not numbers", "write them like 12, -0.5 or 1e3"),
            Fault(endless, "is not a finite number", "are not finite numbers", "correct or empty them"),
        ]
        wrong = wrong | endless
        for outside, limits, key in _limits(attribute, numbers):
            beyond = present & ~wrong & outside
            faults.append(
                Fault(beyond, f"is outside {limits}", f"are outside {limits}", f"correct them, or change `{key}`")
            )
            wrong = wrong | beyond
        return Parsed(numbers, tuple(faults))

    def codes(self, attribute: QuasiIdentifier | Sensitive, domain: Hierarchy, values: Any) -> Codes:
        if attribute.role == "sensitive":
            return band_codes(_edges(attribute), values)
        return super().codes(attribute, domain, values)

    def span(self, text: str, scale: Sequence[Any]) -> Span | None:
        bounds = number_bounds(text)
        if bounds is None:
            return None
        first = (bisect_right if bounds.above else bisect_left)(scale, bounds.low)
        return span_of(first, (bisect_left if bounds.below else bisect_right)(scale, bounds.high) - 1)

    def raw_codes(self, attribute: Sensitive, texts: Sequence[str]) -> Codes:
        """The band of numbers, and of intervals that lie in one band."""
        edges, ends = _edges(attribute), interpret_numbers(texts)
        low = band_codes(edges, np.where(ends.above, np.nextafter(ends.low, np.inf), ends.low))
        high = band_codes(edges, np.where(ends.below, np.nextafter(ends.high, -np.inf), ends.high))
        return np.where(low == high, low, np.int32(-1))

    def may_list(self, text: str) -> bool:
        return AMBIGUOUS.fullmatch(text) is None

    def is_open(self, text: str) -> bool:
        bounds = number_bounds(text)
        return bounds is not None and (math.isinf(bounds.low) or math.isinf(bounds.high))

    def ends(self, attribute: QuasiIdentifier, texts: Sequence[str]) -> Any:
        return interpret_numbers(texts).ends()

    def explains(self, ends: Any) -> bool:
        return bool((ends == np.floor(ends)).all())

    def with_another(self, attribute: QuasiIdentifier, ends: Any) -> Any:
        return np.append(ends, [ends[-1] + 1] if len(ends) else [0.0, 1.0])


def _edges(attribute: Sensitive) -> Sequence[float]:
    if attribute.bands is None:
        raise PolicyError(Problem("a sensitive number needs bands", key="bands"))
    return attribute.bands


def _limits(attribute: QuasiIdentifier | Sensitive, numbers: Floats) -> Iterator[tuple[Mask, str, str]]:
    """Which numbers are beyond what the policy says about their size, in words and by its key."""
    if attribute.role == "quasi-identifier" and attribute.range is not None:
        low, high = attribute.range
        yield (numbers < low) | (numbers > high), f"the range {text(float(low))} to {text(float(high))}", "range"
    if attribute.bands is not None:
        yield band_codes(attribute.bands, numbers) < 0, "the bands", "bands"


NUMBER = Number()
