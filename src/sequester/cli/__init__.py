"""The command line: one file per command, which loads what it needs when it is run."""

from __future__ import annotations


def main() -> None:
    """The entry point `sequester`."""
    from sequester.cli.app import run

    run()
