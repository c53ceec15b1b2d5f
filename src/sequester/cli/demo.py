"""`sequester demo`: from an invented table to a release that is checked, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.metrics.measure import Measurement
    from sequester.publish.release import Release

EXAMPLES = """[bold]Examples[/bold]

$ sequester demo

$ sequester demo --rows 100000 --out trial
"""
DATA, RULES, RELEASE, MARK = "hospital.csv", "policy.yaml", "release", ".sequester-demo"
SHOWN = 3


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("demo", epilog=EXAMPLES)(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("sequester-demo"),
    rows: Annotated[int, typer.Option(min=1, help="How many invented people.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 1,
) -> None:
    """Invent a hospital's table, anonymize it, measure what was written, and show it.

    An earlier demo in the same folder is replaced.
    """
    again = out.exists()
    if again and not _is_demo(out):
        raise typer.BadParameter(f"{out} exists and is no earlier demo; --out names another folder", param_hint="--out")

    from sequester.cli.terminal import progress
    from sequester.datasets import hospital, hospital_policy
    from sequester.metrics.measure import measure
    from sequester.policy import Policy
    from sequester.publish.anonymize import anonymize
    from sequester.publish.files import write_folder

    table = hospital(rows, seed=seed)
    texts = {RULES: hospital_policy(), MARK: "Made by `sequester demo`, which replaces this folder when run again.\n"}
    write_folder(out, table, DATA, texts, force=again, known=(RELEASE,))
    policy = Policy.load(out / RULES)
    with progress() as tell:
        release = anonymize(out / DATA, policy, seed=seed, progress=tell)
        published = release.save(out / RELEASE)
        # The written file, read again and judged by code that has no part in making it.
        judged = measure(published[0], policy, original=out / DATA)
    _show(out, table, release, judged, seed=seed)


def _is_demo(folder: Path) -> bool:
    """Whether a folder holds what this command writes and nothing else."""
    files = {str(file.relative_to(folder)) for file in folder.rglob("*")} if folder.is_dir() else set()
    ours = {DATA, RULES, MARK, RELEASE, f"{RELEASE}/data.csv", f"{RELEASE}/release.json"}
    return MARK in files and files <= ours


def _show(out: Path, table: pa.Table, release: Release, judged: Measurement, *, seed: int) -> None:
    from rich.text import Text

    from sequester.cli.summary import grid, losses, number
    from sequester.cli.terminal import console

    screen = console()
    screen.print(f"A hospital's table about {table.num_rows:,} people, all of them invented, and its release.")
    screen.print()
    screen.print(_people(table, release, seed=seed, gap=1 if screen.width < 90 else 2))
    figures = grid()
    figures.add_row("k", f"{judged.k}: everybody is hidden among {judged.k} people or more")
    sure = number(judged.confidence)
    figures.add_row("confidence", f"{sure}: nobody is tied to a diagnosis with more, none and flu aside")
    figures.add_row("loss", losses(judged))
    figures.add_row("classes", f"{judged.classes:,} for {judged.records:,} records, {judged.suppressed:,} left out")
    screen.print()
    verdict = Text("all kept", "green") if judged.holds else Text("broken", "bold red")
    screen.print(Text.assemble("Measured in the written file, promises ", verdict, ":"))
    screen.print(figures)
    where = grid()
    for file, what in (
        (out / DATA, "the private table"),
        (out / RULES, "what is promised about it"),
        (out / RELEASE / "data.csv", "what is published"),
        (out / RELEASE / "release.json", "its measures"),
    ):
        where.add_row(Text(str(file), "bold not dim"), Text(what, "dim"))
    screen.print()
    screen.print(where)


def _people(table: pa.Table, release: Release, *, seed: int, gap: int) -> Any:
    """The first people of the private table, each above the published row that is theirs.

    Only the publisher can tell: it takes the seed, and the people are invented.
    """
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from sequester.publish.emit import shuffle_rows

    order = shuffle_rows(release.members()["class"].to_numpy(), seed=seed)
    names = [name for name in release.table.column_names if name != "ward"]
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    shown.add_column("")
    for name in names:
        shown.add_column(name, overflow="fold")
    for person in table.slice(0, SHOWN).to_pylist():
        row = len(shown.rows) // 2
        published = release.table.take(np.flatnonzero(order == row)).select(names).to_pylist()
        shown.add_row(Text(person["name"]), *(Text(str(person[name])) for name in names))
        cells = [Text(str(cell), "cyan") for cell in published[0].values()] if published else []
        shown.add_row(Text("  published", "dim"), *cells)
    return shown
