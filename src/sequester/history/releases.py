"""Releases as published, by us or by others, in the domains that all of them share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from sequester.domain import notation
from sequester.domain.hierarchy import EVERYTHING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.plain import plain_codes, text_cells
from sequester.errors import DataError, Problem
from sequester.guarantees.requirement import Requirement
from sequester.history.label import Plain
from sequester.ingest.published import (
    PublishedClasses,
    PublishedTable,
    boxes_of,
    classes_of,
    domains_of,
    exact_codes,
    open_table,
)
from sequester.ingest.validate import amount
from sequester.policy.model import Policy

T = TypeVar("T")

_LIST = "registration list"
_TARGET = "target"


@dataclass(frozen=True, eq=False, repr=False)
class Releases:
    """Every release as classes and codes. Tuples have one entry per release, in order of publication.

    sensitive   (sensitive attributes, rows) codes of every release
    population  tables of the people behind each release, empty when none are given
    registered  (quasi-identifiers, people) codes of a registration list, None when none is given
    target      (quasi-identifiers, 1) sides of the box of a target, None when none is given
    plain       insensitive cells that do not change, of the rows of all releases one after the other
    """

    policy: Policy
    names: tuple[str, ...]
    tables: tuple[PublishedTable, ...]
    published: tuple[PublishedClasses, ...]
    sensitive: tuple[Codes, ...]
    population: tuple[PublishedTable, ...]
    domains: tuple[Hierarchy, ...]
    requirement: Requirement
    notes: tuple[str, ...]
    registered: Codes | None = None
    target: tuple[Codes, Codes] | None = None
    plain: Plain = field(default_factory=Plain)

    def __len__(self) -> int:
        return len(self.tables)

    def written(self, number: int, row: int) -> tuple[str, ...]:
        """The quasi-identifiers of one row as they are published."""
        columns = self.tables[number].quasi
        return tuple(column.texts[code] if (code := column.index[row]) >= 0 else "" for column in columns)

    def __repr__(self) -> str:
        return f"<Releases: {len(self)}, {sum(table.rows for table in self.tables)} rows>"


def read_releases(
    releases: Sequence[Any],
    policy: Policy,
    *,
    population: Sequence[Any] | None = None,
    registered: Any | None = None,
    target: Mapping[str, str] | None = None,
    show_values: bool = False,
) -> Releases:
    """Read releases, files or frames, in order of publication, and the population behind each if it is given.

    `registered` is one table like those of the population, of all people who may be in any release; `target` has cells
    of one person's quasi-identifiers, as exact as they are known. Domains that the
    policy does not declare come from the cells of all these tables together, so that boxes of different releases can
    be compared. Everything that is wrong is in one DataError.
    """
    sources = _listed(releases, "releases")
    people = [] if population is None else _listed(population, "population tables")
    if not sources:
        raise DataError("there is no release; give at least one")
    called = _names(sources)
    if population is not None and len(people) != len(sources):
        message = f"{len(people)} population tables for {len(sources)} releases"
        raise DataError(f"{message}; give one for each, in the same order")
    for given, what in ((population, "population tables need"), (registered, "a registration list needs")):
        if given is not None and policy.person is None:
            raise DataError(f"{what} a column that says who a row is about; name it with `person`")
    lists = {} if registered is None else {_LIST: registered}
    targets = {} if target is None else {_TARGET: target}
    read = Gathered()
    tables = read.each(called, sources, lambda source: open_table(source, policy, person=True))
    behind = read.each(population_names(called, people), people, lambda source: _population(source, policy))
    listed = read.each(lists, lists.values(), lambda source: _population(source, policy))
    asked = read.each(targets, targets.values(), lambda cells: _target(cells, policy))
    read.check()
    domains = domains_of(policy, *(table.quasi for table in (*tables, *behind, *listed, *asked)))
    sensitive_domains = domains_of(policy, *(table.sensitive for table in tables))
    published = read.each(called, tables, lambda table: classes_of(table, domains, show_values=show_values))
    sensitive = read.each(called, tables, lambda table: _sensitive(table, sensitive_domains, show_values=show_values))
    points = read.each(lists, listed, lambda table: exact_codes(table.quasi, domains, show_values=show_values))
    one = np.zeros(1, np.int64)
    boxes = read.each(targets, asked, lambda table: boxes_of(table, domains, first=one, show_values=show_values))
    read.check()
    requirement = Requirement.from_policy(policy, sensitive_domains)
    return Releases(
        policy=policy,
        names=called,
        tables=tuple(tables),
        published=tuple(published),
        sensitive=tuple(sensitive),
        population=tuple(behind),
        domains=domains,
        requirement=requirement,
        notes=tuple(_notes((*called, *lists), (*tables, *listed), domains, requirement)),
        plain=_plain(tables, policy),
        registered=points[0] if points else None,
        target=boxes[0] if boxes else None,
    )


class Gathered:
    """Does the same for every table, and gathers what is wrong in all of them before anything is raised."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def each(self, names: Iterable[str], items: Iterable[Any], work: Callable[[Any], T]) -> list[T]:
        """The results of those that went well; names are for the problems of the others."""
        done = []
        for name, item in zip(names, items, strict=True):
            try:
                done.append(work(item))
            except DataError as error:
                self.problems += [replace(problem, file=problem.file or name) for problem in error.problems]
        return done

    def check(self) -> None:
        """Raise whatever was wrong."""
        if self.problems:
            raise DataError(self.problems)


def population_names(names: Sequence[str], tables: Sequence[Any]) -> list[str]:
    """What the population tables of releases are called; there are as many, or none."""
    return [f"population of {name}" for name in names[: len(tables)]]


def _listed(given: Any, what: str) -> list[Any]:
    """A single path or frame is easily given by mistake; its letters or columns are no tables."""
    if isinstance(given, str | os.PathLike) or not isinstance(given, Sequence):
        raise DataError(f"{what} must be a list, in order of publication, also when there is only one")
    return list(given)


def _names(sources: Sequence[Any]) -> tuple[str, ...]:
    files = [Path(source) if isinstance(source, str | os.PathLike) else None for source in sources]
    repeated = Counter(file.name for file in files if file is not None)
    return tuple(
        f"release {number}" if file is None else file.name if repeated[file.name] == 1 else str(file)
        for number, file in enumerate(files, start=1)
    )


def _population(source: Any, policy: Policy) -> PublishedTable:
    table = open_table(source, policy, sensitive=False, own=True, person=True)
    if table.person is None:
        raise DataError(Problem("is not in the table; say there who each row is about", column=policy.person))
    return table


def _target(cells: Mapping[str, str], policy: Policy) -> PublishedTable:
    """A table of one row; what is not known of her may be anything."""
    names = list(policy.quasi_identifiers)
    unknown = [name for name in cells if name not in names]
    if unknown or not cells:
        fix = f"name some of {', '.join(names)}"
        raise DataError([Problem(f"is no quasi-identifier; {fix}", column=name) for name in unknown or ["nothing"]])
    row = {name: [str(cells.get(name, EVERYTHING))] for name in names}
    return open_table(pa.table(row), policy, sensitive=False)


def _sensitive(table: PublishedTable, domains: Sequence[Hierarchy], *, show_values: bool) -> Codes:
    codes = exact_codes(table.sensitive, domains, show_values=show_values)
    return codes if len(domains) else np.zeros((0, table.rows), np.int32)


def _notes(
    names: Sequence[str], tables: Sequence[PublishedTable], domains: Sequence[Hierarchy], requirement: Requirement
) -> list[str]:
    """What a reader must know about how the releases were read."""
    notes = []
    for name, table in zip(names, tables, strict=True):
        if table.left_out:
            notes.append(f"{name}: {amount(table.left_out)} without a value left out, as `missing: suppress` asks")
        for column, domain in zip(table.quasi, domains, strict=True):
            if kind_of(domain).ordered:
                continue
            interval = np.append(notation.read(domain, column.texts)[2], True)
            if scattered := int(np.count_nonzero(~interval[column.index])):
                what = (
                    f"{name}: column '{column.name}': {amount(scattered)} with a set of values that are no neighbours"
                )
                notes.append(f"{what}, taken as everything between its ends")
    if requirement.unmatched:
        notes.append(f"values in the policy that no release has: {', '.join(requirement.unmatched)}")
    return notes


def _plain(tables: Sequence[PublishedTable], policy: Policy) -> Plain:
    """The insensitive cells that stay, of the rows of all releases; -1 where a release lacks the column."""
    names = [name for name in policy.lasting if any(name in table.plain for table in tables)]
    codes, texts = [], []
    for name in names:
        here = [table.plain[name] for table in tables if name in table.plain]
        domain, of_all = plain_codes(
            pa.chunked_array([chunk for column in here for chunk in text_cells(column).chunks])
        )
        ends = np.cumsum([0, *map(len, here)]).tolist()
        parts = iter([of_all[start:end] for start, end in pairwise(ends)])
        own = [next(parts) if name in table.plain else np.full(table.rows, -1, np.int32) for table in tables]
        codes.append(np.concatenate(own))
        texts.append(domain.names[0])
    rows = sum(table.rows for table in tables)
    return Plain(tuple(names), np.array(codes, np.int32).reshape(len(names), rows), tuple(texts))
