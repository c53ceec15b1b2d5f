"""Shell completion by the protocol that the shells use: in a process of its own, by environment variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clinic import POLICY

LOADED = """
import sys
from sequester.cli import main
try:
    main()
finally:
    heavy = {"pyarrow", "duckdb", "numpy", "yaml", "numba", "scipy", "pandas"}
    sys.stderr.write(" ".join(sorted(heavy & set(sys.modules))))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A series of two releases by the names of their folders; there is no ledger at all."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name in ("0001-q1", "0002-q2"):
        (tmp_path / "releases" / "clinic" / name).mkdir(parents=True)
    (tmp_path / "releases" / "other" / "0001-elsewhere").mkdir(parents=True)
    return tmp_path


def complete(line: str, cwd: Path, shell: str = "bash") -> tuple[list[str], str]:
    """What is offered at the end of a line, and what of the heavy libraries was loaded for it."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=cwd,
        env={
            **os.environ,
            **words,
            "_SEQUESTER_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1], done.stderr


def test_commands_options_and_choices_are_offered_without_loading_anything(folder: Path) -> None:
    assert complete("sequester pl", folder) == (["plan"], "")
    assert complete("sequester ledger ", folder) == (["verify", "export", "import", "withdraw", "close", "people"], "")
    assert complete("sequester plan q.csv --format ", folder) == (["text", "json"], "")
    offered, loaded = complete("sequester plan --", folder)
    assert {"--policy", "--name", "--help"} <= set(offered)
    assert loaded == ""


def test_files_are_left_to_the_shell(folder: Path) -> None:
    assert complete("sequester plan ", folder) == ([""], "")


@pytest.mark.parametrize("command", ["show", "report"])
def test_releases_are_offered_by_number_and_name_the_newest_first(folder: Path, command: str) -> None:
    assert complete(f"sequester {command} ", folder) == (["2", "q2", "1", "q1"], "")
    assert complete(f"sequester {command} q", folder) == (["q2", "q1"], "")


def test_fish_and_zsh_are_told_what_an_offer_is(folder: Path) -> None:
    assert complete("sequester show q2", folder, "fish")[0] == ["q2\trelease 2"]
    assert complete("sequester show q2", folder, "zsh")[0] == ["""_arguments '*: :(("q2":"release 2"))'"""]


def test_a_series_is_found_by_its_options_or_offers_all_there_is(folder: Path) -> None:
    (folder / "sub").mkdir()
    assert complete("sequester show -p ../policy.yaml ", folder / "sub")[0] == ["2", "q2", "1", "q1"]
    assert complete("sequester show -l ../x.ledger e", folder / "sub")[0] == ["elsewhere"]
    assert complete("sequester show --releases ../releases e", folder / "sub")[0] == ["elsewhere"]


@pytest.mark.parametrize(
    "name",
    [
        "0003-$(touch pwned)",
        "0003-`touch pwned`",
        "0003-a;touch pwned",
        "0003-'\";touch pwned",
        "0003-a\nb",
        "0003-\x1b[2J",
    ],
)
def test_names_that_a_shell_would_act_on_are_not_offered(folder: Path, name: str) -> None:
    (folder / "releases" / "clinic" / name).mkdir()
    for shell in ("bash", "zsh", "fish"):
        text = "\n".join(complete("sequester show ", folder, shell)[0])
        assert "q2" in text
        assert [part for part in ("3", "$(", "`", "touch", "\x1b") if part in text] == []


@pytest.mark.parametrize("what", ["nothing", "broken policy", "folder for a policy", "no rights"])
def test_what_cannot_be_read_is_no_reason_to_speak(folder: Path, what: str) -> None:
    if what == "nothing":
        shutil.rmtree(folder / "releases")
    if what == "broken policy":
        (folder / "policy.yaml").write_bytes(b"\xff\x00: [")
        shutil.rmtree(folder / "releases")
    if what == "folder for a policy":
        (folder / "policy.yaml").unlink()
        (folder / "policy.yaml").mkdir()
        shutil.rmtree(folder / "releases")
    if what == "no rights":
        (folder / "releases").chmod(0)
    offered, spoken = complete("sequester show z", folder)
    if what == "no rights":
        (folder / "releases").chmod(0o700)
    assert (offered, spoken) == ([""], "")


def test_bash_really_completes(folder: Path) -> None:
    """The script that `--show-completion` prints, in a real bash."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not here")
    bin_ = folder / "bin"
    bin_.mkdir()
    (bin_ / "sequester").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sequester "$@"\n')
    (bin_ / "sequester").chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    shown = subprocess.run(
        [bin_ / "sequester"],
        env={**environment, "_SEQUESTER_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    asked = (
        'COMP_WORDS=(sequester show q); COMP_CWORD=2; _sequester_completion sequester; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{shown}\n{asked}"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["q2", "q1"], "")


def test_the_help_says_how_to_install_it(folder: Path) -> None:
    from command import invoke

    text = invoke("--help", cwd=folder).stdout
    assert "--install-completion" in text
    assert "--show-completion" in text
