"""One finding as a short story, with the published rows it rests on. For the publisher: it may name people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sequester.attacks import words
from sequester.attacks.deniability.story import TERMS_SHOWN
from sequester.attacks.finding import Finding
from sequester.attacks.registry import attack_of
from sequester.domain import notation
from sequester.history import History
from sequester.history.label import WHOLE_ROW

_ROWS_SHOWN = 12


def explain(finding: Finding, histories: Sequence[History]) -> str:
    """What is combined, what remains, and what follows; then the rows, to check by hand."""
    about = WHOLE_ROW if "cells" in finding.witness else finding.attribute
    history = next((h for h in histories if about in (None, h.attribute)), histories[0])
    story = attack_of(finding.attack).story(finding, history)
    return "\n".join([headline(finding), "", story, "", *_published(finding, history)])


def _published(finding: Finding, history: History) -> list[str]:
    """The rows of the classes involved; of a sum only those it adds or takes away, and classes that lack a value."""
    most, counted = _ROWS_SHOWN, None
    if "added" in finding.witness:
        most, counted = TERMS_SHOWN, _counted(finding.witness)
    lines = []
    for release in sorted({number for number, _ in finding.classes}):
        lines.append(f"Release {release} ({history.releases[release - 1].name}):")
        rows = []
        for number in [number for place, number in finding.classes if place == release]:
            values = None if counted is None else counted.get((release, number))
            rows += [f"class {number}: {row}" for row in _rows(history, release - 1, number - 1, values)]
        lines += [f"  {row}" for row in rows[:most]]
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more kinds of rows")
    return lines


def _counted(witness: Mapping[str, Any]) -> dict[tuple[int, int], set[str]]:
    """The values of a sum by release and class, without classes that lack a value: only all their rows show that."""
    counted: dict[tuple[int, int], set[str]] = {}
    for row in (*witness["added"], *witness["subtracted"]):
        counted.setdefault((row["release"], row["class"]), set()).add(row["value"])
    for row in witness["absent"]:
        counted.pop((row["release"], row["class"]), None)
    return counted


def headline(finding: Finding) -> str:
    """One line: who is exposed, to whom, and how much; where nobody is known, somebody may be."""
    who, is_ = (words.names(finding.people), "") if finding.people else ("somebody", "may be ")
    where = f"release{'s' * (len(finding.releases) > 1)} {words.listed(finding.releases)}"
    if finding.about_value:
        return (
            f"{finding.attack}: {who} {is_}tied to {finding.value} with {words.share(finding.observed)}, "
            f"allowed {words.share(finding.required)} ({where}, {finding.adversary})"
        )
    if finding.value is not None:
        return (
            f"{finding.attack}: a row with {finding.value} {'can' if finding.people else 'may'} be {who}'s only: "
            f"{words.people(finding.observed)}, "
            f"required {finding.required:g} ({where}, {finding.adversary})"
        )
    return (
        f"{finding.attack}: {who} {is_}hidden among {finding.observed:g}, "
        f"required {finding.required:g} ({where}, {finding.adversary})"
    )


def _rows(history: History, release: int, where: int, values: set[str] | None) -> list[str]:
    """The published rows of a class, all or those with some values: its box, and each value with its count."""
    published = history.releases[release]
    box = [
        notation.write(domain, published.lo[[axis], where], published.hi[[axis], where])[0]
        for axis, domain in enumerate(history.domains)
    ]
    counts = published.counts[where]
    return [
        f"{int(counts[code])} x {' | '.join(box)} | {history.values[code]}"
        for code in range(len(counts))
        if counts[code] and (values is None or history.values[code] in values)
    ]
