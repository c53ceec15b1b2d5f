"""One finding as a short story, with the published rows it rests on. For the publisher: it may name people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sequester.attacks import words
from sequester.attacks.deniability import TERMS_SHOWN
from sequester.attacks.finding import Finding
from sequester.attacks.registry import attack_of
from sequester.domain import notation
from sequester.history import History
from sequester.history.label import WHOLE_ROW
from sequester.policy.words import listed

_ROWS_SHOWN = 12


@dataclass(frozen=True)
class Story:
    """One finding told: who is exposed, what is combined and what follows, and the published rows to check it by.

    rows  (release, class, how many rows, the box, the value), releases and classes counted from 1
    more  per release, how many kinds of rows are left out
    """

    headline: str
    words: str
    names: tuple[str, ...]
    rows: tuple[tuple[int, int, int, tuple[str, ...], str], ...]
    more: Mapping[int, int]
    releases: Mapping[int, str]

    def __str__(self) -> str:
        lines = [self.headline, "", self.words, ""]
        for release, name in self.releases.items():
            lines.append(f"Release {release} ({name}):")
            lines += [
                f"  class {number}: {count} x {' | '.join(box)} | {value}"
                for here, number, count, box, value in self.rows
                if here == release
            ]
            if release in self.more:
                lines.append(f"  ... and {self.more[release]} more kinds of rows")
        return "\n".join(lines)


def explain(finding: Finding, histories: Sequence[History]) -> str:
    """What is combined, what remains, and what follows; then the rows, to check by hand."""
    return str(story_of(finding, histories))


def story_of(finding: Finding, histories: Sequence[History]) -> Story:
    """The same in parts. Of a sum only the rows it adds or takes away are told, and classes that lack a value."""
    about = WHOLE_ROW if "cells" in finding.witness else finding.attribute
    history = next((h for h in histories if about in (None, h.attribute)), histories[0])
    words = attack_of(finding.attack).story(finding, history)
    most, counted = _ROWS_SHOWN, None
    if "added" in finding.witness:
        most, counted = TERMS_SHOWN, _counted(finding.witness)
    told: list[tuple[int, int, int, tuple[str, ...], str]] = []
    more, releases = {}, {}
    for release in sorted({number for number, _ in finding.classes}):
        releases[release] = history.releases[release - 1].name
        rows = []
        for number in [number for place, number in finding.classes if place == release]:
            values = None if counted is None else counted.get((release, number))
            rows += [(release, number, *row) for row in _rows(history, release - 1, number - 1, values)]
        told += rows[:most]
        if len(rows) > most:
            more[release] = len(rows) - most
    return Story(headline(finding), words, tuple(history.quasi_names), tuple(told), more, releases)


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
    where = f"release{'s' * (len(finding.releases) > 1)} {listed(finding.releases)}"
    if attack_of(finding.attack).by_chance is not None:
        order = f"{words.share(finding.observed)} of the rows stand in the same order"
        return f"{finding.attack}: {order} ({where}, {finding.adversary})"
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


def _rows(
    history: History, release: int, where: int, values: set[str] | None
) -> list[tuple[int, tuple[str, ...], str]]:
    """The published rows of a class, all or those with some values: how many, its box, and the value."""
    published = history.releases[release]
    box = tuple(
        notation.write(domain, published.lo[[axis], where], published.hi[[axis], where])[0]
        for axis, domain in enumerate(history.domains)
    )
    counts = published.counts[where]
    return [
        (int(counts[code]), box, history.values[code])
        for code in range(len(counts))
        if counts[code] and (values is None or history.values[code] in values)
    ]
