"""People whose cells that do not change did change: told by column and row, or held out as a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sequester as sq
from towns import AGES, KEY, SEED, TOWNS, VALUES, people, rules

OTHER = {"flu": "cold", "cold": "flu", "asthma": "gout", "gout": "asthma"}


def opened(folder: Path, **changes: Any) -> sq.Series:
    series = sq.Series.open(folder / "first.ledger", rules(**changes), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    return series


def corrected(count: int, *numbers: int) -> dict[int, str]:
    assert max(numbers) < count
    return {n: OTHER[VALUES[n]] for n in numbers}


def test_the_error_names_columns_and_rows_and_no_cell(tmp_path: Path) -> None:
    series = opened(tmp_path)
    far = {n: int((AGES[n] + 30) % 60) for n in (4, 9)}
    moved = {20: "Rome" if TOWNS[20] != "Rome" else "Paris"}
    table = people(150, value=corrected(100, 2, 3), age=far, town=moved)
    with pytest.raises(sq.DataError, match="other values than in an earlier release") as caught:
        series.plan(table, name="two", seed=SEED)
    told = {problem.column: (problem.rows, problem.message) for problem in caught.value.problems}
    assert told["age"][0] == 2
    assert "(rows 5, 10)" in told["age"][1]
    assert told["value"][0] == 2
    assert "(rows 3, 4)" in told["value"][1]
    # Inside the published boxes nobody can tell which one it was.
    assert (told.keys() - {"age", "value"}) in ({"town"}, {None})
    assert "begin a new series" not in str(caught.value)
    assert not any(word in str(caught.value) for word in ("flu", "Rome", "p2"))


def test_rows_are_not_numbered_where_the_numbers_would_be_others(tmp_path: Path) -> None:
    age = {"role": "quasi-identifier", "kind": "number", "range": [0, 59], "levels": [5, 20], "missing": "suppress"}
    series = opened(tmp_path, attributes__age=age)
    table = people(150, value=corrected(100, 2), age={0: None})
    with pytest.raises(sq.DataError, match="1 person has other values than in an earlier release; correct"):
        series.plan(table, name="two", seed=SEED)


def test_whoever_was_corrected_is_held_out_with_all_who_leave(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out")
    gone = (2, 3, 4, 5, 40, 41, 42, 43)
    plan = series.plan(people(160, leave=gone[4:], value=corrected(100, *gone[:4])), name="two", seed=SEED)
    assert plan.holds
    assert (plan.change.leavers, plan.change.newcomers, plan.change.stayers) == (8, 60, 92)
    assert plan.waiting.retained in (0, 8)
    series.publish(plan)
    assert series.audit().holds


def test_a_corrected_person_who_cannot_be_hidden_is_published_on_as_she_was(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out")
    plan = series.plan(people(160, value=corrected(100, 2)), name="two", seed=SEED)
    assert (plan.change.leavers, plan.waiting.retained, plan.records) == (1, 1, 160)
    assert plan.candidate is not None
    before, now = series.publish(plan).table["value"], people(160)["value"]
    assert sorted(before.to_pylist()) == sorted(now.to_pylist())


def test_with_refuse_a_corrected_person_alone_stops_the_release(tmp_path: Path) -> None:
    series = opened(tmp_path, corrections="hold-out", infeasible="refuse")
    with pytest.raises(sq.GuaranteeError, match="cannot be hidden"):
        series.plan(people(160, value=corrected(100, 2)), name="two", seed=SEED)
