"""How long it takes until something happens: fresh processes, against one that does nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.figures import Figure
from benchmarks.timing import medians

RUNS = 10


def run() -> list[Figure]:
    """Whole processes, from start to exit."""
    taken = medians(
        RUNS,
        nothing=lambda: _start("-c", "pass"),
        package=lambda: _start("-c", "import sequester"),
        command=lambda: _start("-m", "sequester", "--help"),
    )
    nothing, package, command = (taken[name] * 1000 for name in ("nothing", "package", "command"))
    return [
        Figure("python -c pass", nothing, "ms"),
        Figure("import sequester", package, "ms", at_most=150, note="whole process"),
        Figure("sequester --help", command, "ms", at_most=400, note="whole process"),
        Figure("import sequester / python -c pass", package / nothing),
        Figure("sequester --help / python -c pass", command / nothing),
    ]


def _start(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
