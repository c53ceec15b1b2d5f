"""`sequester warm-up`: compile the inner loops now, so that nobody waits for them later."""

from __future__ import annotations

from typing import Annotated

import typer

from sequester.cli.options import Format, Shape
from sequester.cli.terminal import print_json, progress, say

EXAMPLES = """
warm-up
$ NUMBA_CACHE_DIR=/opt/sequester/loops sequester warm-up --all
"""


def warm_up(
    everything: Annotated[
        bool, typer.Option("--all", help="Those of all methods, not only of anonymize and a series by pods.")
    ] = False,
    format: Shape = Format.TEXT,
) -> None:
    """Compile the inner loops, once on this machine; without this it happens when they are first used.

    They are kept beside the installed package, or in the user's cache, or in the folder that NUMBA_CACHE_DIR names,
    where nobody else can write to it.
    Two processes share the work, and what is there already is only looked at.
    """
    from sequester.publish import warm_up as work

    with progress() as show:
        made = work.warm_up(everything=everything, done=show)
    if not made.kept:
        say(
            "There is no folder to keep compiled loops in, so every process compiles them anew. "
            "Set NUMBA_CACHE_DIR to one that you, and nobody else, can write to."
        )
    if format is Format.JSON:
        print_json({"prepared": list(made.names), "seconds": round(made.seconds, 1), "kept": made.kept})
    elif made.kept:
        typer.echo(f"The inner loops are ready ({made.seconds:.0f} s).")
