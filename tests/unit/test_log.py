"""What is told of the work: in one line, of facts that cannot pass for others, and to nobody who does not listen."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sequester.log import Stages, tell, tell_begin, tell_failure, timed

TELLING = ("tell", "tell_begin", "tell_failure", "tell.done", "log.tell", "log.timed", "timed")


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    return [(record.levelname, record.name, record.getMessage()) for record in caplog.records]


def test_facts_are_names_and_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "sequester"):
        tell("ingest", "read", rows=3, seconds=0.25, file=Path("a.csv"), left=None, encrypted=True)
        tell_begin("ingest", "reading", stage=1)
        tell_failure("cli", "failed", error="DataError")
    assert said(caplog) == [
        ("INFO", "sequester.ingest", "read rows=3 seconds=0.250 file=a.csv encrypted=yes"),
        ("DEBUG", "sequester.ingest", "reading begins stage=1"),
        ("ERROR", "sequester.cli", "failed error=DataError"),
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b.csv", '"a b.csv"'),
        ("a seed=1", '"a seed=1"'),
        ("a=b", '"a=b"'),
        ('a"b', '"a\\"b"'),
        ("a\nb", "a\\nb"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("100%s", "100%s"),
        ("", '""'),
    ],
)
def test_a_name_is_one_fact_in_one_line(caplog: pytest.LogCaptureFixture, name: str, shown: str) -> None:
    with caplog.at_level(logging.INFO, "sequester"):
        tell("files", "wrote", file=name)
    assert said(caplog)[0][2] == f"wrote file={shown}"


def test_what_stops_is_told_by_the_kind_of_error_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sequester"), pytest.raises(ValueError, match="CANARY"), timed("x", "work"):
        raise ValueError("CANARY")
    assert said(caplog)[0][2].startswith("work stopped error=ValueError seconds=")
    assert "CANARY" not in caplog.text


def test_stages_are_told_when_they_begin_and_when_they_are_done(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[str, int, int]] = []
    stages = Stages("publish", ("reading", "writing"), lambda *stage: seen.append(stage))
    with caplog.at_level(logging.DEBUG, "sequester"):
        stages(0)
        stages(1)
        stages.done(rows=2)
        stages.done()
    assert seen == [("reading", 0, 2), ("writing", 1, 2)]
    words = [message.split(" seconds=")[0] for _, _, message in said(caplog)]
    assert words == ["reading begins stage=1 stages=2", "reading", "writing begins stage=2 stages=2", "writing rows=2"]


def test_a_program_that_does_not_listen_hears_nothing() -> None:
    work = "from sequester.log import tell_failure\ntell_failure('cli', 'failed')"
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_facts_that_are_nobodys_are_told() -> None:
    """Whoever tells a new fact puts its name here, after a thought about what it may hold."""
    known = {"adversary", "bytes", "classes", "command", "error", "exit_code", "file", "folder", "ledger", "problems"}
    known |= {"columns", "parts", "because", "records", "release", "row", "rows", "seconds", "stage", "stages"}
    told = set()
    for file in (Path(__file__).parents[2] / "src").rglob("*.py"):
        text = file.read_text()
        if file.name == "log.py" or not re.search(r"from sequester(\.log import| import log\b)", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in TELLING:
                told |= {str(one.arg) for one in node.keywords}
    assert {"file", "rows", "seconds"} <= told
    assert told - known == set()
