"""`sequester ledger withdraw`, `close` and `people`, as people and scripts run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from clinic import CANARY, LEDGER, edit, people, publish_two, write
from command import invoke

RULES = ("-p", "policy.yaml")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


def mapped(folder: Path, count: int) -> Path:
    """A mapping of everybody, whose new ids are canaries, too."""
    lines = [f"{row[0]},new-{row[0]}" for row in people(count)]
    (folder / "mapping.csv").write_text("old_id,new_id\n" + "\n".join(lines) + "\n")
    return folder / "mapping.csv"


def test_a_release_is_withdrawn_seen_as_such_and_put_back(series: Path) -> None:
    planned = invoke("ledger", "withdraw", "2", *RULES, "--plan", cwd=series)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.startswith("clinic: release 2 (q2) withdrawn (planned, nothing was changed).")
    shown = series / "releases" / "clinic" / "0002-q2"
    assert shown.is_dir()
    done = invoke("ledger", "withdraw", "q2", *RULES, "--reason", "wrong table", cwd=series)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Whoever has the release keeps it: it stays known, and every later plan and audit counts it." in done.stdout
    assert not shown.exists()
    history = invoke("history", "-l", LEDGER, cwd=series)
    assert "* Release 2 was withdrawn on 20" in history.stdout
    assert "2*  q2 " in history.stdout
    assert "wrong table" in history.stdout
    assert '"hash"' not in invoke("history", "-l", LEDGER, "--log", cwd=series).stdout
    for command in ("show", "report"):
        told = invoke(command, "2", *RULES, cwd=series)
        assert told.returncode == 0
        assert "withdrawn on 20" in told.stdout + told.stderr
        assert "wrong table" not in told.stdout + told.stderr
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 0
    again = invoke("ledger", "withdraw", "2", *RULES, cwd=series)
    assert (again.returncode, again.stdout) == (6, "")
    assert "release 2 is withdrawn already" in again.stderr
    back = invoke("ledger", "withdraw", "2", *RULES, "--undo", "--format", "json", cwd=series)
    found = json.loads(back.stdout)
    assert (found["action"], found["done"], found["facts"]["name"]) == ("restored", True, "q2")
    assert shown.is_dir()
    assert invoke("publish", "q3.csv", *RULES, "--yes", cwd=series).returncode == 0


def test_the_json_of_the_history_has_withdrawals_and_the_end(series: Path) -> None:
    for words in (("withdraw", "1", "--reason", "one"), ("close", "--reason", "two")):
        assert invoke("ledger", *words, *RULES, cwd=series).returncode == 0
    found = json.loads(invoke("history", "-l", LEDGER, "--format", "json", cwd=series).stdout)
    assert [bool(entry["withdrawn"]) for entry in found["releases"]] == [True, False]
    assert (found["releases"][0]["withdrawn"]["reason"], found["closed"]["reason"]) == ("one", "two")
    shown = json.loads(invoke("show", "1", "-l", LEDGER, "--format", "json", cwd=series).stdout)
    assert shown["withdrawn"] == found["releases"][0]["withdrawn"]["at"]


def test_a_closed_series_is_told_with_what_to_do(series: Path) -> None:
    done = invoke("ledger", "close", *RULES, "--reason", "the study has ended", cwd=series)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "clinic: closed."
    for words in (("plan", "q3.csv"), ("publish", "q3.csv", "--yes")):
        refused = invoke(*words, *RULES, cwd=series)
        assert (refused.returncode, refused.stdout) == (6, "")
        assert "nothing more is published in it; open it again (`sequester ledger close`, --undo)" in refused.stderr
    assert "The series was closed on 20" in invoke("history", *RULES, cwd=series).stdout
    assert invoke("audit", "--ledger", LEDGER, *RULES, cwd=series).returncode == 0
    assert invoke("ledger", "close", *RULES, "--undo", cwd=series).stdout.startswith("clinic: open again.")
    assert invoke("publish", "q3.csv", *RULES, "--yes", cwd=series).returncode == 0


def test_people_get_other_ids_and_no_id_is_told(series: Path) -> None:
    words = ("ledger", "people", mapped(series, 91), "--old", "old_id", "--new", "new_id", *RULES)
    planned = invoke(*words, "--plan", cwd=series)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "90 people have another id from now on" in planned.stdout
    assert "1 person has an old id in the mapping that was never published: passed over." in planned.stdout
    old = invoke("publish", "q3.csv", *RULES, "--yes", "--name", "before", cwd=series)
    assert old.returncode == 0
    done = invoke(*words, "--format", "json", cwd=series)
    assert json.loads(done.stdout)["facts"] == {"people": 91, "unchanged": 0, "unknown": 0, "others": 0}
    refused = invoke("plan", "q3.csv", *RULES, "--name", "after", cwd=series)
    assert refused.returncode == 6
    assert "91 ids were replaced by others with a mapping" in refused.stderr
    rows = [(f"new-{row[0]}", *row[1:]) for row in people(91)]
    write(series / "q4.csv", rows)
    edit(series / "policy.yaml", "person: id", "person: number")
    (series / "q4.csv").write_text((series / "q4.csv").read_text().replace("id,age", "number,age", 1))
    plan = invoke("plan", "q4.csv", *RULES, "--format", "json", cwd=series)
    assert json.loads(plan.stdout)["change"]["stayers"] == 90
    undone = invoke("ledger", "people", *RULES, "--undo", cwd=series)
    assert undone.returncode == 0
    for told in (planned, done, refused, plan, undone):
        assert CANARY not in told.stdout + told.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("people",), "name a mapping, and its columns with --old and --new"),
        (("people", "mapping.csv", "--undo"), "needs no mapping"),
        (("close", "--undo", "--reason", "x"), "leave it out"),
        (("withdraw", "7"), "no release has this number or name"),
    ],
)
def test_wrong_use_is_exit_code_2(series: Path, words: tuple[str, ...], said: str) -> None:
    done = invoke("ledger", *words, *RULES, cwd=series, COLUMNS="200")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("command", ["withdraw", "close", "people"])
def test_help_has_examples_and_exit_codes(series: Path, command: str) -> None:
    done = invoke("ledger", command, "--help", cwd=series, COLUMNS="120")
    assert done.returncode == 0
    assert f"$ sequester ledger {command}" in done.stdout
    assert "0 done · 2 wrong usage · 5 stale plan, or another command has the ledger · 6 invalid" in done.stdout
    assert "--plan" in done.stdout
