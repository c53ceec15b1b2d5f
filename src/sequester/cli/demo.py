"""`sequester demo`: a table that is published six times, without a memory and with one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from sequester.attacks.audit import Audit
    from sequester.attacks.finding import Finding
    from sequester.policy import Policy
    from sequester.publish.plan import Plan

EXAMPLES = """[bold]Examples[/bold]

$ sequester demo

$ sequester demo --rows 12000 --out trial
"""
RULES, TABLES, NAIVE, LEDGER, RELEASES = "policy.yaml", "tables", "naive", "hospital.ledger", "releases"
CUTS, MARK = "cuts", ".sequester-demo"
_OURS = re.compile(
    rf"{re.escape(MARK)}|({TABLES}|{NAIVE})/\d+\.csv|({CUTS}/)?({re.escape(RULES)}|{re.escape(LEDGER)}(\.key|\.wal)?"
    rf"|{RELEASES}/\.?\d+-release-\d+(\.draft)?/(data\.csv|release\.json|report\.html))"
)
TIMES = 6
EXPOSED = 2


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("demo", epilog=EXAMPLES)(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("sequester-demo"),
    rows: Annotated[int, typer.Option(min=1, help="How many invented people there are in the end.")] = 3000,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The same seed gives the same releases.")] = 1,
) -> None:
    """Invent a hospital whose table grows, publish it six times, and show who is exposed and what safety costs.

    An earlier demo in the same folder is replaced.
    """
    if out.exists() and not _is_demo(out):
        raise typer.BadParameter(f"{out} exists and is no earlier demo; --out names another folder", param_hint="--out")

    from sequester.cli.terminal import console, progress
    from sequester.datasets import hospital_policy, hospital_series
    from sequester.policy import Policy
    from sequester.publish.files import write_file, write_text

    if out.exists():
        shutil.rmtree(out)
    tables = hospital_series(rows, releases=TIMES, seed=seed)
    write_text(out / MARK, "Made by `sequester demo`, which replaces this folder when run again.\n")
    write_text(out / RULES, hospital_policy())
    for number, table in enumerate(tables, start=1):
        write_file(table, out / TABLES / f"{number}.csv")
    policy = Policy.load(out / RULES)
    screen = console()
    with progress() as tell:
        tell("naive releases", 0, 4)
        audit, published = _publish_naively(out, tables, policy, seed=seed)
    _show_naive(screen, audit, tables, published)
    cuts = hospital_policy().replace("name: mondrian", "name: specialize").replace("[insider, neighbor]", "[neighbor]")
    write_text(out / CUTS / RULES, cuts)
    with progress() as tell:
        plans, safe = _publish_safely(out, out, policy, seed=seed, progress=tell)
        coarse, also_safe = _publish_safely(out, out / CUTS, Policy.load(out / CUTS / RULES), seed=seed, progress=tell)
    _show_safe(screen, plans, safe, coarse, also_safe)
    _show_files(screen, out)


def _is_demo(folder: Path) -> bool:
    """Whether a folder holds what this command writes and nothing else."""
    files = [str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()]
    return MARK in files and all(_OURS.fullmatch(file) for file in files)


def _publish_naively(out: Path, tables: list[pa.Table], policy: Policy, *, seed: int) -> tuple[Audit, list[pa.Table]]:
    """Every table anonymized on its own, as tools without a memory do, and what an insider makes of all six."""
    from sequester.attacks.audit import audit
    from sequester.publish.anonymize import anonymize
    from sequester.publish.emit import shuffle_rows
    from sequester.publish.files import write_file

    published, known = [], []
    for number in range(1, len(tables) + 1):
        release = anonymize(out / TABLES / f"{number}.csv", policy, seed=seed + number)
        write_file(release.table, out / NAIVE / f"{number}.csv")
        members = release.members()
        order = shuffle_rows(members["class"].to_numpy(), seed=seed + number)
        published.append(release.table)
        known.append(release.table.append_column(str(policy.person), members["person"].take(order)))
    return audit(known, policy, against=["insider"]), published


def _publish_safely(out: Path, place: Path, policy: Policy, *, seed: int, progress: Any) -> tuple[list[Plan], Audit]:
    """The same tables as a series, in a place of its own, and what the policy's adversaries make of all six."""
    from sequester.publish.series import Series

    series = Series.open(place / LEDGER, policy)
    plans = []
    for number in range(1, TIMES + 1):
        # Everybody is invented: the demo may be repeated by anybody. A real series draws its seeds.
        own = 1 << 63 | seed
        plan = series.plan(out / TABLES / f"{number}.csv", name=f"release-{number}", seed=own, progress=progress)
        series.publish(plan)
        plans.append(plan)
    return plans, series.audit(progress=progress)


def _show_naive(screen: Console, audit: Audit, tables: list[pa.Table], published: list[pa.Table]) -> None:
    from rich.text import Text

    sizes = ", ".join(f"{table.num_rows:,}" for table in tables)
    screen.print(
        f"A hospital's table grows: {sizes} people, all of them invented. It is published each time, k = 5 and no "
        "diagnosis more certain than 50%."
    )
    screen.print()
    screen.print(Text("Without a memory", "bold"), "each release keeps its promise. Together they do not:")
    works = ", ".join(
        f"{attack} ({sum(finding.attack == attack for finding in audit.findings):,})"
        for attack in audit.tried
        if any(finding.attack == attack for finding in audit.findings)
    )
    people = tables[-1]
    screen.print(
        Text.assemble(
            "  attacks that work: ",
            (works or "none", "bold red"),
            f". {str(audit.exposed).rstrip('.')}, of {people.num_rows:,}. For example:",
        )
    )
    named = dict(zip(people["patient_id"].to_pylist(), people["name"].to_pylist(), strict=True))
    for finding in _examples(audit):
        told = finding.witness
        screen.print(
            Text.assemble(
                "  ",
                (f"{named[finding.people[0]]} has {finding.value}", "bold red"),
                f": take {_classes(told['minus'])} of release {told['minus_release']} away from "
                f"{_classes(told['from'])} of release {told['from_release']}, and nobody else is left.",
            )
        )
    screen.print()


def _examples(audit: Audit) -> list[Finding]:
    """Findings about one certain person each, the easiest to check by hand first."""
    certain = [
        finding
        for finding in audit.findings
        if finding.attack == "difference"
        and finding.about_value
        and len(finding.people) == 1
        and finding.observed == 1
        and len(finding.releases) == 2
    ]
    chosen: dict[Any, Finding] = {}
    for finding in sorted(certain, key=lambda one: len(one.classes)):
        chosen.setdefault((finding.people, finding.value), finding)
    return list(chosen.values())[:EXPOSED]


def _classes(numbers: list[int]) -> str:
    return f"class {numbers[0]}" if len(numbers) == 1 else f"classes {', '.join(map(str, numbers))}"


def _show_safe(screen: Console, plans: list[Plan], safe: Audit, coarse: list[Plan], also_safe: Audit) -> None:
    from rich.table import Table
    from rich.text import Text

    screen.print(Text("With Sequester's ledger", "bold"), "each release keeps its promise given all before it:")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2), header_style="dim")
    for title in ("release", "people", "classes", "loss", "unsafe", "merge", "cuts"):
        table.add_column(title, justify="left" if title == "release" else "right")
    for plan, other in zip(plans, coarse, strict=True):
        loss = {name: f"{values['ail']:.3f}" for name, values in plan.loss.items()}
        table.add_row(
            plan.name,
            f"{plan.records:,}",
            f"{plan.classes:,}",
            Text(loss["release"], "bold"),
            loss.get("static", loss["release"]),
            loss.get("merge", loss["release"]),
            f"{other.loss['release']['ail']:.3f}",
        )
    screen.print(table)
    screen.print(
        "  loss: average information loss (AIL). unsafe: of the same table without a memory. merge: if old classes "
        "were left as they are (Byun et al.). cuts: of a second series by taxonomy cuts, against neighbors only, which "
        "analysts can count across releases (specialize, Fung et al.)",
        style="dim",
    )
    for what, audit in (("audit of all six", safe), ("of the taxonomy cuts", also_safe)):
        verdict = Text("nothing that was tried works", "bold green")
        if not audit.holds:
            verdict = Text(f"{len(audit.findings)} findings", "bold red")
        screen.print(Text.assemble(f"  {what}: ", verdict, f" ({', '.join(audit.tried)})."))
    screen.print()


def _show_files(screen: Console, out: Path) -> None:
    from rich.text import Text

    from sequester.cli.summary import grid

    where = grid()
    for file, what in (
        (out / TABLES, "the private tables"),
        (out / RULES, "what is promised about them"),
        (out / NAIVE, "published without a memory"),
        (out / RELEASES, "published with Sequester: data, measures and a report each"),
        (out / LEDGER, "what the world already knows; with its key, private"),
        (out / CUTS, "the second series"),
    ):
        where.add_row(Text(str(file), "bold not dim"), Text(what, "dim"))
    screen.print(where)
