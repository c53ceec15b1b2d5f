"""`sequester report`: where the public report of a release is."""

from __future__ import annotations

from typing import Annotated

import typer

from sequester.cli.series import Folder, LedgerFile, PolicyOrNot, Which
from sequester.cli.terminal import Format

EXAMPLES = """[bold]Examples[/bold]

$ sequester report 2 --policy policy.yaml

$ xdg-open $(sequester report 2026-q3 --ledger hospital.ledger)
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("report", epilog=EXAMPLES)(report)


def report(
    release: Which,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Print where the public report of a release is: one page that a browser shows and that needs nothing else."""
    from sequester.cli.series import find_ledger, find_release, folder_of, read_ledger
    from sequester.cli.terminal import print_json
    from sequester.errors import DataError, Problem
    from sequester.visible import visible

    path = find_ledger(policy, ledger)
    with read_ledger(path) as opened:
        entry, series = find_release(opened.releases(), release), opened.series
    page = folder_of(entry, series, path, releases) / "report.html"
    if not page.is_file():
        raise DataError(
            Problem("the report is not there; say where the release folders are with --releases", str(page))
        )
    if format is Format.JSON:
        print_json({"number": entry.number, "name": entry.name, "report": str(page)})
    else:
        typer.echo(visible(str(page)))
