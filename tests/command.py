"""The command line as people and scripts run it: as a process of its own, on a terminal, or quickly in this one."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from sequester.cli.app import app


def invoke(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sequester` in this process, which spares loading every library again."""
    words = [str(argument) for argument in arguments]
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(app, words, env={"COLUMNS": "100", **environment}, prog_name="sequester")
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def sequester(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sequester` to its end, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "sequester", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def sequester_on_a_terminal(*arguments: object, cwd: Path) -> tuple[int, str]:
    """Exit code and what is written when stdout and stderr are a terminal."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sequester", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm", "NO_COLOR": "1"},
        stdout=child,
        stderr=child,
    )
    os.close(child)
    written = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        written += part
    os.close(parent)
    return process.wait(timeout=120), written.decode()
