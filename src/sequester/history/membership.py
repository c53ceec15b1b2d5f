"""Who is in which class of every release: said by a person column, found with a population, or not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sequester.domain.hierarchy import EVERYTHING, Codes
from sequester.errors import DataError, Problem
from sequester.history.drift import exact, links_of, steps_of, worth
from sequester.history.finest import finest_values
from sequester.history.people import People, changed_values, parted_boxes, recognize
from sequester.history.population import Located, locate
from sequester.history.releases import Gathered, Releases
from sequester.history.sight import permanent_part
from sequester.ingest.published import exact_codes


@dataclass(frozen=True, eq=False, repr=False)
class Membership:
    """Who is where. Tuples have one entry per release.

    member  the class of every person, -1 when absent; None when not known, as of a population that is not everybody
    merged  for every published class the number of the set it is taken together with; its own, as a rule
    rows    the person of every row, where rows say so; then everybody's value is known too
    certain the published class that a person must be in, -1 where she is absent or only the set is known; empty where
            no classes are taken together
    """

    people: tuple[Any, ...]
    member: tuple[Codes | None, ...]
    merged: tuple[Codes, ...]
    rows: tuple[Codes, ...] | None
    notes: tuple[str, ...]
    certain: tuple[Codes, ...] = ()

    def as_published(self, releases: Releases) -> Membership:
        """The classes as they were published: of people only what is certain, as far as it is more than nothing."""
        people = self.people if self.certain else ()
        nobody = Membership.of_nobody(releases)
        return replace(nobody, people=people, certain=self.certain)

    @classmethod
    def of_nobody(cls, releases: Releases) -> Membership:
        """The outsider's view."""
        return cls((), (None,) * len(releases), _unmerged(releases), None, ())


def _unmerged(releases: Releases) -> tuple[Codes, ...]:
    return tuple(np.arange(len(published), dtype=np.int32) for published in releases.published)


def find_members(releases: Releases) -> Membership:
    """Who is where, from the person column if the releases have it, else from the population, else of nobody."""
    have = [table.person is not None for table in releases.tables]
    if any(have) and not all(have):
        person = releases.policy.person
        lacking = [name for name, has in zip(releases.names, have, strict=True) if not has]
        fix = "other releases have it; give it in all, or in none"
        raise DataError([Problem(f"is not in this release, but {fix}", file=name, column=person) for name in lacking])
    if all(have):
        return _publishers_view(releases)
    if releases.population:
        return _population_view(releases)
    return Membership.of_nobody(releases)


def _publishers_view(releases: Releases) -> Membership:
    columns = [table.person for table in releases.tables]
    people = recognize(columns, column=str(releases.policy.person), names=releases.names)
    problems = []
    domains = releases.requirement.domains
    stays = [permanent_part(releases.policy, domains, codes) for codes in releases.sensitive]
    for place, (name, attribute) in enumerate(releases.policy.sensitive.items()):
        if attribute.stays or attribute.permanent:
            changed = changed_values(people, [codes[place] for codes in stays])
            if changed and (attribute.is_graded or EVERYTHING in domains[place].names[0]):
                own = [codes[place] for codes in releases.sensitive]
                changed = finest_values(len(people), people.rows, own, domains[place])[1]
            fix = "correct them, or say `values: transient`"
            problems += _differing(changed, name, f"different values in different releases; {fix}")
    ends = np.cumsum([0, *map(len, people.rows)])[1:-1]
    for name, cells in zip(releases.plain.names, releases.plain.codes, strict=True):
        changed = changed_values(people, np.split(cells, ends))
        fix = "correct them, or say `changes: true`"
        problems += _differing(changed, name, f"different values in different releases; {fix}")
    sides = [(p.lo[:, p.member], p.hi[:, p.member]) for p in releases.published]
    problems += _moved(releases, people, sides, raw=False)
    if problems:
        raise DataError(problems)
    member = [people.spread(n, p.member.astype(np.int32)) for n, p in enumerate(releases.published)]
    notes = ("the population is not used, since the releases say who is who",) if releases.population else ()
    return Membership(people.ids, tuple(member), _unmerged(releases), people.rows, notes)


def _population_view(releases: Releases) -> Membership:
    names = [f"population of {name}" for name in releases.names]
    tables = releases.population
    people = recognize([table.person for table in tables], column=str(releases.policy.person), names=names)
    gathered = Gathered(names)
    points = gathered.each(tables, lambda table: exact_codes(table.quasi, releases.domains))
    gathered.check()
    problems = _moved(releases, people, [(codes, codes) for codes in points], raw=True)
    if problems:
        raise DataError(problems)
    pairs = list(zip(points, releases.published, strict=True))
    places: list[Located] = gathered.each(
        pairs, lambda pair: locate(pair[0], pair[1].lo, pair[1].hi, size=pair[1].size)
    )
    gathered.check()
    notes = []
    whole = all(located.whole for located in places)
    for name, table, published, located in zip(names, tables, releases.published, places, strict=True):
        if located.unfit:
            notes.append(f"{name}: {_amount(located.unfit)} no published box and {_count(located.unfit)} as absent")
        if not located.whole:
            known, rows = table.rows - located.unfit, int(published.size.sum())
            notes.append(f"{name}: {known} of {rows} people are known; nothing is taken for granted about the others")
        elif located.ambiguous and whole:
            sizes = np.bincount(located.merged)
            tied = int(sizes[sizes > 1].sum())
            several = f"{name}: {_amount(located.ambiguous)} several published boxes"
            tie = f"{tied} classes are taken together as {int((sizes > 1).sum())}"
            notes.append(f"{several}; {tie} where everybody's class must be known")
    member = tuple(people.spread(number, located.member) for number, located in enumerate(places))
    if not whole:
        nobody = Membership.of_nobody(releases)
        sure = tuple(people.spread(number, located.certain) for number, located in enumerate(places))
        return replace(nobody, people=people.ids, certain=sure, notes=tuple(notes))
    certain: tuple[Codes, ...] = ()
    if any(located.ambiguous for located in places):
        certain = tuple(people.spread(number, located.certain) for number, located in enumerate(places))
    return Membership(people.ids, member, tuple(located.merged for located in places), None, tuple(notes), certain)


def points_of(releases: Releases, known: Membership) -> tuple[Codes, ...]:
    """Per release, (quasi-identifiers, people) everybody's exact values as a population tells them, -1 where it does
    not; empty without a population."""
    names = [f"population of {name}" for name in releases.names]
    tables = releases.population
    people = recognize(
        [table.person for table in tables], column=str(releases.policy.person), names=names[: len(tables)]
    )
    place = {str(person): number for number, person in enumerate(known.people)}
    who = np.array([place.get(str(person), -1) for person in people.ids], np.int64)
    points = []
    for table, rows in zip(tables, people.rows, strict=True):
        own = np.full((len(releases.domains), len(known.people)), -1, np.int32)
        own[:, who[rows][who[rows] >= 0]] = exact_codes(table.quasi, releases.domains)[:, who[rows] >= 0]
        points.append(own)
    return tuple(points)


def _moved(releases: Releases, people: People, sides: Sequence[tuple[Codes, Codes]], *, raw: bool) -> list[Problem]:
    """People whose values of an attribute cannot be one person's: they differ though they stay, or move too far."""
    problems = []
    links, steps = links_of(releases.policy), steps_of(releases.policy)
    for axis, name in enumerate(releases.policy.quasi_identifiers):
        own = [(lo[axis], hi[axis]) for lo, hi in sides]
        if links[axis]:
            moved = parted_boxes(people, [(lo.astype(np.float64), hi.astype(np.float64)) for lo, hi in own])
            fix = "correct them, or say `changes: true`"
            problems += _differing(moved, name, f"values in different releases that exclude each other; {fix}")
        elif not np.isnan(steps[axis, 0]):
            domain = releases.domains[axis]
            numbers = [(exact(domain, lo), exact(domain, hi)) if raw else worth(domain, lo, hi) for lo, hi in own]
            moved = parted_boxes(people, numbers, pace=(float(steps[axis, 0]), float(steps[axis, 1])))
            fix = "correct them, or widen `changes.by`"
            problems += _differing(moved, name, f"values that moved further than the policy says; {fix}")
    return problems


def _differing(count: int, column: str, what: str) -> list[Problem]:
    who = "1 person has" if count == 1 else f"{count} people have"
    return [Problem(f"{who} {what}", column=column, rows=count)] if count else []


def _amount(count: int) -> str:
    return "1 person fits" if count == 1 else f"{count} people fit"


def _count(count: int) -> str:
    return "counts" if count == 1 else "count"
