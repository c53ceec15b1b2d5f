"""`sequester ledger`: is the ledger of a series what was written, copies of it, and what happens beside releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.help import BROKEN, INVALID, UNDECIDED, add
from sequester.cli.options import AcceptLoss, Folder, Format, LedgerFile, PolicyOrNot, Shape, Which
from sequester.cli.series import find_ledger, find_release, open_series, read_ledger
from sequester.cli.terminal import line, print_json, progress, with_flags

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.ledger import Key, Place, Verification
    from sequester.publish.life import Books, LifeStep

VERIFY = """
ledger verify
ledger verify --ledger hospital.ledger --format json
"""
EXPORT = """
ledger export backup
"""
IMPORT = """
ledger import backup --ledger restored.ledger
$ SEQUESTER_KEY=... sequester ledger import backup --ledger restored.ledger --encrypted
"""
WITHDRAW = """
ledger withdraw 3 -p policy.yaml --reason "wrong table" --plan
ledger withdraw 3 -p policy.yaml --reason "wrong table"
ledger withdraw 3 -p policy.yaml --undo
"""
CLOSE = """
ledger close -p policy.yaml --reason "the study has ended"
ledger close -p policy.yaml --undo
"""
PEOPLE = """
ledger people mapping.csv --old old_id --new insurance_no -p policy.yaml --plan
ledger people mapping.csv --old old_id --new insurance_no -p policy.yaml
ledger people -p policy.yaml --undo
"""

Reason = Annotated[
    str | None, typer.Option(help="Why, in your words: kept in the ledger, shown by `history`, never published.")
]
Undo = Annotated[bool, typer.Option("--undo", help="Undo it.")]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Only say what would be done; nothing is changed.")]


def verify(
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    accept_loss: AcceptLoss = False,
    format: Shape = Format.TEXT,
) -> None:
    """Check every hash, seal and count of a ledger, the release folders, and, with its policy, all releases anew.

    The exit code is 6 if the ledger or a release folder is not what was written, and 4 if an attack works.
    """
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
            line(f"{folder / stranger} is not of Sequester's making.")
    if not verified.holds:
        raise typer.Exit(INVALID)
    if audit is not None and not audit.holds:
        raise typer.Exit(BROKEN if audit.findings else UNDECIDED)


def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)],
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    format: Shape = Format.TEXT,
) -> None:
    """Write everything in a ledger to Parquet files. They are as private as the ledger; its key is not in them."""
    from sequester.policy.words import amount

    path = find_ledger(policy, ledger)
    with read_ledger(path) as opened:
        opened.export(folder)
        releases = len(opened.releases())
    if format is Format.JSON:
        print_json({"ledger": str(path), "folder": str(folder), "releases": releases})
    else:
        done = f"Exported {amount(releases, 'release')} to {folder}."
        line(f"{done} It is as private as the ledger; the key is not in it.")


def import_(
    folder: Annotated[Path, typer.Argument(help="A folder that `export` wrote.", show_default=False)],
    policy: PolicyOrNot = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="Encrypt the new ledger with its key.")] = False,
    accept_loss: AcceptLoss = False,
    format: Shape = Format.TEXT,
) -> None:
    """Make a new ledger of an export, after everything in it was verified and agrees with the release folders.

    The key must be beside the new ledger, as LEDGER.key, or in SEQUESTER_KEY.
    """
    from sequester.ledger import Key, Ledger
    from sequester.policy.words import amount

    path = find_ledger(policy, ledger)
    how: dict[str, Any] = {"encrypted": encrypted, "releases": releases, "accept_loss": accept_loss}
    with Ledger.import_(folder, path, Key.need(path), **how) as opened:
        count = len(opened.releases())
    if format is Format.JSON:
        print_json({"ledger": str(path), "folder": str(folder), "releases": count})
    else:
        line(f"Imported {amount(count, 'release')} into {path}.")


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


def _accept(path: Place, key: Key, folder: Path) -> None:
    """Record whatever does not agree with a ledger that is itself what was written."""
    from sequester.ledger import Ledger

    with Ledger.open(path, key=key) as opened:
        if opened.verify().holds and (troubles := opened.troubles(folder)):
            opened.accept(troubles)


def _audit(policy: Path, path: Place, folder: Path) -> Audit:
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
    from sequester.policy.words import amount

    for problem in verified.problems:
        line(("wrong: ", "bold red"), with_flags(problem))
    if not verified.holds:
        problems = amount(len(verified.problems), "problem")
        line((str(path), "bold"), f": {problems}. Restore what is wrong from a backup or an export.")
        return
    releases = amount(verified.releases, "release")
    what = f" is what was written: {releases}, {verified.people:,} people; so are the release folders."
    line((str(path), "bold"), what)
    if audit is not None and audit.holds:
        line(f"No attack works on them together: {', '.join(audit.tried)} were tried.", style="green")
    elif audit is not None and not audit.findings:
        line(audit.verdict, style="bold yellow")
    elif audit is not None:
        attacks = "1 attack works" if len(audit.findings) == 1 else f"{len(audit.findings):,} attacks work"
        text = f"{audit.verdict} {attacks} on them together; see them with `sequester audit --ledger`."
        line(text, style="bold red")
    elif not audited:
        line("The releases were not audited: that takes the policy.", style="dim")


def _refuse_reason(reason: str | None, *, undo: bool) -> None:
    if undo and reason is not None:
        raise typer.BadParameter("is for what is done, not for undoing it; leave it out", param_hint="--reason")


def _books(policy: Path | None, ledger: str | None, releases: Path | None) -> Books:
    from sequester.ledger import Key
    from sequester.publish.life import Books

    place = find_ledger(policy, ledger)
    return Books(place, Key.need(place), place.releases if releases is None else releases)


def _tell(step: LifeStep, format: Format) -> None:
    if format is Format.JSON:
        print_json(step.to_dict() | {"notes": [with_flags(note) for note in step.notes]})
        return
    what = {
        "closed": "closed",
        "reopened": "open again",
        "withdrawn": f"release {step.facts.get('number')} ({step.facts.get('name')}) withdrawn",
        "restored": f"release {step.facts.get('number')} ({step.facts.get('name')}) no longer withdrawn",
        "renamed": "people have other ids",
    }[step.action]
    planned = "" if step.done else " (planned, nothing was changed)"
    line((step.series, "bold"), f": {what}{planned}.")
    for note in step.notes:
        line(f"  {with_flags(note[:1].upper() + note[1:])}.")


commands = typer.Typer(no_args_is_help=True, help="The ledger of a series: verify or move it, close the series.")
for command, examples in {
    verify: VERIFY,
    export: EXPORT,
    import_: IMPORT,
    withdraw: WITHDRAW,
    close: CLOSE,
    people: PEOPLE,
}.items():
    add(commands, command, examples)
