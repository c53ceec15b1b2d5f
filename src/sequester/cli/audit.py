"""`sequester audit`: what do these releases tell together?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sequester.cli.help import BROKEN, UNDECIDED
from sequester.cli.options import Force, Format, PolicyFile, Shape
from sequester.cli.series import read_ledger
from sequester.cli.terminal import line, print_json, progress, refuse_existing, say, show_result, values_may_show

if TYPE_CHECKING:
    from sequester.policy import Policy

EXAMPLES = """
audit 2026-q1.csv 2026-q2.csv
audit r1.csv r2.csv -p hospital.yaml --against all --explain 1
audit r1.csv r2.csv --population p1.csv --population p2.csv --format json
audit r1.csv r2.csv --against lifetime --registered everybody.csv
audit r1.csv r2.csv --report audit.html --findings findings.parquet
audit r1.csv r2.csv --target "Birthplace=France, Job=Lawyer" --since 1
audit --ledger hospital.ledger
audit --ledger hospital.ledger --against neighbor --k 10 --confidence 0.3
audit --ledger hospital.ledger --belief
audit r1.csv --population p1.csv --informed
"""
Population = Annotated[list[Path] | None, typer.Option(help="Who was there, one table per release.")]
Registered = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Everybody who may be in a release; for lifetime.")
]
Against = Annotated[
    list[str] | None, typer.Option(help="outsider, neighbor, insider, lifetime, any or all; default: the policy's.")
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
    Path | None, typer.Option("--report", metavar="FILE", help="Write all of it as one HTML page; keep it private.")
]
For = Annotated[
    Literal["internal", "public"],
    typer.Option(help="Who the page is for: internal has values, people and stories; public only counts."),
]
FindingsFile = Annotated[
    Path | None,
    typer.Option("--findings", metavar="FILE", help="Write all findings as a Parquet file; keep it private."),
]
# Findings that JSON has by default: enough to see what is wrong, and no megabytes of it.
_PRINTED = 100


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
    force: Force = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show cells that are not understood; only on a terminal.")
    ] = False,
    format: Shape = Format.TEXT,
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
    from sequester.ledger import Place
    from sequester.policy import Policy
    from sequester.publish.files import write_file, write_text
    from sequester.publish.inquiry import audit_ledger, with_bounds

    loaded = Policy.load(policy)
    question: dict[str, Any] = {"against": against, "belief": belief, "informed": informed}
    with progress() as tell:
        if ledger is not None:
            place = Place.of(ledger, home=loaded.path("."), series=loaded.series)
            with read_ledger(place) as opened:
                audited = audit_ledger(opened, loaded, k=k, confidence=confidence, **question, progress=tell)
        else:
            audited = run(
                releases or [],
                with_bounds(loaded, k=k, confidence=confidence),
                population=population or None,
                registered=registered,
                semantics="paper" if paper else "exact",
                show_values=values_may_show(show_values),
                target=None if target is None else _parse_target(target, loaded),
                since=since or 1,
                **question,
                progress=tell,
            )
    if number is not None and number > len(audited.findings):
        raise typer.BadParameter(f"there are {len(audited.findings)} findings", param_hint="--explain")
    if report is not None:
        private = audience == "internal"
        write_text(report, audited.report(audience=audience), mode=0o600 if private else None)
        say(f"The report is in {report}{'; keep it private' if private else ''}.")
    if findings is not None:
        write_file(audited.findings_table(), findings, force=True, mode=0o600)
        say(f"All findings are in {findings}; keep them private.")
    if format is Format.JSON:
        data = audited.to_dict(most=None if every else _PRINTED)
        print_json(data | ({} if number is None else {"explanation": audited.explain(number)}))
    elif number is not None:
        line(audited.explain(number), wrap=True)
    else:
        show_result(audited)
    if not audited.holds:
        raise typer.Exit(BROKEN if audited.findings else UNDECIDED)


def _refuse_beside_target(target: str | None, since: int | None, beside: tuple[object, ...]) -> None:
    if since is not None and target is None:
        raise typer.BadParameter("is when a target joined: say who with --target", param_hint="--since")
    if target is not None and any(beside):
        message = "a target is looked for in the files of releases alone; leave other questions out"
        raise typer.BadParameter(message, param_hint="--target")


def _refuse_places(report: Path | None, findings: Path | None, *, force: bool) -> None:
    """Say before the work that its results have no place."""
    if findings is not None and findings.suffix != ".parquet":
        raise typer.BadParameter("findings are a Parquet file: name it .parquet", param_hint="--findings")
    for file, option in ((report, "--report"), (findings, "--findings")):
        if file is not None:
            refuse_existing(file, force=force, option=option)


def _parse_target(text: str, policy: Policy) -> dict[str, str]:
    """`Birthplace=France, Job=Lawyer` as cells; a comma ends a cell only before the next name."""
    names = "|".join(re.escape(name) for name in sorted(policy.quasi_identifiers, key=len, reverse=True))
    parts = re.split(rf",\s*(?=(?:{names})\s*=)", text)
    cells = {}
    for part in parts:
        name, _, cell = part.partition("=")
        cells[name.strip()] = cell.strip()
    if len(cells) < len(parts) or "" in cells.values():
        message = 'name what is known of her once each, as in "Birthplace=France, Job=Lawyer"'
        raise typer.BadParameter(message, param_hint="--target")
    return cells
