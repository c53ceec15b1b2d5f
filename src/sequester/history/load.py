"""From published files or frames to histories, one for each sensitive view.

Who is in which class is known in the publisher's view (the releases have the policy's person column) and with a
population (people are found by their raw values in the boxes). Otherwise it is the outsider's view: boxes and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from sequester.domain.hierarchy import EVERYTHING, Codes
from sequester.domain.kinds import kind_of
from sequester.history.drift import links_of, steps_of
from sequester.history.finest import finest_values
from sequester.history.history import History
from sequester.history.label import Labels, Rows
from sequester.history.membership import Membership, find_members
from sequester.history.publication import Publication
from sequester.history.releases import Releases, read_releases
from sequester.history.sight import Sight, sights_of
from sequester.policy.model import Policy

_MIDPOINTS = "numbers are published as midpoints, which do not bound them: they link no rows across releases"


def load_histories(
    releases: Sequence[Any],
    policy: Policy,
    *,
    population: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    show_values: bool = False,
) -> tuple[History, ...]:
    """One history per sensitive view: each attribute, their combination, or both, as the policy asks.

    Releases are files or frames as published, in order. A population has one table of person and raw
    quasi-identifiers per release, of everybody in it; people who fit no published box (their record was held back)
    are counted in the notes, and where people fit several boxes these classes become one, which the notes say too.
    Without a sensitive attribute there is one history with a single free value, for attacks on identity.
    """
    read = read_releases(releases, policy, population=population, names=names, show_values=show_values)
    return histories_of(read)


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
