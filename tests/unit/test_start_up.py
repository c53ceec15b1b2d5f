"""What a command loads before anything happens, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import json, sys
sys.argv = ["sequester", *sys.argv[1:]]
from sequester.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
print(json.dumps([code or 0, sorted(name for name in sys.modules if name in ("pandas", "scipy.optimize"))]))
"""
POLICY = """
version: 1
series: s
person: id
attributes:
  age: {role: quasi-identifier, kind: number, range: [0, 99]}
  illness: {role: sensitive}
protect: {k: 3, confidence: 0.5}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    rows = "".join(f"{row},{20 + row % 40},{'abcdefgh'[row * 7 % 8]}\n" for row in range(200))
    (tmp_path / "data.csv").write_text("id,age,illness\n" + rows)
    return tmp_path


def loaded(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    code, names = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return list(names)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "data.csv", "--policy", "policy.yaml"),
        ("check", "policy.yaml", "data.csv"),
        ("anonymize", "data.csv", "--policy", "policy.yaml", "--out", "out"),
    ],
)
def test_commands_load_neither_pandas_nor_what_solves_programs(folder: Path, arguments: tuple[str, ...]) -> None:
    pytest.importorskip("pandas")
    assert loaded(folder, *arguments) == []


def test_frames_of_pandas_are_read_by_whoever_uses_the_library(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from sequester import Policy, anonymize

    release = anonymize(pandas.read_csv(folder / "data.csv"), Policy.load(folder / "policy.yaml"))
    assert release.table.num_rows == 200
