"""Labels of empty seats, drawn so that whoever knows how frequent labels are cannot tell which seat somebody has.

Let p(a) be the share of label a. The m labels of a type S are drawn as one set, whose chance P(S) depends on S alone,
so that a is among them with chance m p(a): conditional Poisson sampling (Hajek 1964; Chen, Dempster and Liu 1994).
Beside somebody with label a the others are drawn with P(S) / (m p(a)). Then she has a and the type is S with chance
p(a) P(S) / (m p(a)) = P(S) / m, whichever label of S is hers: 1/m each to a reader who knows p and S. And every label
has its share p of the seats.

No label can be in more than every type: a share above 1/m counts as 1/m, and the others for as much more. Beside
several people the chance is P(S) given all of theirs. Where some pairs of different labels do not fit either, pairs are
drawn with chances u(a) u(b) that add up to p(a), and larger types seat by seat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sequester.errors import GuaranteeError
from sequester.methods.pods.pairing.seats import PodSeats, may_join
from sequester.methods.pods.task import LabelBounds

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CLOSE = 1e-10
"""How far shares of what is drawn may be from those that are wanted."""

_ROUNDS = 2_000
"""Rounds of scaling until that is reached, or as far as it can be."""

_LARGEST = 1e140
"""A factor whose square is a number."""

_HARDLY, _CERTAINLY = 1e-12, 1e12
"""Weights, as multiples of the largest, of labels that nobody has, and of those in every type."""


def draw_labels(filled: PodSeats, bounds: LabelBounds, share: Numbers, barred: Mask | None, draws: Choices) -> None:
    """Decide the labels of new pods' empty seats; `share` is that of every label. Changes `filled`."""
    undecided = (filled.taken == -1) & (filled.label == -1)
    open_ = np.flatnonzero(undecided.any(axis=1))
    alike: dict[tuple[bytes, bytes], list[int]] = {}
    for pod in open_.tolist():
        sits = filled.taken[pod][filled.taken[pod] >= 0]
        able = b"" if barred is None else (~barred[sits].any(axis=0)).tobytes()
        alike.setdefault((np.sort(filled.label[pod]).tobytes(), able), []).append(pod)
    kinds = _Kinds.of(bounds)
    designs: dict[tuple[int, bytes], _Design] = {}
    for (_, able), pods in alike.items():
        seats = int((filled.taken[pods[0]] != -2).sum())
        design = designs.get((seats, able))
        if design is None:
            offered = np.frombuffer(able, np.bool_) if able else np.ones(len(bounds), np.bool_)
            design = designs[seats, able] = _Design.of(kinds, seats, np.where(offered, share, 0.0), offered)
        where = np.array(pods)
        there = np.unique(filled.label[where[0]][filled.label[where[0]] >= 0])
        empty = int(undecided[where[0]].sum())
        found = design.draw(kinds.of_label[there], empty, len(where), draws)
        if found is None:
            _seat_by_seat(filled, where, bounds, design, draws)
        else:
            rows, seats_of = np.nonzero(undecided[where])
            filled.label[where[rows], seats_of] = found.ravel()


class Choices(Protocol):
    """Where labels are drawn from."""

    def choice(self, a: int, /, size: int, *, p: Numbers) -> Any:
        """So many numbers below a, each with these chances."""
        ...


class Spread:
    """Draws each number with its chances, and together as often as they say: to a whole number, never by luck."""

    def __init__(self, draws: np.random.Generator) -> None:
        self._draws = draws

    def choice(self, a: int, /, size: int, *, p: Numbers) -> Integers:
        """So many numbers below a, at equal distances along their chances, in random order."""
        at = (self._draws.permutation(size) + self._draws.random()) / size
        found = np.searchsorted(np.cumsum(p), at, side="right")
        return np.asarray(np.minimum(found, np.flatnonzero(p)[-1]), np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _Kinds:
    """Labels with the same bounded answers, which fit the same others.

    of_label  the kind of every label
    fits      (kinds, kinds) who may share a pod
    bounded   which have a bounded answer
    once      the fewest seats of a pod with one of a kind; `twice`: with two
    """

    of_label: Integers
    fits: Mask
    bounded: Mask
    once: Integers
    twice: Integers

    @classmethod
    def of(cls, bounds: LabelBounds) -> _Kinds:
        if not len(bounds.answers):
            nothing = np.zeros(len(bounds), np.int64)
            return cls(nothing, np.ones((1, 1), np.bool_), np.zeros(1, np.bool_), nothing[:1], nothing[:1])
        _, first, inverse = np.unique(bounds.answers, axis=1, return_index=True, return_inverse=True)
        fits = ~bounds.clashing(first[:, None], first[None, :])
        bounded = np.asarray((bounds.answers[:, first] >= 0).any(axis=0))
        return cls(inverse.ravel().astype(np.int64), fits, bounded, bounds.needs(1)[first], bounds.needs(2)[first])


@dataclass(frozen=True, eq=False, repr=False)
class _Design:
    """How the labels of types of so many seats are drawn.

    weight   per kind; the chance of a type is the product of those of its kinds
    share    per label, what it counts for among labels of its kind
    members  per kind, its labels
    links    of two seats, where some different kinds do not fit: (kinds, kinds) chances of pairs
    plain    whether types are any different kinds
    """

    weight: Numbers
    share: Numbers
    members: list[Integers]
    links: Numbers | None
    plain: bool

    @classmethod
    def of(cls, kinds: _Kinds, seats: int, share: Numbers, offered: Mask) -> _Design:
        count = len(kinds.fits)
        there = (np.bincount(kinds.of_label[offered], minlength=count) > 0) & (kinds.once <= seats)
        wanted = np.bincount(kinds.of_label, weights=share, minlength=count).astype(np.float64)
        # Whoever has a value that is not bounded has no decoy: beside one, such a value would tell.
        bounded = there & kinds.bounded
        if np.count_nonzero(bounded) >= seats and wanted[bounded].max() * seats <= wanted[bounded].sum():
            there = bounded
        wanted = np.where(there, wanted, 0.0)
        among = np.flatnonzero(there)
        apart = kinds.fits[np.ix_(among, among)] | np.eye(len(among), dtype=np.bool_)
        plain = bool(apart.all() and (kinds.twice[among] > seats).all())
        weight, links = wanted, None
        if plain and len(among) >= seats:
            weight = np.zeros(count)
            weight[among] = weights(_limited(wanted[among], seats), seats)
        elif seats == 2:
            links = _pairs(np.where(there, np.maximum(wanted, _HARDLY), 0.0), kinds.fits & there[:, None] & there)
        members = [np.flatnonzero((kinds.of_label == kind) & offered) for kind in range(count)]
        return cls(weight, share, members, links, plain)

    def draw(self, there: Integers, empty: int, times: int, draws: Choices) -> Integers | None:
        """(times, empty) labels beside these kinds; None where they cannot be drawn together."""
        if self.plain:
            weight = self.weight.copy()
            weight[there] = 0.0
            if np.count_nonzero(weight) < empty:
                return None
            kinds = _sets(weight, empty, times, draws)
        elif self.links is not None and len(there) == 1 and self.links[there[0]].any():
            chance = self.links[there[0]] / self.links[there[0]].sum()
            kinds = np.asarray(draws.choice(len(chance), size=times, p=chance))[:, None]
        else:
            return None
        found = np.empty(kinds.shape, np.int64)
        for kind in np.unique(kinds).tolist():
            here = kinds == kind
            found[here] = self._label(self.members[kind], int(here.sum()), draws)
        return found

    def _label(self, offered: Integers, times: int, draws: Choices) -> Integers:
        """Some of these labels by their shares."""
        share = np.maximum(self.share[offered], _HARDLY)
        return np.asarray(offered[draws.choice(len(offered), size=times, p=share / share.sum())], np.int64)


def _limited(share: Numbers, seats: int) -> Numbers:
    """Shares that add up to one and are at most 1/seats: what is above goes to the others, as they are."""
    # Labels that nobody in the table has (those of leavers) are as likely as each other.
    share = share if share.any() else np.ones_like(share)
    found, most = share / share.sum(), 1 / seats
    full = np.zeros(len(share), np.bool_)
    while (above := (found > most) & ~full).any():
        full |= above
        rest = share[~full].sum()
        left = 1 - full.sum() * most
        even = left / max(np.count_nonzero(~full), 1)
        found = np.where(full, most, share * (left / rest) if rest else even)
    return np.asarray(found)


def weights(share: Numbers, seats: int) -> Numbers:
    """Weights of which every type is the product, so that a label is in a type with `seats` times its share.

    Shares are at most 1/seats. Labels without a share are in types only where there are no others.
    """
    chance = seats * share
    certain = chance >= 1 - _CLOSE
    chance = np.where(certain, 0.0, chance)
    left = seats - int(certain.sum())
    found = chance.copy()
    for _ in range(_ROUNDS if left else 0):
        # e_{left-1} of all weights but one's own, by what they are of all.
        found /= found.sum()
        whole, without = _elementary(found, left), np.ones(len(found))
        for size in range(1, left):
            without = whole[size] - found * without
        reached = found * without / whole[left]
        if np.abs(reached - chance).max() <= _CLOSE:
            break
        found = np.where(chance > 0, chance / np.maximum(without, _HARDLY * whole[left]), 0.0)
    largest = found.max() or 1.0
    return np.where(certain, _CERTAINLY * largest, np.maximum(found, _HARDLY * largest))


def _elementary(weight: Numbers, most: int) -> Numbers:
    """The elementary symmetric polynomials up to that degree."""
    found = np.zeros(most + 1)
    found[0] = 1.0
    for one in weight.tolist():
        found[1:] += one * found[:-1]
    return found


def _sets(weight: Numbers, size: int, times: int, draws: Choices) -> Integers:
    """(times, size) different numbers in order; the chance of a set is the product of its weights."""
    offered = np.flatnonzero(weight)
    scaled = weight[offered] / weight.max()
    # What the sets of so many of the numbers from a place on weigh together.
    after = np.zeros((len(offered) + 1, size + 1))
    after[:, 0] = 1.0
    for place in range(len(offered) - 1, -1, -1):
        after[place, 1:] = after[place + 1, 1:] + scaled[place] * after[place + 1, :-1]
    found = np.full((times, size), -1, np.int64)
    for number in range(size):
        last = found[:, number - 1] if number else np.full(times, -1)
        for one in np.unique(last).tolist():
            here = np.flatnonzero(last == one)
            chance = scaled[one + 1 :] * after[one + 2 :, size - number - 1]
            found[here, number] = one + 1 + draws.choice(len(chance), size=len(here), p=chance / chance.sum())
    return offered[found]


def _pairs(share: Numbers, fits: Mask) -> Numbers:
    """Symmetric chances where labels fit, which add up to shares as far as they can."""
    scale = np.sqrt(share)
    for _ in range(_ROUNDS):
        rows = scale * (fits @ scale)
        there = rows > 0
        if np.abs(rows - share)[there].max(initial=0.0) <= _CLOSE:
            break
        scale = np.where(there, scale * np.sqrt(share / np.where(there, rows, 1.0)), 0.0).clip(max=_LARGEST)
    return np.where(fits, np.outer(scale, scale), 0.0)


def _seat_by_seat(filled: PodSeats, pods: Integers, bounds: LabelBounds, design: _Design, draws: Choices) -> None:
    """The same for pods whose labels fit in more complicated ways, each seat by what fits there."""
    every = np.concatenate([np.zeros(0, np.int64), *design.members])
    for pod in pods.tolist():
        for seat in np.flatnonzero((filled.taken[pod] == -1) & (filled.label[pod] == -1)).tolist():
            one = PodSeats(filled.taken[pod : pod + 1], filled.label[pod : pod + 1])
            fits = np.zeros(len(design.share), np.bool_)
            fits[every] = may_join(one, np.zeros(len(every), np.int64), every, bounds)
            if not fits.any():
                raise GuaranteeError(
                    "there are fewer different values than a pod must have; promise less, or call frequent values "
                    "ordinary. Nothing was published.",
                    guarantee="series",
                )
            filled.label[pod, seat] = design._label(np.flatnonzero(fits), 1, draws)[0]
