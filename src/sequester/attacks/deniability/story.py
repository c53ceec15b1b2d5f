"""The sum that refutes every belief (see `telling`), told so that it can be checked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sequester.attacks import words
from sequester.attacks.finding import Finding
from sequester.history import History

TERMS_SHOWN = 100
"""A sum that cannot be seen whole cannot be checked; longer ones are for the witness."""


def tell_sum(finding: Finding, history: History) -> str:
    """The sum of the witness (see `telling`): its terms, who remains in it, and why that is too much."""
    told, releases = finding.witness, len(history)
    terms = [
        *(f"+ {_times(row)}{_count(row)}" for row in told["added"]),
        *(f"- {_times(row)}{_count(row)}" for row in told["subtracted"]),
        *(f"{'+' if row['times'] > 0 else '-'} {_times(row)}{words.people(row['people'])} {_where(row, releases)}, "
          "whatever they have" for row in told["sizes"]),
    ]  # fmt: skip
    bounds = dict(zip(history.values, history.bounds, strict=True))
    rest = [
        f"{_times(row)}those with {row['value']} of the {words.people(row['people'])} {_where(row, releases)}: "
        f"allowed {words.share(float(row['bound'] if 'bound' in row else bounds[row['value']]))} "
        f"of {row['people'] * row['times']:g}"
        for row in told["remaining"]
    ]
    lacking = [f"Nobody {_place(row)} has {row['value']}." for row in told["absent"]]
    values = dict.fromkeys(row["value"] for row in told["remaining"])
    who = words.names(finding.people) if len(finding.people) == 1 else f"somebody of {words.names(finding.people)}"
    tied = f"to {finding.value} with {words.share(finding.observed)} or more"
    if len(values) > 1:
        tied = f"too surely to one of {', '.join(values)}; spread evenly over them that is {finding.value} with "
        tied += words.share(finding.observed)
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
        lines.append(f"A longer sum, in the witness, exposes more people less: {words.names(told['wider']['people'])}.")
    return "\n".join(lines)


def _some(lines: Sequence[str], *, indent: str = "  ") -> list[str]:
    more = [f"... and {len(lines) - TERMS_SHOWN} more, in the witness"] if len(lines) > TERMS_SHOWN else []
    return [f"{indent}{line}" for line in (*lines[:TERMS_SHOWN], *more)]


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
    return f"in {words.listed(places)}" + ("" if len(places) == releases else " and in no other release")
