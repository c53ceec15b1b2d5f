"""What the commands of a series share: where its files are, and opening them."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sequester.ledger import Entry, Key, Ledger, Place
    from sequester.policy import Policy
    from sequester.publish.series import Series

POLICIES = ("policy.yaml", "policy.yml")
"""What a policy is called that need not be named, in the working folder."""


def find_policy() -> Path | None:
    """The policy of the working folder; None where there is none."""
    here = [Path(name) for name in POLICIES if Path(name).exists()]
    if len(here) > 1:
        raise typer.BadParameter(f"{' and '.join(POLICIES)} are both here; say which with -p", param_hint="--policy")
    return here[0] if here else None


def need_policy(given: Path | None = None) -> Path:
    """The policy that was named, or else that of the working folder."""
    policy = find_policy() if given is None else given
    if policy is None:
        raise typer.BadParameter(f"{_NO_POLICY}; name it with -p, or begin one: {_BEGIN}", param_hint="--policy")
    return policy


def quoted(path: Path | str) -> str:
    """As a shell takes it; a name that begins with a dash would be an option."""
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def with_policy(policy: Path) -> str:
    """How the next command is told of a policy: not at all, where it finds it by itself."""
    with contextlib.suppress(typer.BadParameter, OSError):
        found = find_policy()
        if found is not None and found.samefile(policy):
            return ""
    return f" -p {quoted(policy)}"


def _policy_given(ctx: typer.Context, policy: Path | None) -> Path | None:
    return policy if ctx.resilient_parsing else need_policy(policy)


def _policy_if_any(ctx: typer.Context, policy: Path | None) -> Path | None:
    """A ledger that was named speaks for itself: the policy here may be of another. (What is given is parsed first.)"""
    return policy if policy or ctx.resilient_parsing or ctx.params.get("ledger") else find_policy()


def _nothing() -> None:
    """A policy that was not named; which one that is, is asked when all that was named is known."""


def complete_release(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Numbers and names of releases for a shell, by the names of their folders: no ledger is opened for it."""
    from sequester.cli.complete import releases_here

    return releases_here(ctx.params.get("policy"), ctx.params.get("ledger"), ctx.params.get("releases"), incomplete)


_HERE = "policy.yaml of this folder"
_NO_POLICY = "there is no policy.yaml in this folder"
_BEGIN = "`sequester init data.csv`"
PolicyFile = Annotated[
    Path,
    typer.Option(
        "--policy",
        "-p",
        help="The policy file.",
        default_factory=_nothing,
        callback=_policy_given,
        show_default=_HERE,
    ),
]
PolicyOrNot = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        "-p",
        help="The policy file; the ledger is beside it.",
        callback=_policy_if_any,
        show_default=_HERE,
    ),
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        "-l",
        help="The ledger of the series: a file, or postgresql://...",
        show_default="SERIES.ledger beside the policy",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--releases", help="The folder of release folders.", show_default="releases beside the ledger"),
]
Which = Annotated[
    str,
    typer.Argument(help="The number or the name of a release.", show_default=False, autocompletion=complete_release),
]
Name = Annotated[str | None, typer.Option(help="The name of the release.", show_default="that of the file")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="64 random bits that make the release repeatable; private.", show_default="random"),
]
Recipient = Annotated[str | None, typer.Option(help="Who the release is for.")]
Purpose = Annotated[str | None, typer.Option(help="What the release is for.")]
AcceptLoss = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Record that what does not agree with the ledger (a folder, its head) is lost for good, and go on.",
    ),
]
EverybodyIsNew = Annotated[
    bool,
    typer.Option("--everybody-is-new", help="Nobody in the table was published before, in this series or one like it."),
]
NoPrice = Annotated[
    bool,
    typer.Option(
        "--no-price",
        help="Do not tell what others would lose that might be made of the same table: it takes less time.",
    ),
]
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
        message = f"{_NO_POLICY}; say which series with its policy, -p, or its ledger, -l; or begin one: {_BEGIN}"
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


def say(text: str) -> None:
    """Something that is not the result."""
    from sequester.visible import visible

    sys.stderr.write(f"{visible(text)}\n")


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
