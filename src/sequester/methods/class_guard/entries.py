"""How the parameters of each criterion become limits, view by view."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

import numpy as np

from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import ShareBound
from sequester.guarantees.criterion import Criterion
from sequester.guarantees.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from sequester.methods.class_guard.limits import EQUAL, HIERARCHICAL, ORDERED, Limits

_DISTANCES = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}


@singledispatch
def enter(criterion: Criterion, limits: Limits, view: int) -> Limits:
    """The limits with what this criterion demands of the view so numbered; arrays are filled in place."""
    raise NotImplementedError(f"no compiled form of {type(criterion).__name__}")


@enter.register
def _shares(criterion: ShareBound, limits: Limits, view: int) -> Limits:
    """Of several bounds on one value, the strictest."""
    for value, bound in enumerate(criterion.bounds, int(limits.first[view])):
        if bound < Fraction(int(limits.numerator[value]), int(limits.denominator[value]) or 1):
            limits.numerator[value], limits.denominator[value] = bound.numerator, bound.denominator
    return limits


@enter.register
def _distinct(criterion: DistinctDiversity, limits: Limits, view: int) -> Limits:
    limits.distinct[view] = math.ceil(criterion.l)
    return limits


@enter.register
def _entropy(criterion: EntropyDiversity, limits: Limits, view: int) -> Limits:
    limits.entropy[view] = np.log(max(criterion.l, 1.0))
    return limits


@enter.register
def _recursive(criterion: RecursiveDiversity, limits: Limits, view: int) -> Limits:
    limits.recursive_l[view] = criterion.l
    limits.recursive_numerator[view] = criterion.c.numerator
    limits.recursive_denominator[view] = criterion.c.denominator
    return limits


@enter.register
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
