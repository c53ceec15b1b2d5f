"""`sequester publish`: the next release of a series, as planned before or planned now."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sequester.cli import options, terminal
from sequester.cli.help import STOPPED
from sequester.cli.plan import is_plan
from sequester.cli.series import ledger_of, open_series, read_ledger

if TYPE_CHECKING:
    from sequester.publish.plan import Plan
    from sequester.publish.release import Release
    from sequester.publish.series import Series

EXAMPLES = """
publish next.plan
publish next.plan --data archive/2026-q3.csv
publish 2026-q3.csv --policy hospital.yaml
publish 2026-q3.csv --name 2026-q3 --yes --format json
"""


def publish(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN|DATA", help="A saved plan, or the table as it is now, csv or parquet.", show_default=False
        ),
    ],
    policy: options.PolicyFile,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Where the table of a saved plan is, if it moved since.", show_default=False),
    ] = None,
    ledger: options.LedgerFile = None,
    releases: options.Folder = None,
    name: options.Name = None,
    seed: options.Seed = None,
    recipient: options.Recipient = None,
    purpose: options.Purpose = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="Begin the series with an encrypted ledger.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Publish without asking.")] = False,
    leaks: Annotated[
        bool, typer.Option("--i-know-this-leaks", help="Publish although attacks work; for method static.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Publish a table once more that was published already.")
    ] = False,
    no_price: options.NoPrice = False,
    everybody_is_new: options.EverybodyIsNew = False,
    accept_loss: options.AcceptLoss = False,
    show_values: options.ShowValues = False,
    format: options.Shape = options.Format.TEXT,
) -> None:
    """Publish the next release of a series: a plan that was saved, or a table, which is planned and shown first.

    A plan is refused, with exit code 5, if the ledger, the table or the policy has changed since it was made.
    """
    how: dict[str, Any] = {"name": name, "seed": seed, "recipient": recipient, "purpose": purpose}
    saved = is_plan(what)
    if saved:
        planned = how | {"everybody-is-new": everybody_is_new or None}
        if given := next((option for option, value in planned.items() if value is not None), None):
            raise typer.BadParameter("is what the plan says; plan again to change it", param_hint=f"--{given}")
        if no_price:
            raise typer.BadParameter("a saved plan is not priced again; leave it out", param_hint="--no-price")
    elif data is not None:
        raise typer.BadParameter("is for a saved plan; name the table alone", param_hint="--data")
    elif not yes and not terminal.may_ask():
        message = (
            "there is no terminal to ask at: give --yes, or publish a plan that was saved with `sequester plan --out`"
        )
        raise typer.BadParameter(message, param_hint="--yes")

    from sequester.policy import Policy
    from sequester.publish.plan import Plan

    rules = Policy.load(policy)
    plan = Plan.load(what) if saved else None
    series = open_series(
        ledger_of(policy, rules, ledger), rules, releases, encrypted=encrypted, accept_loss=accept_loss
    )
    if plan is None:
        how |= {"show_values": terminal.values_may_show(show_values), "everybody_is_new": everybody_is_new}
        with terminal.progress() as tell:
            plan = series.plan(what, progress=tell, price=not no_price, **how)
        _show_and_ask(plan, format, ask=not yes, leaks=leaks)
        again = again or not yes
    if plan.repeats is not None and not again:
        _stop(f"This table was published already as release {plan.repeats}; --again publishes it once more.")
    try:
        release = _publish(series, plan, data, leaks=leaks)
        if format is options.Format.JSON:
            files = {"folder": str(release.folder), "ledger": str(series.place), "recovered": list(series.recovered)}
            terminal.print_json({**release.to_dict(), **files})
        else:
            records = "1 record" if plan.records == 1 else f"{plan.records:,} records"
            terminal.line("Published ", (plan.folder, "bold"), f" of {plan.series}: {records}.")
            if release.folder is not None:
                terminal.show_files([release.folder, *sorted(release.folder.iterdir())])
    except KeyboardInterrupt:
        _tell_stopped(series, plan)
        raise


def _show_and_ask(plan: Plan, format: options.Format, *, ask: bool, leaks: bool) -> None:
    """Show the plan where results go, or beside them; then ask, once."""
    if format is options.Format.TEXT or ask:
        screen = terminal.console(stderr=format is options.Format.JSON)
        terminal.show_result(plan, screen)
        screen.print()
    if (plan.holds or leaks) and ask and not terminal.yes_or_no(f"Publish {plan.folder}?"):
        _stop("")


def _stop(why: str) -> NoReturn:
    terminal.say(f"{why} Nothing was published.".strip())
    raise typer.Exit(STOPPED)


def _publish(series: Series, plan: Plan, data: Path | None, *, leaks: bool) -> Release:
    from sequester.errors import GuaranteeError

    # What a saved plan says of itself may have been edited: it is made anew, and then judged.
    if plan.candidate is not None and not plan.holds and not leaks:
        attacks = "1 attack works" if plan.findings == 1 else f"{plan.findings:,} attacks work"
        raise GuaranteeError(
            f"{attacks} on the series with this release, because method static does not look at what was published "
            "before: choose another method, or publish it with --i-know-this-leaks. Nothing was published.",
            guarantee="series",
        )
    with terminal.progress() as tell:
        return series.publish(plan, source=data, i_know_this_leaks=leaks, progress=tell)


def _tell_stopped(series: Series, plan: Plan) -> None:
    """After Ctrl-C: whether the release is out all the same."""
    from sequester.errors import SequesterError

    place = series.folder / plan.series / plan.folder
    if place.exists():
        terminal.say(f"{plan.folder} is published already, and visible: {place}. Do not publish it again.")
        return
    with suppress(SequesterError), read_ledger(series.place) as ledger:
        if ledger.pending is not None and ledger.pending.number == plan.number:
            terminal.say(f"{plan.folder} is recorded already, and the next command shows it. Do not publish it again.")
