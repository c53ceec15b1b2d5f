"""The invented hospital: the same everywhere, plausible, and fit for its policy."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sequester.datasets import hospital, hospital_panel, hospital_panel_policy, hospital_policy
from sequester.ingest import encode
from sequester.policy import Policy


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hospital(20_000, seed=3)


def column(table: pa.Table, name: str) -> np.ndarray:
    return table[name].to_numpy()


def test_the_same_seed_gives_the_same_table_and_another_seed_another() -> None:
    assert hospital(500, seed=4).equals(hospital(500, seed=4))
    assert not hospital(500, seed=4).equals(hospital(500, seed=5))


@pytest.mark.parametrize("salt", ["0", "1"])
def test_the_table_does_not_depend_on_the_process(salt: str) -> None:
    code = "from sequester.datasets import hospital; print(hospital(50, seed=4).to_pylist())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(hospital(50, seed=4).to_pylist())


@pytest.mark.parametrize("n", [0, 1, 7])
def test_there_are_as_many_people_as_asked_for(n: int) -> None:
    assert hospital(n).num_rows == n


def test_everybody_has_one_row_and_an_invented_name(table: pa.Table) -> None:
    assert len(set(column(table, "patient_id"))) == table.num_rows
    assert all(len(name.split()) == 2 for name in table["name"].to_pylist())


def test_values_are_in_their_domains(table: pa.Table) -> None:
    age, admitted = column(table, "age"), column(table, "admitted")
    assert 0 <= age.min() < 5
    assert 95 < age.max() <= 100
    assert {len(code) for code in table["zip"].to_pylist()} == {5}
    assert any(code.startswith("00") for code in table["zip"].to_pylist())
    assert len(set(admitted.astype("datetime64[Y]"))) == 1
    assert len(set(admitted)) == 365
    assert len(set(column(table, "diagnosis"))) == 15


def test_ordinary_diagnoses_are_the_most_frequent_and_serious_ones_come_with_age(table: pa.Table) -> None:
    diagnosis, age = column(table, "diagnosis"), column(table, "age")
    names, counts = np.unique(diagnosis, return_counts=True)
    assert set(names[np.argsort(counts)[-2:]]) == {"none", "flu"}
    assert counts.min() < counts.max() / 20
    serious = np.isin(diagnosis, ["stroke", "heart failure", "cancer"])
    assert age[serious].mean() > age[~serious].mean() + 15


def test_flu_is_a_thing_of_the_winter(table: pa.Table) -> None:
    month = column(table, "admitted").astype("datetime64[M]").astype(int) % 12
    flu = column(table, "diagnosis") == "flu"
    assert flu[month < 3].mean() > 2 * flu[(month > 3) & (month < 9)].mean()


def test_the_ward_says_nothing_about_the_diagnosis(table: pa.Table) -> None:
    ward, healthy = column(table, "ward"), column(table, "diagnosis") == "none"
    shares = [healthy[ward == one].mean() for one in np.unique(ward)]
    assert max(shares) - min(shares) < 0.05


def test_the_table_fits_its_policy(table: pa.Table, tmp_path) -> None:
    (tmp_path / "policy.yaml").write_text(hospital_policy())
    policy = Policy.load(tmp_path / "policy.yaml")
    assert set(policy.attributes) | {policy.person} == set(table.column_names)
    snapshot = encode(table, policy)
    assert (len(snapshot), snapshot.left_out) == (table.num_rows, 0)
    assert set(snapshot.sensitive_domains[0].names[0]) == set(column(table, "diagnosis"))


def test_patients_come_leave_return_and_change_but_for_what_stays() -> None:
    years = hospital_panel(2000, releases=4, seed=3)
    assert all(one.equals(two) for one, two in zip(years, hospital_panel(2000, releases=4, seed=3), strict=True))
    people = [{row["patient_id"]: row for row in year.to_pylist()} for year in years]
    came, left, back, moved = 0, 0, 0, 0
    for number, (before, after) in enumerate(pairwise(people)):
        ever = set().union(*people[: number + 1])
        came += len(set(after) - ever)
        left += len(set(before) - set(after))
        back += len((set(after) & ever) - set(before))
        for person in set(before) & set(after):
            assert all(before[person][name] == after[person][name] for name in ("name", "gender", "diagnosis"))
            assert after[person]["age"] - before[person]["age"] in (0, 1)
            moved += before[person]["zip"] != after[person]["zip"]
    assert min(came, left, back, moved) > 50
    assert len(set().union(*people)) == 2000


@pytest.mark.parametrize("n", [0, 1, 7])
def test_few_patients_are_a_panel_too(n: int) -> None:
    years = hospital_panel(n, releases=3)
    assert len({person for year in years for person in year["patient_id"].to_pylist()}) == n


def test_the_panel_fits_its_policy(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(hospital_panel_policy())
    policy = Policy.load(tmp_path / "policy.yaml")
    for year in hospital_panel(200, seed=3):
        assert len(encode(year, policy)) == year.num_rows
