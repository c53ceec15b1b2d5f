"""Reading release folders: what cells say, in numbers, and nothing without the data that was published."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sequester as sq
from sequester.ledger import Key

CANARY = "CANARY-7f3a"
KEY = Key(b"r" * 32)
SEED = 1 << 63 | 3
TOWNS = {"Land": {"North": ["Kiel", "Bremen"], "South": ["Ulm", "Hof"]}}


def people(count: int = 60, *, missing: bool = False) -> pa.Table:
    random = np.random.default_rng(7)
    most = 240
    ages = random.integers(20, 60, most).tolist()
    table = pa.table(
        {
            "id": [f"p{n}" for n in range(most)],
            "age": [None if missing and n % 20 == 0 else age for n, age in enumerate(ages)],
            "wage": np.round(random.lognormal(3, 0.5, most), 5),
            "born": np.datetime64("1950-01-10") + random.integers(0, 12_000, most),
            "town": random.choice(["Kiel", "Bremen", "Ulm", "Hof"], most),
            "zip": [f"{n:03d}" for n in random.integers(0, 40, most)],
            "illness": random.choice(["=flu", "gout", "none"], most),
            "hours": random.integers(10, 40, most),
        }
    )
    return table.slice(0, count)


def rules(**changes: Any) -> sq.Policy:
    quasi = {"role": "quasi-identifier"}
    raw = {
        "version": 1,
        "series": "readers",
        "person": "id",
        "attributes": {
            "age": {**quasi, "kind": "number", "range": [0, 99], "missing": "category"},
            "wage": {**quasi, "kind": "number", "range": [0, 200]},
            "born": {**quasi, "kind": "date"},
            "town": {**quasi, "hierarchy": TOWNS},
            "zip": {**quasi, "kind": "code", "length": 3},
            "illness": {"role": "sensitive"},
            "hours": {"role": "insensitive", "changes": True},
        },
        "protect": {"k": 3, "confidence": 0.9},
        "method": {"name": "mondrian"},
    }
    return sq.Policy.model_validate({**raw, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sq.anonymize(people(), rules(), seed=1).save(tmp_path / "r")
    return tmp_path / "r"


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("missing", [False, True])
def test_bounds_and_intervals_read_alike_and_hold_everybody(tmp_path: Path, format: str, missing: bool) -> None:
    frames, table = {}, people(missing=missing)
    for numbers in ("bounds", "interval"):
        output = {"numbers": numbers, "format": format, "formulas": "escape"}
        sq.anonymize(table, rules(output=output), seed=1).save(tmp_path / numbers)
        frames[numbers] = sq.read_release(tmp_path / numbers, "arrow")
    bounds, intervals = frames["bounds"], frames["interval"]
    names = ["wage_lo", "wage_hi", "wage_mid", "wage_exact", "town", "born_lo", "born_hi", "illness", "weight"]
    if not missing:
        names += ["age_lo", "age_hi", "age_exact", "class"]
        assert bounds.select(names).equals(intervals.select(names))
    assert sorted(bounds["illness"].to_pylist()) == sorted(table["illness"].to_pylist())
    for name in ("wage", "born"):
        low, high, raw = (
            sorted(column.to_pylist()) for column in (bounds[f"{name}_lo"], bounds[f"{name}_hi"], table[name])
        )
        assert all(one <= value <= other for one, value, other in zip(low, raw, high, strict=True))
    assert bounds["hours"].to_pylist()
    assert set(bounds["hours"].to_pylist()) == set(table["hours"].to_pylist())
    assert ("age_missing" in bounds.column_names) == missing


def test_numbers_are_numbers_days_are_days_and_names_stay(folder: Path) -> None:
    table = sq.read_release(folder, "arrow", leaves=True)
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    assert kinds["age_lo"] == kinds["age_hi"] == kinds["class"] == kinds["hours"] == pa.int64()
    assert kinds["wage_mid"] == kinds["age_mid"] == kinds["weight"] == pa.float64()
    assert kinds["born_lo"] == kinds["born_mid"] == pa.date32()
    assert kinds["town_exact"] == pa.bool_()
    for row in table.to_pylist():
        assert row["age_lo"] <= row["age_mid"] <= row["age_hi"]
        assert row["age_exact"] == (row["age_lo"] == row["age_hi"])
        assert isinstance(row["born_mid"], date)
        assert row["town_exact"] == (row["town"] in ("Kiel", "Bremen", "Ulm", "Hof"))
        leaves = {"North": ["Kiel", "Bremen"], "South": ["Ulm", "Hof"], "*": None}
        if row["town"] in leaves:
            assert row["town_leaves"] == leaves[row["town"]]


def test_a_class_is_rows_that_look_alike(folder: Path) -> None:
    table = sq.read_release(folder, "arrow")
    seen: dict[int, set[Any]] = {}
    for row in table.to_pylist():
        box = tuple(
            row[name] for name in ("age_lo", "age_hi", "wage_lo", "wage_hi", "born_lo", "born_hi", "town", "zip")
        )
        seen.setdefault(row["class"], set()).add(box)
    assert all(len(boxes) == 1 for boxes in seen.values())
    assert len({next(iter(boxes)) for boxes in seen.values()}) == len(seen) > 5
    assert min(np.bincount(np.array(table["class"]))) >= 3


def test_weights_count_people_where_some_rows_are_decoys(tmp_path: Path) -> None:
    table = people(61)
    release = sq.anonymize(table, rules(method={"name": "pods"}, protect={"k": 3, "confidence": 0.5}), seed=1)
    release.save(tmp_path / "r")
    frame = sq.read_release(tmp_path / "r")
    assert len(frame) > 61
    assert frame["weight"].sum() == pytest.approx(61, abs=1e-3)
    assert frame["weight"].nunique() == 1


def test_a_column_of_the_table_that_is_named_weight_is_not_what_rows_stand_for(tmp_path: Path) -> None:
    table = people(61)
    table = table.append_column("weight", pa.array([str(at % 3) for at in range(61)]))
    podded = rules(method={"name": "pods"}, protect={"k": 3, "confidence": 0.5})
    raw = podded.model_dump(mode="json", exclude_unset=True)
    raw["attributes"]["weight"] = {"role": "insensitive", "changes": True}
    with pytest.raises(sq.PolicyError, match=r"output: \{weights: none\}"):
        sq.Policy.model_validate(raw)
    sq.anonymize(table, sq.Policy.model_validate({**raw, "output": {"weights": "none"}}), seed=1).save(tmp_path / "r")
    frame = sq.read_release(tmp_path / "r")
    assert set(frame["weight"]) == {0, 1, 2}
    assert frame["weight_"].sum() == pytest.approx(61, abs=1e-3)
    assert sq.estimate(frame, "count()").value == (61,)
    assert sq.estimate(tmp_path / "r", "count()").value == (61,)


def test_middles_have_no_ends_and_are_not_exact(tmp_path: Path) -> None:
    sq.anonymize(people(), rules(output={"numbers": "midpoint"}), seed=1).save(tmp_path / "r")
    frame = sq.read_release(tmp_path / "r")
    assert frame["wage_lo"].isna().all()
    assert frame["wage_mid"].between(0, 200).all()
    assert not frame["wage_exact"].any()
    with pytest.raises(sq.DataError, match="column 'wage': the release has no such column, or only its middle"):
        sq.estimate(tmp_path / "r", "mean(wage)")


@pytest.mark.parametrize("as_", ["pandas", "polars", "arrow"])
def test_frames_of_every_library_have_the_same_cells(folder: Path, as_: Any) -> None:
    frame = sq.read_release(folder, as_)
    table = pa.Table.from_pandas(frame) if as_ == "pandas" else frame.to_arrow() if as_ == "polars" else frame
    right = sq.read_release(folder, "arrow")
    assert table.column_names == right.column_names
    assert table["wage_lo"].to_pylist() == right["wage_lo"].to_pylist()
    assert [str(cell) for cell in table["town"].to_pylist()] == right["town"].to_pylist()


def test_an_edited_file_is_refused_unless_one_says_so(folder: Path) -> None:
    data = folder / "data.csv"
    data.write_text(data.read_text().replace("gout", CANARY))
    with pytest.raises(sq.DataError, match="is not the file that was published") as told:
        sq.read_release(folder)
    assert CANARY not in str(told.value)
    assert CANARY in sq.read_release(folder, "arrow", verify=False)["illness"].to_pylist()


def test_cells_that_are_no_numbers_are_not_quoted(folder: Path) -> None:
    data = folder / "data.csv"
    lines = data.read_text().splitlines()
    data.write_text("\n".join([lines[0], CANARY + lines[1][lines[1].index(",") :], *lines[2:]]))
    with pytest.raises(sq.DataError, match="this is not the data of a release") as told:
        sq.read_release(folder, verify=False)
    assert CANARY not in str(told.value)


@pytest.mark.parametrize("facts", [None, "{", "[]", '{"columns": [{"name": "age"}]}'])
def test_what_is_no_release_folder_is_said_to_be_none(tmp_path: Path, facts: str | None) -> None:
    if facts is not None:
        (tmp_path / "release.json").write_text(facts)
    with pytest.raises(sq.DataError, match=r"no release folder|cannot be read|does not describe its columns"):
        sq.read_release(tmp_path)
    with pytest.raises(sq.DataError, match="there is no such folder"):
        sq.read_release(tmp_path / "nowhere")


def test_a_name_in_release_json_leads_out_of_no_folder(folder: Path, tmp_path: Path) -> None:
    facts = json.loads((folder / "release.json").read_text())
    (tmp_path / "data.csv").write_text(CANARY)
    (folder / "release.json").write_text(json.dumps({**facts, "data": "../data.csv"}))
    assert len(sq.read_release(folder)) == 60


def test_a_series_is_stacked_in_order(tmp_path: Path) -> None:
    policy = rules(protect={"k": 3, "confidence": 0.9})
    series = sq.Series.open(tmp_path / "readers.ledger", policy, key=KEY)
    for number in (1, 2):
        series.publish(people(60 * number), name=f"r{number}", seed=SEED + number)
    table = sq.read_series(series.folder / "readers", "arrow")
    assert table.column_names[:2] == ["release", "name"]
    assert table["release"].to_pylist() == sorted(table["release"].to_pylist())
    assert set(zip(table["release"].to_pylist(), table["name"].to_pylist(), strict=True)) == {(1, "r1"), (2, "r2")}
    told = sq.estimate(series.folder / "readers", "mean(age) by release")
    assert [group[0] for group in told.groups] == [1, 2]
    assert told.people == (60, 120)
    with pytest.raises(sq.DataError, match="has no release folders in it"):
        sq.read_series(tmp_path)


def test_a_series_whose_numbers_are_written_otherwise_says_so_once(tmp_path: Path) -> None:
    for numbers, noted in (("interval", False), ("bounds", True), ("bounds", False)):
        policy = rules(output={"numbers": numbers})
        series = sq.Series.open(tmp_path / "readers.ledger", policy, key=KEY)
        number = len(series.releases()) + 1
        plan = series.plan(people(60 * number), name=f"r{number}", seed=SEED + number)
        assert any("`output: {numbers: interval}` keeps them" in note for note in plan.notes) == noted
        series.publish(plan)
    table = sq.read_series(series.folder / "readers", "arrow")
    assert set(table["release"].to_pylist()) == {1, 2, 3}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named(folder: Path, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(sq.MissingLibrary, match=f"{library} is not installed.*as_='arrow'"):
        sq.read_release(folder, library)
    assert len(sq.read_release(folder, "arrow")) == 60
