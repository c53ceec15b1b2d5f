"""What a method asks before it accepts a class: the requirement in the form the compiled loops read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from sequester.errors import PolicyError
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import ShareBound
from sequester.guarantees.criterion import Criterion, View
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.guarantees.requirement import Requirement
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
    limits = Limits.only(k, [view.size for view in views])
    for number, view in enumerate(views):
        limits.reference[limits.first[number] : limits.first[number + 1]] = view.counts / max(len(view.codes), 1)
        for criterion in view.criteria:
            limits = _enter(criterion, limits, number)
    return limits


@singledispatch
def _enter(criterion: Criterion, limits: Limits, view: int) -> Limits:
    """The limits with what this criterion demands of the view so numbered; arrays are filled in place."""
    raise NotImplementedError(f"no compiled form of {type(criterion).__name__}")


@_enter.register
def _shares(criterion: ShareBound, limits: Limits, view: int) -> Limits:
    """Of several bounds on one value, the strictest."""
    for value, bound in enumerate(criterion.bounds, int(limits.first[view])):
        if bound < Fraction(int(limits.numerator[value]), int(limits.denominator[value]) or 1):
            limits.numerator[value], limits.denominator[value] = bound.numerator, bound.denominator
    return limits


@_enter.register
def _distinct(criterion: DistinctDiversity, limits: Limits, view: int) -> Limits:
    limits.distinct[view] = math.ceil(criterion.l)
    return limits


@_enter.register
def _entropy(criterion: EntropyDiversity, limits: Limits, view: int) -> Limits:
    limits.entropy[view] = np.log(max(criterion.l, 1.0))
    return limits


@_enter.register
def _recursive(criterion: RecursiveDiversity, limits: Limits, view: int) -> Limits:
    limits.recursive_l[view] = criterion.l
    limits.recursive_numerator[view] = criterion.c.numerator
    limits.recursive_denominator[view] = criterion.c.denominator
    return limits


@_enter.register
def _closeness(criterion: TCloseness, limits: Limits, view: int) -> Limits:
    """With the group of every value at each level, for the hierarchical distance."""
    limits.closeness[view], limits.distance[view] = criterion.t, _DISTANCES[criterion.distance]
    limits.heights[view] = max(len(criterion.levels) - 1, 0)
    levels, values = limits.groups.shape
    missing = max(len(criterion.levels) - levels, 0)
    groups = np.vstack([limits.groups, np.zeros((missing, values), np.int32)])
    first, last = limits.first[view : view + 2]
    for level, starts in enumerate(criterion.levels):
        marks = np.zeros(last - first, np.int32)
        marks[np.asarray(starts)[1:]] = 1
        groups[level, first:last] = np.cumsum(marks)
    return limits._replace(groups=groups)
