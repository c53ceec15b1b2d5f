"""`sequester measure`: how anonymous a table is and what it lost, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.series import PolicyFile
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.metrics.measure import Measurement

BROKEN = 4
EXAMPLES = """[bold]Examples[/bold]

$ sequester measure published.csv

$ sequester measure published.csv --original data.csv --queries 1000 --seed 1

$ sequester measure published.parquet -p hospital.yaml --format json
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("measure", epilog=EXAMPLES)(measure)


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
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values that are not understood; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Measure one table, made here or by any other tool: k, l, t, confidence, loss, and the policy's promises.

    The exit code is 4 if a promise is broken.
    """
    if queries and original is None:
        raise typer.BadParameter("comparing needs the raw table: give --original", param_hint="--queries")

    from sequester.cli.terminal import print_json, values_may_show
    from sequester.metrics.measure import measure
    from sequester.policy import Policy

    measured = measure(
        table,
        Policy.load(policy),
        original=original,
        queries=queries,
        seed=seed,
        show_values=values_may_show(show_values),
    )
    if format is Format.JSON:
        print_json(measured.to_dict())
    else:
        _show(table, measured)
    _refuse_broken(table, measured)


def _show(table: Path, measured: Measurement) -> None:
    from rich.text import Text

    from sequester.cli.summary import show_measurement
    from sequester.cli.terminal import console

    screen = console()
    verdict = "keeps every promise" if measured.holds else "does not keep every promise"
    screen.print(Text.assemble((str(table), "bold"), f" {verdict}."), soft_wrap=True)
    screen.print()
    show_measurement(screen, measured)


def _refuse_broken(table: Path, measured: Measurement) -> None:
    if measured.holds:
        return

    from rich.text import Text

    from sequester.cli.summary import number
    from sequester.cli.terminal import console

    screen = console(stderr=True)
    for promise in measured.promises:
        if not promise.holds:
            classes = "1 class breaks" if promise.failing == 1 else f"{promise.failing:,} classes break"
            why = f"required {number(promise.required)}, found {number(promise.observed)}"
            of = f" of {promise.view}" if promise.view else ""
            line = f"{table}: {classes} the promise{of} that {promise.promise}: {why}"
            screen.print(Text.assemble(("error: ", "bold red"), line), soft_wrap=True)
    raise typer.Exit(BROKEN)
