"""Can everyone still deny every value? The linear program over trajectories, for any number of releases at once.

Whatever an insider believes, the expected number of people of a trajectory with each label adds up to the size of the
trajectory and, over a class, to what was published. If no such numbers keep every value at or below its bound in every
trajectory, then under every belief somebody is tied to a value with more than the allowed confidence. That covers every
subset of the releases, the differences of Byun et al. (section 4.1), their generalization to sets that are not nested,
more than two releases combined (which pairs miss), and values that were never published before. Coarsening a release
only removes findings. Not covered: worlds must have whole people, so a program that has a solution is no proof that
each person can deny, and a uniform belief may still exceed the bound.

It is asked attribute by attribute, where labels are values, and of whole rows. Whoever matches whole rows knows more:
with values a a b b b b a a beside z1 z2 z3 z4 z7 z8 z5 z6, published as {1234}{5678} and then {1256}{3478}, either
column alone leaves everybody one half, and both together leave one world.

The solver only proposes multipliers of published counts; where they prove the breach in whole numbers the witness says
so, and a part without such a proof is told as the solver found it, if it is clear of its noise. Proofs from one value
alone are tried first, since they read as a difference: add these classes, subtract those.

With bounds that differ by value the program asks for the smallest multiple of all bounds that admits a solution; a
finding's `observed` is that multiple of its value's bound, and the measure that multiple of the largest bound (at
most 1), so that either exceeds its bound exactly when there is a breach.

Where the true totals are known, how many people of every release have each label, more follows. Somebody who knows them
from elsewhere (a hospital's yearly report) knows what the decoys of every release show together: what is published,
less the totals. That is no promise of pods, which share values out between people and decoys alike, and can undo it.
The program is that of whole rows, told besides what people and decoys of each release have, as if every release had
been published once more with two classes: people, and decoys. Which rows are decoys is taken to be known, which is more
than anybody can know, so a series that passes is safe from weaker ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sequester.attacks import words
from sequester.attacks.attack import (
    NOBODY_IN_COMMON,
    ONE_RELEASE,
    TOO_MANY_ROWS,
    Attack,
    Setting,
    largest_share,
    unbounded,
)
from sequester.attacks.finding import Finding, LazyWitness, Result, Semantics
from sequester.attacks.solvers.inquiry import Inquiry, LabelProgram
from sequester.attacks.solvers.pairs import LARGEST, Known
from sequester.attacks.solvers.program import Integers, Mask, Program, Refutation, least_excess, refute, stretch
from sequester.history import History
from sequester.history.history import Publication
from sequester.history.label import WHOLE_ROW, Labels, Question
from sequester.policy.words import listed

if TYPE_CHECKING:
    from sequester.attacks.pods import PodProof


Proof = tuple[Refutation, Refutation]
"""A proof, and the part of it that ties people most tightly."""

# How far above 1 the solver may put a strain that is exactly 1.
_NOISE = 1e-6

_LARGEST = 200_000
"""Unknowns of certified components up to which what is unavoidable there is computed, not only bounded."""


def find(
    history: History, *, semantics: Semantics = "exact", labels: Labels | None = None, decoy: Mask | None = None
) -> Result:
    """One finding per independent proof that somebody cannot deny a value. Both semantics are the same.

    The measure is the smallest confidence that is unavoidable, the largest over all components. Where certified
    components are too many to solve, it is what the true values come to there, which is at least as much.

    labels  what rows show, by default the values of the history. Where nobody's label is known, the values of the
            history must be the labels
    decoy   per person of the history, whether there is nobody, who may be tied to anything
    """
    asked = _ask(history, labels, decoy)
    if asked is None:
        return Result()
    touched = _parts_of(asked, asked.exceeds)
    large = np.zeros_like(touched)
    if labels is not None:
        large = touched & (np.bincount(asked.known.part, weights=asked.breadth(), minlength=len(touched)) > LARGEST)
    stated = asked.state((touched & ~large)[asked.known.part])
    program = stated.program
    proofs = list(_prove(program.take(asked.suspected(stated))))
    # What is proven once needs no second explanation.
    proven = np.concatenate([np.zeros(0, np.int64), *(proof.caps for proof, _ in proofs)])
    proofs += _prove(program.without_caps(proven))
    findings = {(one.value, one.classes, one.people): one for one in Teller(history, asked, stated).findings(proofs)}
    strain = _unavoidable(asked, stated, touched, [best for _, best in proofs])
    if not findings and strain < 1 + _NOISE:
        strain = min(strain, 1.0)
    largest = max(question.bound for question in asked.labels.questions)
    left = int(np.count_nonzero(large[asked.known.part]))
    note = f"deniability: {left:,} groups of people with one history are in parts too large to compare whole rows in"
    measure = min(1.0, round(strain * float(largest), 9))
    return Result(list(findings.values()), measure, (note,) if left else (), unsolved=left)


def _ask(history: History, labels: Labels | None, decoy: Mask | None) -> Inquiry | None:
    """What is asked, and what is known of it; None where there is nothing."""
    trajectories = history.trajectories
    if trajectories is None or not len(trajectories) or not history.permanent:
        return None
    shown = Labels.of_history(history) if labels is None else labels
    if not shown.questions:
        return None
    if labels is not None and (labels.of[trajectories.of >= 0] >= 0).all():
        known = Known.of(history, labels)
    elif len(history.values) == len(shown):
        known = Known.of_counts(history)
    else:
        return None
    somebody = np.ones(len(trajectories), np.bool_)
    if decoy is not None:
        somebody[:] = False
        somebody[trajectories.of[(trajectories.of >= 0) & ~decoy]] = True
    return Inquiry(known, shown, somebody)


def _parts_of(asked: Inquiry, shares: Mask) -> Mask:
    """Per component, whether one of these shares is in it."""
    parts = np.zeros(int(asked.known.part.max()) + 1, np.bool_)
    parts[asked.known.part[asked.share.trajectory[shares]]] = True
    return parts


def _prove(program: Program) -> Iterator[Proof]:
    """Independent proofs, each with the part of it that ties people most tightly."""
    if not program.exceeded.any():
        return
    proofs = list(refute(program, least_excess(program)))
    if not proofs:
        return
    owner = np.zeros(int(program.row.max()) + 1, np.int64)
    for number, proof in enumerate(proofs):
        owner[proof.rows] = number
    inner = program.take(np.isin(program.row, np.concatenate([proof.rows for proof in proofs])))
    tightest = stretch(inner)
    best = list(proofs)
    for proof in () if tightest is None else refute(inner, tightest[1]):
        number = int(owner[proof.rows[0]])
        best[number] = max(best[number], proof, key=lambda one: (one.strain, -len(one.rows)))
    yield from zip(proofs, best, strict=True)


def _unavoidable(asked: Inquiry, stated: LabelProgram, touched: Mask, proofs: list[Refutation]) -> float:
    """The smallest multiple of the bounds that is unavoidable anywhere; at most that where there is too much to solve.

    What people truly have is one solution: no component needs more than that.
    """
    program, (top, scale) = stated.program, asked.bounds
    certain = scale / float(top.max(initial=1))
    strain = max([0.0, *(min(certain, float(proof.strain)) for proof in proofs)])
    if asked.somebody.all():
        # What a class shows most of may be the decoys', where there are some apart from people.
        strain = max(strain, asked.in_one_class())
    own = asked.strain
    more = _parts_of(asked, own > strain * (1 + 1e-9))
    first = program.matrix.indices[program.matrix.indptr[:-1]]
    again = stretch(program.take(more[asked.known.part[stated.pairs.trajectory[first]]]))
    strain = max(strain, 0.0 if again is None else float(again[0].max(initial=0.0)))
    certified = more & ~touched
    if not certified.any():
        return strain
    settled = asked.state(certified[asked.known.part]).program
    if settled.matrix.shape[1] > _LARGEST:
        return max(strain, float(own[certified[asked.known.part[asked.share.trajectory]]].max()))
    least = stretch(settled)
    return strain if least is None else max(strain, float(least[0].max(initial=0.0)))


def _by_pods(history: History, pods: PodProof, since: int) -> Result:
    bounds = [question.bound for question in pods.labels.questions]
    free = history.attribute != WHOLE_ROW and all(bound >= 1 for bound in history.bounds)
    return Result([], min(1.0, round(pods.strain * float(max(bounds)), 9))) if bounds and not free else Result()


def _with_totals(history: History, asked: Setting) -> Result | None:
    """The same for somebody who knows the true totals, of all that rows show."""
    if asked.decoy is None or (asked.labels is not None and history.attribute != WHOLE_ROW):
        return None
    return find_totals(history, Labels.of_history(history) if asked.labels is None else asked.labels, asked.decoy)


def _settled(history: History) -> str | None:
    if len(history) == 1 and history.trajectories is None:
        # Believing of everybody what her class says is within the bounds if the class is.
        return f"{ONE_RELEASE}, of which confidence says as much"
    return unbounded(history)


def _nothing(history: History) -> str:
    # Whole rows of which nobody's label is known are looked at by their counts.
    uncounted = history.attribute == WHOLE_ROW and history.value is None
    return TOO_MANY_ROWS if uncounted else NOBODY_IN_COMMON


_WHOSE = ("people", "decoys")


def find_totals(history: History, labels: Labels, decoy: NDArray[np.bool_]) -> Result:
    """Proofs that some person cannot deny a value, given the totals of people; `decoy` is per person of the history."""
    if history.trajectories is None:
        return Result()
    told = history
    for release in history.releases:
        told = told.extend(_two_classes(release, decoy))
    result = find(told, labels=labels, decoy=decoy)
    return replace(result, findings=[_in_terms_of_totals(finding, len(history)) for finding in result.findings])


def _two_classes(release: Publication, decoy: NDArray[np.bool_]) -> Publication:
    """Who of a release is somebody and who is nobody, as two classes."""
    member = np.where(release.known_member < 0, -1, decoy).astype(np.int32)
    boxes, rows = np.zeros((len(release.lo), 2), np.int32), np.zeros(0, np.int32)
    counts = np.zeros((2, release.counts.shape[1]), np.int64)
    return Publication(release.name, boxes, boxes, counts, rows, rows, member)


def _in_terms_of_totals(finding: Finding, releases: int) -> Finding:
    """The finding in terms of what was published, and of totals."""
    return replace(
        finding,
        releases=tuple(sorted({(number - 1) % releases + 1 for number in finding.releases})),
        classes=tuple(place for place in finding.classes if place[0] <= releases),
        witness=LazyWitness(partial(_witness_of_totals, finding.witness, releases)),
    )


def _witness_of_totals(told: Mapping[str, Any], releases: int) -> dict[str, Any]:
    def count(row: dict[str, Any]) -> dict[str, Any]:
        if row["release"] <= releases:
            return row
        return row | {"release": row["release"] - releases, "class": 0, "whose": _WHOSE[row["class"] - 1]}

    def people(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"classes": [place for place in row["classes"] if place[0] <= releases]}

    parts = {
        **{name: [count(row) for row in told[name]] for name in ("added", "subtracted", "absent")},
        **{name: [people(row) for row in told[name]] for name in ("sizes", "remaining")},
    }
    return {**told, **parts, "totals": True}


Place = tuple[int, int]
Absence = tuple[int, int, int]

_NOTHING = 1e-6
"""Weights up to this are the solver's noise, where they are not whole."""

_SEEN = 5_000_000
"""People counted whatever they have, times labels, up to which a witness says which of these they cannot have."""


class Teller:
    """Puts proofs into plain values. Plain lists: there can be many small ones."""

    def __init__(self, history: History, asked: Inquiry, stated: LabelProgram) -> None:
        trajectories = history.known_trajectories
        self.history, self.asked, self.stated = history, asked, stated
        self.size: list[int] = trajectories.size.tolist()
        self.path: list[list[int]] = trajectories.path.tolist()

    def findings(self, proofs: Sequence[tuple[Refutation, Refutation]]) -> Iterator[Finding]:
        """One per proof: the people of the second, tightest part.

        Where the first names more people it is in the witness or, of whole rows, whose proofs spread further, a finding
        of its own.
        """
        absences = self._absences([one for pair in proofs for one in pair])
        for number, (proof, best) in enumerate(proofs):
            wider = (proof, absences[2 * number]) if len(proof.caps) > len(best.caps) else ()
            apart = self.history.attribute == WHOLE_ROW
            yield self._finding(best, absences[2 * number + 1], *(() if apart else wider))
            if apart and wider:
                yield self._finding(*wider)

    def _finding(
        self, proof: Refutation, absent: list[Absence], wider: Refutation | None = None, others: Sequence[Absence] = ()
    ) -> Finding:
        question, observed = self._confidence(proof)
        used = sorted({place for place, _, _, _ in self._counts(proof)} | {place[:2] for place in absent})
        return Finding(
            attack="deniability",
            adversary="insider",
            releases=tuple(sorted({release + 1 for release, _ in used})),
            required=float(question.bound),
            observed=observed,
            value=question.value,
            classes=tuple([(release + 1, name + 1) for release, name in used]),
            people=self._people(proof),
            witness=LazyWitness(partial(self._witness, proof, absent, wider, others)),
            attribute=question.attribute,
        )

    def _confidence(self, proof: Refutation) -> tuple[Question, float]:
        """The value that weighs most, and the share of it that is unavoidable for someone who remains.

        With several values the share is the common multiple of the bounds, as it applies to that value.
        """
        mass: dict[int, float] = dict.fromkeys(sorted(self.stated.question[proof.caps].tolist()), 0)
        for trajectory, number, weight in self._remaining(proof):
            mass[number] += weight * self.size[trajectory]
        number = max(mass, key=mass.__getitem__)
        question = self.asked.labels.questions[number]
        if len(mass) == 1:
            return question, proof.least / mass[number]
        return question, float(min(Fraction(1), proof.strain * question.bound))

    def _remaining(self, proof: Refutation) -> Iterator[tuple[int, int, Any]]:
        """Trajectory, question and weight of what remains."""
        trajectory, question = self.stated.trajectory[proof.caps], self.stated.question[proof.caps]
        return zip(trajectory.tolist(), question.tolist(), proof.weight.tolist(), strict=True)

    def _counts(self, proof: Refutation) -> Iterator[tuple[Place, int, Any, int]]:
        """Of every published count that is used: where, the label, how often, and the count."""
        known = self.asked.known
        counted = np.flatnonzero(proof.rows >= len(known.size))
        place = proof.rows[counted] - len(known.size)
        release, number, label = known.places(known.key[place])
        times, rows = proof.times[counted].tolist(), known.rows[place].tolist()
        return zip(zip(release, number, strict=True), label, times, rows, strict=True)

    def _people(self, proof: Refutation) -> tuple[Any, ...]:
        """Ids of those who remain, in the order of the history."""
        return self.history.people_of(set(self.stated.trajectory[proof.caps].tolist()))

    def _witness(
        self, proof: Refutation, absent: list[Absence], wider: Refutation | None, others: Sequence[Absence]
    ) -> dict[str, Any]:
        """A proof, and the one it is a part of where that names more people."""
        told = self._describe(proof, absent)
        if wider is not None:
            told["wider"] = self._describe(wider, others) | {"people": list(self._people(wider))}
        if self.history.attribute == WHOLE_ROW:
            told["cells"] = list(self.asked.labels.columns)
        return told

    def _describe(self, proof: Refutation, absent: Sequence[Absence]) -> dict[str, Any]:
        """The sum, in plain values.

        added, subtracted  published counts, each `times` over
        absent             counts of 0: nobody of this class has this value, so nobody of it remains
        sizes              people who are counted whatever their value, `times` over (negative: subtracted)
        remaining          people for whom the value is counted, `times` over; for all others the sum is 0 or less
        at_least, allowed  the sum in every world, and the most that the bounds allow for those who remain
        whole numbers      whether all of this was checked in whole numbers
        """
        labels, known = self.asked.labels, self.asked.known
        divisor = gcd(*proof.times.tolist(), *proof.weight.tolist()) if proof.exact else 1
        added: list[dict[str, Any]] = []
        subtracted: list[dict[str, Any]] = []
        for (release, number), label, times, count in self._counts(proof):
            row = {"release": release + 1, "class": number + 1, "value": labels.name(label), "count": count}
            (added if times > 0 else subtracted).append(row | {"times": _over(abs(times), divisor)})
        whole = np.flatnonzero(proof.rows < len(known.size))
        return {
            "added": added,
            "subtracted": subtracted,
            "absent": [
                {"release": release + 1, "class": number + 1, "value": labels.name(label)}
                for release, number, label in absent
            ],
            "sizes": [
                {"classes": self._classes(t), "people": self.size[t], "times": _over(times, divisor)}
                for t, times in zip(proof.rows[whole].tolist(), proof.times[whole].tolist(), strict=True)
            ],
            "remaining": [
                {
                    "classes": self._classes(t),
                    "value": labels.questions[q].value,
                    "bound": float(labels.questions[q].bound),
                    "people": self.size[t],
                    "times": _over(weight, divisor),
                }
                for t, q, weight in self._remaining(proof)
            ],
            "at_least": _over(proof.least, divisor),
            "allowed": proof.allowed / (proof.scale * divisor),
            "whole numbers": proof.exact,
        }

    def _classes(self, trajectory: int) -> list[list[int]]:
        path = enumerate(self.path[trajectory], start=1)
        return [[release, number + 1] for release, number in path if number >= 0]

    def _absences(self, proofs: Sequence[Refutation]) -> list[list[Absence]]:
        """Per proof, the (release, class, label) with a count of 0 that rule out whoever else would remain.

        The program leaves such people out from the start; whoever checks the sum has to see why.
        """
        absent: list[list[Absence]] = [[] for _ in proofs]
        if not proofs:
            return absent
        known, pairs = self.asked.known, self.stated.pairs
        people, width = len(known.size), known.labels
        key, weight = self._weighed(proofs)
        impossible = ~np.isin(key % (people * width), pairs.trajectory * width + pairs.label)
        left = key[(weight > _NOTHING) & impossible]
        number, trajectory, label = left // (people * width), left // width % people, left % width
        path = known.path[trajectory]
        lacking = np.zeros(path.shape, np.bool_)
        for release, column in enumerate(path.T):
            inside = np.flatnonzero(column >= 0)
            lacking[inside, release] = ~known.shows(column[inside], label[inside])
        where = path[np.arange(len(path)), lacking.argmax(axis=1)]
        cells = np.unique(np.column_stack([number, where * width + label]), axis=0)
        for proof, *place in zip(cells[:, 0].tolist(), *known.places(cells[:, 1]), strict=True):
            absent[proof].append((place[0], place[1], place[2]))
        return absent

    def _weighed(self, proofs: Sequence[Refutation]) -> tuple[Integers, NDArray[Any]]:
        """(proof * trajectories + trajectory) * labels + label of all that proofs count, and how often they do."""
        known = self.asked.known
        people, width = len(known.size), known.labels
        proof = np.repeat(np.arange(len(proofs)), [len(one.times) for one in proofs])
        row, times = np.concatenate([one.rows for one in proofs]), np.concatenate([one.times for one in proofs])
        whole, counted = np.flatnonzero(row < people), np.flatnonzero(row >= people)
        member, release = np.nonzero(known.path >= 0)
        order = np.argsort(known.path[member, release], kind="stable")
        classes, key = known.path[member, release][order], known.key[row[counted] - people]
        first, last = (np.searchsorted(classes, key // width, side) for side in ("left", "right"))
        entry = np.repeat(np.arange(len(counted)), last - first)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
        whose = member[order[np.repeat(first, last - first) + offset]]
        keys = (proof[counted[entry]] * people + whose) * width + key[entry] % width
        sums = times[counted[entry]]
        own = proof[whole] * people + row[whole]
        added = np.flatnonzero(times[whole] > 0)
        if len(added) * width <= _SEEN:
            every = (own[added, None] * width + np.arange(width)).reshape(-1)
            keys, sums = np.append(keys, every), np.append(sums, np.zeros(len(every), sums.dtype))
        found, inverse = np.unique(keys, return_inverse=True)
        weight = np.zeros(len(found), sums.dtype)
        np.add.at(weight, inverse, sums)
        if len(own):
            order = np.argsort(own)
            place = np.minimum(np.searchsorted(own, found // width, sorter=order), len(own) - 1)
            weight += np.where(own[order[place]] == found // width, times[whole[order[place]]], 0)
        return found, weight


def _over(times: Any, divisor: int) -> Any:
    """In lowest terms: whole numbers stay whole."""
    return times // divisor if isinstance(times, int) else times / divisor


TERMS_SHOWN = 100
"""A sum that cannot be seen whole cannot be checked; longer ones are for the witness."""


def tell_sum(finding: Finding, history: History) -> str:
    """The sum of the witness: its terms, who remains in it, and why that is too much."""
    told, releases = finding.witness, len(history)
    terms = [
        *(f"+ {_times(row)}{_count(row)}" for row in told["added"]),
        *(f"- {_times(row)}{_count(row)}" for row in told["subtracted"]),
        *(f"{'+' if row['times'] > 0 else '-'} {_times(row)}{words.people(row['people'])} {_where(row, releases)}, "
          "whatever they have" for row in told["sizes"]),
    ]  # fmt: skip
    bounds = dict(zip(history.values, history.bounds, strict=True))
    rest = [
        f"{_times(row)}those with {row['value']} of the {words.people(row['people'])} {_where(row, releases)}: "
        f"allowed {words.share(float(row['bound'] if 'bound' in row else bounds[row['value']]))} "
        f"of {row['people'] * row['times']:g}"
        for row in told["remaining"]
    ]
    lacking = [f"Nobody {_place(row)} has {row['value']}." for row in told["absent"]]
    values = dict.fromkeys(row["value"] for row in told["remaining"])
    who = words.names(finding.people) if len(finding.people) == 1 else f"somebody of {words.names(finding.people)}"
    tied = f"to {finding.value} with {words.share(finding.observed)} or more"
    if len(values) > 1:
        tied = f"too surely to one of {', '.join(values)}; spread evenly over them that is {finding.value} with "
        tied += words.share(finding.observed)
    knows = "who is in which class" + (", and the true totals of every release," if "totals" in told else "")
    lines = [
        f"Whoever knows {knows} can do this sum with the rows below:",
        *_some(terms),
        f"  = {told['at_least']:g}",
        *_some(lacking, indent=""),
        "Look at each person: the terms cancel out, or count less than nothing, for all but",
        *_some(rest),
        f"So if nobody were tied to a value more surely than allowed, the sum would be {told['allowed']:g} at most. "
        f"It is {told['at_least']:g}: whatever one believes, {who} is tied {tied}.",
    ]
    if "wider" in told:
        lines.append(f"A longer sum, in the witness, exposes more people less: {words.names(told['wider']['people'])}.")
    return "\n".join(lines)


def _some(lines: Sequence[str], *, indent: str = "  ") -> list[str]:
    more = [f"... and {len(lines) - TERMS_SHOWN} more, in the witness"] if len(lines) > TERMS_SHOWN else []
    return [f"{indent}{line}" for line in (*lines[:TERMS_SHOWN], *more)]


def _times(row: Mapping[str, Any]) -> str:
    times = abs(row["times"])
    return "" if times == 1 else f"{times:g} x "


def _count(row: Mapping[str, Any]) -> str:
    rows = "1 row" if row["count"] == 1 else f"{row['count']} rows"
    return f"{rows} with {row['value']} {_place(row)}"


def _place(row: Mapping[str, Any]) -> str:
    """A class, or all people of a release whose totals are known."""
    if "whose" in row:
        return f"among all {row['whose']} of release {row['release']}, by the totals,"
    return f"in class {row['class']} of release {row['release']}"


def _where(row: Mapping[str, Any], releases: int) -> str:
    """The classes of people with one history, and whether they are in no other release."""
    places = [f"class {number} of release {release}" for release, number in row["classes"]]
    return f"in {listed(places)}" + ("" if len(places) == releases else " and in no other release")


ATTACK = Attack(
    name="deniability",
    adversary="insider",
    title="Confidence no belief can avoid",
    find=lambda history, asked: find(history, labels=asked.labels_of(history)),
    smallest=False,
    required=largest_share,
    values="permanent",
    releases=1,
    knows_people=True,
    looks_at=lambda histories, rows: (*histories, rows.people),
    by_pods=_by_pods,
    besides=_with_totals,
    story=tell_sum,
    settled=_settled,
    nothing=_nothing,
)
