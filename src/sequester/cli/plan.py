"""`sequester plan`: the next release of a series, made and judged, and known to nobody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.series import EverybodyIsNew, Folder, LedgerFile, Name, NoPrice, PolicyFile, Purpose, Recipient, Seed
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from rich.console import Console

    from sequester.errors import GuaranteeError
    from sequester.ledger import Place
    from sequester.policy import Policy
    from sequester.publish.ahead import Ahead
    from sequester.publish.plan import Plan

EXAMPLES = """[bold]Examples[/bold]

$ sequester plan 2026-q3.csv

$ sequester plan 2026-q3.csv --out next.plan

$ sequester plan 2026-q3.csv --why

$ sequester plan 2026-q3.csv --policy hospital.yaml --ahead 10

$ sequester plan 2026-q3.parquet --recipient university --purpose research --format json
"""
BROKEN = 4


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("plan", epilog=EXAMPLES)(plan)


def plan(
    data: Annotated[Path, typer.Argument(help="The table as it is now, csv or parquet.", show_default=False)],
    policy: PolicyFile,
    ledger: LedgerFile = None,
    releases: Folder = None,
    name: Name = None,
    seed: Seed = None,
    recipient: Recipient = None,
    purpose: Purpose = None,
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
    no_price: NoPrice = False,
    everybody_is_new: EverybodyIsNew = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values that are wrong; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Make the next release of a series and tell what it changes, promises and costs. Publishes nothing.

    The exit code is 4 if what is promised cannot be kept together with what was published before.
    """
    if out is not None:
        _refuse_other(out)

    from sequester.cli.series import ledger_of
    from sequester.cli.terminal import console, print_json, values_may_show
    from sequester.errors import GuaranteeError
    from sequester.policy import Policy

    rules = Policy.load(policy)
    path = ledger_of(policy, rules, ledger)
    how = {"name": name, "seed": seed, "recipient": recipient, "purpose": purpose, "everybody_is_new": everybody_is_new}
    how["price"] = not no_price
    try:
        made = _make(data, rules, path, releases, out, show_values=values_may_show(show_values), why=why, **how)
    except GuaranteeError as error:
        if why:
            _tell_refused(error, format)
        raise
    coming = None if ahead is None else _look_ahead(made, rules, ahead)
    if format is Format.JSON:
        extra = {} if coming is None else {"ahead": coming.to_dict()}
        print_json({**plan_to_dict(made), **extra, "ledger": str(path), "saved": None if out is None else str(out)})
    else:
        screen = console()
        show_plan(screen, made)
        if coming is not None:
            _show_ahead(screen, coming)
        _say_next(screen, data, policy, ledger, releases, out, everybody_is_new=everybody_is_new)
    if not made.holds:
        raise typer.Exit(BROKEN)


def _make(data: Path, rules: Policy, path: Place, releases: Path | None, out: Path | None, **how: Any) -> Plan:
    from sequester.cli.series import open_series, trial_series
    from sequester.cli.terminal import progress

    if out is None:
        trial = trial_series(path, rules, releases, everybody_is_new=how["everybody_is_new"])
        with trial as series, progress() as tell:
            return series.plan(data, progress=tell, **how)
    # A plan that is kept is kept for one ledger, so that has to be there.
    series = open_series(path, rules, releases)
    with progress() as tell:
        made = series.plan(data, progress=tell, **how)
    made.save(out)
    return made


def _tell_refused(error: GuaranteeError, format: Format) -> None:
    """What is in the way of a release that is refused, and what keys of the policy would buy."""
    from sequester.cli.reasons import show_relaxations, show_why
    from sequester.cli.terminal import console, print_json

    if format is Format.JSON:
        why, priced = ([one.to_dict() for one in some] for some in (error.causes, error.relaxations))
        print_json({"refused": error.guarantee, "why": why, "relaxations": priced})
        return
    screen = console()
    show_why(screen, error.causes, error.relaxations)
    show_relaxations(screen, error.relaxations, {}, decoys=0, waiting=0)


def _refuse_other(out: Path) -> None:
    """A plan replaces a plan, and nothing else."""
    if out.exists() and not (out.is_file() and is_plan(out)):
        raise typer.BadParameter(f"{out} exists and is no plan; name another file", param_hint="--out")


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


def plan_to_dict(made: Plan) -> dict[str, Any]:
    """A plan without its seed, which tells the order of the rows, and its seal, which is for its file."""
    return {name: value for name, value in made.to_dict().items() if name not in ("seed", "seal")}


def show_plan(screen: Console, made: Plan) -> None:
    """What changes, who waits, what is promised and reached, what it costs."""
    from rich.text import Text

    from sequester.cli.reasons import show_relaxations, show_since_last, show_why
    from sequester.cli.summary import (
        add_personal,
        add_pods,
        believed,
        changes,
        checks,
        delays,
        grid,
        many,
        show_frontier,
        show_notes,
        show_price,
        show_untried,
    )

    rows = many(made.records, "record", "records")
    if made.pods is not None:
        rows = f"{many(made.people, 'person', 'people')} and {many(made.decoys, 'decoy', 'decoys')}"
    size = f"{rows} in {many(made.classes, 'class', 'classes')}"
    title = f"Release {made.number} of {made.series}, "
    screen.print(Text.assemble(title, (made.folder, "bold"), f", by {made.method['name']}: {size}."), soft_wrap=True)
    screen.print()
    facts = grid()
    for label, text in (("recipient", made.recipient), ("purpose", made.purpose)):
        if text is not None:
            facts.add_row(label, Text(text))
    facts.add_row("changes", changes(made.change))
    facts.add_row("waiting", delays(made.waiting))
    add_pods(facts, made.pods, made.records)
    add_personal(facts, made.personal, made.gain)
    for name, figures in made.belief.items():
        facts.add_row("belief", Text(believed(name, figures)))
    screen.print(facts)
    screen.print()
    screen.print(checks(made.checks))
    screen.print()
    show_price(screen, made.loss, estimated=made.estimated)
    if made.pods is not None:
        show_frontier(screen, made.pods.facts)
    _show_levers(screen, made)
    show_why(screen, made.why, made.relaxations)
    waiting = made.waiting.held + made.waiting.retained + made.waiting.left_out
    show_relaxations(screen, made.relaxations, made.loss.get("release", {}), decoys=made.decoys, waiting=waiting)
    show_since_last(screen, made.since_last)
    show_untried(screen, made.untried)
    show_notes(screen, made.notes)
    if not made.holds:
        attacks = many(made.findings, "attack works", "attacks work")
        text = f"{attacks} on the series with this release: publishing it needs --i-know-this-leaks."
        if made.candidate is not None:
            text = f"{made.candidate.audit.verdict} {text}"
        screen.print()
        screen.print(Text(text, "bold red"))


def _look_ahead(made: Plan, rules: Policy, releases: int) -> Ahead:
    from sequester.publish.ahead import look_ahead

    return look_ahead(made, rules, releases=releases)


def _show_ahead(screen: Console, coming: Ahead) -> None:
    """What is left of the lifetime guarantee, and how the coming releases go with this and other strategies."""
    from rich.text import Text

    from sequester.cli.summary import columns, many, number

    budget, churn = coming.budget, coming.churn
    screen.print()
    if budget.pairs:
        text = (
            f"After this release half of {many(budget.pairs, 'pair', 'pairs')} of a person and a value in her class "
            f"can bear {budget.median:,} more classes like it, nine of ten {budget.tenth:,}, all {budget.least:,}."
        )
        screen.print(Text(text), soft_wrap=True)
    how = f"{churn.leave:.0%} leave, {churn.join:.0%} join, {churn.change:.0%} of the values change"
    assumed = how if churn.observed else "nothing changes, since there is no earlier release to learn from"
    screen.print(
        Text(f"The next {many(coming.releases, 'release', 'releases')}, if each time {assumed}:"), soft_wrap=True
    )
    table = columns(strategy=False, **{"left out": True, "of the last": True, "average class": True, "AIL": True})
    for course in coming.courses:
        kind = course.strategy
        name = f"{kind['strategy']}, " + (
            f"{kind['releases']} releases" if "releases" in kind else f"alpha {kind['alpha']:g}"
        )
        if course.ends is not None:
            name += f" (nobody after {many(course.ends, 'release', 'releases')})"
        last = [series[-1] if series else None for series in (course.left_out, course.average, course.loss)]
        table.add_row(name, f"{sum(course.left_out):,}", *(number(figure) for figure in last))
    screen.print(table)


def _show_levers(screen: Console, made: Plan) -> None:
    """What publishing less often would save."""
    if not made.levers:
        return

    from sequester.cli.summary import bars

    screen.print()
    how = ", estimated" if "levers" in made.estimated else ""
    screen.print(f"Expected loss of the newcomers (AIL{how}) if they are published")
    labels = {"now": "now", "with next": "with the next increment", "with next two": "with the next two"}
    screen.print(bars(screen, {labels.get(name, name): value for name, value in made.levers.items()}))


def _say_next(
    screen: Console,
    data: Path,
    policy: Path,
    ledger: str | None,
    releases: Path | None,
    out: Path | None,
    *,
    everybody_is_new: bool,
) -> None:
    from rich.text import Text

    from sequester.cli.series import quoted, with_policy
    from sequester.ledger.place import without_password

    shown = None if ledger is None else without_password(ledger)
    places = "".join(f" --{name} {quoted(path)}" for name, path in (("ledger", shown), ("releases", releases)) if path)
    if everybody_is_new and out is None:
        places += " --everybody-is-new"
    screen.print()
    if out is not None:
        screen.print(Text.assemble("Saved as ", (str(out), "bold"), ". "), soft_wrap=True, end="")
    screen.print("Nothing is published. To publish it:")
    command = f"sequester publish {quoted(out or data)}{with_policy(policy)}{places}"
    screen.print(Text(f"  {command}", "bold"), soft_wrap=True)
