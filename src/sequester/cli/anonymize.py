"""`sequester anonymize`: one release of one table, with no history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.series import PolicyFile
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.publish.release import Release

EXAMPLES = """[bold]Examples[/bold]

$ sequester anonymize data.csv

$ sequester anonymize data.parquet -p hospital.yaml -o published --seed 7

$ sequester anonymize data.csv -o published.csv --force --format json
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("anonymize", epilog=EXAMPLES)(anonymize)


def anonymize(
    data: Annotated[Path, typer.Argument(help="A csv or parquet file.", show_default=False)],
    policy: PolicyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A folder, or a .csv, .csv.gz or .parquet file.",
            show_default="DATA-release",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Makes the row order repeatable, for experiments; whoever guesses it knows the order of the table.",
            show_default="random",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file or an earlier release.")] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values that are wrong; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Anonymize one table as its policy says, check the result, and write it.

    What is promised is kept, or nothing is written and the exit code is 4.
    """
    from sequester.cli.terminal import print_json, progress, refuse_existing, values_may_show

    place = out if out is not None else Path(f"{data.name.split('.')[0] or 'table'}-release")
    refuse_existing(place, force=force)
    for file in (data, policy):
        if place.resolve() in (file.resolve(), *file.resolve().parents) and place.exists():
            raise typer.BadParameter(f"{place} would replace {file}; name another place", param_hint="--out")

    from sequester.policy import Policy
    from sequester.publish.anonymize import anonymize

    rules = Policy.load(policy)
    shown = values_may_show(show_values)
    with progress() as tell:
        release = anonymize(data, rules, seed=seed, show_values=shown, progress=tell)
        files = release.save(place, force=force)
    if format is Format.JSON:
        # What is printed is for the publisher: what was left out counts, of which release.json does not speak.
        own = {"suppressed": release.suppressed, "loss": release.loss}
        print_json({**release.to_dict(), **own, "files": [str(file) for file in files]})
    else:
        _show(data, release, files, seed)


def _show(data: Path, release: Release, files: list[Path], seed: int | None) -> None:
    from rich.text import Text

    from sequester.cli.summary import show_files, show_measurement
    from sequester.cli.terminal import console
    from sequester.publish.series import SEED_BITS

    screen = console()
    screen.print(
        Text.assemble((str(data), "bold"), f" is anonymized, by {release.policy.method.name}."), soft_wrap=True
    )
    screen.print()
    show_measurement(screen, release.measurement)
    if seed is not None and seed.bit_length() < SEED_BITS:
        screen.print()
        screen.print(
            Text(f"note: a seed of fewer than {SEED_BITS} bits can be guessed, and with it the order of rows; do not "
                 "publish this table, or anonymize it without --seed.", "dim")
        )  # fmt: skip
    show_files(screen, files)
