"""What releases tell about one target, on a terminal: the rows that match her, those excluded and why, what is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.attacks.target import SearchedRelease, Target
    from sequester.policy import Policy

_RUNS = 4


def parse_target(text: str, policy: Policy) -> dict[str, str]:
    """`Birthplace=France, Job=Lawyer` as cells; a comma ends a cell only before the next name."""
    names = "|".join(re.escape(name) for name in sorted(policy.quasi_identifiers, key=len, reverse=True))
    parts = re.split(rf",\s*(?=(?:{names})\s*=)", text)
    cells = {}
    for part in parts:
        name, _, cell = part.partition("=")
        cells[name.strip()] = cell.strip()
    if len(cells) < len(parts) or "" in cells.values():
        message = 'name what is known of her once each, as in "Birthplace=France, Job=Lawyer"'
        raise typer.BadParameter(message, param_hint="--target")
    return cells


def show_target(target: Target, audited: Audit) -> None:
    """Print it, and what is found."""
    from rich.text import Text

    from sequester.attacks.explain import headline
    from sequester.cli.terminal import console

    screen = console()
    screen.print(Text(str(target), "bold green" if audited.holds else "bold red"), soft_wrap=True)
    for seen in target.releases if target.left else ():
        _show_release(target, seen)
    if audited.findings or audited.notes:
        screen.print()
    for finding in audited.findings:
        screen.print(Text(headline(finding)), soft_wrap=True)
    for note in audited.notes:
        screen.print(Text(f"note: {note}", "dim"), soft_wrap=True)


def _show_release(target: Target, seen: SearchedRelease) -> None:
    from rich.table import Table
    from rich.text import Text

    from sequester.cli.terminal import console

    screen = console()
    screen.print()
    heading = f"Release {seen.number} ({seen.name}): {seen.left} of {seen.rows} rows may be hers"
    screen.print(Text(heading, "bold"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    attacks = list(dict.fromkeys(by.attack for one in seen.matching for by in one.excluded))
    for title in (*target.columns, target.label, "rows"):
        table.add_column(title)
    for title in ("match", *attacks, "left"):
        table.add_column(title, justify="right")
    for one in seen.matching:
        gone = {by.attack: f"-{by.rows}" for by in one.excluded}
        cells = (*one.box, one.label, _runs(one.rows))
        table.add_row(
            *map(Text, cells),
            str(len(one.rows)),
            *(Text(gone.get(attack, ""), "red") for attack in attacks),
            Text(str(one.left), "bold"),
        )
    screen.print(table)
    for one in seen.matching:
        for by in one.excluded:
            screen.print(Text(f"{by.attack}, {one.label}: {by}.", "dim"), soft_wrap=True)


def _runs(rows: Sequence[int]) -> str:
    """`1-3, 7`: places in the file, the first few."""
    runs = [[row for _, row in run] for _, run in groupby(enumerate(rows), lambda pair: pair[1] - pair[0])]
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_RUNS]]
    return ", ".join([*shown, *(["..."] if len(runs) > _RUNS else [])])
