"""A first policy for a table: commented, valid as it stands, and meant to be corrected by somebody who knows the data.

It is written from column names, counts and rounded bounds. No cell of the table gets into it: hierarchies are left to
the steward, and ranges are rounded outwards until they no longer give the lowest and highest value away.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sequester.errors import DataError
from sequester.ingest.hints import CONSENT, KNOWN, NUMBERED, PEOPLE, POSTAL, SENSITIVE, is_identifying, words_of
from sequester.ingest.profile import Profile, profile, used_tokens
from sequester.policy.model import LONGEST_NAME, Input

_LONGEST_KEY = 1000


@dataclass(frozen=True)
class Proposal:
    """One attribute of the proposed policy: its settings as YAML, and why."""

    name: str
    role: str
    settings: str
    why: str


def propose(source: Any, *, name: str | None = None, delimiter: str | None = None, encoding: str = "utf-8") -> str:
    """A commented policy, as YAML, for a file or a frame."""
    from sequester.ingest.read import open_source
    from sequester.ingest.source import Wanted

    table = open_source(source, Wanted(), form=Input(delimiter=delimiter, encoding=encoding), any_kind=True)
    _refuse_long_names(table.names)
    profiles = [profile(column, table.load(column)) for column in table.names]
    if not any(column.rows for column in profiles):
        raise DataError("the table has no rows to propose a policy from")
    _refuse_data_as_names(profiles)
    series = name or (Path(source).name.split(".")[0] if isinstance(source, str | Path) else "")
    person = _person(profiles)
    proposals = [_proposal(column) for column in profiles if column is not person]
    if not any(proposal.role == "quasi-identifier" for proposal in proposals):
        raise DataError("no column looks like a quasi-identifier; write the policy by hand")
    reading = _input(profiles, delimiter=delimiter, encoding=encoding)
    return "\n".join(_lines(_series(series), person, proposals, reading)) + "\n"


def _lines(series: str, person: Profile | None, proposals: Sequence[Proposal], reading: list[str]) -> Iterator[str]:
    yield "# A first policy, guessed from column names and counts. Read every line: only you know what others know."
    yield "# Then run: sequester check policy.yaml data.csv"
    yield "version: 1"
    yield f"series: {series}"
    yield ""
    if person is None:
        yield "# No column has a different value in every row, so every row counts as one person."
        yield "# person: patient_id"
    else:
        yield f"# {_person_reason(person)}"
        yield f"person: {quoted(person.name)}"
    yield ""
    yield "attributes:"
    for proposal in proposals:
        yield from textwrap.wrap(proposal.why, 110, initial_indent="  # ", subsequent_indent="  # ")
        yield f"  {quoted(proposal.name)}: {{role: {proposal.role}{proposal.settings}}}"
    yield ""
    yield "protect:"
    yield "  # Every class of records that look alike has at least k people."
    yield "  k: 5"
    if any(proposal.role == "sensitive" for proposal in proposals):
        yield "  # Nobody is tied to one sensitive value with more than this. Name harmless values under `ordinary`."
        yield "  confidence: 0.5"
    else:
        yield "  # No column looked sensitive. Give one the role sensitive, then bound what a class says about it:"
        yield "  # confidence: 0.5"
    if person is not None and any(proposal.role == "sensitive" for proposal in proposals):
        yield from _series_lines()
    yield from reading


def _series_lines() -> Iterator[str]:
    """What to think about where the table will be published again and again, and values stay with people."""
    yield "  # In a series, the fewest rows that anything inferred from several releases may come down to; default: k."
    yield "  # inferred: 2"
    yield ""
    yield "# For a series in which people come, leave and return and keep their values: everybody is published at once,"
    yield "# in groups that share their values out, beside rows about nobody. `sequester check` says what it promises."
    yield "# method: {name: pods}"


def _person(profiles: Sequence[Profile]) -> Profile | None:
    """The column that says who a record is about: unique and named like one, else any unique one that could be."""
    unique = [column for column in profiles if column.unique and not words_of(column.name) & (KNOWN | SENSITIVE)]
    numbered = [column for column in unique if words_of(column.name) & (NUMBERED | PEOPLE)]
    # A person id that repeats is still who the records are about: `check` will then ask for one row per person.
    repeated = [
        f for f in profiles if words_of(f.name) & PEOPLE and words_of(f.name) & NUMBERED and f.looks != "nothing"
    ]
    other = [column for column in unique if column.looks in ("category", "code") or _counts_up(column)]
    named = [column for column in other if not is_identifying(column.name)]
    return next(iter([*numbered, *repeated, *named, *other]), None)


def _person_reason(person: Profile) -> str:
    if person.unique:
        return "Different in every row. Who a record is about: never published."
    return (
        "Named like a person's number, but some repeat or are missing: a table has one row per person. Never published."
    )


def _proposal(column: Profile) -> Proposal:
    words = words_of(column.name)
    if column.looks == "nothing":
        return Proposal(column.name, "insensitive", "", "Has no values.")
    if is_identifying(column.name):
        return Proposal(column.name, "identifier", "", "Named like something that identifies a person: dropped.")
    if words & CONSENT and column.distinct <= 2 and column.looks != "date":
        why = "Named like consent: records without it are not published. Say which cells mean yes and no."
        return Proposal(column.name, "consent", ", given: ['true', 'yes', '1'], withheld: ['false', 'no', '0']", why)
    # The day of a diagnosis is something that others may know; the diagnosis is not.
    if words & SENSITIVE and column.looks != "date":
        return _sensitive(column)
    known = bool(words & KNOWN)
    if column.unique and not known and (words & NUMBERED or column.looks in ("category", "code", "text")):
        return Proposal(column.name, "identifier", "", "Different in every row, so it points at a person: dropped.")
    if column.looks == "text":
        return Proposal(column.name, "identifier", "", "Free text may name people: dropped.")
    if column.distinct == 1 and not column.missing:
        return Proposal(column.name, "insensitive", "", "The same in every row, so it tells nobody apart.")
    return _quasi(column, known=known)


def _sensitive(column: Profile) -> Proposal:
    missing = ", missing: category" if column.missing else ""
    why = (
        "Named like something private. Does a person keep the value (permanent), or may it change (transient, which "
        "needs protect.lifetime)?"
    )
    if column.looks == "number":
        why += " Choose bands that mean something."
        return Proposal(column.name, "sensitive", f", kind: number, bands: {_flow(_edges(column))}{missing}", why)
    return Proposal(column.name, "sensitive", f", values: permanent{missing}", why)


def _quasi(column: Profile, *, known: bool) -> Proposal:
    why = (
        "Commonly known about a person."
        if known
        else "May be known about a person; if nobody could know it: insensitive."
    )
    missing = ""
    if column.missing:
        missing, count = ", missing: category", "1 row has" if column.missing == 1 else f"{column.missing:,} rows have"
        why += f" {count} no value, which counts as a value of its own."
    settings, more = _kind(column)
    return Proposal(column.name, "quasi-identifier", f", {settings}{missing}", f"{why} {more}")


def _kind(column: Profile) -> tuple[str, str]:
    """The settings of a quasi-identifier, and what to check about them."""
    words = words_of(column.name)
    if column.looks == "date":
        levels = "levels: [day, month, quarter, year]"
        if not column.formats:
            return f"kind: date, {levels}", "Dates."
        sure = "Dates." if len(column.formats) == 1 else f"Dates; could also be {column.formats[1]}: check which."
        return f'kind: date, format: "{column.formats[0]}", {levels}', sure
    if column.looks == "code" or (column.looks == "number" and column.length and words & POSTAL):
        zeros = ", some with leading zeros" if column.leading_zero else ""
        return f"kind: code, length: {column.length}", f"Digits of one length{zeros}: generalized by prefix."
    if column.looks == "number":
        low, high = _range(column)
        widths = [_round_up((high - low) / 24) * times for times in (1, 2, 4)]
        check = "The range is a guess, rounded outwards: give the true limits. `levels` are widths of bands."
        return f"kind: number, range: {_flow([low, high])}, levels: {_flow(widths)}", check
    tree = "Add a hierarchy: a tree, {All: {Group: [value, ...]}}, or a file of lines value;group;*."
    values = "1 value" if column.distinct == 1 else f"{column.distinct:,} values"
    return "kind: category", f"{values}. {tree}"


def _range(column: Profile) -> tuple[float, float]:
    """Bounds rounded outwards, never the lowest (unless 0) or highest value itself."""
    if "age" in words_of(column.name) and column.low >= 0 and column.high < 120:
        return 0, 120
    step = _round_up(max(column.high - column.low, abs(column.high) * 1e-6, 1e-6) / 10)
    low, high = math.floor(column.low / step) * step, math.ceil(column.high / step) * step
    if 0 <= column.low < column.high - column.low:
        low = 0.0
    elif low == column.low:
        low -= step
    return _tidy(low), _tidy(high + step if high == column.high else high)


def _edges(column: Profile) -> list[float]:
    low, high = _range(column)
    step = _round_up((high - low) / 5)
    return [_tidy(low + step * n) for n in range(math.ceil((high - low) / step - 1e-9) + 1)]


def _round_up(width: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return _tidy(next(times * power for times in (1, 2, 5, 10) if times * power >= width * (1 - 1e-9)))


def _tidy(number: float) -> float:
    return float(f"{number:.12g}")


def _flow(numbers: Sequence[float]) -> str:
    return "[" + ", ".join(f"{number:.12g}" for number in numbers) + "]"


def _input(profiles: Sequence[Profile], *, delimiter: str | None, encoding: str) -> list[str]:
    """How the file is read, as far as it is not the default."""
    tokens, settings = used_tokens(profiles), []
    if delimiter is not None:
        settings.append(f"  delimiter: {quoted(delimiter)}")
    if encoding != "utf-8":
        settings.append(f"  encoding: {quoted(encoding)}")
    if tokens:
        settings.append("  # These cells were found and taken to mean: no value.")
        settings.append(f"  missing: [{', '.join(quoted(token) for token in ('', *tokens))}]")
    return ["", "input:", *settings] if settings else []


def _refuse_long_names(names: Sequence[str]) -> None:
    """YAML takes no longer keys. Without a header line a name is a cell, so only its place is told."""
    long = [place for place, name in enumerate(names, start=1) if len(quoted(name)) > _LONGEST_KEY]
    if long:
        places = ", ".join(map(str, long[:5]))
        raise DataError(f"the names of {len(long)} columns have more than {_LONGEST_KEY:,} letters: column {places}")


def _refuse_data_as_names(profiles: Sequence[Profile]) -> None:
    """A file without a header has its first record as column names, which must not get into the policy."""
    numbers = [p for p in profiles if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", p.name.strip())]
    years = [p for p in numbers if re.fullmatch(r"(19|20)[0-9]{2}", p.name.strip())]
    if len(numbers) - len(years) >= 2:
        raise DataError("the first line looks like a record, not like column names; add a line with the names on top")


def _counts_up(column: Profile) -> bool:
    """A running number: as many whole values as rows, without large gaps."""
    return column.looks == "number" and column.high - column.low == column.rows - 1


def _series(name: str) -> str:
    return quoted(re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:LONGEST_NAME] or "my-series")


def quoted(text: str) -> str:
    """Text as YAML: plain when it can only be read as text, else in double quotes."""
    if re.fullmatch(r"[A-Za-z_]([\w -]*\w)?", text, re.ASCII) and text.lower() not in ("true", "false", "null"):
        return text
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'
