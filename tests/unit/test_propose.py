"""The proposed policy: valid as it stands, well guessed, and without a cell of the table."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequester.errors import DataError
from sequester.ingest.encode import encode
from sequester.ingest.propose import propose
from sequester.policy import Policy

CANARY = "Xq7canary"


def policy_for(table: pa.Table | dict[str, list[Any]], folder: Path) -> Policy:
    """Propose, and load what was proposed: it must have no problems."""
    table = pa.table(table) if isinstance(table, dict) else table
    (folder / "policy.yaml").write_text(propose(table), encoding="utf-8")
    return Policy.load(folder / "policy.yaml")


def hospital(rows: int = 200) -> dict[str, list[Any]]:
    rng = random.Random(7)
    days = [date(2020, 1, 1) + timedelta(days=rng.randrange(900)) for _ in range(rows)]
    return {
        "patient_id": [f"P{n:04d}" for n in range(rows)],
        "full_name": [f"N{n % 150}" for n in range(rows)],
        "email": [f"{n}@example.org" for n in range(rows)],
        "sample": [f"S{n:05d}" for n in range(rows)],
        "age": [str(rng.randrange(18, 97)) for _ in range(rows)],
        "sex": [rng.choice("MF") for _ in range(rows)],
        "zip": [f"{rng.randrange(501, 99951):05d}" for _ in range(rows)],
        "admitted": [day.isoformat() for day in days],
        "discharged": [day.strftime("%d/%m/%Y") for day in days],
        "born": [day.replace(year=1952).strftime("%m/%d/%Y") for day in days],
        "height": [f"{rng.gauss(170, 9):.1f}" for _ in range(rows)],
        "hospital": [rng.choice(["North", "South", "?"]) for _ in range(rows)],
        "notes": ["came in with pain and left without it, as told to nurse " + str(n % 90) for n in range(rows)],
        "diagnosis": [rng.choice(["flu", "hiv", None]) for _ in range(rows)],
        "diagnosis_date": [day.isoformat() for day in days],
        "income": [str(rng.randrange(12_000, 180_000)) for _ in range(rows)],
        "source": ["ward"] * rows,
        "remark": [None] * rows,
    }


def test_roles_are_guessed_from_names_and_counts(tmp_path: Path) -> None:
    policy = policy_for(hospital(), tmp_path)
    roles = {name: attribute.role for name, attribute in policy.attributes.items()}
    assert policy.person == "patient_id"
    assert roles == {
        "full_name": "identifier",
        "email": "identifier",
        "sample": "identifier",
        "age": "quasi-identifier",
        "sex": "quasi-identifier",
        "zip": "quasi-identifier",
        "admitted": "quasi-identifier",
        "discharged": "quasi-identifier",
        "born": "quasi-identifier",
        "height": "quasi-identifier",
        "hospital": "quasi-identifier",
        "notes": "identifier",
        "diagnosis": "sensitive",
        "diagnosis_date": "quasi-identifier",
        "income": "sensitive",
        "source": "insensitive",
        "remark": "insensitive",
    }


def test_kinds_are_guessed_from_the_cells(tmp_path: Path) -> None:
    quasi = policy_for(hospital(), tmp_path).quasi_identifiers
    kinds = {name: attribute.kind for name, attribute in quasi.items()}
    assert kinds["age"] == kinds["height"] == "number"
    assert kinds["admitted"] == kinds["discharged"] == kinds["born"] == "date"
    assert kinds["sex"] == kinds["hospital"] == "category"
    assert (kinds["zip"], quasi["zip"].length) == ("code", 5)
    assert (quasi["age"].range, quasi["age"].levels) == ((0, 120), (5, 10, 20))
    assert (quasi["admitted"].format, quasi["discharged"].format, quasi["born"].format) == (
        None,
        "%d/%m/%Y",
        "%m/%d/%Y",
    )


def test_missing_cells_become_a_value_of_their_own(tmp_path: Path) -> None:
    policy = policy_for(hospital(), tmp_path)
    assert policy.input.missing == ("", "?")
    assert policy.quasi_identifiers["hospital"].missing == "category"
    assert policy.sensitive["diagnosis"].missing == "category"
    assert policy.quasi_identifiers["age"].missing == "refuse"


def test_no_cell_gets_into_the_policy(tmp_path: Path) -> None:
    table = {
        name: [
            f"{CANARY}{n % 20}" if isinstance(cell, str) and not cell[0].isdigit() else cell for n, cell in enumerate(c)
        ]
        for name, c in hospital().items()
    }
    assert CANARY not in propose(pa.table(table))


@settings(max_examples=100, deadline=None)
@given(
    numbers=st.lists(
        st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6, width=32), min_size=2, max_size=20, unique=True
    ),
    name=st.sampled_from(["income", "height"]),
)
def test_ranges_and_bands_hold_the_numbers_but_not_their_extremes(numbers: list[float], name: str) -> None:
    cells = [float(number) for number in numbers]
    text = propose(pa.table({"sex": ["f", "m"] * (len(cells) // 2) + ["f"] * (len(cells) % 2), name: cells}))
    found = re.search(rf"^  {name}: .*?(?:range|bands): \[([^\]]*)\]", text, re.MULTILINE)
    assert found is not None
    edges = [float(edge) for edge in found.group(1).split(", ")]
    assert edges[0] <= min(cells)
    assert max(cells) < edges[-1]
    assert edges[0] == 0 or edges[0] < min(cells)
    assert edges == sorted(set(edges))


@settings(max_examples=60, deadline=None)
@given(
    columns=st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
        | st.sampled_from(["true", "null", "1e3", "a: b", "#x", "- y", "'q'", '"', "name", "income", "zip", "age"]),
        st.sampled_from(["words", "ints", "floats", "dates", "codes", "flags", "none"]),
        max_size=6,
    )
)
def test_what_is_proposed_always_loads(columns: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    cells: dict[str, pa.Array] = {
        "words": pa.array(["a", "b", "a", None]),
        "ints": pa.array([3, 1, 4, 1]),
        "floats": pa.array([0.5, float("nan"), 2.25, -1e-3]),
        "dates": pa.array([date(2020, 1, 1), None, date(2021, 2, 3), date(2020, 1, 1)]),
        "codes": pa.array(["007", "123", "456", "007"]),
        "flags": pa.array([True, False, None, True]),
        "none": pa.array([None, None, None, None], pa.string()),
    }
    table = pa.table({"sex": ["f", "m", "f", "m"], **{name: cells[kind] for name, kind in columns.items()}})
    policy = policy_for(table, tmp_path_factory.mktemp("proposal"))
    named = set(policy.attributes) | ({policy.person} if policy.person else set())
    assert named == set(table.column_names)


def test_frames_are_read_by_their_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "customerId": pa.array(range(1000, 1040)),
            "joined": pa.array([date(2020, 1, 1)] * 20 + [date(2021, 1, 1)] * 20),
            "plan": pa.array(["a", "b"] * 20).dictionary_encode(),
            "vip": pa.array([True, False] * 20),
        }
    )
    policy = policy_for(table, tmp_path)
    assert policy.person == "customerId"
    assert {name: a.kind for name, a in policy.quasi_identifiers.items()} == {
        "joined": "date",
        "plan": "category",
        "vip": "category",
    }


def test_without_a_unique_column_every_row_is_a_person(tmp_path: Path) -> None:
    assert policy_for({"sex": ["f", "m", "f"], "age": ["1", "2", "1"]}, tmp_path).person is None


def test_a_person_number_that_repeats_is_still_the_person(tmp_path: Path) -> None:
    table = pa.table({"patient_id": ["a", "b", "a"], "sex": ["f", "m", "f"]})
    assert policy_for(table, tmp_path).person == "patient_id"
    assert "one row per person" in propose(table)


def test_dates_with_day_and_month_in_doubt_are_marked() -> None:
    text = propose(pa.table({"born": ["01/02/1950", "03/04/1960", "01/02/1950"]}))
    assert 'format: "%d/%m/%Y"' in text
    assert "could also be %m/%d/%Y" in text


def test_a_file_without_column_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(f"39,{CANARY},77516\n50,Self,83311\n38,Private,215646\n")
    with pytest.raises(DataError, match="looks like a record, not like column names") as caught:
        propose(tmp_path / "data.csv")
    assert CANARY not in str(caught.value)


def test_tables_from_which_nothing_can_be_proposed_are_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        propose(pa.table({"age": pa.array([], pa.int64())}))
    with pytest.raises(DataError, match="no column looks like a quasi-identifier"):
        propose(pa.table({"id": [1, 2, 3], "diagnosis": ["a", "b", "a"]}))


def test_the_series_is_named_after_the_file(tmp_path: Path) -> None:
    file = tmp_path / "St Vincent (2024).csv"
    file.write_text("sex;age\nf;30\nm;40\nf;30\n")
    (tmp_path / "policy.yaml").write_text(propose(file, delimiter=";"))
    policy = Policy.load(tmp_path / "policy.yaml")
    assert policy.series == "St-Vincent-2024"
    assert policy.input.delimiter == ";"


def test_a_series_is_offered_pods_where_somebody_keeps_a_value(tmp_path: Path) -> None:
    rows = {"patient_id": list(range(40)), "age": [20 + n for n in range(40)], "diagnosis": ["a", "b"] * 20}
    text = propose(pa.table(rows), name="s")
    assert "# method: {name: pods}" in text
    offered = text.replace("# method:", "method:").replace("# inferred:", "inferred:")
    (tmp_path / "policy.yaml").write_text(offered, encoding="utf-8")
    policy = Policy.load(tmp_path / "policy.yaml")
    assert (policy.method.name, policy.fewest) == ("pods", 2)
    assert "pods" not in propose(pa.table({"age": [20 + n % 7 for n in range(40)], "sex": ["f", "m"] * 20}), name="s")


def test_decimal_commas_are_seen_and_the_policy_reads_them(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{n};{n % 7},{n % 10}5;{'ab'[n % 2]}\n" for n in range(60))
    path.write_text("id;dose;sex\n" + rows)
    text = propose(path)
    assert 'decimal: ","' in text
    written = tmp_path / "policy.yaml"
    written.write_text(text)
    policy = Policy.load(written)
    assert policy.quasi_identifiers["dose"].kind == "number"
    assert len(encode(path, policy)) == 60


def test_where_some_columns_have_points_a_comma_is_no_decimal_sign(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;dose;list\n" + "".join(f"{n};{n % 7}.5;{n % 3},{n % 4}\n" for n in range(60)))
    assert "decimal" not in propose(path)
