"""`sequester` alone: where the series stands and what to do next, whatever state it is in; and nothing is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clinic import CANARY, LEDGER, POLICY, contents, edit, publish_two, set_up
from command import invoke, sequester
from sequester.ledger import Key, Ledger, Place, duck


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def series(published: Path, tmp_path: Path) -> Path:
    """Two releases, and no key to them."""
    home = Path(shutil.copytree(published, tmp_path / "series"))
    (home / f"{LEDGER}.key").unlink()
    for table in home.glob("q*.csv"):
        # Ledgers count seconds; these were written long before.
        os.utime(table, (1_600_000_000, 1_600_000_000))
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return set_up(tmp_path)


def status(cwd: Path, **environment: str) -> str:
    """What is said, which is never an error, never private, and changes nothing."""
    before, times = contents(cwd), {file: file.stat().st_mtime_ns for file in cwd.rglob("*")}
    done = invoke(cwd=cwd, COLUMNS="200", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert CANARY not in done.stdout
    assert contents(cwd) == before
    assert {file: file.stat().st_mtime_ns for file in cwd.rglob("*")} == times
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def test_in_an_empty_folder_it_says_how_to_begin(tmp_path: Path) -> None:
    said = status(tmp_path)
    for command in ("init w1.csv w2.csv", "check data.csv", "publish data.csv"):
        assert f"  sequester {command} " in said
    assert "sequester --help" in said


def test_without_a_policy_it_names_the_tables_that_are_here(folder: Path) -> None:
    (folder / "policy.yaml").unlink()
    (folder / "cities.csv").unlink()
    said = status(folder)
    assert "tables here   q1.csv, q2.csv, q3.csv\n" in said
    assert "  sequester init q1.csv " in said


def test_only_commands_that_exist_are_named(tmp_path: Path) -> None:
    from sequester.cli.app import app

    names = {command.name for command in app.registered_commands}
    assert ("sequester rehearse" in status(tmp_path)) == ("rehearse" in names)


def test_with_a_policy_it_names_the_tables_and_the_first_steps(folder: Path) -> None:
    said = status(folder)
    assert "clinic: nothing is published yet." in said
    # The hierarchy file is no table about people.
    assert "tables here   q1.csv, q2.csv, q3.csv\n" in said
    for command in ("check q1.csv", "plan q1.csv", "publish q1.csv"):
        assert f"  sequester {command} " in said


def test_after_releases_it_names_the_last_and_the_next_table(series: Path) -> None:
    said = status(series)
    assert "clinic: 2 releases; the last is 2, q2, of 20" in said
    assert "tables here   q3.csv\n" in said
    assert "  sequester plan q3.csv " in said
    assert "policy differs" not in said
    assert "policy changed" not in said


def test_what_is_newer_than_the_last_release_comes_first(series: Path) -> None:
    for name in ("q10.csv", "q4.csv", "notes.txt", ".hidden.csv", "q2.csv"):
        (series / name).write_text(f"id\n{CANARY}\n")
    said = status(series)
    assert "newer tables   q4.csv, q10.csv\n" in said
    assert "  sequester plan q4.csv " in said
    (series / "q4.csv").unlink()
    (series / "q10.csv").unlink()
    (series / "q3.csv").unlink()
    assert "  sequester plan next.csv " in status(series)


def test_names_of_tables_are_shown_as_a_shell_takes_them(series: Path) -> None:
    (series / "q3.csv").rename(series / "q3 $(x)\x1b[2J.csv")
    said = status(series)
    assert "\x1b" not in said
    assert "sequester plan 'q3 $(x)" in said


def test_a_policy_that_was_edited_is_told_by_its_keys(series: Path) -> None:
    edit(series / "policy.yaml", "protect: {k: 2,", "protect: {k: 3,")
    edit(series / "policy.yaml", "method: {name: mondrian}", "method: {name: mondrian, regroup: true}")
    said = status(series)
    assert "policy differs   protect.k: promised when the series began; put it back" in said
    assert "policy changed   method.regroup, since the last release" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{CANARY}: [", "cannot be used: 1 problem."),
        (POLICY.replace("k: 2", f"k: {CANARY}, {CANARY}: 1"), "cannot be used: 2 problems."),
        ("", "cannot be used"),
    ],
)
def test_a_wrong_policy_leads_to_check(series: Path, text: str, words: str) -> None:
    (series / "policy.yaml").write_text(text)
    said = status(series)
    assert words in said
    assert "sequester check " in said


def test_a_policy_that_is_no_file_is_no_reason_to_fail(series: Path) -> None:
    (series / "policy.yaml").unlink()
    (series / "policy.yaml").mkdir()
    assert "policy.yaml cannot be used" in status(series)


def test_two_policies_are_told(series: Path) -> None:
    (series / "policy.yml").write_text(POLICY)
    assert "Policy.yaml and policy.yml are both here" in status(series)


def test_a_policy_without_a_person_is_for_single_tables(folder: Path) -> None:
    edit(folder / "policy.yaml", "person: id\n", "")
    said = status(folder)
    assert "is for single tables" in said
    assert "sequester anonymize q1.csv " in said


def test_a_ledger_without_its_policy_is_named(series: Path) -> None:
    (series / "policy.yaml").unlink()
    assert f"sequester history -l {LEDGER} " in status(series)


def test_an_interrupted_release_is_told_and_mended_by_the_command_it_names(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shutil.copytree(published, tmp_path / "series"))

    def die(name: str) -> None:
        if name == "begun":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sequester.publish.commit.step", die)
        assert invoke("publish", "q3.csv", "--yes", cwd=home).returncode == 130
    said = status(home)
    assert "interrupted   release 3 (q3) was begun by a command that did not end" in said
    assert "  sequester ledger verify " in said
    assert invoke("ledger", "verify", cwd=home).returncode == 0
    assert "interrupted" not in status(home)


@pytest.mark.parametrize("left", [f"{LEDGER}.wal", f".{LEDGER}.before"])
def test_what_a_killed_command_left_is_told_and_not_touched(series: Path, left: str) -> None:
    (series / left).write_bytes(b"left behind")
    said = status(series)
    assert "interrupted" in said
    assert "sequester ledger verify " in said


def test_a_damaged_ledger_is_told_in_a_line(series: Path) -> None:
    damage = (series / LEDGER).read_bytes()
    (series / LEDGER).write_bytes(damage[:4096] + b"\x00" * 9000)
    said = status(series)
    assert "clinic: cannot tell where it stands." in said
    assert "sequester ledger verify " in said
    (series / LEDGER).write_bytes(b"")
    assert "sequester ledger verify " in status(series)
    (series / LEDGER).unlink()
    (series / LEDGER).mkdir()
    assert "cannot tell where it stands" in status(series)


def test_a_ledger_that_others_can_read_is_told(series: Path) -> None:
    (series / LEDGER).chmod(0o644)
    assert "chmod 600" in status(series)


def test_a_ledger_of_another_series_is_told(series: Path) -> None:
    edit(series / "policy.yaml", "series: clinic", f"series: other\nledger: {LEDGER}")
    assert "this is the ledger of another series" in status(series)


def test_a_ledger_that_is_gone_is_told(series: Path) -> None:
    (series / LEDGER).unlink()
    assert "clinic: the ledger is missing." in status(series)


def test_an_encrypted_ledger_needs_no_key_to_be_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cipher that DuckDB brings along is good enough for a test; for real ledgers it is OpenSSL or nothing.
    weak = "SET force_mbedtls_unsafe = 'true'"
    monkeypatch.setattr(duck, "load_cipher", lambda database: database.execute(weak).fetchall())
    assert invoke("publish", "q1.csv", "--yes", "--encrypted", cwd=folder).returncode == 0
    (folder / f"{LEDGER}.key").unlink()
    assert "the ledger is encrypted" in status(folder)


def test_a_ledger_of_an_older_version_is_told(published: Path, tmp_path: Path) -> None:
    import duckdb

    home = Path(shutil.copytree(published, tmp_path / "series"))
    with duckdb.connect(home / LEDGER) as database:
        database.execute("UPDATE meta SET value = '3' WHERE fact = 'schema'")
    said = status(home)
    assert "the ledger was written by an older Sequester; open it with that version" in said


def test_a_ledger_that_another_command_has_is_told(published: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(published, tmp_path / "series"))
    with Ledger.open(home / LEDGER, key=Key.need(Place.of(home / LEDGER))):
        done = sequester(cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert "another command has the ledger" in done.stdout


def test_a_server_that_is_not_there_is_told_without_the_password(folder: Path) -> None:
    edit(folder / "policy.yaml", "series: clinic", "series: clinic\nledger: postgresql://me:hunter2@127.0.0.1:1/x")
    said = status(folder)
    assert "cannot tell where it stands" in said
    assert "hunter2" not in said


def test_a_series_that_goes_on_as_another_is_told(published: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(published, tmp_path / "series"))
    (home / "later.yaml").write_text(POLICY.replace("series: clinic", f"series: later\nafter: {LEDGER}"))
    done = invoke("publish", "q3.csv", "-p", "later.yaml", "--yes", cwd=home)
    assert done.returncode == 0, done.stderr
    said = status(home)
    assert "ended    another series goes on from this one" in said
    assert "sequester plan " not in said.replace("sequester plan --help", "")


def test_it_fits_the_terminal_and_ends_where_nobody_reads(series: Path) -> None:
    for width in (40, 80, 120):
        said = invoke(cwd=series, COLUMNS=str(width)).stdout
        assert max(len(line.rstrip()) for line in said.splitlines() if "sequester --help" not in line) <= width
    read, write = os.pipe()
    os.close(read)
    import sys

    done = subprocess.run([sys.executable, "-m", "sequester"], cwd=series, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
