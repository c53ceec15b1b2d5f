"""Complementary releases (Sweeney, sections 4.2 and 4.3): join two releases of the same data on what they share.

A row of one release has one row of the other, with the same value and a box that meets its own, and then lies in the
meet of both boxes. Where other classes cannot hold all rows of a kind, the rest are certain to be in the one left.
That needs releases of the same data (every row has its row in the other) or of growing data (every row of the earlier
one does); when people both came and left, joins prove nothing and the pair is passed over. Rows are matched by all of
their cells that stay, insensitive ones included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.arrays import row_groups
from sequester.attacks.attack import Attack, attributes_and_rows, fewest
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.solvers.comparison import Comparison, compare
from sequester.deferred import csr_array
from sequester.domain import notation
from sequester.history import History

Integers = NDArray[np.int64]

# Cells of the largest (pairs x values) table made at once.
_CELLS = 1 << 21


@dataclass(frozen=True, eq=False, repr=False)
class JoinedClasses:
    """Pairs of classes that may share rows, one per entry: at most `most` rows, of which `sure` are certain."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    most: Integers
    sure: Integers


def find(history: History, *, semantics: Semantics = "exact") -> Result:
    """Joined groups that certainly have a row, and fewer than required; smaller than the classes they come from.

    The measure is the smallest number of rows that a group which certainly exists can have. With everybody's class
    known and no pair of classes that could share fewer rows, it is the smallest number that a pair can share.
    `exact` bounds a group by the rows that any joining could put there. `paper` joins as a database does and counts
    only the groups of rows that match one group on the other side: rows that match several are passed over.
    """
    findings: list[Finding] = []
    measures: list[int] = []
    for pair in sorted(compare(history), key=lambda one: (one.first, one.second)):
        forward, backward = _directions(pair)
        if not (forward or backward):
            continue
        if semantics == "exact" and (fewest := _fewest_shared(pair)) >= history.fewest:
            measures.append(fewest)
            continue
        joins = _join(pair, ways=(forward, backward), semantics=semantics)
        found, measure = _judge(pair, joins)
        findings += found
        measures += measure
    return Result(findings, float(min(measures)) if measures else None)


def _directions(pair: Comparison) -> tuple[bool, bool]:
    """Whether every row of the first has one in the second, and the other way round.

    Known from the people where they are known; else taken for granted where it can be: no value becomes rarer, and
    there is a way to give every row one of its own.
    """
    if pair.overlap is not None:
        return not (pair.overlap.second < 0).any(), not (pair.overlap.first < 0).any()
    one, other = pair.before.sum(axis=0), pair.after.sum(axis=0)
    return (
        bool((one <= other).all()) and pair.buddies is not None,
        bool((other <= one).all()) and pair.reverse is not None,
    )


def _fewest_shared(pair: Comparison) -> int:
    """The fewest rows that two classes with a person in common may share; 0 when nobody is known."""
    overlap = pair.overlap
    if overlap is None:
        return 0
    both = (overlap.first >= 0) & (overlap.second >= 0)
    if not both.any():
        return 0
    one, other = overlap.first[both], overlap.second[both]
    return int(_bounds(pair.before, pair.after, one, other)[0].min())


def _join(pair: Comparison, *, ways: tuple[bool, bool], semantics: Semantics) -> JoinedClasses:
    one, other = pair.comparable
    near, far = pair.before, pair.after
    meets = csr_array((np.ones(len(one), np.int64), (one, other)), shape=(len(near), len(far)))
    if semantics == "paper":
        matches = meets @ (far > 0).astype(np.int64)
        return _plain_join(near, far, matches, one, other)
    most, _ = _bounds(near, far, one, other)
    sure = np.zeros(len(one), np.int64)
    if ways[0]:
        sure = np.maximum(sure, _bounds(near, far, one, other, room=meets @ far)[1])
    if ways[1]:
        sure = np.maximum(sure, _bounds(far, near, other, one, room=meets.T @ near)[1])
    return JoinedClasses(one, other, most, sure)


def _bounds(
    near: Integers, far: Integers, one: NDArray[np.int32], other: NDArray[np.int32], *, room: Integers | None = None
) -> tuple[Integers, Integers]:
    """At most and at least how many rows each pair of classes shares.

    `room` is how many rows of each kind all classes of the other side that a class meets can hold; what does not fit
    into the others must be in this one.
    """
    most, sure = np.zeros((2, len(one)), np.int64)
    step = max(1, _CELLS // near.shape[1])
    for start in range(0, len(one), step):
        part = slice(start, start + step)
        rows, places = near[one[part]], far[other[part]]
        most[part] = np.minimum(rows, places).sum(axis=1)
        if room is not None:
            sure[part] = np.maximum(rows - (room[one[part]] - places), 0).sum(axis=1)
    return most, sure


def _plain_join(
    near: Integers, far: Integers, matches: Integers, one: NDArray[np.int32], other: NDArray[np.int32]
) -> JoinedClasses:
    alone = np.where(matches == 1, near, 0)
    rows = np.zeros(len(one), np.int64)
    step = max(1, _CELLS // near.shape[1])
    for start in range(0, len(one), step):
        part = slice(start, start + step)
        rows[part] = np.where(far[other[part]] > 0, alone[one[part]], 0).sum(axis=1)
    return JoinedClasses(one, other, rows, rows)


def _judge(pair: Comparison, joins: JoinedClasses) -> tuple[list[Finding], list[int]]:
    """Groups with too few rows, and the smallest that certainly exists. Pairs with the same joined box are one."""
    if not joins.sure.any():
        return [], []
    history, first, second = pair.history, pair.first, pair.second
    one, other = history.releases[first], history.releases[second]
    lo = np.maximum(one.lo[history.links][:, joins.first], other.lo[history.links][:, joins.second])
    hi = np.minimum(one.hi[history.links][:, joins.first], other.hi[history.links][:, joins.second])
    group, where = row_groups(np.concatenate([lo, hi]))
    most = np.bincount(group, weights=joins.most).astype(np.int64)
    sure = np.bincount(group, weights=joins.sure).astype(np.int64)
    tightest = np.full(len(most), np.iinfo(np.int64).max)
    np.minimum.at(tightest, group, np.minimum(one.size[joins.first], other.size[joins.second]))
    order = np.argsort(group, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(group)))
    findings = []
    exposed = np.flatnonzero((sure > 0) & (most < history.fewest) & (most < tightest))
    written = _written(history, lo[:, where[exposed]], hi[:, where[exposed]])
    for number, joined in zip(exposed.tolist(), written, strict=True):
        pairs = order[ends[number] : ends[number + 1]]
        pairs = pairs[joins.most[pairs] > 0]
        here, there = joins.first[pairs], joins.second[pairs]
        shared = np.minimum(one.counts[here], other.counts[there]).sum(axis=0)
        findings.append(
            Finding(
                attack="complementary",
                adversary="any",
                releases=(first + 1, second + 1),
                required=float(history.fewest),
                observed=float(most[number]),
                classes=tuple((at, c + 1) for at, c in _sorted_classes(here, there, (first + 1, second + 1))),
                people=pair.people(*zip(here.tolist(), there.tolist(), strict=True)),
                witness={
                    "joined": joined,
                    "rows": int(most[number]),
                    "certain": int(sure[number]),
                    "values": {history.values[code]: int(shared[code]) for code in np.flatnonzero(shared)},
                },
            )
        )
    return findings, [int(most[sure > 0].min())]


def _sorted_classes(
    here: NDArray[np.int32], there: NDArray[np.int32], numbers: tuple[int, int]
) -> list[tuple[int, int]]:
    sides = zip(numbers, (here, there), strict=True)
    return [(number, where) for number, classes in sides for where in np.unique(classes).tolist()]


def _written(history: History, lo: NDArray[np.int32], hi: NDArray[np.int32]) -> list[dict[str, str]]:
    """Boxes in the attributes that link, as they would be published."""
    axes = np.flatnonzero(history.links).tolist()
    texts = [notation.write(history.domains[axis], lo[place], hi[place]) for place, axis in enumerate(axes)]
    names = [history.quasi_names[axis] for axis in axes]
    return [{name: column[box] for name, column in zip(names, texts, strict=True)} for box in range(lo.shape[1])]


def _story(finding: Finding, history: History) -> str:
    box = ", ".join(f"{name}={cell}" for name, cell in finding.witness["joined"].items())
    most, certain = finding.witness["rows"], finding.witness["certain"]
    shown = " or ".join(finding.witness["values"])
    many = "1 row is" if most == 1 else f"{certain} to {most} rows are" if certain < most else f"{most} rows are"
    return (
        f"Rows of the two releases that show the same are of one person, who is in both boxes. So {many} in [{box}], "
        f"with {shown}: the classes below are larger, and {finding.required:g} are required."
    )


ATTACK = Attack(
    name="complementary",
    adversary="any",
    title="People linked by other releases",
    find=lambda history, asked: find(history, semantics=asked.semantics),
    smallest=True,
    required=fewest,
    classes_only=True,
    looks_at=attributes_and_rows,
    story=_story,
    nothing=lambda history: "no row is certain to have its own row in another release",
)
