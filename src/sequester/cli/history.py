"""`sequester history`: what was published in a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.series import LedgerFile, PolicyOrNot
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from rich.console import Console

    from sequester.ledger import Entry, Event

EXAMPLES = """[bold]Examples[/bold]

$ sequester history --policy policy.yaml

$ sequester history --ledger hospital.ledger --log

$ sequester history -l hospital.ledger --format json
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("history", epilog=EXAMPLES)(history)


def history(
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    log: Annotated[bool, typer.Option("--log", help="Also what happened to the ledger.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """List the releases of a series. Takes no key, unless the ledger is encrypted."""
    from sequester.cli.series import entry_to_dict, find_ledger, read_ledger
    from sequester.cli.terminal import console, print_json

    with read_ledger(find_ledger(policy, ledger)) as opened:
        series, path, created = opened.series, opened.place, opened.created
        entries, events = opened.releases(), opened.log() if log else []
    if format is Format.JSON:
        data: dict[str, Any] = {"series": series, "ledger": str(path), "created": created}
        data["releases"] = [entry_to_dict(entry) for entry in entries]
        print_json(data | ({"log": [asdict(event) for event in events]} if log else {}))
        return
    screen = console()
    _show(screen, series, entries)
    if log:
        _show_log(screen, events)


def _show(screen: Console, series: str, entries: Sequence[Entry]) -> None:
    from rich.text import Text

    from sequester.cli.summary import columns, many, number

    if not entries:
        screen.print(Text.assemble((series, "bold"), ": nothing was published yet."), soft_wrap=True)
        return
    rows = [_row(entry) for entry in entries]
    # What is the same everywhere and says nothing is not worth a column.
    dull = {"status": "published", "decoys": "", "recipient": "", "purpose": ""}
    shown = [title for title in rows[0] if any(row[title] != dull.get(title) for row in rows)]
    right = {"", "records", "decoys", "classes", "new", "left", "held", "AIL"}
    table = columns(**{title: title in right for title in shown})
    for row in rows:
        cells = (row[title] for title in shown)
        table.add_row(*(number(cell) if isinstance(cell, int | float) else Text(str(cell)) for cell in cells))
    so_far = f": {many(len(entries), 'release', 'releases')}, {entries[-1].persons:,} people so far."
    screen.print(Text.assemble((series, "bold"), so_far), soft_wrap=True)
    screen.print()
    screen.print(table)


def _row(entry: Entry) -> dict[str, Any]:
    summary = entry.summary
    change, waiting = summary.get("change", {}), summary.get("waiting", {})
    return {
        "": entry.number,
        "name": entry.name,
        "recorded": entry.created[:10],
        "status": entry.status,
        "records": entry.records,
        "decoys": (summary.get("pods") or {}).get("decoys", ""),
        "classes": entry.classes,
        "new": change.get("newcomers", ""),
        "left": change.get("leavers", ""),
        "held": waiting.get("held", ""),
        "method": entry.method,
        "AIL": summary.get("loss", {}).get("release", {}).get("ail", ""),
        "recipient": entry.recipient or "",
        "purpose": entry.purpose or "",
    }


def _show_log(screen: Console, events: Sequence[Event]) -> None:
    from rich.text import Text

    from sequester.cli.summary import columns

    table = columns(at=False, what=False, release=True, detail=False)
    for event in events:
        # Of a hash the beginning is enough to compare by eye.
        detail = f"{event.detail[:12]}..." if len(event.detail) == 64 and " " not in event.detail else event.detail
        table.add_row(
            f"{event.at[:10]} {event.at[11:19]}",
            event.action,
            "" if event.release is None else str(event.release),
            Text(detail),
        )
    screen.print()
    screen.print(table)
