"""The command line: one file per command, which loads what it needs when it is run."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point `sequester`."""
    try:
        from sequester.cli.app import run

        run()
    except KeyboardInterrupt:  # while libraries are loaded, or arguments are read
        sys.stderr.write("Stopped.\n")
        raise SystemExit(130) from None
