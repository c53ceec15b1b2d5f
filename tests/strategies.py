"""Random domains, tables and requirements for the tests of methods, and the judge that methods are held to.

The judge decides with the criteria of `guarantees` on counts made here; it shares nothing with the compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sequester.domain.hierarchy import Hierarchy, nested
from sequester.guarantees.anonymity import KAnonymity, KMap
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import AlphaK, Confidence, bounds_of
from sequester.guarantees.criterion import Criterion
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Protected, Requirement
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes

CRITERIA = ("confidence", "alpha", "diversity", "closeness")


@st.composite
def hierarchies(
    draw: st.DrawFn, *, sizes: Sequence[int] = (1, 2, 3, 4, 5, 6, 7), most_levels: int = 3, scale: int = 63
) -> Hierarchy:
    """A domain with nested levels, ragged as often as not, sometimes with a missing leaf as the last.

    Numbers and dates lie at multiples of 1 / scale: a power of two, with fitting sizes, makes equal scores equal.
    """
    kind: Any = draw(st.sampled_from(["category", "number", "code", "date"]))
    size = draw(st.sampled_from(sizes))
    missing = size > 1 and draw(st.booleans())
    count = size - missing
    position = None
    leaves = np.array([f"v{index}" for index in range(count)], object)
    if kind in ("number", "date"):
        inner = draw(st.sets(st.integers(1, scale - 1), min_size=max(count - 2, 0), max_size=max(count - 2, 0)))
        places = np.array([0, *sorted(inner), scale][:count])
        leaves = places.astype(np.float64 if kind == "number" else "datetime64[D]")
        position = places / scale
    starts = [np.arange(count, dtype=np.int32)]
    for _ in range(draw(st.integers(0, most_levels - 1))):
        keep = draw(st.lists(st.booleans(), min_size=len(starts[-1]), max_size=len(starts[-1])))
        starts.append(starts[-1][[place == 0 or kept for place, kept in enumerate(keep)]])
    levels = [(start, tuple(f"L{level}.{s}" for s in start.tolist())) for level, start in enumerate(starts)]
    return nested(kind, leaves, levels, position=position, missing=missing)


def flat(count: int, *, position: np.ndarray | None = None, missing: bool = False) -> Hierarchy:
    """A domain of leaves, a missing one more, and `*`: a number with positions, a category without."""
    names = tuple(f"v{index}" for index in range(count))
    leaves = np.array(names, object) if position is None else np.asarray(position, np.float64)
    kind: Any = "category" if position is None else "number"
    return nested(kind, leaves, [(np.arange(count, dtype=np.int32), names)], position=position, missing=missing)


def _sensitive_domain(count: int, levels: Sequence[Sequence[int]]) -> Hierarchy:
    leaves = np.array([f"s{index}" for index in range(count)], object)
    starts = [np.arange(count), *map(np.array, levels)]
    return nested("category", leaves, [(s.astype(np.int32), tuple(f"g{g}" for g in s.tolist())) for s in starts])


SENSITIVE = (
    _sensitive_domain(1, []),
    _sensitive_domain(2, []),
    _sensitive_domain(3, []),
    _sensitive_domain(5, [[0, 2, 3], [0, 3]]),
    _sensitive_domain(4, [[0, 1, 3]]),
)


@dataclass(frozen=True)
class Table:
    """Codes with one row per attribute; `population` is there when a k-map is asked for."""

    domains: tuple[Hierarchy, ...]
    quasi: np.ndarray
    sensitive: np.ndarray
    requirement: Requirement
    population: np.ndarray | None = None

    @property
    def records(self) -> int:
        return self.quasi.shape[1]

    @property
    def guard(self) -> ClassGuard:
        return ClassGuard.of(self.requirement, self.sensitive, population=self.population)

    def loosened(self) -> Table:
        """Without the criteria that even the whole table, as one class with its tight box, breaks."""
        requirement = replace(self.requirement, k=KAnonymity(min(self.requirement.k.k, self.records)))
        if requirement.k_map is not None:
            fits = int(inside(self.quasi, self.population).sum())
            requirement = replace(requirement, k_map=KMap(min(requirement.k_map.k, fits)) if fits else None)
        whole = np.zeros(self.records, np.int32)
        box = (self.quasi.min(axis=1, keepdims=True), self.quasi.max(axis=1, keepdims=True))
        for outcome in requirement.check(whole, self.sensitive, boxes=box, population=self.population):
            if not outcome.holds:
                requirement = _with_criteria(requirement, lambda one, name=outcome.name: one.name != name)  # type: ignore[misc]
        return replace(self, requirement=requirement)

    def only(self, *kinds: type[Criterion]) -> Table:
        """With no criteria beside k but these."""
        return replace(self, requirement=_with_criteria(self.requirement, lambda one: isinstance(one, kinds)))

    def judge(self) -> Judge:
        return Judge(self)


def _with_criteria(requirement: Requirement, wanted: Callable[[Criterion], bool]) -> Requirement:
    kept = (replace(one, criteria=tuple(filter(wanted, one.criteria))) for one in requirement.sensitive)
    return replace(requirement, sensitive=tuple(kept))


@st.composite
def requirements(draw: st.DrawFn, domains: Sequence[Hierarchy]) -> Requirement:
    """Any of the criteria in any of their forms, over these sensitive domains."""
    wanted = draw(st.sets(st.sampled_from(CRITERIA), min_size=draw(st.integers(0, 1)), max_size=2)) if domains else ()
    share = st.sampled_from([0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9])
    names = [domain.names[0] for domain in domains]
    confidence: list[Confidence | None] = [None] * len(domains)
    alpha: list[AlphaK | None] = [None] * len(domains)
    closeness: list[TCloseness | None] = [None] * len(domains)
    diversity = None
    if "confidence" in wanted:
        for index, values in enumerate(names):
            given: Any = draw(share)
            if draw(st.booleans()):
                given = {"*": given, draw(st.sampled_from(values)): draw(share)}
            ordinary = draw(st.sets(st.sampled_from(values), max_size=1))
            confidence[index] = Confidence(bounds_of(given, values, ordinary=sorted(ordinary)))
    if "alpha" in wanted:
        bound = draw(share)
        given = [draw(st.sampled_from([bound, {values[0]: bound}])) for values in names]
        alpha = [AlphaK.of(one, values) for one, values in zip(given, names, strict=True)]
    if "diversity" in wanted:
        diversity = draw(
            st.one_of(
                st.builds(DistinctDiversity, st.sampled_from([1, 2, 2.5, 3])),
                st.builds(EntropyDiversity, st.sampled_from([1, 1.3, 1.8, 2, 2.4])),
                st.builds(RecursiveDiversity.of, st.sampled_from([0.7, 1.0, 1.5, 3.0, 7.0]), st.integers(1, 4)),
            )
        )
    if "closeness" in wanted:
        t = draw(st.sampled_from([0.1, 0.25, 0.4, 0.55, 0.7]))
        kinds: Any = st.sampled_from(["equal", "ordered", "hierarchical"])
        closeness = [TCloseness(t, draw(kinds), levels=domain.starts) for domain in domains]
    k = KAnonymity(draw(st.sampled_from([1, 1, 2, 2, 3, 4])))
    combine: Any = draw(st.sampled_from(["each", "joint", "both"]))
    asked = zip(domains, confidence, alpha, [diversity] * len(domains), closeness, strict=True)
    protected = (
        Protected(f"sensitive{index}", domain, tuple(one for one in criteria if one is not None))
        for index, (domain, *criteria) in enumerate(asked)
    )
    return Requirement(k, None, tuple(protected), combine)


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    domains: st.SearchStrategy[Sequence[Hierarchy]],
    most_records: int = 24,
    with_population: bool | None = None,
) -> Table:
    """A table of any shape down to one record, and a requirement that it may or may not be able to meet."""
    chosen = tuple(draw(domains))
    sensitive_domains = draw(st.lists(st.sampled_from(SENSITIVE), max_size=2))
    # A few distinct rows drawn often make duplicates, and tables that are all alike.
    cell = st.tuples(*(st.integers(0, d.size - 1) for d in chosen), *(st.integers(0, d.size - 1) for d in SENSITIVE))
    count = draw(st.one_of(st.integers(1, most_records), st.integers(most_records // 2 + 1, most_records)))
    if draw(st.integers(0, 3)) == 0:
        cell = st.sampled_from(draw(st.lists(cell, min_size=1, max_size=5)))
    rows = np.array(draw(st.lists(cell, min_size=count, max_size=count)), np.int32).reshape(count, -1).T
    quasi = np.ascontiguousarray(rows[: len(chosen)])
    places = [SENSITIVE.index(domain) for domain in sensitive_domains]
    sensitive = np.ascontiguousarray(rows[len(chosen) :][places])
    requirement = draw(requirements(sensitive_domains))
    population = None
    if with_population or (with_population is None and draw(st.integers(0, 4)) == 0):
        requirement = replace(requirement, k_map=KMap(draw(st.sampled_from([1, 2, 3, 5]))))
        person = st.tuples(*(st.integers(0, d.size - 1) for d in chosen))
        others = np.array(draw(st.lists(person, max_size=30)), np.int32).reshape(-1, len(chosen)).T
        # The people in the table are part of the population, or most of them.
        population = np.hstack([quasi[:, : draw(st.integers(0, count))], others])
    return Table(chosen, quasi, sensitive, requirement, population)


def inside(quasi: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Which of the population lie in the tight box of these records."""
    low, high = quasi.min(axis=1, keepdims=True), quasi.max(axis=1, keepdims=True)
    return ((population >= low) & (population <= high)).all(axis=0)


class Judge:
    """Whether sets of records could be classes of a table."""

    def __init__(self, table: Table) -> None:
        self.table, self.views = table, table.requirement.views(table.sensitive) if table.requirement.names else []

    def safe(self, parts: Sequence[Iterable[int]], *, people: Sequence[int] | None = None) -> np.ndarray:
        """One answer per set of records, in a box that fits `people`; by default its tight box."""
        rows = [np.fromiter(part, np.int64) for part in parts]
        found = np.array([len(part) >= self.table.requirement.k.k for part in rows], bool)
        for view in self.views if rows else []:
            counts = np.array([np.bincount(view.codes[part], minlength=view.size) for part in rows])
            for criterion in view.criteria:
                found &= criterion.holds(counts)
        if self.table.requirement.k_map is not None:
            tight = (inside(self.table.quasi[:, part], self.table.population).sum() for part in rows)
            found &= np.array(list(tight if people is None else people), np.int64) >= self.table.requirement.k_map.k
        return found


def promises_hold(table: Table, classes: Classes) -> bool:
    """By the independent check of the whole release."""
    outcomes = table.requirement.check(
        classes.member, table.sensitive, boxes=(classes.lo, classes.hi), population=table.population
    )
    return all(outcome.holds for outcome in outcomes)


def assert_tight(table: Table, classes: Classes) -> None:
    """Every record in one class, boxes tight, every promise kept."""
    parts = members(classes)
    assert sorted(record for part in parts for record in part) == list(range(table.records))
    assert all(parts)
    for number, part in enumerate(parts):
        assert classes.lo[:, number].tolist() == table.quasi[:, part].min(axis=1).tolist()
        assert classes.hi[:, number].tolist() == table.quasi[:, part].max(axis=1).tolist()
    assert promises_hold(table, classes)


def members(classes: Classes) -> list[list[int]]:
    """The records of every class."""
    found: list[list[int]] = [[] for _ in range(len(classes))]
    for record, number in enumerate(classes.member.tolist()):
        if number >= 0:
            found[number].append(record)
    return found


def partition(classes: Classes) -> set[frozenset[int]]:
    """The classes as sets of records, whatever their order."""
    return {frozenset(part) for part in members(classes)}
