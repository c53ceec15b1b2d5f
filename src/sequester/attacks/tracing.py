"""Record tracing (Byun et al., section 4.5): whose can a published row be, given all releases?

The insider knows who is in which class of every release, and that everybody keeps her label. A row of any release can
be any person's of its class who has her label in some world (`pairs`): people who joined later, left or came back
count like all others, and time has no direction. Rows with one label in one class cannot be told apart, so they have
the same candidates. Fewer of them than are required of what is inferred is a finding.

Where a population tells who is in which class and nobody's label is known, worlds are all ways to hand out the rows.

Byun et al. trace the rows of the earlier release only, by the boxes; and where one of two equal rows is surely in one
class and one in another (Figure 9 (ii)) they count each by itself. Neither is needed here: the rows of the later
release, which are looked at too, are the ones that have so few candidates. What an owner's value is, more surely than
allowed, is for `deniability`. `semantics="paper"` is the heuristic of their Figure 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, fewest
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.solvers.comparison import Comparison, compare
from sequester.attacks.solvers.pairs import (
    Known,
    Pairs,
    possible,
    shown_pairs,
    strike_out,
)
from sequester.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import Index

if TYPE_CHECKING:
    from sequester.attacks.pods import PodProof


Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def find(
    history: History,
    *,
    semantics: Semantics = "exact",
    labels: Labels | None = None,
    at_least: Integers | None = None,
) -> Result:
    """Rows that too few people can own, over all releases together.

    `labels` are what rows show beside their boxes, by default the values of the history; `at_least`, per class and
    label that is shown, in order of release, class and label, is how many can own such a row for certain. The measure
    is the smallest number of people who can own a row; of rows whose own trajectories are large enough it is at least
    these, so that a measure below what is required is exact.
    """
    if semantics == "paper":
        return _find_as_printed(history)
    trajectories = history.trajectories
    shown = Labels.of_history(history) if labels is None else labels
    if trajectories is None or len(history) < 2 or len(trajectories) == 0:
        return Result()
    if (shown.of[trajectories.of >= 0] < 0).any():
        return _find_unseen(history, shown)
    if trajectories.size.min() >= history.fewest:
        return Result([], float(trajectories.size.min()))
    known = Known.of(history, shown)
    certain = known.owners if at_least is None else np.maximum(known.owners, at_least)
    few = certain < history.fewest
    if not few.any():
        return Result([], float(certain.min()))
    of_class = np.zeros(known.classes, np.int64)
    for column in known.path.T:
        inside = column >= 0
        of_class[column[inside]] = known.part[inside]
    touched = np.zeros(int(known.part.max()) + 1, np.bool_)
    touched[of_class[known.key[few] // known.labels]] = True
    return _judge(history, shown, known, touched[known.part], few, otherwise=certain)


def _find_unseen(history: History, labels: Labels) -> Result:
    """The same where nobody's label is known, as Byun et al. have it: everybody's class is, from the raw tables U_i."""
    if len(labels) != len(history.values):
        return Result()
    known = Known.of_counts(history)
    # Classes that do not have the people that the tables say are no classes of anybody.
    inside = np.zeros(known.classes, np.bool_)
    inside[known.path[known.path >= 0]] = True
    judged = inside[known.key // known.labels]
    if not judged.any():
        return Result()
    everybody = np.asarray((known.path >= 0).any(axis=1))
    nobodys = np.full(len(judged), np.iinfo(np.int64).max)
    return _judge(history, labels, known, everybody, judged, otherwise=nobodys, seen=False)


def _judge(
    history: History,
    labels: Labels,
    known: Known,
    trajectories: Mask,
    judged: Mask,
    *,
    otherwise: Integers,
    seen: bool = True,
) -> Result:
    """Who can own rows by all releases together.

    trajectories  whole components, with everybody who can own one of the rows that are `judged`
    otherwise     owners of the other rows
    seen          whether everybody's label is known
    """
    pairs = shown_pairs(known, trajectories)
    left, alone = strike_out(known, pairs, seen=seen)
    reached, asked = possible(known, left, seen=seen)
    open_ = judged & (known.candidates(left, ~asked) > 0)
    left = left.take(reached)
    owners = np.where(judged, known.candidates(left), otherwise)
    if not owners.all():
        # Nobody can own a row: what is known of people is not so.
        return Result()
    two = {pair: known.candidates(pairs, mask) for pair, mask in alone.items()}
    unsolved = int(np.count_nonzero(open_ & (owners >= history.fewest)))
    note = f"tracing: {unsolved:,} rows are in parts too large to be solved, and were judged by every two releases only"
    findings = list(_tell(history, labels, known, left, owners, two))
    return Result(findings, float(owners.min()), (note,) if unsolved else (), unsolved=unsolved)


def _tell(
    history: History,
    labels: Labels,
    known: Known,
    left: Pairs,
    owners: Integers,
    by_two: Mapping[tuple[int, int], Integers],
) -> Iterator[Finding]:
    """A finding for every label and set of people, by the first row with too few owners that shows it.

    left    who can own what
    by_two  the candidates of every row by two releases alone: where they are few enough nothing else counts
    """
    exposed = np.flatnonzero(owners < history.fewest)
    entry, release = np.nonzero(known.path[left.trajectory] >= 0)
    key = known.path[left.trajectory[entry], release] * known.labels + left.label[entry]
    of_row = Index.of(np.searchsorted(known.key, key), len(known.key))
    two = {pair: found[exposed].tolist() for pair, found in by_two.items()}
    told: set[tuple[int, tuple[Any, ...]]] = set()
    # Plain lists: there can be many small findings.
    counts = (known.rows[exposed].tolist(), owners[exposed].tolist())
    rows = zip(exposed.tolist(), *known.places(known.key[exposed]), *counts, strict=True)
    for place, (row, here, own_class, code, count, candidates) in enumerate(rows):
        own = left.trajectory[entry[of_row.members([row])]]
        people = history.people_of(own.tolist())
        if (code, people) in told:
            continue
        told.add((code, people))
        enough = [pair for pair, found in two.items() if found[place] < history.fewest]
        used = min(enough, key=lambda pair: (here not in pair, pair)) if enough else tuple(range(len(history)))
        others = [one for one in used if one != here]
        path = history.known_trajectories.path[own][:, others].tolist()
        places = {(r + 1, c + 1) for classes in path for r, c in zip(others, classes, strict=True) if c >= 0}
        where, value = (here + 1, own_class + 1), labels.name(code)
        yield Finding(
            attack="tracing",
            adversary="insider",
            releases=tuple(r + 1 for r in used),
            required=float(history.fewest),
            observed=float(candidates),
            value=value,
            classes=(where, *sorted(places)),
            people=people,
            witness={"row": (*where, value), "rows": count, "candidates": candidates},
            attribute=history.attribute,
        )


def _by_pods(history: History, pods: PodProof, since: int) -> Result | None:
    if len(history) < 2:
        return None
    if pods.fewest >= history.fewest:
        return Result([], float(pods.fewest))
    company = pods.owners(history)
    least = int(company.min()) if len(company) else pods.fewest
    if least >= history.fewest:
        # Whatever is published later changes nothing about it.
        return Result([], float(least))
    return find(history, labels=pods.labels, at_least=company)


def _story(finding: Finding, history: History) -> str:
    release, number, value = finding.witness["row"]
    return (
        f"Take a row with {value} in class {number} of release {release}. Whoever owns it is in that class, and keeps "
        "what the row shows. Of all ways to hand the published rows to the people who were in each class, over all "
        f"releases together, none gives this row to anybody but {words.people(finding.observed)}: "
        f"{words.names(finding.people)}."
    )


def _find_as_printed(history: History) -> Result:
    """Figure 10 of Byun et al. and the rule for its Figure 9 (ii), for pairs of releases between which nobody left.

    It misses rows that several classes must share among themselves, so it can find more candidates than there are.
    """
    if history.trajectories is None or history.value is None or len(history) < 2:
        return Result()
    findings: list[Finding] = []
    fewest: list[int] = []
    for pair in compare(history):
        if pair.overlap is None or (pair.overlap.second < 0).any():
            continue
        arcs = _Destinations.of(pair)
        kept, definite = arcs.feasible()
        # Each record of a group with definite edges has its own, by an arbitrary choice.
        shared = np.flatnonzero(kept & ~definite)
        shared = shared[np.argsort(arcs.group[shared], kind="stable")]
        groups = np.split(shared, np.flatnonzero(np.diff(arcs.group[shared])) + 1) if len(shared) else []
        for places in (*np.flatnonzero(definite)[:, None], *groups):
            candidates = int(arcs.people[places].sum())
            fewest.append(candidates)
            if candidates < history.fewest:
                findings.append(arcs.tell(pair, places, candidates))
    return Result(findings, float(min(fewest)) if fewest else None)


@dataclass(frozen=True, eq=False, repr=False)
class _Destinations:
    """Where the rows of an earlier release may be in a later one.

    Rows with one value in one class of the earlier release are a row group, which stands for its records; every arc is
    a class with this value that it may go to. Boxes must intersect, or the classes really share a person, should her
    boxes not. Arrays are parallel, one entry per arc, sorted by class, later class and value.

    first, second, value  the earlier class, the later one and the value
    rows                  how many rows really go there
    people                how many people of the earlier class are there, whatever their value
    offered               rows with this value in the later class
    group, place          numbers of the row group, and of the later class with this value
    """

    first: Integers
    second: Integers
    value: Integers
    rows: Integers
    people: Integers
    offered: Integers
    group: Integers
    place: Integers

    @classmethod
    def of(cls, pair: Comparison) -> _Destinations:
        """The arcs between two releases, of which it is known who has which value."""
        known = pair.overlap
        assert known is not None
        assert known.counts is not None
        inside, width, values = known.first >= 0, len(pair.after), pair.after.shape[1]
        one, other = known.first[inside].astype(np.int64), known.second[inside]
        true = one * width + other
        pairs = np.union1d(true, pair.comparable[0].astype(np.int64) * width + pair.comparable[1])
        of_pair = np.full(len(pairs), -1, np.int64)
        of_pair[np.searchsorted(pairs, true)] = np.arange(len(true))
        supply = np.zeros_like(pair.before)
        np.add.at(supply, one, known.counts[inside])
        a, b = pairs // width, pairs % width
        # Nobody's row can be in a class without its value.
        number, value = np.nonzero((supply[a] > 0) & (pair.after[b] > 0))
        truth, a, b = of_pair[number], a[number], b[number]
        return cls(
            first=a,
            second=b,
            value=value,
            rows=np.where(truth >= 0, known.counts[inside][truth, value], 0),
            people=np.where(truth >= 0, known.size[inside][truth], 0),
            offered=pair.after[b, value],
            group=a * values + value,
            place=b * values + value,
        )

    def feasible(self) -> tuple[Mask, Mask]:
        """Edges that remain, and which of them are definite; both per arc.

        An edge becomes definite only together with all edges to equal records.
        """
        kept = np.ones(len(self.group), np.bool_)
        reachable = np.bincount(self.group, self.offered)
        definite = reachable[self.group] == 1
        changed = True
        while changed:
            infeasible = kept & ~definite & np.isin(self.place, self.place[definite])
            kept &= ~infeasible
            left = np.bincount(self.group[kept], self.offered[kept], minlength=len(reachable))
            single = kept & ~definite & (left[self.group] == 1)
            definite |= single
            changed = bool(infeasible.any() and single.any())
        # Figure 9 (ii): a group with as many records as all its compatible classes. After the loop and without another
        # round, as printed.
        supply = np.bincount(self.group, self.rows)
        definite |= kept & (reachable == supply)[self.group]
        return kept, definite

    def tell(self, pair: Comparison, arcs: Integers, candidates: int) -> Finding:
        """A finding about one row group: it can only be where these arcs lead."""
        history, first, second = pair.history, pair.first + 1, pair.second + 1
        group, later = int(self.first[arcs[0]]), self.second[arcs].tolist()
        value = history.values[self.value[arcs[0]]]
        return Finding(
            attack="tracing",
            adversary="insider",
            releases=(first, second),
            required=history.fewest,
            observed=candidates,
            value=value,
            classes=((first, group + 1), *((second, place + 1) for place in later)),
            people=pair.people(*((group, place) for place in later)),
            witness={
                "row": (first, group + 1, value),
                "feasible": [place + 1 for place in later],
                "rows": int(self.rows[arcs].sum()),
                "candidates": candidates,
            },
            attribute=history.attribute,
        )


ATTACK = Attack(
    name="tracing",
    adversary="insider",
    title="People who can own a traced row",
    find=lambda history, asked: find(history, semantics=asked.semantics, labels=asked.labels),
    smallest=True,
    required=fewest,
    values="permanent",
    knows_people=True,
    knows_values=True,
    looks_at=lambda histories, rows: (rows.people,),
    story=_story,
    by_pods=_by_pods,
)
