"""What a policy requires of one release: its criteria, over each sensitive attribute or their combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.cover import Cover, of_nodes, of_sets, of_values
from sequester.domain.hierarchy import EVERYTHING, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import grade, is_value
from sequester.guarantees import anonymity, closeness, confidence, diversity
from sequester.guarantees.anonymity import KAnonymity, KMap, population_inside
from sequester.guarantees.criterion import Combined, Counts, Criterion, Declaration, Outcome, Subject, View, judge
from sequester.policy.attributes import Sensitive
from sequester.policy.model import Policy

Boxes = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]

CRITERIA: tuple[Declaration, ...] = (
    *anonymity.CRITERIA,
    *confidence.CRITERIA,
    diversity.CRITERION,
    closeness.CRITERION,
)
"""All criteria of single releases, in the order in which they are judged and told."""

OTHER = "another value"
"""What a record has that has none of the values a view is about."""

# Cells of the largest (classes x values) count table made at once.
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """One sensitive attribute and what is asked of it, before it is known which records have which values.

    criteria  over its own values, or over the elements of its cover
    cover     which elements a value has or may have, where values are sets or nodes
    stars     of plain values: the same for records of which some are suppressed (`*`)
    """

    name: str
    domain: Hierarchy
    criteria: tuple[Criterion, ...] = ()
    cover: Cover | None = None
    stars: Cover | None = None

    def views(self, place: int, codes: Codes) -> Iterator[View]:
        """How records with these codes are looked at; the attribute has this place among the others."""
        star = self.domain.names[0].index(EVERYTHING) if EVERYTHING in self.domain.names[0] else None
        starred = star is not None and bool((codes == star).any())
        if self.cover is not None:
            yield from self._by_elements(self.cover, place, codes, starred=starred)
        elif starred and self.stars is not None:
            yield from self._under_stars(self.stars, place, codes)
        else:
            yield self._own(place, codes).under(self.criteria)

    def _own(self, place: int, codes: Codes, *, alike: bool = False) -> View:
        """The values as they are; `alike`, some may be any other, so that they do not count one by one."""
        of = np.arange(self.domain.size, dtype=np.int32)
        whole = View(self.name, codes, self.domain.size, place, of, bounds="all", apart=True, own=True)
        return replace(whole, bounds=None, apart=False) if alike else whole

    def _in_general(self, place: int, codes: Codes, *, of: Codes, called: tuple[str, ...]) -> Iterator[View]:
        """Kinds of values that are certainly different, where something is asked of these."""
        name = f"{self.name} in general"
        view = View(name, of[codes], len(called), place, of, names=called, apart=True).under(self.criteria)
        if view.criteria:
            yield view

    def _element(self, cover: Cover, place: int, codes: Codes, *, number: int, bound: int) -> View:
        """Whether records have one element, which must keep the bound so numbered."""
        of = cover.answers(number)
        view = View(self.name, of[codes], 2, place, of, element=cover.elements[number], bounds=((bound,), ()))
        return view.under(self.criteria)

    def _by_elements(self, cover: Cover, place: int, codes: Codes, *, starred: bool) -> Iterator[View]:
        """An attribute with sets or nodes: as one view where no cell has two elements, else element by element."""
        elements = len(cover.elements)
        if (cover.apart is not None and not starred) or not elements:
            of = np.full(self.domain.size, 0, np.int32) if cover.apart is None else cover.apart
            bounds = (*((number,) for number in range(elements)), ())
            names = (*cover.elements, OTHER)
            view = View(self.name, of[codes], elements + 1, place, of, names=names, bounds=bounds, apart=True)
            yield view.under(self.criteria)
            return
        if cover.tops is not None:
            called = tuple(f"kind {number + 1}" for number in range(int(cover.tops.max()) + 1))
            yield from self._in_general(place, codes, of=cover.tops, called=called)
        for number in range(elements):
            yield self._element(cover, place, codes, number=number, bound=number)

    def _under_stars(self, stars: Cover, place: int, codes: Codes) -> Iterator[View]:
        """Some values are suppressed: a `*` may be any of them, so it counts for each.

        It may also be the same as any other, so that nothing is known to be different.
        """
        nothing = np.zeros(self.domain.size, np.int32)
        yield from self._in_general(place, codes, of=nothing, called=("any value",))
        alike = self._own(place, codes, alike=True).under(self.criteria)
        if alike.criteria:
            yield alike
        for number, element in enumerate(stars.elements):
            bound = self.domain.names[0].index(element)
            yield self._element(stars, place, codes, number=number, bound=bound)


@dataclass(frozen=True, eq=False, repr=False)
class Requirement:
    """All that one release must satisfy. `sensitive` has one entry per sensitive attribute, in the policy's order.

    `unmatched` names values the policy gives a bound or calls ordinary that the domains do not have.
    `combine: joint` alone bounds combinations only: a class may then still agree on one of the attributes.
    """

    k: KAnonymity
    k_map: KMap | None = None
    sensitive: tuple[Protected, ...] = ()
    combine: Literal["each", "joint", "both"] = "each"
    unmatched: tuple[str, ...] = ()

    @classmethod
    def from_policy(cls, policy: Policy, sensitive_domains: Sequence[Hierarchy]) -> Requirement:
        """The requirement of a policy over the given domains, one per sensitive attribute in the policy's order."""
        # What is a bound on all values is one on ordinary values, too.
        every = any(one.promise.bounds_ordinary and one.promise.asked(policy) for one in CRITERIA)
        protected, known = [], {}
        for (name, attribute), domain in zip(policy.sensitive.items(), sensitive_domains, strict=True):
            whole = _cover(attribute, domain)
            known[name] = domain.names[0] if whole is None else tuple(chain.from_iterable(whole.members))
            cover = whole if whole is None or every else _guarded(whole, attribute)
            values = [(value,) for value in domain.names[0]] if cover is None else cover.members
            subject = Subject(policy, attribute, domain, values)
            criteria = tuple(made for one in CRITERIA if (made := one.ask(subject)) is not None)
            stars = None if whole is not None else _stars(attribute, domain, every=every)
            protected.append(Protected(name, domain, criteria, cover, stars))
        return cls(
            k=KAnonymity(policy.protect.k),
            k_map=None if policy.protect.k_map is None else KMap(policy.protect.k_map.k),
            sensitive=tuple(protected),
            combine=policy.protect.sensitive,
            unmatched=tuple(_unmatched(policy, known)),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the sensitive attributes."""
        return tuple(one.name for one in self.sensitive)

    @property
    def domains(self) -> tuple[Hierarchy, ...]:
        """Of the sensitive attributes."""
        return tuple(one.domain for one in self.sensitive)

    def views(self, sensitive: NDArray[np.integer[Any]]) -> list[View]:
        """The views of these records, given as codes with one row per sensitive attribute."""
        views: list[View] = []
        if self.combine != "joint" or len(self.sensitive) == 1:
            for place, (one, codes) in enumerate(zip(self.sensitive, sensitive, strict=True)):
                views += one.views(place, codes.astype(np.int32))
        if self.combine != "each" and len(self.sensitive) > 1:
            views.append(self._joint(sensitive))
        return views

    def check(
        self,
        member: NDArray[np.integer[Any]],
        sensitive: NDArray[np.integer[Any]],
        *,
        boxes: Boxes | None = None,
        population: NDArray[np.integer[Any]] | None = None,
    ) -> tuple[Outcome, ...]:
        """Every promise against the classes: `member` is the class of each record, -1 for one not published.

        The table whose distribution classes must be close to is the published one. A k-map needs the boxes
        (lo, hi) of the classes and the population, as codes with one row per quasi-identifier.
        """
        published = member >= 0
        present, member = np.unique(member[published], return_inverse=True)
        classes = len(present)
        everyone = View("", np.zeros(len(member), np.int32), 1)
        outcomes = assess([self.k], everyone, member=member, classes=classes)
        if self.k_map is not None:
            if boxes is None or population is None:
                raise ValueError("k-map needs the boxes of the classes and the population")
            lo, hi = boxes[0][:, present], boxes[1][:, present]
            fitting = population_inside(lo, hi, population=population)
            outcomes += judge([self.k_map], [fitting] if classes else [], view=None)
        for view in self.views(sensitive[:, published]) if self.names else []:
            outcomes += assess(view.criteria, view, member=member, classes=classes)
        return tuple(_worst(outcomes))

    def called(self, view: View, sensitive: NDArray[np.integer[Any]]) -> tuple[str, ...]:
        """The names of a view's values; `sensitive` are the records it is of."""
        if view.element is not None:
            return view.element, f"without {view.element}"
        if view.place is not None:
            return self.domains[view.place].names[0] if view.names is None else view.names
        rows = [] if view.first is None else sensitive[:, view.first].T.tolist()
        return tuple(" and ".join(d.names[0][c] for d, c in zip(self.domains, row, strict=True)) for row in rows)

    def _joint(self, sensitive: NDArray[np.integer[Any]]) -> View:
        group, first = row_groups(sensitive)
        view = View(" and ".join(self.names), group.astype(np.int32), len(first), first=first)
        parts = [
            Combined(codes, "all" if one.cover is None else [np.flatnonzero(row).tolist() for row in one.cover.holds])
            for one, codes in zip(self.sensitive, sensitive[:, first], strict=True)
        ]
        criteria = []
        for declared in CRITERIA:
            asked = [next((c for c in one.criteria if c.name == declared.name), None) for one in self.sensitive]
            form = next((type(criterion) for criterion in asked if criterion is not None), declared.forms[0])
            criteria.append(form.together(asked, view, parts))
        return replace(view, criteria=tuple(criterion for criterion in criteria if criterion is not None))


def _worst(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """One outcome for each promise about an attribute: elements are not told apart, for their names are values."""
    about: dict[tuple[str, str | None], list[Outcome]] = {}
    for outcome in outcomes:
        about.setdefault((outcome.name, outcome.view), []).append(outcome)
    for alike in about.values():
        worst = max(
            alike, key=lambda outcome: (not outcome.holds, (outcome.observed or 0.0) / (outcome.required or 1.0))
        )
        yield worst if len(alike) == 1 else replace(worst, failing=max(outcome.failing for outcome in alike))


def assess(
    criteria: Sequence[Criterion], view: View, *, member: NDArray[np.integer[Any]], classes: int
) -> list[Outcome]:
    """Criteria over the classes of one view; `member` is the class of every record, below `classes`."""
    return judge(criteria, class_counts(member, view, classes=classes), view=view.name or None) if criteria else []


def class_counts(member: NDArray[np.integer[Any]], view: View, *, classes: int) -> Iterator[Counts]:
    """The value counts of all classes in order, some classes at a time so that memory stays bounded."""
    step = max(1, _CELLS // max(view.size, 1))
    order = np.argsort(member, kind="stable") if classes > step else np.arange(len(member))
    ends = np.append(0, np.cumsum(np.bincount(member, minlength=classes)))
    for start in range(0, classes, step):
        stop = min(start + step, classes)
        rows = order[ends[start] : ends[stop]]
        cells = (member[rows].astype(np.int64) - start) * view.size + view.codes[rows]
        yield np.bincount(cells, minlength=(stop - start) * view.size).reshape(stop - start, view.size)


def _cover(attribute: Sensitive, domain: Hierarchy) -> Cover | None:
    if kind_of(attribute).several:
        return of_sets(domain, attribute.between).starred(domain, attribute.permanent)
    if not attribute.is_graded:
        return None
    # With a column of their own, people may choose any node above their value.
    published = np.arange(domain.size, dtype=np.int32)
    if attribute.guarding is None:
        published = np.unique(grade(domain, attribute.grades)[is_value(domain)])
    blank = attribute.values == "transient"
    cover = of_nodes(domain, published, blank=blank)
    return cover.starred(domain, attribute.permanent) if blank else cover


def _stars(attribute: Sensitive, domain: Hierarchy, *, every: bool) -> Cover | None:
    """What records with suppressed values are looked at by: the values that are protected, or every one."""
    if EVERYTHING not in domain.names[0]:
        return None
    cover = of_values(domain).starred(domain, attribute.permanent)
    return cover if every else _guarded(cover, attribute)


def _guarded(cover: Cover, attribute: Sensitive) -> Cover:
    """The elements that are not ordinary, or have a bound of their own all the same."""
    own = attribute.confidence if isinstance(attribute.confidence, dict) else {}
    return cover.only({value for values in cover.members for value in values} - (set(attribute.ordinary) - set(own)))


def _unmatched(policy: Policy, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Names of values in the policy that no domain has; attribute and value, or the value alone."""
    anywhere = {value for names in values.values() for value in names}
    for one in CRITERIA:
        given = one.promise.given(policy)
        if isinstance(given, dict):
            yield from (value for value in given if value != "*" and value not in anywhere)
    for name, attribute in policy.sensitive.items():
        named = attribute.confidence if isinstance(attribute.confidence, dict) else {}
        yield from (f"{name}: {v}" for v in (*named, *attribute.ordinary) if v != "*" and v not in set(values[name]))
