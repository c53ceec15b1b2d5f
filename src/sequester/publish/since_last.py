"""A release beside the last one: who came and went, what became of its classes, which columns are coarser.

All of it is counted, and about people: decoys are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.metrics.loss import ail, column_losses, ncp, widths
from sequester.publish.saved import plain

if TYPE_CHECKING:
    from sequester.publish.candidate import Candidate

Codes = NDArray[np.int32]
# Of a loss from 0 to 1: less is no difference that anybody would notice.
_NOTICED = 0.0005


@dataclass(frozen=True)
class ClassesSince:
    """What became of the classes of the last release, each counted once, by those of their people who stay.

    as_they_were  the same people and nobody else; these are counted in `kept`, too
    kept          they are together, with nobody of another class
    merged        they are together, with people of other classes
    split         they are in several classes, none of which has people of another
    mixed         they are in several classes, with people of others
    gone          nobody of it stays
    before, now   how many classes there were and are; `new` of these have nobody of the last release
    """

    before: int
    now: int
    as_they_were: int
    kept: int
    merged: int
    split: int
    mixed: int
    gone: int
    new: int


@dataclass(frozen=True)
class ColumnSince:
    """Mean loss of a quasi-identifier, 0 (exact) to 1, in the last release and in this one."""

    TOLD: ClassVar = ("became",)

    name: str
    before: float
    now: float

    @property
    def became(self) -> str:
        """Coarser, finer, or nothing of either."""
        if abs(self.now - self.before) < _NOTICED:
            return ""
        return "coarser" if self.now > self.before else "finer"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, what it became among them."""
        values: dict[str, Any] = plain(self)
        return values


@dataclass(frozen=True)
class SinceLast:
    """A release beside the last one.

    number          of the last one
    came            people who were never published before, and `returned` those who were, but not in the last one
    stayed, left    people of the last one who are in this one, and who are not; `kept` have left the table
    coarser, finer  of those who stayed, people whose box is wider on the whole, or narrower
    decoys          rows about nobody then and now
    ail, ncp        loss then and now, of the people in classes
    """

    number: int
    came: int
    returned: int
    stayed: int
    kept: int
    left: int
    coarser: int
    finer: int
    classes: ClassesSince
    columns: tuple[ColumnSince, ...]
    decoys: tuple[int, int]
    ail: tuple[float, float]
    ncp: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values: dict[str, Any] = plain(self)
        return values


class _Boxes(NamedTuple):
    """Classes with how many people are in each."""

    lo: Codes
    hi: Codes
    size: NDArray[np.int64]


def since_last(candidate: Candidate) -> SinceLast | None:
    """A release that is made beside the last one; None for the first."""
    past = candidate.past
    if not len(past.first):
        return None
    last, domains = past.first.releases[-1], candidate.records.quasi_domains
    people = np.ones(len(past.first.people), np.bool_)
    if candidate.seats is not None:
        people = ~candidate.seats.decoy
    before, now = last.known_member, np.full(len(people), -1, np.int32)
    now[past.person] = candidate.classes.member
    decoys = tuple(int(np.count_nonzero((member >= 0) & ~people)) for member in (before, now))
    before, now = (np.where(people, member, -1) for member in (before, now))
    stayed, ever = (before >= 0) & (now >= 0), past.first.known_trajectories.of >= 0
    then, this = (
        _Boxes(boxes.lo, boxes.hi, np.bincount(member[member >= 0], minlength=boxes.lo.shape[1]))
        for boxes, member in ((last, before), (candidate.classes, now))
    )
    wider = widths(this, domains)[now[stayed]] - widths(then, domains)[before[stayed]]
    lost = (column_losses(boxes, domains).tolist() for boxes in (then, this))
    columns = zip(candidate.records.quasi_names, *lost, strict=True)
    return SinceLast(
        number=len(past.first),
        came=int(np.count_nonzero((now >= 0) & ~ever)),
        returned=int(np.count_nonzero((now >= 0) & ever & (before < 0))),
        stayed=int(np.count_nonzero(stayed)),
        kept=int(np.count_nonzero(past.retained)),
        left=int(np.count_nonzero((before >= 0) & (now < 0))),
        coarser=int(np.count_nonzero(wider > _NOTICED)),
        finer=int(np.count_nonzero(wider < -_NOTICED)),
        classes=compare_classes(before, now, len(then.size), len(this.size)),
        columns=tuple(ColumnSince(name, one, other) for name, one, other in columns),
        decoys=(decoys[0], decoys[1]),
        ail=(ail(then, domains), ail(this, domains)),
        ncp=(ncp(then, domains), ncp(this, domains)),
    )


def compare_classes(before: Codes, now: Codes, then: int, this: int) -> ClassesSince:
    """What became of classes; `before` and `now` are everybody's class, -1 for none, of `then` and `this` many."""
    stayed = (before >= 0) & (now >= 0)
    pair = np.unique(before[stayed].astype(np.int64) * max(this, 1) + now[stayed])
    source, target = pair // max(this, 1), pair % max(this, 1)
    goes, comes = np.bincount(source, minlength=then), np.bincount(target, minlength=this)
    # Of every class, whether one of those its people are in now has people of another, too.
    shared = np.zeros(then, np.bool_)
    shared[source[comes[target] > 1]] = True
    one, several = goes == 1, goes > 1
    were, are = (np.bincount(member[member >= 0], minlength=count) for member, count in ((before, then), (now, this)))
    both = np.bincount(before[stayed], minlength=then)
    whole = (goes[source] == 1) & (comes[target] == 1) & (both[source] == were[source]) & (both[source] == are[target])
    return ClassesSince(
        before=then,
        now=this,
        as_they_were=int(np.count_nonzero(whole)),
        kept=int(np.count_nonzero(one & ~shared)),
        merged=int(np.count_nonzero(one & shared)),
        split=int(np.count_nonzero(several & ~shared)),
        mixed=int(np.count_nonzero(several & shared)),
        gone=int(np.count_nonzero(goes == 0)),
        new=int(np.count_nonzero(comes == 0)),
    )
