"""`sequester audit`: what do these releases tell together?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sequester.cli.exits import BROKEN, UNDECIDED
from sequester.cli.series import PolicyFile
from sequester.cli.terminal import Format

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.attacks.solvers.belief import BeliefSpread
    from sequester.policy import Policy

EXAMPLES = """[bold]Examples[/bold]

$ sequester audit 2026-q1.csv 2026-q2.csv

$ sequester audit r1.csv r2.csv -p hospital.yaml --against all --explain 1

$ sequester audit r1.csv r2.csv --population p1.csv --population p2.csv --format json

$ sequester audit r1.csv r2.csv --against lifetime --registered everybody.csv

$ sequester audit r1.csv r2.csv --report audit.html --findings findings.parquet

$ sequester audit r1.csv r2.csv --target "Birthplace=France, Job=Lawyer" --since 1

$ sequester audit --ledger hospital.ledger

$ sequester audit --ledger hospital.ledger --against neighbor --k 10 --confidence 0.3

$ sequester audit --ledger hospital.ledger --belief

$ sequester audit r1.csv --population p1.csv --informed
"""
Population = Annotated[list[Path] | None, typer.Option(help="Who was there, one table per release.")]
Registered = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Everybody who may be in a release; for lifetime.")
]
Against = Annotated[
    list[str] | None,
    typer.Option(help="outsider, neighbor, insider, lifetime, any or all; default: the policy's."),
]
AskedK = Annotated[
    int | None, typer.Option("--k", min=1, help="Ask about this k instead of the policy's.", show_default=False)
]
AskedConfidence = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="Ask about this confidence, for all values that are not ordinary.", show_default=False
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write all of it as one HTML page; keep it private."),
]
For = Annotated[
    Literal["internal", "public"],
    typer.Option(help="Who the page is for: internal has values, people and stories; public only counts."),
]
FindingsFile = Annotated[
    Path | None,
    typer.Option("--findings", metavar="FILE", help="Write all findings as a Parquet file; keep it private."),
]
_SHOWN = 20
# Findings that JSON has by default: enough to see what is wrong, and no megabytes of it.
_PRINTED = 100


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("audit", epilog=EXAMPLES)(audit)


def audit(
    policy: PolicyFile,
    releases: Annotated[
        list[Path] | None, typer.Argument(help="Releases in order of publication.", show_default=False)
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", "-l", help="Audit what is in a ledger instead; people are numbers.", show_default=False
        ),
    ] = None,
    population: Population = None,
    registered: Registered = None,
    against: Against = None,
    k: AskedK = None,
    confidence: AskedConfidence = None,
    belief: Annotated[
        bool, typer.Option("--belief", help="How sure could somebody be, also with some people's values known?")
    ] = False,
    informed: Annotated[
        bool, typer.Option("--informed", help="How sure is a reader who has learnt from the releases?")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="CELLS",
            help='Which rows may be hers: "Birthplace=France, Job=Lawyer".',
            show_default=False,
        ),
    ] = None,
    since: Annotated[int | None, typer.Option("--since", min=1, help="The first release with the target.")] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Read every attack as printed in its paper.")] = False,
    number: Annotated[int | None, typer.Option("--explain", min=1, help="Tell one finding as a story.")] = None,
    report: ReportFile = None,
    audience: For = "internal",
    findings: FindingsFile = None,
    every: Annotated[
        bool, typer.Option("--all-findings", help=f"With --format json: all findings, not the first {_PRINTED}.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show cells that are not understood; only on a terminal.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TEXT,
) -> None:
    """Try every attack on a series of releases, made by any tool; exit code 4 if one works, 3 if one lacks knowledge.

    Begins with what could not be decided, and what to give, then with how many people are exposed. Findings name
    sensitive values and, where they are known, people: keep the output private. Of a ledger any adversary and any bound
    may be asked about; asking changes nothing.
    """
    if (ledger is None) == (not releases):
        raise typer.BadParameter("name the files of releases, or a ledger with --ledger", param_hint="RELEASES")
    if ledger is not None and (population or registered or paper):
        message = "a ledger knows who was there, and is audited exactly; leave --population, --registered, --paper out"
        raise typer.BadParameter(message, param_hint="--ledger")
    if audience == "public" and report is None:
        raise typer.BadParameter("is for the page: name it with --report", param_hint="--audience")
    _refuse_beside_target(target, since, (ledger, population, registered, against, belief, paper, number))
    if every and format is not Format.JSON:
        raise typer.BadParameter("is for --format json; --findings writes all of them", param_hint="--all-findings")
    _refuse_places(report, findings, force=force)
    if confidence == 0:
        raise typer.BadParameter("must be above 0", param_hint="--confidence")

    from sequester.attacks.audit import audit as run
    from sequester.cli.target import parse_target, show_target
    from sequester.cli.terminal import progress, values_may_show
    from sequester.policy import Policy
    from sequester.publish.inquiry import with_bounds

    loaded = Policy.load(policy)
    with progress() as tell:
        if ledger is not None:
            audited = _of_ledger(
                ledger,
                loaded,
                against=against,
                k=k,
                confidence=confidence,
                belief=belief,
                informed=informed,
                progress=tell,
            )
        else:
            audited = run(
                releases or [],
                with_bounds(loaded, k=k, confidence=confidence),
                population=population or None,
                registered=registered,
                against=against,
                semantics="paper" if paper else "exact",
                show_values=values_may_show(show_values),
                belief=belief,
                informed=informed,
                target=None if target is None else parse_target(target, loaded),
                since=since or 1,
                progress=tell,
            )
    if number is not None and number > len(audited.findings):
        raise typer.BadParameter(f"there are {len(audited.findings)} findings", param_hint="--explain")
    if report is not None:
        _write_page(audited, report, audience)
    if findings is not None:
        _write_findings(audited, findings)
    if format is Format.JSON:
        _print_json(audited, number, most=None if every else _PRINTED)
    elif number is not None:
        _tell(audited, number)
    elif audited.target is not None:
        show_target(audited.target, audited)
    else:
        _show(audited)
    if not audited.holds:
        raise typer.Exit(BROKEN if audited.findings else UNDECIDED)


def _of_ledger(ledger: str, policy: Policy, **question: Any) -> Audit:
    from sequester.cli.series import read_ledger
    from sequester.ledger import Place
    from sequester.publish.inquiry import audit_ledger

    with read_ledger(Place.of(ledger, home=policy.path("."), series=policy.series)) as opened:
        return audit_ledger(opened, policy, **question)


def _refuse_beside_target(target: str | None, since: int | None, beside: tuple[object, ...]) -> None:
    if since is not None and target is None:
        raise typer.BadParameter("is when a target joined: say who with --target", param_hint="--since")
    if target is not None and any(beside):
        message = "a target is looked for in the files of releases alone; leave other questions out"
        raise typer.BadParameter(message, param_hint="--target")


def _refuse_places(report: Path | None, findings: Path | None, *, force: bool) -> None:
    """Say before the work that its results have no place."""
    from sequester.cli.terminal import refuse_existing

    if findings is not None and findings.suffix != ".parquet":
        raise typer.BadParameter("findings are a Parquet file: name it .parquet", param_hint="--findings")
    for file, option in ((report, "--report"), (findings, "--findings")):
        if file is not None:
            refuse_existing(file, force=force, option=option)


def _write_page(audited: Audit, file: Path, audience: Literal["internal", "public"]) -> None:
    from sequester.publish.files import write_text

    private = audience == "internal"
    write_text(file, audited.report(audience=audience), mode=0o600 if private else None)
    _say(f"The report is in {file}{'; keep it private' if private else ''}.")


def _write_findings(audited: Audit, file: Path) -> None:
    from sequester.publish.files import write_file

    write_file(audited.findings_table(), file, force=True, mode=0o600)
    _say(f"All findings are in {file}; keep them private.")


def _say(text: str) -> None:
    from sequester.visible import visible

    typer.echo(visible(text), err=True)


def _print_json(audited: Audit, number: int | None, *, most: int | None) -> None:
    from sequester.cli.terminal import print_json

    data = audited.to_dict(most=most)
    if number is not None:
        data["explanation"] = audited.explain(number)
    print_json(data)


def _tell(audited: Audit, number: int) -> None:
    from rich.text import Text

    from sequester.cli.terminal import console

    console().print(Text(audited.explain(number)))


def _show(audited: Audit) -> None:
    from rich.table import Table
    from rich.text import Text

    from sequester.attacks.explain import headline
    from sequester.attacks.registry import attack_of
    from sequester.cli.terminal import console, with_flags

    screen = console()
    color = "red" if audited.findings else "green" if audited.holds else "yellow"
    screen.print(Text(with_flags(audited.verdict), f"bold {color}"), soft_wrap=True)
    screen.print()
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    for title in ("attack", "adversary", "reached", "findings", ""):
        table.add_column(title)
    for attack in audited.tried:
        works = sum(finding.attack == attack for finding in audited.findings)
        table.add_row(
            Text(attack, "bold"),
            attack_of(attack).adversary,
            audited.reached(attack),
            str(works) if works else "none",
            Text(str(audited.exposed.by_attack[attack]), "bold red") if works else Text("safe", "green"),
        )
    for attack in dict.fromkeys(name for one in audited.undecided for name in one.attacks):
        if attack not in audited.tried:
            table.add_row(Text(attack, "bold"), attack_of(attack).adversary, "", "", Text("undecided", "bold yellow"))
    screen.print(table)
    _show_groups(audited)
    for one in audited.untried:
        if not one.give:
            screen.print(Text(f"not promised: {one}", "dim"))
    for note in audited.notes:
        screen.print(Text(f"note: {note}", "dim"))
    _show_belief(audited)
    screen.print()
    if not audited.findings:
        if audited.holds:
            screen.print(Text("Nothing that was tried works on these releases together.", "green"))
        return
    for place, finding in enumerate(audited.findings[:_SHOWN], start=1):
        screen.print(Text.assemble((f"{place:>3} ", "bold"), headline(finding)), soft_wrap=True)
    if len(audited.findings) > _SHOWN:
        more = f"    ... and {len(audited.findings) - _SHOWN:,} more; --findings all.parquet writes all of them"
        screen.print(more, soft_wrap=True)
    screen.print()
    screen.print(Text("Tell one as a story with --explain 1.", "dim"))


def _show_belief(audited: Audit) -> None:
    """How sure somebody without prejudice could be, and how far knowing some people's values carries."""
    from rich.table import Table
    from rich.text import Text

    from sequester.attacks.informed import in_words
    from sequester.cli.summary import believed
    from sequester.cli.terminal import console

    if not audited.belief:
        return
    screen = console()
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    for title in ("believed about", "values known", "people", "largest", "mean", "above .5", "above .7", "above .9"):
        table.add_column(title)

    def add(name: str, known: str, spread: BeliefSpread) -> None:
        above = (f"{100 * share:.1f}%" for share in spread.above)
        table.add_row(
            Text(name, "bold"), known, f"{spread.people:,}", f"{spread.most:.2f}", f"{spread.mean:.2f}", *above
        )

    for one in audited.belief:
        add(one.attribute, "none", one.spread)
        for share, carried in one.resilience.items():
            if share:
                add("", f"{100 * share:g}%", carried.belief)
            if carried.lineage is not None:
                add("", f"{100 * share:g}% and all pods", carried.lineage)
        if one.informed is not None:
            add("", "learnt from others", one.informed.others)
            add("", "learnt from all", one.informed.read)
    screen.print()
    screen.print(table)
    for one in audited.belief:
        figures = {"most": one.spread.most, "beyond": one.beyond}
        screen.print(Text(believed(one.attribute, figures)), soft_wrap=True)
        if one.informed is not None:
            screen.print(Text(in_words(one.attribute, one.informed)), soft_wrap=True)


def _show_groups(audited: Audit) -> None:
    """The exposed per value and per release; attacks have them in their own table."""
    from rich.table import Table
    from rich.text import Text

    from sequester.cli.terminal import console

    groups = [group for group in audited.exposed.groups() if group[0] != "attack"]
    if not groups:
        return
    screen = console()
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", show_edge=False)
    for title in ("per", "", "exposed"):
        table.add_column(title)
    for per, which, tally in groups[:_SHOWN]:
        table.add_row(per, Text(which), str(tally))
    screen.print()
    screen.print(table)
    if len(groups) > _SHOWN:
        screen.print(f"... and {len(groups) - _SHOWN} more, in --format json")
    screen.print()
