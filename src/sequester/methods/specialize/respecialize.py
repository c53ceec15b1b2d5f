"""Specialization for a series (BCF-anonymity, Fung, Wang, Fu and Pei): the next table by cuts, safe with all before.

Everything starts as `*`, the best specialization first, as for a single table. A specialization is looked at only in
the classes it splits. What breaks a monotone promise is dropped for good: the static criteria, at least k rows for
everybody who exists in every forward, cross and backward attack against any earlier release and in their
compositions, the certificate, and what `SeriesGuard` denies. What breaks another is set aside and tried again once the
class that stood in its way has been split: the criteria on what remains after excluding cracked rows (section 7.2),
the multiset intersection, and the forward anonymity as printed, which counts targets nobody can be. So every state is
safe, nothing has to be undone, and no safe specialization is left at the end (Algorithm 1 of the paper drops them all
for good and stops short).

Rows that remain are counted by the closed forms where all earlier releases are cuts. Otherwise these are upper bounds
that only reject, and `SeriesGuard` has the last word; it also judges for the insider, unless companions already
show that nothing can be learned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sequester.domain.hierarchy import Hierarchy
from sequester.errors import GuaranteeError, PolicyError, Problem
from sequester.history.boxes import intersecting
from sequester.history.past import Past
from sequester.methods.cells import classify
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.series_guard.guard import Answer, SeriesGuard
from sequester.methods.specialize.bcf import TaxonomyCuts, before_of, blocked_by, limits_of
from sequester.methods.specialize.bcf_atoms import atoms_of, joiners_of, left_alone
from sequester.methods.specialize.bcf_kernels import Atoms, Before, Branches, Demand, Joiners, Room, Split
from sequester.methods.specialize.bcf_row_kernels import MANY, NO, NOT_NOW, YES
from sequester.methods.specialize.refine import CutCells, Loss, Offer, Offers, Rating, Score, specialize, taxonomies_of
from sequester.methods.specialize.refine_kernels import Step

Semantics = Literal["realised", "printed"]
Progress = Callable[[str, int, int], None]
Longs = NDArray[np.int64]


def respecialize(  # noqa: PLR0913 - a task in its parts
    past: Past,
    codes: NDArray[np.int32],
    domains: tuple[Hierarchy, ...],
    guard: ClassGuard,
    *,
    against: Collection[str],
    loss: Loss = "ncp",
    score: Score = "loss",
    label: NDArray[np.int32] | None = None,
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
    if not len(past.first):
        return specialize(codes, domains, guard, loss=loss, score=score, label=label)
    search = Refinement.of(
        past, codes, domains, guard, against=against, loss=loss, score=score, label=label, semantics=semantics,
        certificate=certificate,
    )  # fmt: skip
    for number, _ in enumerate(search.run()):
        if progress is not None:
            progress("specializing", number, number + 1 + len(search.offers))
    return search.classes()


class RowsLeft(NamedTuple):
    """The fewest rows left for a target: who was there before (forward and cross), and who is new (backward).

    All attacks on one target together: for somebody of an earlier release, also the backward attacks since she joined.
    """

    forward: int | None
    backward: int | None


class _Later(NamedTuple):
    """A specialization that is set aside: the class in its way, -1 for any, and when that was seen."""

    offer: Offer
    witness: int
    round: int


@dataclass(eq=False, repr=False)
class Refinement:
    """The next table while it is specialized; every state that `run` stops at is safe.

    rounds    specializations carried out so far
    stamp     per class, the round that made it what it is
    left      (classes, 2) fewest rows left; exact where `demand.exact`
    small     per class, whether somebody has fewer than k companions; `open`, also with too much of a value
    alone     whether somebody who is not in the table has companions that do not suffice, whatever its classes
    """

    past: Past
    domains: tuple[Hierarchy, ...]
    record_atom: NDArray[np.int32]
    atoms: Atoms
    grid: CutCells
    guard: ClassGuard
    before: Before
    cuts: TaxonomyCuts
    demand: Demand
    joins: Joiners
    groups: Longs
    room: Room
    offers: Offers
    printed: bool
    insider: SeriesGuard | None
    neighbor: SeriesGuard | None
    stamp: Longs
    left: Longs
    small: NDArray[np.bool_]
    open: NDArray[np.bool_]
    alone: bool
    number: int = 1
    rounds: int = 0
    later: list[_Later] = field(default_factory=list)

    @classmethod
    def of(  # noqa: PLR0913 - a task in its parts
        cls,
        past: Past,
        codes: NDArray[np.int32],
        domains: tuple[Hierarchy, ...],
        guard: ClassGuard,
        *,
        against: Collection[str],
        loss: Loss = "ncp",
        score: Score = "loss",
        label: NDArray[np.int32] | None = None,
        semantics: Semantics = "realised",
        certificate: bool = False,
        exact: bool = False,
    ) -> Refinement:
        """The table as one class. `exact`: count the rows that remain for everybody, not only where they may be few."""
        if "neighbor" in against:
            past = past.with_rows()
        views = [place for place, history in enumerate(past.histories) if history.permanent]
        insider, neighbor = "insider" in against and bool(views), "neighbor" in against and bool(views)
        cuts = TaxonomyCuts.of(past.first, domains)
        printed = neighbor and semantics == "printed"
        if printed and not cuts.nested:
            message = "printed needs earlier releases by cuts of the same taxonomies; use realised"
            raise PolicyError(Problem(message, key="method.semantics"))
        before = before_of(past, cuts, views, remembered=insider or neighbor or certificate)
        limits, bound = limits_of(past, guard, views)
        demand = Demand(
            k=past.first.fewest,
            own=guard.limits,
            needed=guard.known,
            neighbor=neighbor,
            printed=printed,
            remaining=neighbor and bool(bound.any()),
            certificate=certificate,
            companions=certificate or insider,
            exact=exact,
            limits=limits,
            bound=bound,
        )
        atoms, atom_codes, record_atom = atoms_of(past, codes, domains, guard, before, views)
        grid = CutCells.of(atom_codes, atoms.size, domains)
        taxonomies = taxonomies_of(
            codes, domains, loss=loss, edges=cuts.edges if cuts.nested else None, blocked=blocked_by(past, domains)
        )
        count, releases = len(atoms.size), before.path.shape[1]
        joins, groups = joiners_of(atoms, before, everybody=printed)
        room = Room(
            local=np.full(count + 1, -1, np.int32),
            child=np.zeros(count, np.int32),
            size=np.zeros(len(before.path), np.int64),
            head=np.full(len(before.path), -1, np.int64),
            after=np.full(count, -1, np.int64),
            counts=np.zeros(before.table.shape[1], np.int64),
            left=np.zeros(before.table.shape[1], np.int64),
            fresh=np.zeros((releases, before.table.shape[1]), np.int64),
        )
        return cls(
            past=past,
            domains=domains,
            record_atom=record_atom,
            atoms=atoms,
            grid=grid,
            guard=guard,
            before=before,
            cuts=cuts,
            demand=demand,
            joins=joins,
            groups=groups,
            room=room,
            offers=Offers(Rating.of(score, taxonomies, grid, codes=codes, label=label)),
            printed=printed,
            insider=SeriesGuard.of(past, codes, against=["insider"]) if insider and not certificate else None,
            neighbor=SeriesGuard.of(past, codes, against=["neighbor"]) if neighbor else None,
            stamp=np.zeros(count + 1, np.int64),
            left=np.full((count + 1, 2), MANY),
            small=np.zeros(count + 1, np.bool_),
            open=np.zeros(count + 1, np.bool_),
            alone=demand.companions and left_alone(past, views),
        )

    def run(self) -> Iterator[RowsLeft]:
        """Carry out one specialization after the other, and say what each leaves."""
        is_safe = self._begin()
        yield self.measure
        for attribute, domain in enumerate(self.domains):
            self.offers.offer(attribute, 0, domain.size - 1)
        while (offer := self.offers.pop()) is not None:
            split, branches = self._weigh(offer)
            verdict, witness = int(split.verdict), int(split.witness)
            if verdict == YES and self.printed:
                verdict, witness = self._as_printed(offer, split)
            if verdict == YES:
                verdict = self._watched(offer, split)
            if verdict == NOT_NOW:
                self.later.append(_Later(offer, witness, self.rounds))
            if verdict != YES:
                continue
            self._carry_out(offer, split, branches)
            is_safe = True
            yield self.measure
        if not is_safe:
            raise _unsafe("what remains for somebody has too much of a value")

    @property
    def measure(self) -> RowsLeft:
        """The fewest rows left for anybody in any attack that uses the new release."""
        forward, backward = self.left[: self.number].min(axis=0).tolist()
        return RowsLeft(forward if forward < MANY else None, backward if backward < MANY else None)

    def classes(self) -> Classes:
        """The classes now."""
        if self.guard.known:
            return self._classes(self.grid.lo, self.grid.hi)
        member = self.grid.member
        first = np.zeros(self.number, np.int64)
        first[member] = np.arange(len(member))
        sides = [
            np.array([side[row[first]] for side, row in zip(ends, self.grid.codes, strict=True)], np.int32)
            for ends in (self.grid.lo, self.grid.hi)
        ]
        return Classes(member[self.record_atom], sides[0], sides[1])

    def _classes(self, lo: Sequence[NDArray[np.int32]], hi: Sequence[NDArray[np.int32]]) -> Classes:
        used = np.flatnonzero(self.atoms.size > 0)
        codes = self.grid.codes[:, used]
        sides = np.array([low[row] for low, row in zip(lo, codes, strict=True)], np.int32)
        member, count = classify(sides, [domain.size for domain in self.domains])
        first = np.zeros(count, np.int64)
        first[member] = np.arange(len(used))
        of_atom = np.full(len(self.atoms.size), -1, np.int32)
        of_atom[used] = member
        ends = np.array([high[row[first]] for high, row in zip(hi, codes, strict=True)], np.int32)
        return Classes(of_atom[self.record_atom], sides[:, first], ends.reshape(len(lo), count))

    def _begin(self) -> bool:
        """Judge the table as one class; whether the checks that are not monotone hold, too."""
        everything = np.arange(len(self.atoms.size))
        step = Step(everything, np.zeros(len(everything), np.int32), 1)
        split = self._ask(step, self._no_branches(1))
        verdict = int(split.verdict)
        if verdict == YES and self.printed:
            verdict, _ = self._as_printed(Offer(0, 0, self.domains[0].size - 1, np.array([0])), split)
        self.small[0], self.open[0] = split.small[0], split.open[0]
        self.left[0] = split.left[0]
        if self.alone and self.demand.certificate:
            verdict = NO
        if verdict != NO:
            judged = self._ask_watch(
                self.grid.lo, self.grid.hi, uncertain=bool(self.small[0]), open_=bool(self.open[0])
            )
            verdict = max(verdict, judged) if judged != NO else NO
        if verdict == NO:
            raise _unsafe("the table as one class is not")
        return verdict == YES

    def _no_branches(self, children: int) -> Branches:
        releases = self.before.path.shape[1]
        return Branches(np.zeros(releases, np.bool_), np.zeros((releases, children), np.int32))

    def _weigh(self, offer: Offer) -> tuple[Split, Branches]:
        branches = self._no_branches(len(offer.starts))
        if self.past.first.links[offer.attribute]:
            for release in np.flatnonzero(self.before.joins).tolist():
                branch = self.cuts.branches(release, offer.attribute, offer.first, offer.starts, offer.last)
                if branch is not None:
                    branches.splits[release], branches.of[release] = True, branch
        step = Step(self.grid.touched(offer), self.grid.children(offer), len(offer.starts))
        return self._ask(step, branches), branches

    def _ask(self, step: Step, branches: Branches) -> Split:
        from sequester.methods.specialize.bcf_kernels import weigh_split

        member, joiners = self.grid.member, self.joins
        return Split(*weigh_split(step, branches, member, self.atoms, self.before, self.demand, joiners, self.room))

    def _as_printed(self, offer: Offer, split: Split) -> tuple[int, int]:
        """Forward anonymity over all comparable classes (Theorem 4.2) of the parts; who is in the way if it fails."""
        part = np.flatnonzero(np.diff(split.begin))
        atom = split.ordered[split.begin[part]]
        lo = np.array([low[row[atom]] for low, row in zip(self.grid.lo, self.grid.codes, strict=True)], np.int32)
        hi = np.array([high[row[atom]] for high, row in zip(self.grid.hi, self.grid.codes, strict=True)], np.int32)
        child = part % len(offer.starts)
        ends = np.append(offer.starts[1:] - 1, offer.last)
        lo[offer.attribute], hi[offer.attribute] = offer.starts[child], ends[child]
        counts = self._part_counts(split, part)
        history = self.past.first
        for release, start in zip(history.releases, self.before.start[:-1].tolist(), strict=True):
            links = history.links
            mine, theirs = intersecting(lo[links], hi[links], release.lo[links], release.hi[links])
            for a, b in zip(self.before.first[:-1].tolist(), self.before.first[1:].tolist(), strict=True):
                rows = np.minimum(counts[mine, a:b], self.before.table[start + theirs, a:b]).sum(axis=1)
                few = np.flatnonzero(rows < self.demand.k)
                if len(few):
                    return NOT_NOW, int(self.grid.member[atom[mine[few[0]]]])
        return YES, -1

    def _part_counts(self, split: Split, part: Longs) -> Longs:
        """(parts, values)"""
        atoms, width = self.atoms, self.before.table.shape[1]
        inside = np.repeat(np.arange(len(split.begin) - 1), np.diff(split.begin))
        of_atom = np.full(len(atoms.size), -1, np.int64)
        of_atom[split.ordered] = inside
        of_pair = np.repeat(of_atom, np.diff(atoms.seen_start))
        there = of_pair >= 0
        counts = np.zeros((len(split.begin) - 1, width), np.int64)
        np.add.at(counts, (of_pair[there], atoms.seen_value[there]), atoms.seen_count[there])
        return counts[part]

    def _watched(self, offer: Offer, split: Split) -> int:
        """What `SeriesGuard` says where counting is not enough."""
        if self.insider is None and self.neighbor is None:
            return YES
        kept = np.ones(self.number, np.bool_)
        kept[self.grid.member[split.ordered]] = False
        uncertain = bool(self.small[: self.number][kept].any() or split.small.any())
        open_ = bool(self.open[: self.number][kept].any() or split.open.any())
        lo, hi = list(self.grid.lo), list(self.grid.hi)
        lo[offer.attribute], hi[offer.attribute] = lo[offer.attribute].copy(), hi[offer.attribute].copy()
        for start, end in offer.parts():
            lo[offer.attribute][start : end + 1], hi[offer.attribute][start : end + 1] = start, end
        return self._ask_watch(lo, hi, uncertain=uncertain, open_=open_)

    def _ask_watch(
        self, lo: Sequence[NDArray[np.int32]], hi: Sequence[NDArray[np.int32]], *, uncertain: bool, open_: bool
    ) -> int:
        rows = None if self.cuts.nested or not uncertain else self.neighbor
        watches = [rows, self.insider if open_ or self.alone else None]
        asked = [watch for watch in watches if watch is not None]
        if not asked and self.neighbor is None:
            return YES
        classes = self._classes(lo, hi)
        answers = {watch.judge(classes.member, classes.lo, classes.hi) for watch in asked}
        if Answer.NO in answers:
            return NO
        if answers <= {Answer.YES} and rows is None and self.neighbor is not None:
            skewed = self.neighbor.skewed(classes.member, classes.lo, classes.hi)
            return NOT_NOW if skewed.any() else YES
        return NOT_NOW if Answer.NOT_NOW in answers else YES

    def _carry_out(self, offer: Offer, split: Split, branches: Branches) -> None:
        from sequester.methods.specialize.bcf_kernels import carry_out

        parted = split.ordered, split.begin
        part_class, self.number = carry_out(
            parted, len(offer.starts), self.grid.member, self.number, self.joins, self.groups, branches, self.room.child
        )
        self.grid.refine(offer)
        self.rounds += 1
        part = np.flatnonzero(part_class >= 0)
        made = part_class[part]
        self.stamp[made] = self.rounds
        self.left[made], self.small[made], self.open[made] = split.left[part], split.small[part], split.open[part]
        for start, end in offer.parts():
            self.offers.offer(offer.attribute, start, end)
        waiting = self.later
        self.later = []
        for one in waiting:
            if one.witness < 0 or self.stamp[one.witness] > one.round:
                self.offers.put(one.offer)
            else:
                self.later.append(one)


def _unsafe(why: str) -> GuaranteeError:
    return GuaranteeError(
        f"no cuts of these records are safe together with the earlier releases: {why}. Collect more changes before "
        "publishing, or let people wait with `infeasible: hold-back`. Nothing was published.",
        guarantee="series",
    )
