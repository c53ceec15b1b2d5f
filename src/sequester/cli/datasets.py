"""`sequester datasets`: invented tables to try things with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sequester.cli import terminal
from sequester.cli.options import Force, Format, Shape

EXAMPLES = """
datasets
datasets hospital --rows 10000 --seed 7 --out trial
"""
SUMMARIES = {"hospital": "admissions to a hospital: age, gender, zip, day, ward and a diagnosis that depends on age"}


def datasets(
    name: Annotated[
        Literal["hospital"] | None,
        typer.Argument(help="Which one to write; without it they are listed.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many people.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write.", show_default="the name of the dataset")
    ] = None,
    force: Force = False,
    format: Shape = Format.TEXT,
) -> None:
    """List the synthetic datasets, or write one with its policy. Everybody in them is invented."""
    if name is None:
        if format is Format.JSON:
            listed = [{"name": name, "summary": summary} for name, summary in SUMMARIES.items()]
            terminal.print_json({"datasets": listed})
        else:
            terminal.console().print(terminal.grid(SUMMARIES.items()))
        return

    from sequester.datasets import hospital, hospital_policy
    from sequester.publish.files import write_folder

    place = out if out is not None else Path(name)
    terminal.refuse_existing(place, force=force)
    table = hospital(rows, seed=seed)
    files = write_folder(place, table, f"{name}.csv", {"policy.yaml": hospital_policy()}, force=force)
    if format is Format.JSON:
        told = {"dataset": name, "rows": rows, "seed": seed, "files": [str(file) for file in files]}
        terminal.print_json(told)
        return
    data, policy = files
    people = "1 invented person" if rows == 1 else f"{rows:,} invented people"
    terminal.line("Wrote ", (str(data), "bold"), " and ", (str(policy), "bold"), f": {people}.")
    terminal.line("Try:")
    terminal.line(f"  sequester anonymize {data} --policy {policy}", style="bold")
