"""The answer to a question from one table, as if that were the private one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.analyst.question import Condition, ParsedQuestion
from sequester.analyst.spread import DrawnTables
from sequester.errors import DataError, Problem

Floats = NDArray[np.float64]

_MOST_GROUPS = 200
_COMPARE = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Figure(NamedTuple):
    """A figure, and how many people it is about."""

    value: float
    people: float


def answers(
    asked: ParsedQuestion, table: DrawnTables, number: int, times: NDArray[Any]
) -> dict[tuple[Any, ...], Figure]:
    """The answer for every group, from one of the tables; `times` is how often each row counts."""
    counted = np.asarray(times, np.float64)
    for condition in asked.where:
        counted = counted * _meets(condition, table, number)
    rows = np.flatnonzero(counted > 0)
    if asked.what == "ols":
        return _least_squares(asked, table, number, rows, counted[rows])
    member, keys = _groups(asked.by, table, number, rows)
    found: dict[tuple[Any, ...], Figure] = {}
    order = np.argsort(member, kind="stable")
    cuts = np.searchsorted(member[order], np.arange(len(keys) + 1))
    for at, key in enumerate(keys):
        mine = rows[order[cuts[at] : cuts[at + 1]]]
        if len(mine) or not asked.by:
            found[key] = _figure(asked, table, number, mine, counted[mine])
    return found


def guessed(condition: Condition, table: DrawnTables) -> float:
    """The share of rows that meet a condition in some tables and not in others."""
    met = np.array([_meets(condition, table, number) for number in range(len(table.keep))])
    return float((met.any(axis=0) & ~met.all(axis=0)).mean()) if met.size else 0.0


def _figure(asked: ParsedQuestion, table: DrawnTables, number: int, rows: NDArray[np.int64], weight: Floats) -> Figure:
    people = float(weight.sum())
    if asked.what == "count":
        return Figure(people, people)
    if asked.what == "share":
        share = np.ones(len(rows))
        for condition in asked.of:
            share = share * _meets(condition, table, number)[rows]
        return Figure(float((share * weight).sum() / people) if people else np.nan, people)
    values = np.asarray(table.of(asked.columns[0], number)[rows], np.float64)
    there = np.isfinite(values)
    values, weight = values[there], weight[there]
    people = float(weight.sum())
    if asked.what == "sum":
        return Figure(float((values * weight).sum()), people)
    if not people:
        return Figure(np.nan, 0.0)
    if asked.what == "mean":
        return Figure(float((values * weight).sum() / people), people)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order]) / people
    return Figure(float(values[order][min(int(np.searchsorted(below, asked.part)), len(order) - 1)]), people)


def _least_squares(
    asked: ParsedQuestion, table: DrawnTables, number: int, rows: NDArray[np.int64], weight: Floats
) -> dict[tuple[Any, ...], Figure]:
    """Coefficients of a linear model; names are one term per value but the first."""
    terms: list[tuple[str, Floats]] = [("(intercept)", np.ones(len(rows)))]
    for name in asked.columns[1:]:
        column = table.of(name, number)[rows]
        if name in table.names:
            used = table.names[name]
            terms += [(f"{name} = {leaf}", (column == at) * 1.0) for at, leaf in enumerate(used) if at]
        else:
            terms.append((name, np.asarray(column, np.float64)))
    if asked.columns[0] in table.names:
        raise DataError(
            Problem("has names and no numbers, so nothing can explain it linearly", column=asked.columns[0])
        )
    y = np.asarray(table.of(asked.columns[0], number)[rows], np.float64)
    design = np.column_stack([term for _, term in terms])
    there = np.isfinite(y) & np.isfinite(design).all(axis=1)
    root = np.sqrt(weight[there])
    if there.sum() <= design.shape[1]:
        raise DataError("there are fewer rows than terms in this model")
    beta = np.linalg.lstsq(design[there] * root[:, None], y[there] * root, rcond=None)[0]
    people = float(weight[there].sum())
    return {(name,): Figure(float(one), people) for (name, _), one in zip(terms, beta, strict=True)}


def _groups(
    by: Sequence[str], table: DrawnTables, number: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[tuple[Any, ...]]]:
    """The group of every row, and the values that each group has."""
    member, keys = np.zeros(len(rows), np.int64), list[tuple[Any, ...]]([()])
    for name in by:
        column = table.of(name, number)[rows]
        values, place = np.unique(column, return_inverse=True)
        if name not in table.names and len(values) > _MOST_GROUPS:
            said = f"has more than {_MOST_GROUPS} values; ask for some of them with `where`"
            raise DataError(Problem(said, column=name))
        member = member * len(values) + place
        keys = [(*key, _shown(table, name, value)) for key in keys for value in values.tolist()]
    return member, keys


def _shown(table: DrawnTables, name: str, value: Any) -> Any:
    if name in table.names:
        return table.names[name][value] if value >= 0 else ""
    if name in table.days:
        return date.fromordinal(int(value) + 719_163).isoformat()
    return int(value) if float(value).is_integer() else float(value)


def _meets(condition: Condition, table: DrawnTables, number: int) -> NDArray[np.bool_]:
    column, name = table.of(condition.column, number), condition.column
    if name in table.names:
        if condition.operator not in ("=", "!="):
            raise DataError(Problem("has names, which are the same or not, and neither more nor less", column=name))
        leaves = table.names[name]
        if not set(condition.values) <= set(leaves):
            raise DataError(Problem("has no such value in this release", column=name))
        found = np.isin(column, [leaves.index(value) for value in condition.values])
        return found if condition.operator == "=" else ~found & (column >= 0)
    wanted = [_number(value, name, days=name in table.days) for value in condition.values]
    compare = _COMPARE[condition.operator]
    met: NDArray[np.bool_] = np.any([compare(column, one) for one in wanted], axis=0) & np.isfinite(column)
    return met


def _number(text: str, column: str, *, days: bool) -> float:
    try:
        return float(date.fromisoformat(text).toordinal() - 719_163) if days else float(text)
    except ValueError:
        what = "a day, such as 2024-05-01" if days else "a number"
    raise DataError(Problem(f"is compared with something that is not {what}", column=column))
