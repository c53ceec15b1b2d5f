"""What a history is kept of: a sensitive view, as permanent or as changing values.

An attribute of which some values stay with a person and the others change is kept twice. Which of the values that stay
she has, or none of them, is permanent: everything an insider can do is tried on it. The other values change; whoever
knows who has a value that stays knows that those people have none of the others, so these rows do not count there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.guarantees.confidence import Confidence, ShareBound
from sequester.guarantees.criterion import Criterion, View
from sequester.guarantees.lifetime import lifetime_bounds
from sequester.guarantees.requirement import OTHER, Requirement
from sequester.policy.model import Policy

STAYS = "a value that stays"


@dataclass(frozen=True, eq=False, repr=False)
class Sight:
    """One view over some records, as its history will have it.

    codes   per record, the code of its value among `names`
    of      per code of the attribute (where the view is of one), the code here
    kept    of changing values, the code of people who have a value that stays
    part    where it tells less than the view does: what about
    """

    view: View
    codes: Codes
    names: tuple[str, ...]
    bounds: tuple[Fraction, ...]
    permanent: bool
    of: Codes | None = None
    kept: int | None = None
    part: str | None = None

    @property
    def element(self) -> str | None:
        """With the view's name, what it is of: two sights of one name are of different elements, or parts."""
        return self.view.element if self.part is None else self.part

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """What every class must keep beside the bounds."""
        return tuple(one for one in self.view.criteria if not isinstance(one, ShareBound))


def sights_of(
    requirement: Requirement, policy: Policy, sensitive: NDArray[np.integer[Any]], *, compact: bool
) -> list[Sight]:
    """Every sight of records with these sensitive codes (attributes, records).

    Values that nobody has are left out, of those that change only if `compact`; without a sensitive attribute there is
    one sight with a single free value, for attacks on identity.
    """
    if not requirement.names:
        return [_identity(sensitive.shape[1])]
    sights: list[Sight] = []
    for view in requirement.views(sensitive):
        for sight in _sights(requirement, policy, view, sensitive):
            # Distances between distributions depend on the values that nobody has, too.
            domain_matters = view.place is not None and any(one.whole_domain for one in view.criteria)
            whole = view.element is not None or domain_matters
            sights.append(sight if whole or not (sight.permanent or compact) else _compacted(sight))
    if any(attribute.permanent for attribute in policy.sensitive.values()) and not any(s.permanent for s in sights):
        # Somebody may have such a value later, and then all that was published before counts against an insider.
        sights.append(_identity(sensitive.shape[1]))
    return sights


def _identity(records: int) -> Sight:
    """One free value that everybody has, for attacks on identity."""
    nothing = View("", np.zeros(records, np.int32), 1)
    return Sight(nothing, nothing.codes, ("",), (Fraction(1),), permanent=True)


def permanent_part(policy: Policy, domains: Sequence[Hierarchy], sensitive: NDArray[np.int32]) -> NDArray[np.int32]:
    """Of sensitive codes, what may not differ for a person from release to release; changing values are all alike."""
    fixed = np.empty_like(sensitive)
    for row, codes, attribute, domain in zip(fixed, sensitive, policy.sensitive.values(), domains, strict=True):
        stays = np.array([attribute.stays or n in attribute.permanent for n in domain.names[0]])
        row[:] = np.where(stays[codes], codes, domain.size)
    return fixed


def _sights(
    requirement: Requirement, policy: Policy, view: View, sensitive: NDArray[np.integer[Any]]
) -> Iterator[Sight]:
    names = requirement.called(view, sensitive)
    confidence = view.criterion(Confidence)
    bounds = (Fraction(1),) * view.size if confidence is None else confidence.bounds
    attributes = list(policy.sensitive.values())
    of = attributes if view.place is None else [attributes[view.place]]
    if all(attribute.stays for attribute in of):
        yield Sight(view, view.codes, names, bounds, permanent=True, of=view.of)
        return
    stays = set() if view.place is None else set(of[0].permanent) & set(names)
    # The last answer to a question about elements is that it is none of them.
    asked = names if view.element is None and view.names is None else names[:-1]
    changing = (*lifetime_bounds(policy, view.name, asked, bounds[: len(asked)]), *bounds[len(asked) :])
    if not stays:
        yield Sight(view, view.codes, names, changing, permanent=False, of=view.of)
        return
    keeps = np.array([name in stays for name in names])
    for permanent, mine, limits, rest in ((True, keeps, bounds, OTHER), (False, ~keeps, changing, STAYS)):
        places = np.flatnonzero(mine)
        number = np.full(len(names), len(places), np.int32)
        number[places] = np.arange(len(places))
        called = (*(names[place] for place in places.tolist()), rest)
        yield Sight(
            view=view,
            codes=number[view.codes],
            names=called,
            bounds=(*(limits[place] for place in places.tolist()), Fraction(1)),
            permanent=permanent,
            of=None if view.of is None else number[view.of],
            kept=None if permanent else len(places),
            part=STAYS if permanent else OTHER,
        )


def _compacted(sight: Sight) -> Sight:
    present, codes = np.unique(sight.codes, return_inverse=True)
    place = np.full(len(sight.names), -1, np.int32)
    place[present] = np.arange(len(present))
    return replace(
        sight,
        codes=codes.astype(np.int32).reshape(-1),
        names=tuple(sight.names[code] for code in present.tolist()),
        bounds=tuple(sight.bounds[code] for code in present.tolist()),
        of=None if sight.of is None else place[sight.of],
        kept=None if sight.kept is None or place[sight.kept] < 0 else int(place[sight.kept]),
    )
