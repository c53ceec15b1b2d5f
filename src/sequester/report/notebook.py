"""What a notebook shows of an object: blocks of the report, in a frame that changes nothing around it.

Objects of rooms above and beside this one are known by the name of their class and by what they say themselves. Of
plans, releases, series and measurements only counts are shown; audits and findings are private by nature, and say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sequester.attacks.exposed import is_certain
from sequester.errors import SequesterError
from sequester.policy.words import amount
from sequester.report.blocks import Block, Bullets, Cards, Grid, Heading, Paragraph, Pictures, Remark, to_view
from sequester.report.canvas import in_words
from sequester.report.charts import Trend, bars, lines

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.attacks.finding import Finding
    from sequester.ledger.state import Entry
    from sequester.metrics.measure import Measurement
    from sequester.policy.model import Policy
    from sequester.publish.plan import Plan
    from sequester.publish.release import Release
    from sequester.publish.series import Series

_CHANGES = {
    "newcomers": "newcomers",
    "returned": "returned",
    "stayers": "stayed",
    "changed": "of whom cells changed",
    "leavers": "left",
}
_WAITING = {
    "held": "are not published yet",
    "retained": "left, and are kept for now",
    "left_out": "records left out",
}
_LOSSES = {"ncp": "NCP", "ail": "AIL"}
_OF = {"release": "this release", "static": "each table on its own (unsafe)", "merge": "only merging"}
# Findings that a notebook names; the others are in the table of findings.
_NAMED = 10


def view(thing: object) -> str:
    """HTML for a notebook."""
    return to_view(blocks(thing))


def blocks(thing: object) -> list[Block]:
    """The blocks of anything that has a view."""
    maker = next(_VIEWS[kind.__name__] for kind in type(thing).__mro__ if kind.__name__ in _VIEWS)
    return list(maker(thing))


def _policy(policy: Policy) -> Iterator[Block]:
    from sequester.policy.describe import notes, promises, treatment, unpromised

    yield Heading(f"Policy of {policy.series}", 1)
    yield Grid(
        ("promise", "about", "against"),
        tuple((one.words, one.about, one.against) for one in promises(policy)),
        f"What {policy.series} promises",
    )
    yield Heading("Not promised", 2)
    yield Bullets(tuple(unpromised(policy)))
    yield Heading("Columns", 2)
    person = () if policy.person is None else ((policy.person, "person", "never published"),)
    columns = [(name, one.role, treatment(one)) for name, one in policy.attributes.items()]
    yield Grid(("column", "role", "what happens to it"), (*person, *columns), f"Columns of {policy.series}")
    yield from _said(notes(policy))


def _series(series: Series) -> Iterator[Block]:
    yield Heading(f"Series {series.policy.series}", 1)
    try:
        entries = series.releases()
    except SequesterError as error:
        # Another command may have the ledger: a view says so, and is no error.
        yield Paragraph(f"The ledger cannot be read now: {error}")
        return
    if not entries:
        yield Paragraph("Nothing was published yet.")
        return
    yield Cards(((len(entries), "releases"), (entries[-1].persons, "people ever published")))
    heads = ("release", "recorded", "method", "rows", "classes", "for")
    yield Grid(heads, tuple(_published(one) for one in entries), f"Releases of {series.policy.series}")
    if len(entries) > 1:
        names = [one.name for one in entries]
        rows = [Trend("rows", [one.records for one in entries])]
        yield Pictures((lines("Rows over releases", names, rows),))


def _published(entry: Entry) -> tuple[Any, ...]:
    to = ", ".join(filter(None, (entry.recipient, entry.purpose)))
    return entry.folder, entry.created[:10], entry.method, entry.records, entry.classes, to


def _plan(plan: Plan) -> Iterator[Block]:
    yield Heading(f"Plan of {plan.folder} of {plan.series}", 1)
    if not plan.holds:
        yield Remark(f"{amount(plan.findings, 'attack')} would work on the series with this release.", "bad")
    by_pods = plan.pods is not None
    yield Cards(
        (
            (plan.records, "rows"),
            (plan.people if by_pods else None, "people"),
            (plan.decoys if by_pods else None, "decoys"),
            (plan.classes, "classes"),
            (None if plan.pods is None else plan.pods.fewest, "fewest people in a class"),
            *((number, _CHANGES[name]) for name, number in vars(plan.change).items() if number),
            *((number, _WAITING[name]) for name, number in vars(plan.waiting).items() if number and name in _WAITING),
        )
    )
    yield from _checks(plan)
    yield from _prices(plan.loss, plan.estimated)
    if plan.why:
        yield Grid(
            ("why", "keys"), tuple((str(one), ", ".join(one.keys)) for one in plan.why), "Why it is less than the table"
        )
    yield from _left(plan.untried)
    yield from _said(plan.notes)


def _checks(plan: Plan) -> Iterator[Block]:
    rows = [
        (one.attack, one.about, one.adversary, one.required, one.reached, "kept" if one.holds else "broken")
        for one in plan.checks
    ]
    if rows:
        heads = ("attack", "about", "against", "required", "reached", "result")
        yield Grid(heads, tuple(rows), f"What the audit of plan {plan.folder} tried")


def _prices(loss: Mapping[str, Mapping[str, float]], estimated: Collection[str]) -> Iterator[Block]:
    """What is lost, beside what other ways would lose; one picture per measure."""
    pictures = []
    for metric, title in _LOSSES.items():
        of = {
            _OF.get(which, which) + (", estimated" if which in estimated else ""): values[metric]
            for which, values in loss.items()
            if metric in values
        }
        if of:
            pictures.append(bars(f"What is lost ({title})", list(of), {title: list(of.values())}, head="of"))
    if pictures:
        yield Pictures(tuple(pictures))


def _release(release: Release) -> Iterator[Block]:
    facts = release.facts
    number = f", release {facts['number']}: {facts['name']}" if "number" in facts else ""
    title = f"{release.policy.series}{number}"
    yield Heading(title, 1)
    if not release.holds:
        yield Remark("What is marked broken below does not hold.", "bad")
    yield from _measured(release.measurement, title)
    checks = [one for one in facts.get("checks", ()) if one["about"] == "the series"]
    if checks:
        yield Heading("This and all earlier releases together", 2)
        heads = ("attack", "against", "required", "reached", "result")
        rows = [
            (one["attack"], one["adversary"], one["required"], one["reached"], "kept" if one["holds"] else "broken")
            for one in checks
        ]
        yield Grid(heads, tuple(rows), f"What the audit tried of {title}")


def _measurement(measurement: Measurement) -> Iterator[Block]:
    yield Heading("Measured", 1)
    yield from _measured(measurement, "this table")


def _measured(measurement: Measurement, title: str) -> Iterator[Block]:
    yield Cards(
        (
            (measurement.records, "rows"),
            (measurement.people, "people"),
            (measurement.classes, "classes"),
            (measurement.k, "fewest rows in a class"),
            (measurement.fewest_people, "fewest people in a class"),
            (measurement.confidence, "largest share of a value"),
        )
    )
    rows = [
        (
            f"{one.promise}{f' ({one.view})' if one.view else ''}",
            one.required,
            one.observed,
            "kept" if one.holds else "broken",
        )
        for one in measurement.promises
    ]
    if rows:
        yield Grid(("promise", "required", "reached", "result"), tuple(rows), f"What is promised of {title}")
    yield Grid(("loss", "number"), tuple(measurement.loss.items()), f"What was lost by {title}")


def _audit(audit: Audit) -> Iterator[Block]:
    from sequester.attacks.explain import headline
    from sequester.report.audit_page import PRIVATE, exposed_blocks

    *undecided, exposed = audit.verdict.splitlines()
    yield from (Remark(line, "bad") for line in undecided)
    yield Heading(exposed, 1)
    if audit.findings:
        yield Remark(PRIVATE, "private")
    yield from exposed_blocks(audit)
    if audit.findings:
        yield Heading("The worst findings", 2)
        yield Bullets(tuple(f"{number}. {headline(audit.findings[number - 1])}" for number in audit.worst(_NAMED)))
        yield Paragraph(
            "`audit.explain(1)` tells one as a story, `audit.findings_table()` has all of them, and `audit.report()` "
            "is the page with what to do.",
            lead=True,
        )
    yield from _left(audit.untried)


def _finding(finding: Finding) -> Iterator[Block]:
    from sequester.attacks.explain import headline
    from sequester.report.audit_page import PRIVATE

    yield Heading(headline(finding), 1)
    yield Remark(PRIVATE, "private")
    facts = {
        "attack": finding.attack,
        "adversary": finding.adversary,
        "releases": ", ".join(map(str, finding.releases)),
        "about": finding.attribute or "",
        "value": finding.value or "who they are",
        "required": finding.required,
        "reached": finding.observed,
        "certain": is_certain(finding),
        "people": len(finding.people),
        "classes": ", ".join(f"{number} of release {release}" for release, number in finding.classes),
    }
    witness = {name: json.dumps(value, ensure_ascii=False, default=str) for name, value in finding.witness.items()}
    yield Grid(("what", "is"), tuple((name, in_words(value)) for name, value in facts.items()), "The finding")
    if witness:
        yield Heading("Witness, to check by hand", 2)
        yield Grid(("what", "is"), tuple(witness.items()), "Witness")


def _left(untried: Iterable[object]) -> Iterator[Block]:
    said = tuple(map(str, untried))
    if said:
        yield Heading("Not tried, and so not promised", 2)
        yield Bullets(said)


def _said(notes: Iterable[str]) -> Iterator[Block]:
    told = tuple(notes)
    if told:
        yield Heading("Notes", 2)
        yield Bullets(told)


_VIEWS: Mapping[str, Callable[[Any], Iterator[Block]]] = {
    "Audit": _audit,
    "Finding": _finding,
    "Measurement": _measurement,
    "Plan": _plan,
    "Policy": _policy,
    "Release": _release,
    "Series": _series,
}
