"""From published files or frames to histories, one for each sensitive view.

Who is in which class is known in the publisher's view (the releases have the policy's person column) and with a
population (people are found by their raw values in the boxes). Otherwise it is the outsider's view: boxes and values.

What is published about one person must fit together. One of her values may be published once as a node and once more
exactly: whoever knows her rows knows the finest. An adversary who knows more has fewer worlds to choose from, so taking
the finest value that was ever published about a person for what every release said of her never gives a row more
owners. It can hide how many values a coarser cell may be, so single releases are judged as they are written, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sequester.domain import people as known_people
from sequester.domain.hierarchy import EVERYTHING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import nesting
from sequester.errors import DataError, Problem
from sequester.history.drift import Sides, exact, links_of, reach, steps_of, worth
from sequester.history.history import History, Publication
from sequester.history.label import Labels, Rows
from sequester.history.population import Located, locate
from sequester.history.releases import Gathered, Releases, population_names
from sequester.history.sight import Sight, permanent_part, sights_of
from sequester.ingest.published import exact_codes
from sequester.ingest.source import quietly

_MIDPOINTS = "numbers are published as midpoints, which do not bound them: they link no rows across releases"


def histories_of(releases: Releases, known: Membership | None = None) -> tuple[History, ...]:
    """The histories of releases that are already read; `known` says who is where, where that is found out already."""
    return read_rows(releases, known)[0]


def read_rows(releases: Releases, known: Membership | None = None) -> tuple[tuple[History, ...], Rows | None]:
    """The same, and whole rows, where they show more than one view."""
    known = find_members(releases) if known is None else known
    told = np.concatenate(_told(releases, known), axis=1)
    sights = sights_of(releases.requirement, releases.policy, told, compact=True)
    histories = _histories(releases, known, sights)
    return histories, _rows(releases, known, histories[0], told)


def _rows(releases: Releases, known: Membership, base: History, told: Codes) -> Rows | None:
    """Whole rows: by people, where they are known to have them."""
    policy, domains = releases.policy, releases.requirement.domains
    cells = releases.plain
    if known.rows is not None:
        who = np.concatenate(known.rows)
        first = np.full(len(known.people), -1, np.int64)
        first[who[::-1]] = np.arange(len(who))[::-1]
        told = told[:, first]
        # A column that a release lacks is as the others have it: whoever knows more can tell more.
        cells = replace(cells, codes=_filled(cells.codes, who, len(known.people)))
    sights = sights_of(releases.requirement, policy, told, compact=True)
    labels = Labels.of_policy(policy, domains, sights, told, cells)
    if labels is None:
        return None
    if known.rows is not None:
        return Rows.of_people(base, labels, counted=True)
    ends = list(accumulate((table.rows for table in releases.tables), initial=0))
    shown = [labels.of[ends[number] : ends[number + 1]] for number in range(len(releases))]
    nobody = np.full(len(known.people), -1, np.int32)
    return Rows.of_rows(base, replace(labels, of=nobody), shown)


def _filled(codes: Codes, who: Codes, people: int) -> Codes:
    """(columns, people) the cell of everybody, from any row that has it; -1 where none has."""
    cells = np.full((len(codes), people), -1, np.int32)
    for row, own in zip(cells, codes, strict=True):
        has = np.flatnonzero(own >= 0)
        row[who[has]] = own[has]
    return cells


def _histories(releases: Releases, known: Membership, sights: Sequence[Sight]) -> tuple[History, ...]:
    ends = list(accumulate((table.rows for table in releases.tables), initial=0))
    histories = []
    for sight in sights:
        history = _begin(releases, sight, known)
        for number in range(len(releases)):
            codes = sight.codes[ends[number] : ends[number + 1]]
            history = history.extend(_publication(releases, number, known, codes=codes, values=len(sight.names)))
        histories.append(history)
    return tuple(histories)


def is_written_differently(releases: Releases, known: Membership) -> bool:
    """Whether somebody's sensitive cell is finer in one release than in another: single releases show the coarser."""
    told = zip(_told(releases, known), releases.sensitive, strict=True)
    return any(bool((finest != written).any()) for finest, written in told)


def _told(releases: Releases, known: Membership) -> list[Codes]:
    """The sensitive codes of every release; where people are known, the finest that any release says of each."""
    told = [codes.copy() for codes in releases.sensitive]
    for place, attribute in enumerate(releases.policy.sensitive.values()):
        domain = releases.requirement.domains[place]
        open_ = attribute.is_graded or EVERYTHING in domain.names[0]
        if known.rows is not None and open_ and attribute.stays:
            own, _ = finest_values(len(known.people), known.rows, [codes[place] for codes in told], domain)
            for codes, finest in zip(told, own, strict=True):
                codes[place] = finest
    return told


def _begin(releases: Releases, sight: Sight, known: Membership) -> History:
    policy = releases.policy
    midpoints = policy.output.numbers == "midpoint"
    quasi = policy.quasi_identifiers
    notes = [*releases.notes, *known.notes]
    if midpoints and any(kind_of(attribute).numeric for attribute in quasi.values()):
        notes.append(_MIDPOINTS)
    return History(
        attribute=sight.view.name,
        element=sight.element,
        values=sight.names,
        k=policy.protect.k,
        inferred=policy.fewest,
        bounds=sight.bounds,
        domains=releases.domains,
        quasi_names=tuple(quasi),
        links=links_of(policy),
        steps=steps_of(policy),
        permanent=sight.permanent,
        kept=sight.kept,
        people=known.people,
        criteria=sight.criteria,
        guarded=policy.bounds_values,
        notes=tuple(notes),
    )


def _publication(releases: Releases, number: int, known: Membership, *, codes: Codes, values: int) -> Publication:
    published, merged = releases.published[number], known.merged[number]
    classes = int(merged.max()) + 1
    row_class = merged[published.member]
    counts = np.bincount(row_class.astype(np.int64) * values + codes, minlength=classes * values)
    lo = np.full((len(releases.domains), classes), np.iinfo(np.int32).max, np.int32)
    hi = np.full((len(releases.domains), classes), -1, np.int32)
    for axis in range(len(lo)):
        np.minimum.at(lo[axis], merged, published.lo[axis])
        np.maximum.at(hi[axis], merged, published.hi[axis])
    value = None
    if known.rows is not None:
        value = np.full(len(known.people), -1, np.int32)
        value[known.rows[number]] = codes
    return Publication(
        name=releases.names[number],
        lo=lo,
        hi=hi,
        counts=counts.reshape(classes, values).astype(np.int64),
        row_class=row_class,
        row_value=codes,
        member=known.member[number],
        value=value,
        certain=known.certain[number] if known.certain else None,
    )


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
    tables = releases.population
    names = population_names(releases.names, tables)
    people = recognize([table.person for table in tables], column=str(releases.policy.person), names=names)
    gathered = Gathered()
    points = gathered.each(names, tables, lambda table: exact_codes(table.quasi, releases.domains))
    gathered.check()
    problems = _moved(releases, people, [(codes, codes) for codes in points], raw=True)
    if problems:
        raise DataError(problems)
    pairs = list(zip(points, releases.published, strict=True))
    places: list[Located] = gathered.each(
        names, pairs, lambda pair: locate(pair[0], pair[1].lo, pair[1].hi, size=pair[1].size)
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
    tables = releases.population
    names = population_names(releases.names, tables)
    people = recognize([table.person for table in tables], column=str(releases.policy.person), names=names)
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


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Everybody in any table: ids as first given, and per table the person of every row."""

    ids: tuple[Any, ...]
    rows: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<People: {len(self)} in {len(self.rows)} tables>"

    def spread(self, table: int, values: Codes) -> Codes:
        """Values of the rows of one table as values of all people; -1 for those who are not in it."""
        spread = np.full(len(self), -1, np.int32)
        spread[self.rows[table]] = values
        return spread


def recognize(columns: Sequence[pa.ChunkedArray], *, column: str, names: Sequence[str]) -> People:
    """People by their ids as `domain.people` reads them: 7 of a frame is '7' of a file. Each has one row per table."""
    ids: list[Any] = []
    rows: list[Codes] = []
    known = pa.array([], pa.string())
    problems = []
    for name, cells in zip(names, columns, strict=True):
        unread = Problem("has a type that cannot be read as text; convert it", file=name, column=column)
        values, texts = _read(cells, unread)
        if repeated := len(texts) - len(texts.unique()):
            message = f"{repeated} ids occur twice; keep one row for each person"
            problems.append(Problem(message, file=name, column=column, rows=repeated))
            continue
        new = pc.invert(pc.is_in(texts, value_set=known))
        ids += _listed(values.filter(new), texts.filter(new))
        known = pa.concat_arrays([known, texts.filter(new)])
        rows.append(pc.index_in(texts, value_set=known).to_numpy(zero_copy_only=False).astype(np.int32))
    if problems:
        raise DataError(problems)
    return People(tuple(ids), tuple(rows))


def changed_values(people: People, codes: Sequence[Codes]) -> int:
    """How many people have different values in different tables; `codes` has one per row of each, -1 for none."""
    last = np.full(len(people), -1, np.int32)
    changed = np.zeros(len(people), np.bool_)
    for rows, values in zip(people.rows, codes, strict=True):
        changed[rows] |= (last[rows] >= 0) & (values >= 0) & (last[rows] != values)
        last[rows] = np.where(values >= 0, values, last[rows])
    return int(changed.sum())


def parted_boxes(people: People, sides: Sequence[Sides], *, pace: tuple[float, float] = (0, 0)) -> int:
    """How many people have intervals of one attribute that no value lies in all of; (low, high) per row of each.

    Between two tables the value moves by `pace`, the least and the most: then it is where it can be by now that counts.
    NaN is a value that is not there, which says nothing.
    """
    low, high = np.full(len(people), -np.inf), np.full(len(people), np.inf)
    parted = np.zeros(len(people), np.bool_)
    steps = np.array([pace], np.float64)
    for rows, (lo, hi) in zip(people.rows, sides, strict=True):
        low, high = (side[0] for side in reach((low[None], high[None]), steps, 1))
        absent = np.isnan(lo)
        low[rows] = np.where(absent, -np.inf, np.maximum(low[rows], lo))
        high[rows] = np.where(absent, np.inf, np.minimum(high[rows], hi))
        parted |= low > high
    return int(np.count_nonzero(parted))


def _listed(values: pa.Array, texts: pa.Array) -> list[Any]:
    """Ids as Python has them, or as text where it has no such thing: days after the year 9999."""
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError):
        return list(texts.to_pylist())


def _read(cells: pa.ChunkedArray, unread: Problem) -> tuple[pa.Array, pa.Array]:
    """The ids as they count, and the text by which each is known."""

    def read() -> tuple[pa.Array, pa.Array]:
        values = known_people.bare(cells)
        return values, known_people.names(values)

    return quietly(read, lambda _: unread, errors=pa.ArrowException)


def finest_values(
    people: int, rows: Sequence[NDArray[np.integer]], codes: Sequence[Codes], domain: Hierarchy
) -> tuple[list[Codes], int]:
    """Per release and row the finest value of its person, and of how many people the values exclude each other.

    rows, codes  per release, the person and the published code of every row
    """
    finest = np.full(people, -1, np.int32)
    apart = np.zeros(people, np.bool_)
    for who, published in zip(rows, codes, strict=True):
        before = finest[who]
        known = before >= 0
        finer, coarser = nesting(domain, before, published)
        apart[who] |= known & ~finer & ~coarser
        finest[who] = np.where(~known | finer, published, before)
    return [finest[who] for who in rows], int(np.count_nonzero(apart))
