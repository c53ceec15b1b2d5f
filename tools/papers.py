"""Run the commands of examples/papers/README.md, and say which print something else than is kept; --write keeps it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "examples" / "papers" / "README.md"
BLOCK = re.compile(r"```console\n\$ sequester (.*)\n((?:.*\n)*?)```")


def printed(command: str) -> str:
    """What a command prints, in the folder of the page."""
    words = [sys.executable, "-m", "sequester", *shlex.split(command)]
    environment = {"COLUMNS": "120", "PATH": "", "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=PAGE.parent, env=environment, capture_output=True, text=True, check=False)
    shown = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())
    return f"{shown}\n(exit code {done.returncode})\n"


def main() -> int:
    """Compare, or write."""
    text = PAGE.read_text()
    renewed = BLOCK.sub(lambda block: f"```console\n$ sequester {block[1]}\n{printed(block[1])}```", text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(renewed)
        return 0
    pairs = zip(BLOCK.finditer(text), BLOCK.finditer(renewed), strict=True)
    changed = [old[1] for old, new in pairs if old[2] != new[2]]
    sys.stdout.write("".join(f"sequester {command}\n" for command in changed))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
