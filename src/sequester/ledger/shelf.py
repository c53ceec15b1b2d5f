"""Folders of releases that were withdrawn: set aside, where nobody takes them for current ones.

The ledger says first that a release is withdrawn, then its folder is moved. A command that dies in between leaves it
where it was; either place is right for a release that was ever withdrawn, and the next command moves it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from sequester.ledger.key import flush_names
from sequester.ledger.state import Entry

ASIDE = "withdrawn"


def aside(folder: Path, series: str) -> Path:
    """Where the folders of withdrawn releases are."""
    return folder / series / ASIDE


def arrange(
    folder: Path, series: str, entries: Sequence[Entry], *, ever: Collection[int], withdrawn: Collection[int]
) -> list[int]:
    """Move every folder to where it belongs; returns the numbers of those that were not there. Raises OSError.

    ever       releases that are withdrawn or were; no other folder is touched
    withdrawn  those that are
    """
    moved = []
    for entry in entries:
        if entry.number not in ever:
            continue
        shown, hidden = folder / series / entry.folder, aside(folder, series) / entry.folder
        came, goes = (shown, hidden) if entry.number in withdrawn else (hidden, shown)
        if came.is_dir() and not goes.exists():
            goes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            came.rename(goes)
            for place in (came.parent, goes.parent):
                flush_names(place)
            moved.append(entry.number)
    return moved
