"""`sequester history`: what was published in a series."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.series import LedgerFile, PolicyOrNot
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sequester.ledger import Ending, Entry, Event

EXAMPLES = """[bold]Examples[/bold]

$ sequester history

$ sequester history --ledger hospital.ledger --log

$ sequester history -l hospital.ledger --format json
"""


_HASH = 64
_WORDS = ("recipient", "purpose")
# Wider than any terminal: how much room a table would take if there were enough.
_ENDLESS = 10_000


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
        withdrawn, closed = opened.life.withdrawals, opened.life.closed
    if format is Format.JSON:
        data: dict[str, Any] = {"series": series, "ledger": str(path), "created": created}
        data["closed"] = None if closed is None else closed.to_dict()
        told = {number: remark.to_dict() for number, remark in withdrawn.items()}
        data["releases"] = [entry_to_dict(entry) | {"withdrawn": told.get(entry.number)} for entry in entries]
        print_json(data | ({"log": [asdict(event) for event in events]} if log else {}))
        return
    screen = console()
    _show(screen, series, entries, withdrawn)
    _show_endings(screen, withdrawn, closed)
    if log:
        _show_log(screen, events)


def _show(screen: Console, series: str, entries: Sequence[Entry], withdrawn: Mapping[int, Ending]) -> None:
    from rich.text import Text

    from sequester.cli.summary import many

    if not entries:
        screen.print(Text.assemble((series, "bold"), ": nothing was published yet."), soft_wrap=True)
        return
    rows = [_row(entry, withdrawn=entry.number in withdrawn) for entry in entries]
    # What is the same everywhere and says nothing is not worth a column.
    dull = {"status": "published", "decoys": "", "held": 0, "recipient": "", "purpose": ""}
    shown = [title for title in rows[0] if any(row[title] != dull.get(title) for row in rows)]
    so_far = f": {many(len(entries), 'release', 'releases')}, {entries[-1].persons:,} people so far."
    screen.print(Text.assemble((series, "bold"), so_far), soft_wrap=True)
    screen.print()
    table = _table(rows, shown)
    if screen.measure(table, options=screen.options.update(max_width=_ENDLESS)).maximum <= screen.width:
        screen.print(table)
        return
    screen.print(_table(rows, [title for title in shown if title not in _WORDS]))
    _show_recipients(screen, entries)


def _table(rows: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> Table:
    """Only words that people choose are broken where it is narrow."""
    from rich.text import Text

    from sequester.cli.summary import columns, number

    right = {"", "records", "decoys", "classes", "new", "left", "held", "AIL"}
    table = columns(**{title: title in right for title in shown})
    for column, title in zip(table.columns, shown, strict=True):
        column.no_wrap = title not in ("name", *_WORDS)
    for row in rows:
        cells = (row[title] for title in shown)
        table.add_row(*(number(cell) if isinstance(cell, int | float) else Text(str(cell)) for cell in cells))
    return table


def _show_recipients(screen: Console, entries: Sequence[Entry]) -> None:
    """To whom releases went and what for, where columns of it have no room."""
    from rich.text import Text

    told = [one for one in entries if one.recipient or one.purpose]
    if told:
        screen.print()
    for one in told:
        to = f" is for {one.recipient}" if one.recipient else ""
        what = f"{', purpose' if to else ' has the purpose'}: {one.purpose}" if one.purpose else ""
        screen.print(Text(f"Release {one.number}{to}{what}"), soft_wrap=True)


def _show_endings(screen: Console, withdrawn: Mapping[int, Ending], closed: Ending | None) -> None:
    """What was withdrawn or closed, when and why: this is for the publisher."""
    from rich.text import Text

    told = [(f"* Release {number} was withdrawn on {remark.at[:10]}", remark) for number, remark in withdrawn.items()]
    told += [(f"The series was closed on {closed.at[:10]}", closed)] if closed is not None else []
    if told:
        screen.print()
    for what, remark in told:
        screen.print(Text(f"{what}{f': {remark.reason}' if remark.reason else ''}"), soft_wrap=True)


def _row(entry: Entry, *, withdrawn: bool) -> dict[str, Any]:
    summary = entry.summary
    change, waiting = summary.get("change", {}), summary.get("waiting", {})
    return {
        "": f"{entry.number}*" if withdrawn else entry.number,
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


def _detail(text: str) -> str:
    """Of a hash the beginning, which is enough to compare by eye; of facts what they say beside hashes."""
    if len(text) == _HASH and " " not in text:
        return f"{text[:12]}..."
    if not text.startswith("{"):
        return text
    with contextlib.suppress(ValueError):
        facts = json.loads(text)
        told = [f"{facts['people']:,} people"] if "people" in facts else []
        told += [f"undoes row {facts['undoes']}"] if "undoes" in facts else []
        return "; ".join([*told, *([facts["reason"]] if "reason" in facts else [])])
    return text


def _show_log(screen: Console, events: Sequence[Event]) -> None:
    from rich.text import Text

    from sequester.cli.summary import columns

    table = columns(at=False, what=False, release=True, detail=False)
    for event in events:
        detail = _detail(event.detail)
        table.add_row(
            f"{event.at[:10]} {event.at[11:19]}",
            event.action,
            "" if event.release is None else str(event.release),
            Text(detail),
        )
    screen.print()
    screen.print(table)
