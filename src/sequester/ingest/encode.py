"""From any input and a policy to one encoded snapshot, or to everything that is wrong with it.

Columns that the policy does not name are never read, and neither are identifiers: what is not in the policy cannot be
published by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sequester.domain.build import declared
from sequester.domain.extend import extend, grows_from
from sequester.domain.grid import with_grid
from sequester.domain.hierarchy import Hierarchy
from sequester.domain.nodes import grade
from sequester.domain.plain import plain_codes
from sequester.errors import DataError, PolicyError, Problem
from sequester.ingest.personal import raise_grades
from sequester.ingest.snapshot import Snapshot
from sequester.ingest.table import Progress, RawTable, Reading, observe_domains, read_table
from sequester.policy.attributes import QuasiIdentifier, Sensitive
from sequester.policy.model import Policy

_CORRECT = "add them to the hierarchy, or correct the cells (`sequester check` with show_values=True says which)"
_FROZEN = "the given hierarchies are frozen: correct the cells, or give hierarchies that have them"
_CHANGED = (
    "is not what it was when the series began, so boxes published before would mean something else; "
    "values may be added to it, but those it had must stay, in their order and in their groups"
)


def encode(
    source: Any,
    policy: Policy,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
) -> Snapshot:
    """Read, check and encode a table; all problems of all columns come in one DataError.

    hierarchies  the domains of a series, by attribute; they replace what the policy or the data would give
    show_values  put up to ten offending values of a column into `Problem.values`; they are in no message
    progress     called before each column with its name, its number and how many there are
    """
    table = read_table(source, reading_of(policy, hierarchies, show_values=show_values), progress=progress)
    _refuse(table.all_problems())
    return _snapshot(table, policy, observe_domains(table))


def encode_next(
    source: Any,
    policy: Policy,
    before: Mapping[str, Hierarchy],
    *,
    show_values: bool = False,
    progress: Progress | None = None,
) -> Snapshot:
    """Like `encode`, for the next snapshot of a series whose attributes have had these domains so far.

    Domains that the policy declares may have more values than they had; those that come from the data get the new ones.
    """
    reading = check_domains(policy, before, show_values=show_values)
    table = read_table(source, reading, progress=progress)
    _refuse(table.all_problems())
    return _snapshot(table, policy, extended(table, before), before=before)


def check_domains(policy: Policy, before: Mapping[str, Hierarchy], *, show_values: bool = False) -> Reading:
    """Refuse domains of a policy that are not those of a series so far, with more values or without; returns them."""
    reading = reading_of(policy, None, show_values=show_values)
    changed = [name for name, domain in reading.known.items() if not _goes_on(policy, name, before[name], domain)]
    if changed:
        raise PolicyError(
            Problem(_CHANGED, key=f"attributes.{name}.{'bands' if _is_banded(policy, name) else 'hierarchy'}")
            for name in changed
        )
    return reading


def encode_with_population(
    source: Any,
    policy: Policy,
    *,
    population: Any,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    show_values: bool = False,
    progress: Progress | None = None,
) -> tuple[Snapshot, NDArray[np.int32]]:
    """Like `encode`, with the quasi-identifiers of a population table as codes in the same domains.

    Domains that come from the data then hold the values of both tables: a box also fits people of the population
    whose values nobody in the snapshot has.
    """
    reading = reading_of(policy, hierarchies, show_values=show_values)
    table = read_table(source, reading, progress=progress)
    people = read_table(population, _only_quasi(reading, policy), progress=progress)
    _refuse([*table.all_problems(), *_problems_in(people, "population table")])
    domains = observe_domains(table, people)
    return _snapshot(table, policy, domains), people.codes(tuple(policy.quasi_identifiers), domains)


def encode_list(
    source: Any, policy: Policy, before: Mapping[str, Hierarchy], *, show_values: bool = False
) -> tuple[dict[str, Hierarchy], NDArray[np.int32]]:
    """The quasi-identifiers of everybody who may be in a series, as codes, and the domains with their values too."""
    people = read_table(source, _only_quasi(reading_of(policy, None, show_values=show_values), policy))
    _refuse(_problems_in(people, "registration list"))
    domains = {**before, **extended(people, before)}
    return domains, people.codes(tuple(policy.quasi_identifiers), domains)


def reading_of(policy: Policy, hierarchies: Mapping[str, Hierarchy] | None, *, show_values: bool) -> Reading:
    """Which columns of a table a policy wants, as what."""
    attributes: dict[str, QuasiIdentifier | Sensitive] = {**policy.quasi_identifiers, **policy.sensitive}
    known, fixes, problems = {}, {}, []
    for name, attribute in attributes.items():
        if hierarchies and name in hierarchies:
            known[name], fixes[name] = hierarchies[name], _FROZEN
            if attribute.missing == "category" and not known[name].missing:
                problems.append(Problem("the hierarchy of the series has no place for missing cells", column=name))
        # A range of integers is a domain only if the column has no fractions: the data decides.
        elif attribute.hierarchy is not None or isinstance(attribute, Sensitive):
            hierarchy = declared(attribute, policy.path)
            if hierarchy is not None:
                known[name], fixes[name] = hierarchy, _CORRECT
    _refuse(problems)
    guarding = {name: a.guarding for name, a in policy.sensitive.items() if a.guarding is not None}
    return Reading(
        attributes, known, fixes, policy.input, policy.person, policy.insensitive, show_values, policy.consent, guarding
    )


def _only_quasi(reading: Reading, policy: Policy) -> Reading:
    return replace(
        reading,
        attributes=policy.quasi_identifiers,
        person=None,
        listed=policy.person,
        plain=(),
        consent=None,
        guarding={},
    )


def _snapshot(
    table: RawTable,
    policy: Policy,
    domains: Mapping[str, Hierarchy],
    *,
    before: Mapping[str, Hierarchy] | None = None,
) -> Snapshot:
    quasi, sensitive = tuple(policy.quasi_identifiers), tuple(policy.sensitive)
    kept, records = table.kept, table.records
    mask = None if kept is None else pa.array(kept)
    plain = pa.table({name: table.plain[name] for name in policy.insensitive})
    plain = plain if mask is None or not plain.column_names else plain.filter(mask)
    coded = [plain_codes(plain[name], (before or {}).get(name)) for name in plain.column_names]
    exact = table.codes(sensitive, domains)
    withheld = 0 if table.withheld is None else int(table.withheld.sum())
    published, raised = _graded(table, policy, exact, domains)
    refused = None if table.withheld is None or table.person is None else table.person.filter(pa.array(table.withheld))
    return Snapshot(
        quasi_names=quasi,
        quasi=table.codes(quasi, domains),
        quasi_domains=tuple(domains[name] for name in quasi),
        sensitive_names=sensitive,
        sensitive=published,
        sensitive_domains=tuple(domains[name] for name in sensitive),
        person=table.person if mask is None or table.person is None else table.person.filter(mask),
        insensitive=plain,
        plain=np.array([codes for _, codes in coded], np.int32).reshape(len(coded), records),
        plain_domains=tuple(domain for domain, _ in coded),
        left_out=table.rows - records - withheld,
        exact=exact,
        withheld=withheld,
        raised=raised,
        refused=refused,
        row=np.arange(records) if kept is None else np.flatnonzero(kept),
    )


def _graded(
    table: RawTable, policy: Policy, exact: NDArray[np.int32], domains: Mapping[str, Hierarchy]
) -> tuple[NDArray[np.int32], int]:
    """The sensitive codes as published: nodes where a grade, or (counted) the person herself, asks for them."""
    published, problems, raised = exact.copy(), [], np.zeros(exact.shape[1], np.bool_)
    rows = None if table.kept is None else np.flatnonzero(table.kept).astype(np.int32)
    for place, (name, attribute) in enumerate(policy.sensitive.items()):
        if not attribute.is_graded:
            continue
        graded = grades_of(attribute, domains[name], name)[exact[place]]
        published[place] = graded
        if attribute.guarding is not None:
            own = table.cells.pop(attribute.guarding)
            published[place], wrong = raise_grades(graded, own, domains[name], column=attribute.guarding, rows=rows)
            problems += wrong
            raised |= published[place] != graded
    _refuse(problems)
    return published, int(np.count_nonzero(raised))


def check_grades(policy: Policy) -> None:
    """Raise PolicyError for grades that are no nodes of their hierarchies, before there is any data."""
    for name, attribute in policy.sensitive.items():
        domain = declared(attribute, policy.path) if attribute.is_graded else None
        if domain is not None:
            grades_of(attribute, domain, name)


def grades_of(attribute: Sensitive, domain: Hierarchy, name: str) -> NDArray[np.int32]:
    """Per code of a graded attribute, the code that it is published as."""
    try:
        return grade(domain, attribute.grades)
    except PolicyError as error:
        wrong = [replace(problem, key=f"attributes.{name}.{problem.key}") for problem in error.problems]
    raise PolicyError(wrong)


def _goes_on(policy: Policy, name: str, before: Hierarchy, now: Hierarchy) -> bool:
    """Whether what was published in a domain means the same in the one that is declared now."""
    attribute = policy.attributes[name]
    # A node stands for the values below it: with one more of them, rows published as the node would say more.
    fixed = isinstance(attribute, Sensitive) and attribute.is_graded and before.size != now.size
    return not fixed and grows_from(before, now)


def _is_banded(policy: Policy, name: str) -> bool:
    attribute = policy.attributes[name]
    return isinstance(attribute, Sensitive) and attribute.bands is not None


def _listed(values: pa.Array | NDArray[Any]) -> list[str] | NDArray[Any]:
    return values.to_pylist() if isinstance(values, pa.Array) else values


def _gridded(
    attribute: QuasiIdentifier | Sensitive, before: Hierarchy, values: list[str] | NDArray[Any]
) -> Sequence[str] | NDArray[Any]:
    """New values and, of a scale, the points of the grid of old and new ones."""
    return with_grid(attribute, np.append(before.values, values)) if isinstance(values, np.ndarray) else values


def extended(table: RawTable, before: Mapping[str, Hierarchy]) -> dict[str, Hierarchy]:
    """The domains of a table's attributes: what the policy declares as it is, the others with its values, too."""
    reading = table.reading
    return {
        name: reading.known[name]
        if name in reading.known
        else extend(attribute, before[name], _gridded(attribute, before[name], _listed(table.values(name))))
        for name, attribute in reading.attributes.items()
    }


def _problems_in(table: RawTable, file: str) -> list[Problem]:
    """What is wrong with a table that is not the snapshot."""
    return [replace(problem, file=problem.file or file) for problem in table.all_problems()]


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise DataError(problems)
