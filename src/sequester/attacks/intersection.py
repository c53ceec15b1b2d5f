"""Intersection attack (Byun et al., section 4.4): what is left for a person in all her classes taken together.

Whoever knows in which releases a person is, and that she keeps her value, looks only at values that all her classes
have. Three readings of what is left:

multiset   of every value as often as it occurs in the class that has fewest of it: the rows that can still be hers
set        the different values that are left, each as likely as any other
posterior  two classes known to share exactly m people, all worlds equally likely; neither of the other readings
           bounds it, in either direction

The attacker may use any two or more of his releases, and fewer can tell more. For one value and one least number v
of its rows it is best to take every release whose class has at least v of them, so sorting the releases by that number
and trying the prefixes replaces trying every subset. Byun's history field IS (section 5), the meet of all releases so
far, is not enough: it misses subsets that are no prefix. `semantics="paper"` is that field as printed.

Of whole rows, matched by all their cells, a value's share is that of all labels that have it, or may have it. The
releases that tell most about one label need not tell most about several together, so all subsets of few releases are
tried, and of more every two, every run from the first on, and all.

The posterior: if a_s of the m shared people have value s, the worlds number the product over s of C(n1_s, a_s)
C(n2_s, a_s) a_s!, up to a factor that is the same for all. So the chance of a shared person to have s is E[a_s] / m,
and the sums over all (a_s) with total m are coefficients of a product of polynomials, one per value. For m = 1 it is
the product rule n1_s n2_s / sum of n1_t n2_t. Integers throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, factorial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, Setting, attributes_and_rows, largest_share, unbounded
from sequester.attacks.cracks import unknown_neighbors
from sequester.attacks.finding import (
    Finding,
    Result,
    Semantics,
    gather,
    keep_worst,
    name_counts,
    say_more,
)
from sequester.attacks.solvers.comparison import compare
from sequester.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import Index
from sequester.policy.words import listed

Reading = Literal["multiset", "set", "posterior"]
Table = NDArray[np.int64]

Polynomial = list[int]

# Cells of the largest (paths x releases x values) array made at once.
_CELLS = 1 << 21
# Releases up to which every subset is tried, of whole rows.
_FEW = 5


@dataclass(frozen=True, eq=False)
class _Hits:
    """Paths that break a bound.

    classes           (hits, releases) the classes used, -1 elsewhere
    value             what is bounded: a value, or a question about whole rows
    with_value, left  rows left with it, and in all
    trajectory        whose path it is; -1 where nobody is known
    """

    classes: NDArray[np.int32]
    value: NDArray[np.int64]
    with_value: NDArray[np.int64]
    left: NDArray[np.int64]
    trajectory: NDArray[np.int64]


def find(history: History, *, semantics: Semantics = "exact", reading: Reading = "multiset") -> Result:
    """Every value with more than its share of what is left for somebody, in the worst subset of the releases.

    Where nobody's class is known, two classes are combined if somebody is certain to be in both (`cracks`): boxes that
    intersect prove nobody. Where some people's are, they are looked at with the classes that are certain. The measure
    is the largest share; None when no two releases can be combined. Of more than `MOST` findings the worst are told,
    and a note counts the others.
    """
    if not history.permanent or len(history) < 2:
        return Result()
    if reading == "posterior":
        if semantics == "paper":
            raise ValueError("the posterior reading is not in the paper; use the multiset or the set reading with it")
        return _find_posterior(history)
    result = _find(history, semantics=semantics, reading=reading)
    certain = history.of_certain()
    if certain is None:
        return result
    known = _find(certain, semantics=semantics, reading=reading)
    told = [replace(finding, witness={**finding.witness, "certain": True}) for finding in known.findings]
    measures = [one.measure for one in (result, known) if one.measure is not None]
    return Result([*told, *result.findings], max(measures, default=None), (*known.notes, *result.notes))


def _find(history: History, *, semantics: Semantics, reading: Reading) -> Result:
    tables = [release.counts for release in history.releases]
    if reading == "set":
        tables = [np.minimum(table, 1) for table in tables]
    parts: list[_Hits] = []
    largest: list[float] = []
    for path, columns, trajectory in _paths_of(history):
        largest += [0.0] if len(path) else []
        for hits, share in _search(history, path, columns, trajectory, tables=tables, as_printed=semantics == "paper"):
            parts.append(hits)
            largest.append(share)
    return _tell(history, parts, max(largest, default=None), tables=tables, reading=reading)


def _paths_of(history: History) -> Iterator[tuple[NDArray[np.int32], list[int], NDArray[np.int64]]]:
    """Classes to combine: (paths, columns), the releases the columns stand for, and whose trajectories they are."""
    if history.trajectories is not None:
        path = history.trajectories.path
        often = np.flatnonzero(np.count_nonzero(path >= 0, axis=1) >= 2)
        yield path[often], list(range(len(history))), often
        return
    for one in compare(history):
        path = np.column_stack(one.pairs)
        yield path, [one.first, one.second], np.full(len(path), -1)


def _search(
    history: History,
    path: NDArray[np.int32],
    columns: list[int],
    trajectory: NDArray[np.int64],
    *,
    tables: Sequence[Table],
    as_printed: bool,
) -> Iterator[tuple[_Hits, float]]:
    """What breaks a bound, some paths and one value at a time, and the largest share there."""
    # The row of zeros at the end is what the index -1 of an absent person finds.
    padded = [
        np.vstack([tables[column], np.zeros_like(tables[column], shape=(1, len(history.values)))]) for column in columns
    ]
    step = max(1, _CELLS // max(len(columns) * len(history.values), 1))
    for start in range(0, len(path), step):
        part = path[start : start + step]
        block = np.stack([table[part[:, place]] for place, table in enumerate(padded)], axis=1)
        for value, bound in enumerate(history.bounds):
            if bound >= 1:
                continue
            rows = np.flatnonzero(np.count_nonzero(block[:, :, value], axis=1) >= 2)
            if not len(rows):
                continue
            counts, present = block[rows], part[rows] >= 0
            theta, with_value, left = _best(counts, present, value=value, as_printed=as_printed)
            share = float((with_value / np.maximum(left, 1)).max())
            bad = np.flatnonzero(with_value * bound.denominator > left * bound.numerator)
            theta, with_value, left = theta[bad], with_value[bad], left[bad]
            if not as_printed:
                theta = _without_idle(counts[bad], theta, value=value)
                meet = _meet(counts[bad], theta)
                with_value, left = meet[:, value], meet.sum(axis=1)
            classes = np.full((len(bad), len(history)), -1, np.int32)
            classes[:, columns] = np.where(theta, part[rows[bad]], -1)
            yield _Hits(classes, np.full(len(bad), value), with_value, left, trajectory[start + rows[bad]]), share


def _best(
    counts: NDArray[np.int64], present: NDArray[np.bool_], *, value: int, as_printed: bool
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Per row, the prefix (at least two releases) with the largest share: its releases, rows with the value, all rows.

    Prefixes are by falling count of the value; as printed, in order of publication. Absence comes last either way,
    where the meet is empty.
    """
    key = np.where(present, 0 if as_printed else -counts[:, :, value], 1)
    order = np.argsort(key, axis=1, kind="stable")
    meet = np.minimum.accumulate(np.take_along_axis(counts, order[:, :, None], axis=1), axis=1)
    with_value, left = meet[:, 1:, value], meet[:, 1:].sum(axis=2)
    # Equal ratios of integers give equal floats, so the first of several best prefixes is found.
    best = np.argmax(with_value / np.maximum(left, 1), axis=1)
    rank = np.argsort(order, axis=1, kind="stable")
    rows = np.arange(len(counts))
    return rank <= best[:, None] + 1, with_value[rows, best], left[rows, best]


def _meet(counts: NDArray[np.int64], theta: NDArray[np.bool_]) -> NDArray[np.int64]:
    meet: NDArray[np.int64] = np.where(theta[:, :, None], counts, np.iinfo(np.int64).max).min(axis=1)
    return meet


def _without_idle(counts: NDArray[np.int64], theta: NDArray[np.bool_], *, value: int) -> NDArray[np.bool_]:
    """The releases without those that add nothing: what is left to check by hand should be short."""
    meet = _meet(counts, theta)
    with_value, left = meet[:, value], meet.sum(axis=1)
    changed = True
    while changed:
        changed = False
        for release in range(theta.shape[1]):
            # Leaving out one can make another idle that was not before, hence the rounds.
            rows = np.flatnonzero(theta[:, release] & (np.count_nonzero(theta, axis=1) > 2))
            fewer = theta[rows]
            fewer[:, release] = False
            meet = _meet(counts[rows], fewer)
            as_good = meet[:, value] * left[rows] >= with_value[rows] * meet.sum(axis=1)
            theta[rows[as_good], release] = False
            changed |= bool(as_good.any())
    return theta


def find_rows(history: History, labels: Labels) -> Result:
    """Values with more than their share of what is left for somebody; `history` has labels for values."""
    if len(history) < 2 or not labels.questions:
        return Result()
    holds = np.zeros((len(labels), len(labels.questions)), np.int64)
    for number, question in enumerate(labels.questions):
        holds[question.labels, number] = 1
    top = np.array([question.bound.numerator for question in labels.questions], np.int64)
    bottom = np.array([question.bound.denominator for question in labels.questions], np.int64)
    tables = [release.counts for release in history.releases]
    parts: list[_Hits] = []
    shares: list[float] = []
    step = max(1, 2 * _CELLS // max(len(labels), 1))
    for path, columns, trajectory in _paths_of(history):
        best: dict[tuple[int, int], tuple[Fraction, tuple[int, ...], int, int]] = {}
        for theta in _subsets(len(columns)):
            for start in range(0, len(path), step):
                rows = start + np.flatnonzero((path[start : start + step, list(theta)] >= 0).all(axis=1))
                if not len(rows):
                    continue
                meet = np.minimum.reduce([tables[columns[column]][path[rows, column]] for column in theta])
                left, having = meet.sum(axis=1), meet @ holds
                shares.append(float((having / np.maximum(left, 1)[:, None]).max()))
                for place, number in np.argwhere(having * bottom > top * left[:, None]).tolist():
                    key, found = (int(rows[place]), number), (int(having[place, number]), int(left[place]))
                    if key not in best or Fraction(*found) > best[key][0]:
                        best[key] = Fraction(*found), theta, *found
        classes = np.full((len(best), len(history)), -1, np.int32)
        for entry, ((row, _), (_, theta, _, _)) in enumerate(best.items()):
            classes[entry, [columns[column] for column in theta]] = path[row, list(theta)]
        rows, value = np.array(list(best), np.int64).reshape(-1, 2).T
        with_value, left = np.array([found[2:] for found in best.values()], np.int64).reshape(-1, 2).T
        parts.append(_Hits(classes, value, with_value, left, trajectory[rows]))
    return _tell(history, parts, max(shares, default=None), tables=tables, reading="multiset", labels=labels)


def _subsets(releases: int) -> Iterator[tuple[int, ...]]:
    every = range(releases)
    if releases <= _FEW:
        yield from (theta for size in range(2, releases + 1) for theta in combinations(every, size))
        return
    yield from combinations(every, 2)
    yield from (tuple(range(length)) for length in range(3, releases + 1))


def _tell(
    history: History,
    parts: Sequence[_Hits],
    measure: float | None,
    *,
    tables: Sequence[Table],
    reading: Reading,
    labels: Labels | None = None,
) -> Result:
    """Each value and set of classes once, with the people they tie to it."""
    if not parts:
        return Result([], measure)
    classes, value, with_value, left, trajectory = (
        np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Hits)
    )
    asked, known = history, history.trajectories
    if labels is not None:
        questions = labels.questions
        asked = replace(history, values=tuple(q.value for q in questions), bounds=tuple(q.bound for q in questions))
    exposures, more = gather(
        asked,
        value,
        classes=classes,
        weight=np.zeros(len(value), np.int64) if known is None else known.size[trajectory],
        degree=with_value / np.maximum(left, 1) / np.array([float(bound) for bound in asked.bounds])[value],
        trajectory=None if known is None else trajectory,
    )
    findings = []
    for exposure in exposures:
        rows = [tables[release][number].tolist() for release, number in exposure.classes]
        share = Fraction(int(with_value[exposure.entry]), int(left[exposure.entry]))
        witness = {
            "reading": reading,
            "published": [name_counts(history, row) for row in rows],
            "meet": name_counts(history, [min(column) for column in zip(*rows, strict=True)]),
            "share": str(share),
            "people": exposure.weight,
        }
        bound = asked.bounds[exposure.value]
        told = exposure.tell(asked, "intersection", "neighbor", required=bound, observed=share, witness=witness)
        attribute = told.attribute if labels is None else labels.questions[exposure.value].attribute
        findings.append(replace(told, attribute=attribute))
    return Result(findings, measure, say_more("intersection", history.attribute, more))


def _find_posterior(history: History) -> Result:
    """Every pair of classes that ties the people they share to a value by more than its bound.

    The measure is the largest such chance. Needs to know who is in which class.
    """
    if history.trajectories is None:
        return Result()
    bounded = [value for value, bound in enumerate(history.bounds) if bound < 1]
    chance_of = lru_cache(maxsize=1 << 16)(posterior)
    findings: list[Finding] = []
    more = 0
    worst: Fraction | None = None
    for pair in combinations(range(len(history)), 2):
        one, other = (history.releases[release] for release in pair)
        path = history.trajectories.path[:, pair]
        both = np.flatnonzero((path >= 0).all(axis=1))
        classes, cell = np.unique(path[both], axis=0, return_inverse=True)
        inside = Index.of(cell.reshape(-1), len(classes))
        size = np.bincount(cell.reshape(-1), weights=history.trajectories.size[both], minlength=len(classes))
        exposed: list[tuple[int, int, int, Fraction]] = []
        for number, ((a, b), shared) in enumerate(zip(classes.tolist(), size.astype(np.int64).tolist(), strict=True)):
            chances = chance_of(tuple(one.counts[a].tolist()), tuple(other.counts[b].tolist()), shared=shared)
            worst = max([worst or Fraction(0), *(chances[value] for value in bounded)])
            beyond = [value for value in bounded if chances[value] > history.bounds[value]]
            exposed += [(number, value, who, chances[value]) for value in beyond for who in inside.members([number])]
        if not exposed:
            continue
        numbers, value, who = np.array([entry[:3] for entry in exposed], np.int64).T
        used = np.full((len(exposed), len(history)), -1, np.int32)
        used[:, pair] = classes[numbers]
        exposures, others = gather(
            history,
            value,
            classes=used,
            weight=history.trajectories.size[both[who]],
            degree=np.array([float(chance / history.bounds[value]) for _, value, _, chance in exposed]),
            trajectory=both[who],
        )
        more += others
        for exposure in exposures:
            chance, bound = exposed[exposure.entry][3], history.bounds[exposure.value]
            shown = [history.releases[release].counts[number].tolist() for release, number in exposure.classes]
            witness = {
                "reading": "posterior",
                "published": [name_counts(history, row) for row in shown],
                "shared": exposure.weight,
                "chance": str(chance),
            }
            told = exposure.tell(history, "intersection", "neighbor", required=bound, observed=chance, witness=witness)
            findings.append(told)
    findings, others = keep_worst(findings)
    notes = say_more("intersection", history.attribute, more + others)
    return Result(findings, None if worst is None else float(worst), notes)


def posterior(first: Sequence[int], second: Sequence[int], *, shared: int) -> tuple[Fraction, ...]:
    """The chance of each value for one of the people that two classes with these value counts share.

    Zeros when the counts cannot share so many people of the same values.
    """
    if shared == 1:
        products = [a * b for a, b in zip(first, second, strict=True)]
        return tuple(Fraction(number, sum(products) or 1) for number in products)
    for inner, outer in ((first, second), (second, first)):
        if shared == sum(inner) and all(a <= b for a, b in zip(inner, outer, strict=True)):
            return tuple(Fraction(count, shared) for count in inner)
    chances = [Fraction(0)] * len(first)
    both = [value for value, (a, b) in enumerate(zip(first, second, strict=True)) if a and b]
    ways = [_ways(first[value], second[value], limit=shared) for value in both]
    before: list[Polynomial] = [[1]]
    for polynomial in ways:
        before.append(_times(before[-1], polynomial, limit=shared))
    worlds = before[-1][shared] if len(before[-1]) > shared else 0
    if not worlds:
        return tuple(chances)
    after: Polynomial = [1]
    for value, polynomial, others in zip(reversed(both), reversed(ways), reversed(before[:-1]), strict=True):
        rest = _times(others, after, limit=shared)
        total = sum(
            number * way * rest[shared - number] for number, way in enumerate(polynomial) if shared - number < len(rest)
        )
        chances[value] = Fraction(total, shared * worlds)
        after = _times(polynomial, after, limit=shared)
    return tuple(chances)


def _ways(first: int, second: int, *, limit: int) -> Polynomial:
    return [comb(first, a) * comb(second, a) * factorial(a) for a in range(min(first, second, limit) + 1)]


def _times(one: Polynomial, other: Polynomial, *, limit: int) -> Polynomial:
    if len(one) == 1:
        return [one[0] * factor for factor in other]
    if len(other) == 1:
        return [other[0] * factor for factor in one]
    product = [0] * min(len(one) + len(other) - 1, limit + 1)
    for degree, factor in enumerate(one):
        for more, other_factor in enumerate(other[: limit + 1 - degree]):
            product[degree + more] += factor * other_factor
    return product


def _find_asked(history: History, asked: Setting) -> Result:
    labels = asked.labels_of(history)
    return find(history, semantics=asked.semantics) if labels is None else find_rows(history, labels)


def _story(finding: Finding, history: History) -> str:
    if not finding.people:
        return (
            "If nobody left (or nobody joined) in between, somebody is in both classes below, of the releases "
            f"{listed(finding.releases)}: their rows fit nowhere else. Whoever that is may have what both "
            f"classes have, and of that {words.share(finding.observed)} is {finding.value}."
        )
    return (
        f"{words.names(finding.people)} must be in one class of each of the releases {listed(finding.releases)}, "
        "so the value is one that all these classes have. Of what they share, "
        f"{words.share(finding.observed)} is {finding.value}."
    )


ATTACK = Attack(
    name="intersection",
    by_certain=True,
    adversary="neighbor",
    title="Confidence from intersecting releases",
    find=_find_asked,
    smallest=False,
    required=largest_share,
    values="permanent",
    looks_at=attributes_and_rows,
    story=_story,
    settled=unbounded,
    nothing=unknown_neighbors,
)
