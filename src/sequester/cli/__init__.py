"""The command line: one file per command, which loads what it needs when it is run."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """The entry point `sequester`."""
    try:
        sys.meta_path.insert(0, _Spared)
        from sequester.cli.app import run

        run()
    except KeyboardInterrupt:  # while libraries are loaded, or arguments are read
        sys.stderr.write("Stopped.\n")
        raise SystemExit(130) from None


class _Spared:
    """Answers for pandas that it is not there.

    Arrow looks for it with the first array that is made, in case that was a series of pandas, and loading it takes a
    quarter of a second of every command. Commands read files, and have no use for it.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Where a module is, in the words of `sys.meta_path`; None leaves that to others."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used by the command line", name=name)
