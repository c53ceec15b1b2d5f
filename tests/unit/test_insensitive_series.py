"""Insensitive cells of a series: kept in the ledger, the same for a person unless they may change, never emptied."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from ledgers import KEY
from sequester.domain.plain import plain_cells, plain_codes
from sequester.ledger import Ledger, State

VALUES = ["flu", "cold", "gout", "asthma"]


def rules(**bed: Any) -> sq.Policy:
    return sq.Policy.model_validate(
        {
            "version": 1,
            "series": "wards",
            "person": "id",
            "attributes": {
                "age": {"role": "quasi-identifier", "kind": "number", "range": [0, 99]},
                "value": {"role": "sensitive"},
                "bed": {"role": "insensitive", **bed},
            },
            "protect": {"k": 2, "confidence": 0.5},
            "method": {"name": "merge"},
        }
    )


def people(numbers: list[int], beds: Any) -> pa.Table:
    return pa.table(
        {
            "id": [f"p{n}" for n in numbers],
            "age": [n * 7 % 90 for n in numbers],
            "value": [VALUES[n % 4] for n in numbers],
            "bed": beds if isinstance(beds, pa.Array) else [beds(n) for n in numbers],
        }
    )


def start(path: Path, beds: Any, **bed: Any) -> sq.Series:
    series = sq.Series.open(path / "wards.ledger", rules(**bed), key=KEY)
    series.publish(people(list(range(8)), beds), name="first", seed=2**63 + 1)
    return series


def test_an_insensitive_cell_that_may_not_change_and_does_is_an_error_that_names_the_column(tmp_path: Path) -> None:
    series = start(tmp_path, lambda n: f"SECRET-{n}")
    with pytest.raises(
        sq.DataError, match=r"'bed': 1 person has other values than in an earlier release \(row 1\)"
    ) as error:
        series.plan(people(list(range(8)), lambda n: f"SECRET-{max(n, 1)}"), name="second", seed=2**63 + 1)
    assert "SECRET" not in str(error.value)


def test_an_empty_cell_is_a_value_that_may_not_change_either(tmp_path: Path) -> None:
    series = start(tmp_path, lambda n: None if n == 3 else "b")
    same = people(list(range(8)), lambda n: None if n == 3 else "b")
    series.publish(same, name="second", seed=2**63 + 1, again=True)
    with pytest.raises(sq.DataError, match="1 person has other values"):
        series.plan(people(list(range(8)), lambda n: "b"), name="third", seed=2**63 + 1)


def test_an_insensitive_cell_that_may_change_changes(tmp_path: Path) -> None:
    series = start(tmp_path, lambda n: f"b{n}", changes=True)
    release = series.publish(people(list(range(8)), lambda n: f"c{n}"), name="second", seed=2**63 + 1)
    assert sorted(release.table["bed"].to_pylist()) == [f"c{n}" for n in range(8)]


@pytest.mark.parametrize(
    "beds",
    [
        [f"b{n}" for n in range(8)],
        list(range(8)),
        [n + 0.25 for n in range(8)],
        [n % 2 == 0 for n in range(8)],
        [date(2020, 1, n + 1) for n in range(8)],
        [None, "*", "missing", "", "x", "x", "x", "x"],
        pa.array(["u", "v"] * 4).dictionary_encode(),
    ],
    ids=["text", "integers", "floats", "truth", "dates", "odd cells", "dictionary"],
)
@pytest.mark.parametrize("changes", [False, True])
def test_people_who_are_kept_show_what_stays_as_it_was_and_of_what_changes_what_others_show(
    tmp_path: Path, beds: list[Any] | pa.Array, changes: bool
) -> None:
    cells = beds if isinstance(beds, pa.Array) else pa.array(beds)
    series = sq.Series.open(tmp_path / "wards.ledger", rules(changes=changes), key=KEY)
    first = series.publish(people(list(range(8)), cells), name="first", seed=2**63 + 1)
    plan = series.plan(people(list(range(1, 8)), cells.slice(1)), name="second", seed=2**63 + 1)
    assert plan.waiting.retained == 1
    second = series.publish(plan)
    assert second.table.schema == first.table.schema
    shown = sorted(map(str, second.table["bed"].to_pylist()))
    if changes:
        assert set(shown) == set(map(str, cells.slice(1).to_pylist()))
        assert len(shown) == 8
    else:
        assert shown == sorted(map(str, first.table["bed"].to_pylist()))


def test_a_year_does_not_mark_those_who_are_kept(tmp_path: Path) -> None:
    series = start(tmp_path, lambda n: "2025", changes=True)
    plan = series.plan(people(list(range(1, 8)), lambda n: "2026"), name="second", seed=2**63 + 1)
    assert plan.waiting.retained == 1
    assert series.publish(plan).table["bed"].to_pylist() == ["2026"] * 8
    third = series.plan(people(list(range(1, 8)), lambda n: "2027"), name="third", seed=2**63 + 1)
    assert series.publish(third).table["bed"].to_pylist() == ["2027"] * 8


def test_cells_of_another_type_than_the_column_has_now_make_it_text(tmp_path: Path) -> None:
    series = start(tmp_path, lambda n: "?" if n == 0 else str(n), changes=True)
    release = series.publish(people(list(range(1, 8)), pa.array(range(1, 8))), name="second", seed=2**63 + 1)
    assert set(release.table["bed"].to_pylist()) == set("1234567")


def test_a_ledger_that_never_kept_insensitive_cells_cannot_go_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = start(tmp_path, lambda n: "b")
    load = Ledger.load

    def forgetful(ledger: Ledger) -> State:
        found = load(ledger)
        return replace(found, insensitive=(), plain=found.plain[:0])

    monkeypatch.setattr(Ledger, "load", forgetful)
    with pytest.raises(sq.LedgerError, match="did not keep insensitive cells"):
        series.plan(people(list(range(8)), lambda n: "b"), name="second", seed=2**63 + 1)


def test_codes_of_plain_cells_go_back_to_the_cells() -> None:
    column = pa.chunked_array([pa.array(["b", None, "*"]), pa.array(["missing", "", "b"])])
    domain, codes = plain_codes(column)
    assert plain_cells(domain, codes, pa.string()).to_pylist() == column.to_pylist()
    assert codes[1] == domain.size - 1
    later, now = plain_codes(pa.chunked_array([["a", "b"]]), domain)
    assert later.leaves[: domain.size - 1].tolist() == domain.leaves[:-1].tolist()
    assert plain_cells(later, now, pa.string()).to_pylist() == ["a", "b"]
    same, _ = plain_codes(pa.chunked_array([["b"]]), later)
    assert same is later
    nothing, none = plain_codes(pa.chunked_array([pa.nulls(2)]))
    assert (nothing.size, np.unique(none).tolist()) == (1, [0])
