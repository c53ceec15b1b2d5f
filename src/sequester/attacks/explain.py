"""One finding as a short story, with the published rows it rests on. For the publisher: it may name people."""

from __future__ import annotations

from collections.abc import Sequence

from sequester.attacks.finding import Finding
from sequester.domain import notation
from sequester.history import History

_ROWS_SHOWN = 12
_PEOPLE_SHOWN = 8


def explain(finding: Finding, histories: Sequence[History]) -> str:
    """What is combined, what remains, and what follows; then the rows, to check by hand."""
    history = next((h for h in histories if finding.attribute in (None, h.attribute)), histories[0])
    lines = [headline(finding), "", _TELL.get(finding.attack, _tell_plainly)(finding), ""]
    for release in sorted({number for number, _ in finding.classes}):
        lines.append(f"Release {release} ({history.releases[release - 1].name}):")
        classes = [where for number, where in finding.classes if number == release]
        rows = [row for where in classes for row in _rows(history, release - 1, where - 1)]
        lines += [f"  {row}" for row in rows[:_ROWS_SHOWN]]
        if len(rows) > _ROWS_SHOWN:
            lines.append(f"  ... and {len(rows) - _ROWS_SHOWN} more kinds of rows")
    return "\n".join(lines)


def headline(finding: Finding) -> str:
    """One line: who is exposed, to whom, and how much."""
    who = _names(finding.people)
    where = f"release {finding.releases[0]}" if len(finding.releases) == 1 else f"releases {_list(finding.releases)}"
    if finding.about_value:
        return (
            f"{finding.attack}: {who} tied to {finding.value} with {_share(finding.observed)}, "
            f"allowed {_share(finding.required)} ({where}, {finding.adversary})"
        )
    if finding.value is not None:
        return (
            f"{finding.attack}: a row with {finding.value} can be {who}'s only: {_people(finding.observed)}, "
            f"required {finding.required:g} ({where}, {finding.adversary})"
        )
    return (
        f"{finding.attack}: {who} hidden among {finding.observed:g}, "
        f"required {finding.required:g} ({where}, {finding.adversary})"
    )


def _tell_difference(finding: Finding) -> str:
    later, earlier = finding.releases[-1], finding.releases[0]
    subject = _names(finding.people)
    if "combination" in finding.witness:
        return (
            f"Add and subtract the classes below of the releases {_list(finding.releases)}, each as often as the "
            f"witness says: everybody cancels out but {_people(finding.observed)}, {subject}."
        )
    if not finding.about_value:
        return (
            f"Adding up whole classes of release {later} and taking away whole classes of release {earlier} (or the "
            f"other way round) leaves {_people(finding.observed)}: {subject}. "
            "Everything published about the rest cancels out."
        )
    return (
        f"Take the classes below of one release away from those of the other. The people who remain are {subject}, "
        f"and at least {_share(finding.observed)} of them must have {finding.value}, because the classes taken away "
        "do not hold enough of it."
    )


def _tell_intersection(finding: Finding) -> str:
    return (
        f"{_names(finding.people)} must be in one class of each of the releases {_list(finding.releases)}, so the "
        f"value is one that all these classes have. Of what they share, {_share(finding.observed)} is {finding.value}."
    )


def _tell_tracing(finding: Finding) -> str:
    if finding.about_value:
        return (
            f"Rows with {finding.value} can be followed from release to release, since every row must reappear in a "
            "class whose box fits. Enough of them must end in the classes below to tie the people there to "
            f"{finding.value}."
        )
    return (
        "A row of the earlier release must reappear in the later one, with the same value and in a class whose box "
        f"fits. All ways to match the rows leave only {_people(finding.observed)} who can own it: "
        f"{_names(finding.people)}."
    )


def _tell_deniability(finding: Finding) -> str:
    return (
        f"Whatever values the people of all releases have, if they add up to every published class, somebody of "
        f"{_names(finding.people)} has {finding.value or 'one value'} with at least {_share(finding.observed)}: "
        "no assignment of probabilities keeps everybody below what is allowed."
    )


def _tell_cracks(finding: Finding) -> str:
    return (
        "Rows of the two classes below must stand for the same people where they can. Rows that cannot be the "
        f"target's are excluded, and {finding.observed:g} remain for {_names(finding.people)}."
    )


def _tell_breach(finding: Finding) -> str:
    return (
        f"In every release the chance of {finding.value} is its share of the class. Over all releases together the "
        f"chance that it was {_names(finding.people)}'s at least once is {_share(finding.observed)}."
    )


def _tell_row_order(finding: Finding) -> str:
    return (
        "The rows of two releases are in the same order far more often than chance allows, so a row of one can be "
        "joined with the row of the other by its number. Publish rows in a fresh random order."
    )


def _tell_plainly(finding: Finding) -> str:
    return f"The classes below reach {finding.observed:g}, and {finding.required:g} is required."


_TELL = {
    "difference": _tell_difference,
    "intersection": _tell_intersection,
    "tracing": _tell_tracing,
    "deniability": _tell_deniability,
    "forward": _tell_cracks,
    "cross": _tell_cracks,
    "backward": _tell_cracks,
    "breach": _tell_breach,
    "row-order": _tell_row_order,
}


def _rows(history: History, release: int, where: int) -> list[str]:
    """The published rows of a class: its box, and each value with its count."""
    published = history.releases[release]
    box = [
        notation.write(domain, published.lo[[axis], where], published.hi[[axis], where])[0]
        for axis, domain in enumerate(history.domains)
    ]
    counts = published.counts[where]
    return [
        f"{int(counts[code])} x {' | '.join(box)} | {history.values[code]}"
        for code in range(len(counts))
        if counts[code]
    ]


def _names(people: Sequence[object]) -> str:
    if not people:
        return "somebody"
    shown = [str(person) for person in people[:_PEOPLE_SHOWN]]
    rest = f" and {len(people) - _PEOPLE_SHOWN} more" if len(people) > _PEOPLE_SHOWN else ""
    return ", ".join(shown) + rest


def _people(number: float) -> str:
    return "1 person" if number == 1 else f"{number:g} people"


def _list(numbers: Sequence[int]) -> str:
    return " and ".join([", ".join(map(str, numbers[:-1])), str(numbers[-1])]) if len(numbers) > 1 else str(numbers[0])


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"
