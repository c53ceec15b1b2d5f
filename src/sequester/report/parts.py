"""Parts that reports share: what is promised, what was tried, what it cost, and the pictures of releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sequester.attacks.registry import attack_of
from sequester.policy.describe import treatment, unpromised
from sequester.policy.words import listed
from sequester.report.blocks import Block, Bullets, Grid, Heading, Paragraph
from sequester.report.canvas import Picture
from sequester.report.charts import Trend, bars, histogram, lines
from sequester.report.charts_boxes import box_map, heat
from sequester.report.results import promised_blocks

if TYPE_CHECKING:
    from sequester.metrics.placed import BoxMap
    from sequester.metrics.sketch import Sketch
    from sequester.policy.model import Policy

# More lines than this cannot be told from each other.
_LINES = 8


@dataclass(frozen=True)
class Told:
    """One release of a series, as a report draws it: its checks as plain values, and what its table looks like.

    `sketch` is None of releases whose ledger did not keep it yet.
    """

    number: int
    name: str
    rows: int
    checks: Sequence[Mapping[str, Any]] = ()
    sketch: Sketch | None = None


def promised(policy: Policy) -> Iterator[Block]:
    """What is promised to a person, against whom; what is not; and which values count as no secret."""
    yield Heading("What is promised to a person in this table")
    known = f"Somebody may know {listed(tuple(policy.quasi_identifiers))} of a person (the quasi-identifiers)"
    hidden = f", and {listed(tuple(policy.sensitive))} must not be learnt" if policy.sensitive else ""
    yield Paragraph(
        f"{known}{hidden}. Each sentence below was tried on exactly these rows before anybody could see them; what was "
        "required and what was reached stands under What was tried."
    )
    yield from promised_blocks(policy)
    yield Heading("What is not promised")
    yield Bullets(tuple(unpromised(policy)))
    ordinary = {name: one.ordinary for name, one in policy.sensitive.items() if one.ordinary}
    if ordinary:
        yield Heading("Ordinary values: no secret, and not protected as one", 3)
        yield Paragraph(
            "Whoever publishes this table has declared that it harms nobody if it is known that a person has one of "
            "these; how surely that can be told is not bounded."
        )
        yield Bullets(tuple(f"{name}: {listed(values)}" for name, values in ordinary.items()))


def tried(facts: Mapping[str, Any]) -> Iterator[Block]:
    """What was tried and what it reached, and what was not."""
    yield Heading("What was tried")
    alone = facts.get("promises") or ()
    if alone:
        yield Paragraph("On this release by itself.", lead=True)
        rows = [(_about_view(one), one["required"], one["observed"], _mark(one["holds"])) for one in alone]
        yield Grid(("promise", "required", "reached", ""), tuple(rows), "Promises about this release by itself")
    series = [check for check in facts.get("checks", ()) if check["about"] == "the series"]
    if series:
        yield Paragraph("On this and all earlier releases together.", lead=True)
        found = tuple((left_to(c), c["required"], c["reached"], _mark(c["holds"])) for c in series)
        heads = ("what is left to an adversary", "required", "reached", "")
        yield Grid(heads, found, "Attacks on all releases together")
    if facts.get("untried"):
        yield Heading("Not tried, and so not promised", 3)
        left = tuple((_named(one["attacks"], one["on"]), one["why"]) for one in facts["untried"])
        yield Grid(("attack", "why"), left, "Attacks that were not tried")


def left_to(check: Mapping[str, Any]) -> str:
    """What an attack counts, by its name and who tries it: one cell, so that figures have room on a phone."""
    return f"{attack_of(check['attack']).title} ({check['attack']}; {check['adversary']})"


def _about_view(promise: Mapping[str, Any]) -> str:
    view = promise.get("view")
    return f"{view}: {promise['promise']}" if view else str(promise["promise"])


def _named(attacks: Sequence[str], on: Sequence[str]) -> str:
    return ", ".join(attacks) + (f" (on {', '.join(on)})" if on else "")


def _mark(holds: bool) -> str:
    return "kept" if holds else "broken"


def columns(policy: Policy, names: Sequence[str]) -> Iterator[Block]:
    """What happened to every published column; a number may be two of them, its ends."""
    yield Heading("Columns")
    yield Paragraph("How to read the cells of each is in dictionary.csv, beside the data.", lead=True)
    shown = {*names, *(name.removesuffix(end) for name in names for end in ("_min", "_max"))}
    rows = tuple((name, one.role, treatment(one)) for name, one in policy.attributes.items() if name in shown)
    yield Grid(("column", "role", "what was done"), rows, "Columns and what was done to them")


def margins(told: Sequence[Told]) -> Iterator[Picture]:
    """What every attack reached beside what is required: what is counted, and what is a share."""
    for title, note, counted in (
        ("People and rows left to hide among", "Safe at or above what is required.", True),
        ("How surely a value can be told", "Safe at or below what is required.", False),
    ):
        found: dict[str, list[tuple[float | None, float | None]]] = {}
        for place, one in enumerate(told):
            for check in one.checks:
                required = check["required"]
                if required is None or (required >= 1) != counted:
                    continue
                series = found.setdefault(check["attack"], [(None, None)] * len(told))
                series[place] = (check["reached"], required)
        if found:
            yield _margin(title, note, [one.name for one in told], found)


def _margin(
    title: str, note: str, labels: Sequence[str], found: Mapping[str, Sequence[tuple[float | None, float | None]]]
) -> Picture:
    if len(labels) == 1:
        pairs = [values[0] for values in found.values()]
        both = {"reached": [pair[0] for pair in pairs], "required": [pair[1] for pair in pairs]}
        return bars(title, list(found), both, head="attack", note=note)
    reached = {name: tuple(pair[0] for pair in values) for name, values in found.items()}
    return lines(title, labels, [*_alike(reached), *_required(found)], note=note)


def _required(found: Mapping[str, Sequence[tuple[float | None, float | None]]]) -> list[Trend]:
    """What is required of every attack; by name where attacks differ, and to the end where one is tried only later."""
    needs = {name: _going_on([pair[1] for pair in values]) for name, values in found.items()}
    trends = _alike(needs, required=True)
    if len(trends) == 1:
        return [Trend("required", trends[0].values, required=True)]
    return [Trend(f"required of {one.name}", one.values, required=True) for one in trends]


def _going_on(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """What was required last holds until it is known otherwise, and what was first required did before."""
    first = next((value for value in values if value is not None), None)
    found: list[float | None] = []
    for value in values:
        found.append(value if value is not None else found[-1] if found else first)
    return tuple(found)


def _alike(found: Mapping[str, tuple[float | None, ...]], *, required: bool = False) -> list[Trend]:
    """One line for all that have the same numbers: on top of each other they would be one, without its name."""
    names: dict[tuple[float | None, ...], list[str]] = {}
    for name, values in found.items():
        names.setdefault(values, []).append(name)
    return [Trend("; ".join(same), values, required) for values, same in names.items()][:_LINES]


def rows_of(told: Sequence[Told]) -> Picture:
    """Rows of every release."""
    names = [one.name for one in told]
    return bars("Rows of every release", names, {"rows": [one.rows for one in told]}, head="release")


def sizes(sketch: Sketch) -> Picture:
    """Classes by their rows."""
    labels = [f"{low:,}" if low == high else f"{low:,}-{high:,}" for low, high, _ in sketch.sizes]
    return histogram(
        "Classes by their size",
        labels,
        [count for _, _, count in sketch.sizes],
        x_name="rows in a class",
        y_name="classes",
        note="A class is all rows that look alike in what may be known about a person.",
    )


def losses(told: Sequence[Told]) -> Picture | None:
    """What every column lost, over releases."""
    known = [(one.name, one.sketch.columns) for one in told if one.sketch is not None and one.sketch.columns]
    if not known:
        return None
    title, note = "Loss of every column", "0 is exact, 1 says nothing (NCP)."
    names = list(known[-1][1])
    if len(known) == 1:
        return bars(title, names, {"loss": [known[0][1][name] for name in names]}, head="column", note=note)
    labels = [name for name, _ in known]
    values = [[columns.get(name) for _, columns in known] for name in names]
    if len(names) > _LINES:
        return heat(title, names, labels, values, head="column", note=note)
    return lines(title, labels, [Trend(name, some) for name, some in zip(names, values, strict=True)], note=note)


def spread(sketch: Sketch) -> Iterator[Picture]:
    """How the published rows are spread over the values of every column."""
    for name, counted in sketch.spread.items():
        note = "Rows; those of a box are spread evenly over it." if name in sketch.columns else "Rows."
        if any(count is None for _, count in counted):
            note += " Where fewer than k are, nothing is drawn."
        yield bars(name, [label for label, _ in counted], {"rows": [count for _, count in counted]}, note=note)


def mapped(boxes: BoxMap, shown: int, of: int, before: str) -> Picture:
    """The boxes of a release over those of the one before."""
    some = f" {shown:,} of {of:,} different boxes are drawn." if shown < of else ""
    note = (
        "Where boxes of two releases cut each other, whoever holds both can subtract and intersect: what is left there "
        f"must still be enough people.{some}"
        if boxes.before
        else f"Every rectangle holds the rows of one or more classes.{some}"
    )
    return box_map(
        f"Boxes over {boxes.x.name} and {boxes.y.name}",
        boxes.now,
        boxes.before,
        (boxes.x, boxes.y),
        names=("this release", before),
        note=note,
    )
