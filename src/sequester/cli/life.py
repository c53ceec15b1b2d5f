"""`sequester ledger withdraw`, `close` and `people`: what happens to a series beside its releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.series import Folder, LedgerFile, PolicyOrNot, Which
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.publish.life import Books, LifeStep

WITHDRAW = """[bold]Examples[/bold]

$ sequester ledger withdraw 3 -p policy.yaml --reason "wrong table" --plan

$ sequester ledger withdraw 3 -p policy.yaml --reason "wrong table"

$ sequester ledger withdraw 3 -p policy.yaml --undo

Exit codes: 0 done or planned, 2 usage, 5 another command has the ledger, 6 the ledger refuses it.
"""
CLOSE = """[bold]Examples[/bold]

$ sequester ledger close -p policy.yaml --reason "the study has ended"

$ sequester ledger close -p policy.yaml --undo

Exit codes: 0 done or planned, 2 usage, 5 another command has the ledger, 6 the ledger refuses it.
"""
PEOPLE = """[bold]Examples[/bold]

$ sequester ledger people mapping.csv --old old_id --new insurance_no -p policy.yaml --plan

$ sequester ledger people mapping.csv --old old_id --new insurance_no -p policy.yaml

$ sequester ledger people -p policy.yaml --undo

Exit codes: 0 done or planned, 2 usage, 5 another command has the ledger, 6 the mapping or the ledger refuses it.
"""

Reason = Annotated[
    str | None,
    typer.Option(help="Why, in your words: kept in the ledger, shown by `history`, never published."),
]
Undo = Annotated[bool, typer.Option("--undo", help="Undo it.")]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Only say what would be done; nothing is changed.")]
Shape = Annotated[Format, typer.Option("--format", help="How to print the result.")]


def register(commands: typer.Typer) -> None:
    """Add these commands to those of the ledger."""
    commands.command("withdraw", epilog=WITHDRAW)(withdraw)
    commands.command("close", epilog=CLOSE)(close)
    commands.command("people", epilog=PEOPLE)(people)


def withdraw(
    release: Which,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    reason: Reason = None,
    undo: Undo = False,
    plan: OnlyPlan = False,
    format: Shape = Format.TEXT,
) -> None:
    """Withdraw a release that was published: its folder is set aside.

    What it told stays known, and every later plan and audit counts it.
    """
    from sequester.cli.series import find_release, read_ledger

    _refuse_reason(reason, undo=undo)
    books = _books(policy, ledger, releases)
    with read_ledger(books.place) as opened:
        number = find_release(opened.releases(), release).number
    _tell(books.withdraw(number, reason=reason, undo=undo, plan=plan), format)


def close(
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    reason: Reason = None,
    undo: Undo = False,
    plan: OnlyPlan = False,
    format: Shape = Format.TEXT,
) -> None:
    """Close a series: nothing more is planned or published in it. Audits, reports and `after` go on."""
    _refuse_reason(reason, undo=undo)
    _tell(_books(policy, ledger, releases).close(reason=reason, undo=undo, plan=plan), format)


def people(
    mapping: Annotated[
        Path | None, typer.Argument(help="A table with the old and the new id of everybody.", show_default=False)
    ] = None,
    old: Annotated[str | None, typer.Option(help="Its column with the ids that people had.")] = None,
    new: Annotated[str | None, typer.Option(help="Its column with the ids that they have from now on.")] = None,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    undo: Undo = False,
    plan: OnlyPlan = False,
    format: Shape = Format.TEXT,
) -> None:
    """Give people other ids, by a mapping: whoever was published stays who she was, under her new id.

    The policy may name another `person` column with the next release.
    """
    if undo and (mapping is not None or old is not None or new is not None):
        raise typer.BadParameter("needs no mapping: the last one is undone", param_hint="--undo")
    if undo:
        _tell(_books(policy, ledger, releases).undo_rename(plan=plan), format)
        return
    if mapping is None or old is None or new is None:
        raise typer.BadParameter("name a mapping, and its columns with --old and --new", param_hint="MAPPING")
    _tell(_books(policy, ledger, releases).rename(mapping, old=old, new=new, plan=plan), format)


def _refuse_reason(reason: str | None, *, undo: bool) -> None:
    if undo and reason is not None:
        raise typer.BadParameter("is for what is done, not for undoing it; leave it out", param_hint="--reason")


def _books(policy: Path | None, ledger: str | None, releases: Path | None) -> Books:
    from sequester.cli.series import find_ledger
    from sequester.ledger import Key
    from sequester.publish.life import Books

    place = find_ledger(policy, ledger)
    return Books(place, Key.need(place), place.releases if releases is None else releases)


def _tell(step: LifeStep, format: Format) -> None:
    from rich.text import Text

    from sequester.cli.terminal import console, print_json, with_flags

    if format is Format.JSON:
        print_json(step.to_dict() | {"notes": [with_flags(note) for note in step.notes]})
        return
    screen = console()
    what = {
        "closed": "closed",
        "reopened": "open again",
        "withdrawn": f"release {step.facts.get('number')} ({step.facts.get('name')}) withdrawn",
        "restored": f"release {step.facts.get('number')} ({step.facts.get('name')}) no longer withdrawn",
        "renamed": "people have other ids",
    }[step.action]
    planned = "" if step.done else " (planned, nothing was changed)"
    screen.print(Text.assemble((step.series, "bold"), f": {what}{planned}."), soft_wrap=True)
    for note in step.notes:
        screen.print(Text(f"  {with_flags(note[:1].upper() + note[1:])}."), soft_wrap=True)
