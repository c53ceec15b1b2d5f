"""Numbers: distinct values or every integer of a range, in bands of growing width or of given edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy, nested
from sequester.errors import DataError, PolicyError, Problem

Floats = NDArray[np.float64]
Level = tuple[Codes, tuple[str, ...]]

LARGEST_RANGE = 65_535
_EXACT = 2.0**53


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
    _raise(_edge_problems(edges))
    names = tuple(_band_names(edges, whole=False))
    codes = np.arange(len(names), dtype=np.int32)
    position = codes / max(len(names) - 1, 1)
    return nested("category", np.array(names, object), [(codes, names)], position=position, missing=missing)


def band_codes(edges: Sequence[float], values: Floats) -> Codes:
    """The band of every number: [e0, e1), [e1, e2), ..., the last one closed; -1 outside the edges and for NaN."""
    numbers = np.asarray(values, np.float64)
    found = np.searchsorted(np.asarray(edges, np.float64), numbers, side="right").astype(np.int32) - np.int32(1)
    found[numbers == edges[-1]] = len(edges) - 2
    found[(numbers > edges[-1]) | np.isnan(numbers)] = -1
    return found


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
    problems = []
    if range is not None and not (math.isfinite(range[0]) and math.isfinite(range[1]) and range[0] < range[1]):
        problems.append(Problem("the lower end must be below the upper end, both finite", key="range"))
    if bands is not None and levels is not None:
        problems.append(Problem("give either bands or levels, not both", key="bands"))
    if bands is not None:
        problems += _edge_problems(bands)
    if levels is not None:
        if not all(math.isfinite(width) and width > 0 for width in levels):
            problems.append(Problem("every width must be a positive number", key="levels"))
        else:
            problems += [
                Problem(f"width {text(b)} is not a larger multiple of {text(a)}, the one before", key="levels")
                for a, b in pairwise(map(float, levels))
                if b <= a or b / a >= _EXACT or _exact(b) % _exact(a) != 0
            ]
    _raise(problems)


def _edge_problems(edges: Sequence[float]) -> list[Problem]:
    if len(edges) < 2 or not any(map(math.isfinite, edges)):
        return [Problem("bands need at least two edges, one of them finite", key="bands")]
    if any(math.isnan(edge) for edge in edges):
        return [Problem("an edge is not a number", key="bands")]
    return [
        Problem(f"edges must increase, but {text(float(b))} follows {text(float(a))}", key="bands")
        for a, b in pairwise(edges)
        if not a < b
    ]


def _banded(leaves: Floats, edges: Sequence[float], *, declared: bool) -> Level:
    codes = band_codes(edges, leaves)
    if outside := int((codes < 0).sum()):
        if declared:
            raise PolicyError(Problem("the bands do not reach both ends of the range", key="bands"))
        raise DataError(f"{outside} distinct numbers are outside the bands")
    names = _band_names(edges, whole=_whole(leaves) and _whole([edge for edge in edges if math.isfinite(edge)]))
    found, starts = np.unique(codes, return_index=True)
    return starts.astype(np.int32), tuple(names[code] for code in found.tolist())


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
        found, starts = np.unique(band.astype(np.int64) // int(_exact(width) / _exact(widths[0])), return_index=True)
        names = []
        for index in found.tolist():
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


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise PolicyError(problems)
