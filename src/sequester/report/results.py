"""What a terminal and a notebook show of a result: the same blocks, made once.

Objects of rooms above and beside this one are known by the name of their class and by what they say themselves. Of
plans, releases, series and measurements only counts are shown; audits and findings are private by nature, and say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sequester.attacks.attack import Untried
from sequester.attacks.exposed import is_certain
from sequester.attacks.words import share
from sequester.causes import SERIES
from sequester.errors import SequesterError
from sequester.policy.describe import knows, notes, promises, treatment, unpromised
from sequester.policy.words import amount
from sequester.report.blocks import Bars, Block, Bullets, Grid, Heading, Paragraph, Pictures, Remark, facts, to_view
from sequester.report.canvas import in_words
from sequester.report.charts import Trend, lines

if TYPE_CHECKING:
    from sequester.attacks.audit import Audit
    from sequester.attacks.finding import Finding
    from sequester.causes import Cause, Relaxation
    from sequester.ledger.life import Ending
    from sequester.ledger.state import Entry
    from sequester.metrics.measure import Measurement
    from sequester.policy.model import Policy
    from sequester.publish.plan import Plan, PodFigures
    from sequester.publish.rehearsing.rehearse import Rehearsal
    from sequester.publish.release import Release
    from sequester.publish.series import Series
    from sequester.publish.since_last import SinceLast

_CHANGES = {
    "newcomers": "new",
    "returned": "returned",
    "stayers": "stay",
    "changed": "of them changed",
    "leavers": "left",
}
_WAITING = {
    "held": "person is held back, for {longest} at most|people are held back, for {longest} at most",
    "retained": "who left is kept in the release|who left are kept in the release",
    "left_out": "record is left out|records are left out",
}
_PERSONAL = {
    "withheld": "record without consent|records without consent",
    "withdrawn": "person withdrew it|people withdrew it",
    "waiting": "of them kept in the release until others hide their going",
    "graded": "value published as a node|values published as a node",
    "raised": "by the person's own wish",
    "late": "wish came too late, after the value was published|wishes came too late, after the value was published",
}
_VERSIONS = {"release": "this release", "static": "without a memory (unsafe)", "merge": "merge (Byun et al.)"}
_LEVERS = {"now": "now", "with next": "with the next increment", "with next two": "with the next two"}
_FRONTIER = {"loss": "AIL", "decoys": "decoys, of rows"}
_LOSSES = {"ail": "AIL", "ncp": "NCP", "dm": "DM", "precision": "precision", "entropy": "entropy"}


def view(thing: object) -> str:
    """HTML for a notebook."""
    return to_view(blocks_of(thing))


def blocks_of(thing: object) -> list[Block]:
    """The blocks of anything that has a view."""
    maker = next(_VIEWS[kind.__name__] for kind in type(thing).__mro__ if kind.__name__ in _VIEWS)
    return list(maker(thing))


def policy_blocks(policy: Policy) -> Iterator[Block]:
    """What happens to the columns, what is promised against whom, and what is not; without any value."""
    person = () if policy.person is None else ((policy.person, "person", "", "never published"),)
    columns = [(name, one.role, getattr(one, "kind", ""), treatment(one)) for name, one in policy.attributes.items()]
    yield Grid(("column", "role", "kind", "treatment"), (*person, *columns), f"Columns of {policy.series}")
    yield Heading("What is promised to a person")
    yield from promised_blocks(policy)
    yield from titled("What is not promised", unpromised(policy))


def promised_blocks(policy: Policy) -> Iterator[Block]:
    """The promises under whom they are against, and by what."""
    groups: dict[tuple[str, str], list[str]] = {}
    for promise in promises(policy):
        groups.setdefault((promise.against, promise.about), []).append(str(promise))
    for (against, about), words in groups.items():
        an = {"lifetime": "somebody"}.get(against, f"an {against}" if against[0] in "aeiou" else f"a {against}")
        of = "by each release alone" if about == "each release" else "by all releases together"
        yield Heading(f"Against {an} who {knows(against)}: {of}", 3)
        yield Bullets(tuple(words))


def titled(title: str, sentences: Iterable[object]) -> Iterator[Block]:
    """Sentences under a title; nothing where there are none."""
    said = tuple(map(str, sentences))
    if said:
        yield Heading(title)
        yield Bullets(said)


def series_blocks(
    name: str, entries: Sequence[Entry], withdrawn: Mapping[int, Ending], closed: Ending | None, *, wide: bool = True
) -> Iterator[Block]:
    """The releases of a series; where it is not wide, whom they are for stands below."""
    if not entries:
        yield Paragraph(f"{name}: nothing was published yet.")
        return
    yield Heading(f"{name}: {amount(len(entries), 'release')}, {entries[-1].persons:,} people so far.", 1)
    rows = [_row(entry, withdrawn=entry.number in withdrawn) for entry in entries]
    # What is the same everywhere and says nothing is not worth a column.
    dull = {"status": "published", "decoys": "", "held": 0, "recipient": "", "purpose": ""}
    heads = [title for title in rows[0] if any(row[title] != dull.get(title) for row in rows)]
    if not wide:
        heads = [title for title in heads if title not in ("recipient", "purpose")]
    yield Grid(tuple(heads), tuple(tuple(row[title] for title in heads) for row in rows), f"Releases of {name}")
    for one in () if wide else entries:
        to = f" is for {one.recipient}" if one.recipient else ""
        what = f"{', purpose' if to else ' has the purpose'}: {one.purpose}" if one.purpose else ""
        if to or what:
            yield Paragraph(f"Release {one.number}{to}{what}")
    told = [(f"* Release {number} was withdrawn on {remark.at[:10]}", remark) for number, remark in withdrawn.items()]
    for what, remark in [*told, *([(f"The series was closed on {closed.at[:10]}", closed)] if closed else [])]:
        yield Paragraph(f"{what}{f': {remark.reason}' if remark.reason else ''}")


def _row(entry: Entry, *, withdrawn: bool) -> dict[str, Any]:
    summary = entry.summary
    change, waiting = summary.get("change", {}), summary.get("waiting", {})
    return {
        "": f"{entry.number}*" if withdrawn else str(entry.number),
        "name": entry.name,
        "recorded": entry.created[:10],
        "status": entry.status,
        "records": entry.records,
        "decoys": (summary.get("pods") or {}).get("decoys", ""),
        "classes": entry.classes,
        "new": change.get("newcomers", ""),
        "left": change.get("leavers", ""),
        "held": waiting.get("held", ""),
        "method": entry.method,
        "AIL": summary.get("loss", {}).get("release", {}).get("ail", ""),
        "recipient": entry.recipient or "",
        "purpose": entry.purpose or "",
    }


def entry_blocks(
    series: str, entry: Entry, folder: str, withdrawn: Ending | None, ages: Mapping[int, int] | None
) -> Iterator[Block]:
    """One release as the ledger has it; `ages`: for how many releases people wait after the last one."""
    summary = entry.summary
    status = entry.status if withdrawn is None else f"withdrawn on {withdrawn.at[:10]}"
    yield Heading(f"Release {entry.number} of {series}, {entry.name}, {status}, by {entry.method}.", 1)
    about = {
        "folder": folder,
        "recorded": f"{entry.created[:10]} {entry.created[11:19]} UTC",
        "recipient": entry.recipient,
        "purpose": entry.purpose,
        "records": f"{entry.records:,} in {entry.classes:,} classes; {entry.persons:,} people so far",
        "changes": _changes(summary.get("change", {})),
        "waiting": _delays(summary.get("waiting", {})),
        "allowed": ", ".join(_counted(summary.get("personal", {}), _PERSONAL)),
        "privacy": _gains(summary.get("gain", {})),
    }
    waits = [
        ("", f"{many(people, 'waits', 'wait')} for {amount(age, 'release')}") for age, people in (ages or {}).items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in entry.versions.items())
    more = [("versions", versions), ("data", entry.output_digest), ("hash", entry.hash)]
    yield facts([*about.items(), *waits, *more], "About this release")
    yield from _checks(summary.get("checks", []))
    yield _price(summary.get("loss", {}))
    untried = [Untried.from_dict(one) for one in summary.get("untried", [])]
    yield from titled("Not tried, and so not promised", _not_tried(untried, summary.get("belief")))
    yield from titled("Notes", summary.get("notes", []))


def _plan(plan: Plan) -> Iterator[Block]:
    """What changes, who waits, what is promised and reached, what it costs."""
    rows = amount(plan.records, "record")
    if plan.pods is not None:
        rows = f"{many(plan.people, 'person', 'people')} and {amount(plan.decoys, 'decoy')}"
    size = f"{rows} in {many(plan.classes, 'class', 'classes')}"
    yield Heading(f"Release {plan.number} of {plan.series}, {plan.folder}, by {plan.method['name']}: {size}.", 1)
    about = [
        ("recipient", plan.recipient),
        ("purpose", plan.purpose),
        ("changes", _changes(vars(plan.change))),
        ("waiting", _delays(vars(plan.waiting))),
        *(() if plan.pods is None else _pods(plan.pods, plan.records)),
        ("allowed", ", ".join(_counted(vars(plan.personal), _PERSONAL))),
        ("privacy", _gains(plan.gain)),
        *(("belief", believed(name, figures)) for name, figures in plan.belief.items()),
    ]
    yield facts(about, f"About the plan of {plan.folder}")
    yield from _checks([one.to_dict() for one in plan.checks])
    yield _price(plan.loss, plan.estimated)
    if plan.pods is not None:
        yield from _frontier(plan.pods.facts)
    if plan.levers:
        how = ", estimated" if "levers" in plan.estimated else ""
        title = f"Expected loss of the newcomers (AIL{how}) if they are published"
        yield Bars(title, {_LEVERS.get(name, name): value for name, value in plan.levers.items()})
    yield from why_blocks(plan.why, plan.relaxations)
    waiting = plan.waiting.held + plan.waiting.retained + plan.waiting.left_out
    loss = plan.loss.get("release", {})
    yield from relaxation_blocks(plan.relaxations, loss, {"decoys": plan.decoys, "waiting": waiting})
    if plan.since_last is not None:
        yield from _since_last(plan.since_last)
    yield from titled("Not tried, and so not promised", _not_tried(plan.untried, plan.belief))
    yield from titled("Notes", plan.notes)
    if not plan.holds:
        who = "" if plan.candidate is None else f"{plan.candidate.audit.verdict} "
        text = "would work on the series with this release: publishing it needs `i_know_this_leaks=True`."
        yield Remark(f"{who}{amount(plan.findings, 'attack')} {text}", "bad")


def _not_tried(untried: Iterable[Untried], belief: object) -> Iterator[str]:
    """Attacks that were not tried; a belief that was measured, and stands above, was not left out."""
    for one in untried:
        attacks = tuple(attack for attack in one.attacks if attack != "belief" or not belief)
        if attacks:
            yield str(replace(one, attacks=attacks))


def many(count: int, one: str, more: str) -> str:
    """A count with its noun, where that takes no -s."""
    return f"{count:,} {one if count == 1 else more}"


def _counted(counts: Mapping[str, int], words: Mapping[str, str]) -> list[str]:
    """What is counted at all: every number with its words, those for one before a bar."""
    said = []
    for name, forms in words.items():
        if count := counts.get(name, 0):
            one, _, more = forms.partition("|")
            said.append(f"{count:,} {more if more and count != 1 else one}")
    return said


def _changes(change: Mapping[str, int]) -> str:
    """How a table differs from the last release."""
    return ", ".join(([] if change.get("newcomers") else ["0 new"]) + _counted(change, _CHANGES))


def _delays(waiting: Mapping[str, int]) -> str:
    """Who cannot be hidden yet, and what is done about it."""
    longest = amount(waiting.get("oldest", 0), "release")
    return "; ".join(_counted(waiting, _WAITING)).format(longest=longest) or "nobody"


def _gains(gain: Mapping[str, float]) -> str:
    """Privacy gain against information loss, of quasi-identifiers and of sensitive values."""
    return "; ".join(
        f"{label} gain {gain[f'{key}_gain']:.3f}, loss {gain[f'{key}_loss']:.3f}"
        for key, label in (("quasi", "quasi-identifiers"), ("sensitive", "sensitive values"))
        if f"{key}_gain" in gain
    )


def _pods(pods: PodFigures, rows: int) -> Iterator[tuple[str, str]]:
    """The decoys of a release, and whose values hang together."""
    must = f"; at least {pods.needed:,} must be" if pods.needed else ""
    yield "decoys", f"{pods.decoys:,}: {pods.decoys / rows:.1%} of the rows are about nobody{must}"
    fewest = many(pods.fewest, "person", "people")
    yield "people", f"every class has {fewest} or more beside its decoys; {pods.promised:,} must be"
    largest, lineages = many(pods.largest, "person", "people"), amount(pods.lineages, "lineage")
    together = f"the values of {largest} at most hang together, {in_words(pods.mean)} on average"
    yield "pods", f"{pods.pods:,}; {together} ({lineages} so far)"
    yield from (("shares", told) for told in pods.distortion())


def believed(name: str, figures: Mapping[str, float]) -> str:
    """How sure somebody without prejudice could be of anybody's value, and about how many surer than its bound."""
    beyond = int(figures["beyond"])
    who = many(beyond, "person is", "people are") if beyond else "nobody is"
    return f"{name}: at most {share(figures['most'])}, by all releases; {who} above the bound"


def _checks(checks: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    """Every attack that was tried: what is required, what it reached, and what is to spare."""
    heads = ("attack", "about", "adversary", "required", "reached", "margin")
    rows = [(*(one.get(name) for name in heads), "holds" if one["holds"] else "broken") for one in checks]
    if rows:
        yield Grid((*heads, ""), tuple(rows), "What the audit tried")


def _price(loss: Mapping[str, Mapping[str, float]], estimated: Iterable[str] = ()) -> Bars:
    """The loss of a release beside that of the same records without a memory, and by merge."""
    figures = {
        f"{label}, estimated" if name in estimated else label: loss[name]["ail"]
        for name, label in _VERSIONS.items()
        if name in loss
    }
    return Bars("Loss (AIL)", figures)


def _frontier(figures: Mapping[str, float]) -> Iterator[Block]:
    """What other decoys or links would buy: facts called `frontier LABEL: FIGURE`, a row for each label."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in figures.items():
        if name.startswith("frontier "):
            label, _, figure = name.removeprefix("frontier ").rpartition(": ")
            rows.setdefault(label, {})[figure] = value
    titles = list(dict.fromkeys(figure for found in rows.values() for figure in found))
    if rows:
        title = "What more or fewer decoys and links would buy"
        shown = tuple(
            (label, *(f"{found[one]:.1%}" if one == "decoys" and one in found else found.get(one) for one in titles))
            for label, found in rows.items()
        )
        yield Heading(title)
        yield Grid(("if", *(_FRONTIER.get(one, one) for one in titles)), shown, title)


def why_blocks(why: Sequence[Cause], relaxations: Sequence[Relaxation]) -> Iterator[Block]:
    """Why a release is what it is: every cause with the keys that would relax it."""
    coarse = [cause for cause in why if cause.what == "coarse"]
    others = [cause for cause in why if cause.what != "coarse"]
    if others:
        yield Heading("Why")
        rows, last = [], ""
        for cause in others:
            rows.append(("" if cause.what == last else cause.what, str(cause)))
            rows += [("", f"eased by {', '.join(cause.keys)}")] if cause.keys else []
            last = cause.what
        yield Grid(("", ""), tuple(rows), "Why it is less than the table")
    if coarse:
        yield Heading("Why classes are coarse")
        steps, attacks = ([one for one in coarse if (one.lost is None) is attack] for attack in (False, True))
        found: list[tuple[Any, ...]] = [
            (_named(one), one.classes, one.people, f"+{in_words(one.lost)}") for one in steps
        ]
        found += [("without a memory these would work:", "", "", "")] if attacks else []
        found += [(f"  {_named(one)}", one.classes, one.people, "") for one in attacks]
        yield Grid(("", "classes", "people", "AIL"), tuple(found), "Why classes are coarse")
        yield Paragraph(f"eased by {', '.join(dict.fromkeys(key for one in coarse for key in one.keys))}", lead=True)
    if why and not relaxations:
        yield Paragraph("`sequester plan --why` tells what one step of each key would buy.", lead=True)


def _named(cause: Cause) -> str:
    if cause.attack == SERIES:
        return cause.who
    return f"{cause.attack} of {cause.attribute}" if cause.attribute else cause.attack


def relaxation_blocks(
    relaxations: Sequence[Relaxation], loss: Mapping[str, float], figures: Mapping[str, int]
) -> Iterator[Block]:
    """What one step of each key would buy, those that buy most first; nothing where that was not asked.

    loss, figures  of the release as planned; no loss where it is refused
    """
    if not relaxations:
        return
    yield Heading("What one step of a key would buy")
    tried = sorted((one for one in relaxations if one.tried), key=lambda one: one.loss.get("ail", float("inf")))
    shown = [title for title, count in figures.items() if count or any(getattr(one, title) for one in tried)]
    now = loss.get("ail")
    rows: list[tuple[Any, ...]] = [
        ("as planned", "refused" if now is None else now, "", *(figures[title] for title in shown))
    ]
    for one in tried:
        label = f"{one.key}: {one.now} to {one.then}{'' if one.running else ' *'}"
        then = one.loss.get("ail", 0.0)
        change = f"{then / now - 1:+.0%}" if now else ""
        counts = (then, change, *(getattr(one, title) for title in shown))
        rows.append((label, *(counts if one.made else ("refused", *[""] * (1 + len(shown))))))
    if tried:
        yield Grid(("if", "AIL", "", *shown), tuple(rows), "What one step of a key would buy")
    if any(not one.running for one in tried):
        star = "* a series that has begun keeps these: they need another that goes on from it (`after`)"
        yield Paragraph(star, lead=True)
    if left := [one.key for one in relaxations if not one.tried]:
        yield Paragraph(f"not priced, the table is too large: {', '.join(left)}", lead=True)


def _since_last(since: SinceLast) -> Iterator[Block]:
    """People, classes and columns beside the last release."""
    yield Heading(f"Beside release {since.number}")
    decoys = f"{since.decoys[1]:,}, {since.decoys[0]:,} before" if any(since.decoys) else ""
    about = [("people", _people(since)), ("classes", _classes(since)), ("decoys", decoys)]
    yield facts(about, f"Beside release {since.number}")
    columns = [(one.name, f"{one.before:.3f}", f"{one.now:.3f}", one.became) for one in since.columns]
    every = ("all (NCP)", f"{since.ncp[0]:.3f}", f"{since.ncp[1]:.3f}", "")
    yield Grid(("column", "loss before", "now", ""), (*columns, every), "Loss of every column before and now")


def _people(since: SinceLast) -> str:
    kept = f" ({since.kept:,} of them have left the table)" if since.kept else ""
    words = {"came": "came", "returned": "returned", "stayed": f"stay{kept}", "left": "left"}
    said = ", ".join(_counted(vars(since), words))
    boxes = f"of those who stay {since.coarser:,} are in wider boxes, {since.finer:,} in narrower"
    return f"{said}; {boxes}" if since.coarser or since.finer else f"{said}; no box of those who stay is wider"


def _classes(since: SinceLast) -> str:
    classes = since.classes
    kept = f"kept ({classes.as_they_were:,} as they were)"
    words = {"kept": kept, "merged": "merged", "split": "split", "mixed": "mixed with others", "gone": "gone"}
    new = f"; {many(classes.new, 'is', 'are')} new" if classes.new else ""
    return f"{classes.now:,}, {classes.before:,} before: {', '.join(_counted(vars(classes), words))}{new}"


def _release(release: Release) -> Iterator[Block]:
    number = f", release {release.facts['number']}: {release.facts['name']}" if "number" in release.facts else ""
    yield Heading(f"{release.policy.series}{number}", 1)
    if not release.holds:
        yield Remark("What is marked broken below does not hold.", "bad")
    yield from measured_blocks(release.measurement)
    checks = [one for one in release.facts.get("checks", ()) if one["about"] == "the series"]
    if checks:
        yield Heading("This and all earlier releases together")
        yield from _checks(checks)


def measured_blocks(measured: Measurement) -> Iterator[Block]:
    """The figures, then every promise with what was required and what was reached."""
    decoys = "" if measured.people is None else f" ({amount(measured.records - measured.people, 'decoy')} among them)"
    left_out = f"{measured.suppressed:,} left out" if measured.suppressed else "none left out"
    people = "" if measured.fewest_people is None else f", {measured.fewest_people:,} or more of them people"
    average = f"{measured.records / measured.classes:.3g} on average"
    error = None if measured.query_error is None else f"{in_words(measured.query_error)} (relative, on average)"
    lost = (f"{label} {in_words(measured.loss[name])}" for name, label in _LOSSES.items() if name in measured.loss)
    about = {
        "rows": f"{measured.records:,} published{decoys}, {left_out}",
        "classes": f"{measured.classes:,} of {measured.k:,} or more rows{people}; {average}",
        **{name: getattr(measured, name) for name in ("k", "confidence", "l", "t")},
        "loss": ", ".join(lost),
        "query error": error,
    }
    yield facts(about.items(), "What was measured")
    rows = [
        (
            f"{one.view}: {one.promise}" if one.view else one.promise,
            one.required,
            one.observed,
            "kept" if one.holds else "broken",
        )
        for one in measured.promises
    ]
    if rows:
        yield Grid(("promise", "required", "reached", ""), tuple(rows), "What is promised of each release")


def _finding(finding: Finding) -> Iterator[Block]:
    from sequester.attacks.explain import headline
    from sequester.report.audit_page import PRIVATE

    yield Heading(headline(finding), 1)
    yield Remark(PRIVATE, "private")
    about = {
        "attack": finding.attack,
        "adversary": finding.adversary,
        "releases": ", ".join(map(str, finding.releases)),
        "about": finding.attribute or "",
        "value": finding.value or "who they are",
        "required": in_words(finding.required),
        "reached": in_words(finding.observed),
        "certain": is_certain(finding),
        "people": in_words(len(finding.people)),
        "classes": ", ".join(f"{number} of release {release}" for release, number in finding.classes),
    }
    yield facts(about.items(), "The finding")
    witness = {name: json.dumps(value, ensure_ascii=False, default=str) for name, value in finding.witness.items()}
    if witness:
        yield Heading("Witness, to check by hand")
        yield facts(witness.items(), "Witness")


def _policy(policy: Policy) -> Iterator[Block]:
    yield Heading(f"Policy of {policy.series}", 1)
    yield from policy_blocks(policy)
    yield from titled("Notes", notes(policy))


def _series(series: Series) -> Iterator[Block]:
    try:
        entries = series.releases()
    except SequesterError as error:
        # Another command may have the ledger: a view says so, and is no error.
        yield Paragraph(f"{series.policy.series}: the ledger cannot be read now: {error}")
        return
    yield from series_blocks(series.policy.series, entries, {}, None)
    if len(entries) > 1:
        rows = [Trend("rows", [one.records for one in entries])]
        yield Pictures((lines("Rows over releases", [one.name for one in entries], rows),))


def _measurement(measurement: Measurement) -> Iterator[Block]:
    yield Heading("Measured", 1)
    yield from measured_blocks(measurement)


def _audit(audit: Audit) -> Iterator[Block]:
    from sequester.report.audit_page import short_blocks

    return short_blocks(audit)


def _rehearsal(rehearsal: Rehearsal) -> Iterator[Block]:
    from sequester.report.rehearsed import rehearsal_blocks

    return rehearsal_blocks(rehearsal.to_dict())


_VIEWS: Mapping[str, Callable[[Any], Iterator[Block]]] = {
    "Audit": _audit,
    "Finding": _finding,
    "Measurement": _measurement,
    "Plan": _plan,
    "Policy": _policy,
    "Rehearsal": _rehearsal,
    "Release": _release,
    "Series": _series,
}
