"""What the cells of a column are, as settings of a policy, and why."""

from __future__ import annotations

from dataclasses import dataclass

from sequester.ingest.propose.hints import LIVELIHOODS, MEASURED, PLACES, POSTAL, words_of
from sequester.ingest.propose.numbers import flow, range_of, step_of, widths_of
from sequester.ingest.propose.people import Seen
from sequester.ingest.propose.profile import Profile
from sequester.ingest.propose.text import counted

_DOZEN = 12
_CODES = 200
_CODED = {"code", "cd", "type", "status", "class", "category", "cat", "group", "ident", "ind", "flag", "race", "sex"}
_CODED |= {"gender", *PLACES}
_MONEY = LIVELIHOODS - {"occupation", "occ", "occupational", "job", "profession", "benefit", "benefits"}
_ROOM, _MORE_ROOM = 0.1, 0.25
"""So much of their span more at both ends is for people of later waves; for numbers that move it is the second."""
_FEW_STEPS = 20
_SHORTEST_CODE, _LONGEST_CODE = 3, 20


@dataclass(frozen=True)
class Suited:
    """Settings of a quasi-identifier as YAML, and what to check about them."""

    kind: str
    settings: str
    why: str


def is_coded(look: Profile) -> bool:
    """Whether numbers are names of something: 0 and 1, up to a dozen whole ones, or more if it is called a code."""
    words = words_of(look.name)
    if look.looks != "number" or not look.whole or words & (MEASURED | _MONEY):
        return False
    return look.distinct <= _DOZEN or (bool(words & _CODED) and look.distinct <= _CODES)


def shape_of(look: Profile) -> str:
    """`number`, `date`, `code` or `category`."""
    if look.looks == "date":
        return "date"
    by_prefix = look.length is not None and _SHORTEST_CODE <= look.length <= _LONGEST_CODE
    if look.looks == "code" and by_prefix:
        return "code"
    if look.looks == "number":
        if by_prefix and words_of(look.name) & POSTAL:
            return "code"
        # As a number 1 and 1.0 are the same; as categories they are two.
        return "category" if is_coded(look) and not look.spellings else "number"
    return "category"


def suited(seen: Seen) -> Suited:
    """The settings of a quasi-identifier."""
    look = seen.together
    shape = shape_of(look)
    changes, moved = _changes(seen, shape)
    if shape == "date":
        settings, why = _date(look)
    elif shape == "code":
        zeros = ", some with leading zeros" if look.leading_zero else ""
        settings, why = f"length: {look.length}", f"Digits of one length{zeros}: generalized by prefix."
    elif shape == "number":
        settings, why = _number(seen)
    else:
        values = "1 value" if look.distinct == 1 else f"{look.distinct:,} values"
        codes = "whole numbers that stand for something" if look.looks == "number" else ""
        tree = "Add a hierarchy: a tree, {All: {Group: [value, ...]}}, or a file of lines value;group;*."
        few = look.distinct <= 3
        settings, why = "", f"{values}{', ' + codes if codes else ''}.{'' if few else ' ' + tree}"
    parts = [part for part in (f"kind: {shape}", settings, changes) if part]
    return Suited(shape, ", ".join(parts), " ".join(part for part in (why, moved, _mixed(seen)) if part))


def range_for(seen: Seen) -> tuple[float, float]:
    """A range that holds a number in all waves, with room."""
    look = seen.together
    age = "age" in words_of(look.name)
    room = 0.0 if len(seen.waves) == 1 else _MORE_ROOM if seen.changes else _ROOM
    return range_of(look.low, look.high, age=age, room=room)


def _number(seen: Seen) -> tuple[str, str]:
    look = seen.together
    low, high = range_for(seen)
    widths = widths_of(low, high, whole=look.whole and len(seen.waves) > 1)
    why = "The range is a guess, rounded outwards: give the true limits. `levels` are widths of bands."
    if look.spellings:
        why = "Written in more than one way (1 and 1.0): as a number they are the same. " + why
    elif len(seen.waves) > 1:
        why = "The range is rounded outwards; it may become wider later. `levels` are widths of bands."
    return f"range: {flow([low, high])}, levels: {flow(widths)}", why


def _date(look: Profile) -> tuple[str, str]:
    levels = "levels: [day, month, quarter, year]"
    if not look.formats:
        return levels, "Dates."
    sure = "Dates." if len(look.formats) == 1 else f"Dates; could also be {look.formats[1]}: check which."
    return f'format: "{look.formats[0]}", {levels}', sure


def _changes(seen: Seen, shape: str) -> tuple[str, str]:
    """Whether it may change, as YAML, and what was seen of it."""
    moves = seen.moves
    if moves is None:
        return "", ""
    if not moves.changed:
        return "", "Stays the same for everybody who is in several waves."
    who = f"Changes for {counted(moves.changed, 'person', 'people')} of {moves.people:,}"
    if shape == "number" and moves.low is not None and moves.high is not None and is_steady(seen):
        least, most = step_of(moves.low, moves.high)
        return (
            f"changes: {{by: [{least}, {most}]}}",
            f"{who}, never by much: from wave to wave as `by` says, with room.",
        )
    return "changes: true", f"{who}: `changes: true`, so it links nobody's rows."


def is_steady(seen: Seen) -> bool:
    """Whether a number hardly moves from wave to wave, as an age does."""
    moves, look = seen.moves, seen.together
    if moves is None or moves.low is None or moves.high is None or not look.whole or moves.people < _FEW_STEPS:
        return False
    return moves.high - moves.low <= max(2.0, (look.high - look.low) / 20) < look.high - look.low


def _mixed(seen: Seen) -> str:
    """Waves in which the cells look like something else."""
    kinds = {wave.looks for wave in seen.waves if wave is not None and wave.looks != "nothing"}
    if len(kinds) < 2:
        return ""
    told = ", ".join(
        f"wave {number} {wave.looks}" for number, wave in enumerate(seen.waves, start=1) if wave is not None
    )
    return f"The waves differ in what the cells look like ({told}): make them alike if one was read wrongly."
