"""`sequester measure`: how anonymous a table is and what it lost, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sequester.cli import terminal
from sequester.cli.help import BROKEN
from sequester.cli.options import Format, PolicyFile, Shape, ShowValues

EXAMPLES = """
measure published.csv
measure published.csv --original data.csv --queries 1000 --seed 1
measure published.parquet -p hospital.yaml --format json
"""


def measure(
    table: Annotated[Path, typer.Argument(help="A table as published, csv or parquet.", show_default=False)],
    policy: PolicyFile,
    original: Annotated[
        Path | None, typer.Option(help="The raw table behind it: loss is then the true one.", show_default=False)
    ] = None,
    queries: Annotated[int, typer.Option(min=0, help="Compare so many random range counts with the original's.")] = 0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes the queries repeatable.", show_default="random")
    ] = None,
    show_values: ShowValues = False,
    format: Shape = Format.TEXT,
) -> None:
    """Measure one table, made here or by any other tool: k, l, t, confidence, loss, and the policy's promises.

    The exit code is 4 if a promise is broken.
    """
    if queries and original is None:
        raise typer.BadParameter("comparing needs the raw table: give --original", param_hint="--queries")

    from sequester.metrics.measure import measure
    from sequester.policy import Policy
    from sequester.report.canvas import in_words
    from sequester.report.results import measured_blocks

    shown = terminal.values_may_show(show_values)
    rules = Policy.load(policy)
    measured = measure(table, rules, original=original, queries=queries, seed=seed, show_values=shown)
    if format is Format.JSON:
        terminal.print_json(measured.to_dict())
    else:
        verdict = "keeps every promise" if measured.holds else "does not keep every promise"
        terminal.line((str(table), "bold"), f" {verdict}.")
        terminal.line()
        terminal.show(measured_blocks(measured))
    for promise in measured.promises:
        if not promise.holds:
            classes = "1 class breaks" if promise.failing == 1 else f"{promise.failing:,} classes break"
            why = f"required {in_words(promise.required)}, found {in_words(promise.observed)}"
            of = f" of {promise.view}" if promise.view else ""
            said = f"{table}: {classes} the promise{of} that {promise.promise}: {why}"
            terminal.line(("error: ", "bold red"), said, stderr=True)
    if not measured.holds:
        raise typer.Exit(BROKEN)
