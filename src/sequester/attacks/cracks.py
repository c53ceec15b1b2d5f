"""Forward, cross and backward attacks (Fung et al.): rows of a class that turn out not to be the target's.

forward   (F-attack, sections 3.1.1 and 4.1) a target's row in an earlier release: a row of her class q1 can be hers
          only if its buddy can be in q2, her class in the later release
cross     (C-attack, 3.1.2 and 4.2) her row in the later release, likewise: as many rows of q2 remain as rows of q1 do,
          for every recoding, so that C-anonymity equals F-anonymity
backward  (B-attack, 3.1.3 and 4.3) the row of somebody who joined between two releases: rows of her class that must be
          buddies of earlier rows are not hers

`remaining` counts per value the rows that are left in one world (`solvers.comparison`). The measure is the least total
over all targets: F-, C- and B-anonymity; a requirement of k people asks for at least k. Nobody is a target of the
B-attack when nobody joined, or when people left between all pairs of releases somebody joined.

Pairs of releases come first, then what several pairs give together. With more than two releases the best a neighbor can
do is not known to be computable in reasonable time (a single value and three cuts without newcomers already make
three-way tables). What is reported are attacks that work, so numbers are upper bounds of the rows that remain: every
pair of releases on its own, and for every group of people with the same history the compositions of Fung et al.,
section 7.1. All attacks on one target count people with the target's quasi-identifier, presence and value in one world,
so per value the smallest count of any of them remains: a B-attack followed by an F- or C-attack is their minimum, and
so are micro attacks of releases the paper does not combine.

Of the rows that are left is also asked what is promised of the values of a class (section 7.2). Buddies have the same
sensitive value, so the rows of different values are cracked apart, and one assignment leaves of every value as many
rows as any assignment does. The shares of that assignment are asked: somebody who holds both releases cannot prove that
a value is more frequent among the rows that may be the target's, since it may be the truth. Assignments that leave
fewer rows of the other values are possible too, but nobody can prove them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import NOBODY_IN_COMMON, Attack, Setting, fewest, whole_rows
from sequester.attacks.finding import Finding, Result, Semantics, degree_of
from sequester.attacks.solvers.buddies import Classes, Counts
from sequester.attacks.solvers.comparison import Comparison, closed_between, closed_unforced, compare
from sequester.guarantees.confidence import judged_shares
from sequester.guarantees.criterion import Criterion
from sequester.history import History
from sequester.history.label import Answers

Way = Literal["forward", "cross", "backward"]

_MANY = int(np.iinfo(np.int64).max >> 8)

_CELLS = 1 << 24
"""Rows times kinds of rows of which a promise is asked at once."""

_LIKE_CLASSES = ("diversity",)
"""Promises about classes, beside shares, that what is left must keep; a distance from the table says nothing here."""


@dataclass(frozen=True, eq=False, repr=False)
class _Targets:
    """Groups of targets of one pair of releases: their classes (-1 for absence) and the rows that remain for them."""

    first: Classes
    second: Classes
    remaining: Counts

    def pick(self, chosen: NDArray[np.intp]) -> _Targets:
        return _Targets(self.first[chosen], self.second[chosen], self.remaining[chosen])


def find(
    history: History, attack: Way, *, semantics: Semantics = "exact", kept: Sequence[PromiseOfRows] | None = None
) -> Result:
    """One of the three attacks on all pairs of releases and, where people are known, on their whole histories.

    The measure is the least number of rows that remain for a target, None when nobody can be one. Without people, and
    as printed, one finding per class of the release whose rows are cracked tells the worst partner. Compositions are
    told where no single attack leaves too few rows, and where they leave the least of all. What remains is also held
    to the promises about the values of a class (`kept`, by default those of the history).
    """
    kept = asked_of(history) if kept is None else kept
    comparisons = compare(history, by_value=bool(kept))
    findings: list[Finding] = []
    least: list[int] = []
    for comparison in comparisons:
        targets = _list_targets(comparison, attack, paper=semantics == "paper")
        total = targets.remaining.sum(axis=1)
        if len(total) == 0:
            continue
        least.append(int(total.min()))
        one_each = attack != "backward" and (semantics == "paper" or history.trajectories is None)
        if one_each:
            total = _keep_worst(targets.second if attack == "cross" else targets.first, total)
        findings += _tell_pairs(comparison, attack, targets.pick(np.flatnonzero(total < history.fewest)))
        for asked in kept:
            findings += _tell_values(comparison, attack, targets, asked, one_each=one_each)
    if semantics == "exact" and len(history) > 2 and history.trajectories is not None:
        composed = _compose(history, comparisons, attack)
        if len(composed.total):
            worst = int(composed.total.argmin())
            told = composed.alone >= history.fewest
            told[worst] |= int(composed.total[worst]) < min(least)
            least.append(int(composed.total[worst]))
            few = composed.pick(told & (composed.total < history.fewest))
            findings += _tell_composed(history, comparisons, attack, few)
            findings += _tell_composed_values(history, comparisons, attack, composed, kept=kept, told=findings)
    return Result(findings, min(least, default=None))


def _list_targets(comparison: Comparison, attack: Way, *, paper: bool) -> _Targets:
    if attack == "backward":
        if paper:
            classes, remaining = np.arange(len(comparison.after), dtype=np.int32), closed_unforced(comparison)
        else:
            classes, remaining = comparison.joined, comparison.unforced
        return _Targets(np.full(len(classes), -1, np.int32), classes, remaining)
    if paper:
        return _Targets(*comparison.comparable, closed_between(comparison))
    return _Targets(*comparison.pairs, comparison.remaining)


def _keep_worst(classes: Classes, total: Counts) -> Counts:
    """The totals, of equal classes only the first smallest; others become too large to report."""
    order = np.lexsort((total, classes))
    repeated = np.r_[False, classes[order][1:] == classes[order][:-1]]
    kept = total.copy()
    kept[order[repeated]] = _MANY
    return kept


def _tell_pairs(comparison: Comparison, attack: Way, targets: _Targets) -> Iterator[Finding]:
    releases = (comparison.first, comparison.second)
    rows = zip(targets.first.tolist(), targets.second.tolist(), targets.remaining.tolist(), strict=True)
    for first, second, remaining in rows:
        places = [place for place in zip(releases, (first, second), strict=True) if place[1] >= 0]
        people = comparison.people((first, second))
        yield _tell(comparison.history, attack, releases, places=places, remaining=remaining, people=people)


def _tell_values(
    comparison: Comparison, attack: Way, targets: _Targets, asked: PromiseOfRows, *, one_each: bool
) -> Iterator[Finding]:
    """Where cracked rows are excluded and what remains breaks a promise; of a class by itself others tell."""
    if attack == "forward":
        cracked, whole = targets.first, comparison.before
    else:
        cracked, whole = targets.second, comparison.after
    bad = asked.broken(targets.remaining)
    bad = bad[(targets.remaining[bad] != whole[cracked[bad]]).any(axis=1)]
    found = zip(bad.tolist(), _tell_pairs(comparison, attack, targets.pick(bad)), strict=True)
    told = [(int(cracked[place]), asked.tell(finding, targets.remaining[place])) for place, finding in found]
    if one_each:
        told.sort(key=lambda one: (one[0], -degree_of(one[1])))
        told = [one for place, one in enumerate(told) if place == 0 or one[0] != told[place - 1][0]]
    yield from (finding for _, finding in told)


def _tell_composed_values(
    history: History,
    comparisons: list[Comparison],
    attack: Way,
    composed: _Composed,
    *,
    kept: Sequence[PromiseOfRows],
    told: Sequence[Finding],
) -> Iterator[Finding]:
    """The same of what several attacks leave together, of people of whom no single one tells it."""
    known = {(finding.attribute, finding.value, person) for finding in told for person in finding.people}
    for asked in kept:
        bad = np.zeros(len(composed.total), np.bool_)
        bad[asked.broken(composed.remaining)] = True
        rows = composed.remaining[bad]
        for row, finding in zip(rows, _tell_composed(history, comparisons, attack, composed.pick(bad)), strict=True):
            one = asked.tell(finding, row)
            if any((one.attribute, one.value, person) not in known for person in one.people):
                yield one


def _tell(
    history: History,
    attack: Way,
    releases: tuple[int, ...],
    *,
    places: list[tuple[int, int]],
    remaining: list[int],
    people: tuple[Any, ...],
) -> Finding:
    counts = [history.releases[release].counts[number].tolist() for release, number in places]
    names = history.values
    if not history.permanent:
        counts, names = [[sum(part)] for part in counts], ("any value",)
    rows = {name: list(of_value) for name, *of_value in zip(names, *counts, strict=True) if any(of_value)}
    return Finding(
        attack=attack,
        adversary="neighbor",
        releases=tuple(release + 1 for release in releases),
        required=history.fewest,
        observed=sum(remaining),
        classes=tuple((release + 1, number + 1) for release, number in places),
        people=people,
        witness={
            "rows": rows,
            "remaining": {name: left for name, left in zip(names, remaining, strict=True) if name in rows},
        },
        attribute=history.attribute,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Composed:
    """Trajectories for which several attacks together leave fewer rows (`total`) than the best one does `alone`."""

    number: Counts
    remaining: Counts
    total: Counts
    alone: Counts

    def pick(self, chosen: NDArray[np.bool_]) -> _Composed:
        return _Composed(self.number[chosen], self.remaining[chosen], self.total[chosen], self.alone[chosen])


def _compose(history: History, comparisons: list[Comparison], attack: Way) -> _Composed:
    path = history.known_trajectories.path
    width = len(history.values) if history.permanent else 1
    between, joining = _Meet.of(len(path), width), _Meet.of(len(path), width)
    for comparison in comparisons:
        _meet_pair(comparison, path, between=between, joining=joining)
    if attack == "backward":
        meet, alone, target = joining.rows, joining.alone, joining.alone < _MANY
    else:
        meet, alone = np.minimum(between.rows, joining.rows), np.minimum(between.alone, joining.alone)
        target = between.alone < _MANY
    total = np.where(target[:, None], meet, 0).sum(axis=1)
    worse = np.flatnonzero(target & (total < alone))
    return _Composed(worse, meet[worse], total[worse], alone[worse])


def _tell_composed(
    history: History, comparisons: list[Comparison], attack: Way, composed: _Composed
) -> Iterator[Finding]:
    for row, number in enumerate(composed.number.tolist()):
        path = history.known_trajectories.path[number]
        present = np.flatnonzero(path >= 0).tolist()
        used = {comparison.first for comparison in comparisons if _joins(comparison, path)} | set(present)
        yield _tell(
            history,
            attack,
            tuple(sorted(used)),
            places=[(release, int(path[release])) for release in present],
            remaining=composed.remaining[row].tolist(),
            people=history.people_of([number]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Meet:
    """Per trajectory, the rows per value no attack so far excludes, and the fewest that one attack alone leaves."""

    rows: Counts
    alone: Counts

    @classmethod
    def of(cls, trajectories: int, values: int) -> _Meet:
        return cls(np.full((trajectories, values), _MANY), np.full(trajectories, _MANY))

    def add(self, chosen: Counts, remaining: Counts) -> None:
        self.rows[chosen] = np.minimum(self.rows[chosen], remaining)
        self.alone[chosen] = np.minimum(self.alone[chosen], remaining.sum(axis=1))


def _meet_pair(comparison: Comparison, path: Classes, *, between: _Meet, joining: _Meet) -> None:
    first, second = path[:, comparison.first], path[:, comparison.second]
    if comparison.bounded:
        both = np.flatnonzero((first >= 0) & (second >= 0))
        between.add(both, np.minimum(comparison.before[first[both]], comparison.after[second[both]]))
        return
    width = len(comparison.after)
    known = comparison.pairs[0].astype(np.int64) * width + comparison.pairs[1]
    key = np.where((first >= 0) & (second >= 0), first.astype(np.int64) * width + second, -1)
    chosen = np.flatnonzero(np.isin(key, known))
    between.add(chosen, comparison.remaining[np.searchsorted(known, key[chosen])])
    chosen = np.flatnonzero((first < 0) & np.isin(second, comparison.joined))
    joining.add(chosen, comparison.unforced[np.searchsorted(comparison.joined, second[chosen])])


def _joins(comparison: Comparison, path: Classes) -> bool:
    """Whether people of this path joined between two releases that a B-attack can use."""
    absent, there = path[comparison.first] < 0, path[comparison.second] >= 0
    return bool(absent and there and len(comparison.joined))


def _story(finding: Finding, history: History) -> str:
    left = sum(finding.witness["remaining"].values())
    values = _values_left(finding, left)
    if not finding.people:
        return (
            "If nobody left (or nobody joined) in between, the classes below are somebody's, since rows fit nowhere "
            "else. Rows of the two releases stand for the same people where they can; those that cannot be that "
            f"person's are excluded, and {left:g} remain that may be.{values}"
        )
    return (
        "Rows of the two classes below must stand for the same people where they can. Rows that cannot be the "
        f"target's are excluded, and {left:g} remain for {words.names(finding.people)}.{values}"
    )


def _values_left(finding: Finding, left: int) -> str:
    bound = finding.witness.get("bound")
    if bound is None:
        return ""
    if finding.about_value:
        allowed = f"{bound} allows {words.share(finding.required)}"
        return f" Of these {left:g}, {words.share(finding.observed)} have {finding.value}, and {allowed}."
    return f" Their {bound} is {finding.observed:g}, and {finding.required:g} is required."


def unknown_neighbors(history: History) -> str:
    """Why there was nobody to look at."""
    if history.trajectories is None:
        return "who is in which class is not known, and nobody is certain to be where it would tell something"
    return NOBODY_IN_COMMON


def _nobody_joined(history: History) -> str:
    if history.trajectories is None:
        return unknown_neighbors(history)
    return "between every two releases nobody joined, or somebody left"


@dataclass(frozen=True, eq=False, repr=False)
class PromiseOfRows:
    """One promise about classes, of the values of one attribute that these rows have."""

    answers: Answers
    criterion: Criterion

    def counts(self, rows: Counts) -> Counts:
        """(sets of rows, values of the attribute) given their (sets of rows, kinds of rows)."""
        found = np.zeros((len(self.answers.values), len(rows)), np.int64)
        np.add.at(found, self.answers.of, rows.T)
        return np.ascontiguousarray(found.T)

    def broken(self, rows: Counts) -> NDArray[np.intp]:
        """The sets of rows that do not keep it; nothing is asked of none, or fewer, as printed formulas have it."""
        step = max(1, _CELLS // max(rows.shape[1], 1))
        parts = [
            start + np.flatnonzero((rows[start : start + step].sum(axis=1) > 0) & ~self.criterion.holds(counts))
            for start in range(0, len(rows), step)
            for counts in (self.counts(rows[start : start + step]),)
        ]
        return np.concatenate([np.zeros(0, np.intp), *parts])

    def tell(self, finding: Finding, rows: Counts) -> Finding:
        """The finding of a target with these rows left, as one about what they say."""
        counts = self.counts(rows[None, :])
        blamed = self.criterion.blame(counts[0])
        if blamed is None:
            observed, required = float(self.criterion.observed(counts)[0]), float(self.criterion.required)
            value, bound = None, self.criterion.name
        else:
            observed, required, bound = blamed.observed, blamed.required, blamed.promise
            value = self.answers.values[blamed.value]
        witness = {**finding.witness, "bound": bound}
        attribute = self.answers.attribute
        return replace(finding, required=required, observed=observed, value=value, attribute=attribute, witness=witness)


def asked_of(history: History, asked: Setting | None = None) -> tuple[PromiseOfRows, ...]:
    """What the rows of a history must keep of its values, or, where it is about whole rows, of every view of them."""
    if not history.permanent:
        return ()
    labels = None if asked is None else asked.labels_of(history)
    alpha = None if asked is None else asked.policy.protect.alpha
    own = Answers(
        history.attribute,
        np.arange(len(history.values), dtype=np.int32),
        history.values,
        history.bounds,
        history.criteria,
    )
    views: Sequence[Answers] = (own,) if labels is None else labels.answers
    return tuple(PromiseOfRows(view, criterion) for view in views for criterion in _criteria(view, alpha))


def _criteria(view: Answers, alpha: float | Mapping[str, float] | None) -> Iterator[Criterion]:
    shares = judged_shares(view.bounds, view.values, alpha if view.attribute else None)
    if shares is not None:
        yield shares
    yield from (one for one in view.criteria if one.name in _LIKE_CLASSES)


def _declare(way: Way, title: str) -> Attack:
    return Attack(
        name=way,
        adversary="neighbor",
        title=title,
        find=lambda history, asked: find(history, way, semantics=asked.semantics, kept=asked_of(history, asked)),
        smallest=True,
        required=fewest,
        values="permanent",
        looks_at=whole_rows,
        story=_story,
        nothing=_nobody_joined if way == "backward" else unknown_neighbors,
    )


ATTACKS = (
    _declare("forward", "Rows left to an earlier target (forward)"),
    _declare("cross", "Rows left to an earlier target (cross)"),
    _declare("backward", "Rows left to a newcomer (backward)"),
)
