"""`sequester history`: what was published in a series."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.options import Format, LedgerFile, PolicyOrNot, Shape
from sequester.cli.series import entry_to_dict, find_ledger, read_ledger
from sequester.cli.terminal import fits, line, print_json, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sequester.ledger import Event
    from sequester.report.blocks import Grid

EXAMPLES = """
history
history --ledger hospital.ledger --log
history -l hospital.ledger --format json
"""
_HASH = 64


def history(
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    log: Annotated[bool, typer.Option("--log", help="Also what happened to the ledger.")] = False,
    format: Shape = Format.TEXT,
) -> None:
    """List the releases of a series. Takes no key, unless the ledger is encrypted."""
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

    from sequester.report.blocks import Grid
    from sequester.report.results import series_blocks

    blocks = list(series_blocks(series, entries, withdrawn, closed))
    if not all(fits(block) for block in blocks if isinstance(block, Grid)):
        blocks = list(series_blocks(series, entries, withdrawn, closed, wide=False))
    show(blocks)
    if log:
        line()
        show([_log(events)])


def _log(events: Sequence[Event]) -> Grid:
    from sequester.report.blocks import Grid

    rows = (
        (f"{one.at[:10]} {one.at[11:19]}", one.action, "" if one.release is None else one.release, _detail(one.detail))
        for one in events
    )
    return Grid(("at", "what", "release", "detail"), tuple(rows), "What happened to the ledger")


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
