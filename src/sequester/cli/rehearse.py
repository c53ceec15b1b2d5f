"""`sequester rehearse`: what would a whole series have cost?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sequester.cli.series import EverybodyIsNew, PolicyFile
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sequester.policy import Policy
    from sequester.publish.rehearsing.rehearse import Rehearsal
    from sequester.publish.rehearsing.trial import Trial

EXAMPLES = """[bold]Examples[/bold]

$ sequester rehearse q1.csv q2.csv q3.csv -p policy.yaml

$ sequester rehearse q*.csv -p policy.yaml --out recommended.yaml --picture rehearsal.svg

$ sequester rehearse q*.csv -p policy.yaml --methods pods,cluster --format json

$ sequester rehearse q*.csv -p policy.yaml --vary k=3,5,10 confidence=.3,.5,.7 --picture frontier.svg
"""
_PAIR = re.compile(r"([a-z_]+)=(.*)")
# Columns of a terminal from which on all figures have room.
_WIDE = 96
# Waves whose losses are shown one by one.
_SHOWN = 8

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


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("rehearse", epilog=EXAMPLES)(rehearse)


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
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values that are wrong; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Try a whole series of past tables by every method that suits the policy, and say which one to take.

    Nothing is published, and no ledger is touched. Beside each other stand loss by wave and by column, decoys, people
    who wait, and the people that naive releases would expose. With --vary the policy's own method is tried at all
    combinations. Exit code 4 if no variant keeps what the policy promises.
    """
    from sequester.cli.terminal import print_json, progress, refuse_existing, values_may_show
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
        _show(result, made)
    if not any(trial.holds for trial in result.trials):
        raise typer.Exit(4)


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


def _show(result: Rehearsal, made: Sequence[Path]) -> None:
    from rich.text import Text

    from sequester.cli.summary import many, show_files
    from sequester.cli.terminal import console

    screen = console()
    sizes = ", ".join(f"{count:,}" for count in result.people)
    waves = many(len(result.waves), "wave", "waves")
    screen.print(
        Text.assemble((result.series, "bold"), f": {waves} of {sizes} records, rehearsed in {result.seconds:.0f} s."),
        soft_wrap=True,
    )
    screen.print()
    screen.print(_trials(result, wide=screen.width >= _WIDE))
    _show_refused(screen, result)
    screen.print()
    screen.print(_columns(result))
    screen.print()
    _show_advice(screen, result)
    if made:
        show_files(screen, made)
    if result.best is not None and not any(file.suffix in (".yaml", ".yml") for file in made):
        screen.print()
        screen.print(Text("--out FILE writes the recommended policy, with these reasons.", "dim"), soft_wrap=True)


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)


def _trials(result: Rehearsal, *, wide: bool) -> Table:
    """Every variant that was published at all; of counts only those that somebody has."""
    table = _table()
    shown = [trial for trial in result.trials if trial.waves]
    counts: dict[str, Callable[[Trial], int]] = {
        "wait": lambda trial: trial.waiting,
        "kept": lambda trial: trial.kept,
        "left out": lambda trial: trial.left_out,
    }
    used = {name: get for name, get in counts.items() if any(get(trial) for trial in shown)}
    for name in result.varied:
        table.add_column(name, justify="right")
    table.add_column("variant")
    more = ("AIL",) if wide else ()
    for name in ("NCP", *more, "decoys", *used, "exposed", "certain", *(("processor",) if wide else ())):
        table.add_column(name, justify="right", no_wrap=True)
    if not result.varied:
        table.add_column("NCP by wave")
    best = result.best
    for trial in shown:
        counted = [f"{get(trial):,}" for get in used.values()]
        table.add_row(*_row(result, trial, counted, wide=wide), style=_style(trial, best))
    return table


def _row(result: Rehearsal, trial: Trial, counts: Sequence[str], *, wide: bool) -> list[str]:
    last = trial.waves[-1]
    points = [f"{trial.point[name]:g}" for name in result.varied]
    name = f"{trial.name} (stopped)" if trial.why is not None else trial.name
    by_wave = [] if result.varied else [_by_wave(trial)]
    more = "+" if last.at_least else ""
    exposed = [f"{last.exposed:,}{more}", f"{last.certain:,}{more}"] if last.exposed else ["nobody", ""]
    losses = [f"{trial.ncp:.3f}", *([f"{trial.ail:.3f}"] if wide else []), f"{100 * trial.decoys:.1f}%"]
    spent = [f"{trial.seconds:.1f} s"] if wide else []
    return [*points, name, *losses, *counts, *exposed, *spent, *by_wave]


def _by_wave(trial: Trial) -> str:
    losses = [f"{wave.ncp:.2f}".removeprefix("0") for wave in trial.waves]
    if len(losses) > _SHOWN:
        losses = [*losses[: _SHOWN // 2], "...", *losses[-_SHOWN // 2 :]]
    return " ".join(losses)


def _style(trial: Trial, best: Trial | None) -> str:
    if trial.naive:
        return "red"
    return "bold green" if trial is best else "" if trial.holds and trial.equal else "dim"


def _show_refused(screen: Console, result: Rehearsal) -> None:
    """Why variants were not tried, or did not come to an end."""
    from rich.text import Text

    refused = [trial for trial in result.trials if trial.why is not None]
    if refused:
        screen.print()
    for trial in refused:
        point = ", ".join(f"{name} {trial.point[name]:g}" for name in result.varied)
        named = f"{trial.name} ({point})" if point else trial.name
        screen.print(Text.assemble(f"{named}: ", (str(trial.why), "dim")), soft_wrap=True)


def _columns(result: Rehearsal) -> Table:
    """NCP of every column by every variant: where the loss is."""
    table = _table()
    table.title, table.title_justify, table.title_style = "Loss by column (mean NCP)", "left", "bold"
    for name in result.varied:
        table.add_column(name, justify="right")
    table.add_column("variant")
    for name in result.columns:
        table.add_column(name, justify="right")
    for trial in result.trials:
        if trial.waves:
            points = [f"{trial.point[name]:g}" for name in result.varied]
            losses = [f"{loss:.3f}" for loss in trial.columns.values()]
            table.add_row(*points, trial.name, *losses, style=_style(trial, result.best))
    return table


def _show_advice(screen: Console, result: Rehearsal) -> None:
    from rich.text import Text

    advice = result.recommendation
    less = list(dict.fromkeys(trial.name for trial in result.trials if trial.holds and not trial.equal))
    if less and not result.varied:
        screen.print(Text(f"Promise less than the policy, and are not recommended: {', '.join(less)}.", "dim"))
    if advice is None and less:
        screen.print(Text("Every variant that holds promises less than the policy: none is recommended."))
        return
    if advice is None:
        screen.print(Text("No variant keeps what the policy promises in every wave.", "bold red"), soft_wrap=True)
        return
    screen.print(Text.assemble("Recommended: ", (advice.name, "bold green"), "."), soft_wrap=True)
    for reason in advice.reasons:
        screen.print(Text(f"- {reason}"))
    screen.print(Text(f"The rule: {advice.rule}.", "dim"))
