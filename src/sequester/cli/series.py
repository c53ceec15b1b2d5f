"""What the commands of a series share: where its files are, and opening them."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sequester.ledger import Entry, Ledger
    from sequester.policy import Policy
    from sequester.publish.series import Series

PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy file.", show_default=False)]
PolicyOrNot = Annotated[
    Path | None,
    typer.Option("--policy", "-p", help="The policy file; the ledger is beside it.", show_default=False),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", "-l", help="The ledger of the series.", show_default="SERIES.ledger beside the policy"),
]
Folder = Annotated[
    Path | None,
    typer.Option("--releases", help="The folder of release folders.", show_default="releases beside the ledger"),
]
Which = Annotated[str, typer.Argument(help="The number or the name of a release.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="The name of the release.", show_default="that of the file")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="64 random bits that make the release repeatable; private.", show_default="random"),
]
Recipient = Annotated[str | None, typer.Option(help="Who the release is for.")]
Purpose = Annotated[str | None, typer.Option(help="What the release is for.")]
# Seconds to wait while another command has the ledger.
_WAIT = 5.0
# The seed tells the order of the rows, and the policy may name values.
_PRIVATE = ("seed", "seal", "policy_text")


def ledger_of(policy_file: Path, policy: Policy) -> Path:
    """Where the ledger of a policy is when nobody says otherwise."""
    return policy_file.parent / f"{policy.series}.ledger"


def find_ledger(policy_file: Path | None, ledger: Path | None) -> Path:
    """The ledger that a command without data is about: named, or the one of a policy."""
    if ledger is not None:
        return ledger
    if policy_file is None:
        raise typer.BadParameter("say which series: give its policy or its ledger", param_hint="--policy")

    from sequester.policy import Policy

    return ledger_of(policy_file, Policy.load(policy_file))


def read_ledger(path: Path) -> Ledger:
    """Open a ledger to look at it, which takes no key unless it is encrypted."""
    from sequester.ledger import Key, Ledger
    from sequester.ledger.connection import Encrypted

    try:
        return Ledger.open(path, key=None, read_only=True, timeout=_WAIT)
    except Encrypted:
        return Ledger.open(path, key=Key.need(path), read_only=True, timeout=_WAIT)


def open_series(
    path: Path, policy: Policy, releases: Path | None = None, *, begin: bool = True, encrypted: bool = False
) -> Series:
    """Open a series, or begin it, and say on stderr what was made or put in order."""
    if not begin and not path.exists():
        from sequester.errors import LedgerError, Problem

        raise LedgerError(Problem("there is no ledger here", file=str(path)))
    if encrypted and path.exists():
        message = f"{path} exists; export it, and import it encrypted into a new one"
        raise typer.BadParameter(message, param_hint="--encrypted")

    from sequester.ledger.key import key_file
    from sequester.publish.series import Series

    new, key = not path.exists(), key_file(path)
    keyed = key.exists()
    series = Series.open(path, policy, folder=releases, encrypted=encrypted)
    if new:
        with_key = f" and its key, {key}, without which nobody is recognised" if key.exists() and not keyed else ""
        say(f"Made the ledger {path}{with_key}. Keep both safe and private.")
    for done in series.recovered:
        say(f"{done[:1].upper()}{done[1:]}.")
    return series


@contextlib.contextmanager
def trial_series(path: Path, policy: Policy, releases: Path | None = None) -> Iterator[Series]:
    """A series to plan with: the real one, or where there is none yet, one that is gone afterwards."""
    from sequester.ledger import Key
    from sequester.publish.series import Series, is_idle

    begun = path.exists()
    if begun:
        with read_ledger(path) as ledger:
            begun = not is_idle(ledger, policy, goes_on=policy.after is not None)
    if begun:
        yield open_series(path, policy, releases)
        return

    with tempfile.TemporaryDirectory(prefix="sequester-") as folder:
        key, before = Key.find(path), None
        if policy.after is not None:
            # The series before is not handed over by a plan: a copy of its ledger is.
            old, before = policy.path(policy.after), Path(folder) / "before.ledger"
            key = key or Key.need(old)
            read_ledger(old).close()
            shutil.copyfile(old, before)
        yield Series.open(Path(folder) / "series.ledger", policy, key=key, after=before)


def say(text: str) -> None:
    """Something that is not the result."""
    sys.stderr.write(f"{text}\n")


def find_release(entries: Sequence[Entry], which: str) -> Entry:
    """One release, by its number or its name."""
    if which.isdecimal() and 1 <= int(which) <= len(entries):
        return entries[int(which) - 1]
    named = [entry for entry in entries if entry.name == which]
    if not named:
        message = f"no release has this number or name; there are {len(entries):,} in the ledger"
        raise typer.BadParameter(message, param_hint="RELEASE")
    return named[0]


def folder_of(entry: Entry, ledger: Path, releases: Path | None) -> Path:
    """Where a release was put."""
    return (ledger.parent / "releases" if releases is None else releases) / entry.folder


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """A release as the ledger lists it, without what is private."""
    from dataclasses import asdict

    return {name: value for name, value in asdict(entry).items() if name not in _PRIVATE}
