"""From published files or frames to histories, one for each sensitive view.

Who is in which class is known in the publisher's view (the releases have the policy's person column) and with a
population (people are found by their raw values in the boxes). Otherwise it is the outsider's view: boxes and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from sequester.domain.hierarchy import Codes
from sequester.guarantees.lifetime import lifetime_bounds
from sequester.guarantees.requirement import View
from sequester.history.history import History
from sequester.history.membership import Membership, find_members, links_of
from sequester.history.publication import Publication
from sequester.history.releases import Releases, read_releases
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


def histories_of(releases: Releases, *, outsider: bool = False) -> tuple[History, ...]:
    """The histories of releases that are already read; `outsider` leaves out who is who and merges no classes."""
    known = Membership.of_nobody(releases) if outsider else find_members(releases)
    ends = list(accumulate((table.rows for table in releases.tables), initial=0))
    histories = []
    for sight in _sights(releases):
        history = _begin(releases, sight, known)
        for number in range(len(releases)):
            codes = sight.codes[ends[number] : ends[number + 1]]
            history = history.extend(_publication(releases, number, known, codes=codes, values=len(sight.names)))
        histories.append(history)
    return tuple(histories)


@dataclass(frozen=True, eq=False, repr=False)
class Sight:
    """One sensitive view over the rows of all releases: a code per row, and the names of the values."""

    view: View
    codes: Codes
    names: tuple[str, ...]
    bounds: tuple[Fraction, ...]
    permanent: bool


def _sights(releases: Releases) -> list[Sight]:
    names, domains = releases.requirement.names, releases.requirement.domains
    if not names:
        rows = sum(table.rows for table in releases.tables)
        nothing = View("", np.zeros(rows, np.int32), 1)
        return [Sight(nothing, nothing.codes, ("",), (Fraction(1),), permanent=True)]
    attributes = list(releases.policy.sensitive.values())
    sensitive = np.concatenate(releases.sensitive, axis=1)
    sights = []
    for place, view in enumerate(releases.requirement.views(sensitive)):
        # Views of single attributes come first, in the policy's order; the combination of several is the last.
        joint = len(names) > 1 and (place == len(names) or releases.requirement.combine == "joint")
        present, first, inverse = np.unique(view.codes, return_index=True, return_inverse=True)
        codes: Codes = inverse.astype(np.int32)
        if joint:
            rows = sensitive[:, first].T.tolist()
            called = [" and ".join(d.names[0][c] for d, c in zip(domains, row, strict=True)) for row in rows]
        else:
            if view.closeness is not None:
                # Distances between distributions depend on the values that nobody has, too.
                present, codes = np.arange(view.size, dtype=np.int32), view.codes
            called = [domains[place].names[0][code] for code in present.tolist()]
        bounds = (Fraction(1),) * view.size if view.confidence is None else view.confidence.bounds
        of = attributes if joint else [attributes[place]]
        permanent = all(attribute.values == "permanent" for attribute in of)
        of_values = tuple(bounds[code] for code in present.tolist())
        if not permanent:
            of_values = lifetime_bounds(releases.policy, view.name, called, of_values)
        sights.append(Sight(view=view, codes=codes, names=tuple(called), bounds=of_values, permanent=permanent))
    return sights


def _begin(releases: Releases, sight: Sight, known: Membership) -> History:
    policy = releases.policy
    midpoints = policy.output.numbers == "midpoint"
    quasi = policy.quasi_identifiers
    notes = [*releases.notes, *known.notes]
    if midpoints and any(attribute.kind == "number" for attribute in quasi.values()):
        notes.append(_MIDPOINTS)
    return History(
        attribute=sight.view.name,
        values=sight.names,
        k=policy.protect.k,
        bounds=sight.bounds,
        domains=releases.domains,
        quasi_names=tuple(quasi),
        links=links_of(releases),
        permanent=sight.permanent,
        people=known.people,
        diversity=sight.view.diversity,
        closeness=sight.view.closeness,
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
    )
