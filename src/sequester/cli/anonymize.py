"""`sequester anonymize`: one release of one table, with no history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sequester.cli import terminal
from sequester.cli.options import Force, Format, PolicyFile, Shape, ShowValues

EXAMPLES = """
anonymize data.csv
anonymize data.parquet -p hospital.yaml -o published --seed 7
anonymize data.csv -o published.csv --force --format json
"""


def anonymize(
    data: Annotated[Path, typer.Argument(help="A csv or parquet file.", show_default=False)],
    policy: PolicyFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder, or a .csv, .csv.gz or .parquet file.", show_default="DATA-release"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Makes the row order repeatable, for experiments; whoever guesses it knows the order of the table.",
            show_default="random",
        ),
    ] = None,
    force: Force = False,
    show_values: ShowValues = False,
    format: Shape = Format.TEXT,
) -> None:
    """Anonymize one table as its policy says, check the result, and write it.

    What is promised is kept, or nothing is written and the exit code is 4.
    """
    place = out if out is not None else Path(f"{data.name.split('.')[0] or 'table'}-release")
    terminal.refuse_existing(place, force=force)
    for file in (data, policy):
        if place.resolve() in (file.resolve(), *file.resolve().parents) and place.exists():
            raise typer.BadParameter(f"{place} would replace {file}; name another place", param_hint="--out")

    from sequester.policy import Policy
    from sequester.publish.anonymize import anonymize
    from sequester.publish.series import SEED_BITS
    from sequester.report.results import measured_blocks

    rules = Policy.load(policy)
    shown = terminal.values_may_show(show_values)
    with terminal.progress() as tell:
        release = anonymize(data, rules, seed=seed, show_values=shown, progress=tell)
        files = release.save(place, force=force)
    if format is Format.JSON:
        # What is printed is for the publisher: what was left out counts, of which release.json does not speak.
        own = {"suppressed": release.suppressed, "loss": release.loss}
        terminal.print_json({**release.to_dict(), **own, "files": [str(file) for file in files]})
        return
    terminal.line((str(data), "bold"), f" is anonymized, by {release.policy.method.name}.")
    terminal.line()
    terminal.show(measured_blocks(release.measurement))
    if seed is not None and seed.bit_length() < SEED_BITS:
        terminal.line()
        terminal.line(
            f"note: a seed of fewer than {SEED_BITS} bits can be guessed, and with it the order of rows; do not "
            "publish this table, or anonymize it without --seed.",
            style="dim",
        )
    terminal.show_files(files)
