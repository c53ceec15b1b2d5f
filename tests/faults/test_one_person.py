"""One person, one row: ids written in two ways, ids that are not those of before, and tables that come again."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sequester.ingest.table as sequester_table
from clinic import CANARY, LEDGER, Row, people, set_up, write
from command import invoke, sequester
from sequester.errors import GuaranteeError
from sequester.ledger import Ledger
from sequester.ledger.state import Entry
from sequester.publish.census import check_distinct, check_known, check_written

RULES = ("-p", "policy.yaml")
# Ids of people by number; no other number in what is said begins like this.
FIRST = 73_100_000


def numbered(count: int, how: Callable[[int], str] = str) -> list[Row]:
    return [(how(FIRST + place), *row[1:]) for place, row in enumerate(people(count))]


def silent(text: str) -> str:
    assert CANARY not in text
    assert str(FIRST)[:5] not in text
    assert "Traceback" not in text
    assert "internal error" not in text
    return " ".join(text.split())


def run(folder: Path, *words: object, code: int = 0) -> str:
    done = invoke(*words, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    return silent(done.stdout + done.stderr)


def entries(folder: Path) -> list[Entry]:
    with Ledger.open(folder / LEDGER, key=None, read_only=True) as ledger:
        return ledger.releases()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series of which the first release has sixty people, known by numbers."""
    folder = set_up(tmp_path_factory.mktemp("numbered"))
    write(folder / "q1.csv", numbered(60))
    write(folder / "q2.csv", numbered(90))
    run(folder, "publish", "q1.csv", *RULES, "--yes", "--seed", 2**63 + 1)
    return folder


@pytest.fixture
def series(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "series"))


@pytest.mark.parametrize(
    "other",
    [
        lambda text: f"{text} ",
        lambda text: f"\u00a0{text}",
        lambda text: f"{text}\u200b",
        lambda text: f"\ufeff{text}\u3000",
        lambda text: unicodedata.normalize("NFD", text),
    ],
    ids=["blank", "no-break space", "zero width", "byte order mark", "decomposed"],
)
def test_ids_that_differ_in_nothing_one_sees_are_one_person_and_nothing_is_published(
    tmp_path: Path, other: Callable[[str], str]
) -> None:
    set_up(tmp_path)
    rows = [(f"{row[0]}\u00e9", *row[1:]) for row in people(360)]
    write(tmp_path / "q1.csv", [*rows, *((other(row[0]), *row[1:]) for row in rows)])
    for command in (("check", "policy.yaml", "q1.csv"), ("publish", "q1.csv", *RULES, "--yes")):
        said = run(tmp_path, *command, code=6)
        assert "360 rows are about a person who has an earlier row (rows 361, 362, 363, 364, 365, ...)" in said
        assert "blanks around an id" in said
    assert not (tmp_path / "releases").exists()


def test_a_process_of_its_own_refuses_them_as_well(tmp_path: Path) -> None:
    set_up(tmp_path)
    write(tmp_path / "q1.csv", [*people(360), *((f" {row[0]}", *row[1:]) for row in people(360))])
    done = sequester("publish", "q1.csv", *RULES, "--yes", cwd=tmp_path)
    assert done.returncode == 6
    assert "360 rows are about a person who has an earlier row" in silent(done.stdout + done.stderr)
    assert not (tmp_path / "releases").exists()


def test_an_id_of_which_nothing_is_seen_is_nobody(tmp_path: Path) -> None:
    set_up(tmp_path)
    write(tmp_path / "q1.csv", [*people(60), ("\u200b \ufeff", 50, "Bonn", f"{CANARY} flu")])
    said = run(tmp_path, "check", "policy.yaml", "q1.csv", code=6)
    assert "1 row does not say who they are about (row 61)" in said


def test_floats_of_a_table_that_had_integers_are_the_same_people(series: Path) -> None:
    rows = numbered(90)
    table = pa.table(
        {
            name: list(column)
            for name, column in zip(("id", "age", "city", "illness"), zip(*rows, strict=True), strict=True)
        }
    )
    floats = pa.array([float(text) for text in table["id"].to_pylist()])
    parquet.write_table(table.set_column(0, "id", floats), series / "q2.parquet")
    plan = json.loads(invoke("plan", "q2.parquet", *RULES, "--format", "json", cwd=series).stdout)
    assert (plan["change"]["stayers"], plan["change"]["newcomers"]) == (60, 30)
    assert plan["notes"] == []


def test_floats_too_large_to_be_told_apart_are_refused(tmp_path: Path) -> None:
    set_up(tmp_path)
    ids, rest = pa.array(np.arange(60) * 4096.0 + 2.0**60), zip(*(row[1:] for row in people(60)), strict=True)
    columns = dict(zip(("age", "city", "illness"), map(list, rest), strict=True))
    parquet.write_table(pa.table({"id": ids, **columns}), tmp_path / "q1.parquet")
    said = run(tmp_path, "check", "policy.yaml", "q1.parquet", code=6)
    assert "60 rows have ids too large for a column of floats (rows 1, 2, 3, 4, 5, ...)" in said


def test_numbers_written_in_two_ways_in_one_table_are_told_by_check_and_plan(tmp_path: Path) -> None:
    set_up(tmp_path)
    rows = numbered(60)
    rows[7] = (f"{rows[8][0]}.0", *rows[7][1:])
    write(tmp_path / "q1.csv", rows)
    for command in (("check", "policy.yaml", "q1.csv"), ("plan", "q1.csv", *RULES)):
        assert "1 person has an id that is a number and written in another way" in run(tmp_path, *command)
    found = json.loads(invoke("check", "policy.yaml", "q1.csv", "--format", "json", cwd=tmp_path).stdout)
    assert [note for note in found["notes"] if "written in another way" in note]


def test_some_people_whose_numbers_are_written_otherwise_than_before_are_told(series: Path) -> None:
    rows = numbered(90)
    changed = [
        (f"{row[0]}.0" if place < 5 else f"00{row[0]}" if place < 8 else row[0], *row[1:])
        for place, row in enumerate(rows)
    ]
    write(series / "q2.csv", changed)
    said = run(series, "plan", "q2.csv", *RULES)
    assert "8 people have an id that is not known, but would be if the number was written in another way" in said


@pytest.mark.parametrize(
    "how",
    [lambda n: f"{n}.0", lambda n: f"0{n}", lambda n: f"{n / 10**7:.7f}e7"],
    ids=["point zero", "zero before", "power"],
)
def test_a_table_whose_ids_are_all_written_otherwise_is_refused_and_says_why(
    series: Path, how: Callable[[int], str]
) -> None:
    write(series / "q2.csv", numbered(90, how))
    said = run(series, "plan", "q2.csv", *RULES, code=6)
    assert "none of the 90 people in the table is recognised, though 60 were published last" in said
    assert "90 or more" not in said
    assert "60 or more of their ids are numbers that were written in another way then" in said
    assert "--everybody-is-new" in said


def test_a_table_of_strangers_is_refused_until_one_says_that_they_are_new(series: Path) -> None:
    write(series / "q2.csv", [(f"{CANARY}-{row[0]}", *row[1:]) for row in numbered(90)])
    before = (series / LEDGER).read_bytes()
    for command in ("plan", "publish"):
        said = run(series, command, "q2.csv", *RULES, *(["--yes"] if command == "publish" else []), code=6)
        assert "column 'id': none of the 90 people in the table is recognised" in said
        assert "from another column" in said
    assert (series / LEDGER).read_bytes() == before
    said = run(series, "publish", "q2.csv", *RULES, "--yes", "--everybody-is-new")
    assert "they were said to be other people" in said
    last = entries(series)[-1]
    assert last.number == 2
    assert last.summary["everybody_is_new"] is True
    assert any("said to be other people" in note for note in last.summary["notes"])
    assert entries(series)[0].summary["everybody_is_new"] is False


def test_a_saved_plan_keeps_that_everybody_is_new(series: Path) -> None:
    write(series / "q2.csv", [(f"{CANARY}-{row[0]}", *row[1:]) for row in numbered(90)])
    run(series, "plan", "q2.csv", *RULES, "--everybody-is-new", "--out", "next.plan")
    assert json.loads((series / "next.plan").read_text())["everybody_is_new"] is True
    said = run(series, "publish", "next.plan", *RULES, "--everybody-is-new", code=2)
    assert "is what the plan says" in said
    run(series, "publish", "next.plan", *RULES)
    assert entries(series)[-1].summary["everybody_is_new"] is True


def test_what_a_plan_says_next_repeats_that_everybody_is_new(series: Path) -> None:
    write(series / "q2.csv", [(f"{CANARY}-{row[0]}", *row[1:]) for row in numbered(90)])
    said = run(series, "plan", "q2.csv", *RULES, "--everybody-is-new")
    assert "sequester publish q2.csv --everybody-is-new" in said


@pytest.mark.parametrize(
    ("recognised", "people_", "last", "refused"),
    [(0, 100, 100, True), (4, 100, 100, True), (5, 100, 100, False), (0, 100, 0, False), (5, 10_000, 100, False),
     (4, 10_000, 100, True), (0, 10, 10_000, True), (1, 10, 10_000, False)],
)  # fmt: skip
def test_nearly_nobody_is_fewer_than_one_in_twenty_of_those_who_could_be_known(
    recognised: int, people_: int, last: int, refused: bool
) -> None:
    said = check_known(recognised, people_, last, column="id", everybody_is_new=True)
    assert bool(said) == refused


def test_a_table_that_comes_again_says_so_and_is_published_once_more(series: Path) -> None:
    said = run(series, "plan", "q1.csv", *RULES, "--name", "again")
    assert "this table was published already as release 1 (q1)" in said
    again = ("publish", "q1.csv", *RULES, "--yes", "--name", "again", "--format", "json")
    done = invoke(*again, cwd=series)
    assert (done.returncode, done.stdout) == (130, "")
    assert "This table was published already as release 1; --again publishes it once more." in silent(done.stderr)
    assert invoke(*again, "--again", cwd=series).returncode == 0
    assert [entry.name for entry in entries(series)] == ["q1", "again"]


def test_a_table_that_is_not_the_same_does_not_say_so(series: Path) -> None:
    assert "published already" not in run(series, "publish", "q2.csv", *RULES, "--yes")


def test_a_plan_that_was_published_says_as_which_release(series: Path) -> None:
    run(series, "plan", "q2.csv", *RULES, "--out", "next.plan")
    run(series, "publish", "next.plan", *RULES)
    said = run(series, "publish", "next.plan", *RULES, code=5)
    assert "this plan was published already, as release 2 (q2)" in said
    write(series / "q3.csv", numbered(120))
    run(series, "publish", "q3.csv", *RULES, "--yes")
    assert "as release 2 (q2)" in run(series, "publish", "next.plan", *RULES, code=5)


def test_a_name_that_is_taken_says_whether_the_table_is_the_same(series: Path) -> None:
    same = run(series, "publish", "q1.csv", *RULES, "--yes", "--name", "q1", code=6)
    assert "this table was published already as release 1 (q1), and a release of this name" in same
    other = run(series, "publish", "q2.csv", *RULES, "--yes", "--name", "q1", code=6)
    assert "a release of this name is in the ledger already" in other
    assert "this table" not in other


def test_two_rows_of_one_person_that_validation_let_pass_are_not_published(
    series: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(series / "q2.csv", [*numbered(90), *((f" {row[0]}", *row[1:]) for row in numbered(90))])
    monkeypatch.setattr(sequester_table, "check_people", lambda *given, **how: [])
    before = (series / LEDGER).read_bytes()
    assert "two rows are about one person" in run(series, "publish", "q2.csv", *RULES, "--yes", code=4)
    assert (series / LEDGER).read_bytes() == before


def test_a_release_has_one_row_for_each_person_that_is_recorded() -> None:
    check_written(3, np.array([0, 2, 3]), np.array([0, -1, 1, 1], np.int32))
    check_distinct(pa.array([b"a", b"b"]))
    for written, person, member in (
        (4, [0, 2, 3], [0, -1, 1, 1]),
        (3, [0, 2, 2], [0, -1, 1, 1]),
        (3, [0, 2, 3], [0, 0, 1, 1]),
    ):
        with pytest.raises(GuaranteeError, match="Nothing was published"):
            check_written(written, np.array(person), np.array(member, np.int32))
    with pytest.raises(GuaranteeError, match="two rows are about one person"):
        check_distinct(pa.array([b"a", b"b", b"a"]))
