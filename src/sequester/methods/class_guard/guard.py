"""What a method asks before it accepts a class: the requirement in the form the compiled loops read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.errors import PolicyError
from sequester.guarantees.criterion import View
from sequester.guarantees.requirement import Requirement
from sequester.methods.class_guard.entries import enter
from sequester.methods.class_guard.limits import Limits


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
            limits = enter(criterion, limits, number)
    return limits
