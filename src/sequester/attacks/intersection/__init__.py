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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, Setting, attributes_and_rows, largest_share, unbounded
from sequester.attacks.cracks.comparison import compare
from sequester.attacks.cracks.compose import unknown_neighbors
from sequester.attacks.exposure import Exposure, Noted, gather, name_counts, say_more, worst
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.intersection.posterior import find_posterior
from sequester.history import History

Reading = Literal["multiset", "set", "posterior"]
Table = NDArray[np.int64]

# Cells of the largest (paths x releases x values) array made at once.
_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class _Hits:
    """Paths and values that break a bound: the classes used (-1 elsewhere), rows left with the value, and in all."""

    row: NDArray[np.int64]
    value: NDArray[np.int64]
    classes: NDArray[np.int32]
    with_value: NDArray[np.int64]
    left: NDArray[np.int64]

    def pick(self, chosen: NDArray[np.intp]) -> _Hits:
        """Some of them."""
        row, value, with_value, left = (a[chosen] for a in (self.row, self.value, self.with_value, self.left))
        return _Hits(row, value, self.classes[chosen], with_value, left)

    def spread(self, columns: list[int], releases: int) -> _Hits:
        """With a column of classes for every release, given the releases of those there are."""
        classes = np.full((len(self.row), releases), -1, np.int32)
        classes[:, columns] = self.classes
        return replace(self, classes=classes)

    def degree(self, bounds: Sequence[Fraction]) -> NDArray[np.float64]:
        """How many times its bound each share is."""
        bound = np.array([float(bound) for bound in bounds])
        strain: NDArray[np.float64] = self.with_value / np.maximum(self.left, 1) / bound[self.value]
        return strain


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
        return find_posterior(history)
    result = _find(history, semantics=semantics, reading=reading)
    certain = history.of_certain()
    if certain is None:
        return result
    known = _find(certain, semantics=semantics, reading=reading)
    told = [replace(finding, witness={**finding.witness, "certain": True}) for finding in known.findings]
    measures = [one.measure for one in (result, known) if one.measure is not None]
    return Noted([*told, *result.findings], max(measures, default=None), (*known.notes, *result.notes))


def _find(history: History, *, semantics: Semantics, reading: Reading) -> Noted:
    tables = [_padded(release.counts, as_set=reading == "set") for release in history.releases]
    measure: float | None = None
    parts: list[_Hits] = []
    whose: list[NDArray[np.int64]] = []
    more = 0
    for path, columns, trajectory in paths_of(history):
        used = [tables[column] for column in columns]
        hits, largest = _search(path, used, bounds=history.bounds, as_printed=semantics == "paper")
        if largest is not None:
            measure = largest if measure is None else max(measure, largest)
        if trajectory is not None:
            whose.append(trajectory[hits.row])
        else:
            # Without people every hit is a finding of its own.
            told = worst(hits.degree(history.bounds))
            more += len(hits.row) - len(told)
            hits = hits.pick(told)
        parts.append(hits.spread(columns, len(history)))
    hits = _joined(parts, len(history))
    exposures, others = gather(
        history,
        hits.value,
        classes=hits.classes,
        weight=_sizes(history)[whose[0]] if whose else np.zeros(len(hits.row), np.int64),
        degree=hits.degree(history.bounds),
        trajectory=whose[0] if whose else None,
    )
    findings = []
    for exposure in exposures:
        share = Fraction(int(hits.with_value[exposure.entry]), int(hits.left[exposure.entry]))
        findings.append(_finding(history, exposure, tables=tables, share=share, reading=reading))
    return Noted(findings, measure, say_more("intersection", history.attribute, more + others))


def _padded(counts: Table, *, as_set: bool) -> Table:
    """The counts with a row of zeros at the end, which is what the index -1 of an absent person finds."""
    kept = np.minimum(counts, 1) if as_set else counts
    return np.vstack([kept, np.zeros((1, counts.shape[1]), np.int64)])


def _sizes(history: History) -> NDArray[np.int64]:
    return history.known_trajectories.size


def paths_of(history: History) -> list[tuple[NDArray[np.int32], list[int], NDArray[np.int64] | None]]:
    """Classes to combine: (paths, columns), the releases the columns stand for, and whose trajectories they are."""
    if history.trajectories is not None:
        path = history.trajectories.path
        often = np.flatnonzero(np.count_nonzero(path >= 0, axis=1) >= 2)
        return [(path[often], list(range(len(history))), often)]
    return [(np.column_stack(one.pairs), [one.first, one.second], None) for one in compare(history)]


def _search(
    path: NDArray[np.int32], tables: Sequence[Table], *, bounds: Sequence[Fraction], as_printed: bool
) -> tuple[_Hits, float | None]:
    width, values = len(tables), len(bounds)
    step = max(1, _CELLS // max(width * values, 1))
    hits: list[_Hits] = []
    worst = 0.0 if len(path) else None
    for start in range(0, len(path), step):
        part = path[start : start + step]
        block = np.stack([table[part[:, column]] for column, table in enumerate(tables)], axis=1)
        for value, bound in enumerate(bounds):
            if bound >= 1:
                continue
            rows = np.flatnonzero(np.count_nonzero(block[:, :, value], axis=1) >= 2)
            if not len(rows):
                continue
            counts, present = block[rows], part[rows] >= 0
            theta, with_value, left = _best(counts, present, value=value, as_printed=as_printed)
            worst = max(worst or 0.0, float((with_value / np.maximum(left, 1)).max()))
            bad = np.flatnonzero(with_value * bound.denominator > left * bound.numerator)
            theta, with_value, left = theta[bad], with_value[bad], left[bad]
            if not as_printed:
                theta = _without_idle(counts[bad], theta, value=value)
                meet = _meet(counts[bad], theta)
                with_value, left = meet[:, value], meet.sum(axis=1)
            classes = np.where(theta, part[rows[bad]], -1).astype(np.int32)
            hits.append(_Hits(rows[bad] + start, np.full(len(bad), value), classes, with_value, left))
    return _joined(hits, width), worst


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


def _joined(parts: Sequence[_Hits], width: int) -> _Hits:
    none = np.zeros(0, np.int64)
    return _Hits(
        np.concatenate([none, *(hits.row for hits in parts)]),
        np.concatenate([none, *(hits.value for hits in parts)]),
        np.concatenate([np.zeros((0, width), np.int32), *(hits.classes for hits in parts)]),
        np.concatenate([none, *(hits.with_value for hits in parts)]),
        np.concatenate([none, *(hits.left for hits in parts)]),
    )


def _finding(
    history: History, exposure: Exposure, *, tables: Sequence[Table], share: Fraction, reading: Reading
) -> Finding:
    rows = [tables[release][number].tolist() for release, number in exposure.classes]
    witness = {
        "reading": reading,
        "published": [name_counts(history, row) for row in rows],
        "meet": name_counts(history, [min(column) for column in zip(*rows, strict=True)]),
        "share": str(share),
        "people": exposure.weight,
    }
    bound = history.bounds[exposure.value]
    return exposure.tell(history, "intersection", "neighbor", required=bound, observed=share, witness=witness)


def _find_asked(history: History, asked: Setting) -> Result:
    labels = asked.labels_of(history)
    if labels is None:
        return find(history, semantics=asked.semantics)
    from sequester.attacks.intersection.rows import find_rows

    return find_rows(history, labels)


def _story(finding: Finding, history: History) -> str:
    if not finding.people:
        return (
            "If nobody left (or nobody joined) in between, somebody is in both classes below, of the releases "
            f"{words.listed(finding.releases)}: their rows fit nowhere else. Whoever that is may have what both "
            f"classes have, and of that {words.share(finding.observed)} is {finding.value}."
        )
    return (
        f"{words.names(finding.people)} must be in one class of each of the releases {words.listed(finding.releases)}, "
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
