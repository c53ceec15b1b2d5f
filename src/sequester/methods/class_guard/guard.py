"""What a method asks before it accepts a class: the requirement in the form the compiled loops read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.errors import PolicyError
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Requirement, View
from sequester.methods.class_guard.limits import EQUAL, HIERARCHICAL, ORDERED, Limits

_DISTANCES = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}


@dataclass(frozen=True, eq=False, repr=False)
class ClassGuard:
    """`values` is (records, views) positions in the flat value counts; `population` is (people, attributes) codes.

    `known` is how many of the population must fit every published box, 0 for no such demand. `views` are what the
    limits were made from.
    """

    limits: Limits
    values: NDArray[np.int32]
    population: NDArray[np.int32]
    known: int = 0
    views: tuple[View, ...] = ()

    def hereditary(self) -> Limits:
        """Only the criteria that say of themselves that every part of an unsafe class is unsafe, as k does."""
        return _limits(self.limits.k, [view.hereditary() for view in self.views])

    @classmethod
    def of(
        cls,
        requirement: Requirement,
        sensitive: NDArray[np.int32],
        *,
        population: NDArray[np.int32] | None = None,
    ) -> ClassGuard:
        """The guard of a requirement over records with these sensitive codes (attributes, records).

        `population` has one row per quasi-identifier, as the records do; it is needed for k-map only.
        """
        views = [view for view in requirement.views(sensitive) if view.criteria]
        limits = _limits(requirement.k.k, views)
        values = np.empty((sensitive.shape[1], len(views)), np.int32)
        for index, view in enumerate(views):
            values[:, index] = view.codes + limits.first[index]
        known = 0 if requirement.k_map is None else requirement.k_map.k
        if known and population is None:
            raise PolicyError("k_map needs a population table")
        people = np.zeros((0, 0), np.int32) if population is None else np.ascontiguousarray(population.T)
        return cls(limits, values, people, known, tuple(views))


def _limits(k: int, views: Sequence[View]) -> Limits:
    """What k and the criteria of these views demand, side by side in flat arrays."""
    first = np.cumsum([0, *(view.size for view in views)]).astype(np.int64)
    bounds = [_bounds(view) for view in views]
    recursive = [view.diversity if isinstance(view.diversity, RecursiveDiversity) else None for view in views]
    near = [view.closeness for view in views]
    return Limits(
        k=k,
        first=first,
        numerator=_join([numerator for numerator, _ in bounds], np.int64),
        denominator=_join([denominator for _, denominator in bounds], np.int64),
        distinct=np.ceil([_level(view, DistinctDiversity) for view in views]).astype(np.int64),
        entropy=np.log(np.array([max(_level(view, EntropyDiversity), 1.0) for view in views], np.float64)),
        recursive_l=np.array([0 if r is None else int(r.l) for r in recursive], np.int64),
        recursive_numerator=np.array([0 if r is None else r.c.numerator for r in recursive], np.int64),
        recursive_denominator=np.array([1 if r is None else r.c.denominator for r in recursive], np.int64),
        closeness=np.array([-1.0 if c is None else c.t for c in near], np.float64),
        distance=np.array([_DISTANCES[c.distance] if c else EQUAL for c in near], np.int64),
        reference=_join([_shares(view) for view in views], np.float64),
        groups=_groups(views),
        heights=np.array([len(c.levels) - 1 if c and c.levels else 0 for c in near], np.int64),
    )


def _bounds(view: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per value the stricter of confidence and alpha as a fraction; denominator 0 where there is no bound."""
    whole = (Fraction(1),) * view.size
    bounds = [
        min(pair)
        for pair in zip(
            view.confidence.bounds if view.confidence else whole,
            view.alpha.bounds if view.alpha else whole,
            strict=True,
        )
    ]
    numerator = np.array([bound.numerator for bound in bounds], np.int64)
    denominator = np.array([bound.denominator if bound < 1 else 0 for bound in bounds], np.int64)
    return numerator, denominator


def _level(view: View, kind: type[DistinctDiversity] | type[EntropyDiversity]) -> float:
    return float(view.diversity.l) if isinstance(view.diversity, kind) else 0.0


def _shares(view: View) -> NDArray[np.float64]:
    return np.bincount(view.codes, minlength=view.size) / max(len(view.codes), 1)


def _groups(views: Sequence[View]) -> NDArray[np.int32]:
    """Levels by values: the group of every value at each level, for the hierarchical distance."""
    levels = [view.closeness.levels if view.closeness else () for view in views]
    rows = np.zeros((max([1, *map(len, levels)]), sum(view.size for view in views)), np.int32)
    first = 0
    for view, starts in zip(views, levels, strict=True):
        for level, start in enumerate(starts):
            marks = np.zeros(view.size, np.int32)
            marks[np.asarray(start)[1:]] = 1
            rows[level, first : first + view.size] = np.cumsum(marks)
        first += view.size
    return rows


def _join(parts: list[Any], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)
