"""What the commands of a series share: where its files are, and opening them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sequester.cli.options import BEGIN, NO_POLICY
from sequester.cli.terminal import say

if TYPE_CHECKING:
    from sequester.ledger import Entry, Key, Ledger, Place
    from sequester.policy import Policy
    from sequester.publish.series import Series

# Seconds to wait while another command has the ledger.
_WAIT = 5.0
# The seed tells the order of the rows, and the policy may name values.
_PRIVATE = ("seed", "seal", "policy_text", "tables")


def ledger_of(policy_file: Path, policy: Policy, ledger: str | None = None) -> Place:
    """Where the ledger of a policy is: as said, or beside the policy."""
    from sequester.ledger import Place

    if ledger is None:
        from sequester.publish.alike import named_by

        return named_by(policy, policy_file.parent)
    return Place.of(ledger, home=policy_file.parent, series=policy.series)


def find_ledger(policy_file: Path | None, ledger: str | None) -> Place:
    """The ledger that a command without data is about: named, or the one of a policy."""
    from sequester.ledger import Place
    from sequester.policy import Policy

    if policy_file is None:
        if ledger is not None:
            return Place.of(ledger)
        message = f"{NO_POLICY}; say which series with its policy, -p, or its ledger, -l; or begin one: {BEGIN}"
        raise typer.BadParameter(message, param_hint="--policy")

    return ledger_of(policy_file, Policy.load(policy_file), ledger)


def read_ledger(path: Place) -> Ledger:
    """Open a ledger to look at it, which takes no key unless it is encrypted."""
    from sequester.ledger import Key, Ledger
    from sequester.ledger.connection import Encrypted

    try:
        return Ledger.open(path, key=None, read_only=True, timeout=_WAIT)
    except Encrypted:
        return Ledger.open(path, key=Key.need(path), read_only=True, timeout=_WAIT)


def open_series(
    path: Place,
    policy: Policy,
    releases: Path | None = None,
    *,
    begin: bool = True,
    encrypted: bool = False,
    accept_loss: bool = False,
) -> Series:
    """Open a series, or begin it, and say on stderr what was made or put in order."""
    if not begin and not path.exists():
        from sequester.errors import LedgerError, Problem

        raise LedgerError(Problem("there is no ledger here", file=str(path)))
    if encrypted and not path.is_file:
        raise typer.BadParameter("is for files: what is on a server, the server encrypts", param_hint="--encrypted")
    if encrypted and path.exists():
        message = f"{path} exists; export it, and import it encrypted into a new one"
        raise typer.BadParameter(message, param_hint="--encrypted")

    from sequester.publish.series import Series

    if releases is not None:
        # A place that the system does not take is known before anything is made.
        with contextlib.suppress(FileNotFoundError):
            releases.stat()
    new, key = not path.exists(), path.key
    keyed = key.exists()
    series = Series.open(path, policy, folder=releases, encrypted=encrypted, accept_loss=accept_loss)
    if new:
        with_key = f" and its key, {key}, without which nobody is recognised" if key.exists() and not keyed else ""
        say(f"Made the ledger {path}{with_key}. Keep both safe and private.")
    _say_recovered(series)
    return series


def _say_recovered(series: Series) -> None:
    for done in series.recovered:
        say(f"{done[:1].upper()}{done[1:]}.")


@contextlib.contextmanager
def trial_series(
    path: Place, policy: Policy, releases: Path | None = None, *, everybody_is_new: bool = False
) -> Iterator[Series]:
    """A series to plan with: the real one, or where there is none yet, one that is gone afterwards."""
    from sequester.ledger import Key, Ledger, Place, evidence
    from sequester.publish.alike import of_beginning, refuse_alike
    from sequester.publish.series import Series

    after = None if policy.after is None else Place.named(policy.after, policy.path("."))
    if series := Series.find(path, policy, folder=releases, after=after):
        _say_recovered(series)
        yield series
        return

    shown = path.releases if releases is None else releases
    evidence.refuse(of_beginning(path, policy, shown))
    if not everybody_is_new and policy.after is None:
        refuse_alike(path, policy, shown)
    with tempfile.TemporaryDirectory(prefix="sequester-") as folder:
        key, before = Key.find(path), None
        if after is not None:
            # The series before is not handed over by a plan: a copy of its ledger is.
            before = Path(folder) / "before.ledger"
            key = key or Key.need(after)
            with Ledger.open(after, key=key, read_only=True, timeout=_WAIT) as opened:
                evidence.refuse(opened.troubles(shown if (shown / opened.series).is_dir() else after.releases))
                opened.load()
            _copy(after, before, key)
        # What is around the real one was looked at; around this one there is nothing.
        yield Series.open(Path(folder) / "series.ledger", policy, key=key, after=before, accept_loss=True)


def _copy(ledger: Place, to: Path, key: Key) -> None:
    """The same ledger in a file, to go on from on trial."""
    from sequester.ledger import Ledger

    if ledger.is_file:
        # With its mode: a ledger that others can read is refused.
        shutil.copy(ledger.file, to)
        return
    with read_ledger(ledger) as opened:
        opened.export(to.with_suffix(".export"))
    # Folders and head were looked at where the ledger is.
    Ledger.import_(to.with_suffix(".export"), to, key, accept_loss=True).close()


def find_release(entries: Sequence[Entry], which: str) -> Entry:
    """One release, by its number or its name."""
    if which.isdecimal() and 1 <= int(which) <= len(entries):
        return entries[int(which) - 1]
    named = [entry for entry in entries if entry.name == which]
    if not named:
        message = f"no release has this number or name; there are {len(entries):,} in the ledger"
        raise typer.BadParameter(message, param_hint="RELEASE")
    return named[0]


def folder_of(entry: Entry, series: str, ledger: Place, releases: Path | None) -> Path:
    """Where a release was put."""
    from sequester.ledger.evidence import place_of

    return place_of(ledger.releases if releases is None else releases, series, entry)


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """A release as the ledger lists it, without what is private, and what is there for pictures only."""
    from dataclasses import asdict

    told = {name: value for name, value in asdict(entry).items() if name not in _PRIVATE}
    return {**told, "summary": {name: value for name, value in entry.summary.items() if name != "published"}}
