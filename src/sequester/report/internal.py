"""The report of a release for whoever publishes it: people, waiting, budgets, findings. Private, as the ledger is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sequester.policy.words import people, percent
from sequester.report import parts
from sequester.report.audit_page import story_blocks
from sequester.report.blocks import Block, Bullets, Cards, Grid, Heading, Paragraph, Pictures, Remark, to_page
from sequester.report.canvas import Picture
from sequester.report.charts import Trend, bars, lines
from sequester.report.charts_boxes import heat
from sequester.report.charts_flow import Stage, flow
from sequester.report.parts import Told

if TYPE_CHECKING:
    from sequester.attacks.explain import Story
    from sequester.attacks.exposed import Exposed
    from sequester.metrics.placed import BoxMap
    from sequester.policy.model import Policy

PRIVATE = "Internal: keep private. This page counts people, and what it says is not in the published table."
_VERSIONS = {"release": "as published", "static": "without a memory (unsafe)", "merge": "by merge (Byun et al.)"}


@dataclass(frozen=True)
class Findings:
    """What an audit of everything published found: the sentence it begins with, and stories of the worst."""

    exposed: Exposed
    verdict: str
    stories: Sequence[Story] = ()
    others: int = 0


@dataclass(frozen=True)
class Naive:
    """What the same tables would have told without a memory: people exposed per attack, after each release.

    `why` says why it is not known, where it is not.
    """

    names: Sequence[str] = ()
    exposed: Sequence[Exposed] = ()
    why: str = ""


@dataclass(frozen=True)
class Inside:
    """Everything that the internal report of a release says.

    facts      of the release: series, number, name, recipient, purpose, created, method, rows, people, classes
    summaries  what the ledger keeps of each release so far
    stages     how people came and left
    worst      (class, rows, width, box) of the classes with the widest boxes; `quasi` names the sides of boxes
    waited     (releases, people): for how long those wait who wait now
    compared   per column, value by value, rows before and after
    """

    facts: Mapping[str, Any]
    policy: Policy
    told: Sequence[Told]
    summaries: Sequence[Mapping[str, Any]]
    stages: Sequence[Stage]
    worst: Sequence[tuple[int, int, float, Sequence[str]]]
    quasi: Sequence[str]
    findings: Findings
    boxes: BoxMap | None = None
    waited: Sequence[tuple[int, int]] = ()
    compared: Mapping[str, tuple[Sequence[str], Sequence[float], Sequence[float]]] = field(default_factory=dict)
    naive: Naive | None = None
    notes: Sequence[str] = ()


def internal_page(inside: Inside) -> str:
    """The page."""
    facts = inside.facts
    title = f"{facts['series']}, release {facts['number']}: {facts['name']} (internal)"
    return to_page(title, internal_blocks(inside), foot=f"Made with Sequester {facts['sequester']}. Keep private.")


def internal_blocks(inside: Inside) -> list[Block]:
    """The report."""
    facts = inside.facts
    blocks: list[Block] = [
        Heading(f"{facts['series']}, release {facts['number']}: {facts['name']}", 1),
        Remark(PRIVATE, "private"),
        Cards(
            (
                (facts["people"], "people"),
                (facts["rows"], "rows"),
                (facts["classes"], "classes"),
                ((inside.summaries[-1].get("pods") or {}).get("fewest"), "fewest people in a class"),
                (inside.findings.exposed.total.people, "people exposed by all releases together"),
                (facts["loss"], "loss of people (NCP, 0 to 1)"),
            )
        ),
        Heading("This release"),
        Grid(("", ""), tuple(_about(facts)), "About this release"),
        *_found(inside.findings),
        *_without_memory(inside.naive),
        *_tried(inside),
        *_people(inside),
        *_budgets(inside),
        *_worst_off(inside),
        *_pictures(inside),
        *parts.promised(inside.policy),
    ]
    if inside.notes:
        blocks += [Heading("Notes"), Bullets(tuple(inside.notes))]
    return blocks


def _about(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in ("recipient", "purpose", "created", "method"):
        if facts.get(name):
            yield {"created": "recorded"}.get(name, name), facts[name]
    for name, figures in facts.get("belief", {}).items():
        said = f"{percent(figures['most'])} at most, by all releases; {people(figures['beyond'])} above the bound"
        yield f"belief in a value of {name}", said


def _found(findings: Findings) -> Iterator[Block]:
    yield Heading("Who is exposed")
    yield Paragraph(f"By everything published so far: {_within(findings.verdict)}")
    rows = tuple((what, which, tally.people, tally.certain) for what, which, tally in findings.exposed.groups())
    if rows:
        yield Grid(("per", "", "people", "for certain"), rows, "Who is exposed by all releases together")
    for number, story in enumerate(findings.stories, start=1):
        yield Heading(f"Finding {number}: {story.headline}", 3)
        yield from story_blocks(story, number)
    if findings.others:
        yield Paragraph(f"There are {findings.others:,} more; `sequester audit` has them all.", lead=True)


def _within(said: str) -> str:
    """A sentence behind a colon."""
    return f"{said[:1].lower()}{said[1:]}"


def _without_memory(naive: Naive | None) -> Iterator[Block]:
    yield Heading("What the same tables would tell without a memory")
    if naive is None:
        yield Paragraph(
            "Not tried: it takes the tables themselves. Name them in order with --data, and each is anonymized on its "
            "own and all are audited together.",
            lead=True,
        )
        return
    if naive.why:
        yield Paragraph(f"Not known: {naive.why}", lead=True)
        return
    yield Paragraph(
        f"Each table anonymized on its own, as tools without a memory do it: {_within(str(naive.exposed[-1]))}"
    )
    attacks = list(dict.fromkeys(name for one in naive.exposed for name in one.by_attack))
    if attacks:
        counts = [
            [one.by_attack[name].people if name in one.by_attack else 0 for one in naive.exposed] for name in attacks
        ]
        note = "After each release, by all of them together; one person may be exposed by several attacks."
        yield Pictures((heat("People exposed per attack", attacks, naive.names, counts, head="attack", note=note),))


def _tried(inside: Inside) -> Iterator[Block]:
    yield Heading("What was tried")
    rows = tuple(
        (parts.left_to(c), c["required"], c["reached"], c.get("margin"), "kept" if c["holds"] else "broken")
        for c in inside.told[-1].checks
    )
    heads = ("what is left to an adversary", "required", "reached", "margin", "")
    yield Grid(heads, rows, "Attacks that were tried")
    found = tuple(parts.margins(inside.told))
    if found:
        yield Pictures(found)


def _people(inside: Inside) -> Iterator[Block]:
    yield Heading("People")
    pictures: list[Picture] = [flow("People between releases", inside.stages, note="Without decoys.")]
    names = [one.name for one in inside.told]
    waiting = [summary.get("waiting", {}) for summary in inside.summaries]
    words = {"held": "held back", "retained": "left, and kept in the release", "left_out": "left out"}
    trends = [
        Trend(word, [some.get(name, 0) for some in waiting])
        for name, word in words.items()
        if any(some.get(name) for some in waiting)
    ]
    if trends:
        pictures.append(lines("People who cannot be hidden yet", names, trends))
    yield Pictures(tuple(pictures))
    if not trends:
        yield Paragraph("Nobody waits, and nobody who left is kept.")
    if inside.waited:
        rows = tuple((age, people) for age, people in inside.waited)
        yield Grid(("releases waited", "people"), rows, "For how long people wait")


def _budgets(inside: Inside) -> Iterator[Block]:
    protect = inside.policy.protect
    rows: list[tuple[Any, ...]] = []
    names = [one.name for one in inside.told]
    figures = [summary.get("pods") or {} for summary in inside.summaries]
    pictures = []
    if any(figures):
        shares = [
            some["decoys"] / max(one.rows, 1) if some else None for some, one in zip(figures, inside.told, strict=True)
        ]
        last = figures[-1]
        rows.append(("decoys, share of rows", inside.policy.decoys, shares[-1], "beyond those that promises need"))
        rows.append(("decoys that promises need", None, last.get("needed"), "rows"))
        rows.append(("decoys of all releases", None, last.get("ever"), "rows about nobody, ever"))
        beyond = sum(one["beyond"] for one in (last.get("shares") or {}).values())
        rows.append(("values with other shares", None, beyond, "further off than `distortion` of the policy"))
        rows.append(("largest lineage", inside.policy.linked, last.get("largest"), "people whose values hang together"))
        allowed = Trend("at most, beyond those needed", [inside.policy.decoys] * len(names), required=True)
        if len(names) > 1:
            pictures.append(lines("Decoys, share of rows", names, [Trend("decoys", shares), allowed]))
            largest = [some.get("largest") for some in figures]
            limit = Trend("at most", [inside.policy.linked] * len(names), required=True)
            pictures.append(lines("Largest lineage, people", names, [Trend("largest", largest), limit]))
    if protect.lifetime is not None and protect.lifetime.releases is not None:
        rows.append(("releases over a lifetime", protect.lifetime.releases, len(names), "planned for, and published"))
    if rows:
        yield Heading("Budgets")
        yield Grid(("budget", "at most", "used", "what it is"), tuple(rows), "Budgets and what is used of them")
        yield from [Pictures(tuple(pictures))] if pictures else []


def _worst_off(inside: Inside) -> Iterator[Block]:
    if not inside.worst:
        return
    yield Heading("Worst-off groups")
    yield Paragraph("The classes with the widest boxes: least can be said about their people.", lead=True)
    rows = tuple((number, rows, width, *box) for number, rows, width, box in inside.worst)
    yield Grid(("class", "rows", "width, 0 to 1", *inside.quasi), rows, "Classes with the widest boxes")


def _pictures(inside: Inside) -> Iterator[Block]:
    told, names = inside.told, [one.name for one in inside.told]
    yield Heading("What it cost")
    found = [parts.losses(told), _prices(names, inside.summaries)]
    yield Pictures(tuple(picture for picture in found if picture is not None))
    now = told[-1].sketch
    if now is not None:
        yield Heading("Classes and boxes")
        shape = [parts.sizes(now)]
        if inside.boxes is not None and now.boxes is not None:
            before = f"release before: {told[-2].name}" if len(told) > 1 else ""
            shape.append(parts.mapped(inside.boxes, len(now.boxes.boxes), now.boxes.of, before))
        yield Pictures(tuple(shape))
    if inside.compared:
        yield Heading("Before and after")
        decoys = " Those of decoys are among them." if (inside.summaries[-1].get("pods") or {}).get("decoys") else ""
        note = f"Rows of the table, and of the release spread evenly over their boxes.{decoys}"
        yield Pictures(
            tuple(
                bars(name, labels, {"before": before, "after": after}, note=note)
                for name, (labels, before, after) in inside.compared.items()
            )
        )
    elif now is not None:
        yield Heading("What the release shows")
        yield Pictures(tuple(parts.spread(now)))


def _prices(names: Sequence[str], summaries: Sequence[Mapping[str, Any]]) -> Picture | None:
    """Loss of every release beside what it would have been otherwise."""
    losses = [summary.get("loss", {}) for summary in summaries]
    found = {
        word: [some.get(version, {}).get("ncp") for some in losses]
        for version, word in _VERSIONS.items()
        if any(version in some for some in losses)
    }
    if not found:
        return None
    guessed = any({*_VERSIONS} & {*summary.get("estimated", ())} for summary in summaries)
    note = "What other ways would lose is an estimate where the table is large." if guessed else ""
    if len(names) == 1:
        columns = {"NCP": [values[0] for values in found.values()]}
        return bars("Loss beside other ways", list(found), columns, head="way", note=note)
    trends = [Trend(name, values) for name, values in found.items()]
    return lines("Loss beside other ways", names, trends, note=f"NCP. {note}".strip())
