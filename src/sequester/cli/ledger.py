"""`sequester ledger`: is the ledger of a series what was written, and copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.exits import BROKEN, UNDECIDED
from sequester.cli.series import AcceptLoss, Folder, LedgerFile, PolicyOrNot
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.ledger import Key, Place, Verification

VERIFY = """[bold]Examples[/bold]

$ sequester ledger verify

$ sequester ledger verify --ledger hospital.ledger --format json
"""
EXPORT = """[bold]Examples[/bold]

$ sequester ledger export backup
"""
IMPORT = """[bold]Examples[/bold]

$ sequester ledger import backup --ledger restored.ledger

$ SEQUESTER_KEY=... sequester ledger import backup --ledger restored.ledger --encrypted
"""
DAMAGED = 6


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    from sequester.cli import life

    commands = typer.Typer(no_args_is_help=True, help="The ledger of a series: verify or move it, close the series.")
    commands.command("verify", epilog=VERIFY)(verify)
    commands.command("export", epilog=EXPORT)(export)
    commands.command("import", epilog=IMPORT)(import_)
    life.register(commands)
    app.add_typer(commands, name="ledger")


def verify(
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    accept_loss: AcceptLoss = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Check every hash, seal and count of a ledger, the release folders, and, with its policy, all releases anew.

    The exit code is 6 if the ledger or a release folder is not what was written, and 4 if an attack works.
    """
    from sequester.cli.series import find_ledger
    from sequester.cli.terminal import print_json, with_flags
    from sequester.ledger import Key, Ledger

    path = find_ledger(policy, ledger)
    folder = path.releases if releases is None else releases
    key = Key.need(path)
    if accept_loss:
        _accept(path, key, folder)
    with Ledger.open(path, key=key, read_only=True) as opened:
        verified, strangers = opened.verify(releases=folder), opened.strangers(folder)
    audit = _audit(policy, path, folder) if policy is not None and verified.holds and verified.releases else None
    if format is Format.JSON:
        told = {"strangers": strangers, "audit": None if audit is None else _brief(audit)}
        problems = [with_flags(problem) for problem in verified.problems]
        print_json({"ledger": str(path), **verified.to_dict(), "problems": problems, **told})
    else:
        _show(path, verified, audit, audited=policy is not None)
        for stranger in strangers:
            typer.echo(f"{folder / stranger} is not of Sequester's making.")
    if not verified.holds:
        raise typer.Exit(DAMAGED)
    if audit is not None and not audit.holds:
        raise typer.Exit(BROKEN if audit.findings else UNDECIDED)


def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)],
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Write everything in a ledger to Parquet files. They are as private as the ledger; its key is not in them."""
    from sequester.cli.series import find_ledger, read_ledger
    from sequester.cli.summary import many
    from sequester.cli.terminal import print_json

    path = find_ledger(policy, ledger)
    with read_ledger(path) as opened:
        opened.export(folder)
        releases = len(opened.releases())
    if format is Format.JSON:
        print_json({"ledger": str(path), "folder": str(folder), "releases": releases})
    else:
        done = f"Exported {many(releases, 'release', 'releases')} to {folder}."
        typer.echo(f"{done} It is as private as the ledger; the key is not in it.")


def import_(
    folder: Annotated[Path, typer.Argument(help="A folder that `export` wrote.", show_default=False)],
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="Encrypt the new ledger with its key.")] = False,
    accept_loss: AcceptLoss = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Make a new ledger of an export, after everything in it was verified and agrees with the release folders.

    The key must be beside the new ledger, as LEDGER.key, or in SEQUESTER_KEY.
    """
    from sequester.cli.series import find_ledger
    from sequester.cli.summary import many
    from sequester.cli.terminal import print_json
    from sequester.ledger import Key, Ledger

    path = find_ledger(policy, ledger)
    how: dict[str, Any] = {"encrypted": encrypted, "releases": releases, "accept_loss": accept_loss}
    with Ledger.import_(folder, path, Key.need(path), **how) as opened:
        count = len(opened.releases())
    if format is Format.JSON:
        print_json({"ledger": str(path), "folder": str(folder), "releases": count})
    else:
        typer.echo(f"Imported {many(count, 'release', 'releases')} into {path}.")


def _accept(path: Place, key: Key, folder: Path) -> None:
    """Record whatever does not agree with a ledger that is itself what was written."""
    from sequester.ledger import Ledger

    with Ledger.open(path, key=key) as opened:
        if opened.verify().holds and (troubles := opened.troubles(folder)):
            opened.accept(troubles)


def _audit(policy: Path, path: Place, folder: Path) -> Audit:
    from sequester.cli.series import open_series
    from sequester.cli.terminal import progress
    from sequester.policy import Policy

    series = open_series(path, Policy.load(policy), folder, begin=False)
    with progress() as tell:
        return series.audit(progress=tell)


def _brief(audit: Audit) -> dict[str, Any]:
    """An audit without its findings, which name values."""
    return {
        "undecided": [one.to_dict() for one in audit.undecided],
        "unsolved": audit.unsolved,
        "exposed": audit.exposed.total.to_dict(),
        "holds": audit.holds,
        "findings": len(audit.findings),
        "tried": list(audit.tried),
        "untried": [one.to_dict() for one in audit.untried],
        "measures": dict(audit.measures),
        "notes": list(audit.notes),
    }


def _show(path: Place, verified: Verification, audit: Audit | None, *, audited: bool) -> None:
    from rich.text import Text

    from sequester.cli.summary import many
    from sequester.cli.terminal import console, with_flags

    screen = console()
    for problem in verified.problems:
        screen.print(Text.assemble(("wrong: ", "bold red"), with_flags(problem)), soft_wrap=True)
    if not verified.holds:
        problems = many(len(verified.problems), "problem", "problems")
        text = f": {problems}. Restore what is wrong from a backup or an export."
        screen.print(Text.assemble((str(path), "bold"), text), soft_wrap=True)
        return
    releases = many(verified.releases, "release", "releases")
    what = f" is what was written: {releases}, {verified.people:,} people; so are the release folders."
    screen.print(Text.assemble((str(path), "bold"), what), soft_wrap=True)
    if audit is not None and audit.holds:
        screen.print(Text(f"No attack works on them together: {', '.join(audit.tried)} were tried.", "green"))
    elif audit is not None and not audit.findings:
        screen.print(Text(audit.verdict, "bold yellow"), soft_wrap=True)
    elif audit is not None:
        attacks = many(len(audit.findings), "attack works", "attacks work")
        text = f"{audit.verdict} {attacks} on them together; see them with `sequester audit --ledger`."
        screen.print(Text(text, "bold red"))
    elif not audited:
        screen.print(Text("The releases were not audited: that takes the policy.", "dim"))
