"""`sequester` without a command: where the series of this folder stands, and what to do next.

It reads the policy, the list of releases and the names of files, takes no key, and changes nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sequester.cli.options import find_policy, quoted
from sequester.cli.series import ledger_of
from sequester.cli.terminal import console, grid, line, with_flags

if TYPE_CHECKING:
    from sequester.ledger import Entry, Ledger, Place
    from sequester.policy import Policy

# Seconds to wait while another command has the ledger.
_WAIT = 0.3
_MOST = 5
_NEXT_TABLE = "next.csv"


@dataclass
class Standing:
    """What is told: a sentence, facts with their names, and commands with what they do."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)


def show_status(commands: Collection[str]) -> None:
    """Tell where the series of this folder stands; `commands` are those that there are."""
    standing = _stand()
    line(standing.title, style="bold", wrap=True)
    if standing.facts:
        line()
        console().print(grid(standing.facts))
    line()
    _show_commands([command for command in standing.commands if command[0].split()[0] in commands])
    line()
    line("Every command: sequester --help. One of them: sequester plan --help.", style="dim")


def _show_commands(commands: Sequence[tuple[str, str]]) -> None:
    """Each with what it does: beside it, or above it where that is too narrow."""
    shown = [(f"sequester {command}", why) for command, why in commands]
    width = max((len(command) for command, _ in shown), default=0)
    beside = all(width + len(why) + 5 <= console().width for _, why in shown)
    for command, why in shown:
        if beside:
            line("  ", (f"{command:{width}}", "bold"), (f"   {why}", "dim"))
        else:
            line(f"  {why}", style="dim", wrap=True)
            line(f"    {command}", style="bold")


def _stand() -> Standing:
    from sequester.errors import PolicyError
    from sequester.policy import Policy

    try:
        file = find_policy()
    except typer.BadParameter as error:
        return Standing(f"{error.message[:1].upper()}{error.message[1:]}.", [], [("check -p policy.yaml", "")])
    if file is None:
        return _welcome()
    try:
        policy = Policy.load(file)
    except PolicyError as error:
        problems = "1 problem" if len(error.problems) == 1 else f"{len(error.problems)} problems"
        return Standing(f"{file} cannot be used: {problems}.", [], [("check", "says which, and where")])
    except OSError as error:
        return Standing(f"{file} cannot be read: {(error.strerror or 'error').lower()}.", [], [])
    tables = _tables(policy)
    if policy.person is None:
        title = f"{file} is for single tables: a series needs `person`, the column that says who a record is about."
        check = (f"check {_first(tables)}", "is the policy right, does the table fit?")
        return Standing(title, _here(tables), [check, (f"anonymize {_first(tables)}", "one release of one table")])
    try:
        return _of_series(file, policy, ledger_of(file, policy), tables)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a ledger is told, and no reason to fail
        return _broken(policy, error)


def _of_series(file: Path, policy: Policy, place: Place, tables: list[Path]) -> Standing:
    from sequester.ledger import Ledger, evidence
    from sequester.ledger.before import place_of
    from sequester.ledger.duck import has_log

    facts = [("policy", str(file)), ("ledger", str(place))]
    if not place.exists():
        if place.head.exists() or evidence.folders(place.releases, policy.series):
            gone = ("wrong", "releases of this series were published, and their ledger is not here; put it back")
            return Standing(f"{policy.series}: the ledger is missing.", [*facts, gone], [("plan --help", "")])
        return _unpublished(policy, facts[:1], tables)
    if place.is_file and (place_of(place.file.resolve()).exists() or has_log(place)):
        # To open it could mean to mend it, which is for commands that may write.
        said = "a command is at work on the ledger, or did not end in good order; the next one puts it in order"
        facts.append(("interrupted", said))
        return Standing(
            f"{policy.series}: not settled.", facts, [("ledger verify", "puts it in order, and checks everything")]
        )
    with Ledger.open(place, key=None, read_only=True, series=policy.series, timeout=_WAIT) as ledger:
        entries = ledger.releases()
        facts += _changes(ledger, policy, entries)
        ended = _ended(ledger)
    if not entries:
        return _unpublished(policy, facts, tables)
    return _published(policy, entries, facts, tables, ended)


def _unpublished(policy: Policy, facts: list[tuple[str, str]], tables: list[Path]) -> Standing:
    first = _first(tables)
    commands = [
        (f"check {first}", "is the policy right, does the table fit?"),
        (f"rehearse {_waves(tables)}", "what a series of them would lose"),
        (f"plan {first}", "the first release, judged; publishes nothing"),
        (f"publish {first}", "the same, published after you said yes"),
    ]
    return Standing(f"{policy.series}: nothing is published yet.", [*facts, *_here(tables)], commands)


def _published(
    policy: Policy, entries: Sequence[Entry], facts: list[tuple[str, str]], tables: list[Path], ended: str | None
) -> Standing:
    last = entries[-1]
    releases = "1 release" if len(entries) == 1 else f"{len(entries):,} releases"
    title = f"{policy.series}: {releases}; the last is {last.number}, {last.name}, of {last.created[:10]}."
    look = [(f"show {last.number}", "what it changed, promised and cost")]
    if last.status == "begun":
        said = f"release {last.number} ({last.name}) was begun by a command that did not end"
        mend = [("ledger verify", "finishes it, or undoes it, and checks everything")]
        return Standing(title, [*facts, ("interrupted", said)], [*mend, *look])
    if ended is not None:
        return Standing(title, [*facts, ("ended", ended)], [*look, ("history", "what was published")])
    name, coming = _coming(tables, entries)
    facts = [*facts, *([(name, _listed(coming))] if coming else [])]
    first = _first(coming, otherwise=_NEXT_TABLE)
    commands = [
        (f"plan {first}", "the next release, judged; publishes nothing"),
        (f"publish {first}", "the same, published after you said yes"),
        ("history", "what was published"),
    ]
    return Standing(title, facts, [*commands, *look])


def _ended(ledger: Ledger) -> str | None:
    """Why nothing more is published in a series, if that is so."""
    from sequester.errors import LedgerError

    try:
        ledger.check_open()
    except LedgerError as error:
        return with_flags(error.problems[0].message)
    return None


def _changes(ledger: Ledger, policy: Policy, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """How the policy differs from that of the last release: by keys, never by what they say."""
    from sequester.policy.fingerprint import differences

    if not entries:
        return
    text = (entries[-1] if len(entries) > ledger.carried else ledger).policy_text
    kept = differences(policy, text)
    free = differences(
        policy, text, keys=[key for key in type(policy).model_fields if key not in ("ledger", "after", "engine")]
    )
    if kept:
        yield "policy differs", f"{', '.join(kept)}: promised when the series began; put it back, or begin with `after`"
    if others := [key for key in free if key not in kept]:
        yield "policy changed", f"{', '.join(others)}, since the last release, as it may"


def _broken(policy: Policy, error: Exception) -> Standing:
    """What is wrong with the ledger, in a line, and which command says more."""
    from sequester.errors import Busy, SequesterError
    from sequester.ledger.connection import Encrypted

    more = [("ledger verify", "says what is wrong and what is right; takes the key")]
    if isinstance(error, Encrypted):
        said, more = "the ledger is encrypted, and is read with its key", [("history", "with the key")]
    elif isinstance(error, Busy):
        said, more = "another command has the ledger", [("history", "when that one is done")]
    elif isinstance(error, SequesterError):
        problems = getattr(error, "problems", ())
        said = with_flags(problems[0].message if problems else str(error))
    else:
        said = f"the ledger cannot be read ({type(error).__name__})"
    return Standing(f"{policy.series}: cannot tell where it stands.", [("why", said)], more)


def _welcome() -> Standing:
    tables = _tables(None)
    first = _first(tables)
    commands = [
        (f"init {_waves(tables)}", "proposes a policy: read it, and correct it"),
        (f"check {first}", "is the policy right, does the table fit?"),
        (f"rehearse {_waves(tables)}", "what a series of them would lose"),
        (f"publish {first}", "shown first, and published if you say yes"),
    ]
    facts = _here(tables)
    if ledgers := sorted(path.name for path in _files() if path.suffix == ".ledger"):
        facts += [("ledgers", f"{', '.join(ledgers[:_MOST])}: name one with -l, or go to where its policy is")]
        commands.insert(0, (f"history -l {shlex.quote(ledgers[0])}", "what was published with it"))
    return Standing("Sequester publishes a table about people again and again. Here is no policy yet.", facts, commands)


def _files() -> list[Path]:
    """The files of the working folder."""
    try:
        with os.scandir() as entries:
            return [Path(one.name) for one in entries if one.is_file() and not one.name.startswith(".")]
    except OSError:
        return []


def _tables(policy: Policy | None) -> list[Path]:
    """Files of this folder that may be tables about people, by their names; not those that the policy names."""
    from sequester.ingest.csv import COMPRESSION
    from sequester.ingest.read import FORMATS, TABLED

    mentioned = set() if policy is None else set(_texts(policy.model_dump(mode="json")))
    # Text is more often about a table than one.
    suffixes = {*FORMATS, *TABLED} - {".txt"}
    kinds = {*suffixes, *(f"{suffix}{packed}" for suffix in suffixes for packed in COMPRESSION)}
    tables = [path for path in _files() if path.name.lower().endswith(tuple(kinds)) and path.name not in mentioned]
    return sorted(tables, key=lambda table: _in_order(table.name))


def _texts(value: object) -> Iterator[str]:
    """Every text in a policy, the last part of it where it is a path."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield Path(value).name


def _coming(tables: Sequence[Path], entries: Sequence[Entry]) -> tuple[str, list[Path]]:
    """Tables that may be the next one, likelier first: newer than the last release, or called what would follow it."""
    published, last = {entry.name for entry in entries}, entries[-1]
    others = [table for table in tables if _stem(table) not in published]
    following = [table for table in others if _in_order(_stem(table)) > _in_order(last.name)]
    ordered = following + [table for table in others if table not in following]
    since = datetime.fromisoformat(last.created).timestamp()
    newer = [table for table in ordered if _written(table) > since]
    return ("newer tables", newer) if newer else ("tables here", following)


def _written(table: Path) -> float:
    try:
        return table.stat().st_mtime
    except OSError:
        return 0.0


def _stem(table: Path) -> str:
    """What a release of this table would be called."""
    return table.name.split(".")[0]


def _in_order(name: str) -> list[tuple[int, str]]:
    """Names as people count: w9 before w10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _here(tables: Sequence[Path]) -> list[tuple[str, str]]:
    return [("tables here", _listed(tables))] if tables else []


def _listed(tables: Sequence[Path]) -> str:
    more = f" and {len(tables) - _MOST:,} more" if len(tables) > _MOST else ""
    return ", ".join(table.name for table in tables[:_MOST]) + more


def _first(tables: Sequence[Path], *, otherwise: str = "data.csv") -> str:
    return quoted(tables[0]) if tables else otherwise


def _waves(tables: Sequence[Path]) -> str:
    return " ".join(map(quoted, tables[:_MOST])) or "w1.csv w2.csv"
