"""Record tracing (Byun et al., section 4.5): whose can a published row be, given all releases?

The insider knows who is in which class of every release, and that everybody keeps her label. A row of any release can
be any person's of its class who has its label in some world (`pairs`): people who joined later, left or came back
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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import Attack, fewest
from sequester.attacks.exposure import Noted
from sequester.attacks.finding import Finding, Result, Semantics
from sequester.attacks.solvers import unseen
from sequester.attacks.solvers.index import Index
from sequester.attacks.solvers.pairs import Known, Pairs, possible, shown_pairs, strike_out, too_large
from sequester.history.history import History
from sequester.history.label import Labels
from sequester.history.trajectory import linked

if TYPE_CHECKING:
    from sequester.attacks.pods.proof import PodProof

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
        from sequester.attacks.tracing.paper import find_as_printed

        return find_as_printed(history)
    trajectories = history.trajectories
    shown = Labels.of_history(history) if labels is None else labels
    if trajectories is None or len(history) < 2 or len(trajectories) == 0:
        return Result([], None)
    if (shown.of[trajectories.of >= 0] < 0).any():
        return _find_unseen(history, shown)
    if trajectories.size.min() >= history.fewest:
        return Result([], float(trajectories.size.min()))
    known = Known.of(history, shown)
    certain = known.owners if at_least is None else np.maximum(known.owners, at_least)
    few = certain < history.fewest
    if not few.any():
        return Result([], float(certain.min()))
    part = linked(known.path, known.classes)
    of_class = np.zeros(known.classes, np.int64)
    for column in known.path.T:
        inside = column >= 0
        of_class[column[inside]] = part[inside]
    touched = np.zeros(int(part.max()) + 1, np.bool_)
    touched[of_class[known.key[few] // known.labels]] = True
    pairs = shown_pairs(known, touched[part])
    left, alone = strike_out(known, pairs)
    left = left.take(possible(known, left, part))
    open_ = known.candidates(left, too_large(left, part)) > 0
    owners = np.where(few, known.candidates(left), certain)
    exposed = np.flatnonzero(owners < history.fewest)
    by_two = {two: known.candidates(pairs, mask) for two, mask in alone.items()}
    findings = _Teller(history, shown, known, left).findings(exposed, owners, by_two)
    unsolved = int(np.count_nonzero(few & open_ & (owners >= history.fewest)))
    told = f"tracing: {unsolved:,} rows are in parts too large to be solved, and were judged by every two releases only"
    return Noted(list(findings), float(owners.min()), (told,) if unsolved else (), unsolved=unsolved)


def _find_unseen(history: History, labels: Labels) -> Result:
    """The same where nobody's label is known, as Byun et al. have it: everybody's class is, from the raw tables U_i."""
    if len(labels) != len(history.values):
        return Result([], None)
    known = Known.of_counts(history)
    part = linked(known.path, known.classes)
    pairs = shown_pairs(known, np.asarray((known.path >= 0).any(axis=1)))
    alone = unseen.admitted(known, pairs)
    left = pairs.take(np.logical_and.reduce(list(alone.values())))
    reached, solved = unseen.possible(known, left, part)
    open_ = known.candidates(left, ~solved) > 0
    left = left.take(reached)
    # Classes that do not have the people that the tables say are no classes of anybody.
    inside = np.zeros(known.classes, np.bool_)
    inside[known.path[known.path >= 0]] = True
    judged = inside[known.key // known.labels]
    owners = known.candidates(left)
    if not judged.any() or (owners[judged] == 0).any():
        return Result([], None)
    exposed = np.flatnonzero(judged & (owners < history.fewest))
    by_two = {two: known.candidates(pairs, mask) for two, mask in alone.items()}
    findings = _Teller(history, labels, known, left).findings(exposed, owners, by_two)
    unsolved = int(np.count_nonzero(open_ & judged & (owners >= history.fewest)))
    told = f"tracing: {unsolved:,} rows are in parts too large to be solved, and were judged by every two releases only"
    return Noted(list(findings), float(owners[judged].min()), (told,) if unsolved else (), unsolved=unsolved)


class _Teller:
    """Tells of a row who can own it, and which releases show that. Plain lists: there can be many small findings."""

    def __init__(self, history: History, labels: Labels, known: Known, left: Pairs) -> None:
        pair, release = np.nonzero(known.path[left.trajectory] >= 0)
        key = known.path[left.trajectory[pair], release] * known.labels + left.label[pair]
        self.history, self.labels = history, labels
        self.pairs_of = Index.of(np.searchsorted(known.key, key), len(known.key))
        self.trajectory: list[int] = left.trajectory[pair].tolist()
        self.members = Index.of(history.known_trajectories.of, len(history.known_trajectories))
        self.path: list[list[int]] = history.known_trajectories.path.tolist()
        self.rows: list[int] = known.rows.tolist()
        start = np.cumsum([0, *(len(one) for one in history.releases)])
        of = np.searchsorted(start, known.key // known.labels, side="right") - 1
        self.release: list[int] = of.tolist()
        self.number: list[int] = (known.key // known.labels - start[of]).tolist()
        self.label: list[int] = (known.key % known.labels).tolist()

    def findings(
        self, exposed: Integers, owners: Integers, alone: Mapping[tuple[int, int], Integers]
    ) -> Iterator[Finding]:
        """One for every label and set of people, by the first row that shows it.

        alone  per two releases, the candidates of every row by these two: where they are few enough nothing else counts
        """
        seen: set[tuple[int, tuple[int, ...]]] = set()
        two = {pair: found[exposed].tolist() for pair, found in alone.items()}
        everything = tuple(range(len(self.history)))
        for place, row in enumerate(exposed.tolist()):
            own = [self.trajectory[entry] for entry in self.pairs_of.members([row])]
            people = tuple(sorted(self.members.members(own)))
            if (self.label[row], people) in seen:
                continue
            seen.add((self.label[row], people))
            enough = [pair for pair, found in two.items() if found[place] < self.history.fewest]
            used = min(enough, key=lambda pair: (self.release[row] not in pair, pair)) if enough else everything
            yield self._finding(row, own, people, int(owners[row]), used)

    def _finding(
        self, row: int, own: list[int], people: tuple[int, ...], owners: int, used: tuple[int, ...]
    ) -> Finding:
        release, value = self.release[row], self.labels.name(self.label[row])
        where = (release + 1, self.number[row] + 1)
        places = {(r + 1, self.path[t][r] + 1) for t in own for r in used if r != release and self.path[t][r] >= 0}
        return Finding(
            attack="tracing",
            adversary="insider",
            releases=tuple(r + 1 for r in used),
            required=float(self.history.fewest),
            observed=float(owners),
            value=value,
            classes=(where, *sorted(places)),
            people=tuple([self.history.people[person] for person in people]),
            witness={"row": (*where, value), "rows": self.rows[row], "candidates": owners},
            attribute=self.history.attribute,
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
