"""The commands of a series whose ledger is on a server: with the address in the policy, or after --ledger."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from clinic import CANARY, contents, edit, set_up
from command import invoke, sequester
from postgres import SERVER

pytestmark = pytest.mark.skipif(SERVER.why_not is not None, reason=SERVER.why_not or "")
RULES = ("-p", "policy.yaml")
SECRET = "s3cret-word"
_NUMBERS = count(1)


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own; the server asks the steward for no password, so any will do."""
    name = f"clinic{next(_NUMBERS)}"
    yield SERVER.url(name).replace("steward@", f"steward:{SECRET}@")
    SERVER.sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    """The address is in the policy."""
    set_up(tmp_path)
    edit(tmp_path / "policy.yaml", "series: clinic\n", f"series: clinic\nledger: {url}\n")
    return tmp_path


def test_every_command_finds_the_ledger_and_no_word_or_file_shows_the_password(folder: Path, url: str) -> None:
    policy = (folder / "policy.yaml").read_text()
    said = []
    for words in (
        ("plan", "q1.csv", *RULES),
        ("plan", "q1.csv", *RULES, "--ledger", url, "--out", "next.plan"),
        ("publish", "next.plan", *RULES, "--format", "json"),
        ("publish", "q2.csv", *RULES, "--yes"),
        ("plan", "q3.csv", *RULES, "--format", "json"),
        ("history", *RULES, "--log"),
        ("history", "--ledger", url, "--format", "json"),
        ("show", "q2", *RULES),
        ("audit", "--ledger", url, *RULES),
        ("ledger", "verify", *RULES, "--format", "json"),
        ("ledger", "verify", "--ledger", f"{url}#clinic"),
        ("ledger", "export", "backup", *RULES),
    ):
        done = invoke(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        said.append(done.stdout + done.stderr)
    assert SECRET not in "".join(said)
    assert CANARY not in "".join(text for text in said[:9])
    shown = url.replace(SECRET, "***")
    assert f"Made the ledger {shown}#clinic and its key, clinic.ledger.key" in said[1]
    assert f"--ledger {shlex.quote(shown)}" in said[1]
    assert json.loads(said[2])["ledger"] == f"{shown}#clinic"
    assert json.loads(said[6])["ledger"] == f"{shown}#clinic"
    assert json.loads(said[9])["holds"] is True
    (folder / "policy.yaml").unlink()
    assert not [name for name, data in contents(folder).items() if SECRET.encode() in data]
    assert SECRET in policy
    assert sorted(entry.name for entry in (folder / "releases" / "clinic").iterdir()) == ["0001-q1", "0002-q2"]
    assert not (folder / "clinic.ledger").exists()


def test_the_ledger_of_a_file_moves_to_a_server_and_back(tmp_path: Path, url: str) -> None:
    folder = set_up(tmp_path)
    for words in (
        ("publish", "q1.csv", *RULES, "--yes"),
        ("ledger", "export", "one", *RULES),
        ("ledger", "import", "one", *RULES, "--ledger", url),
    ):
        done = invoke(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
    (folder / "clinic.ledger").rename(folder / "retired")
    for command in (
        ("publish", "q2.csv", *RULES, "--yes", "--ledger", url),
        ("ledger", "verify", *RULES, "--ledger", url),
        ("ledger", "export", "two", *RULES, "--ledger", url),
        ("ledger", "import", "two", *RULES),
        ("ledger", "verify", *RULES),
        ("publish", "q3.csv", *RULES, "--yes"),
    ):
        done = invoke(*command, cwd=folder)
        assert done.returncode == 0, (command, done.stderr)
    # The ledger on the server is behind now, and nothing is published with it.
    done = invoke("publish", "q2.csv", *RULES, "--yes", "--name", "again", "--ledger", url, cwd=folder)
    assert done.returncode == 6
    assert "older than" in done.stderr


def test_encryption_is_refused_with_a_server(folder: Path) -> None:
    done = invoke("publish", "q1.csv", *RULES, "--yes", "--encrypted", cwd=folder)
    assert done.returncode == 2
    assert "the server encrypts" in " ".join(done.stderr.replace("│", " ").split())
    assert not (folder / "clinic.ledger.key").exists()


def test_a_new_series_is_planned_and_goes_on_from_one_on_a_server(folder: Path, url: str) -> None:
    assert invoke("publish", "q1.csv", *RULES, "--yes", cwd=folder).returncode == 0
    (folder / "next.yaml").write_text(
        (folder / "policy.yaml").read_text().replace("series: clinic\n", f"series: second\nafter: {url}#clinic\n")
    )
    for words in (
        ("plan", "q2.csv", "-p", "next.yaml"),
        ("publish", "q2.csv", "-p", "next.yaml", "--yes"),
        ("ledger", "verify", "-p", "next.yaml"),
    ):
        done = invoke(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
    assert "2 releases, 90 people" in done.stdout
    done = invoke("history", "--ledger", url, cwd=folder)
    assert done.returncode == 6
    assert "clinic, second" in done.stderr


def test_a_server_that_does_not_answer_ends_in_words(folder: Path) -> None:
    edit(folder / "policy.yaml", f":{SERVER.port}/", ":1/")
    for words in (("publish", "q1.csv", *RULES, "--yes"), ("plan", "q1.csv", *RULES), ("history", *RULES)):
        done = (sequester if words[0] == "publish" else invoke)(*words, cwd=folder)
        assert (done.returncode, done.stdout) == (6, "")
        assert "the ledger's server does not answer" in done.stderr
        assert SECRET not in done.stderr
        assert "Traceback" not in done.stderr
