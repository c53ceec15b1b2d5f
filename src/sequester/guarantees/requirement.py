"""What a policy requires of one release: its criteria, over each sensitive attribute or their combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Codes, Hierarchy
from sequester.errors import PolicyError, Problem
from sequester.guarantees.anonymity import KAnonymity, KMap, population_inside
from sequester.guarantees.closeness import Closeness, Distance
from sequester.guarantees.confidence import AlphaK, Confidence, ShareBound, bounds_of
from sequester.guarantees.criterion import Counts, Criterion, Outcome, judge, row_groups
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.policy.model import Policy, Sensitive

Diversity = DistinctDiversity | EntropyDiversity | RecursiveDiversity
Boxes = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]

# Cells of the largest (classes x values) count table made at once.
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What is looked at as one sensitive value: an attribute, or the combination of all.

    `codes` has one value per record, below `size`. Criteria that are not required are None; bounds are per value
    and closeness carries the table's own counts.
    """

    name: str
    codes: Codes
    size: int
    confidence: Confidence | None = None
    alpha: AlphaK | None = None
    diversity: Diversity | None = None
    closeness: Closeness | None = None

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Those that are required."""
        return tuple(c for c in (self.confidence, self.alpha, self.diversity, self.closeness) if c is not None)


@dataclass(frozen=True, eq=False, repr=False)
class Requirement:
    """All that one release must satisfy. Tuples have one entry per sensitive attribute, in the policy's order.

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
    unmatched: tuple[str, ...] = ()

    @classmethod
    def from_policy(cls, policy: Policy, sensitive_domains: Sequence[Hierarchy]) -> Requirement:
        """The requirement of a policy over the given domains, one per sensitive attribute in the policy's order."""
        protect, sensitive = policy.protect, policy.sensitive
        domains = tuple(sensitive_domains)
        values = [domain.names[0] for domain in domains]
        given = [protect.confidence if a.confidence is None else a.confidence for a in sensitive.values()]
        pairs = list(zip(sensitive.values(), domains, strict=True))
        return cls(
            k=KAnonymity(protect.k),
            k_map=None if protect.k_map is None else KMap(protect.k_map.k),
            names=tuple(sensitive),
            domains=domains,
            combine=protect.sensitive,
            confidence=tuple(
                None if c is None else Confidence(bounds_of(c, names, ordinary=attribute.ordinary))
                for c, names, attribute in zip(given, values, sensitive.values(), strict=True)
            ),
            alpha=tuple(None if protect.alpha is None else AlphaK.of(protect.alpha, names) for names in values),
            diversity=_diversity(policy),
            closeness=tuple(_closeness(policy, attribute, domain) for attribute, domain in pairs),
            unmatched=tuple(_unmatched(policy, dict(zip(sensitive, values, strict=True)))),
        )

    def views(self, sensitive: NDArray[np.integer[Any]]) -> list[View]:
        """The views of these records, given as codes with one row per sensitive attribute."""
        views = []
        if self.combine != "joint" or len(self.names) == 1:
            views += [self._single(index, codes.astype(np.int32)) for index, codes in enumerate(sensitive)]
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
        return tuple(outcomes)

    def _single(self, index: int, codes: Codes) -> View:
        size = self.domains[index].size
        near = self.closeness[index]
        if near is not None:
            near = Closeness(near.t, near.distance, np.bincount(codes, minlength=size), near.levels)
        return View(self.names[index], codes, size, self.confidence[index], self.alpha[index], self.diversity, near)

    def _joint(self, sensitive: NDArray[np.integer[Any]]) -> View:
        group, first = row_groups(sensitive)
        combinations = sensitive[:, first]
        confidence = _strictest(self.confidence, combinations)
        alpha = _strictest(self.alpha, combinations)
        near = self.closeness[0]
        if near is not None:
            # Combinations have no order and no tree.
            near = Closeness(near.t, "equal", np.bincount(group, minlength=len(first)))
        return View(
            name=" and ".join(self.names),
            codes=group.astype(np.int32),
            size=len(first),
            confidence=None if confidence is None else Confidence(confidence),
            alpha=None if alpha is None else AlphaK(alpha),
            diversity=self.diversity,
            closeness=near,
        )


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
    bounds: Sequence[ShareBound | None], combinations: NDArray[np.integer[Any]]
) -> tuple[Fraction, ...] | None:
    """A combination reveals all its parts, so it is bounded as its strictest part."""
    if all(bound is None for bound in bounds):
        return None
    steps = sorted({Fraction(1), *(b for bound in bounds if bound is not None for b in bound.bounds)})
    rank = np.full(combinations.shape[1], len(steps) - 1)
    for bound, codes in zip(bounds, combinations, strict=True):
        if bound is not None:
            rank = np.minimum(rank, np.array([steps.index(b) for b in bound.bounds])[codes])
    return tuple(steps[r] for r in rank.tolist())


def default_distance(attribute: Sensitive) -> Distance:
    """Ordered for numbers, hierarchical with a hierarchy, else equal."""
    if attribute.kind == "number":
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
