"""The report of an audit: who is exposed by releases, whoever made them, in the worst cases how, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from sequester.attacks.advice import Advice, advice, first_steps, without
from sequester.attacks.audit import Audit
from sequester.attacks.explain import Story, headline
from sequester.attacks.exposed import Exposed, Tally, named_value
from sequester.attacks.informed import WHAT_THE_BOUND_IS, in_words
from sequester.attacks.registry import attack_of
from sequester.attacks.solvers.belief import BeliefSpread
from sequester.attacks.target import Target
from sequester.policy.words import amount, people, percent
from sequester.report.blocks import Block, Bullets, Cards, Grid, Heading, Paragraph, Pictures, Remark, to_page
from sequester.report.canvas import Picture
from sequester.report.charts import Trend, bars, lines
from sequester.report.results import believed, titled

Audience = Literal["internal", "public"]

PRIVATE = "Keep private: this page names sensitive values, and people where they are known."
_NOTHING = "Nothing that was tried works on these releases together."
_WORKS = "Attacks work on these releases: what is marked broken below does not hold."
_UNDECIDED = "Not everything that was asked could be decided: nothing is said about what is marked undecided below."
_STORIES = (
    "Each can be checked by hand with the published rows below it. Its number is what `--explain` and `audit.explain` "
    "take{more}."
)
_OF_CLASSES = "Who is in which class is not known, so classes are counted whose people may be exposed."
_PUBLIC = (
    "This page has no value and nobody's name, and no number of people below {k}. It says which promises hold; whoever "
    "answers for the releases has the findings."
)
# Values that a picture shows; its table has them all.
_BARS = 15
# Findings and groups that are shown beside the page, and runs of rows of a target.
_SHOWN, _RUNS = 20, 4


def audit_page(audit: Audit, *, audience: Audience = "internal") -> str:
    """One HTML file that needs nothing else."""
    return to_page(_title(audit), audit_blocks(audit) if audience == "internal" else public_blocks(audit))


def audit_blocks(audit: Audit) -> list[Block]:
    """All of an audit, for those who answer for the releases."""
    return [
        Heading(_title(audit), 1),
        Paragraph(_names(audit), lead=True),
        Remark(PRIVATE, "private"),
        *([Remark(_NOTHING)] if audit.holds else (Remark(line, "bad") for line in audit.verdict.splitlines())),
        *exposed_blocks(audit),
        *_stories(audit),
        *_what_to_do(audit),
        *_belief(audit),
        *_untried(audit),
        *_notes(audit),
    ]


def exposed_blocks(audit: Audit) -> Iterator[Block]:
    """Who is exposed: the figures, the pictures, and every attack that was tried."""
    total = audit.exposed.total
    least = ", at least" if audit.exposed.at_least else ""
    working = len(audit.exposed.by_attack)
    yield Cards(
        (
            (total.people if total.people or not total.classes else None, f"people exposed{least}"),
            (total.certain if total.people else None, f"of them for certain{least}"),
            (total.classes or None, f"classes whose people may be exposed{least}"),
            (total.releases or None, "releases with rows in a telling order"),
            (f"{working} of {len(audit.tried)}", "attacks work"),
            (_count(audit), "releases"),
        )
    )
    if audit.findings:
        yield Heading("Who is exposed")
        if total.classes and not total.people:
            yield Paragraph(_OF_CLASSES)
        yield Pictures(tuple(_pictures(audit.exposed)))
    yield Heading("What was tried")
    yield _tried(audit)


def short_blocks(audit: Audit) -> Iterator[Block]:
    """What a terminal and a notebook show: who is exposed, what was tried or undecided, and the worst findings."""
    *undecided, exposed = audit.verdict.splitlines() if audit.target is None else [str(audit.target)]
    yield from (Remark(line, "bad") for line in undecided)
    yield Heading(exposed, 1, "good" if audit.holds else "bad")
    if audit.findings:
        yield Remark(PRIVATE, "private")
    yield from _short_tables(audit) if audit.target is None else _about_target(audit.target)
    yield from titled("Notes", [*(f"not promised: {one}" for one in audit.untried if not one.give), *audit.notes])
    if audit.belief:
        yield _beliefs(audit)
        for one in audit.belief:
            yield Paragraph(believed(one.attribute, {"most": one.spread.most, "beyond": one.beyond}))
            if one.informed is not None:
                yield Paragraph(in_words(one.attribute, one.informed))
    if audit.holds and audit.target is None:
        yield Remark(_NOTHING, "good")
    if audit.findings:
        numbers = sorted(audit.worst(_SHOWN))
        yield Heading("Findings")
        yield Grid(("", ""), tuple((number, headline(audit.findings[number - 1])) for number in numbers), "Findings")
        if len(audit.findings) > len(numbers):
            more = len(audit.findings) - len(numbers)
            yield Paragraph(f"... and {more:,} more; `audit.findings_table()` has all of them")
        yield Paragraph("Tell one as a story with `audit.explain(1)`.", lead=True)


def _short_tables(audit: Audit) -> Iterator[Block]:
    rows = []
    for name in audit.tried:
        works = sum(finding.attack == name for finding in audit.findings)
        tally = str(audit.exposed.by_attack[name]) if works else "safe"
        rows.append((name, attack_of(name).adversary, audit.reached(name), works or "none", tally))
    rows += [(name, attack_of(name).adversary, "", "", "undecided") for name in _undecided(audit)]
    yield Grid(("attack", "adversary", "reached", "findings", ""), tuple(rows), "Attacks that were tried")
    groups = [(per, which, str(tally)) for per, which, tally in audit.exposed.groups() if per != "attack"]
    if groups:
        yield Grid(("per", "", "exposed"), tuple(groups[:_SHOWN]), "Who is exposed")
    if len(groups) > _SHOWN:
        yield Paragraph(f"... and {len(groups) - _SHOWN:,} more, in `audit.to_dict()`")


def _about_target(target: Target) -> Iterator[Block]:
    """The rows that match a target, those excluded and why, and what is left."""
    for seen in target.releases if target.left else ():
        yield Heading(f"Release {seen.number} ({seen.name}): {seen.left} of {seen.rows} rows may be hers")
        attacks = list(dict.fromkeys(by.attack for one in seen.matching for by in one.excluded))
        rows = []
        for one in seen.matching:
            gone = {by.attack: -by.rows for by in one.excluded}
            counts = (len(one.rows), *(gone.get(attack, "") for attack in attacks), one.left)
            rows.append((*one.box, one.label, _runs(one.rows), *counts))
        heads = (*target.columns, target.label, "rows", "match", *attacks, "left")
        yield Grid(heads, tuple(rows), f"Rows of release {seen.number} that may be hers")
        for one in seen.matching:
            yield from (Paragraph(f"{by.attack}, {one.label}: {by}.", lead=True) for by in one.excluded)


def _runs(rows: Sequence[int]) -> str:
    """`1-3, 7`: places in the file, the first few."""
    runs = [[row for _, row in run] for _, run in groupby(enumerate(rows), lambda pair: pair[1] - pair[0])]
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_RUNS]]
    return ", ".join([*shown, *(["..."] if len(runs) > _RUNS else [])])


def public_blocks(audit: Audit) -> list[Block]:
    """What may be shown to anybody: which promises hold, and how many people are exposed where they are k or more."""
    k = _k(audit)
    total = audit.exposed.total
    rows = []
    for name in audit.tried:
        tally = audit.exposed.by_attack.get(name)
        many = "" if tally is None else _at_least(tally.people, k) if tally.people else "not known"
        rows.append((attack_of(name).title, attack_of(name).adversary, many, "kept" if tally is None else "broken"))
    for name in _undecided(audit):
        rows.append((attack_of(name).title, attack_of(name).adversary, "not known", "undecided"))
    said = _NOTHING if audit.holds else _WORKS if audit.findings else _UNDECIDED
    return [
        Heading(_title(audit), 1),
        Paragraph(_names(audit), lead=True),
        Remark(said, "" if audit.holds else "bad"),
        Paragraph(_PUBLIC.format(k=k)),
        Cards(
            (
                (_at_least(total.people, k) if total.people or audit.holds else None, "people exposed"),
                (_at_least(total.certain, k) if total.people else None, "of them for certain"),
                (total.classes or None, "classes whose people may be exposed"),
                (_count(audit), "releases"),
            )
        ),
        Heading("What was tried"),
        Grid(("attack", "by", "people exposed", "result"), tuple(rows), "Attacks that were tried"),
        *_untried(audit),
    ]


def story_blocks(story: Story, number: int) -> Iterator[Block]:
    """One story, of the finding with a number: its words, then the published rows."""
    listed: list[str] = []
    for line in [*story.words.splitlines(), ""]:
        if line.startswith("  "):
            listed.append(line.strip())
            continue
        if listed:
            yield Bullets(tuple(listed))
            listed = []
        if line:
            yield Paragraph(line)
    rows = tuple((release, number, count, *box, value) for release, number, count, box, value in story.rows)
    if rows:
        heads = ("release", "class", "rows", *story.names, "value")
        yield Grid(heads, rows, f"Published rows that finding {number} rests on")
    for place, more in story.more.items():
        yield Paragraph(f"Release {place} has {more:,} more kinds of rows in these classes.", lead=True)


def _tried(audit: Audit) -> Grid:
    """Every attack that was tried, with people where some are known, else classes."""
    known = bool(audit.exposed.total.people) or not audit.exposed.total.classes
    rows: list[tuple[Any, ...]] = []
    for name in audit.tried:
        tally = audit.exposed.by_attack.get(name, Tally())
        counts = (tally.people, tally.certain) if known else (tally.classes, tally.certain_classes)
        rows.append(
            (
                f"{name}: {_small(attack_of(name).title)}",
                "broken" if name in audit.exposed.by_attack else "kept",
                attack_of(name).adversary,
                *_bounds(audit, name),
                *counts,
            )
        )
    for name in _undecided(audit):
        what = f"{name}: {_small(attack_of(name).title)}"
        rows.append((what, "undecided", attack_of(name).adversary, audit.required(name), None, None, None))
    heads = ("attack", "result", "by", "required", "reached", "people" if known else "classes", "for certain")
    return Grid(heads, tuple(rows), "Attacks that were tried")


def _undecided(audit: Audit) -> Iterator[str]:
    """Attacks that were asked for and not tried on anything, for lack of knowledge."""
    names = dict.fromkeys(name for one in audit.undecided for name in one.attacks)
    return (name for name in names if name not in audit.tried)


def _bounds(audit: Audit, name: str) -> tuple[Any, Any]:
    """What is required and reached. Where an attack leaves enough people and still ties them to a value, that."""
    required = audit.required(name)
    if attack_of(name).by_chance:
        return required, audit.reached(name)
    reached = audit.measures.get(name)
    if required is not None and reached is not None and (reached >= required if required >= 1 else reached <= required):
        tied = [one for one in audit.findings if one.attack == name and one.observed > one.required]
        if tied:
            worst = max(tied, key=lambda one: one.observed - one.required)
            return worst.required, worst.observed
    return required, reached


def _small(title: str) -> str:
    return title[:1].lower() + title[1:]


def _pictures(exposed: Exposed) -> Iterator[Picture]:
    yield from _bars("Exposed, by attack", "attack", exposed.by_attack)
    if len(exposed.by_release) > 1:
        yield from _bars(
            "Exposed, by release that it takes",
            "release",
            {f"release {number}": tally for number, tally in exposed.by_release.items()},
        )
    values = {named_value(key): tally for key, tally in exposed.by_value.items()}
    yield from _bars("Exposed, by what is told about them", "value", values)


def _bars(title: str, head: str, groups: Mapping[str, Tally]) -> Iterator[Picture]:
    """People where some are known, else classes; nothing where findings are about whole releases only."""
    known = any(tally.people for tally in groups.values())
    counts = {
        name: (tally.people, tally.certain) if known else (tally.classes, tally.certain_classes)
        for name, tally in groups.items()
    }
    shown = {name: pair for name, pair in counts.items() if pair[0]}
    if head != "release":
        shown = dict(sorted(shown.items(), key=lambda one: (-one[1][0], -one[1][1])))
    left = len(shown) - _BARS
    shown = dict(list(shown.items())[:_BARS])
    if shown:
        series = {
            "people" if known else "classes": [pair[0] for pair in shown.values()],
            "for certain": [pair[1] for pair in shown.values()],
        }
        note = f"The {_BARS} largest; {left:,} more are in the table of findings." if left > 0 else ""
        yield bars(title, list(shown), series, head=head, note=note)


def _stories(audit: Audit) -> Iterator[Block]:
    numbers = audit.worst()
    if not numbers:
        return
    yield Heading("The worst stories" if len(numbers) > 1 else "The story")
    left = len(audit.findings) - len(numbers)
    more = f"; {left:,} more {'is' if left == 1 else 'are'} in the table of findings" if left else ""
    yield Paragraph(_STORIES.format(more=more), lead=True)
    for number in numbers:
        story = audit.story(number)
        yield Heading(f"{number}. {story.headline}", 3)
        yield from story_blocks(story, number)


def _what_to_do(audit: Audit) -> Iterator[Block]:
    if not audit.findings or audit.policy is None:
        return
    yield Heading("What to do")
    yield Bullets(tuple(first_steps(audit.findings, _count(audit))), numbered=True)
    for broken, helps, names in _alike(advice(audit.findings, audit.policy)):
        yield Heading(" and ".join(names), 3)
        if broken:
            yield Paragraph(f"Broken is: {' '.join(broken)}")
        yield Paragraph(helps)
    if _count(audit) > 1:
        yield Heading("If a release could be withdrawn", 3)
        yield Paragraph(
            "Counted are the findings that do without it, at least so many remain. Whoever has a copy keeps it.",
            lead=True,
        )
        yield Grid(("without", "would still be exposed"), tuple(_withdrawn(audit)), "Withdrawing a release")


def _alike(found: Sequence[Advice]) -> list[tuple[tuple[str, ...], str, list[str]]]:
    """What is said of several attacks, once: the promises broken, what helps, and the attacks."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for one in found:
        groups.setdefault((one.broken, one.helps), []).append(one.attack)
    return [(broken, helps, names) for (broken, helps), names in groups.items()]


def _withdrawn(audit: Audit) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(_release_names(audit), start=1):
        yield f"release {number} ({name})", str(Exposed.of(without(audit.findings, number), nobody=audit.nobody).total)


def _belief(audit: Audit) -> Iterator[Block]:
    if not audit.belief:
        return
    yield Heading("How sure could somebody be")
    yield Paragraph(
        "Somebody who prefers no value to another and knows who is in which class: the largest belief in a bounded "
        "value, and the share of the people of whom she is surer than .5, .7 and .9; then the same of the others when "
        "some people's values are known."
    )
    over = [_over_releases(one.attribute, one.over, audit) for one in audit.belief if len(one.over) > 1]
    if over:
        yield Pictures(tuple(over))
    yield _beliefs(audit)
    yield Bullets(
        tuple(
            f"{one.attribute}: {people(one.beyond)} above the bound; {percent(one.spread.most)} at most."
            for one in audit.belief
        )
    )
    said = tuple(in_words(one.attribute, one.informed) for one in audit.belief if one.informed is not None)
    if said:
        yield Paragraph(WHAT_THE_BOUND_IS)
        yield Bullets(said)


def _beliefs(audit: Audit) -> Grid:
    """How sure somebody without prejudice could be, and how far knowing some people's values carries."""
    rows = []
    for one in audit.belief:
        known = [("none", one.spread)]
        for share, carried in one.resilience.items():
            known += [(f"{100 * share:g}%", carried.belief)] if share else []
            known += [] if carried.lineage is None else [(f"{100 * share:g}% and all pods", carried.lineage)]
        if one.informed is not None:
            known += [("learnt from others", one.informed.others), ("learnt from all", one.informed.read)]
        for place, (values, spread) in enumerate(known):
            above = (f"{100 * part:.1f}%" for part in spread.above)
            figures = (f"{spread.most:.2f}", f"{spread.mean:.2f}", *above)
            rows.append(("" if place else one.attribute, values, spread.people, *figures))
    heads = ("about", "values known", "people", "largest", "mean", "above .5", "above .7", "above .9")
    return Grid(heads, tuple(rows), "Beliefs")


def _over_releases(attribute: str, over: Sequence[BeliefSpread], audit: Audit) -> Picture:
    trends = [
        Trend("mean belief", tuple(one.mean for one in over)),
        Trend("share above .5", tuple(one.above[0] for one in over)),
        Trend("share above .9", tuple(one.above[2] for one in over)),
    ]
    return lines(f"How sure after each release: {attribute}", _release_names(audit), trends)


def _untried(audit: Audit) -> Iterator[Block]:
    if audit.untried:
        yield Heading("Not tried, and so not promised")
        rows = [(", ".join(one.attacks), ", ".join(one.on) or "everything", one.why, one.give) for one in audit.untried]
        yield Grid(("attack", "on", "why", "give"), tuple(rows), "What was not tried")


def _notes(audit: Audit) -> Iterator[Block]:
    if audit.notes:
        yield Heading("How to read it")
        yield Bullets(audit.notes)


def _names(audit: Audit) -> str:
    return ", ".join(f"{number}: {name}" for number, name in enumerate(_release_names(audit), start=1))


def _release_names(audit: Audit) -> Sequence[str]:
    return [release.name for release in audit.histories[0].releases] if audit.histories else []


def _count(audit: Audit) -> int:
    return len(audit.histories[0]) if audit.histories else 0


def _title(audit: Audit) -> str:
    series = "" if audit.policy is None else f"{audit.policy.series}: "
    return f"{series}audit of {amount(_count(audit), 'release')}"


def _k(audit: Audit) -> int:
    return max(2, audit.policy.protect.k if audit.policy is not None else 2)


def _at_least(people: int, k: int) -> str:
    return f"{people:,}" if people == 0 or people >= k else f"fewer than {k}"
