"""Help that fits a terminal: commands by what they are for, exit codes, examples, and no types of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import invoke
from sequester import errors
from sequester.cli.app import app
from sequester.cli.help import MEANING

ROOT = Path(__file__).parents[2]
COMMANDS = [str(one.name) for one in app.registered_commands] + ["ledger verify", "ledger export", "ledger import"]


def test_commands_are_in_panels_by_what_they_are_for(tmp_path: Path) -> None:
    text = invoke("--help", cwd=tmp_path).stdout
    titles = [line.split()[1] for line in text.splitlines() if line.startswith("╭─")]
    assert titles == ["Options", "Begin", "Publish", "Look", "Judge", "Keep"]
    places = [text.index(f"│ {name} ") for name in ("init", "plan", "history", "audit", "ledger")]
    assert places == sorted(places)


def test_the_help_of_the_application_has_every_exit_code(tmp_path: Path) -> None:
    lines = [line.split() for line in invoke("--help", cwd=tmp_path).stdout.splitlines()]
    for code, meaning in MEANING.items():
        assert [str(code), *meaning.split()] in lines


def test_every_exit_code_of_an_error_has_a_meaning_and_is_documented() -> None:
    raised = {one.exit_code for one in vars(errors).values() if isinstance(one, type) and hasattr(one, "exit_code")}
    assert {1, 4, 5, 6} <= raised <= set(MEANING)
    page = (ROOT / "docs/command-line.md").read_text()
    assert [code for code in MEANING if f"\n| {code} | " not in page] == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_help_of_a_command_fits_and_ends_with_its_exit_codes(tmp_path: Path, command: str, width: int) -> None:
    done = invoke(*command.split(), "--help", cwd=tmp_path, COLUMNS=str(width), TERMINAL_WIDTH=str(width))
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= width
    examples, codes = (done.stdout.index(title) for title in (" Examples", " Exit codes"))
    assert examples < codes
    assert "0 done · 2 wrong usage" in done.stdout[codes:]
    assert f"$ sequester {command}" in done.stdout[examples:codes]
    assert "<bool>" not in done.stdout
    assert "range>" not in done.stdout


def test_options_that_stand_anywhere_are_told_once(tmp_path: Path) -> None:
    assert "--verbose" in invoke("--help", cwd=tmp_path).stdout
    assert "--verbose" not in invoke("plan", "--help", cwd=tmp_path).stdout
