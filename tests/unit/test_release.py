"""A release is exactly what its measures say, and tells nothing about who is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import sequester as sq
from sequester.datasets import hospital, hospital_policy
from sequester.domain import notation
from sequester.ingest import encode

METHODS: dict[str, dict[str, Any]] = {
    "mondrian": {"name": "mondrian"},
    "median": {"name": "mondrian", "cuts": "median"},
    "full-domain": {"name": "full-domain"},
    "suppressing": {"name": "full-domain", "suppression": 0.3},
    "specialize": {"name": "specialize"},
}
NUMBERS = ("k", "confidence", "l", "entropy_l", "t", "records", "classes")
TABLE = hospital(400, seed=5)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(hospital_policy())
    return {**sq.Policy.load(path).model_dump(exclude_unset=True), "output": {"numbers": "interval"}}


def policy(rules: dict[str, Any], **changes: Any) -> sq.Policy:
    return sq.Policy.model_validate({**rules, **changes})


def only_declared(rules: dict[str, Any]) -> dict[str, Any]:
    """The policy without the attributes whose domain only the data can tell."""
    kept = {name: attribute for name, attribute in rules["attributes"].items() if name not in ("zip", "admitted")}
    return {**rules, "attributes": kept}


def release(rules: dict[str, Any], *, seed: int | None = 1, **changes: Any) -> sq.Release:
    return sq.anonymize(TABLE, policy(rules, **changes), seed=seed)


def test_no_person_and_no_identifier_is_published(rules: dict[str, Any]) -> None:
    made = release(rules)
    assert made.table.column_names == ["age", "gender", "zip", "admitted", "diagnosis", "ward"]
    assert made.table.num_rows == TABLE.num_rows


def test_columns_that_the_policy_does_not_name_are_not_published(rules: dict[str, Any]) -> None:
    wider = TABLE.append_column("phone", pa.array([f"555-{row}" for row in range(len(TABLE))]))
    assert sq.anonymize(wider, policy(rules), seed=1).table.equals(release(rules).table)


@pytest.mark.parametrize("place", ["folder", "r.csv", "r.csv.gz", "r.parquet"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_order(
    rules: dict[str, Any], tmp_path: Path, place: str, format: str
) -> None:
    output = {"format": format}
    saved = [
        release(rules, seed=seed, output=output).save(tmp_path / str(number) / place)
        for number, seed in enumerate((1, 1, 2))
    ]
    first, again, other = ([file.read_bytes() for file in files] for files in saved)
    assert first == again
    assert first[0] != other[0]
    # What describes a release does not depend on the order of its rows, but for the digest of the data.
    first, other = (
        [re.sub(rb'"data\.[a-z]+": "[0-9a-f]{64}"', b"", file) for file in files] for files in (first, other)
    )
    assert first[1:] == other[1:]


def test_without_a_seed_the_order_is_random(rules: dict[str, Any]) -> None:
    one, two = release(rules, seed=None).table, release(rules, seed=None).table
    assert not one.equals(two)
    keys = [(name, "ascending") for name in one.column_names]

    def ordered(table: pa.Table) -> list[dict[str, Any]]:
        plain = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
        return plain.sort_by(keys).to_pylist()

    assert ordered(one) == ordered(two)


@pytest.mark.parametrize("method", METHODS)
def test_members_are_everybody_once_with_their_class(rules: dict[str, Any], method: str) -> None:
    made = release(rules, method=METHODS[method])
    members = made.members()
    assert members["person"].to_pylist() == TABLE["patient_id"].to_pylist()
    member = members["class"].to_numpy()
    sizes = np.bincount(member[member >= 0])
    assert (len(sizes), sizes.min(), sizes.sum()) == (made.measurement.classes, made.measurement.k, made.table.num_rows)
    assert np.count_nonzero(member < 0) == made.suppressed
    if method == "suppressing":
        assert made.suppressed > 0


def test_members_are_known_by_their_ids_without_blanks_and_by_whole_numbers(rules: dict[str, Any]) -> None:
    place = TABLE.column_names.index("patient_id")
    blanks = pa.array([f"\ufeff{one} " for one in TABLE["patient_id"].to_pylist()])
    made = sq.anonymize(TABLE.set_column(place, "patient_id", blanks), policy(rules), seed=1)
    assert made.members()["person"].to_pylist() == [str(one) for one in TABLE["patient_id"].to_pylist()]
    floats = pa.array(np.arange(len(TABLE), dtype=np.float64))
    made = sq.anonymize(TABLE.set_column(place, "patient_id", floats), policy(rules), seed=1)
    assert made.members()["person"].type == pa.int64()


def test_members_without_a_person_column_are_row_numbers(rules: dict[str, Any]) -> None:
    nobody = {key: value for key, value in rules.items() if key != "person"}
    made = sq.anonymize(TABLE, policy(nobody), seed=1)
    assert made.members()["person"].to_pylist() == list(range(1, len(TABLE) + 1))


@pytest.mark.parametrize("method", [*METHODS.values(), {"name": "pods"}], ids=[*METHODS, "pods"])
def test_rows_with_people_say_whose_value_they_show(rules: dict[str, Any], method: dict[str, Any]) -> None:
    made = sq.anonymize(TABLE, policy(rules, method=method), seed=3)
    diagnosis = {row["patient_id"]: row["diagnosis"] for row in TABLE.to_pylist()}
    told = [row for row in made.with_people().to_pylist() if row["patient_id"] is not None]
    assert all(row["diagnosis"] == diagnosis[row["patient_id"]] for row in told)
    published = [row["person"] for row in made.members().to_pylist() if row["class"] >= 0]
    assert sorted(row["patient_id"] for row in told) == sorted(published)


@pytest.mark.parametrize("method", METHODS)
def test_every_record_is_published_with_cells_that_mean_a_box_around_it(rules: dict[str, Any], method: str) -> None:
    rules = {**rules, "attributes": {**rules["attributes"], "name": {"role": "insensitive"}}}
    people = TABLE.set_column(TABLE.column_names.index("name"), "name", TABLE["patient_id"])
    made = sq.anonymize(people, policy(rules, method=METHODS[method]), seed=3)
    snapshot = encode(people, policy(rules))
    row = {person: place for place, person in enumerate(TABLE["patient_id"].to_pylist())}
    rows = [row[person] for person in made.table["name"].to_pylist()]
    member = made.members()["class"].to_numpy()[rows]
    for name, domain, codes in zip(snapshot.quasi_names, snapshot.quasi_domains, snapshot.quasi, strict=True):
        texts = made.table[name].to_pylist()
        lo, hi, understood = notation.read(domain, texts)
        assert understood.all()
        assert (lo <= codes[rows]).all()
        assert (codes[rows] <= hi).all()
        assert len(set(zip(member.tolist(), texts, strict=True))) == made.measurement.classes
    for name in ("diagnosis", "ward"):
        assert made.table[name].to_pylist() == people[name].take(rows).to_pylist()


def assert_agree(found: sq.Measurement, made: sq.Release, *, losses: tuple[str, ...]) -> None:
    for name in NUMBERS:
        assert getattr(found, name) == pytest.approx(getattr(made.measurement, name), abs=1e-12), name
    for name in losses:
        assert found.loss[name] == pytest.approx(made.loss[name], abs=1e-12), name
    assert [one.to_dict() for one in found.promises] == [one.to_dict() for one in made.measurement.promises]


@pytest.mark.parametrize("method", METHODS)
def test_measuring_what_was_published_finds_the_same(rules: dict[str, Any], tmp_path: Path, method: str) -> None:
    chosen = policy(only_declared(rules), method=METHODS[method])
    made = sq.anonymize(TABLE, chosen, seed=1)
    published = [made.table, *(made.save(tmp_path / f"r{suffix}")[0] for suffix in (".csv", ".csv.gz", ".parquet"))]
    losses = ("ail", "ncp", "dm", "dm_normalized", "class_size", "precision")
    for source in published:
        # Only the publisher knows how many records were left out.
        if not made.suppressed:
            assert_agree(sq.measure(source, chosen), made, losses=losses)
        with_raw = sq.measure(source, chosen, original=TABLE)
        assert_agree(with_raw, made, losses=(*losses, "entropy"))
        assert with_raw.suppressed == made.suppressed


@pytest.mark.parametrize("method", METHODS)
def test_measuring_with_the_original_finds_the_same_where_the_data_gave_the_domains(
    rules: dict[str, Any], tmp_path: Path, method: str
) -> None:
    chosen = policy(rules, method=METHODS[method])
    made = sq.anonymize(TABLE, chosen, seed=1)
    for source in (made.table, made.save(tmp_path / "r.csv")[0], made.save(tmp_path / "r.parquet")[0]):
        assert_agree(sq.measure(source, chosen, original=TABLE), made, losses=tuple(made.loss))


@pytest.mark.parametrize("numbers", ["interval", "bounds"])
def test_numbers_as_intervals_and_as_bounds_measure_the_same(rules: dict[str, Any], numbers: str) -> None:
    chosen = policy(only_declared(rules), output={"numbers": numbers})
    made = sq.anonymize(TABLE, chosen, seed=1)
    assert ("age_min" in made.table.column_names) == (numbers == "bounds")
    assert_agree(sq.measure(made.table, chosen), made, losses=("ail", "ncp", "dm", "precision"))


def test_bounds_keep_their_role(rules: dict[str, Any]) -> None:
    described = release(rules, output={"numbers": "bounds"}).to_dict()["columns"]
    roles = {column["name"]: (column["role"], column["of"], column["written"]) for column in described}
    assert roles["age_min"] == ("quasi-identifier", "age", "min")
    assert roles["diagnosis"] == ("sensitive", "diagnosis", "value")


def test_missing_cells_are_published_as_their_policy_says(rules: dict[str, Any]) -> None:
    ages = TABLE["age"].to_pylist()
    diagnoses = TABLE["diagnosis"].to_pylist()
    ages[:30], diagnoses[50:60] = [None] * 30, [None] * 10
    table = TABLE.set_column(2, "age", pa.array(ages)).set_column(7, "diagnosis", pa.array(diagnoses))
    attributes = {**rules["attributes"]}
    attributes["age"] = {**attributes["age"], "missing": "category"}
    attributes["diagnosis"] = {**attributes["diagnosis"], "missing": "suppress"}
    chosen = policy({**rules, "attributes": attributes})
    made = sq.anonymize(table, chosen, seed=1)
    assert made.suppressed == 10
    assert made.table.num_rows == 390
    assert any("missing" in cell for cell in set(made.table["age"].to_pylist()))
    assert made.table["diagnosis"].null_count == 0
    assert_agree(sq.measure(made.table, chosen, original=table), made, losses=tuple(made.loss))


def test_what_describes_a_release_names_no_person_no_cell_and_no_seed(rules: dict[str, Any]) -> None:
    made = release(rules, seed=918273645)
    # A stroke is a diagnosis, and a word of style sheets.
    shown = made._repr_html_().split("</style>")[1]
    texts = [made.to_json(), repr(made), shown, repr(made.measurement)]
    private = {cell for name in ("patient_id", "name", "zip", "diagnosis") for cell in TABLE[name].to_pylist()}
    private -= {"none"}
    for text in texts:
        assert "918273645" not in text
        assert "seed" not in text
        assert not {cell for cell in private if cell in text}
    assert json.loads(made.to_json()) == json.loads(json.dumps(made.to_dict()))


def test_a_folder_has_the_data_and_what_describes_it(rules: dict[str, Any], tmp_path: Path) -> None:
    made = release(rules, output={"format": "parquet"})
    files = made.save(tmp_path / "r")
    assert sorted(file.name for file in (tmp_path / "r").iterdir()) == [
        "data.parquet",
        "dictionary.csv",
        "release.json",
    ]
    assert [file.name for file in files] == ["data.parquet", "release.json", "dictionary.csv"]
    assert parquet.read_table(files[0]).to_pylist() == made.table.to_pylist()
    told = json.loads(files[1].read_text())
    assert (told.pop("data"), set(told.pop("digests"))) == ("data.parquet", {"data.parquet", "dictionary.csv"})
    assert told == json.loads(made.to_json())
    again = release(rules)
    assert [file.name for file in again.save(tmp_path / "r", force=True)] == [
        "data.csv",
        "release.json",
        "dictionary.csv",
    ]
    assert sorted(file.name for file in (tmp_path / "r").iterdir()) == ["data.csv", "dictionary.csv", "release.json"]
    texts = csv.ConvertOptions(column_types=dict.fromkeys(again.table.column_names, pa.string()))
    read = csv.read_csv(tmp_path / "r" / "data.csv", convert_options=texts)
    assert read.to_pylist() == again.table.to_pylist()


def test_an_existing_release_is_kept_unless_forced(rules: dict[str, Any], tmp_path: Path) -> None:
    made = release(rules)
    for place in ("r", "r.csv"):
        made.save(tmp_path / place)
        with pytest.raises(sq.DataError, match="exists already"):
            made.save(tmp_path / place)


def test_a_release_of_before_there_were_dictionaries_can_be_replaced(rules: dict[str, Any], tmp_path: Path) -> None:
    made = release(rules)
    made.save(tmp_path / "r")
    (tmp_path / "r" / "dictionary.csv").unlink()
    made.save(tmp_path / "r", force=True)
    assert (tmp_path / "r" / "dictionary.csv").is_file()


@pytest.mark.parametrize("method", METHODS)
def test_fewer_records_than_k_is_refused(rules: dict[str, Any], method: str) -> None:
    with pytest.raises(sq.GuaranteeError, match="at least 5 records: required 5, found 4") as caught:
        sq.anonymize(TABLE.slice(0, 4), policy(rules, method=METHODS[method]))
    assert (caught.value.guarantee, caught.value.required, caught.value.observed) == ("k", 5, 4)


@pytest.mark.parametrize("method", METHODS)
def test_a_confidence_that_the_whole_table_exceeds_is_refused(rules: dict[str, Any], method: str) -> None:
    sick = TABLE.set_column(7, "diagnosis", pa.array(["HIV"] * 300 + ["cancer"] * 100))
    with pytest.raises(sq.GuaranteeError, match="Nothing was published") as caught:
        sq.anonymize(sick, policy(rules, method=METHODS[method]))
    assert (caught.value.guarantee, caught.value.observed) == ("confidence", 0.75)
    assert "HIV" not in str(caught.value)


def test_progress_tells_the_stages_in_order(rules: dict[str, Any]) -> None:
    told: list[tuple[str, int, int]] = []
    sq.anonymize(TABLE, policy(rules), progress=lambda *stage: told.append(stage))
    assert [number for _, number, _ in told] == list(range(told[0][2]))


def test_records_that_make_a_promise_impossible_may_be_left_out() -> None:
    """The whole table breaks the promise and the rest of it does not, once suppression is allowed."""
    policy = sq.Policy.model_validate(
        {
            "version": 1,
            "series": "towns",
            "attributes": {"town": {"role": "quasi-identifier"}, "illness": {"role": "sensitive"}},
            "protect": {"k": 2, "confidence": 0.5},
            "method": {"name": "full-domain", "suppression": 1.0},
        }
    )
    table = pa.table({"town": ["a"] * 4 + ["b"] * 6, "illness": ["x", "x", "y", "y"] + ["x"] * 6})
    release = sq.anonymize(table, policy)
    assert (release.table.num_rows, release.suppressed) == (4, 6)
