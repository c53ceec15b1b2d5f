"""A first policy for a table, or for several waves of it: commented, valid as it stands, and meant to be corrected by
somebody who knows the data.

It is written from column names, counts and rounded bounds. No cell of the table gets into it: hierarchies are left to
the steward, and ranges are rounded outwards until they no longer give the lowest and highest value away.

`waves` reads, `profile` looks at cells, `people` follows persons, `columns` (with `kinds`, `sensitive`, `hints`) gives
roles, `promises` what is promised and by which method; here it becomes a file.
"""

from __future__ import annotations

import itertools
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequester.errors import DataError
from sequester.ingest.propose.text import counted, percent, quoted, series_name
from sequester.policy.model import Input

if TYPE_CHECKING:
    from sequester.ingest.propose.columns import Proposal
    from sequester.ingest.propose.people import Panel, Seen
    from sequester.ingest.propose.profile import Profile
    from sequester.ingest.propose.waves import Progress, Waves

__all__ = ["propose", "quoted"]

_WIDTH = 110


def propose(
    source: Any,
    *,
    name: str | None = None,
    person: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> str:
    """A commented policy, as YAML, for a file or a frame, or for a list of waves of one table, the earliest first.

    From waves it is known what changes about people, who leaves and returns, and what can be promised. `person` names
    the column that says who a record is about; otherwise it is found.
    """
    from sequester.ingest.propose.columns import columns_of
    from sequester.ingest.propose.promises import promises
    from sequester.ingest.propose.waves import open_waves

    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise DataError("no table was given to propose a policy from")
    tell = progress or (lambda stage, number, stages: None)
    waves = open_waves(sources, Input(delimiter=delimiter, encoding=encoding), tell)
    looks = _looks(waves, tell)
    who, panel = _people(waves, looks, person)
    looks = _moved(waves, panel, looks, tell)
    common = set(waves.common)
    found = columns_of(waves, [seen for seen in looks if seen.name != who and seen.name in common])
    if not any(proposal.role == "quasi-identifier" for proposal in found.proposals):
        raise DataError("no column looks like a quasi-identifier; write the policy by hand")
    lines = [
        *_seen(waves, panel),
        *_out_of_order(looks),
        "version: 1",
        f"series: {series_name(name or _name(sources))}",
        "",
        *_person(who, [seen.together for seen in looks], panel),
        "",
        *_attributes(found.proposals, [seen for seen in looks if seen.name not in common], len(waves)),
        "",
        *promises(waves, panel, found.protected, person=who is not None),
        *_input([seen.together for seen in looks], Input(delimiter=delimiter, encoding=encoding), waves.decimal),
    ]
    return "\n".join(lines) + "\n"


def _looks(waves: Waves, tell: Progress) -> list[Seen]:
    from sequester.ingest.propose.people import Seen
    from sequester.ingest.propose.profile import profile

    looks = []
    for place, name in enumerate(waves.names):
        tell("looking", place, len(waves.names))
        columns = waves.column(name)
        each = tuple(profile(name, table[name]) if name in table else None for table in waves.tables)
        whole = next((one for one in each if one is not None), None) if len(columns) == 1 else profile(name, *columns)
        if whole is not None:
            looks.append(Seen(whole, each))
    return looks


def _people(waves: Waves, looks: Sequence[Seen], person: str | None) -> tuple[str | None, Panel | None]:
    """The column that says who a record is about, and, of several waves, who is in which."""
    from sequester.ingest.propose.people import panel_of, person_of_table, person_of_waves

    if len(waves) == 1:
        if person is not None:
            panel_of(waves, person)
            return person, None
        one = person_of_table([seen.together for seen in looks])
        return (None if one is None else one.name), None
    if person is None:
        person = person_of_waves(waves, looks)
    panel = panel_of(waves, person)
    if not panel.linked.any():
        raise DataError("nobody is in two waves by the person column; are these waves of the same people?")
    return person, panel


def _moved(waves: Waves, panel: Panel | None, looks: Sequence[Seen], tell: Progress) -> list[Seen]:
    """The same with what happens to columns within people."""
    if panel is None:
        return list(looks)
    common, moved = set(waves.common), []
    for place, seen in enumerate(looks):
        tell("comparing", place, len(looks))
        if seen.name in common and seen.together.looks not in ("text", "nothing"):
            seen = replace(seen, moves=panel.moves(seen.together, waves.column(seen.name)))
        moved.append(seen)
    return moved


def _name(sources: Sequence[Any]) -> str:
    """The name of the file, or what the names of several begin with."""
    stems = [Path(source).name.split(".")[0] for source in sources if isinstance(source, str | os.PathLike)]
    if len(sources) == 1:
        return stems[0] if stems else ""
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*stems, strict=False))
    common = "".join(letters[0] for letters in alike).rstrip("-_. 0123456789")
    return common if len(common) > 2 else "panel"


def _seen(waves: Waves, panel: Panel | None) -> Iterator[str]:
    """What was looked at, in counts; fewer than five people are never told."""
    if panel is None:
        yield "# A first policy, guessed from column names and counts. Read every line: only you know what others know."
        yield "# Then run: sequester check policy.yaml data.csv"
        return
    yield f"# A first policy, guessed from {len(waves)} waves. Read every line: only you know what others know."
    yield "# Then run, for every wave in turn: sequester check policy.yaml WAVE; sequester publish WAVE -p policy.yaml"
    yield f"# Seen: {panel.people:,} people, one row each in every wave they are in. No cell is in this file."
    yield f"# Wave 1: {waves.rows[0]:,} people."
    for number, (rows, flow) in enumerate(zip(waves.rows[1:], panel.flows, strict=True), start=2):
        parts = [
            f"{counted(count, 'person', 'people')} {what}"
            for count, what in ((flow.joined, "joined"), (flow.returned, "returned"), (flow.left, "left"))
            if count
        ]
        yield f"# Wave {number}: {rows:,} people; {', '.join(parts) or 'nobody joined or left'}."
    if panel.leaving:
        yield f"# On average {percent(panel.leaving)} of the people of a wave are not in the next."


def _out_of_order(looks: Sequence[Seen]) -> Iterator[str]:
    for seen in looks:
        starts = [wave.low for wave in seen.waves if wave is not None]
        if seen.dated and seen.together.looks == "number" and starts != sorted(starts):
            yield f"# {quoted(seen.name)} goes down from one wave to a later one: are the waves in order?"


def _person(person: str | None, looks: Sequence[Profile], panel: Panel | None) -> Iterator[str]:
    if person is None:
        yield "# No column has a different value in every row, so every row counts as one person."
        yield "# person: patient_id"
        return
    if panel is not None:
        yield "# Different in every row of a wave, and found again in others. Who a record is about: never published."
    elif next(look.unique for look in looks if look.name == person):
        yield "# Different in every row. Who a record is about: never published."
    else:
        yield "# Named like a person's number, but some repeat or are missing: a table has one row per person. Never"
        yield "# published."
    yield f"person: {quoted(person)}"


def _attributes(proposals: Sequence[Proposal], partial: Sequence[Seen], waves: int) -> Iterator[str]:
    yield "attributes:"
    for proposal in proposals:
        yield from _comment(proposal.why)
        yield f"  {quoted(proposal.name)}: {{role: {proposal.role}{proposal.settings}}}"
    for seen in partial:
        present = [str(number) for number, wave in enumerate(seen.waves, start=1) if wave is not None]
        which = f"wave {present[0]}" if len(present) == 1 else f"waves {', '.join(present[:-1])} and {present[-1]}"
        yield from _comment(
            f"{quoted(seen.name)} is only in {which} of {waves}, so it is never read. To publish it, add it to the "
            "other waves, with empty cells, and give it a role with missing: category."
        )


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  # ", subsequent_indent="  # ")


def _input(looks: Sequence[Profile], form: Input, decimal: str) -> list[str]:
    """How the files are read, as far as it is not the default."""
    from sequester.ingest.propose.profile import used_tokens

    tokens, settings = used_tokens(looks), []
    if form.delimiter is not None:
        settings.append(f"  delimiter: {quoted(form.delimiter)}")
    if form.encoding != "utf-8":
        settings.append(f"  encoding: {quoted(form.encoding)}")
    if decimal != ".":
        settings.append("  # Numbers are written with a comma before their fraction.")
        settings.append(f"  decimal: {quoted(decimal)}")
    if tokens:
        settings.append("  # These cells were found and taken to mean: no value.")
        settings.append(f"  missing: [{', '.join(quoted(token) for token in ('', *tokens))}]")
    return ["", "input:", *settings] if settings else []
