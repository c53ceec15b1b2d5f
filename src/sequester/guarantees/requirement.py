"""What a policy requires of one release: its criteria, over each sensitive attribute or their combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.domain.cover import Cover, of_nodes, of_sets, of_values
from sequester.domain.hierarchy import EVERYTHING, UNSEEN, Codes, Hierarchy
from sequester.domain.kinds import kind_of
from sequester.domain.nodes import grade, is_value
from sequester.errors import PolicyError, Problem
from sequester.guarantees.anonymity import KAnonymity, KMap, population_inside
from sequester.guarantees.closeness import Closeness, Distance
from sequester.guarantees.confidence import AlphaK, Confidence, ShareBound, bounds_of
from sequester.guarantees.criterion import Counts, Criterion, Outcome, judge
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.policy.attributes import Sensitive
from sequester.policy.model import Policy

Diversity = DistinctDiversity | EntropyDiversity | RecursiveDiversity
Boxes = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]

OTHER = "another value"
"""What a record has that has none of the values a view is about."""

# Cells of the largest (classes x values) count table made at once.
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What is looked at as one sensitive value: an attribute, one element of its sets, or the combination of all.

    codes    one value per record, below `size`
    place    the number of the attribute, None for a combination
    of       per code of the attribute, that of the view
    element  which of the attribute's elements it is about: code 0 says that a record has it, 1 that it does not
    first    of a combination, a record with each
    names    of the values, where they are not those of the attribute
    Criteria that are not required are None; bounds are per value and closeness carries the table's own counts.
    """

    name: str
    codes: Codes
    size: int
    place: int | None = None
    of: Codes | None = None
    element: str | None = None
    first: NDArray[np.int64] | None = None
    names: tuple[str, ...] | None = None
    confidence: Confidence | None = None
    alpha: AlphaK | None = None
    diversity: Diversity | None = None
    closeness: Closeness | None = None

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Those that are required."""
        return tuple(c for c in (self.confidence, self.alpha, self.diversity, self.closeness) if c is not None)

    def hereditary(self) -> View:
        """The same with those criteria only under which every part of an unsafe class is unsafe."""
        return replace(
            self,
            confidence=self.confidence if _inherits(self.confidence) else None,
            alpha=self.alpha if _inherits(self.alpha) else None,
            diversity=self.diversity if _inherits(self.diversity) else None,
            closeness=self.closeness if _inherits(self.closeness) else None,
        )


def _inherits(criterion: Criterion | None) -> bool:
    return criterion is not None and criterion.hereditary


@dataclass(frozen=True, eq=False, repr=False)
class Requirement:
    """All that one release must satisfy. Tuples have one entry per sensitive attribute, in the policy's order.

    `covers` say which elements a value has or may have, of attributes whose values are sets or nodes; their bounds are
    per element.
    `stars` are the covers of attributes with plain values, for records of which some are suppressed (`*`).
    `unmatched` names values the policy gives a bound or calls ordinary that the domains do not have.
    `combine: joint` alone bounds combinations only: a class may then still agree on one of the attributes.
    """

    k: KAnonymity
    k_map: KMap | None
    names: tuple[str, ...]
    domains: tuple[Hierarchy, ...]
    combine: Literal["each", "joint", "both"]
    confidence: tuple[Confidence | None, ...]
    alpha: tuple[AlphaK | None, ...]
    diversity: Diversity | None
    closeness: tuple[Closeness | None, ...]
    covers: tuple[Cover | None, ...] = ()
    stars: tuple[Cover | None, ...] = ()
    unmatched: tuple[str, ...] = ()

    @classmethod
    def from_policy(cls, policy: Policy, sensitive_domains: Sequence[Hierarchy]) -> Requirement:
        """The requirement of a policy over the given domains, one per sensitive attribute in the policy's order."""
        protect, sensitive = policy.protect, policy.sensitive
        domains = tuple(sensitive_domains)
        given = [protect.confidence if a.confidence is None else a.confidence for a in sensitive.values()]
        pairs = list(zip(sensitive.values(), domains, strict=True))
        whole = [_cover(a, domain) for a, domain in pairs]
        covers = tuple(
            # Alpha is a bound on all values, also on ordinary ones.
            cover if cover is None or protect.alpha is not None else _protected(cover, attribute)
            for cover, attribute in zip(whole, sensitive.values(), strict=True)
        )
        values = [
            [(name,) for name in d.names[0]] if cover is None else cover.members
            for d, cover in zip(domains, covers, strict=True)
        ]
        known = [
            d.names[0] if cover is None else tuple(chain.from_iterable(cover.members))
            for d, cover in zip(domains, whole, strict=True)
        ]
        return cls(
            k=KAnonymity(protect.k),
            k_map=None if protect.k_map is None else KMap(protect.k_map.k),
            names=tuple(sensitive),
            domains=domains,
            combine=protect.sensitive,
            confidence=tuple(
                None if c is None else Confidence(_strictest_of(c, names, (*attribute.ordinary, EVERYTHING, UNSEEN)))
                for c, names, attribute in zip(given, values, sensitive.values(), strict=True)
            ),
            alpha=tuple(
                None if protect.alpha is None else AlphaK(_strictest_of(protect.alpha, names, (EVERYTHING,)))
                for names in values
            ),
            diversity=_diversity(policy),
            closeness=tuple(_closeness(policy, attribute, domain) for attribute, domain in pairs),
            covers=covers,
            stars=tuple(
                None if cover is not None else _stars(attribute, domain, every=protect.alpha is not None)
                for (attribute, domain), cover in zip(pairs, whole, strict=True)
            ),
            unmatched=tuple(_unmatched(policy, dict(zip(sensitive, known, strict=True)))),
        )

    def views(self, sensitive: NDArray[np.integer[Any]]) -> list[View]:
        """The views of these records, given as codes with one row per sensitive attribute."""
        views = []
        if self.combine != "joint" or len(self.names) == 1:
            views += [v for index, codes in enumerate(sensitive) for v in self._singles(index, codes.astype(np.int32))]
        if self.combine != "each" and len(self.names) > 1:
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
            found = population_inside(lo, hi, population=population)
            outcomes += judge([self.k_map], [found] if classes else [], view=None)
        for view in self.views(sensitive[:, published]) if self.names else []:
            outcomes += assess(view.criteria, view, member=member, classes=classes)
        return tuple(_worst(outcomes))

    def called(self, view: View, sensitive: NDArray[np.integer[Any]]) -> tuple[str, ...]:
        """The names of a view's values; `sensitive` are the records it is of."""
        if view.element is not None:
            return view.element, f"without {view.element}"
        if view.place is not None:
            return self.domains[view.place].names[0] if view.names is None else view.names
        assert view.first is not None
        rows = sensitive[:, view.first].T.tolist()
        return tuple(" and ".join(d.names[0][c] for d, c in zip(self.domains, row, strict=True)) for row in rows)

    def _singles(self, index: int, codes: Codes) -> Iterator[View]:
        name, size, cover = self.names[index], self.domains[index].size, self._cover(index)
        confidence, alpha = self.confidence[index], self.alpha[index]
        starred = EVERYTHING in self.domains[index].names[0] and bool(
            (codes == self.domains[index].names[0].index(EVERYTHING)).any()
        )
        if cover is None and starred and self.stars and self.stars[index] is not None:
            yield from self._under_stars(index, codes)
            return
        if cover is None:
            near = self.closeness[index]
            if near is not None:
                near = Closeness(near.t, near.distance, np.bincount(codes, minlength=size), near.levels)
            of = np.arange(size, dtype=np.int32)
            yield View(name, codes, size, index, of, None, None, None, confidence, alpha, self.diversity, near)
            return
        if (cover.apart is not None and not starred) or not cover.elements:
            of = np.full(size, 0, np.int32) if cover.apart is None else cover.apart
            free = (Fraction(1),)
            yield View(
                name=name,
                codes=of[codes],
                size=len(cover.elements) + 1,
                place=index,
                of=of,
                names=(*cover.elements, OTHER),
                confidence=None if confidence is None else Confidence((*confidence.bounds, *free)),
                alpha=None if alpha is None else AlphaK((*alpha.bounds, *free)),
                diversity=self.diversity,
            )
            return
        if self.diversity is not None and cover.tops is not None:
            called = tuple(f"kind {number + 1}" for number in range(int(cover.tops.max()) + 1))
            yield View(
                name=f"{name} in general",
                codes=cover.tops[codes],
                size=len(called),
                place=index,
                of=cover.tops,
                names=called,
                diversity=self.diversity,
            )
        for place, element in enumerate(cover.elements):
            of = cover.answers(place)
            yield View(
                name=name,
                codes=of[codes],
                size=2,
                place=index,
                of=of,
                element=element,
                confidence=None if confidence is None else Confidence((confidence.bounds[place], Fraction(1))),
                alpha=None if alpha is None else AlphaK((alpha.bounds[place], Fraction(1))),
            )

    def _under_stars(self, index: int, codes: Codes) -> Iterator[View]:
        """An attribute of which some values are suppressed: a `*` may be any of them, so it counts for each.

        It may also be the same as any other, so that nothing is known to be different.
        """
        domain, cover, near = self.domains[index], self.stars[index], self.closeness[index]
        assert cover is not None
        name, nothing = self.names[index], np.zeros(domain.size, np.int32)
        if self.diversity is not None:
            called = ("any value",)
            yield View(f"{name} in general", nothing[codes], 1, index, nothing, names=called, diversity=self.diversity)
        if near is not None:
            near = Closeness(near.t, near.distance, np.bincount(codes, minlength=domain.size), near.levels)
            yield View(name, codes, domain.size, index, np.arange(domain.size, dtype=np.int32), closeness=near)
        for place, element in enumerate(cover.elements):
            of, code = cover.answers(place), domain.names[0].index(element)
            limits = [
                None if bound is None else bound.bounds[code] for bound in (self.confidence[index], self.alpha[index])
            ]
            yield View(
                name=name,
                codes=of[codes],
                size=2,
                place=index,
                of=of,
                element=element,
                confidence=None if limits[0] is None else Confidence((limits[0], Fraction(1))),
                alpha=None if limits[1] is None else AlphaK((limits[1], Fraction(1))),
            )

    def _joint(self, sensitive: NDArray[np.integer[Any]]) -> View:
        group, first = row_groups(sensitive)
        combinations = sensitive[:, first]
        confidence = _strictest(self._by_code(self.confidence), combinations)
        alpha = _strictest(self._by_code(self.alpha), combinations)
        near = self.closeness[0]
        if near is not None:
            # Combinations have no order and no tree.
            near = Closeness(near.t, "equal", np.bincount(group, minlength=len(first)))
        return View(
            name=" and ".join(self.names),
            codes=group.astype(np.int32),
            size=len(first),
            first=first,
            confidence=None if confidence is None else Confidence(confidence),
            alpha=None if alpha is None else AlphaK(alpha),
            diversity=self.diversity,
            closeness=near,
        )

    def _cover(self, index: int) -> Cover | None:
        return self.covers[index] if self.covers else None

    def _by_code(self, bounds: Sequence[ShareBound | None]) -> list[tuple[Fraction, ...] | None]:
        """Bounds per code of each attribute: a set is bounded as the strictest of its elements."""
        found: list[tuple[Fraction, ...] | None] = []
        for index, bound in enumerate(bounds):
            cover = self._cover(index)
            if bound is None or cover is None:
                found.append(None if bound is None else bound.bounds)
                continue
            rows = [np.flatnonzero(row).tolist() for row in cover.holds]
            found.append(tuple(min((bound.bounds[place] for place in row), default=Fraction(1)) for row in rows))
        return found


def _worst(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """One outcome for each promise about an attribute: elements are not told apart, for their names are values."""
    found: dict[tuple[str, str | None], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.name, outcome.view), []).append(outcome)
    for alike in found.values():
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


def _strictest(
    bounds: Sequence[tuple[Fraction, ...] | None], combinations: NDArray[np.integer[Any]]
) -> tuple[Fraction, ...] | None:
    """A combination reveals all its parts, so it is bounded as its strictest part."""
    if all(bound is None for bound in bounds):
        return None
    steps = sorted({Fraction(1), *(b for bound in bounds if bound is not None for b in bound)})
    rank = np.full(combinations.shape[1], len(steps) - 1)
    for bound, codes in zip(bounds, combinations, strict=True):
        if bound is not None:
            rank = np.minimum(rank, np.array([steps.index(b) for b in bound])[codes])
    return tuple(steps[r] for r in rank.tolist())


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
    found = of_nodes(domain, published, blank=blank)
    return found.starred(domain, attribute.permanent) if blank else found


def _stars(attribute: Sensitive, domain: Hierarchy, *, every: bool) -> Cover | None:
    """What records with suppressed values are looked at by: the values that are protected, or every one."""
    if EVERYTHING not in domain.names[0]:
        return None
    found = of_values(domain).starred(domain, attribute.permanent)
    return found if every else _protected(found, attribute)


def _strictest_of(
    given: float | Mapping[str, float], members: Sequence[Sequence[str]], ordinary: Sequence[str]
) -> tuple[Fraction, ...]:
    """Per element the bound of the strictest of its values."""
    return tuple(min(bounds_of(given, values, ordinary=ordinary), default=Fraction(1)) for values in members)


def _protected(cover: Cover, attribute: Sensitive) -> Cover:
    """The elements that are not ordinary, or have a bound of their own all the same."""
    own = attribute.confidence if isinstance(attribute.confidence, dict) else {}
    return cover.only({value for values in cover.members for value in values} - (set(attribute.ordinary) - set(own)))


def default_distance(attribute: Sensitive) -> Distance:
    """Ordered for numbers, hierarchical with a hierarchy, else equal."""
    if kind_of(attribute).measured:
        return "ordered"
    return "equal" if attribute.hierarchy is None else "hierarchical"


def _diversity(policy: Policy) -> Diversity | None:
    asked = policy.protect.diversity
    if asked is None:
        return None
    match asked.kind:
        case "distinct":
            return DistinctDiversity(asked.l)
        case "entropy":
            return EntropyDiversity(asked.l)
        case "recursive":
            return RecursiveDiversity.of(_given(asked.c), asked.l)


def _given(c: float | None) -> float:
    if c is None:
        raise PolicyError(Problem("recursive diversity needs c", key="protect.diversity.c"))
    return c


def _closeness(policy: Policy, attribute: Sensitive, domain: Hierarchy) -> Closeness | None:
    asked = policy.protect.closeness
    if asked is None:
        return None
    return Closeness(asked.t, asked.distance or default_distance(attribute), levels=domain.starts)


def _unmatched(policy: Policy, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Names of values in the policy that no domain has; attribute and value, or the value alone."""
    anywhere = {value for names in values.values() for value in names}
    for given in (policy.protect.confidence, policy.protect.alpha):
        if isinstance(given, dict):
            yield from (value for value in given if value != "*" and value not in anywhere)
    for name, attribute in policy.sensitive.items():
        named = attribute.confidence if isinstance(attribute.confidence, dict) else {}
        yield from (f"{name}: {v}" for v in (*named, *attribute.ordinary) if v != "*" and v not in set(values[name]))
