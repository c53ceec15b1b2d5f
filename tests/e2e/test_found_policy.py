"""`policy.yaml` of the working folder is the policy where none is named, for every command."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clinic import LEDGER, POLICY, edit, publish_two, set_up
from command import invoke
from sequester.cli.app import app


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_two(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return set_up(tmp_path)


def said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(f"{done.stdout} {done.stderr}".replace("│", " ").split())


@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("check", "q1.csv"),
        ("plan", "q3.csv"),
        ("history",),
        ("show", "2"),
        ("report", "q1"),
        ("audit", "--ledger", LEDGER),
        ("measure", "releases/clinic/0001-q1/data.csv"),
        ("ledger", "verify"),
    ],
    ids=" ".join,
)
def test_every_command_finds_the_policy_of_the_folder(published: Path, command: tuple[str, ...]) -> None:
    done = invoke(*command, cwd=published)
    assert (done.returncode, done.stderr) == (0, "")
    named = ("check", "policy.yaml", *command[1:]) if command[0] == "check" else (*command, "-p", "policy.yaml")
    assert done.stdout == invoke(*named, cwd=published).stdout


def test_verify_audits_by_the_policy_it_finds(published: Path) -> None:
    assert "No attack works" in said(invoke("ledger", "verify", cwd=published))


def test_every_command_that_takes_a_policy_can_find_it() -> None:
    from typer.main import get_command

    def leaves(group: Any) -> list[Any]:
        parts = [leaves(one) if hasattr(one, "commands") else [one] for one in group.commands.values()]
        return [leaf for part in parts for leaf in part]

    every = leaves(get_command(app))
    taking = {one.name: param for one in every for param in one.params if "-p" in param.opts}
    assert {"check", "plan", "publish", "anonymize", "audit", "measure", "history", "show", "verify"} <= set(taking)
    assert [name for name, param in taking.items() if param.required] == []


@pytest.mark.parametrize("command", [("plan", "q1.csv"), ("anonymize", "q1.csv"), ("history",), ("check", "q1.csv")])
def test_without_a_policy_the_error_names_init(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "policy.yaml").unlink()
    done = invoke(*command, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no policy.yaml in this folder" in said(done)
    assert "`sequester init data.csv`" in said(done)


def test_the_short_suffix_is_found_too_but_not_chosen_between_two(folder: Path) -> None:
    (folder / "policy.yaml").rename(folder / "policy.yml")
    assert "policy.yml is valid" in said(invoke("check", cwd=folder))
    (folder / "policy.yaml").write_text(POLICY)
    done = invoke("check", cwd=folder)
    assert done.returncode == 2
    assert "policy.yaml and policy.yml are both here; say which with -p" in said(done)
    assert invoke("check", "-p", "policy.yml", cwd=folder).returncode == 0


def test_a_policy_that_is_named_wins(folder: Path) -> None:
    (folder / "other.yaml").write_text(POLICY.replace("series: clinic", "series: other"))
    for words in (("check", "-p", "other.yaml"), ("check", "other.yaml"), ("check", "other.yaml", "q1.csv")):
        assert "other.yaml is valid: series other" in said(invoke(*words, cwd=folder))
    plan = json.loads(invoke("plan", "q1.csv", "-p", "other.yaml", "--format", "json", cwd=folder).stdout)
    assert plan["series"] == "other"


def test_a_policy_named_twice_is_wrong_usage(folder: Path) -> None:
    done = invoke("check", "policy.yaml", "q1.csv", "-p", "policy.yaml", cwd=folder)
    assert done.returncode == 2
    assert "named twice" in said(done)


def test_a_ledger_that_is_named_is_not_read_by_the_policy_of_another(published: Path, tmp_path: Path) -> None:
    """The policy of the folder would be of another series; the ledger alone says what it is."""
    home = Path(shutil.copytree(published, tmp_path / "home"))
    edit(home / "policy.yaml", "series: clinic", "series: other")
    assert "clinic: 2 releases" in said(invoke("history", "--ledger", LEDGER, cwd=home))
    assert "there is no ledger" in said(invoke("history", cwd=home))


def test_next_commands_leave_out_what_is_found_by_itself(folder: Path) -> None:
    assert "sequester publish q1.csv\n" in invoke("plan", "q1.csv", cwd=folder).stdout
    (folder / "my rules.yaml").write_text(POLICY)
    done = invoke("plan", "q1.csv", "-p", "my rules.yaml", cwd=folder)
    assert "sequester publish q1.csv -p 'my rules.yaml'\n" in done.stdout
    (folder / "policy.yaml").unlink()
    assert "sequester check q1.csv\n" in invoke("init", "q1.csv", cwd=folder).stdout
