"""The commands of examples/papers/README.md print what stands below them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from command import invoke

FOLDER = Path(__file__).parents[2] / "examples" / "papers"
BLOCKS = re.findall(r"```console\n\$ sequester (.*)\n((?:.*\n)*?)```", (FOLDER / "README.md").read_text())


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[command.split(" -p ")[0] for command, _ in BLOCKS])
def test_a_command_on_tables_of_a_paper_prints_what_is_kept(command: str, printed: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "papers")
    done = invoke(*shlex.split(command), cwd=tmp_path / "papers", COLUMNS="120")
    shown = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())
    assert f"{shown}\n(exit code {done.returncode})\n" == printed


def test_every_table_of_the_papers_is_used() -> None:
    used = {word for command, _ in BLOCKS for word in shlex.split(command)}
    assert len(BLOCKS) >= 5
    tables = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.suffix in (".csv", ".yaml")}
    assert tables - used == set()
