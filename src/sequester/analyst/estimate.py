"""Estimates from a release, with intervals that say how much was hidden.

The table is drawn many times as it may have been (`spread`), the question is answered for each, and the answers are
combined by Rubin's rules. An interval is about the private table's own figure, unless the population is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from sequester.analyst.answer import Figure, answers, guessed
from sequester.analyst.frames import releases_of
from sequester.analyst.question import ParsedQuestion, parse
from sequester.analyst.result import Estimate
from sequester.analyst.spread import DrawnTables, draw
from sequester.errors import DataError, Problem

Target = Literal["table", "population"]
_FIRST = "{name} is what a person had when she was first published; what it became later is not published"
_THRESHOLD = (
    "this is not answered well: {share:.0%} of the rows have {name} in a range that goes across what is asked, and "
    "people heap at values inside it; publish {name} more finely to ask this"
)
_DECOYS = (
    "{share:.1%} of the rows are about nobody, and which values of {name} they have is not published: a share of rows "
    "may be off by up to that, and intervals allow for what is likely only"
)
_MANY = 0.1
"""Rows of which only draws say whether they meet a condition, from which on an answer is a guess."""

_BOOTSTRAPS = 60
_MOST_KEPT = 4
_KEPT: dict[tuple[Any, ...], DrawnTables] = {}


def estimate(
    data: Any,
    question: str,
    *,
    level: float = 0.9,
    target: Target = "table",
    draws: int = 20,
    seed: int = 0,
) -> Estimate:
    """Figure a question about the people of a release, or of each release of a series.

    data      a release, its folder, the folder of a series, or a frame by `read_release` or `read_series`
    question  count(), mean(x), sum(x), quantile(x, 0.5), median(x), share(x = v) or ols(y ~ x + z), then perhaps
              `by a, b` and `where x >= 3 and y in {v, w}`
    level     of the intervals
    target    table: the figure of the private table itself; population: of those that it is a sample of
    draws     tables that are drawn; the same `seed` gives the same estimate
    """
    asked = parse(question)
    if not 0 < level < 1 or draws < 2 or target not in ("table", "population"):
        raise DataError("level is between 0 and 1, draws at least 2, and target 'table' or 'population'")
    table = _drawn(data, draws, seed)
    _check(asked, table)
    found = [answers(asked, table, number, table.keep[number]) for number in range(draws)]
    within = _sampling(asked, table, seed) if target == "population" else {}
    first = (_FIRST.format(name=name) for name in asked.named if name in table.first)
    return _combined(asked, found, within, (*first, *_doubts(asked, table)), level=level, target=target)


def _doubts(asked: ParsedQuestion, table: DrawnTables) -> Iterator[str]:
    """Why intervals may be too narrow: what was asked is of a kind that they held too seldom for (docs/analyst.md)."""
    for condition in dict.fromkeys((*asked.of, *asked.where)):
        share = guessed(condition, table) if condition.column not in table.names else 0.0
        if share >= _MANY:
            yield _THRESHOLD.format(name=condition.column, share=share)
    decoys = 1 - float(table.keep.mean())
    conditions = asked.of if asked.what == "share" else ()
    names = dict.fromkeys((*(one.column for one in conditions), *asked.by))
    for name in names if decoys > 0 else ():
        if name in table.names:
            yield _DECOYS.format(name=name, share=decoys)


def _drawn(data: Any, draws: int, seed: int) -> DrawnTables:
    """The tables of a release, or of a series; those drawn last are kept, since one asks more than one question."""
    releases = releases_of(data)
    key = (*(one.digest() for one in releases), draws, seed)
    if key not in _KEPT:
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[key] = _together([draw(one, draws=draws, seed=seed) for one in releases])
    return _KEPT[key]


def _together(parts: Sequence[DrawnTables]) -> DrawnTables:
    """The tables of several releases, one below the other."""
    if len(parts) == 1:
        return parts[0]
    names = {
        name: tuple(sorted({leaf for part in parts for leaf in part.names.get(name, ())}))
        for name in {name for part in parts for name in part.names}
    }
    draws, values = len(parts[0].keep), {}
    shared = [name for name in parts[0].values if all(name in part.values for part in parts)]
    for name in shared:
        columns = []
        for part in parts:
            column = part.values[name]
            if name in names:
                place = [names[name].index(leaf) for leaf in part.names[name]]
                column = np.append(place, -1).astype(np.int32)[column]
            columns.append(np.broadcast_to(column, (draws, column.shape[1])))
        values[name] = np.concatenate(columns, axis=1)
    kept = {name: leaves for name, leaves in names.items() if name in values}
    return DrawnTables(
        values,
        kept,
        np.concatenate([part.keep for part in parts], axis=1),
        parts[0].days,
        frozenset().union(*(part.first for part in parts)),
    )


def _check(asked: ParsedQuestion, table: DrawnTables) -> None:
    unknown = [name for name in asked.named if name not in table.values]
    if unknown:
        raise DataError(
            Problem("the release has no such column, or only its middle is published", column=name) for name in unknown
        )
    words = [name for name in asked.columns if name in table.names and asked.what != "ols"]
    if words:
        raise DataError(Problem("has names and no numbers; ask for share(x = v) or count() by x", column=words[0]))


def _sampling(asked: ParsedQuestion, table: DrawnTables, seed: int) -> dict[tuple[Any, ...], float]:
    """How much answers would differ if other people had been sampled: the variance over people drawn once more."""
    random = np.random.default_rng([seed, 1])
    rows = np.flatnonzero(table.keep[0])
    found: dict[tuple[Any, ...], list[float]] = {}
    for _ in range(_BOOTSTRAPS):
        times = np.bincount(random.choice(rows, len(rows)), minlength=table.keep.shape[1])
        for key, answer in answers(asked, table, 0, times).items():
            found.setdefault(key, []).append(answer.value)
    return {key: float(np.nanvar(values, ddof=1)) for key, values in found.items() if len(values) > 1}


def _combined(
    asked: ParsedQuestion,
    found: Sequence[dict[tuple[Any, ...], Figure]],
    within: dict[tuple[Any, ...], float],
    notes: tuple[str, ...],
    *,
    level: float,
    target: Target,
) -> Estimate:
    """Rubin's rules, group by group; a group that some tables do not have counts as 0 where rows are counted."""
    from scipy.stats import t

    draws = len(found)
    zero = asked.what in ("count", "sum")
    keys = sorted({key for answered in found for key in answered}, key=_order)
    kept: list[tuple[Any, ...]] = []
    rows: dict[str, list[float]] = {name: [] for name in ("value", "se", "low", "high", "people")}
    for key in keys:
        told = [answered.get(key) for answered in found]
        values = np.array([(0.0 if zero else math.nan) if one is None else one.value for one in told])
        people = float(np.mean([0 if one is None else one.people for one in told]))
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        kept.append(key)
        if np.ptp(values) <= 1e-12 * max(1.0, abs(values[0])):
            # Known: sums in another order differ behind the digits that count.
            values = values[:1]
        between = float(values.var(ddof=1)) if len(values) > 1 else 0.0
        hidden = between * (1 + 1 / draws)
        variance = hidden + within.get(key, 0.0)
        freedom = (draws - 1) * (variance / hidden) ** 2 if hidden > 0 else math.inf
        reach = float(t.ppf(0.5 + level / 2, freedom)) if math.isfinite(freedom) else 1.959964
        middle, se = float(values.mean()), math.sqrt(variance)
        low, high = middle - reach * se, middle + reach * se
        if asked.what in ("count", "share"):
            low, high = max(low, 0.0), min(high, 1.0) if asked.what == "share" else high
        for name, number in (("value", middle), ("se", se), ("low", low), ("high", high), ("people", people)):
            rows[name].append(number)
    columns = ("term",) if asked.what == "ols" else asked.by
    return Estimate(
        question=asked.text,
        by=columns,
        groups=tuple(kept),
        value=tuple(rows["value"]),
        se=tuple(rows["se"]),
        low=tuple(rows["low"]),
        high=tuple(rows["high"]),
        people=tuple(rows["people"]),
        level=level,
        target=target,
        draws=draws,
        notes=notes,
    )


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((isinstance(part, str), part) for part in key)
