"""A small table and its policy, to be spoiled; and what a command must say about the spoiled one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from command import invoke

POLICY = """\
version: 1
series: clinic
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 120]}
  sex: {role: quasi-identifier, hierarchy: {Person: [f, m]}}
  note: {role: insensitive}
  illness: {role: sensitive}
protect: {k: 2}
"""
TREE = "{Person: [f, m]}"
HEADER = "id,age,sex,note,illness"
ROWS = [f"p{n},{20 + n},{'fm'[n % 2]},note{n % 3},{('flu', 'none', 'cold')[n % 3]}" for n in range(12)]
TABLE = "\n".join([HEADER, *ROWS]) + "\n"
CHECK = ("check", "policy.yaml", "data.csv")
ANONYMIZE = ("anonymize", "data.csv", "-p", "policy.yaml")
PLAN = ("plan", "data.csv", "-p", "policy.yaml")
PUBLISH = ("publish", "data.csv", "-p", "policy.yaml", "--yes")


def spread(folder: Path, *, policy: str = POLICY, table: str = TABLE) -> Path:
    """Write the policy and the table into a folder."""
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    (folder / "data.csv").write_text(table, encoding="utf-8")
    return folder


def refused(*command: Any, cwd: Path, codes: tuple[int, ...] = (6,)) -> str:
    """What stderr says about something that must be refused, with nothing printed, no excuse and nothing written."""
    before = files(cwd)
    done = invoke(*command, cwd=cwd)
    return checked(done, codes, before, cwd)


def checked(done: subprocess.CompletedProcess[str], codes: tuple[int, ...], before: set[Path], cwd: Path) -> str:
    """The same, for a command that ran."""
    assert done.returncode in codes, (done.returncode, done.stderr[-2000:])
    assert done.stdout == ""
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    assert files(cwd) == before
    return done.stderr


def files(folder: Path) -> set[Path]:
    """Everything but what a first publish makes before it reads the table: the ledger and what is beside it."""
    return {file for file in folder.rglob("*") if ".ledger" not in file.name and file.name != "releases"}
