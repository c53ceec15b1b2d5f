"""`sequester show`: one release of a series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequester.cli import terminal
from sequester.cli.options import Folder, Format, LedgerFile, PolicyOrNot, Shape, Which
from sequester.cli.series import entry_to_dict, find_ledger, find_release, folder_of, read_ledger

if TYPE_CHECKING:
    from sequester.ledger import Entry, Ledger

EXAMPLES = """
show 2
show 2026-q3 --ledger hospital.ledger --format json
"""


def show(
    release: Which,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    format: Shape = Format.TEXT,
) -> None:
    """Show one release: what changed, who waited, what was promised and reached, what it cost.

    Takes no key, unless the ledger is encrypted.
    """
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
        terminal.print_json({"series": series, **entry_to_dict(entry), **told})
        return

    from sequester.report.results import entry_blocks

    terminal.show(entry_blocks(series, entry, str(folder), withdrawn, ages))


def _ages(ledger: Ledger, entry: Entry) -> dict[int, int]:
    """Of those who wait after the last release: for how many releases, and how many people."""
    import numpy as np

    if not entry.summary.get("waiting", {}).get("held"):
        return {}
    age, people = np.unique(entry.number + 1 - ledger.load().queue.since, return_counts=True)
    return dict(zip(age.tolist(), people.tolist(), strict=True))
