"""`sequester init`: propose a first policy for a table, or for several waves of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.options import Force, quoted, with_policy
from sequester.cli.series import ledger_of
from sequester.cli.terminal import line, progress, refuse_existing

if TYPE_CHECKING:
    from sequester.policy import Policy

EXAMPLES = """
init 2021.csv 2022.csv 2023.csv
init 2021.csv 2022.csv --person patient_id --out hospital.yaml --force
init data.csv
init data.txt --delimiter "|" --encoding latin-1 --out -
"""


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="WAVE...",
            help="A table, such as a csv or parquet file; or one for every wave, the earliest first.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the policy; - for stdout.")] = Path(
        "policy.yaml"
    ),
    force: Force = False,
    person: Annotated[
        str | None, typer.Option(help="The column that says who a row is about; found if not given.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What separates cells; found from the header if not given.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="How characters are stored.")] = "utf-8",
) -> None:
    """Propose a commented first policy for a table that is published once, or for the waves of a series.

    Roles and kinds are guessed from column names and counts. From several waves it also sees what changes about people,
    who leaves and returns, and what can be promised: give all that you have. No cell is written into the policy.
    The key that a series of releases needs is made beside it, unless there is one or SEQUESTER_KEY is set.
    """
    to_stdout = str(out) == "-"
    if not to_stdout:
        refuse_existing(out, force=force)
    if not to_stdout and out.exists() and not out.is_file():
        raise typer.BadParameter(f"{out} is no file; name another place", param_hint="--out")
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter("must be one character", param_hint="--delimiter")

    from sequester.ingest.propose import propose

    source = data[0] if len(data) == 1 else data
    with progress() as show:
        text = propose(source, person=person, delimiter=delimiter, encoding=encoding, progress=show)
    if to_stdout:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}", param_hint="--out") from None
    _say_next(out, data)


def _say_next(out: Path, data: list[str]) -> None:
    from sequester.policy import Policy

    policy = Policy.load(out)
    line("Wrote ", (str(out), "bold"), ".")
    roles = {
        "person": [policy.person] if policy.person else [],
        "quasi-identifiers": policy.quasi_identifiers,
        "sensitive": policy.sensitive,
        "insensitive": policy.insensitive,
        "dropped": [name for name, one in policy.attributes.items() if one.role == "identifier"],
    }
    facts = {role: ", ".join(names) or "none" for role, names in roles.items()}
    if len(data) > 1:
        sure = policy.protect.confidence
        bound = f", confidence {sure:g}" if isinstance(sure, float) else ""
        facts["promised"] = f"k {policy.protect.k}{bound}; by {policy.method.name}"
    for name, said in facts.items():
        line("  ", (f"{name:18}", "dim"), said)
    _make_key(out, policy)
    line("These are guesses: read the comments in the file and correct it. Then:")
    where, tables = with_policy(out), [quoted(table) for table in data]
    commands = [f"check {tables[-1]}"]
    if len(tables) > 1:
        commands += [f"rehearse {' '.join(tables)}", f"publish {tables[0]}"]
    for command in commands:
        line(f"  sequester {command}{where}", style="bold")


def _make_key(out: Path, policy: Policy) -> None:
    """A series keeps who is who as keyed hashes: its key is there from the beginning, unless one is there already."""
    from sequester.ledger.key import VARIABLE, Key

    place = ledger_of(out, policy).key
    if policy.person is None or VARIABLE in os.environ or place.exists():
        return
    Key.make(place)
    said = ", the key of its series: without it nobody is recognised in later releases. Keep it safe and private."
    line("Made ", (str(place), "bold"), said)
