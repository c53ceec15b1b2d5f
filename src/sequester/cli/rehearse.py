"""`sequester rehearse`: what would a whole series have cost?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.help import BROKEN
from sequester.cli.options import EverybodyIsNew, Force, Format, PolicyFile, Shape, ShowValues
from sequester.cli.terminal import line, print_json, progress, refuse_existing, show_files, show_result, values_may_show

if TYPE_CHECKING:
    from sequester.policy import Policy

EXAMPLES = """
rehearse q1.csv q2.csv q3.csv -p policy.yaml
rehearse q*.csv -p policy.yaml --out recommended.yaml --picture rehearsal.svg
rehearse q*.csv -p policy.yaml --methods pods,cluster --format json
rehearse q*.csv -p policy.yaml --vary k=3,5,10 confidence=.3,.5,.7 --picture frontier.svg
"""
_PAIR = re.compile(r"([a-z_]+)=(.*)")

Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="NAME=NUMBERS",
        help="Numbers to try, such as k=3,5,10; several pairs are all combined. k, confidence, people, inferred, "
        "lineage, belief, l (of lifetime) or decoys.",
        show_default=False,
    ),
]


def rehearse(
    waves: Annotated[
        list[str], typer.Argument(help="Past tables, in the order of their releases.", show_default=False)
    ],
    policy: PolicyFile,
    methods: Annotated[
        str | None, typer.Option(help="Only these, separated by commas.", show_default="all that suit the policy")
    ] = None,
    vary: Vary = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the recommended policy.", show_default=False)
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where to draw losses and who is exposed, as SVG.", show_default=False)
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many variants at a time.", show_default="one per processor")
    ] = None,
    everybody_is_new: EverybodyIsNew = False,
    force: Force = False,
    show_values: ShowValues = False,
    format: Shape = Format.TEXT,
) -> None:
    """Try a whole series of past tables by every method that suits the policy, and say which one to take.

    Nothing is published, and no ledger is touched. Beside each other stand loss by wave and by column, decoys, people
    who wait, and the people that naive releases would expose. With --vary the policy's own method is tried at all
    combinations. Exit code 4 if no variant keeps what the policy promises.
    """
    from sequester.policy import Policy

    files, pairs = _split(waves, vary or [])
    numbers = _numbers(pairs)
    for place, option in ((out, "--out"), (picture, "--picture")):
        if place is not None:
            refuse_existing(place, force=force, option=option)
    rules = Policy.load(policy)
    if out is not None:
        _refuse_elsewhere(out, policy, rules)

    from sequester.publish.files import write_text
    from sequester.publish.rehearsing.rehearse import rehearse

    with progress() as tell:
        result = rehearse(
            files,
            rules,
            methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
            vary=numbers,
            processes=processes,
            everybody_is_new=everybody_is_new,
            show_values=values_may_show(show_values),
            progress=tell,
        )
    written = result.policy_text(policy.read_text(encoding="utf-8-sig")) if out is not None else None
    made = [] if picture is None else [write_text(picture, result.picture(), mode=0o600)]
    if out is not None and written is not None:
        made.append(write_text(out, written, mode=0o600))
    if format is Format.JSON:
        print_json({**result.to_dict(), "files": [str(file) for file in made]})
    else:
        show_result(result)
        if made:
            show_files(made)
        if result.best is not None and out is None:
            line()
            line("--out FILE writes the recommended policy, with these reasons.", style="dim")
    if not any(trial.holds for trial in result.trials):
        raise typer.Exit(BROKEN)


def _split(words: Sequence[str], vary: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Files, and pairs that stand behind the first one of --vary."""
    pairs = [word for word in words if vary and _PAIR.fullmatch(word) and not Path(word).exists()]
    files = [Path(word) for word in words if word not in pairs]
    if not files:
        raise typer.BadParameter("name the files of the waves", param_hint="WAVES")
    return files, [*vary, *pairs]


def _numbers(pairs: Sequence[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for pair in pairs:
        match = _PAIR.fullmatch(pair)
        try:
            numbers = [float(part) for part in match[2].split(",")] if match else []
        except ValueError:
            numbers = []
        if match is None or not numbers or any(abs(number) == float("inf") or number != number for number in numbers):
            raise typer.BadParameter("give a name and numbers, such as k=3,5,10", param_hint="--vary")
        found[match[1]] = list(dict.fromkeys([*found.get(match[1], []), *numbers]))
    return found


def _refuse_elsewhere(out: Path, file: Path, policy: Policy) -> None:
    """Files that a policy names are beside it, and so must be another one that names them."""
    if out.resolve() == file.resolve():
        raise typer.BadParameter("is the policy itself; name another file", param_hint="--out")
    names = any(isinstance(getattr(one, "hierarchy", None), str) for one in policy.attributes.values())
    names |= any(one is not None for one in (policy.registration_list, policy.ledger, policy.after))
    if names and out.resolve().parent != file.resolve().parent:
        message = "the policy names files beside it; write the recommended one into the same folder"
        raise typer.BadParameter(message, param_hint="--out")
