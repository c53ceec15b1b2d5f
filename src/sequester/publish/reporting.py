"""Reports of releases: what is gathered for them, and where they are written."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequester.domain import notation
from sequester.errors import DataError, Problem, SequesterError
from sequester.ledger.evidence import place_of
from sequester.methods.registry import all_methods
from sequester.metrics.loss import widths
from sequester.regular import bytes_of
from sequester.report.charts_flow import Stage
from sequester.report.internal import Findings, Inside, Naive
from sequester.report.parts import Told
from sequester.report.release import release_page

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.ledger import Ledger
    from sequester.ledger.state import Entry, Memory, State
    from sequester.metrics.sketch import Sketch
    from sequester.policy.model import Policy
    from sequester.publish.release import Release


def public_page(release: Release, *, earlier: Sequence[Entry] = (), drawn: Sketch | None = None) -> str:
    """The public report of a release; `earlier` are those of its series before, `drawn` its sketch if it is known.

    It draws earlier releases that went to the same recipient, or to nobody in particular.
    """
    from sequester.metrics.placed import place_boxes
    from sequester.metrics.sketch import sketch

    facts = release.to_dict()
    # What went to somebody else is judged as if they met, but it is not for this report to tell.
    before = told_of([entry for entry in earlier if entry.recipient in (None, facts.get("recipient"))])
    now = drawn or sketch(release.table, release.policy, axes=axes_of(before))
    last = before[-1].sketch.boxes if before and before[-1].sketch is not None else None
    boxes = None if now.boxes is None else place_boxes(now.boxes, last, release.policy)
    own = Told(facts.get("number") or 1, facts.get("name") or "this release", now.rows, facts.get("checks", ()), now)
    return release_page(facts, release.policy, told=[*before, own], boxes=boxes)


def told_of(entries: Sequence[Entry]) -> list[Told]:
    """Releases of a series as a report draws them: what the ledger keeps of what was published."""
    from sequester.metrics.sketch import Sketch

    return [
        Told(
            entry.number,
            entry.name,
            entry.records,
            entry.summary.get("checks", ()),
            Sketch.from_dict(entry.summary.get("published")),
        )
        for entry in entries
    ]


def axes_of(told: Sequence[Told]) -> tuple[str, str] | None:
    """The two attributes of the last map, so that the next is of the same."""
    known = [one.sketch.boxes.axes for one in told if one.sketch is not None and one.sketch.boxes is not None]
    return known[-1] if known else None


def public_text(ledger: Ledger, number: int, folder: Path) -> str:
    """The public report of a release, if it is what was recorded."""
    entry = _entry(ledger, number)
    page = place_of(folder, ledger.series, entry) / "report.html"
    if not page.is_file():
        raise DataError(Problem("the report is not there; say where the release folders are", file=str(page)))
    text = bytes_of(page)
    recorded = entry.files.get("report.html")
    if recorded is not None and hashlib.sha256(text).hexdigest() != recorded:
        raise DataError(Problem("is not what was recorded when the release was published", file=str(page)))
    return text.decode()


def internal_text(ledger: Ledger, policy: Policy, number: int, *, tables: Sequence[Any], folder: Path) -> str:
    """The internal report of a release, from the ledger and perhaps the raw tables behind all releases so far."""
    from sequester.report.internal import internal_page

    entry = _entry(ledger, number)
    if tables and len(tables) != number:
        message = f"{len(tables):,} tables are given; give those of releases 1 to {number}, in order"
        raise DataError(Problem(message))
    published = place_of(folder, ledger.series, entry)
    found = [published / name for name in entry.files if name.startswith("data.")]
    data = found[0] if found and found[0].is_file() else None
    return internal_page(gather(ledger, policy, number, tables=tables, published=data))


def _entry(ledger: Ledger, number: int) -> Entry:
    entries = ledger.releases()
    if not 1 <= number <= len(entries):
        raise DataError(f"there is no release {number}; there are {len(entries):,} in the ledger")
    return entries[number - 1]


_STORIES, _WORST = 5, 10


def gather(
    ledger: Ledger, policy: Policy, number: int, *, tables: Sequence[Any] = (), published: Path | None = None
) -> Inside:
    """Everything the ledger knows about a release and those before it.

    tables     the raw tables of releases 1 to `number`, in order
    published  the data file of the release, to compare the last of them with
    """
    from sequester import __version__
    from sequester.metrics.placed import place_boxes
    from sequester.publish.inquiry import audit_ledger

    entries, state = ledger.releases(), ledger.load()
    entry, so_far = entries[number - 1], entries[:number]
    told = told_of(so_far)
    now, last = told[-1].sketch, told[-2].sketch if number > 1 else None
    boxes = None
    if now is not None and now.boxes is not None:
        boxes = place_boxes(now.boxes, None if last is None else last.boxes, policy)
    summaries = [one.summary for one in so_far]
    waited: list[tuple[int, int]] = []
    if number == len(entries) and len(state.queue):
        ages, people = np.unique(number + 1 - state.queue.since, return_counts=True)
        waited = list(zip(ages.tolist(), people.tolist(), strict=True))
    return Inside(
        facts={
            "series": ledger.series,
            "number": number,
            "name": entry.name,
            "recipient": entry.recipient,
            "purpose": entry.purpose,
            "created": f"{entry.created[:10]} {entry.created[11:16]} UTC",
            "method": entry.method,
            "rows": entry.records,
            "people": entry.summary.get("people"),
            "classes": entry.classes,
            "loss": entry.summary.get("loss", {}).get("release", {}).get("ncp"),
            "belief": entry.summary.get("belief", {}),
            "sequester": __version__,
        },
        policy=policy,
        told=told,
        summaries=summaries,
        stages=_stages(state, so_far),
        worst=_worst(state.releases[number - 1], state.quasi),
        quasi=state.quasi,
        findings=_findings(audit_ledger(ledger, policy)),
        boxes=boxes,
        waited=waited,
        compared=_compared(tables[-1], published, policy) if tables and published is not None else {},
        naive=_naive(tables, [one.name for one in so_far], policy) if tables else None,
        notes=list(entry.summary.get("notes", ())),
    )


def _stages(state: State, entries: Sequence[Entry]) -> list[Stage]:
    """How people came and left, release by release."""
    path = np.vstack([state.path, np.full((1, state.path.shape[1]), -1, np.int32)])
    here = path[state.trajectory[~state.decoy]] >= 0
    stages, ever = [], np.zeros(len(here), np.bool_)
    before = ever
    for place, entry in enumerate(entries):
        now = here[:, place]
        stages.append(
            Stage(
                entry.name,
                stayed=int((now & before).sum()),
                joined=int((now & ~ever).sum()),
                returned=int((now & ever & ~before).sum()),
                left=int((before & ~now).sum()),
            )
        )
        ever, before = ever | now, now
    return stages


def _worst(memory: Memory, quasi: Sequence[str]) -> list[tuple[int, int, float, list[str]]]:
    """The classes with the widest boxes, as they were published."""
    domains = [memory.domains[name] for name in quasi]
    width = widths(memory, domains) / len(domains)
    found = np.argsort(-width, kind="stable")[:_WORST]
    sides = [
        notation.write(domain, lo[found], hi[found])
        for domain, lo, hi in zip(domains, memory.lo, memory.hi, strict=True)
    ]
    return [
        (int(number) + 1, int(memory.size[number]), round(float(width[number]), 3), [side[place] for side in sides])
        for place, number in enumerate(found)
    ]


def _findings(audit: Audit) -> Findings:
    """The worst findings as stories."""
    stories = [audit.story(number) for number in audit.worst(_STORIES)]
    return Findings(audit.exposed, audit.verdict, stories, len(audit.findings) - len(stories))


def _compared(table: Any, published: Path, policy: Policy) -> dict[str, tuple[list[str], list[float], list[float]]]:
    """Rows by value of the raw table and of the release, on the same scale."""
    from sequester.ingest.published import classes_of, exact_codes, open_table, publish_domains
    from sequester.metrics.sketch import OTHERS, bars_of, largest

    if not published.is_file():
        return {}
    release, raw = open_table(published, policy), open_table(table, policy, own=True)
    domains = publish_domains(policy, release, raw)
    classes, codes = classes_of(release, domains), exact_codes(raw.quasi, domains)
    size, once = classes.size.astype(np.float64), np.ones(raw.rows)
    found = {}
    for place, (column, domain) in enumerate(zip(release.quasi, domains, strict=True)):
        before = dict(bars_of(domain, codes[place], codes[place], once))
        after = dict(bars_of(domain, classes.lo[place], classes.hi[place], size))
        names = largest({name: before[name] + after[name] for name in before})
        rows = [[float(round(some[name])) for name in names] for some in (before, after)]
        if len(names) < len(before):
            names.append(OTHERS)
            rows = [
                [*kept, float(round(sum(some.values()) - sum(kept)))]
                for kept, some in zip(rows, (before, after), strict=True)
            ]
        found[column.name] = (names, rows[0], rows[1])
    return found


def _naive(tables: Sequence[Any], names: Sequence[str], policy: Policy) -> Naive:
    """People exposed per attack if each table were anonymized on its own."""
    from sequester.policy.variation import varied
    from sequester.publish.rehearsing.trial import planned, read_waves

    if policy.person is None:
        return Naive(why="no person column is named, so nobody can be followed.")
    memoryless = next(method.name for method in all_methods() if not method.looks_back)
    exposed = []
    try:
        waves, alone = read_waves(tables, policy), varied(policy, {}, method=memoryless)
        with tempfile.TemporaryDirectory(prefix="sequester-") as folder:
            for plan in planned(alone, waves, Path(folder) / "naive.ledger", new=True):
                if plan.candidate is not None:
                    exposed.append(plan.candidate.audit.exposed)
    except SequesterError as error:
        return Naive(why=f"{error}")
    return Naive(tuple(names), tuple(exposed))
