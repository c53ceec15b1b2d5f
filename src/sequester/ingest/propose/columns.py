"""A role for every column, with its settings and a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sequester.ingest.propose.hints import BORN, CONSENT, KNOWN, NUMBERED, is_identifying, words_of
from sequester.ingest.propose.kinds import is_coded, is_steady, shape_of, suited
from sequester.ingest.propose.people import Codes, Seen, cells_of
from sequester.ingest.propose.sensitive import (
    Private,
    candidate,
    chosen,
    is_private,
    skewed,
    why_chosen,
    why_dropped,
)
from sequester.ingest.propose.text import counted
from sequester.ingest.propose.waves import Waves

_MOST_QUASI = 8
"""With more quasi-identifiers hardly anybody is near anybody, and nothing fine is left."""
_MOST_SENSITIVE = 3
_MANY_VALUES = 200
_EXCEPTIONS = 0.2
"""A column follows from another if knowing that leaves so much of the doubt about it."""


@dataclass(frozen=True)
class Proposal:
    """One attribute of the proposed policy: its settings as YAML, and why."""

    name: str
    role: str
    settings: str
    why: str


@dataclass(frozen=True)
class Columns:
    """All attributes of the proposed policy, and the columns that are protected."""

    proposals: list[Proposal]
    protected: list[Private]


def columns_of(waves: Waves, looks: Sequence[Seen]) -> Columns:
    """Propose a role for each of these columns, which every wave has."""
    open_ = [seen for seen in looks if _settled(seen, looks) is None]
    candidates = [c for seen in open_ if (c := candidate(seen, waves.column(seen.name))) is not None]
    protected = chosen(candidates, most=1 if len(waves) > 1 else _MOST_SENSITIVE, waves=len(waves))
    named = {one.seen.name for one in candidates}
    quasi = [seen for seen in open_ if seen.name not in named and _outcome(seen) is None]
    if len(waves) > 1 and not protected:
        by_values = [c for seen in quasi if (c := skewed(seen, waves.column(seen.name))) is not None]
        protected = chosen(by_values, most=1, waves=len(waves))
        quasi = [seen for seen in quasi if seen not in [one.seen for one in protected]]
        candidates += protected
    reasons = _superfluous(waves, quasi) if len(waves) > 1 else {}
    by_name = {one.seen.name: one for one in candidates}
    proposals = []
    for seen in looks:
        one = by_name.get(seen.name)
        settled = _settled(seen, looks)
        if settled is not None:
            proposals.append(settled)
        elif one is not None and one in protected:
            proposals.append(Proposal(seen.name, "sensitive", one.settings, why_chosen(one, waves=len(waves))))
        elif one is not None:
            proposals.append(_dropped(seen, why_dropped(one, protected)))
        else:
            proposals.append(_outcome(seen) or _superfluous_or_quasi(seen, reasons.get(seen.name)))
    return Columns(proposals, protected)


def _settled(seen: Seen, looks: Sequence[Seen]) -> Proposal | None:
    """What is clear without looking at what others may know; None where it is not."""
    look, words, several = seen.together, words_of(seen.name), len(seen.waves) > 1
    if look.looks == "nothing":
        why = "Has no values."
        return _dropped(seen, f"{why} Dropped.") if several else Proposal(look.name, "insensitive", "", why)
    if is_identifying(look.name):
        return _dropped(seen, "Named like something that identifies a person: dropped.")
    if words & CONSENT and look.distinct <= 2 and look.looks != "date":
        why = "Named like consent: records without it are not published. Say which cells mean yes and no."
        return Proposal(look.name, "consent", ", given: ['true', 'yes', '1'], withheld: ['false', 'no', '0']", why)
    if seen.dated:
        why = "One value in every wave: it says when, and nothing about anybody."
        return Proposal(look.name, "insensitive", ", changes: true", why)
    if look.distinct == 1 and not look.missing:
        if several:
            return _dropped(seen, "The same in every row of every wave. Dropped: a later wave may differ in it.")
        return Proposal(look.name, "insensitive", "", "The same in every row, so it tells nobody apart.")
    if several and "age" in words and any(words_of(other.name) & BORN for other in looks):
        return _dropped(seen, "An age changes with every wave, and the birth column says the same and stays: dropped.")
    return _pointing(seen)


def _pointing(seen: Seen) -> Proposal | None:
    """Cells that point at single people."""
    look, words = seen.together, words_of(seen.name)
    known = bool(words & KNOWN)
    unique = any(wave is not None and wave.unique for wave in seen.waves)
    if look.looks == "text":
        return _dropped(seen, "Free text may name people: dropped.")
    if len(seen.waves) > 1 and look.missing > look.rows / 2 and not is_private(seen):
        return _dropped(seen, "Most rows have no value, so the others are few and point at people: dropped.")
    if unique and not known and not is_private(seen) and (words & NUMBERED or look.looks in ("category", "code")):
        return _dropped(seen, "Different in every row, so it points at a person: dropped.")
    crowded = look.distinct > max(_MANY_VALUES, look.rows / 10)
    if len(seen.waves) > 1 and not known and shape_of(look) == "category" and crowded:
        return _dropped(seen, f"{look.distinct:,} values, most of them of few people: dropped. Publish groups of them.")
    return None


def _outcome(seen: Seen) -> Proposal | None:
    """A number that moves freely: exact numbers of few people each, which nobody can be hidden among."""
    look = seen.together
    if len(seen.waves) == 1 or not seen.changes or shape_of(look) != "number":
        return None
    if words_of(look.name) & KNOWN or is_steady(seen) or is_coded(look):
        return None
    why = (
        "An exact number that changes points at people: dropped. To publish bands of it, as something that others may "
        f"know: {{role: quasi-identifier, {suited(seen).settings}, missing: category}}"
    )
    return _dropped(seen, why)


def _superfluous(waves: Waves, quasi: Sequence[Seen]) -> dict[str, str]:
    """Quasi-identifiers that a first policy does better without, and why."""
    reasons = {}
    codes = {seen.name: cells_of(seen.together, waves.column(seen.name))[0] for seen in quasi}
    for seen in quasi:
        of = next((other.name for other in quasi if other.name not in reasons and _follows(codes, seen, other)), None)
        if of is not None:
            reasons[seen.name] = f"Hardly says more than {of}, which is published: dropped."
    kept = [seen for seen in quasi if seen.name not in reasons]
    order = sorted(kept, key=lambda seen: (not words_of(seen.name) & KNOWN, seen.changes))
    for seen in order[_MOST_QUASI:]:
        reasons[seen.name] = (
            f"Dropped: with more than {_MOST_QUASI} columns that others may know, hardly anything fine is left. To "
            f"publish it, drop another one: {{role: quasi-identifier, {suited(seen).settings}, missing: category}}"
        )
    return reasons


def _follows(codes: dict[str, Codes], seen: Seen, other: Seen) -> bool:
    """Whether nearly all rows that agree in one column agree in another, which tells less."""
    less, more = seen.together.distinct, other.together.distinct
    rows = seen.together.rows
    if seen is other or less >= more or more > rows / 10:
        return False
    values = int(codes[seen.name].max()) + 2
    pairs, times = np.unique(codes[other.name] * values + codes[seen.name] + 1, return_counts=True)
    most = np.zeros(int(codes[other.name].max()) + 2, np.int64)
    np.maximum.at(most, pairs // values, times)
    common = int(np.bincount(codes[seen.name] + 1).max())
    return rows - int(most.sum()) <= _EXCEPTIONS * (rows - common)


def _superfluous_or_quasi(seen: Seen, reason: str | None) -> Proposal:
    return _quasi(seen) if reason is None else _dropped(seen, reason)


def _quasi(seen: Seen) -> Proposal:
    look = seen.together
    known = bool(words_of(seen.name) & KNOWN)
    why = "Commonly known about a person." if known else "May be known about a person; if nobody could: insensitive."
    blank = ""
    if look.missing:
        blank = ", missing: category"
        count = counted(look.missing, "row")
        why += f" {count[0].upper()}{count[1:]} without a value, which counts as a value of its own."
    elif len(seen.waves) > 1:
        # What is declared now holds for the whole series; it costs nothing as long as no cell is empty.
        blank = ", missing: category"
    fitting = suited(seen)
    return Proposal(seen.name, "quasi-identifier", f", {fitting.settings}{blank}", f"{why} {fitting.why}")


def _dropped(seen: Seen, why: str) -> Proposal:
    return Proposal(seen.name, "identifier", "", why)
