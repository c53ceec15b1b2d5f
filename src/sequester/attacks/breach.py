"""Breach probability (Wong et al., section 4): the chance that a person ever had a value, when values change freely.

The adversary knows everybody's class in every release, and nothing links one release to another. All ways to hand the
published values of a class to its members are equally likely, so a person is linked to s in at least one release with
probability 1 - product of (1 - n_s / n) over her classes (their Lemma 4). It has to stay at or below 1 / l.

Where some values of the attribute stay with a person, n leaves out the rows with one of them: given who has them, the
other rows of a class belong to any of its other people alike, so the bound holds even for somebody who knows who they
are. What the releases tell about who they are does not depend on the other rows.

With a registration list the adversary knows who may be in a release but not who is. The n rows of a class then belong
to any n of the N registered people inside its box, present or not, and N takes the place of n; releases a person is
absent from count too. (Wong et al. add such people to the groups in their experiments; their Definition 1 has none.)
That holds for boxes which share no registered person with another box of the release. Where they do, N says too little
about the class: its own n is used, and of several boxes around one person the worst, which never understates. Findings
that rest on such a box say so.

More people in a class, or fewer, can both break what held before: neither merging nor splitting is monotone (their
Corollary 3 holds only for members with one common history).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, Setting
from sequester.attacks.finding import Exposure, Finding, Result, Semantics, gather, keep_worst, say_more
from sequester.history import History
from sequester.history.boxes import intersecting
from sequester.policy.words import listed
from sequester.rational import exact

# Farther than this from the limit a float decides; nearer, integers do. Products of a few hundred factors are off by
# less than a millionth of it.
_DOUBT = 1e-9


def find(
    history: History,
    *,
    semantics: Semantics = "exact",
    l: float,  # noqa: E741
    registered: NDArray[np.int32] | None = None,
) -> Result:
    """Every value that somebody was ever linked to with probability above 1 / l; ordinary values are left out.

    `registered` has the codes of the registration list, (quasi-identifiers, people); attributes that change over time
    are not used to find people in it. The measure is the largest probability, with a registration list at most that
    where boxes overlap. The paper's reading is the exact one.
    """
    if l < 1:
        raise ValueError("l must be at least 1: the largest probability allowed is 1 / l")
    if not len(history) or (registered is None and history.trajectories is None):
        return Result()
    crowd = _members(history) if registered is None else _registered(history, registered)
    if not len(crowd.weight):
        return Result()
    limit = 1 / exact(l)
    findings: list[Finding] = []
    more = 0
    worst = Fraction(0)
    for value, bound in enumerate(history.bounds):
        if bound >= 1:
            continue
        path = crowd.path(history, value)
        linked, among = crowd.factors(history, value, path=path)
        chance = 1 - np.prod(1 - linked / among, axis=1)
        largest = int(np.argmax(chance))
        worst = max(worst, _probability(linked[largest].tolist(), among[largest].tolist()))
        bad = np.flatnonzero(_above(chance, linked, among, limit=limit))
        exposures, others = gather(
            history,
            np.full(len(bad), value),
            classes=np.where(linked[bad] > 0, path[bad], -1).astype(np.int32),
            weight=crowd.weight[bad],
            degree=chance[bad],
            trajectory=bad if crowd.known else None,
        )
        more += others
        for exposure in exposures:
            row = bad[exposure.entry]
            factors = (linked[row].tolist(), among[row].tolist())
            findings.append(_finding(history, exposure, factors=factors, limit=limit, crowd=crowd))
    findings, others = keep_worst(findings)
    notes = (*_notes(crowd, findings), *say_more("breach", history.attribute, more + others))
    return Result(findings, float(worst), notes)


@dataclass(frozen=True, eq=False)
class _Targeted:
    """Whoever the adversary asks about, people with the same classes as one row.

    weight  people per row
    fits    per release, pairs of (row, class): the classes a row may be in, at most one where that is known
    sizes   per release, how many people share the rows of each class
    known   whether the rows are the trajectories of the history
    shared  per release and class, whether somebody registered also fits another class: sizes are then too small
    absent  people who are in some release and surely not in the registration list
    """

    weight: NDArray[np.int64]
    fits: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
    sizes: tuple[NDArray[np.int64], ...]
    known: bool
    shared: tuple[NDArray[np.bool_], ...]
    absent: int = 0

    def path(self, history: History, value: int) -> NDArray[np.int64]:
        """(rows, releases) the class of each row, -1 for none; of several the one with most of the value."""
        path = np.full((len(self.weight), len(history)), -1, np.int64)
        for column, (row, number) in enumerate(self.fits):
            share = history.releases[column].counts[number, value] / self.sizes[column][number]
            # With repeated indices the last assignment stays, so the largest share must come last.
            order = np.argsort(share, kind="stable")
            path[row[order], column] = number[order]
        return path

    def factors(
        self, history: History, value: int, *, path: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows, releases) rows with the value, and people who share them: 0 of 1 where a row has no class."""
        linked, among = np.zeros_like(path), np.ones_like(path)
        for column, release in enumerate(history.releases):
            here = np.flatnonzero(path[:, column] >= 0)
            number = path[here, column]
            linked[here, column] = release.counts[number, value]
            among[here, column] = self.sizes[column][number]
        return linked, among


def _members(history: History) -> _Targeted:
    fits = []
    for column in range(len(history)):
        number = history.known_trajectories.path[:, column].astype(np.int64)
        here = np.flatnonzero(number >= 0)
        fits.append((here, number[here]))
    sizes = tuple(np.maximum(history.sharing(number), 1) for number in range(len(history)))
    apart = tuple(np.zeros(len(release), np.bool_) for release in history.releases)
    return _Targeted(history.known_trajectories.size, tuple(fits), sizes, known=True, shared=apart)


def _registered(history: History, registered: NDArray[np.int32]) -> _Targeted:
    links = history.links
    points, weight = np.unique(registered[links], axis=1, return_counts=True)
    if not links.any():
        points, weight = np.zeros((0, 1), np.int32), np.array([registered.shape[1]])
    fits, sizes, overlapping, absent = [], [], [], 0
    for column, release in enumerate(history.releases):
        row, number = (
            side.astype(np.int64) for side in intersecting(points, points, release.lo[links], release.hi[links])
        )
        inside = np.bincount(number, weights=weight[row], minlength=len(release)).astype(np.int64)
        torn = np.bincount(row, minlength=len(weight)) > 1
        shared = np.zeros(len(release), np.bool_)
        shared[number[torn[row]]] = True
        # A list that lacks people who are in the release cannot make a class smaller than it is.
        people = np.where(shared, release.size, np.maximum(inside, release.size))
        sizes.append(np.maximum(people - (release.size - history.sharing(column)), 1))
        fits.append((row, number))
        overlapping.append(shared)
        # Every row is somebody else's, so what a box lacks adds up.
        absent = max(absent, int(np.maximum(release.size - inside, 0).sum()))
    return _Targeted(
        weight.astype(np.int64), tuple(fits), tuple(sizes), known=False, shared=tuple(overlapping), absent=absent
    )


def _notes(crowd: _Targeted, findings: Sequence[Finding]) -> list[str]:
    """How far the numbers can be trusted when they come from a registration list."""
    if crowd.known:
        return []
    notes = ["breach: given a registration list, the adversary knows who may be in a release, not who is"]
    if crowd.absent:
        lacks = f"at least {crowd.absent:,} {'person' if crowd.absent == 1 else 'people'} of a release"
        notes.append(f"the registration list lacks {lacks}, about whom breach says nothing")
    if upper := sum("overlapping" in finding.witness for finding in findings):
        numbers = "1 finding has an upper bound" if upper == 1 else f"{upper:,} findings have upper bounds"
        notes.append(f"breach: {numbers} of the chance, because boxes of one release overlap")
    return notes


def _probability(linked: Sequence[int], among: Sequence[int]) -> Fraction:
    whole = math.prod(among)
    return Fraction(whole - math.prod(n - n_s for n_s, n in zip(linked, among, strict=True)), whole)


def _above(
    chance: NDArray[np.float64], linked: NDArray[np.int64], among: NDArray[np.int64], *, limit: Fraction
) -> NDArray[np.bool_]:
    """Whether each probability exceeds the limit: integers decide where floats could not."""
    above: NDArray[np.bool_] = chance > float(limit)
    near = np.flatnonzero(np.abs(chance - float(limit)) < _DOUBT)
    if len(near):
        cases, which = np.unique(np.hstack([linked[near], among[near]]), axis=0, return_inverse=True)
        width = linked.shape[1]
        exceeds = np.array([_probability(case[:width], case[width:]) > limit for case in cases.tolist()])
        above[near] = exceeds[which.reshape(-1)]
    return above


def _finding(
    history: History, exposure: Exposure, *, factors: tuple[list[int], list[int]], limit: Fraction, crowd: _Targeted
) -> Finding:
    linked, among = factors
    chance = _probability(linked, among)
    told = [
        {"release": release + 1, "class": number + 1, "with_value": linked[release], "among": among[release]}
        for release, number in exposure.classes
    ]
    witness = {"factors": told, "probability": str(chance), "people": exposure.weight}
    if any(crowd.shared[release][number] for release, number in exposure.classes):
        witness["overlapping"] = True
    return exposure.tell(history, "breach", "lifetime", required=limit, observed=chance, witness=witness)


def _find(history: History, asked: Setting) -> Result:
    lifetime = asked.policy.protect.lifetime
    # Of a value that stays the releases do not add up: it is the same one each time.
    if lifetime is None or history.permanent:
        return Result()
    return find(history, l=lifetime.l, registered=asked.registered)


def _story(finding: Finding, history: History) -> str:
    parts = [
        f"{one['with_value']} of {one['among']} in class {one['class']} of release {one['release']}"
        for one in finding.witness["factors"]
    ]
    most = "at most " if finding.witness.get("overlapping") else ""
    return (
        f"In every release the chance of {finding.value} is the rows with it among the people who may have them: "
        f"{listed(parts)}. Over all releases together the chance that it was {words.names(finding.people)}'s at "
        f"least once is {most}{words.share(finding.observed)}."
    )


ATTACK = Attack(
    name="breach",
    adversary="lifetime",
    title="Chance of ever being linked to a value",
    find=_find,
    smallest=False,
    required=lambda policy, bound: None if policy.protect.lifetime is None else 1 / policy.protect.lifetime.l,
    values="transient",
    releases=1,
    knows_people=True,
    story=_story,
    unpromised=lambda policy: "the policy has no `protect.lifetime`" if policy.protect.lifetime is None else None,
)
