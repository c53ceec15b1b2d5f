"""Specialization for a series (BCF-anonymity, Fung, Wang, Fu and Pei): the next table by cuts, safe with all before.

Everything starts as `*`, the best specialization first, as for a single table, and `SeriesGuard` judges every step: at
least k rows for everybody who exists in every forward, cross and backward attack against any earlier release and in
their compositions. What breaks a monotone promise is dropped for good. What breaks another is set aside and tried
again after the next step: the criteria on what remains after excluding cracked rows (section 7.2), the multiset
intersection, and the forward anonymity as printed, which counts targets nobody can be. So every state is safe, nothing
has to be undone, and no safe specialization is left at the end (Algorithm 1 of the paper drops them all for good and
stops short).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sequester.domain.hierarchy import Hierarchy
from sequester.domain.kinds import is_halved
from sequester.errors import GuaranteeError, PolicyError, Problem
from sequester.guarantees.closeness import TCloseness
from sequester.guarantees.confidence import Confidence
from sequester.history.boxes import intersecting
from sequester.history.history import History
from sequester.history.past import Past
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.methods.series_guard.pair import Pair
from sequester.methods.series_guard.proposed import ProposedRelease
from sequester.methods.specialize.refine import Loss, Score, refined, specialize, taxonomies_of

Semantics = Literal["realised", "printed"]
Progress = Callable[[str, int, int], None]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


def respecialize(  # noqa: PLR0913 - a task in its parts
    past: Past,
    codes: Ints,
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    loss: Loss = "ncp",
    score: Score = "loss",
    label: Ints | None = None,
    semantics: Semantics = "realised",
    certificate: bool = False,
    progress: Progress | None = None,
) -> Classes:
    """Cuts of the next table, given as codes (attributes, records), that are safe together with everything before.

    loss, score, label   as for `specialize`
    semantics            who counts as a target: people who exist, or also every pair of comparable classes, as printed
    certificate          everybody keeps enough companions (`inferred`) with the same classes in all releases, no value
                         too frequent among them: then not even all releases read together leave fewer rows
    Raises GuaranteeError when the table as one class is not safe, and with it no recoding of these records.
    """
    from sequester.methods.loops.tree import safe_classes

    if not len(past.first):
        return specialize(codes, domains, guard, loss=loss, score=score, label=label)
    edges = edges_before(past.first, domains)
    watch = SeriesGuard.of(past, codes, against=against)
    printed = semantics == "printed" and watch.neighbor and bool(watch.views)
    if printed and edges is None:
        message = "printed needs earlier releases by cuts of the same taxonomies; use realised"
        raise PolicyError(Problem(message, key="method.semantics"))
    judge = _SeriesJudge(past, watch, guard, printed, certificate)
    last = np.array([[domain.size - 1] for domain in domains], np.int32)
    whole = Classes(np.zeros(len(past), np.int32), np.zeros_like(last), last)
    alone = safe_classes(whole.member.astype(np.int64), guard.values, 1, guard.limits).all()
    answer = judge(whole) if alone and len(guard.population) >= guard.known else Answer.NO
    if answer is Answer.NO:
        raise _unsafe("the table as one class is not")
    taxonomies = taxonomies_of(codes, domains, loss=loss, edges=edges, blocked=blocked_by(past, domains))
    made = refined(codes, guard, taxonomies, score=score, label=label, judge=judge, progress=progress)
    if answer is Answer.NOT_NOW and judge(made) is not Answer.YES:
        raise _unsafe("what remains for somebody has too much of a value")
    return made


def _unsafe(why: str) -> GuaranteeError:
    return GuaranteeError(
        f"no cuts of these records are safe together with the earlier releases: {why}. Collect more changes before "
        "publishing, or let people wait with `infeasible: hold-back`. Nothing was published.",
        guarantee="series",
    )


@dataclass(frozen=True, eq=False, repr=False)
class _SeriesJudge:
    """Whether cuts of the next table, which keep the static criteria, are safe together with everything before."""

    past: Past
    watch: SeriesGuard
    guard: ClassGuard
    printed: bool
    certificate: bool

    def __call__(self, classes: Classes) -> Answer:
        if self.certificate and not self._have_companions(classes):
            return Answer.NO
        answers = {self.watch.judge(classes.member, classes.lo, classes.hi)}
        if self.printed and Answer.NO not in answers:
            answers.add(self._as_printed(classes))
        if Answer.NO in answers:
            return Answer.NO
        return Answer.YES if answers == {Answer.YES} and self._keep_criteria(classes) else Answer.NOT_NOW

    def _have_companions(self, classes: Classes) -> bool:
        """Whether people with the same classes in all releases are enough, and have not too much of any value."""
        people = len(self.past.first.people)
        placed, known = np.full(people, -1, np.int64), self.past.first.trajectories
        placed[self.past.person] = classes.member
        before = np.full(people, -1, np.int64) if known is None else known.of.astype(np.int64)
        ever = np.flatnonzero((before >= 0) | (placed >= 0))
        path = np.column_stack([before[ever], placed[ever]])
        together, size = np.unique(path, axis=0, return_inverse=True, return_counts=True)[1:]
        if (size < self.past.first.fewest).any():
            return False
        for view in self.watch.views:
            counts = np.zeros((len(size), view.values), np.int64)
            np.add.at(counts, (together.ravel(), view.value[ever]), 1)
            if view.excess(counts, size).any():
                return False
        return True

    def _as_printed(self, classes: Classes) -> Answer:
        """Whether k rows remain between any two comparable classes (Theorem 4.2) and to a newcomer of any (4.4).

        Comparable cuts of two releases form complete groups: what a later one has more than an earlier one is new.
        """
        rows, here = self.past.with_rows().views(permanent=True), np.zeros(len(self.past.first.people), np.bool_)
        here[self.past.person] = True
        links, size, answer = rows.first.links, len(classes), Answer.YES
        for number, release in enumerate(rows.first.releases):
            mine, theirs = intersecting(classes.lo[links], classes.hi[links], release.lo[links], release.hi[links])
            nodes = size + len(release)
            graph = coo_array((np.ones(len(mine), np.int8), (mine, size + theirs)), shape=(nodes, nodes))
            groups, group = connected_components(graph, directed=False)
            stayed = release.member is not None and here[release.member >= 0].all()
            for history, value in zip(rows.histories, rows.value, strict=True):
                before = history.releases[number].counts
                counts = np.zeros((size, before.shape[1]), np.int64)
                np.add.at(counts, (classes.member, value), 1)
                if (np.minimum(counts[mine], before[theirs]).sum(axis=1) < self.past.first.fewest).any():
                    answer = Answer.NOT_NOW
                new = np.zeros((groups, before.shape[1]), np.int64)
                np.add.at(new, group, np.vstack([counts, -before]))
                left = np.minimum(counts, new[group[:size]]).sum(axis=1)
                if stayed and (left < self.past.first.fewest).any():
                    return Answer.NO
        return answer

    def _keep_criteria(self, classes: Classes) -> bool:
        """Whether the rows left to a neighbor keep alpha and diversity; the guard of the series asks for confidence."""
        past, permanent = self.past, {(one.attribute, one.element) for one in self.past.histories if one.permanent}
        asked = [
            (view, criterion)
            for view in self.guard.views
            if (view.name, view.element) in permanent
            for criterion in view.criteria
            if not isinstance(criterion, Confidence | TCloseness)
        ]
        if not self.watch.neighbor or not asked:
            return True
        lo, hi, block = classes.lo, classes.hi, np.zeros(len(past), np.int32)
        proposed = ProposedRelease.of(past, self.watch.past_classes, classes.member, block, lo=lo, hi=hi)
        for release in range(proposed.releases):
            pair = Pair.of(proposed, release, np.ones(1, np.bool_), only_new=False)
            if pair is None:
                continue
            for rows in self.watch.rows:
                between, alone = pair.left(rows, exact=np.ones(len(pair.size), np.bool_))
                left = between[(pair.first >= 0) & (pair.second >= 0)]
                if alone is not None:
                    left = np.vstack([left, alone[pair.second[(pair.first < 0) & (pair.second >= 0)]]])
                kinds, record = np.unique(rows.value[past.person], return_index=True)
                for view, criterion in asked:
                    counts = np.zeros((view.size, len(left)), np.int64)
                    np.add.at(counts, view.codes[record], left[:, kinds].T)
                    if not (criterion.holds(counts.T) | ~left.any(axis=1)).all():
                        return False
        return True


def edges_before(history: History, domains: Sequence[Hierarchy]) -> tuple[tuple[Longs, ...], ...] | None:
    """Per attribute that links and release, where published values begin and end.

    None unless the releases are cuts: their values, and the groups of the taxonomies, are nested in these attributes.
    """
    edges: list[tuple[Longs, ...]] = []
    for place, domain in enumerate(domains):
        if not history.links[place]:
            edges.append(())
            continue
        sides = [np.column_stack([one.lo[place], one.hi[place]]).astype(np.int64) for one in history.releases]
        values = [np.unique(one, axis=0) for one in sides]
        levels = [] if is_halved(domain) else [domain.bounds(level) for level in range(domain.height + 1)]
        groups = [np.column_stack(level).astype(np.int64) for level in levels]
        if any((one[1:, 0] <= one[:-1, 1]).any() for one in values) or not _nested([*values, *groups]):
            return None
        edges.append(tuple(np.unique(np.append(one[:, 0], one[:, 1] + 1)) for one in values))
    return tuple(edges)


def _nested(intervals: Sequence[Longs]) -> bool:
    """Whether of any two intervals one is inside the other, or they have nothing in common."""
    around: list[int] = []
    lo, hi = np.unique(np.vstack(intervals), axis=0).T
    order = np.lexsort((-hi, lo))
    for first, last in zip(lo[order].tolist(), hi[order].tolist(), strict=True):
        while around and around[-1] < first:
            around.pop()
        if around and around[-1] < last:
            return False
        around.append(last)
    return True


def blocked_by(past: Past, domains: Sequence[Hierarchy]) -> tuple[Mask, ...] | None:
    """Per attribute and code, whether a value may not begin there: it would cut what is known of somebody who left."""
    if not past.retained.any():
        return None
    release, last = past.first.releases[-1], past.last_class()[past.retained]
    found = []
    for domain, lo, hi in zip(domains, release.lo, release.hi, strict=True):
        change = np.zeros(domain.size + 1, np.int64)
        np.add.at(change, lo[last] + 1, 1)
        np.add.at(change, hi[last] + 1, -1)
        found.append(np.cumsum(change)[: domain.size] > 0)
    return tuple(found)
