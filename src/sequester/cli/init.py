"""`sequester init`: propose a first policy for a table, or for several waves of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from sequester.policy import Policy

EXAMPLES = """[bold]Examples[/bold]

$ sequester init 2021.csv 2022.csv 2023.csv

$ sequester init 2021.csv 2022.csv --person patient_id --out hospital.yaml --force

$ sequester init data.csv

$ sequester init data.txt --delimiter "|" --encoding latin-1 --out -
"""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("init", epilog=EXAMPLES)(init)


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
    force: Annotated[bool, typer.Option("--force", help="Replace a policy that exists.")] = False,
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
    if not to_stdout and out.exists() and not force:
        raise typer.BadParameter(f"{out} exists; --force replaces it, --out names another file", param_hint="--out")
    if not to_stdout and out.exists() and not out.is_file():
        raise typer.BadParameter(f"{out} is no file; name another place", param_hint="--out")
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter("must be one character", param_hint="--delimiter")

    from sequester.cli.terminal import progress
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
    from rich.text import Text

    from sequester.cli.terminal import console
    from sequester.policy import Policy

    policy = Policy.load(out)
    screen = console()
    screen.print(Text.assemble("Wrote ", (str(out), "bold"), "."), soft_wrap=True)
    roles = {
        "person": [policy.person] if policy.person else [],
        "quasi-identifiers": list(policy.quasi_identifiers),
        "sensitive": list(policy.sensitive),
        "insensitive": list(policy.insensitive),
        "dropped": [n for n, a in policy.attributes.items() if a.role == "identifier"],
    }
    for role, names in roles.items():
        screen.print(Text.assemble("  ", (f"{role:18}", "dim"), ", ".join(names) or "none"), soft_wrap=True)
    if len(data) > 1:
        promised = f"k {policy.protect.k}"
        if isinstance(policy.protect.confidence, float):
            promised += f", confidence {policy.protect.confidence:g}"
        screen.print(Text.assemble("  ", (f"{'promised':18}", "dim"), f"{promised}; by {policy.method.name}"))
    _make_key(screen, out, policy)
    screen.print("These are guesses: read the comments in the file and correct it. Then:")
    for command in _next(out, data):
        screen.print(Text(f"  {command}", "bold"), soft_wrap=True)


def _next(out: Path, data: list[str]) -> list[str]:
    """The commands that follow."""
    from sequester.cli.series import quoted, with_policy

    policy, tables = with_policy(out), [quoted(table) for table in data]
    if len(tables) == 1:
        return [f"sequester check {tables[0]}{policy}"]
    return [
        f"sequester check {tables[-1]}{policy}",
        f"sequester rehearse {' '.join(tables)}{policy}",
        f"sequester publish {tables[0]}{policy}",
    ]


def _make_key(screen: Console, out: Path, policy: Policy) -> None:
    """A series keeps who is who as keyed hashes: its key is there from the beginning, unless one is there already."""
    from rich.text import Text

    from sequester.cli.series import ledger_of
    from sequester.ledger.key import VARIABLE, Key

    place = ledger_of(out, policy).key
    if policy.person is None or VARIABLE in os.environ or place.exists():
        return
    Key.make(place)
    said = ", the key of its series: without it nobody is recognised in later releases. Keep it safe and private."
    screen.print(Text.assemble("Made ", (str(place), "bold"), said))
