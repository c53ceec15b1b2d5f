"""Audit and publisher, judged by enumerated worlds.

What the product finds is compared with two things: the worlds themselves, and the linear program over expected numbers,
which is all that can be computed at size. The product must agree with the program exactly and may never claim what is
not so in the worlds. Where worlds of whole people tell more than the program, that is a *gap*: it is counted.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import sequester as sq
from sequester.ledger import Key
from tiny import BELOW, Case, Story, stays
from worlds import CLEAR, Knowledge, Label, Published, Relaxed

KEY = Key.of_text("a key for tests only")
MOST = 5_000
"""Worlds that are looked at; examples with more are passed over."""


@dataclass(frozen=True)
class Verdict:
    """What there was to be found, and whether only whole worlds tell it.

    traced, tied      whether some row has fewer than k owners, and some value cannot be denied
    rows, values      the same by the program
    note              what else there is to say
    """

    traced: bool
    tied: bool
    rows: bool
    values: bool
    note: str = ""

    @property
    def gap(self) -> bool:
        return (self.traced, self.tied) != (self.rows, self.values)

    def events(self) -> list[str]:
        return [
            *([self.note] if self.note else []),
            f"row with few owners: {self.traced}",
            f"value that cannot be denied: {self.tied}",
            f"gap between worlds and program: {self.gap}",
        ]


def verdict_on(published: Published, k: int) -> Verdict:
    """What an insider can know of these releases."""
    known, program = Knowledge(published, MOST), Relaxed(published)
    return Verdict(
        traced=known.fewest_owners() < k,
        tied=not known.deniable(),
        rows=min(map(len, program.owners().values())) < k,
        values=program.strain() > 1 + CLEAR,
    )


def insider(found: sq.Audit) -> dict[str, list[Any]]:
    """The findings of an insider, by attack."""
    return {
        name: [finding for finding in found.findings if finding.attack == name]
        for name in ("difference", "tracing", "deniability")
    }


def check_audit(case: Case) -> Verdict:
    """An audit of these releases finds what can be found, and nothing else."""
    published = case.published()
    verdict = verdict_on(published, case.k)
    found = sq.audit(case.tables(), case.policy, against=["insider"])
    by_attack = insider(found)
    known = Knowledge(published, MOST)
    if case.different:
        # Whoever has a finer cell in another release is taken to show it everywhere: of rows that never finds less. Of
        # values it may: a coarser cell may be more values. So each release is judged as it is written, too.
        assert by_attack["tracing"] or not verdict.rows
        if any(Relaxed(alone).strain() > 1 + CLEAR for alone in published.single()):
            assert any(finding.attack in ("confidence", "deniability") for finding in found.findings)
        return verdict
    assert bool(by_attack["tracing"]) == verdict.rows
    assert bool(by_attack["deniability"]) == verdict.values
    assert not verdict.rows or verdict.traced
    assert not verdict.values or verdict.tied
    owners = Relaxed(published).owners()
    for finding in by_attack["tracing"]:
        check_traced(finding, owners, known)
    for finding in by_attack["difference"]:
        check_difference(finding, case, known)
    if len(case.releases) == 2:
        assert not verdict.gap, "so few people of two releases are whole in every corner of the program"
    return verdict


def check_measure(case: Case) -> None:
    """Deniability measures the confidence that no belief gets below, whether or not it is too much."""
    check_measured(sq.audit(case.tables(), case.policy, against=["insider"]), case.published())


def check_measured(found: sq.Audit, published: Published) -> None:
    """The same, of an audit of this."""
    largest = max([bound for column in published.columns for bound in column.bounds.values()], default=0)
    # Where bounds differ it is the smallest multiple of all of them, of the largest.
    unavoidable = min(1.0, Relaxed(published).strain() * float(largest))
    assert abs(found.measures.get("deniability", 0) - unavoidable) < 1e-6


def check_traced(finding: Any, owners: dict[tuple[int, int, Label], frozenset[Hashable]], known: Knowledge) -> None:
    """Some row with this label can belong to these people only, and nobody else has it in any world."""
    fitting = [row for row in owners if _written(row[2], finding.value) and owners[row] == set(finding.people)]
    assert fitting
    assert finding.observed == len(finding.people) < finding.required
    assert all(known.owners()[row] <= set(finding.people) for row in fitting)


def check_difference(finding: Any, case: Case, known: Knowledge) -> None:
    """What is said of these people is so in every world."""
    people = set(finding.people)
    groups = [group for group, occupants in known.published.groups.items() if people.issuperset(occupants)]
    assert people == {who for group in groups for who in known.published.groups[group]}
    rows = [
        Counter(
            next(label for label in lives if label is not None)
            for group in groups
            for lives, number in world[group].items()
            for _ in range(number)
        )
        for world in known.worlds
    ]
    if finding.value is None:
        assert all(row == rows[0] for row in rows), "classes determine what these people have"
        assert finding.observed == len(people) < finding.required
        return
    names = [name for name, column in case.columns.items() if stays(column)]
    # The last cell of a label may be a combination of others.
    names += [finding.attribute] if " and " in (finding.attribute or "") else []
    assert finding.observed > finding.required
    for row in rows:
        if finding.attribute in names:
            column = known.published.columns[names.index(finding.attribute)]
            asked = {value for part in finding.value.split(" or ") for value in BELOW.get(part, {part})}
            at = names.index(finding.attribute)
            having = sum(number for label, number in row.items() if asked & column.bounded([label[at]]))
        else:
            having = sum(number for label, number in row.items() if _written(label, finding.value))
        assert having >= finding.observed * len(people) - 1e-9


def _written(label: Label, text: str) -> bool:
    """Whether this is how a label is written; columns may come in any order."""
    return sorted(cell for cell in label if " and " not in cell) == sorted(text.split(", "))


def publish(story: Story, folder: Path) -> list[list[list[str]]]:
    """Publish the tables, as far as that is possible, and say who is in which class of every release."""
    series = sq.Series.open(folder / "tiny.ledger", story.policy, key=KEY)
    releases: list[list[list[str]]] = []
    names: dict[int, str] = {}
    for at, table in enumerate(story.tables()):
        try:
            plan = series.plan(table, name=f"t{at}", seed=(1 << 63) + at, everybody_is_new=True)
        except sq.GuaranteeError:
            continue
        assert plan.holds
        release = series.publish(plan)
        made = plan.candidate
        assert made is not None
        numbers, persons = made.past.person.tolist(), made.records.person.to_pylist()
        names |= {number: name for number, name in zip(numbers, persons, strict=True) if name is not None}
        # Classes with one box are one class for whoever sees the table.
        boxes = [tuple(box) for box in (*made.classes.lo.T.tolist(),)]
        corners = [tuple(box) for box in (*made.classes.hi.T.tolist(),)]
        classes: dict[Any, list[str]] = {}
        for number, place in zip(numbers, made.classes.member.tolist(), strict=True):
            if place >= 0:
                classes.setdefault((boxes[place], corners[place]), []).append(names[number])
        releases.append(list(classes.values()))
        check_table(story, release.table.to_pylist(), releases[-1])
        check_presence(story, at, releases)
    if releases:
        assert series.audit().holds
    return releases


def check_table(story: Story, rows: list[dict[str, Any]], classes: list[list[str]]) -> None:
    """The published table shows exactly these classes with their people's labels, and no row is marked."""
    shown: dict[Any, list[Label]] = {}
    for row in rows:
        shown.setdefault((row["age_min"], row["age_max"], row["sex"]), []).append(
            tuple(row[name] for name in story.names)
        )
        assert all(row[name] not in (None, "") for name in story.columns)
    assert sorted(map(sorted, shown.values())) == sorted(sorted(map(story.label, people)) for people in classes)


def check_presence(story: Story, at: int, releases: list[list[list[str]]]) -> None:
    """Of one table all newcomers come or all wait, all who return, too; all leavers go or all stay."""
    here, inside = set(story.present[at]), {person for one in releases[-1] for person in one}
    before = [{person for one in release for person in one} for release in releases[:-1]]
    ever, last = set().union(*before), before[-1] if before else set()
    for people in (here - ever, (here & ever) - last, last - here):
        assert not people or people <= inside or not people & inside


def check_published(story: Story) -> Verdict | None:
    """Nobody is exposed by what was published, by the worlds; None where nothing could be."""
    with tempfile.TemporaryDirectory() as folder:
        releases = publish(story, Path(folder))
    if not releases:
        return None
    assert all(len(one) >= story.k for release in releases for one in release)
    if "insider" not in story.against:
        return None
    verdict = verdict_on(story.published(releases), story.k)
    assert not verdict.rows
    assert not verdict.values
    people = [{person for one in release for person in one} for release in releases]
    moved = sum(one != other for one, other in pairwise(people))
    return replace(verdict, note=f"{len(releases)} releases, with other people {moved} times")
