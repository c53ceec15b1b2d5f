"""The command line as people and scripts run it: as a process of its own, on a terminal, or quickly in this one."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from sequester.cli.app import app

# Said once on a machine, by whichever test comes first.
_COMPILING = "Compiling the inner loops, once on this machine (up to a minute)...\n"


def invoke(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sequester` in this process, which spares loading every library again."""
    words = [str(argument) for argument in arguments]
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(app, words, env={"COLUMNS": "100", **environment}, prog_name="sequester")
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr.replace(_COMPILING, ""))


def sequester(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sequester` to its end, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "sequester", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, done.stderr.replace(_COMPILING, ""))


def sequester_on_a_terminal(*arguments: object, cwd: Path) -> tuple[int, str]:
    """Exit code and what is written when stdout and stderr are a terminal."""
    return _on_a_terminal(arguments, cwd, terminal="xterm")


def sequester_answered(*arguments: object, cwd: Path, answer: str) -> tuple[int, str]:
    """The same, when a person at the terminal answers the question that ends in [y/N]."""
    return _on_a_terminal(arguments, cwd, terminal="dumb", answer=answer)


def _on_a_terminal(
    arguments: tuple[object, ...], cwd: Path, *, terminal: str, answer: str | None = None
) -> tuple[int, str]:
    parent, child = pty.openpty()
    typing: dict[str, Any] = {} if answer is None else {"stdin": child, "preexec_fn": _own_terminal}
    process = subprocess.Popen(
        [sys.executable, "-m", "sequester", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", "TERM": terminal, "NO_COLOR": "1"},
        stdout=child,
        stderr=child,
        **typing,
    )
    os.close(child)
    written, typed = b"", answer is None
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        written += part
        if not typed and b"[y/N] " in written:
            os.write(parent, str(answer).encode())
            typed = True
    os.close(parent)
    return process.wait(timeout=120), written.decode()


def _own_terminal() -> None:
    """Ctrl-C is for whoever the terminal belongs to."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
