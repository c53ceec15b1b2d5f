"""Intersection of whole rows: what is left for a person in all her classes, when rows are matched by all their cells.

Of every label as many rows can still be hers as the class has that has fewest of it; a value's share is that of all
labels that have it, or may have it. The releases that tell most about one label need not tell most about several
together, so all subsets of few releases are tried, and of more every two, every run from the first on, and all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.exposure import Noted, gather, name_counts, say_more
from sequester.attacks.finding import Finding, Result
from sequester.attacks.intersection import paths_of
from sequester.history.history import History
from sequester.history.label import Labels

# Releases up to which every subset is tried.
_FEW = 5
# Cells of the largest (paths x labels) array made at once.
_CELLS = 1 << 22


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
    best: dict[tuple[int, int, int], tuple[Fraction, tuple[int, ...]]] = {}
    shares: list[float] = []
    paths = paths_of(history)
    for group, (path, columns, _) in enumerate(paths):
        step = max(1, _CELLS // max(len(labels), 1))
        for theta in _subsets(len(columns)):
            for start in range(0, len(path), step):
                rows = start + np.flatnonzero((path[start : start + step, list(theta)] >= 0).all(axis=1))
                if not len(rows):
                    continue
                meet = np.minimum.reduce([tables[columns[column]][path[rows, column]] for column in theta])
                left, having = meet.sum(axis=1), meet @ holds
                shares.append(float((having / np.maximum(left, 1)[:, None]).max()))
                bad, asked = np.nonzero(having * bottom > top * left[:, None])
                for place, number in zip(bad.tolist(), asked.tolist(), strict=True):
                    share = Fraction(int(having[place, number]), int(left[place]))
                    key = (group, int(rows[place]), number)
                    if key not in best or share > best[key][0]:
                        best[key] = share, theta
    return _tell(history, labels, best, paths, max(shares, default=None))


def _tell(
    history: History,
    labels: Labels,
    best: dict[tuple[int, int, int], tuple[Fraction, tuple[int, ...]]],
    paths: list[tuple[NDArray[np.int32], list[int], NDArray[np.int64] | None]],
    largest: float | None,
) -> Noted:
    """Each value and set of classes once, with the people they tie to it."""
    used = np.full((len(best), len(history)), -1, np.int32)
    whose = np.zeros(len(best), np.int64)
    for entry, ((group, row, _), (_, theta)) in enumerate(best.items()):
        path, columns, trajectory = paths[group]
        for column in theta:
            used[entry, columns[column]] = path[row, column]
        whose[entry] = -1 if trajectory is None else trajectory[row]
    known = history.trajectories is not None
    value = np.array([question for _, _, question in best], np.int64)
    shares = [share for share, _ in best.values()]
    bounds = tuple(question.bound for question in labels.questions)
    asked = replace(history, values=tuple(question.value for question in labels.questions), bounds=bounds)
    exposures, more = gather(
        asked,
        value,
        classes=used,
        weight=history.trajectories.size[whose] if history.trajectories is not None else np.zeros(len(best), np.int64),
        degree=np.array([float(share / bounds[question]) for share, question in zip(shares, value, strict=True)]),
        trajectory=whose if known else None,
    )
    findings: list[Finding] = []
    for exposure in exposures:
        rows = [history.releases[release].counts[number].tolist() for release, number in exposure.classes]
        share, question = shares[exposure.entry], labels.questions[exposure.value]
        witness = {
            "reading": "multiset",
            "published": [name_counts(history, row) for row in rows],
            "meet": name_counts(history, [min(column) for column in zip(*rows, strict=True)]),
            "share": str(share),
            "people": exposure.weight,
        }
        told = exposure.tell(
            asked, "intersection", "neighbor", required=question.bound, observed=share, witness=witness
        )
        findings.append(replace(told, attribute=question.attribute))
    return Noted(findings, largest, say_more("intersection", history.attribute, more))


def _subsets(releases: int) -> Iterator[tuple[int, ...]]:
    every = range(releases)
    if releases <= _FEW:
        yield from (theta for size in range(2, releases + 1) for theta in combinations(every, size))
        return
    yield from combinations(every, 2)
    yield from (tuple(range(length)) for length in range(3, releases + 1))
