"""`sequester publish`: the next release of a series, as planned before or planned now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sequester.cli.series import (
    AcceptLoss,
    EverybodyIsNew,
    Folder,
    LedgerFile,
    Name,
    NoPrice,
    PolicyFile,
    Purpose,
    Recipient,
    Seed,
)
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.publish.plan import Plan
    from sequester.publish.release import Release
    from sequester.publish.series import Series

EXAMPLES = """[bold]Examples[/bold]

$ sequester publish next.plan

$ sequester publish next.plan --data archive/2026-q3.csv

$ sequester publish 2026-q3.csv --policy hospital.yaml

$ sequester publish 2026-q3.csv --name 2026-q3 --yes --format json
"""
STOPPED = 130


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("publish", epilog=EXAMPLES)(publish)


def publish(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN|DATA", help="A saved plan, or the table as it is now, csv or parquet.", show_default=False
        ),
    ],
    policy: PolicyFile,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Where the table of a saved plan is, if it moved since.", show_default=False),
    ] = None,
    ledger: LedgerFile = None,
    releases: Folder = None,
    name: Name = None,
    seed: Seed = None,
    recipient: Recipient = None,
    purpose: Purpose = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="Begin the series with an encrypted ledger.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Publish without asking.")] = False,
    leaks: Annotated[
        bool, typer.Option("--i-know-this-leaks", help="Publish although attacks work; for method static.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Publish a table once more that was published already.")
    ] = False,
    no_price: NoPrice = False,
    everybody_is_new: EverybodyIsNew = False,
    accept_loss: AcceptLoss = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values that are wrong; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Publish the next release of a series: a plan that was saved, or a table, which is planned and shown first.

    A plan is refused, with exit code 5, if the ledger, the table or the policy has changed since it was made.
    """
    from sequester.cli.plan import is_plan
    from sequester.cli.terminal import may_ask, print_json, values_may_show

    saved = is_plan(what)
    how = {"name": name, "seed": seed, "recipient": recipient, "purpose": purpose}
    if saved and any(value is not None for value in how.values()):
        given = next(option for option, value in how.items() if value is not None)
        raise typer.BadParameter("is what the plan says; plan again to change it", param_hint=f"--{given}")
    if saved and everybody_is_new:
        raise typer.BadParameter("is what the plan says; plan again to change it", param_hint="--everybody-is-new")
    if saved and no_price:
        raise typer.BadParameter("a saved plan is not priced again; leave it out", param_hint="--no-price")
    if not saved and data is not None:
        raise typer.BadParameter("is for a saved plan; name the table alone", param_hint="--data")
    if not saved and not yes and not may_ask():
        message = (
            "there is no terminal to ask at: give --yes, or save a plan with `sequester plan --out` and publish it"
        )
        raise typer.BadParameter(message, param_hint="--yes")

    from sequester.cli.series import ledger_of, open_series
    from sequester.policy import Policy
    from sequester.publish.plan import Plan

    rules = Policy.load(policy)
    plan = Plan.load(what) if saved else None
    place = ledger_of(policy, rules, ledger)
    series = open_series(place, rules, releases, encrypted=encrypted, accept_loss=accept_loss)
    if plan is None:
        shown = values_may_show(show_values)
        plan = _plan(series, what, show_values=shown, everybody_is_new=everybody_is_new, price=not no_price, **how)
        _show_and_ask(plan, format, ask=not yes, leaks=leaks)
        again = again or not yes
    if plan.repeats is not None and not again:
        _stop(f"This table was published already as release {plan.repeats}; --again publishes it once more.")
    try:
        release = _publish(series, plan, data, leaks=leaks)
        if format is Format.JSON:
            files = {"folder": str(release.folder), "ledger": str(series.place), "recovered": list(series.recovered)}
            print_json({**release.to_dict(), **files})
        else:
            _show(plan, release)
    except KeyboardInterrupt:
        _tell_stopped(series, plan)
        raise


def _plan(series: Series, data: Path, **how: Any) -> Plan:
    from sequester.cli.terminal import progress

    with progress() as tell:
        return series.plan(data, progress=tell, **how)


def _show_and_ask(plan: Plan, format: Format, *, ask: bool, leaks: bool) -> None:
    """Show the plan where results go, or beside them; then ask, once."""
    from sequester.cli.plan import show_plan
    from sequester.cli.terminal import console, yes_or_no

    if format is Format.TEXT or ask:
        screen = console(stderr=format is Format.JSON)
        show_plan(screen, plan)
        screen.print()
    if not plan.holds and not leaks:
        return
    if ask and not yes_or_no(f"Publish {plan.folder}?"):
        _stop("")


def _stop(why: str) -> NoReturn:
    from sequester.cli.series import say

    say(f"{why} Nothing was published.".strip())
    raise typer.Exit(STOPPED)


def _publish(series: Series, plan: Plan, data: Path | None, *, leaks: bool) -> Release:
    from sequester.cli.summary import many
    from sequester.cli.terminal import progress
    from sequester.errors import GuaranteeError

    # What a saved plan says of itself may have been edited: it is made anew, and then judged.
    if plan.candidate is not None and not plan.holds and not leaks:
        attacks = many(plan.findings, "attack works", "attacks work")
        raise GuaranteeError(
            f"{attacks} on the series with this release, because method static does not look at what was published "
            "before: choose another method, or publish it with --i-know-this-leaks. Nothing was published.",
            guarantee="series",
        )
    with progress() as tell:
        return series.publish(plan, source=data, i_know_this_leaks=leaks, progress=tell)


def _tell_stopped(series: Series, plan: Plan) -> None:
    """After Ctrl-C: whether the release is out all the same."""
    from contextlib import suppress

    from sequester.cli.series import read_ledger, say
    from sequester.errors import SequesterError

    place = series.folder / plan.series / plan.folder
    if place.exists():
        say(f"{plan.folder} is published already, and visible: {place}. Do not publish it again.")
        return
    with suppress(SequesterError), read_ledger(series.place) as ledger:
        if ledger.pending is not None and ledger.pending.number == plan.number:
            say(f"{plan.folder} is recorded already, and the next command shows it. Do not publish it again.")


def _show(plan: Plan, release: Release) -> None:
    from rich.text import Text

    from sequester.cli.summary import many, show_files
    from sequester.cli.terminal import console

    screen = console()
    records = many(plan.records, "record", "records")
    text = Text.assemble("Published ", (plan.folder, "bold"), f" of {plan.series}: {records}.")
    screen.print(text, soft_wrap=True)
    if release.folder is not None:
        show_files(screen, [release.folder, *sorted(release.folder.iterdir())])
