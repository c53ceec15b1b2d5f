"""The guard of a series: is the next table, in given classes, safe together with everything published before?

Every method asks this before it accepts classes, per block or for the whole table. A block holds whole components of
the history (people linked by any class of any release) and newcomers, and its classes hold nobody else: then nothing
that is published about other blocks says anything about its people, and rows of other blocks could only add
candidates. So blocks are judged side by side, and each alone; the whole table is one block.

Checked against the insider: differences of two releases by size and by value in both directions, single trajectories
that three and more releases determine, and over all releases together and whole rows (labels) that every row has
enough people who may own it and that everybody can deny every value.
Against the neighbor: forward, cross and backward attacks on people who exist, their compositions, and the multiset
intersection over all subsets of releases. The audit, which shares no code with this, judges the result.

All of these but three only get harder when classes are cut further, so a failure is final (NO). Intersections, and the
shares of the rows that are left to a neighbor, may be safe again; and trajectories that several releases determine are
looked for one by one, so that cutting one can hide it from this check (not from an adversary). All are NOT_NOW. Single
classes are not judged: that is the static guard's. Nor are the shares that compositions leave: the audit judges these.

Several blocks side by side are judged without the rows of other blocks that somebody's might be taken for. That makes
the neighbor's counts stricter than the audit's; of a single block all answers are the audit's. Shares of what is left
depend on these rows either way, so they are asked of the whole table only (`skewed`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sequester.history.label import Labels
from sequester.history.past import Past
from sequester.methods.series_guard.pair import Pair
from sequester.methods.series_guard.proposed import (
    PastClasses,
    ProposedRelease,
    ValueBounds,
    WatchedView,
    watched_views,
)

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MANY = np.int64(1 << 40)


class Answer(Enum):
    """NO: a monotone check fails, so every refinement fails too. NOT_NOW: another one does, so retry later."""

    YES = 0
    NO = 1
    NOT_NOW = 2


@dataclass(frozen=True, eq=False, repr=False)
class SeriesGuard:
    """What was published before, prepared to judge many proposals for the next table."""

    past: Past
    views: tuple[WatchedView, ...]
    past_classes: PastClasses
    insider: bool
    neighbor: bool

    @classmethod
    def of(cls, past: Past, codes: Ints, *, against: Collection[str]) -> SeriesGuard:
        """The guard of the next table of a series; `codes` are its records, (attributes, records)."""
        if codes.shape[1] != len(past):
            raise ValueError("a series is watched over the records it was given people for")
        return cls(past, watched_views(past), PastClasses.of(past.first), "insider" in against, "neighbor" in against)

    def __repr__(self) -> str:
        return f"<SeriesGuard over {self.past!r}>"

    @cached_property
    def rows(self) -> tuple[WatchedView, ...]:
        """What a neighbor matches rows by: whole rows where they show more than one view, else the views."""
        whole = self.past.with_rows()
        return self.views if whole is self.past else watched_views(whole)[-1:]

    @cached_property
    def shares(self) -> tuple[tuple[WatchedView, tuple[ValueBounds, ...]], ...]:
        """What is bounded of the rows that are left to a neighbor: per view that rows are matched by, its shares."""
        labels, histories = self.past.labels, self.past.with_rows().histories
        found: list[tuple[WatchedView, tuple[ValueBounds, ...]]] = []
        for view in self.rows:
            if labels is not None and view.index >= len(self.past.histories):
                answers = [(one.of, one.bounds) for one in labels.answers]
            else:
                answers = [(np.arange(view.values, dtype=np.int32), histories[view.index].bounds)]
            found.append(
                (view, tuple(ValueBounds.under(of, bounds) for of, bounds in answers if min(bounds, default=1) < 1))
            )
        return tuple((view, shares) for view, shares in found if shares)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to check: no release before, or nobody to check against."""
        return not (self.insider or self.neighbor) or len(self.past.first) == 0 or not self.views

    def judge(self, member: Ints, lo: Ints, hi: Ints) -> Answer:
        """The whole next table in these classes; -1 is a record that is not published."""
        answer = Answer(int(self._judge(member, lo, hi, np.zeros(len(member), np.int32), whole=True)[0]))
        return Answer.NOT_NOW if answer is Answer.YES and self.skewed(member, lo, hi).any() else answer

    def skewed(self, member: Ints, lo: Ints, hi: Ints) -> Mask:
        """Per record, whether rows that a neighbor excludes leave too much of a value in her classes.

        Of the whole table: what is left in a class depends on the rows of all others.
        """
        found = np.zeros(len(member), np.bool_)
        if self.idle or not self.neighbor or not self.shares:
            return found
        proposed = ProposedRelease.of(
            self.past, self.past_classes, member, np.zeros(len(member), np.int32), lo=lo, hi=hi
        )
        bad = np.zeros(len(self.past.first.people), np.bool_)
        for pair in Pair.all(proposed, np.ones(1, np.bool_), only_new=False):
            for view, shares in self.shares:
                bad[proposed.person[pair.skewed(view, shares)[proposed.row]]] = True
        return np.asarray(bad[self.past.person])

    def judge_blocks(self, member: Ints, lo: Ints, hi: Ints, block: Ints) -> NDArray[np.int8]:
        """Per block the value of its verdict; `block` is per record, -1 for records that are not judged now."""
        return self._judge(member, lo, hi, block, whole=False)

    def _judge(self, member: Ints, lo: Ints, hi: Ints, block: Ints, *, whole: bool) -> NDArray[np.int8]:
        count = int(block.max(initial=-1)) + 1
        verdict = np.full(max(count, 1), Answer.YES.value, np.int8)
        if self.idle or count == 0:
            return verdict
        proposed = ProposedRelease.of(self.past, self.past_classes, member, block, lo=lo, hi=hi)
        open_blocks = np.zeros(count, np.bool_)
        for view in self.views:
            open_blocks[proposed.block[proposed.open(view)]] = True
        if not self.neighbor and not open_blocks.any():
            return verdict
        live = open_blocks.copy()
        for pair in Pair.all(proposed, live) if self.insider else ():
            live &= ~pair.differences(self.views[0].fewest, self.views)
            for view in self.views:
                live &= ~pair.surpluses(view)
        if self.neighbor:
            for pair in Pair.all(proposed, live):
                for view in self.rows:
                    live &= ~pair.few(*pair.left(view, exact=None), view.fewest)
            self._compositions(proposed, live, whole=whole)
        if self.insider:
            self._whole_rows(proposed, live)
        verdict[open_blocks & ~live] = Answer.NO.value
        later = np.zeros(count, np.bool_)
        if self.insider:
            later |= proposed.determined(self.views[0].fewest, live, self.views)
        if self.neighbor:
            for view in dict.fromkeys((*self.views, *self.rows)):
                later |= proposed.shared(view)
        verdict[(verdict == Answer.YES.value) & later] = Answer.NOT_NOW.value
        return verdict

    def _compositions(self, proposed: ProposedRelease, live: Mask, *, whole: bool) -> None:
        """What several pairs of releases leave together for people with one history of fewer than k."""
        if proposed.releases < 2:
            return
        for view in self.rows:
            small = (proposed.size < view.fewest) & (proposed.after >= 0) & live[proposed.block]
            if not small.any():
                continue
            suspects = np.zeros(len(live), np.bool_)
            suspects[proposed.block[small]] = True
            wanted = np.unique(proposed.before[(proposed.before >= 0) & suspects[proposed.block]])
            old_between, old_joining = self._old_meet(view, self.past_classes.component[wanted], whole=whole)
            for exact in (False, True):
                rows = proposed.before
                between = old_between[rows]
                joining = old_joining[rows]
                for pair in Pair.all(proposed, suspects):
                    mask = np.ones(len(pair.size), np.bool_) if exact else None
                    pair.meet(between, joining, *pair.left(view, exact=mask))
                few = _few(between, joining, view.fewest) & small
                suspects = np.zeros(len(live), np.bool_)
                suspects[proposed.block[few]] = True
                if not suspects.any():
                    break
            live &= ~suspects

    @cached_property
    def _met(self) -> dict[tuple[int, bool], tuple[Longs, Longs, Mask]]:
        return {}

    def _old_meet(self, view: WatchedView, components: Ints, *, whole: bool) -> tuple[Longs, Longs]:
        """Per trajectory before, the rows that pairs of earlier releases leave, for both kinds of target.

        They are worked out for these components, each as a block of its own unless the `whole` table is one.
        """
        past_classes = self.past_classes
        block = (
            np.zeros(past_classes.components, np.int32) if whole else np.arange(past_classes.components, dtype=np.int32)
        )
        if (view.index, whole) not in self._met:
            nothing = np.full((2, len(past_classes.path) + 1, view.values), _MANY)
            self._met[view.index, whole] = nothing[0], nothing[1], np.zeros(past_classes.components, np.bool_)
        between, joining, known = self._met[view.index, whole]
        live = np.zeros(past_classes.components, np.bool_)
        live[block[components]] = True
        live &= ~known
        if live.any():
            for second in range(1, past_classes.path.shape[1]):
                proposed = ProposedRelease.past_release(past_classes, second, block[past_classes.component])
                for pair in Pair.all(proposed, live[: proposed.blocks]):
                    exact = np.ones(len(pair.size), np.bool_)
                    pair.meet(between, joining, *pair.left(view, exact=exact))
            known |= live
        return between, joining

    def _whole_rows(self, proposed: ProposedRelease, live: Mask) -> None:
        """Owners of every row and deniability, over all releases: of blocks that do not vouch for themselves."""
        from sequester.methods.series_guard.rows import few_owners, undeniable

        for labels in self._labels:
            live &= ~few_owners(proposed, labels, self.views[0].fewest, live)
            live &= ~undeniable(proposed, labels, live)

    @cached_property
    def _labels(self) -> tuple[Labels, ...]:
        """What a row is known by: all that it shows where that is more than one view, else every view."""
        if self.past.labels is not None:
            return (self.past.labels,)
        return tuple(replace(Labels.of_history(self.past.histories[view.index]), of=view.value) for view in self.views)


def _few(between: Longs, joining: Longs, k: int) -> Mask:
    """Trajectories for whom fewer than k rows remain."""
    both, joined = between[:, 0] < _MANY, joining[:, 0] < _MANY
    forward = np.where(both[:, None], np.minimum(between, joining), _MANY).sum(axis=1) < k
    backward = np.where(joined[:, None], joining, _MANY).sum(axis=1) < k
    return np.asarray(forward | backward)
