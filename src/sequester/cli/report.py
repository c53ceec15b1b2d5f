"""`sequester report`: the report of a release, for everybody or for whoever publishes it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli import terminal
from sequester.cli.options import Folder, Format, LedgerFile, PolicyOrNot, Shape, Which
from sequester.cli.series import find_ledger, find_release, folder_of, read_ledger

if TYPE_CHECKING:
    from sequester.ledger import Entry, Ledger, Place

EXAMPLES = """
report 2
$ xdg-open $(sequester report 2026-q3 --ledger hospital.ledger)
report 3 --audience internal --data q1.csv --data q2.csv --data q3.csv
"""


class Audience(StrEnum):
    """Who reads a report."""

    PUBLIC = "public"
    INTERNAL = "internal"


def report(
    release: Which,
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    audience: Annotated[
        Audience, typer.Option(help="public: the page of the release folder; internal: a private one, from the ledger.")
    ] = Audience.PUBLIC,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the page.", show_default=False)
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="internal: the table of release 1; give it again for each release up to this one, in order.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a page that is there.")] = False,
    format: Shape = Format.TEXT,
) -> None:
    """Print where the report of a release is: one page that a browser shows and that needs nothing else.

    The public report is in the release folder; --out copies it. The internal one counts people and tells findings: it
    is made anew, beside the ledger or as --out, and only its owner may read it.
    """
    from sequester.publish.files import write_text
    from sequester.publish.reporting import public_text

    if data and audience is Audience.PUBLIC:
        raise typer.BadParameter("is for --audience internal: nothing public is made from tables", param_hint="--data")
    path = find_ledger(policy, ledger)
    folder = path.releases if releases is None else releases
    with read_ledger(path) as opened:
        entry = find_release(opened.releases(), release)
        withdrawn = opened.life.withdrawals.get(entry.number)
        if audience is Audience.INTERNAL:
            text = _internal(opened, entry.number, policy, folder, data or [])
        else:
            text = public_text(opened, entry.number, folder)
        page = folder_of(entry, opened.series, path, releases) / "report.html"
    if audience is Audience.INTERNAL:
        page = write_text(out or _internal_place(path, entry), text, force=force, mode=0o600)
    elif out is not None:
        page = write_text(out, text, force=force)
    if withdrawn is not None:
        terminal.say(f"Release {entry.number} was withdrawn on {withdrawn.at[:10]}.")
    if format is Format.JSON:
        since = None if withdrawn is None else withdrawn.at
        told = {"number": entry.number, "name": entry.name, "audience": audience.value}
        terminal.print_json({**told, "report": str(page), "withdrawn": since})
    else:
        terminal.line(str(page))


def _internal_place(ledger: Place, entry: Entry) -> Path:
    """Beside the ledger, which is as private; of a ledger on a server, where the command runs."""
    name = f"{entry.folder}-internal.html"
    return ledger.file.with_name(name) if ledger.is_file else Path(name)


def _internal(ledger: Ledger, number: int, policy: Path | None, folder: Path, data: list[Path]) -> str:
    from sequester.policy import Policy
    from sequester.publish.reporting import internal_text

    if policy is None:
        raise typer.BadParameter("give the policy: an internal report audits what was published", param_hint="--policy")
    return internal_text(ledger, Policy.load(policy), number, tables=data, folder=folder)
