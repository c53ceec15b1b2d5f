"""`sequester demo`: patients who come, leave, return and change, year by year, without a memory and by pods."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sequester.cli.terminal import console, grid, line, progress, show

if TYPE_CHECKING:
    import pyarrow as pa

    from sequester.attacks.audit import Audit
    from sequester.attacks.finding import Finding
    from sequester.policy import Policy
    from sequester.publish.plan import Plan

EXAMPLES = """
demo
demo --rows 12000 --out trial
"""
RULES, TABLES, NAIVE, LEDGER, RELEASES = "policy.yaml", "tables", "naive", "hospital.ledger", "releases"
RESILIENT, MARK = "resilient", ".sequester-demo"
_OURS = re.compile(
    rf"{re.escape(MARK)}|({TABLES}|{NAIVE})/\d+\.csv|({RESILIENT}/)?({re.escape(RULES)}|{re.escape(LEDGER)}(\.key|\.wal|\.head)?"
    rf"|{RELEASES}/[^/]+/\.?\d+-release-\d+(\.draft)?/(data\.csv|dictionary\.csv|release\.json|report\.html))"
)
ALONE = {"name": "mondrian", "regroup": True}
"""How tools without a memory might make their classes."""
TIMES = 5
EXPOSED = 2
HARMLESS = ("none", "flu")
KNOWN = 0.05
SURE = 2
"""Place of "above .9" among the steps of a belief."""


@dataclass(frozen=True)
class Shown:
    """One way to publish: its plans (none without a memory), its losses, and audits after each release."""

    plans: list[Plan]
    loss: list[float]
    audits: list[Audit]

    def read(self, release: int) -> float:
        """Share of the people so far of whose diagnosis a reader is more than 90 % sure."""
        return max((one.spread.above[SURE] for one in self.audits[release].belief), default=0.0)

    def spreads(self) -> tuple[float, float]:
        """The same of the others after the last release, where some are known: by classes, and told all pods, too."""
        resiliences = [one.resilience[KNOWN] for one in self.audits[-1].belief if KNOWN in one.resilience]
        plain = max((one.belief.above[SURE] for one in resiliences), default=0.0)
        return plain, max((one.lineage.above[SURE] for one in resiliences if one.lineage is not None), default=plain)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("sequester-demo"),
    rows: Annotated[int, typer.Option(min=1, help="How many invented people there are in all.")] = 3000,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The same seed gives the same releases.")] = 1,
) -> None:
    """Invent a hospital, publish its patients of five years, and show who is exposed and what safety costs.

    Patients come, leave, return, move and grow older; the diagnosis with which they came first stays.

    An earlier demo in the same folder is replaced.
    """
    if out.exists() and not _is_demo(out):
        raise typer.BadParameter(f"{out} exists and is no earlier demo; --out names another folder", param_hint="--out")

    from sequester.datasets import hospital_panel, hospital_panel_policy
    from sequester.policy import Policy
    from sequester.publish.files import write_file, write_text

    if out.exists():
        shutil.rmtree(out)
    tables = hospital_panel(rows, releases=TIMES, seed=seed)
    rules = hospital_panel_policy()
    resilient = re.sub(r"decoys: 0\.05 ", "decoys: 0.25 ", rules).replace(
        "  against:", "  lineage: 5                        # at most 5 people hang together\n  against:"
    )
    write_text(out / MARK, "Made by `sequester demo`, which replaces this folder when run again.\n")
    write_text(out / RULES, rules)
    write_text(out / RESILIENT / RULES, resilient)
    for number, table in enumerate(tables, start=1):
        write_file(table, out / TABLES / f"{number}.csv")
    with progress() as tell:
        tell("naive releases", 0, 4)
        naive = _publish_naively(out, Policy.load(out / RULES), seed=seed)
    _show_naive(naive.audits[-1], tables)
    with progress() as tell:
        pods, held = (
            _publish_safely(out, place, Policy.load(place / RULES), seed=seed, progress=tell)
            for place in (out, out / RESILIENT)
        )
    _show_safe(naive, pods, held)
    files = {
        TABLES: "the private tables",
        RULES: "what is promised about them",
        NAIVE: "published without a memory",
        RELEASES: "published by pods: data, measures and a report each",
        LEDGER: "what the world already knows; with its key, private",
        RESILIENT: "the second series",
    }
    console().print(grid([(out / name, what) for name, what in files.items()]))


def _is_demo(folder: Path) -> bool:
    """Whether a folder holds what this command writes and nothing else."""
    files = [str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()]
    return MARK in files and all(_OURS.fullmatch(file) for file in files)


def _publish_naively(out: Path, policy: Policy, *, seed: int) -> Shown:
    """Every table anonymized on its own, as tools without a memory do, and what an insider makes of all so far."""
    from pydantic import TypeAdapter

    from sequester.attacks.audit import audit
    from sequester.policy.methods import MethodOptions
    from sequester.publish.anonymize import anonymize
    from sequester.publish.files import write_file

    alone = policy.model_copy(update={"method": TypeAdapter(MethodOptions).validate_python(ALONE)})
    known: list[pa.Table] = []
    told = Shown([], [], [])
    for number in range(1, TIMES + 1):
        release = anonymize(out / TABLES / f"{number}.csv", alone, seed=seed + number)
        write_file(release.table, out / NAIVE / f"{number}.csv")
        known.append(release.with_people())
        told.loss.append(release.loss["ail"])
        told.audits.append(audit(known, alone, against=["insider"], belief=True))
    return told


def _publish_safely(out: Path, place: Path, policy: Policy, *, seed: int, progress: Any) -> Shown:
    """The same tables as a series, in a place of its own, and what an insider makes of all so far."""
    from sequester.ledger import Key, Place
    from sequester.publish.series import Series

    # Everybody is invented: the demo may be repeated by anybody. A real series draws its key and its seeds.
    if Key.find(place / LEDGER) is None:
        Key.make(Place.of(place / LEDGER).key, f"everybody in the demo of seed {seed} is invented")
    series = Series.open(place / LEDGER, policy)
    told = Shown([], [], [])
    for number in range(1, TIMES + 1):
        own = 1 << 63 | seed
        plan = series.plan(out / TABLES / f"{number}.csv", name=f"release-{number}", seed=own, progress=progress)
        series.publish(plan)
        told.plans.append(plan)
        told.loss.append(plan.loss["release"]["ail"])
        told.audits.append(series.audit(belief=True))
    return told


def _show_naive(audit: Audit, tables: list[pa.Table]) -> None:
    named = {
        person: name
        for table in tables
        for person, name in zip(table["patient_id"].to_pylist(), table["name"].to_pylist(), strict=True)
    }
    sizes = ", ".join(f"{table.num_rows:,}" for table in tables)
    line(
        f"A hospital's patients year by year: {sizes}, {len(named):,} people in all, everybody invented. They come, "
        "leave, return, move and grow older; the diagnosis with which they came first stays. Their table is published "
        "each year, k = 5 and no diagnosis more certain than 50%.",
        wrap=True,
    )
    line()
    line(("Without a memory", "bold"), " each release keeps its promise. Together they do not:")
    counts = Counter(finding.attack for finding in audit.findings)
    works = ", ".join(f"{attack} ({counts[attack]:,})" for attack in audit.tried if counts[attack]) or "none"
    examples = _examples(audit)
    exposed = f". {str(audit.exposed).rstrip('.')}, of {len(named):,}.{' For example:' if examples else ''}"
    line("  attacks that work: ", (works, "bold red"), exposed, wrap=True)
    for finding in examples:
        told = finding.witness
        line(
            "  ",
            (f"{named[finding.people[0]]} has {finding.value}", "bold red"),
            f": everybody else in {_classes(told['from'])} of release {told['from_release']} is in "
            f"{_classes(told['minus'])} of release {told['minus_release']} too, where {finding.value} stands "
            "once less.",
            wrap=True,
        )
    line()


def _examples(audit: Audit) -> list[Finding]:
    """Findings about one certain person each, the easiest to check by hand first."""
    certain = [
        finding
        for finding in audit.findings
        if finding.attack == "difference"
        and finding.about_value
        and len(finding.people) == 1
        and finding.observed == 1
        and "minus" in finding.witness
    ]
    chosen: dict[Any, Finding] = {}
    for finding in sorted(certain, key=lambda one: (one.value in HARMLESS, len(one.classes))):
        chosen.setdefault((finding.people, finding.value), finding)
    return list(chosen.values())[:EXPOSED]


def _classes(numbers: list[int]) -> str:
    return f"class {numbers[0]}" if len(numbers) == 1 else f"classes {', '.join(map(str, numbers))}"


def _show_safe(naive: Shown, pods: Shown, resilient: Shown) -> None:
    from sequester.report.blocks import Grid

    line(
        ("By pods", "bold"),
        " everybody is in every release at once, and no class tells who of a pod has which of its values:",
    )
    ways = (("alone\nread", "\nloss"), ("pods\nread", "\nloss", "\ndecoys"), ("few\nread", "\nloss", "\ndecoys"))
    heads = (*(f"\n{one}" for one in ("year", "people", "came", "left", "back")), *(one for way in ways for one in way))
    rows = []
    for place, plan in enumerate(pods.plans):
        change = plan.change
        people = (plan.number, plan.people, change.newcomers, change.leavers, change.returned)
        rows.append((*people, *(cell for told in (naive, pods, resilient) for cell in _cells(told, place))))
    show([Grid(heads, tuple(rows), "Who is exposed, and what that costs")])
    line(
        "alone: without a memory. few: pods with few links, protect.lineage 5. read: people of whose diagnosis a "
        "reader of all releases so far is more than 90% sure, who knows who is in which class and no value. loss: "
        "average information loss (AIL) of people. decoys: rows about nobody.",
        style="dim",
        wrap=True,
    )
    for what, told in (("alone", naive), ("pods", pods), ("few", resilient)):
        audit, (plain, all_told) = told.audits[-1], told.spreads()
        verdict = ("nothing that was tried works", "bold green")
        if not audit.holds:
            verdict = (str(audit.exposed).rstrip("."), "bold red")
        more = f" ({all_told:.0%} if she is told all pods, too)" if told.plans else ""
        known = f". Who knows the diagnoses of {KNOWN:.0%} of the people reads {plain:.0%} of the others{more}."
        line(f"audit, {what}: ", verdict, known, wrap=True)
    line()


def _cells(told: Shown, place: int) -> tuple[str, ...]:
    decoys = [f"{told.plans[place].decoys / told.plans[place].records:.1%}"] if told.plans else []
    return f"{told.read(place):.1%}", f"{told.loss[place]:.2f}", *decoys
