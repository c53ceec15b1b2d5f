"""`sequester show`: one release of a series."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.series import Folder, LedgerFile, PolicyOrNot, Which
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.ledger import Entry, Ledger

EXAMPLES = """[bold]Examples[/bold]

$ sequester show 2

$ sequester show 2026-q3 --ledger hospital.ledger --format json
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("show", epilog=EXAMPLES)(show)


def show(
    release: Which,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Show one release: what changed, who waited, what was promised and reached, what it cost.

    Takes no key, unless the ledger is encrypted.
    """
    from sequester.cli.series import entry_to_dict, find_ledger, find_release, folder_of, read_ledger
    from sequester.cli.terminal import print_json

    path = find_ledger(policy, ledger)
    with read_ledger(path) as opened:
        entries = opened.releases()
        entry = find_release(entries, release)
        ages = _ages(opened, entry) if entry.number == len(entries) else None
        withdrawn = opened.life.withdrawals.get(entry.number)
        series = opened.series
    folder = folder_of(entry, series, path, releases)
    if format is Format.JSON:
        # JSON has text for keys; a list keeps the ages numbers.
        queue = None if ages is None else [{"releases": age, "people": people} for age, people in ages.items()]
        since = None if withdrawn is None else withdrawn.at
        told = {"folder": str(folder), "queue": queue, "withdrawn": since}
        print_json({"series": series, **entry_to_dict(entry), **told})
    else:
        status = entry.status if withdrawn is None else f"withdrawn on {withdrawn.at[:10]}"
        _show(series, entry, folder, ages, status=status)


def _ages(ledger: Ledger, entry: Entry) -> dict[int, int]:
    """Of those who wait after the last release: for how many releases, and how many people."""
    import numpy as np

    if not entry.summary.get("waiting", {}).get("held"):
        return {}
    age, people = np.unique(entry.number + 1 - ledger.load().queue.since, return_counts=True)
    return dict(zip(age.tolist(), people.tolist(), strict=True))


def _show(series: str, entry: Entry, folder: Path, ages: dict[int, int] | None, *, status: str) -> None:
    from rich.text import Text

    from sequester.attacks.untried import Untried
    from sequester.cli.summary import (
        add_personal,
        changes,
        checks,
        delays,
        grid,
        many,
        show_notes,
        show_price,
        show_untried,
    )
    from sequester.cli.terminal import console
    from sequester.publish.plan import Change, Check, Personal, Waiting
    from sequester.publish.saved import restored

    screen, summary = console(), entry.summary
    screen.print(
        Text.assemble(f"Release {entry.number} of {series}, ", (entry.name, "bold"), f", {status}, by {entry.method}."),
        soft_wrap=True,
    )
    screen.print()
    facts = grid()
    facts.add_row("folder", Text(str(folder)))
    facts.add_row("recorded", f"{entry.created[:10]} {entry.created[11:19]} UTC")
    for label, text in (("recipient", entry.recipient), ("purpose", entry.purpose)):
        if text is not None:
            facts.add_row(label, Text(text))
    facts.add_row("records", f"{entry.records:,} in {entry.classes:,} classes; {entry.persons:,} people so far")
    facts.add_row("changes", changes(Change(**summary.get("change", {}))))
    counted = summary.get("waiting", {})
    # Ledgers of earlier versions count things that no longer happen.
    facts.add_row("waiting", delays(Waiting(**{one.name: counted.get(one.name, 0) for one in fields(Waiting)})))
    add_personal(facts, Personal(**summary.get("personal", {})), summary.get("gain", {}))
    for age, people in (ages or {}).items():
        facts.add_row("", f"{many(people, 'waits', 'wait')} for {many(age, 'release', 'releases')}")
    facts.add_row("versions", Text(", ".join(f"{name} {version}" for name, version in entry.versions.items())))
    facts.add_row("data", Text(entry.output_digest))
    facts.add_row("hash", Text(entry.hash))
    screen.print(facts)
    screen.print()
    screen.print(checks([restored(Check, check) for check in summary.get("checks", [])]))
    screen.print()
    show_price(screen, summary.get("loss", {}))
    show_untried(screen, map(Untried.from_dict, summary.get("untried", [])))
    show_notes(screen, summary.get("notes", []))
