"""Reports of releases: what is gathered for them, and where they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.errors import DataError, Problem
from sequester.ledger.evidence import place_of
from sequester.regular import bytes_of
from sequester.report.parts import Told
from sequester.report.release import release_page

if TYPE_CHECKING:
    from sequester.ledger import Ledger
    from sequester.ledger.state import Entry
    from sequester.metrics.sketch import Sketch
    from sequester.policy.model import Policy
    from sequester.publish.release import Release


def public_page(release: Release, *, earlier: Sequence[Entry] = (), drawn: Sketch | None = None) -> str:
    """The public report of a release; `earlier` are those of its series before, `drawn` its sketch if it is known.

    It draws earlier releases that went to the same recipient, or to nobody in particular.
    """
    from sequester.metrics.placed import place_boxes
    from sequester.metrics.sketch import sketch

    facts = release.to_dict()
    # What went to somebody else is judged as if they met, but it is not for this report to tell.
    before = told_of([entry for entry in earlier if entry.recipient in (None, facts.get("recipient"))])
    now = drawn or sketch(release.table, release.policy, axes=axes_of(before))
    last = before[-1].sketch.boxes if before and before[-1].sketch is not None else None
    boxes = None if now.boxes is None else place_boxes(now.boxes, last, release.policy)
    own = Told(facts.get("number") or 1, facts.get("name") or "this release", now.rows, facts.get("checks", ()), now)
    return release_page(facts, release.policy, told=[*before, own], boxes=boxes)


def told_of(entries: Sequence[Entry]) -> list[Told]:
    """Releases of a series as a report draws them: what the ledger keeps of what was published."""
    from sequester.metrics.sketch import Sketch

    return [
        Told(
            entry.number,
            entry.name,
            entry.records,
            entry.summary.get("checks", ()),
            Sketch.from_dict(entry.summary.get("published")),
        )
        for entry in entries
    ]


def axes_of(told: Sequence[Told]) -> tuple[str, str] | None:
    """The two attributes of the last map, so that the next is of the same."""
    known = [one.sketch.boxes.axes for one in told if one.sketch is not None and one.sketch.boxes is not None]
    return known[-1] if known else None


def public_text(ledger: Ledger, number: int, folder: Path) -> str:
    """The public report of a release, if it is what was recorded."""
    entry = _entry(ledger, number)
    page = place_of(folder, ledger.series, entry) / "report.html"
    if not page.is_file():
        raise DataError(Problem("the report is not there; say where the release folders are", file=str(page)))
    text = bytes_of(page)
    recorded = entry.files.get("report.html")
    if recorded is not None and hashlib.sha256(text).hexdigest() != recorded:
        raise DataError(Problem("is not what was recorded when the release was published", file=str(page)))
    return text.decode()


def internal_text(ledger: Ledger, policy: Policy, number: int, *, tables: Sequence[Any], folder: Path) -> str:
    """The internal report of a release, from the ledger and perhaps the raw tables behind all releases so far."""
    from sequester.publish.inside import gather
    from sequester.report.internal import internal_page

    entry = _entry(ledger, number)
    if tables and len(tables) != number:
        message = f"{len(tables):,} tables are given; give those of releases 1 to {number}, in order"
        raise DataError(Problem(message))
    published = place_of(folder, ledger.series, entry)
    found = [published / name for name in entry.files if name.startswith("data.")]
    data = found[0] if found and found[0].is_file() else None
    return internal_page(gather(ledger, policy, number, tables=tables, published=data))


def _entry(ledger: Ledger, number: int) -> Entry:
    entries = ledger.releases()
    if not 1 <= number <= len(entries):
        raise DataError(f"there is no release {number}; there are {len(entries):,} in the ledger")
    return entries[number - 1]
