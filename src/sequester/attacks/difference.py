"""Difference attack (Byun et al., section 4.3): classes of one release minus classes of another.

The insider knows who is in which class of every release, and that people keep their values. Adding up some classes of
one release and taking away some of another tells him the values of those left: they may be too few (size), or too
many of them must have one value (value). Both directions of every pair of releases are checked, so that people who
leave are protected like those who join. With three and more releases single trajectories that follow from classes of
several releases are checked too.

What is learned about the people left is which values they have together. If none of these has a bound, while others
have, there is nothing in it to protect: six people without a diagnosis, one of whom leaves, tell that she has none.
Whose rows theirs are is for `tracing`. So few people left count only with somebody among them who has a bounded value,
or where no value has a bound and numbers are all that is promised.

Of three and more releases, trajectories are looked for whose values follow from sums and differences of classes, with
fractions. Byun et al. check pairs of releases and say that this suffices; it does not. With {01}{23}, {02}{13},
{03}{12} no pair leaves anybody alone, but person 0 is half of {01} + {02} + {03} - {0123}. The people of one trajectory
are determined when its indicator is a rational combination of the indicators of classes. That is linear algebra, done
here modulo a prime on small components and confirmed in exact fractions, so that what is reported is proved; a
trajectory whose combination has a numerator or denominator above 30000 would be missed. Larger sets of trajectories are
not searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations as pairs_of
from math import inf, isqrt, lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, attributes_and_rows, fewest
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.solvers.subtraction import (
    Remainder,
    Subtraction,
    components,
    determined,
    directions,
    generalized,
    nested,
)
from sequester.errors import DataError, Problem
from sequester.history import History, Trajectories
from sequester.history.trajectory import Index
from sequester.policy.words import listed

if TYPE_CHECKING:
    from sequester.attacks.pods import PodProof


EXACT_WORK = 300_000
"""Trajectories times pairs of releases up to which a certified history is searched for its exact measure."""


def find(history: History, *, semantics: Semantics = "exact", by_value: bool = True) -> Result:
    """Sets of people that classes determine and that are too few, or have a value too often.

    The measure is the size of the smallest determined set: of nested differences, whole classes among them, over all
    pairs of releases, and of the trajectories found to be determined by three or more releases. It is exact for two
    releases. For a large history in which every trajectory is large enough it is the smallest trajectory instead, which
    no determined set is smaller than, whatever the number of releases.

    `semantics="paper"` is Figure 5 of the paper as it was meant: nested sets and pairs only, empty differences left
    out, both directions. A single class that breaks a requirement by itself is no difference, and not reported here.
    Without `by_value` only numbers are looked at, where something else proves that no value is too frequent.
    """
    trajectories = history.trajectories
    if trajectories is None or not history.permanent or len(history) < 2 or len(trajectories) == 0:
        return Result([], None)
    search = _Subtractions(history, trajectories, semantics, by_value=by_value)
    for first, second in search.pairs():
        for cells in directions(history, first, second):
            search.values(cells)
            search.sizes(cells)
    if semantics == "exact":
        search.span()
    return Result(search.findings, search.measure)


class _Subtractions:
    """Findings so far, each with somebody no earlier one exposes as much, and the smallest determined set so far."""

    def __init__(self, history: History, trajectories: Trajectories, semantics: Semantics, *, by_value: bool) -> None:
        self.history, self.trajectories, self.semantics = history, trajectories, semantics
        self.findings: list[Finding] = []
        self.reached: dict[int | None, list[float]] = {}
        self.bounded = [value for value in range(len(history.values)) if by_value and history.bounds[value] < 1]
        counts = history.trajectory_counts()
        if counts is not None:
            self.bounded = [value for value in self.bounded if _breaks(history, counts, trajectories.size, value)]
        self.free = _free(history, counts, len(trajectories))
        smallest = int(trajectories.size.min())
        releases = len(history)
        work = len(trajectories) * releases * (releases - 1) // 2
        self.by_size = smallest < history.fewest or work <= EXACT_WORK
        self.measure = smallest
        if self.by_size:
            self.measure = min(int(release.size[release.size > 0].min(initial=1 << 60)) for release in history.releases)

    @cached_property
    def classes(self) -> list[tuple[Index, list[int]]]:
        """Per release, trajectories by class, and the class of every trajectory."""
        paths = zip(self.trajectories.path.T, self.history.releases, strict=True)
        return [(Index.of(path, len(release)), path.tolist()) for path, release in paths]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Pairs of releases, earliest first; none when the trajectories rule out everything."""
        if self.by_size or self.bounded:
            yield from pairs_of(range(len(self.history)), 2)

    def values(self, cells: Subtraction) -> None:
        """Values that are too frequent in what is left."""
        if self.bounded:
            attack = generalized if self.semantics == "exact" else nested
            for remainder in attack(cells, {value: self.history.bounds[value] for value in self.bounded}):
                self._add(remainder)

    def sizes(self, cells: Subtraction) -> None:
        """What is left of too few people."""
        if not self.by_size:
            return
        for remainder in determined(cells, k=self.history.fewest, limit=self.measure):
            if self.free[self._left(remainder)].all():
                continue
            self.measure = min(self.measure, remainder.people)
            if remainder.people < self.history.fewest and len(remainder.taken):
                self._add(remainder)

    def span(self) -> None:
        """Trajectories of too few people that three or more releases determine."""
        if len(self.history) < 3 or self.trajectories.size.min() >= self.history.fewest:
            return
        for trajectory, found in combinations(self.trajectories, self.history.fewest):
            if self.free[trajectory]:
                continue
            people = int(self.trajectories.size[trajectory])
            self.measure = min(self.measure, people)
            if self._is_new(None, [trajectory], reached=people):
                terms = sorted((release + 1, number + 1, factor) for release, number, factor in found)
                combination = [
                    {"release": release, "class": number, "times": str(factor)} for release, number, factor in terms
                ]
                places = [(release, number) for release, number, _ in terms]
                witness = {"combination": combination, "left": people}
                self._tell([trajectory], None, observed=people, classes=places, witness=witness)

    def _add(self, remainder: Remainder) -> None:
        cells, value = remainder.cells, remainder.value
        if not remainder.people:
            # Rows with a value are left, and nobody who could have it: what is known of people is not so.
            first, second = sorted((cells.inner + 1, cells.outer + 1))
            message = (
                f"releases {first} and {second} contradict each other, if values stay with a person and the people are "
                "those in the population; if values may change, say `values: transient`"
            )
            raise DataError(Problem(message, column=self.history.attribute or None))
        observed = remainder.people if value is None else remainder.with_value / remainder.people
        left = self._left(remainder)
        if not self._is_new(value, left, reached=observed):
            return
        added, taken = ([number + 1 for number in classes] for classes in (remainder.added, remainder.taken))
        outer, inner = cells.outer + 1, cells.inner + 1
        witness = {"from_release": outer, "from": added, "minus_release": inner, "minus": taken}
        witness |= {"left": remainder.people}
        if value is not None:
            witness |= {"with_value": remainder.with_value, "exactly": remainder.nested}
        places = [*((outer, number) for number in added), *((inner, number) for number in taken)]
        self._tell(left, value, observed=observed, classes=places, witness=witness)

    def _tell(
        self,
        trajectories: list[int],
        value: int | None,
        *,
        observed: float,
        classes: list[tuple[int, int]],
        witness: Mapping[str, Any],
    ) -> None:
        history = self.history
        self.findings.append(
            Finding(
                attack="difference",
                adversary="insider",
                releases=tuple(sorted({release for release, _ in classes})),
                required=float(history.fewest if value is None else history.bounds[value]),
                observed=float(observed),
                value=None if value is None else history.values[value],
                classes=tuple(classes),
                people=history.people_of(trajectories),
                witness=witness,
                attribute=history.attribute,
            )
        )

    def _left(self, remainder: Remainder) -> list[int]:
        """Trajectories in the added classes and in none of those taken away."""
        added, _ = self.classes[remainder.cells.outer]
        _, within = self.classes[remainder.cells.inner]
        taken = set(remainder.taken)
        return [one for one in added.members(remainder.added) if within[one] not in taken]

    def _is_new(self, value: int | None, trajectories: list[int], *, reached: float) -> bool:
        """Whether somebody here is not yet reported with as much: as confident, or among as few people."""
        degree = -reached if value is None else reached
        if value not in self.reached:
            self.reached[value] = [-inf] * len(self.trajectories)
        before = self.reached[value]
        new = [one for one in trajectories if before[one] < degree]
        for one in new:
            before[one] = degree
        return bool(new)


def _free(history: History, counts: NDArray[np.int64] | None, trajectories: int) -> NDArray[np.bool_]:
    """Trajectories in which nobody has a value with a bound, though there are such values."""
    bounded = np.array([bound < 1 for bound in history.bounds])
    if counts is None or not history.is_guarded:
        return np.zeros(trajectories, np.bool_)
    return np.asarray(counts[:, bounded].sum(axis=1) == 0)


def _breaks(history: History, counts: NDArray[np.int64], size: NDArray[np.int64], value: int) -> bool:
    """Whether a trajectory has the value too often; if none has, no set made of trajectories has."""
    bound = history.bounds[value]
    return bool((bound.denominator * counts[:, value] > bound.numerator * size).any())


def _by_pods(history: History, pods: PodProof, since: int) -> Result | None:
    if len(history) < 2:
        return None
    # Of people whose values have no bound nothing is learned that is protected, where there are such values.
    seats = pods.bounded if history.is_guarded else pods.fewest
    if seats is not None and seats < history.fewest:
        return find(history, by_value=False)
    sizes = [release.size for release in history.releases[since:]]
    smallest = [int(size[size > 0].min()) for size in sizes if size.any()]
    smallest += [] if seats is None else [seats]
    return Result([], float(min(smallest)) if smallest else None)


def _story(finding: Finding, history: History) -> str:
    later, earlier = finding.releases[-1], finding.releases[0]
    subject = words.names(finding.people)
    if "combination" in finding.witness:
        return (
            f"Add and subtract the classes below of the releases {listed(finding.releases)}, each as often as "
            f"the witness says: everybody cancels out but {words.people(finding.observed)}, {subject}."
        )
    if not finding.about_value:
        return (
            f"Adding up whole classes of release {later} and taking away whole classes of release {earlier} (or the "
            f"other way round) leaves {words.people(finding.observed)}: {subject}. "
            "Everything published about the rest cancels out."
        )
    return (
        f"Take the classes below of one release away from those of the other. The people who remain are {subject}, "
        f"and at least {words.share(finding.observed)} of them must have {finding.value}, because the classes taken "
        "away do not hold enough of it."
    )


LARGEST = 400
"""Components with more trajectories than this are left to the trajectory certificate and to deniability."""

_PRIME = (1 << 31) - 1


Terms = tuple[tuple[int, int, Fraction], ...]
"""Multiples of classes, each (release, class, factor), numbers from 0."""


def combinations(trajectories: Trajectories, k: int) -> Iterator[tuple[int, Terms]]:
    """Trajectories of fewer than k people that are determined, each with the sum it is, and are no class themselves."""
    path = trajectories.path
    present = path >= 0
    offset = np.concatenate([[0], np.cumsum(path.max(axis=0, initial=-1) + 1)])
    row, release = np.nonzero(present)
    column = path[row, release] + offset[release]
    label = components(row, column + len(path), len(path) + int(offset[-1]))[: len(path)]
    small = np.bincount(label) <= LARGEST
    wanted = (trajectories.size < k) & small[label]
    by_part, of_part = np.argsort(label, kind="stable"), np.argsort(label[row], kind="stable")
    for part in np.unique(label[wanted]).tolist():
        members = by_part[slice(*np.searchsorted(label, [part, part + 1], sorter=by_part))]
        if len(members) < 2:
            continue
        inside = of_part[slice(*np.searchsorted(label[row], [part, part + 1], sorter=of_part))]
        classes, number = np.unique(column[inside], return_inverse=True)
        matrix = np.zeros((len(classes), len(members)), np.int64)
        matrix[number, np.searchsorted(members, row[inside])] = 1
        of = np.searchsorted(offset, classes, side="right") - 1
        names = list(zip(of.tolist(), (classes - offset[of]).tolist(), strict=True))
        for position, factors in _units(matrix, wanted[members]):
            if len(factors) > 1:
                terms = tuple((*names[index], factor) for index, factor in factors.items())
                yield int(members[position]), terms


def _units(matrix: NDArray[np.int64], wanted: NDArray[np.bool_]) -> Iterator[tuple[int, dict[int, Fraction]]]:
    """Columns whose unit vector is a combination of the rows, with the factors.

    In reduced echelon form that is a pivot column whose row has no other entry.
    """
    rows, columns = matrix.shape
    reduced = np.concatenate([matrix, np.eye(rows, dtype=np.int64)], axis=1)
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        (holders,) = reduced[:, column].nonzero()
        first = holders.searchsorted(rank)
        if first == len(holders):
            continue
        pivot, lead = holders[first], int(reduced[holders[first], column])
        row = reduced[pivot].copy() if lead == 1 else reduced[pivot] * pow(lead, -1, _PRIME) % _PRIME
        reduced[pivot], reduced[rank] = reduced[rank], row
        pivots.append(column)
        if len(holders) > 1:
            others = holders[holders != pivot]
            others[others == rank] = pivot
            (entries,) = row.nonzero()
            part = others[:, None], entries
            reduced[part] = (reduced[part] - reduced[others, column, None] * row[entries]) % _PRIME
        if len(pivots) == rows:
            break
    alone = np.count_nonzero(reduced[: len(pivots), :columns], axis=1) == 1
    members = [np.flatnonzero(row).tolist() for row in matrix]
    for rank in np.flatnonzero(alone & wanted[pivots]).tolist():
        used = np.flatnonzero(reduced[rank, columns:])
        factors = [_fraction(residue) for residue in reduced[rank, columns + used].tolist()]
        exact = {index: factor for index, factor in zip(used.tolist(), factors, strict=True) if factor is not None}
        if len(exact) == len(used) and _is_unit(members, exact, pivots[rank]):
            yield pivots[rank], exact


@lru_cache(maxsize=1 << 12)
def _fraction(residue: int) -> Fraction | None:
    """The fraction with small numerator and denominator that has this residue, by the Euclidean algorithm."""
    small = isqrt(_PRIME // 2)
    before, after, factor_before, factor = _PRIME, residue, 0, 1
    while after > small:
        quotient = before // after
        before, after = after, before - quotient * after
        factor_before, factor = factor, factor_before - quotient * factor
    return Fraction(after, factor) if 0 < abs(factor) <= small else None


def _is_unit(members: list[list[int]], factors: dict[int, Fraction], column: int) -> bool:
    """Whether the combination of rows, given by where they have a 1, is exactly the unit vector of the column."""
    common = lcm(*(factor.denominator for factor in factors.values()))
    total: dict[int, int] = {}
    for index, factor in factors.items():
        times = factor.numerator * (common // factor.denominator)
        for entry in members[index]:
            total[entry] = total.get(entry, 0) + times
    return {entry: times for entry, times in total.items() if times} == {column: common}


ATTACK = Attack(
    name="difference",
    adversary="insider",
    title="People left by subtracting releases",
    find=lambda history, asked: find(history, semantics=asked.semantics),
    smallest=True,
    required=fewest,
    values="permanent",
    knows_people=True,
    looks_at=attributes_and_rows,
    story=_story,
    by_pods=_by_pods,
)
