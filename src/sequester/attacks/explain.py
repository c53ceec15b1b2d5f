"""One finding as a short story, with the published rows it rests on. For the publisher: it may name people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sequester.attacks.finding import Finding
from sequester.domain import notation
from sequester.history import History
from sequester.history.label import WHOLE_ROW

_ROWS_SHOWN = 12
_PEOPLE_SHOWN = 8
# A sum that cannot be seen whole cannot be checked; longer ones are for the witness.
_TERMS_SHOWN = 100


def explain(finding: Finding, histories: Sequence[History]) -> str:
    """What is combined, what remains, and what follows; then the rows, to check by hand."""
    about = WHOLE_ROW if "cells" in finding.witness else finding.attribute
    history = next((h for h in histories if about in (None, h.attribute)), histories[0])
    if finding.attack == "deniability":
        story = _tell_deniability(finding, history)
    else:
        story = _TELL.get(finding.attack, _tell_plainly)(finding)
    return "\n".join([headline(finding), "", story, "", *_published(finding, history)])


def _published(finding: Finding, history: History) -> list[str]:
    """The rows of the classes involved; of a sum only those it adds or takes away, and classes that lack a value."""
    most, counted = _ROWS_SHOWN, None
    if finding.attack == "deniability":
        most, counted = _TERMS_SHOWN, _counted(finding.witness)
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
    found: dict[tuple[int, int], set[str]] = {}
    for row in (*witness["added"], *witness["subtracted"]):
        found.setdefault((row["release"], row["class"]), set()).add(row["value"])
    for row in witness["absent"]:
        found.pop((row["release"], row["class"]), None)
    return found


def headline(finding: Finding) -> str:
    """One line: who is exposed, to whom, and how much; where nobody is known, somebody may be."""
    who, is_ = (_names(finding.people), "") if finding.people else ("somebody", "may be ")
    where = f"release {finding.releases[0]}" if len(finding.releases) == 1 else f"releases {_list(finding.releases)}"
    if finding.about_value:
        return (
            f"{finding.attack}: {who} {is_}tied to {finding.value} with {_share(finding.observed)}, "
            f"allowed {_share(finding.required)} ({where}, {finding.adversary})"
        )
    if finding.value is not None:
        return (
            f"{finding.attack}: a row with {finding.value} {'can' if finding.people else 'may'} be {who}'s only: "
            f"{_people(finding.observed)}, "
            f"required {finding.required:g} ({where}, {finding.adversary})"
        )
    return (
        f"{finding.attack}: {who} {is_}hidden among {finding.observed:g}, "
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
    if not finding.people:
        return (
            "If nobody left (or nobody joined) in between, somebody is in both classes below, of the releases "
            f"{_list(finding.releases)}: their rows fit nowhere else. Whoever that is may have what both classes have, "
            f"and of that {_share(finding.observed)} is {finding.value}."
        )
    return (
        f"{_names(finding.people)} must be in one class of each of the releases {_list(finding.releases)}, so the "
        f"value is one that all these classes have. Of what they share, {_share(finding.observed)} is {finding.value}."
    )


def _tell_tracing(finding: Finding) -> str:
    release, number, value = finding.witness["row"]
    return (
        f"Take a row with {value} in class {number} of release {release}. Whoever owns it is in that class, and keeps "
        "what the row shows. Of all ways to hand the published rows to the people who were in each class, over all "
        f"releases together, none gives this row to anybody but {_people(finding.observed)}: {_names(finding.people)}."
    )


def _tell_deniability(finding: Finding, history: History) -> str:
    """The sum of the witness (see `reckoning`): its terms, who remains in it, and why that is too much."""
    told, releases = finding.witness, len(history)
    terms = [
        *(f"+ {_times(row)}{_count(row)}" for row in told["added"]),
        *(f"- {_times(row)}{_count(row)}" for row in told["subtracted"]),
        *(f"{'+' if row['times'] > 0 else '-'} {_times(row)}{_people(row['people'])} {_where(row, releases)}, "
          "whatever they have" for row in told["sizes"]),
    ]  # fmt: skip
    bounds = dict(zip(history.values, history.bounds, strict=True))
    rest = [
        f"{_times(row)}those with {row['value']} of the {_people(row['people'])} {_where(row, releases)}: "
        f"allowed {_share(float(row['bound'] if 'bound' in row else bounds[row['value']]))} "
        f"of {row['people'] * row['times']:g}"
        for row in told["remaining"]
    ]
    lacking = [f"Nobody {_place(row)} has {row['value']}." for row in told["absent"]]
    values = dict.fromkeys(row["value"] for row in told["remaining"])
    who = _names(finding.people) if len(finding.people) == 1 else f"somebody of {_names(finding.people)}"
    tied = f"to {finding.value} with {_share(finding.observed)} or more"
    if len(values) > 1:
        tied = f"too surely to one of {', '.join(values)}; spread evenly over them that is {finding.value} with "
        tied += _share(finding.observed)
    knows = "who is in which class" + (", and the true totals of every release," if "totals" in told else "")
    lines = [
        f"Whoever knows {knows} can do this sum with the rows below:",
        *_some(terms),
        f"  = {told['at_least']:g}",
        *_some(lacking, indent=""),
        "Look at each person: the terms cancel out, or count less than nothing, for all but",
        *_some(rest),
        f"So if nobody were tied to a value more surely than allowed, the sum would be {told['allowed']:g} at most. "
        f"It is {told['at_least']:g}: whatever one believes, {who} is tied {tied}.",
    ]
    if "wider" in told:
        lines.append(f"A longer sum, in the witness, exposes more people less: {_names(told['wider']['people'])}.")
    return "\n".join(lines)


def _some(lines: Sequence[str], *, indent: str = "  ") -> list[str]:
    more = [f"... and {len(lines) - _TERMS_SHOWN} more, in the witness"] if len(lines) > _TERMS_SHOWN else []
    return [f"{indent}{line}" for line in (*lines[:_TERMS_SHOWN], *more)]


def _times(row: Mapping[str, Any]) -> str:
    times = abs(row["times"])
    return "" if times == 1 else f"{times:g} x "


def _count(row: Mapping[str, Any]) -> str:
    rows = "1 row" if row["count"] == 1 else f"{row['count']} rows"
    return f"{rows} with {row['value']} {_place(row)}"


def _place(row: Mapping[str, Any]) -> str:
    """A class, or all people of a release whose totals are known."""
    if "whose" in row:
        return f"among all {row['whose']} of release {row['release']}, by the totals,"
    return f"in class {row['class']} of release {row['release']}"


def _where(row: Mapping[str, Any], releases: int) -> str:
    """The classes of people with one history, and whether they are in no other release."""
    places = [f"class {number} of release {release}" for release, number in row["classes"]]
    return f"in {_list(places)}" + ("" if len(places) == releases else " and in no other release")


def _tell_belief(finding: Finding) -> str:
    return (
        f"Whoever knows who is in which class and prefers no value to another believes that {_names(finding.people)} "
        f"has {finding.value} with {_share(finding.observed)}: of all beliefs that add up to the rows of every class "
        "of every release this is the most even one. The rows of the classes below alone need not show it."
    )


def _tell_cracks(finding: Finding) -> str:
    if not finding.people:
        return (
            "If nobody left (or nobody joined) in between, the classes below are somebody's, since rows fit nowhere "
            "else. Rows of the two releases stand for the same people where they can; those that cannot be that "
            f"person's are excluded, and {finding.observed:g} remain that may be."
        )
    return (
        "Rows of the two classes below must stand for the same people where they can. Rows that cannot be the "
        f"target's are excluded, and {finding.observed:g} remain for {_names(finding.people)}."
    )


def _tell_breach(finding: Finding) -> str:
    parts = [
        f"{one['with_value']} of {one['among']} in class {one['class']} of release {one['release']}"
        for one in finding.witness["factors"]
    ]
    most = "at most " if finding.witness.get("overlapping") else ""
    return (
        f"In every release the chance of {finding.value} is the rows with it among the people who may have them: "
        f"{_list(parts)}. Over all releases together the chance that it was {_names(finding.people)}'s at least once "
        f"is {most}{_share(finding.observed)}."
    )


def _tell_row_order(finding: Finding) -> str:
    return (
        "The rows of two releases are in the same order far more often than chance allows, so a row of one can be "
        "joined with the row of the other by its number. Publish rows in a fresh random order."
    )


def _tell_plainly(finding: Finding) -> str:
    if "bound" in finding.witness:
        allowed = f"{finding.witness['bound']} allows {_share(finding.required)}"
        return f"Of the class below, {_share(finding.observed)} have {finding.value}, and {allowed}."
    return f"The classes below reach {finding.observed:g}, and {finding.required:g} is required."


_TELL = {
    "difference": _tell_difference,
    "intersection": _tell_intersection,
    "tracing": _tell_tracing,
    "forward": _tell_cracks,
    "cross": _tell_cracks,
    "backward": _tell_cracks,
    "breach": _tell_breach,
    "belief": _tell_belief,
    "row-order": _tell_row_order,
}


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


def _names(people: Sequence[object]) -> str:
    if not people:
        return "somebody"
    shown = [str(person) for person in people[:_PEOPLE_SHOWN]]
    rest = f" and {len(people) - _PEOPLE_SHOWN} more" if len(people) > _PEOPLE_SHOWN else ""
    return ", ".join(shown) + rest


def _people(number: float) -> str:
    return "1 person" if number == 1 else f"{number:g} people"


def _list(parts: Sequence[object]) -> str:
    return " and ".join([", ".join(map(str, parts[:-1])), str(parts[-1])]) if len(parts) > 1 else str(parts[0])


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"
