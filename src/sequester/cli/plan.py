"""`sequester plan`: the next release of a series, made and judged, and known to nobody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli import options, terminal
from sequester.cli.help import BROKEN
from sequester.cli.series import ledger_of, open_series, trial_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sequester.errors import GuaranteeError
    from sequester.ledger import Place
    from sequester.policy import Policy
    from sequester.publish.ahead import Ahead
    from sequester.publish.plan import Plan
    from sequester.report.blocks import Block

EXAMPLES = """
plan 2026-q3.csv
plan 2026-q3.csv --out next.plan
plan 2026-q3.csv --why
plan 2026-q3.csv --policy hospital.yaml --ahead 10
plan 2026-q3.parquet --recipient university --purpose research --format json
"""


def plan(
    data: Annotated[Path, typer.Argument(help="The table as it is now, csv or parquet.", show_default=False)],
    policy: options.PolicyFile,
    ledger: options.LedgerFile = None,
    releases: options.Folder = None,
    name: options.Name = None,
    seed: options.Seed = None,
    recipient: options.Recipient = None,
    purpose: options.Purpose = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the plan, to publish it later; keep it private.", show_default=False),
    ] = None,
    ahead: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, help="Lifetime guarantee: simulate so many releases after this one.", show_default=False
        ),
    ] = None,
    why: Annotated[
        bool,
        typer.Option("--why", help="Also make the release with one key relaxed at a time, and tell what that buys."),
    ] = False,
    no_price: options.NoPrice = False,
    everybody_is_new: options.EverybodyIsNew = False,
    show_values: options.ShowValues = False,
    format: options.Shape = options.Format.TEXT,
) -> None:
    """Make the next release of a series and tell what it changes, promises and costs. Publishes nothing.

    The exit code is 4 if what is promised cannot be kept together with what was published before.
    """
    if out is not None and out.exists() and not (out.is_file() and is_plan(out)):
        raise typer.BadParameter(f"{out} exists and is no plan; name another file", param_hint="--out")

    from sequester.errors import GuaranteeError
    from sequester.policy import Policy
    from sequester.publish.ahead import look_ahead

    rules = Policy.load(policy)
    path = ledger_of(policy, rules, ledger)
    how = {"name": name, "seed": seed, "recipient": recipient, "purpose": purpose, "everybody_is_new": everybody_is_new}
    how |= {"price": not no_price, "why": why, "show_values": terminal.values_may_show(show_values)}
    try:
        made = _make(data, rules, path, releases, out, **how)
    except GuaranteeError as error:
        if why:
            _tell_refused(error, format)
        raise
    coming = None if ahead is None else look_ahead(made, rules, releases=ahead)
    if format is options.Format.JSON:
        extra = {} if coming is None else {"ahead": coming.to_dict()}
        # The seed tells the order of the rows, and the seal is for the file of a plan.
        told = {name: value for name, value in made.to_dict().items() if name not in ("seed", "seal")}
        terminal.print_json({**told, **extra, "ledger": str(path), "saved": None if out is None else str(out)})
    else:
        terminal.show_result(made)
        if coming is not None:
            terminal.line()
            terminal.show(_ahead(coming))
        places = {"ledger": ledger, "releases": releases}
        _say_next(data, policy, out, places, everybody_is_new=everybody_is_new)
    if not made.holds:
        raise typer.Exit(BROKEN)


def _make(data: Path, rules: Policy, path: Place, releases: Path | None, out: Path | None, **how: Any) -> Plan:
    if out is None:
        trial = trial_series(path, rules, releases, everybody_is_new=how["everybody_is_new"])
        with trial as series, terminal.progress() as tell:
            return series.plan(data, progress=tell, **how)
    # A plan that is kept is kept for one ledger, so that has to be there.
    series = open_series(path, rules, releases)
    with terminal.progress() as tell:
        made = series.plan(data, progress=tell, **how)
    made.save(out)
    return made


def _tell_refused(error: GuaranteeError, format: options.Format) -> None:
    """What is in the way of a release that is refused, and what keys of the policy would buy."""
    from sequester.report.results import relaxation_blocks, why_blocks

    if format is options.Format.JSON:
        why, priced = ([one.to_dict() for one in some] for some in (error.causes, error.relaxations))
        terminal.print_json({"refused": error.guarantee, "why": why, "relaxations": priced})
        return
    terminal.show(why_blocks(error.causes, error.relaxations))
    terminal.line()
    terminal.show(relaxation_blocks(error.relaxations, {}, {"decoys": 0, "waiting": 0}))


def is_plan(path: Path) -> bool:
    """Whether a file is a saved plan, right or damaged."""
    if path.suffix == ".plan" and path.exists():
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            start = stream.read(64)
    except OSError:
        return False
    return start.lstrip().startswith(b"{") and b'"sequester-plan"' in start


def _ahead(coming: Ahead) -> Iterator[Block]:
    """What is left of the lifetime guarantee, and how the coming releases go with this and other strategies."""
    from sequester.policy.words import amount
    from sequester.report.blocks import Grid, Paragraph

    budget, churn = coming.budget, coming.churn
    if budget.pairs:
        yield Paragraph(
            f"After this release half of {amount(budget.pairs, 'pair')} of a person and a value in her class "
            f"can bear {budget.median:,} more classes like it, nine of ten {budget.tenth:,}, all {budget.least:,}."
        )
    how = f"{churn.leave:.0%} leave, {churn.join:.0%} join, {churn.change:.0%} of the values change"
    assumed = how if churn.observed else "nothing changes, since there is no earlier release to learn from"
    yield Paragraph(f"The next {amount(coming.releases, 'release')}, if each time {assumed}:")
    rows = []
    for course in coming.courses:
        kind = course.strategy
        often = f"{kind['releases']} releases" if "releases" in kind else f"alpha {kind['alpha']:g}"
        ends = "" if course.ends is None else f" (nobody after {amount(course.ends, 'release')})"
        last = [series[-1] if series else None for series in (course.left_out, course.average, course.loss)]
        rows.append((f"{kind['strategy']}, {often}{ends}", sum(course.left_out), *last))
    yield Grid(("strategy", "left out", "of the last", "average class", "AIL"), tuple(rows), "The coming releases")


def _say_next(
    data: Path, policy: Path, out: Path | None, named: dict[str, str | Path | None], *, everybody_is_new: bool
) -> None:
    from sequester.ledger.place import without_password

    shown = {name: without_password(str(place)) for name, place in named.items() if place is not None}
    places = "".join(f" --{name} {options.quoted(place)}" for name, place in shown.items())
    if everybody_is_new and out is None:
        places += " --everybody-is-new"
    terminal.line()
    if out is not None:
        terminal.line("Saved as ", (str(out), "bold"), ". ", end="")
    terminal.line("Nothing is published. To publish it:")
    command = f"sequester publish {options.quoted(out or data)}{options.with_policy(policy)}{places}"
    terminal.line(f"  {command}", style="bold")
