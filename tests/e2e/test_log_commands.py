"""`--verbose` and `--log`: what was done and how long it took; and nothing of anybody."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from clinic import CANARY, LEDGER, edit, publish_two, set_up
from command import invoke, sequester
from sequester.ledger import Key, Place

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|ERROR) +sequester[.a-z]*: [^\n]+")
SEED = 1 << 63 | 918273645546372
SECRET = "hunter2-secret"
COLUMNS = ("illness", "city")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "series"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return set_up(tmp_path)


def lines(log: Path) -> list[str]:
    """What a log says, which holds nothing private and is nothing but lines of ours."""
    text = log.read_text()
    found = text.splitlines()
    assert [line for line in found if not LINE.fullmatch(line)] == []
    assert CANARY not in text
    assert str(SEED) not in text
    assert f"{SEED:x}" not in text
    assert SECRET not in text
    assert [name for name in COLUMNS if name in text] == []
    return found


def test_a_whole_series_is_told_and_nobody_in_it(folder: Path) -> None:
    log = folder / "run.log"
    (folder / "policy.yaml").rename(folder / "rules.yaml")
    rules = ("-p", "rules.yaml")
    commands: list[tuple[tuple[object, ...], int]] = [
        (("init", "q1.csv"), 0),
        (("check", "q1.csv", *rules, "--show-values"), 0),
        (("plan", "q1.csv", *rules, "--seed", SEED, "--out", "next.plan"), 0),
        (("publish", "next.plan", *rules), 0),
        (("publish", "q2.csv", *rules, "--yes", "--seed", SEED + 1, "--recipient", SECRET, "--purpose", SECRET), 0),
        (("audit", "--ledger", LEDGER, *rules), 0),
        (("audit", "releases/clinic/0001-q1/data.csv", "releases/clinic/0002-q2/data.csv", *rules), 3),
        (("anonymize", "q1.csv", *rules, "--seed", SEED), 0),
        (("ledger", "verify", *rules), 0),
        (("ledger", "export", "backup", *rules), 0),
        (("history", *rules), 0),
        (("publish", "q2.csv", *rules, "--name", "q1", "--yes"), 6),
    ]
    for command, code in commands:
        done = invoke("--log", log, *command, cwd=folder)
        assert done.returncode == code, done.stderr
    said = lines(log)
    key = Key.need(Place.of(folder / LEDGER))
    secret = (folder / f"{LEDGER}.key").read_text().strip()
    assert secret not in "\n".join(said)
    assert key.check not in "\n".join(said)
    for part in (
        "sequester: sequester 0.1.0 python=",
        "cli: begins command=publish",
        "ingest: opens file=q1.csv bytes=",
        "ingest: read rows=60 columns=4",
        "publish: matching people seconds=",
        "publish: comparing release=2 records=90 classes=",
        "attacks: attack difference adversary=insider seconds=",
        "ledger: opened to write ledger=clinic.ledger series=clinic",
        "ledger: records: begun release=2",
        "files: wrote file=releases/clinic/.0001-q1.draft/data.csv rows=60",
        "files: shown folder=releases/clinic/0002-q2",
        "cli: failed error=DataError problems=1",
        "cli: ends command=publish exit_code=6 seconds=",
    ):
        assert any(part in line for line in said), part


@pytest.mark.parametrize("column", ["id", "age", "city", "illness"])
def test_a_wrong_cell_is_in_no_log(folder: Path, column: str) -> None:
    head, *rows = (folder / "q1.csv").read_text().splitlines()
    cells = rows[0].split(",")
    cells[head.split(",").index(column)] = f"{CANARY}-wrong\x1b[2J" if column != "id" else rows[1].split(",")[0]
    (folder / "q1.csv").write_text("\n".join([head, ",".join(cells), *rows[1:], f"{CANARY},{CANARY}"]) + "\n")
    for command in (
        ("check", "q1.csv", "--show-values"),
        ("plan", "q1.csv"),
        ("anonymize", "q1.csv"),
        ("init", "q1.csv", "--force"),
    ):
        invoke(*command, "--log", "run.log", cwd=folder)
    assert any("cli: failed error=DataError" in line for line in lines(folder / "run.log"))


def test_a_file_without_a_header_is_in_no_log(folder: Path) -> None:
    table = folder / "q1.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[1:]))
    assert invoke("check", "q1.csv", "--log", "run.log", cwd=folder).returncode == 6
    assert "cli: failed error=DataError" in "\n".join(lines(folder / "run.log"))


def test_values_and_keys_of_a_wrong_policy_are_in_no_log(folder: Path) -> None:
    edit(folder / "policy.yaml", "confidence: 0.6", f"confidence: {{{CANARY}: 7}}, {CANARY}: 1")
    assert invoke("plan", "q1.csv", "--log", "run.log", cwd=folder).returncode == 6
    assert "cli: failed error=PolicyError" in "\n".join(lines(folder / "run.log"))


def test_an_internal_error_is_logged_without_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr("sequester.publish.prepare.take_census", fail)
    assert invoke("plan", "q1.csv", "--log", "run.log", cwd=folder).returncode == 1
    said = lines(folder / "run.log")
    assert said[-2].endswith("sequester.cli: failed error=ZeroDivisionError")
    assert "exit_code=1" in said[-1]


def test_wrong_usage_is_logged_without_what_was_typed(folder: Path) -> None:
    assert invoke("--log", "run.log", "plan", "q1.csv", "--ahead", CANARY, cwd=folder).returncode == 2
    assert "exit_code=2" in lines(folder / "run.log")[-1]


def test_a_password_is_in_no_log(folder: Path) -> None:
    address = f"postgresql://steward:{SECRET}@127.0.0.1:1/books?sslpassword={SECRET}"
    done = invoke("--log", "run.log", "-v", "plan", "q1.csv", "--ledger", address, cwd=folder)
    assert done.returncode in (5, 6)
    assert SECRET not in done.stderr
    lines(folder / "run.log")
    edit(folder / "policy.yaml", "series: clinic", f"series: clinic\nledger: {address}")
    assert invoke("--log", "run.log", "publish", "q1.csv", "--yes", cwd=folder).returncode in (5, 6)
    lines(folder / "run.log")


def test_a_query_is_in_no_log(folder: Path) -> None:
    import csv
    import sqlite3

    with sqlite3.connect(folder / "clinic.sqlite") as database, (folder / "q1.csv").open() as stream:
        head, *rows = csv.reader(stream)
        database.execute(f"CREATE TABLE q1 ({', '.join(head)})")
        database.executemany("INSERT INTO q1 VALUES (?, ?, ?, ?)", rows)
    query = f"clinic.sqlite::SELECT * FROM q1 WHERE illness <> '{CANARY}'"
    done = invoke("check", query, "--log", "run.log", cwd=folder)
    assert done.returncode == 0, done.stderr
    said = "\n".join(lines(folder / "run.log"))
    assert "opens file=clinic.sqlite bytes=" in said
    assert "SELECT" not in said


def test_the_key_in_the_environment_is_in_no_log(folder: Path) -> None:
    key = "0123456789abcdef" * 4
    done = invoke("publish", "q1.csv", "--yes", "--log", "run.log", cwd=folder, SEQUESTER_KEY=key)
    assert done.returncode == 0, done.stderr
    assert key not in "\n".join(lines(folder / "run.log"))


def test_verbose_goes_to_stderr_and_leaves_the_result_alone(series: Path) -> None:
    plain = sequester("history", cwd=series)
    for words in (("--verbose", "history"), ("-v", "history"), ("history", "--verbose"), ("-v", "history", "-v")):
        done = sequester(*words, cwd=series)
        assert (done.returncode, done.stdout) == (0, plain.stdout)
        assert sum("opened to read" in line for line in done.stderr.splitlines()) == 1
        assert [line for line in done.stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d\.\d{3}Z \w", line)] == []
    assert plain.stderr == ""
    assert "opened to read" in sequester("history", cwd=series, SEQUESTER_VERBOSE="1").stderr
    assert sequester("history", cwd=series, SEQUESTER_VERBOSE="0").stderr == ""


def test_the_log_is_its_owners_and_grows(series: Path) -> None:
    before = os.umask(0)
    try:
        invoke("history", cwd=series, SEQUESTER_LOG="run.log")
    finally:
        os.umask(before)
    log = series / "run.log"
    first = log.read_bytes()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    # `history --log` is what happened to the ledger, so that for this command the option stands before it.
    assert invoke("--log", "run.log", "history", "--log", cwd=series).returncode == 0
    assert log.read_bytes().startswith(first)
    assert len(lines(log)) == 2 * len(first.splitlines())


@pytest.mark.parametrize("place", ["q1.csv", "policy.yaml", "link", "folder", "pipe", "absent/run.log", ""])
def test_nothing_but_a_log_is_appended_to(folder: Path, place: str) -> None:
    (folder / "link").symlink_to("elsewhere")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    done = invoke("--log", place, "check", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--log" in done.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


def test_a_file_that_somebody_else_made_is_not_written_to(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (folder / "run.log").touch()
    os.chown(folder / "run.log", 12345, -1)
    done = invoke("--log", "run.log", "check", cwd=folder)
    assert done.returncode == 2
    assert "somebody else's" in " ".join(done.stderr.split())
    assert (folder / "run.log").read_bytes() == b""


def test_a_name_cannot_pass_for_a_line(folder: Path) -> None:
    name = "x\n2026-01-01T00:00:00.000Z INFO    sequester.cli: ends exit_code=0 \x1b[2J.csv"
    (folder / "q1.csv").rename(folder / name)
    assert invoke("check", name, "--log", "run.log", cwd=folder).returncode == 0
    said = lines(folder / "run.log")
    assert said[0].endswith(" command=check")
    assert sum("exit_code" in line for line in said) == 2
    assert sum(re.match(r"\S+ \w+ +sequester\.cli: ends", line) is not None for line in said) == 1
    assert "\x1b" not in "".join(said)


def test_a_full_disk_ends_the_log_and_not_the_command(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    import logging

    from sequester.cli import log

    handler = log._FileListener(os.open("/dev/full", os.O_WRONLY), Path("run.log"))
    handler.handle(logging.LogRecord("sequester", logging.INFO, "", 0, "said", None, None))
    handler.handle(logging.LogRecord("sequester", logging.INFO, "", 0, "said", None, None))
    assert handler._handle is None


def test_nobody_listens_unless_asked(series: Path) -> None:
    import logging

    invoke("--log", "run.log", "-v", "history", cwd=series)
    logger = logging.getLogger("sequester")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    assert invoke("plan", "q3.csv", cwd=series).stderr == ""
