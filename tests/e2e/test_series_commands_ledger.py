"""`sequester history`, `show`, `report`, `ledger`, `audit --ledger` and the key that `init` makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from clinic import LEDGER, contents, edit, people, publish_two, set_up, write
from command import invoke, sequester

RULES = ("-p", "policy.yaml")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases, then one for which somebody waits, and an unchanged table for which she waits on."""
    folder = publish_two(tmp_path_factory.mktemp("clinic"))
    for extra in (("--recipient", "university", "--purpose", "research"), ("--name", "q4", "--again")):
        done = invoke("publish", "q3.csv", *RULES, "--yes", *extra, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


def test_the_history_lists_releases_and_takes_no_key(series: Path) -> None:
    (series / "clinic.ledger.key").unlink()
    for which in (RULES, ("--ledger", LEDGER)):
        done = sequester("history", *which, cwd=series)
        assert (done.returncode, done.stderr) == (0, "")
        lines = [line.split() for line in done.stdout.splitlines() if line]
        assert " ".join(lines[0]) == "clinic: 4 releases, 90 people so far."
        assert lines[1][:8] == ["name", "recorded", "records", "classes", "new", "left", "held", "method"]
        assert [line[:2] for line in lines[2:]] == [["1", "q1"], ["2", "q2"], ["3", "q3"], ["4", "q4"]]
        assert [line[7] for line in lines[2:]] == ["0", "0", "1", "1"]
        assert "university" in done.stdout


def test_the_log_tells_what_happened(series: Path) -> None:
    done = invoke("history", *RULES, "--log", "--format", "json", cwd=series)
    actions = [event["action"] for event in json.loads(done.stdout)["log"]]
    assert actions == ["created", *["begun", "published"] * 4]
    assert "created" in invoke("history", *RULES, "--log", cwd=series).stdout


def test_the_json_of_the_history_has_everything_but_secrets(series: Path) -> None:
    found = json.loads(invoke("history", "-l", LEDGER, "--format", "json", cwd=series).stdout)
    assert found["series"] == "clinic"
    assert [entry["status"] for entry in found["releases"]] == ["published"] * 4
    assert [entry["summary"]["change"]["newcomers"] for entry in found["releases"]] == [60, 30, 1, 1]
    assert found["releases"][2]["recipient"] == "university"
    assert not {"seed", "policy_text"} & set(found["releases"][0])


def test_a_history_without_releases_says_so(tmp_path: Path) -> None:
    set_up(tmp_path)
    invoke("plan", "q1.csv", *RULES, "--out", "next.plan", cwd=tmp_path)
    assert "nothing was published yet" in invoke("history", *RULES, cwd=tmp_path).stdout


@pytest.mark.parametrize("which", ["3", "q3"])
def test_one_release_is_shown_by_number_or_name(series: Path, which: str) -> None:
    text = " ".join(invoke("show", which, *RULES, cwd=series).stdout.split())
    assert "Release 3 of clinic, q3, published, by mondrian." in text
    assert "folder releases/clinic/0003-q3" in text
    assert "recipient university purpose research" in text
    assert "1 new, 90 stay" in text
    assert "difference the series insider 2 2 0 holds" in text
    assert "merge (Byun et al.)" in text


def test_the_queue_has_ages(series: Path) -> None:
    text = " ".join(invoke("show", "4", *RULES, cwd=series).stdout.split())
    assert "1 person is held back, for 2 releases at most" in text
    assert "1 waits for 2 releases" in text
    found = json.loads(invoke("show", "4", *RULES, "--format", "json", cwd=series).stdout)
    assert found["queue"] == [{"releases": 2, "people": 1}]
    # With company the next can be hidden, and the queue is empty.
    write(series / "q5.csv", people(95))
    assert invoke("publish", "q5.csv", *RULES, "--yes", cwd=series).returncode == 0
    assert json.loads(invoke("show", "5", *RULES, "--format", "json", cwd=series).stdout)["queue"] == []


def test_a_release_that_is_not_there_is_wrong_usage(series: Path) -> None:
    for command in ("show", "report"):
        done = invoke(command, "5", *RULES, cwd=series)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there are 4 in the ledger" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "command", [("history",), ("show", "1"), ("report", "1"), ("ledger", "verify"), ("ledger", "export", "x")]
)
def test_a_series_must_be_named_and_be_there(tmp_path: Path, command: tuple[str, ...]) -> None:
    set_up(tmp_path)
    before = contents(tmp_path)
    assert invoke(*command, cwd=tmp_path).returncode == 6
    assert contents(tmp_path) == before
    (tmp_path / "policy.yaml").unlink()
    assert invoke(*command, cwd=tmp_path).returncode == 2
    done = invoke(*command, "--ledger", "nowhere.ledger", cwd=tmp_path)
    assert done.returncode == 6
    assert not (tmp_path / "nowhere.ledger").exists()
    assert not (tmp_path / "nowhere.ledger.key").exists()


def test_the_report_is_where_it_says(series: Path) -> None:
    done = invoke("report", "q2", *RULES, cwd=series)
    assert done.stdout == "releases/clinic/0002-q2/report.html\n"
    assert (series / done.stdout.strip()).read_text().startswith("<!doctype html>")
    assert json.loads(invoke("report", "2", *RULES, "--format", "json", cwd=series).stdout)["number"] == 2
    assert invoke("report", "2", *RULES, "--releases", "elsewhere", cwd=series).returncode == 6


def test_a_ledger_that_is_right_is_verified_and_audited(series: Path) -> None:
    done = sequester("ledger", "verify", *RULES, cwd=series)
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "clinic.ledger is what was written: 4 releases, 90 people" in text
    assert "No attack works on them together" in text
    found = json.loads(invoke("ledger", "verify", *RULES, "--format", "json", cwd=series).stdout)
    assert (found["holds"], found["audit"]["holds"], found["audit"]["findings"]) == (True, True, 0)


def test_without_the_policy_the_ledger_is_verified_but_not_audited(series: Path) -> None:
    done = invoke("ledger", "verify", "--ledger", LEDGER, cwd=series)
    assert done.returncode == 0
    assert "not audited" in done.stdout


def test_a_release_folder_that_was_changed_ends_with_6(series: Path) -> None:
    data = series / "releases/clinic/0002-q2/data.csv"
    data.write_bytes(data.read_bytes() + b"\n")
    shutil.rmtree(series / "releases/clinic/0001-q1")
    done = invoke("ledger", "verify", *RULES, cwd=series)
    assert done.returncode == 6
    assert "release 1 was published, but its folder is not there" in done.stdout
    assert "release 2 is not what was recorded (data.csv)" in done.stdout
    found = json.loads(invoke("ledger", "verify", *RULES, "--format", "json", cwd=series).stdout)
    assert (found["holds"], len(found["problems"]), found["audit"]) == (False, 2, None)


def test_a_ledger_that_is_damaged_ends_with_6(series: Path) -> None:
    path = series / LEDGER
    path.write_bytes(path.read_bytes()[:5000])
    done = invoke("ledger", "verify", *RULES, cwd=series)
    assert (done.returncode, done.stdout) == (6, "")
    assert "internal error" not in done.stderr


def test_a_ledger_goes_through_an_export_unchanged(series: Path) -> None:
    assert invoke("ledger", "export", "backup", *RULES, cwd=series).returncode == 0
    before = json.loads(invoke("history", *RULES, "--format", "json", cwd=series).stdout)
    (series / LEDGER).unlink()
    done = invoke("ledger", "import", "backup", *RULES, cwd=series)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Imported 4 releases into clinic.ledger.\n"
    after = json.loads(invoke("history", *RULES, "--format", "json", cwd=series).stdout)
    assert after == before
    assert invoke("ledger", "verify", *RULES, cwd=series).returncode == 0
    write(series / "q5.csv", people(95))
    assert invoke("publish", "q5.csv", *RULES, "--yes", cwd=series).returncode == 0


def test_export_and_import_replace_nothing(series: Path) -> None:
    done = invoke("ledger", "export", "backup", *RULES, "--format", "json", cwd=series)
    assert json.loads(done.stdout) == {"ledger": LEDGER, "folder": "backup", "releases": 4}
    before = (series / LEDGER).read_bytes()
    for command in ("export", "import"):
        done = invoke("ledger", command, "backup", *RULES, cwd=series)
        assert (done.returncode, done.stdout) == (6, "")
        assert "exists already" in done.stderr
    assert (series / LEDGER).read_bytes() == before


def test_an_import_needs_the_key_and_an_export_that_is_whole(series: Path) -> None:
    invoke("ledger", "export", "backup", *RULES, cwd=series)
    assert "the key is not there" in invoke("ledger", "import", "backup", "-l", "new.ledger", cwd=series).stderr
    key = (series / "clinic.ledger.key").read_text().strip()
    wrong = invoke("ledger", "import", "backup", "-l", "new.ledger", cwd=series, SEQUESTER_KEY="another key, not it")
    assert wrong.returncode == 6
    assert "not the one of this ledger" in wrong.stderr
    table = series / "backup/classes.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[:-1])
    done = invoke("ledger", "import", "backup", "-l", "new.ledger", cwd=series, SEQUESTER_KEY=key)
    assert done.returncode == 6
    assert not (series / "new.ledger").exists()
    table.write_bytes(whole)
    done = invoke("ledger", "import", "backup", "-l", "new.ledger", cwd=series, SEQUESTER_KEY=key)
    assert done.returncode == 0, done.stderr


def test_an_audit_of_a_ledger_is_the_audit_of_its_releases(series: Path) -> None:
    done = invoke("audit", "--ledger", LEDGER, *RULES, cwd=series)
    assert done.returncode == 0
    assert "Nothing that was tried works" in done.stdout
    found = json.loads(invoke("audit", "--ledger", LEDGER, *RULES, "--format", "json", cwd=series).stdout)
    assert found["measures"]["difference"] >= 2
    # The one that everybody waits for cannot be hidden: without a memory she is found, as a number.
    edit(series / "policy.yaml", "name: mondrian", "name: static")
    more = ("--again", "--name", "bad", "--i-know-this-leaks")
    assert invoke("publish", "q3.csv", *RULES, "--yes", *more, cwd=series).returncode == 0
    leaky = invoke("audit", "--ledger", LEDGER, *RULES, cwd=series)
    assert leaky.returncode == 4
    assert "CANARY-7f3a-90" not in leaky.stdout
    assert "--explain 1" in leaky.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("--ledger", LEDGER, "q1.csv"), ("--ledger", LEDGER, "--paper")], ids=["none", "both", "paper"]
)
def test_an_audit_is_of_files_or_of_a_ledger(series: Path, arguments: tuple[str, ...]) -> None:
    assert invoke("audit", *arguments, *RULES, cwd=series).returncode == 2


def test_an_audit_makes_no_ledger(tmp_path: Path) -> None:
    set_up(tmp_path)
    assert invoke("audit", "--ledger", LEDGER, *RULES, cwd=tmp_path).returncode == 6
    assert not (tmp_path / LEDGER).exists()


def test_init_makes_the_key_of_the_series_once(tmp_path: Path) -> None:
    write(tmp_path / "clinic.csv", people(60))
    done = sequester("init", "clinic.csv", "--out", "new/policy.yaml", cwd=tmp_path)
    assert done.returncode == 2, "the folder is not there"
    done = sequester("init", "clinic.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (key,) = tmp_path.glob("*.ledger.key")
    assert key.name in done.stdout
    assert key.stat().st_mode & 0o777 == 0o600
    text = key.read_text()
    assert text.strip() not in done.stdout
    again = sequester("init", "clinic.csv", "--force", cwd=tmp_path)
    assert again.returncode == 0
    assert key.name not in again.stdout
    assert key.read_text() == text
    # It is the key that the series then uses.
    planned = invoke("plan", "clinic.csv", *RULES, "--out", "next.plan", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert key.name not in planned.stderr
    assert key.read_text() == text


def test_init_makes_no_key_when_there_is_one_or_no_file(tmp_path: Path) -> None:
    write(tmp_path / "clinic.csv", people(60))
    invoke("init", "clinic.csv", cwd=tmp_path, SEQUESTER_KEY="a key from the environment")
    invoke("init", "clinic.csv", "--out", "-", cwd=tmp_path)
    assert not [*tmp_path.glob("*.key")]
