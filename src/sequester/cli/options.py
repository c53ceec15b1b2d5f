"""Options that several commands take, each declared once; and the policy of the folder, which need not be named."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sequester.regular import open_regular

POLICIES = ("policy.yaml", "policy.yml")
"""What a policy is called that need not be named, in the working folder."""
# Shells evaluate what completion prints. What `publish` itself would refuse as a name is not offered.
_FOLDER = re.compile(r"(\d{4,9})-([A-Za-z0-9][A-Za-z0-9._-]*)")
_SERIES = re.compile(r"^series:\s*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)[\"']?\s*(#.*)?$", re.MULTILINE)
# Bytes of a policy that are looked at, and releases that are offered.
_MOST, _OFFERED = 1 << 16, 500


class Format(str, Enum):  # noqa: UP042 - typer reads the values of a str enumeration
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"


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
        raise typer.BadParameter(f"{NO_POLICY}; name it with -p, or begin one: {BEGIN}", param_hint="--policy")
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
    """Releases for a shell whose number or name begins as typed, newest first, each with the other one beside it.

    They are found by the names of their folders, quickly and quietly: no ledger is opened for it.
    """
    policy, ledger, releases = (ctx.params.get(name) for name in ("policy", "ledger", "releases"))
    offered: list[tuple[str, str]] = []
    with contextlib.suppress(OSError, ValueError):
        file = policy or next((Path(name) for name in POLICIES if Path(name).is_file()), None)
        home = Path(ledger).parent if ledger and "://" not in ledger else (file or Path()).parent
        series = None if file is None or ledger else _series_of(file)
        for number, name in sorted(_found(releases or home / "releases", series), reverse=True)[:_OFFERED]:
            offered += [(str(number), name), (name, f"release {number}")]
    return [(value, about) for value, about in offered if value.startswith(incomplete)]


def _series_of(policy: Path) -> str | None:
    """The name of the series, without reading the policy as one."""
    with open_regular(policy) as stream:
        found = _SERIES.search(stream.read(_MOST).decode("utf-8", "replace"))
    return None if found is None else found[1]


def _found(folder: Path, series: str | None) -> set[tuple[int, str]]:
    places = [folder / series] if series else [Path(one.path) for one in os.scandir(folder) if one.is_dir()]
    names = [one.name for place in places if place.is_dir() for one in os.scandir(place) if one.is_dir()]
    matches = (_FOLDER.fullmatch(name) for name in names)
    return {(int(match[1]), match[2]) for match in matches if match}


_HERE = "policy.yaml of this folder"
NO_POLICY = "there is no policy.yaml in this folder"
BEGIN = "`sequester init data.csv`"
PolicyFile = Annotated[
    Path,
    typer.Option(
        "--policy", "-p", help="The policy file.", default_factory=_nothing, callback=_policy_given, show_default=_HERE
    ),
]
PolicyOrNot = Annotated[
    Path | None,
    typer.Option(
        "--policy", "-p", help="The policy file; the ledger is beside it.", callback=_policy_if_any, show_default=_HERE
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
Shape = Annotated[Format, typer.Option("--format", help="How to print the result.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Show the values that are wrong; only on a terminal.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
