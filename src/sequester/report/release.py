"""The public report of one release: what is promised, what was tried, what it cost, in words and pictures.

Nothing in it is computed from other rows than the published ones, so that it tells nothing that they do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sequester.report import parts
from sequester.report.blocks import Block, Cards, Grid, Heading, Paragraph, Pictures, Remark, to_page
from sequester.report.parts import Told

if TYPE_CHECKING:
    from sequester.metrics.placed import BoxMap
    from sequester.policy.model import Policy

LOSSES = {
    "ail": "average information loss per record (AIL), summed over the quasi-identifiers",
    "ncp": "normalized certainty penalty (NCP), 0 to 1",
    "dm": "discernibility",
    "dm_normalized": "discernibility, 0 to 1",
    "class_size": "average class size",
    "precision": "precision, 1 is exact",
}
_LEAKS = (
    "This release was published although attacks work on it together with the releases before: what is marked broken "
    "below does not hold."
)
_DECOYS = (
    "Some rows are decoys: they are about nobody, and nobody can tell which. They stand in where people are missing, "
    "so that values hide each other and nobody has to wait. {share:.1%} of the rows are decoys, so a row stands for "
    "{weight:.4g} people, whichever it is. What is counted in this report are rows."
)


def release_page(
    facts: Mapping[str, Any], policy: Policy, *, told: Sequence[Told] = (), boxes: BoxMap | None = None
) -> str:
    """The page of a release, from what its `release.json` says and its policy.

    told    releases so far, this one last; none where nothing is to be drawn
    boxes   of this release over those of the one before
    """
    blocks = release_blocks(facts, policy, told=told, boxes=boxes)
    data = facts.get("data", "data")
    # Of several files release.json has the digests.
    digest = None if isinstance(data, list) else facts.get("digests", {}).get(data)
    made = f"Made with Sequester {facts['sequester']}."
    return to_page(title_of(facts), blocks, foot=f"{made} SHA-256 of the data: {digest}" if digest else made)


def title_of(facts: Mapping[str, Any]) -> str:
    """What a release is called."""
    number = facts.get("number")
    return f"{facts['series']}, release {number}: {facts['name']}" if number else str(facts["series"])


def release_blocks(
    facts: Mapping[str, Any], policy: Policy, *, told: Sequence[Told] = (), boxes: BoxMap | None = None
) -> list[Block]:
    """The report of a release; see `release_page`."""
    blocks: list[Block] = [Heading(title_of(facts), 1), Paragraph(_lead(facts), lead=True)]
    if not facts["holds"]:
        blocks.append(Remark(_LEAKS, "bad"))
    blocks += [_cards(facts), *parts.promised(policy), *parts.tried(facts)]
    if "weight" in facts:
        weight = facts["weight"]
        blocks += [Heading("Decoys"), Paragraph(_DECOYS.format(share=1 - weight, weight=weight))]
    if told:
        blocks += _pictures(told, boxes)
    blocks += _cost(facts)
    return [*blocks, *parts.columns(policy, [column["name"] for column in facts["columns"]])]


def _lead(facts: Mapping[str, Any]) -> str:
    words = "An anonymized table about people"
    if facts.get("recipient"):
        words += f", for {facts['recipient']}"
    words += f". Purpose: {facts['purpose']}. " if facts.get("purpose") else ". "
    number = facts.get("number") or 1
    series = f"It is release {number} of its series" if facts.get("number") else "It stands by itself"
    when = f", published on {facts['date']}" if facts.get("date") else ""
    return f"{words}{series}{when}, made by method {facts['method']['name']}."


def _cards(facts: Mapping[str, Any]) -> Cards:
    figures: list[tuple[Any, str]] = [
        (facts["records"], "rows"),
        (facts.get("people"), "people"),
        (facts["classes"], "classes"),
        (facts["k"], "fewest rows in a class"),
        (facts.get("fewest_people"), "people in every class, or more"),
        (facts["confidence"], "largest confidence in one release"),
        (facts["loss"].get("ncp"), "loss (NCP, 0 to 1)"),
    ]
    if "weight" in facts:
        figures.append((f"{1 - facts['weight']:.1%}", "of the rows are decoys"))
    return Cards(tuple(figures))


def _pictures(told: Sequence[Told], boxes: BoxMap | None) -> list[Block]:
    now, before = told[-1].sketch, told[-2].name if len(told) > 1 else ""
    found = [*parts.margins(told)]
    blocks: list[Block] = []
    if found:
        blocks += [Heading("How much room is left"), Pictures(tuple(found))]
    if now is None:
        return blocks
    shape = [parts.sizes(now), *([parts.rows_of(told)] if len(told) > 1 else [])]
    blocks += [Heading("Classes"), Pictures(tuple(shape))]
    if boxes is not None and now.boxes is not None:
        picture = parts.mapped(boxes, len(now.boxes.boxes), now.boxes.of, f"release before: {before}")
        blocks += [Heading("Boxes"), Pictures((picture,))]
    if spread := tuple(parts.spread(now)):
        blocks += [Heading("What the table shows"), Pictures(spread)]
    lost = parts.losses(told)
    return [*blocks, Heading("What it cost"), *([] if lost is None else [Pictures((lost,))])]


def _cost(facts: Mapping[str, Any]) -> list[Block]:
    note = "Measured on the published table alone, against the values that the policy and the table itself show."
    rows = tuple((LOSSES.get(name, name), value) for name, value in facts["loss"].items())
    return [Paragraph(note, lead=True), Grid(("measure", "reached"), rows, "Loss of the whole table")]
