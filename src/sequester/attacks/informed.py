"""What a reader believes who learns from the releases how values go with quasi-identifiers (Kifer 2009, deFinetti).

That is knowledge about people like her: no release of any use prevents it, and whoever is not in the table is believed
to have the same. So two beliefs are told. One is learnt from the rows of classes that she is not in. The other is
learnt from all rows and then scaled to the rows of her classes, as `belief` is: the most even belief relative to what
was learnt. What her being in the table adds is their difference.

Learnt is a multinomial logistic regression with a ridge, by Newton's method, release by release, on where rows lie:
every quasi-identifier is cut into a few stretches that hold about as many rows each, and a box counts with its share in
each. Her own place is her exact values where a population tells them; else what all her boxes have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.solvers.belief import NOISE, BeliefSpread, Floats, Mask, believe
from sequester.domain.hierarchy import Codes
from sequester.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import Trajectories
from sequester.policy.words import percent

STRETCHES = 8
"""Stretches of a quasi-identifier, at most."""
VALUES = 15
"""Values that are told apart, the most frequent; the others go together, by their shares."""
FOLDS = 10
"""Each release is learnt so many times without a part of its classes, hers among them."""
CLASSES = 2_000
"""Classes of a release that are learnt from, about: of more, every second, or third, and so on."""
RIDGE = 1.0


WHAT_THE_BOUND_IS = (
    "A bound on confidence is about what rows say of a person, beyond what is known of people like her. Whoever learns "
    "from a table that a group mostly has some value believes it of everybody in the group, also of those who are not "
    "in the table. What can be asked is how much a person's own rows add to that."
)


@dataclass(frozen=True)
class Informed:
    """The largest belief in a bounded value, of a reader who has learnt from the releases.

    read    with the rows of her classes; `others` without them
    right   share of those believed above .5, with the rows of their classes, who have the value; None where there is
            nobody, or values are not known
    added   the mean of what reading her classes adds to the belief in the value she is then believed to have, and
            `most_added` the largest
    """

    read: BeliefSpread
    others: BeliefSpread
    right: float | None
    added: float
    most_added: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "read": self.read.to_dict(),
            "others": self.others.to_dict(),
            "right": None if self.right is None else round(self.right, 6),
            "added": round(self.added, 4),
            "most_added": round(self.most_added, 4),
        }


def in_words(attribute: str, informed: Informed) -> str:
    """What a reader who has learnt believes, and what of it comes from her own rows."""
    read, others = (percent(round(one.above[0], 3)) for one in (informed.read, informed.others))
    right = "" if informed.right is None else f", and is right about {percent(round(informed.right, 3))} of them"
    return (
        f"{attribute}: a reader who has learnt from the releases how it goes with quasi-identifiers believes a bounded "
        f"value by more than half about {read} of the people{right}; from others' rows alone, about {others}. Being in "
        f"the table adds {informed.added:+.2f} in the mean, {informed.most_added:+.2f} at most."
    )


def inform(history: History, among: Mask, points: Sequence[Codes] = ()) -> Informed:
    """What is believed of these people; `points` are everybody's exact values in each release, -1 where not known.

    Needs to know who is in which class, values that stay, and one that has a bound.
    """
    groups = _groups(history, points)
    learnt, others = _learnt(history, groups, points)
    belief = believe(replace(history, trajectories=groups), prior=learnt)
    told = np.flatnonzero(belief.told & among & (belief.question >= 0))
    questions = Labels.of_history(history).questions
    # Of a single attribute a question is about one value.
    value = np.array([question.labels[0] for question in questions], np.int64)
    apart = others[groups.of[told]][:, value]
    added = belief.largest[told] - apart[np.arange(len(told)), belief.question[told]]
    truth = right = None
    if belief.truth is not None and history.value is not None:
        has = value[None, :] == history.value[told][:, None]
        truth = np.where(has.any(axis=1), apart[np.arange(len(told)), has.argmax(axis=1)], 0.0)
        sure = belief.largest[told] > 0.5 + NOISE
        right = float((belief.truth[told] >= belief.largest[told] - NOISE)[sure].mean()) if sure.any() else None
    return Informed(
        read=BeliefSpread.of(belief.largest[told], None if belief.truth is None else belief.truth[told]),
        others=BeliefSpread.of(apart.max(axis=1, initial=0.0), truth),
        right=right,
        added=float(added.mean()) if len(added) else 0.0,
        most_added=float(added.max(initial=0.0)),
    )


def _groups(history: History, points: Sequence[Codes]) -> Trajectories:
    """People of one trajectory, and with the same exact values where these are known."""
    found = history.known_trajectories
    if not points:
        return found
    key = np.vstack([found.of[None, :], *points])[:, found.of >= 0]
    _, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    of = np.full(len(found.of), -1, np.int32)
    of[found.of >= 0] = group
    return Trajectories(found.path[key[0, first]], np.bincount(group).astype(np.int64), of)


def _learnt(history: History, groups: Trajectories, points: Sequence[Codes]) -> tuple[Floats, Floats]:
    """(groups, values) shares of people like them, by all rows and by those of others: the mean over her releases."""
    cuts = [_cuts(history, axis) for axis in range(len(history.domains))]
    total = np.sum([release.counts.sum(axis=0) for release in history.releases], axis=0)
    apart = np.argsort(-total, kind="stable")[:VALUES]
    learnt, others = np.zeros((2, len(groups), len(total)))
    for number, (lo, hi) in enumerate(_places(history, groups, points)):
        release, here = history.releases[number], np.flatnonzero(groups.path[:, number] >= 0)
        if not len(here):
            continue
        features, counts = _features(release.lo, release.hi, cuts), _told_apart(release.counts, apart)
        own = _features(lo[:, here], hi[:, here], cuts)
        ridge = np.full(features.shape[1], RIDGE)
        # The overall shares are not drawn to being equal.
        ridge[0] = 1e-6
        every, place = -(-len(release) // CLASSES), np.arange(len(release))
        used, fold = place % every == 0, place // every % FOLDS
        weights = learn(features[used], counts[used], ridge=ridge)
        learnt[here] += _spread_out(shares(own, weights), apart, total)
        for one in range(min(FOLDS, len(release))):
            left, hers = used & (fold != one), fold[groups.path[here, number]] == one
            fitted = learn(features[left], counts[left], ridge=ridge, start=weights) if left.any() else 0 * weights
            others[here[hers]] += _spread_out(shares(own[hers], fitted), apart, total)
    times = np.maximum((groups.path >= 0).sum(axis=1), 1)[:, None]
    return learnt / times, others / times


def _places(history: History, groups: Trajectories, points: Sequence[Codes]) -> Iterator[tuple[Codes, Codes]]:
    """Per release, the box in which people of each group lie, (quasi-identifiers, groups)."""
    boxes = []
    for number, release in enumerate(history.releases):
        where = groups.path[:, number]
        lo, hi = np.zeros((2, len(release.lo), len(groups)), np.int32)
        lo[:, where >= 0], hi[:, where >= 0] = release.lo[:, where[where >= 0]], release.hi[:, where[where >= 0]]
        boxes.append((lo, hi, where >= 0))
    least = np.max([np.where(there, lo, -1) for lo, _, there in boxes], axis=0)
    most = np.min([np.where(there, hi, np.iinfo(np.int32).max) for _, hi, there in boxes], axis=0)
    stays = history.links[:, None] & (least <= most)
    first = np.zeros(len(groups), np.int64)
    first[groups.of[groups.of >= 0][::-1]] = np.flatnonzero(groups.of >= 0)[::-1]
    for number, (lo, hi, _) in enumerate(boxes):
        lo, hi = np.where(stays, least, lo), np.where(stays, most, hi)
        if points:
            own = points[number][:, first]
            lo, hi = np.where(own >= 0, own, lo), np.where(own >= 0, own, hi)
        yield lo, hi


def _cuts(history: History, axis: int) -> NDArray[np.int64]:
    """Where the stretches of a quasi-identifier begin, and where the last one ends, in leaves."""
    leaves = max((int(release.hi[axis].max(initial=0)) for release in history.releases), default=0) + 1
    rows = np.zeros(leaves + 1)
    for release in history.releases:
        lo, hi = release.lo[axis], release.hi[axis]
        each = release.size / (hi - lo + 1)
        np.add.at(rows, lo, each)
        np.add.at(rows, hi + 1, -each)
    share = np.cumsum(rows)[:-1]
    before = np.cumsum(share) - share / 2
    stretch = np.arange(leaves) if leaves <= STRETCHES else np.floor(STRETCHES * before / share.sum())
    return np.append(np.flatnonzero(np.diff(stretch, prepend=-1)), leaves)


def _features(lo: Codes, hi: Codes, cuts: Sequence[NDArray[np.int64]]) -> Floats:
    """(boxes, features): 1, then the share of every box in each stretch."""
    columns = [np.ones((lo.shape[1], 1))]
    for axis, cut in enumerate(cuts):
        first, last = lo[axis][:, None], hi[axis][:, None] + 1
        inside = np.minimum(last, cut[None, 1:]) - np.maximum(first, cut[None, :-1])
        columns.append(np.maximum(inside, 0) / (last - first))
    return np.hstack(columns)


def _told_apart(counts: NDArray[np.int64], apart: NDArray[np.int64]) -> Floats:
    rest = counts.sum(axis=1) - counts[:, apart].sum(axis=1)
    return np.column_stack([counts[:, apart], rest]).astype(np.float64)


def _spread_out(share: Floats, apart: NDArray[np.int64], total: NDArray[np.int64]) -> Floats:
    """Shares of all values, the rest by how frequent each is."""
    rest = total.astype(np.float64)
    rest[apart] = 0.0
    every = share[:, -1:] * (rest / max(rest.sum(), 1.0))
    every[:, apart] += share[:, :-1]
    return np.asarray(every)


_STEPS = 50
_CLOSE = 1e-7


def shares(features: Floats, weights: Floats) -> Floats:
    """(rows, values) the share of every value, by features (rows, features) and weights (features, values)."""
    score = features @ weights
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))


def learn(features: Floats, counts: Floats, *, ridge: Floats, start: Floats | None = None) -> Floats:
    """The weights under which the counts (rows, values) are likeliest, less half the ridge times their squares.

    ridge  per feature, above 0; start  weights to begin with
    """
    wide, values = features.shape[1], counts.shape[1]
    weights = np.zeros((wide, values)) if start is None else start.copy()
    size = counts.sum(axis=1)
    loss = _loss(features, counts, ridge, weights)
    for _ in range(_STEPS):
        share = shares(features, weights)
        slope = features.T @ (size[:, None] * share - counts) + ridge[:, None] * weights
        step = np.linalg.solve(_bend(features, size, share, ridge), slope.ravel()).reshape(wide, values)
        gain = float((slope * step).sum())
        if gain < _CLOSE:
            break
        length = 1.0
        while (tried := _loss(features, counts, ridge, weights - length * step)) > loss - 0.25 * length * gain:
            length /= 2
            if length < _CLOSE:
                return weights
        weights, loss = weights - length * step, tried
    return weights


def _loss(features: Floats, counts: Floats, ridge: Floats, weights: Floats) -> float:
    score = features @ weights
    most = score.max(axis=1, keepdims=True)
    total = most[:, 0] + np.log(np.exp(score - most).sum(axis=1))
    return float(counts.sum(axis=1) @ total - (counts * score).sum() + 0.5 * (ridge[:, None] * weights**2).sum())


def _bend(features: Floats, size: Floats, share: Floats, ridge: Floats) -> Floats:
    """The second derivatives, (features x values) square."""
    wide, values = features.shape[1], share.shape[1]
    bend = np.empty((wide, values, wide, values))
    for one in range(values):
        for other in range(one, values):
            each = size * share[:, one] * ((one == other) - share[:, other])
            bend[:, one, :, other] = bend[:, other, :, one] = features.T @ (each[:, None] * features)
    return bend.reshape(wide * values, wide * values) + np.diag(np.repeat(ridge, values))
