"""Release folders are public: they say nothing that depends on rows that are not in the published table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import sequester as sq
from consenting import KEY, SEED, people, rules

PUBLIC = ("data.csv", "release.json", "dictionary.csv", "report.html")


def folders(place: Path, policy: sq.Policy, *tables: pa.Table) -> list[dict[str, bytes]]:
    """What everybody sees of a series of these tables."""
    series = sq.Series.open(place / "clinic.ledger", policy, key=KEY)
    found = []
    for number, table in enumerate(tables, start=1):
        folder = series.publish(table, name=f"r{number}", seed=SEED, again=True).folder
        assert folder is not None
        assert sorted(file.name for file in folder.iterdir()) == sorted(PUBLIC)
        files = {name: (folder / name).read_bytes() for name in PUBLIC}
        # The head of the ledger differs from ledger to ledger, whatever they are of, and tells nothing without one.
        files["release.json"], heads = re.subn(rb'"head": "[0-9a-f]{64}"', b'"head": ""', files["release.json"])
        assert heads == 1
        found.append(files)
    return found


def test_public_files_do_not_depend_on_people_who_wait(tmp_path: Path) -> None:
    first = people(range(100))
    alone = folders(tmp_path / "a", rules(), first, people(range(100)))
    waiting = folders(tmp_path / "b", rules(), first, people(range(101)))
    assert waiting == alone


def test_public_files_do_not_depend_on_people_who_do_not_agree(tmp_path: Path) -> None:
    alone = folders(tmp_path / "a", rules(), people(range(100)))
    refusing = folders(tmp_path / "b", rules(), people(range(130), refusing=frozenset(range(100, 130))))
    assert refusing == alone


def test_public_files_of_one_release_do_not_depend_on_what_was_left_out(tmp_path: Path) -> None:
    policy = rules(attributes__age__missing="suppress")
    whole = people(range(100))
    nothing = pa.array([None] * 3, whole["age"].type)
    more = pa.concat_tables([whole, people(range(100, 103)).set_column(1, "age", nothing)])
    files = []
    for name, table in (("a", whole), ("b", more)):
        release = sq.anonymize(table, policy, seed=SEED)
        release.save(tmp_path / name)
        files.append([(tmp_path / name / file).read_bytes() for file in ("data.csv", "release.json", "dictionary.csv")])
    assert release.suppressed == 3
    assert files[0] == files[1]


def test_nothing_public_tells_what_other_tables_would_have_lost(tmp_path: Path) -> None:
    *_, last = folders(tmp_path, rules(), people(range(100)), people(range(160)))
    facts = json.loads(last["release.json"])
    private = {"price", "waiting", "personal", "gain", "suppressed", "query_error", "seed", "levers", "change"}
    assert private & set(facts) == set()
    assert "merge" not in last["report.html"].decode()
    assert "without a memory" not in last["report.html"].decode()


def test_public_measures_are_those_of_the_published_table(tmp_path: Path) -> None:
    release = sq.anonymize(people(range(100)), rules(), seed=SEED)
    release.save(tmp_path / "r")
    facts = json.loads((tmp_path / "r" / "release.json").read_text())
    measured = sq.measure(tmp_path / "r" / "data.csv", rules()).to_dict()
    assert {name: facts[name] for name in ("records", "classes", "k", "l", "t", "confidence", "loss", "sensitive")} == {
        name: measured[name] for name in ("records", "classes", "k", "l", "t", "confidence", "loss", "sensitive")
    }


def test_public_promises_say_what_they_are_about_and_what_was_not_tried(tmp_path: Path) -> None:
    first, second = folders(tmp_path, rules(), people(range(100)), people(range(160)))
    facts = json.loads(second["release.json"])
    assert {promise["about"] for promise in facts["promises"]} == {"each release"}
    assert {check["attack"]: check["about"] for check in facts["checks"]}["difference"] == "the series"
    assert facts["holds"] is True
    (alone,) = [one for one in json.loads(first["release.json"])["untried"] if "difference" in one["attacks"]]
    assert alone["why"] == "there is only one release"
    assert "there is only one release" in first["report.html"].decode()


def test_a_release_published_with_a_leak_does_not_hold_in_words_and_in_json(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(method={"name": "static"}), key=KEY)
    series.publish(people(range(200)), name="first", seed=SEED)
    release = series.publish(people(range(300)), name="second", seed=SEED, i_know_this_leaks=True)
    assert release.folder is not None
    assert not release.holds
    assert json.loads((release.folder / "release.json").read_text())["holds"] is False
    assert "published although attacks work" in (release.folder / "report.html").read_text()
    assert "published although" not in (series.folder / "clinic" / "0001-first" / "report.html").read_text()


@pytest.mark.parametrize("seed", [0, 7, 2**32, (1 << 63) - 1])
def test_a_seed_that_can_be_guessed_is_refused_for_publishing(tmp_path: Path, seed: int) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    with pytest.raises(sq.DataError, match=r"fewer than 64 bits.*python -c 'import secrets"):
        series.plan(people(range(100)), name="first", seed=seed)
    assert series.plan(people(range(100)), name="first", seed=1 << 63).holds


def test_a_seed_that_nobody_gave_cannot_be_guessed(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "clinic.ledger", rules(), key=KEY)
    seeds = {series.plan(people(range(40)), name="first").seed for _ in range(2)}
    assert len(seeds) == 2
    assert min(seeds).bit_length() >= 64
