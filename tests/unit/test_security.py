"""SECURITY.md: every row of its table is tried by tests that exist; and what no other test tries of it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
from test_theory import missing_tests

import sequester as sq
from ledgers import new, publish
from sequester.ledger import Ledger
from towns import KEY, SEED, people, rules

PAGE = (Path(__file__).parents[2] / "SECURITY.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
NOTES = dict(re.findall(r"^\[\^(\w+)\]: (.+)$", PAGE, re.MULTILINE))


def test_the_table_is_the_only_one_and_every_row_says_what_is_checked_by_a_test() -> None:
    assert len(re.findall(r"^\|---", PAGE, re.MULTILINE)) == 1
    assert len(ROWS) > 12
    assert [row for row in ROWS if row.count(" | ") != 3 or "[^" not in row.rpartition(" | ")[2]] == []


def test_every_check_that_the_table_promises_has_its_test() -> None:
    """Whatever is checked 'At' or 'When' something happens, refused or left, sentence by sentence."""
    checked = [row.rpartition(" | ")[2].rstrip("| ") for row in ROWS]
    sentences = [sentence for cell in checked for sentence in re.split(r"\.(?:\[\^\w+\])? ", cell)]
    assert [sentence for sentence in sentences if "[^" not in sentence and sentence != "Never read back"] == []


def test_the_tests_behind_the_table_exist_and_no_note_is_idle() -> None:
    used = set(re.findall(r"\[\^(\w+)\](?!:)", PAGE))
    assert used == set(NOTES)
    assert [name for name, text in NOTES.items() if "::test_" not in text] == []
    assert missing_tests(PAGE) == set()


def test_what_is_private_is_its_owners_alone(tmp_path: Path) -> None:
    series = sq.Series.open(tmp_path / "towns.ledger", rules(), key=KEY)
    series.publish(people(100), name="one", seed=SEED)
    parquet.write_table(people(200), tmp_path / "two.parquet")
    series.plan(tmp_path / "two.parquet", name="two", seed=SEED).save(tmp_path / "two.plan")
    with Ledger.open(series.place, key=KEY) as ledger:
        ledger.export(tmp_path / "export")
    files = [tmp_path / "towns.ledger", tmp_path / "towns.ledger.head", tmp_path / "two.plan"]
    exported = [*(tmp_path / "export").iterdir()]
    assert len(exported) > 10
    assert {stat.S_IMODE(file.stat().st_mode) for file in (*files, *exported)} == {0o600}


def test_whoever_has_ledger_and_key_finds_an_id_that_can_be_guessed(tmp_path: Path) -> None:
    """As the page says: so the two are kept apart where others can read."""
    with new(tmp_path / "x.ledger") as ledger:
        publish(ledger, [0, 0, 0])
        guessed = ledger.match(ledger.identify(pa.array(["p1", "nobody"])))
        assert guessed.tolist() == [1, -1]
