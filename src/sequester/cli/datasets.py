"""`sequester datasets`: invented tables to try things with."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sequester.cli.terminal import Format

EXAMPLES = """[bold]Examples[/bold]

$ sequester datasets

$ sequester datasets hospital --rows 10000 --seed 7 --out trial
"""
SUMMARIES = {"hospital": "admissions to a hospital: age, gender, zip, day, ward and a diagnosis that depends on age"}


class Dataset(str, Enum):  # noqa: UP042 - typer reads the values of a str enumeration
    """What there is."""

    HOSPITAL = "hospital"


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("datasets", epilog=EXAMPLES)(datasets)


def datasets(
    name: Annotated[
        Dataset | None, typer.Argument(help="Which one to write; without it they are listed.", show_default=False)
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many people.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write.", show_default="the name of the dataset")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a folder written before.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """List the synthetic datasets, or write one with its policy. Everybody in them is invented."""
    if name is None:
        _list(format)
        return

    from sequester.cli.terminal import print_json, refuse_existing
    from sequester.datasets import hospital, hospital_policy
    from sequester.publish.files import write_folder

    place = out if out is not None else Path(name.value)
    refuse_existing(place, force=force)
    table = hospital(rows, seed=seed)
    files = write_folder(place, table, f"{name.value}.csv", {"policy.yaml": hospital_policy()}, force=force)
    if format is Format.JSON:
        print_json({"dataset": name.value, "rows": rows, "seed": seed, "files": [str(file) for file in files]})
    else:
        _say_next(rows, files)


def _list(format: Format) -> None:
    from rich.text import Text

    from sequester.cli.summary import grid
    from sequester.cli.terminal import console, print_json

    if format is Format.JSON:
        print_json({"datasets": [{"name": name, "summary": summary} for name, summary in SUMMARIES.items()]})
        return
    table = grid()
    for name, summary in SUMMARIES.items():
        table.add_row(Text(name, "bold"), summary)
    console().print(table)


def _say_next(rows: int, files: list[Path]) -> None:
    from rich.text import Text

    from sequester.cli.terminal import console

    screen = console()
    data, policy = files
    people = "1 invented person" if rows == 1 else f"{rows:,} invented people"
    screen.print(
        Text.assemble("Wrote ", (str(data), "bold"), " and ", (str(policy), "bold"), f": {people}."), soft_wrap=True
    )
    screen.print("Try:")
    screen.print(Text(f"  sequester anonymize {data} --policy {policy}", "bold"), soft_wrap=True)
