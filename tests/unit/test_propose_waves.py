"""The policy proposed from several waves: what changes, who leaves, what can be promised; and no cell of any wave."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sequester as sq
from sequester.ingest import encode
from sequester.ingest.propose import propose
from sequester.ledger import Key
from sequester.policy.attributes import Drift, Insensitive

NLSWORK = Path(__file__).parents[3] / "shared" / "data" / "nlswork" / "nlswork.csv.gz"
CANARY = "Xq7canary"
KEY = Key.of_text("a key for tests only")


def panel(waves: int = 3, people: int = 400, *, leave: float = 0.15, seed: int = 5) -> list[dict[str, list[Any]]]:
    """Waves of people who age, move, change their illness, leave and return."""
    rng = np.random.default_rng(seed)
    there = rng.random(people) < 0.6
    sex, born = rng.choice(["f", "m"], people), rng.integers(1930, 1990, people)
    region, illness = rng.choice(list("NESW"), people), rng.choice(list("abcdef"), people)
    tables = []
    for wave in range(waves):
        if wave:
            there = np.where(there, rng.random(people) >= leave, rng.random(people) < 0.25 * bool(leave))
            region = np.where(rng.random(people) < 0.1, rng.choice(list("NESW"), people), region)
            illness = np.where(rng.random(people) < 0.1, rng.choice(list("abcdef"), people), illness)
        here = np.flatnonzero(there)
        tables.append(
            {
                "year": [2001 + wave] * len(here),
                "row": list(range(len(here))),
                "key": [f"K{n:04d}" for n in here],
                "birth_year": born[here].tolist(),
                "age": (2001 + wave - born[here]).tolist(),
                "sex": sex[here].tolist(),
                "region": region[here].tolist(),
                "vaccinated": rng.integers(0, 2, len(here)).tolist(),
                "illness": illness[here].tolist(),
                "spending": np.round(rng.lognormal(4, 1, len(here)), 2).tolist(),
            }
        )
    return tables


def text_of(tables: list[dict[str, list[Any]]], **options: Any) -> str:
    return propose([pa.table(table) for table in tables], name="panel", **options)


def policy_of(text: str, folder: Path) -> sq.Policy:
    (folder / "policy.yaml").write_text(text, encoding="utf-8")
    return sq.Policy.load(folder / "policy.yaml")


def publish_all(tables: list[Any], policy: sq.Policy, folder: Path) -> sq.Series:
    series = sq.Series.open(folder / "panel.ledger", policy, key=KEY)
    for number, table in enumerate(tables, start=1):
        series.publish(table if not isinstance(table, dict) else pa.table(table), name=f"w{number}", seed=1 << 63)
    return series


def test_roles_and_changes_are_what_the_waves_show(tmp_path: Path) -> None:
    policy = policy_of(text_of(panel()), tmp_path)
    roles = {name: attribute.role for name, attribute in policy.attributes.items()}
    assert policy.person == "key"
    assert roles == {
        "year": "insensitive",
        "row": "identifier",
        "birth_year": "quasi-identifier",
        "age": "identifier",
        "sex": "quasi-identifier",
        "region": "quasi-identifier",
        "vaccinated": "quasi-identifier",
        "illness": "sensitive",
        "spending": "identifier",
    }
    quasi = policy.quasi_identifiers
    assert {name: bool(a.changes) for name, a in quasi.items()} == {
        "birth_year": False,
        "sex": False,
        "region": True,
        "vaccinated": True,
    }
    assert (quasi["birth_year"].kind, quasi["vaccinated"].kind) == ("number", "category")
    year = policy.attributes["year"]
    assert isinstance(year, Insensitive)
    assert year.changes
    assert policy.sensitive["illness"].values == "first"


def test_what_was_seen_is_told_in_counts() -> None:
    tables = panel()
    text = text_of(tables)
    ids = [set(table["key"]) for table in tables]
    assert text.startswith("# A first policy, guessed from 3 waves.")
    assert f"# Seen: {len(set().union(*ids)):,} people" in text
    assert f"# Wave 2: {len(ids[1]):,} people; {len(ids[1] - ids[0]):,} people joined" in text
    assert f"{len(ids[1] - ids[2]):,} people left" in text
    assert f"{len((ids[2] & ids[0]) - ids[1]):,} people returned" in text


def test_fewer_than_five_people_are_not_counted() -> None:
    tables = panel(2, leave=0.0)
    tables[1] = {name: column[:-3] for name, column in tables[1].items()}
    gone = set(tables[0]["key"]) - set(tables[1]["key"])
    assert 0 < len(gone) < 5
    text = text_of(tables)
    assert "fewer than 5 people left" in text
    assert f" {len(gone)} people" not in text


def test_an_age_without_a_birth_year_moves_by_a_step(tmp_path: Path) -> None:
    tables = [{name: column for name, column in table.items() if name != "birth_year"} for table in panel()]
    age = policy_of(text_of(tables), tmp_path).quasi_identifiers["age"]
    assert (age.range, age.changes) == ((0, 120), Drift(by=(0, 2)))


@pytest.mark.parametrize("leave", [0.0, 0.15])
def test_the_waves_are_published_as_proposed(tmp_path: Path, leave: float) -> None:
    tables = panel(leave=leave)
    for table in tables:
        del table["birth_year"]  # so that the age, which moves, is published
    policy = policy_of(text_of(tables), tmp_path)
    assert (policy.method.name, policy.fewest) == ("pods", 2)
    series = publish_all(tables, policy, tmp_path)
    assert series.audit().holds


def test_a_frequent_value_raises_the_confidence_and_says_so(tmp_path: Path) -> None:
    tables = panel()
    for table in tables:
        table["illness"] = ["yes" if n in "ab" else "no" for n in table["illness"]]
    share = max(table["illness"].count("no") / len(table["illness"]) for table in tables)
    text = text_of(tables)
    policy = policy_of(text, tmp_path)
    assert 0.6 < share < 0.75
    assert (policy.protect.confidence, policy.method.name) == (0.67, "pods")
    assert f"up to {round(100 * share)} % of the rows" in text
    publish_all(tables, policy, tmp_path)


def test_a_small_panel_gets_a_small_k(tmp_path: Path) -> None:
    assert policy_of(text_of(panel(people=100)), tmp_path).protect.k == 3


def test_only_one_private_column_is_protected_and_the_others_say_how(tmp_path: Path) -> None:
    tables = panel()
    for table in tables:
        table["income"] = [1000.0 + 7 * n for n in range(len(table["key"]))]
    text = text_of(tables)
    assert list(policy_of(text, tmp_path).sensitive) == ["illness"]
    flat = re.sub(r"\s+#?\s*", " ", text)
    assert re.search(r"beside illness takes more decoys. To publish it, too: \{role: sensitive, kind: number", flat)


def test_columns_that_are_not_in_every_wave_are_left_out_and_told(tmp_path: Path) -> None:
    tables = panel()
    del tables[0]["vaccinated"]
    text = text_of(tables)
    assert "vaccinated" not in policy_of(text, tmp_path).attributes
    assert "vaccinated is only in waves 2 and 3 of 3" in text


def test_numbers_written_in_two_ways_are_numbers(tmp_path: Path) -> None:
    tables = panel()
    tables[0]["vaccinated"] = [f"{n}.0" for n in tables[0]["vaccinated"]]
    for table in tables[1:]:
        table["vaccinated"] = [str(n) for n in table["vaccinated"]]
    text = text_of(tables)
    policy = policy_of(text, tmp_path)
    assert policy.quasi_identifiers["vaccinated"].kind == "number"
    assert "Written in more than one way" in text
    publish_all(tables, policy, tmp_path)


def test_cells_of_another_kind_in_one_wave_are_told() -> None:
    tables = panel()
    tables[0]["region"] = [str("NESW".index(n)) for n in tables[0]["region"]]
    assert "wave 1 number, wave 2 category, wave 3 category" in " ".join(text_of(tables).split())


def test_waves_that_go_back_in_time_are_told() -> None:
    assert "year goes down from one wave to a later one" in text_of(panel()[::-1])
    assert "goes down" not in text_of(panel())


def test_a_column_that_hardly_says_more_than_another_is_dropped(tmp_path: Path) -> None:
    tables = panel()
    for table in tables:
        table["generation"] = ["old" if year < 1960 else "young" for year in table["birth_year"]]
    text = text_of(tables)
    assert policy_of(text, tmp_path).attributes["generation"].role == "identifier"
    assert "Hardly says more than birth_year" in text


def test_the_person_column_can_be_named_and_must_tell_people_apart() -> None:
    tables = panel()
    assert "person: row" in text_of(tables, person="row")
    with pytest.raises(sq.DataError, match="another row in the same wave"):
        text_of(tables, person="sex")
    with pytest.raises(sq.DataError, match="is in no wave"):
        text_of(tables, person="nobody")


def test_waves_that_are_no_waves_are_refused(tmp_path: Path) -> None:
    first, second, _ = panel()
    with pytest.raises(sq.DataError, match="no column in common"):
        propose([pa.table(first), pa.table({f"{name}2": column for name, column in second.items()})])
    for name in ("row", "key"):
        del first[name], second[name]
    with pytest.raises(sq.DataError, match="no column tells people apart in every wave"):
        propose([pa.table(first), pa.table(second)])
    with pytest.raises(sq.DataError, match="no table was given"):
        propose([])
    csv.write_csv(pa.table(second), tmp_path / "w.csv")
    with pytest.raises(sq.DataError, match="waves 1 and 2 are the same file"):
        propose([tmp_path / "w.csv", str(tmp_path / "w.csv")])
    with pytest.raises(sq.DataError, match="wave 2 has no rows"):
        propose([pa.table(second), pa.table(second).slice(0, 0)])


@pytest.mark.parametrize("cell", [[1, 2], b"\xff", float("inf"), float("nan"), True, None])
def test_cells_of_any_type_are_taken_or_dropped(tmp_path: Path, cell: object) -> None:
    tables = panel(2)
    for table in tables:
        table["odd"] = [cell] * len(table["key"])
    policy = policy_of(text_of(tables), tmp_path)
    assert policy.attributes["odd"].role in ("identifier", "quasi-identifier")
    with pytest.raises(sq.DataError, match="'odd'"):
        text_of(tables, person="odd")


def test_no_cell_of_any_wave_gets_into_the_policy() -> None:
    tables = panel()
    for table in tables:
        for name in ("key", "sex", "region", "illness"):
            table[name] = [f"{CANARY}{cell}" for cell in table[name]]
        table["spending"] = [cell + 0.1357 for cell in table["spending"]]
    text = text_of(tables)
    assert CANARY not in text
    cells = {f"{cell:.12g}" for table in tables for cell in table["spending"]}
    assert not cells & set(re.findall(r"[0-9.]+", text))


def test_no_cell_of_any_wave_gets_into_an_error() -> None:
    tables = [{name: [CANARY] * 3 for name in (CANARY, "b")} for _ in range(2)]
    for options in ({}, {"person": "b"}):
        with pytest.raises(sq.DataError) as caught:
            text_of(tables, **options)
        assert CANARY not in str(caught.value)


CELLS: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.sampled_from([0, 1, None]),
    "code": st.sampled_from(["007", "123", "456"]),
    "number": st.none() | st.integers(-50, 10**6) | st.floats(-1e3, 1e3, width=32),
    "word": st.sampled_from(["a", "b", "c", ""]),
    "day": st.sampled_from(["20010203", "20011231", "19991111"]),
    "diagnosis": st.sampled_from(["x", "y", None]),
    "wage": st.floats(0, 1e5, width=32),
}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), columns=st.lists(st.sampled_from(sorted(CELLS)), unique=True, max_size=4))
def test_every_wave_fits_what_is_proposed(
    data: st.DataObject, columns: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, files = tmp_path_factory.mktemp("waves"), []
    for wave in range(data.draw(st.integers(2, 3), label="waves")):
        people = data.draw(st.lists(st.integers(0, 9), unique=True, min_size=5, max_size=10), label="people")
        table: dict[str, list[Any]] = {"person_id": [f"p{n}" for n in people], "sex": ["fm"[n % 2] for n in people]}
        for name in columns:
            cells = st.lists(CELLS[name], min_size=len(people), max_size=len(people))
            table[name] = ["" if cell is None else str(cell) for cell in data.draw(cells, label=name)]
        files.append(folder / f"wave-{wave}.csv")
        csv.write_csv(pa.table(table), files[-1])
    policy = policy_of(propose(files, person="person_id"), folder)
    for file in files:
        assert len(encode(file, policy)) > 0


@pytest.mark.faults
@pytest.mark.skipif(not NLSWORK.exists(), reason="needs ../shared/data/nlswork")
def test_five_raw_waves_of_a_real_panel_are_published_as_proposed(tmp_path: Path) -> None:
    table = csv.read_csv(io.BytesIO(gzip.decompress(NLSWORK.read_bytes())))
    files = []
    for year in range(68, 73):
        files.append(tmp_path / f"w{year}.csv")
        csv.write_csv(table.filter(pc.equal(table["year"], year)), files[-1])
    policy = policy_of(propose(files), tmp_path)
    assert (policy.person, policy.method.name, policy.protect.confidence) == ("idcode", "pods", 0.5)
    assert list(policy.sensitive) == ["occ_code"]
    assert set(policy.quasi_identifiers) == {
        "birth_yr",
        "race",
        "msp",
        "nev_mar",
        "grade",
        "not_smsa",
        "c_city",
        "south",
    }
    series = sq.Series.open(tmp_path / "panel.ledger", policy, key=KEY)
    for file in files[:2]:
        release = series.publish(file, seed=1 << 63)
        # Of eight, so that most cells are as they were.
        assert release.loss["ail"] < 1
